//! Names of files: those of an offer as paths below the destination, and ours as an offer has them.

use sealway_drop::names::{MAX_COMPONENT, NameError, RelPath, Rules};

/// The path that a name of an offer stands for. As in the app, `/` separates folders, `.` and nothing at all between two of them
/// drop out, what is no character of a name becomes `_`, and what is too long is cut.
///
/// # Errors
/// For a name that begins at a root or goes up (CVE-2025-27142), and for one that the rules of the drop refuse.
pub fn path(name: &str, rules: Rules) -> Result<RelPath, NameError> {
    let drive = matches!(name.as_bytes(), [letter, b':', b'/' | b'\\', ..] if letter.is_ascii_alphabetic());
    let is_root = drive || name.starts_with(['/', '\\']);
    if is_root
        || name
            .split(['/', '\\'])
            .any(|part| part.trim_end_matches([' ', '.']).is_empty() && part.contains(".."))
    {
        return Err(NameError::Dots);
    }
    let parts = name.split('/').filter(|part| !matches!(*part, "" | "."));
    RelPath::new(parts.map(component), rules)
}

/// A component that can be written. What is a separator elsewhere is none here.
fn component(part: &str) -> String {
    let is_odd = |c: char| c.is_control() || c == '\\';
    let clean: String = part.chars().map(|c| if is_odd(c) { '_' } else { c }).collect();
    if clean.len() <= MAX_COMPONENT {
        return clean;
    }
    marked(&clean, "")
}

/// The name with a mark before its ending. Of one that is too long neither is lost: what a file is called at its end says what it is.
fn marked(name: &str, mark: &str) -> String {
    let (stem, end) = match name.rsplit_once('.') {
        Some((stem, end)) if !stem.is_empty() && end.len() < 32 => name.split_at(stem.len()),
        _ => (name, ""),
    };
    let room = stem.floor_char_boundary(MAX_COMPONENT.saturating_sub(mark.len() + end.len()));
    format!("{}{mark}{end}", stem.get(..room).unwrap_or_default())
}

/// The path with a number: what a second file of one name in one offer is called.
pub fn numbered(path: &RelPath, number: u32, rules: Rules) -> Result<RelPath, NameError> {
    let name = String::from_utf8_lossy(path.name());
    let name = component(&marked(&name, &format!(" ({number})")));
    match path.parent() {
        Some(parent) => parent.child(name.as_bytes(), rules),
        None => RelPath::new([name], rules),
    }
}

/// What a path is called in an offer; `None` if it cannot be said there as it is: names are UTF-8 without `\`.
pub fn offered(path: &RelPath) -> Option<String> {
    let parts: Result<Vec<_>, _> = path.components().map(std::str::from_utf8).collect();
    let name = parts.ok()?.join("/");
    (!name.contains('\\')).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(name: &str) -> Option<String> {
        let path = path(name, Rules::POSIX).ok()?;
        Some(String::from_utf8(sealway_drop::names::join(path.key())).unwrap())
    }

    #[test]
    fn cve_2025_27142_no_name_leads_out() {
        for name in [
            "../x", "a/../x", "a/..", "..", "/x", "/", "", ".", "./.", "\\x", "..\\x", "a\\..\\x", "C:\\x", "c:/x",
            "a/.. /x", "...", "a/../", "\0..", "~/../x",
        ] {
            let read = read(name);
            assert!(read.is_none() || name == "\0..", "{name:?} became {read:?}");
        }
        assert_eq!(read(".sealway-partial-1234/x"), None);
    }

    #[test]
    fn odd_names_are_written_as_the_app_writes_them() {
        for (name, expected) in [
            ("a//b/./c", "a/b/c"),
            ("a\u{7}b\n", "a_b_"),
            ("a\\b", "a_b"),
            ("假日/图.jpg", "假日/图.jpg"),
            ("👩‍👩‍👧.png", "👩‍👩‍👧.png"),
            ("..a", "..a"),
            ("1: intro.mp3", "1: intro.mp3"),
            ("\0..", "_.."),
        ] {
            assert_eq!(read(name).as_deref(), Some(expected), "{name:?}");
        }
        let long = read(&format!("{}.jpeg", "é".repeat(300))).unwrap();
        assert!(long.len() <= 255 && long.ends_with("é.jpeg"));
    }

    #[test]
    fn two_of_one_name_are_told_apart() {
        let number = |name: &str| {
            numbered(&path(name, Rules::POSIX).unwrap(), 2, Rules::POSIX)
                .unwrap()
                .to_string()
        };
        assert_eq!(number("a/b.tar.gz"), "a/b.tar (2).gz");
        assert_eq!(number(".hidden"), ".hidden (2)");
        assert_eq!(number("x"), "x (2)");
    }

    #[test]
    fn what_cannot_be_said_is_left_out() {
        let path = |parts: &[&[u8]]| RelPath::new(parts, Rules::POSIX).unwrap();
        assert_eq!(offered(&path(&[b"a", "é".as_bytes()])).as_deref(), Some("a/é"));
        assert_eq!(offered(&path(&[b"\xff"])), None);
        assert_eq!(offered(&path(&[b"a\\b"])), None);
    }
}
