//! Names and paths as a peer sends them and as a terminal shows them.

#![allow(clippy::unwrap_used)]

use proptest::prelude::*;
use sealway_drop::names::{Escaped, Folding, MAX_DEPTH, MAX_PATH, NameError, RelPath, Rules};
use sealway_drop::ranges::Ranges;
use sealway_drop::testing::any_path;

fn posix(components: &[&[u8]]) -> Result<RelPath, NameError> {
    RelPath::new(components, Rules::POSIX)
}

/// As a peer would send it, which does not ask our encoder.
fn wire(components: &[&[u8]]) -> Vec<u8> {
    let mut bytes = vec![components.len() as u8];
    for component in components {
        bytes.push(component.len() as u8);
        bytes.extend_from_slice(component);
    }
    bytes
}

#[test]
fn cve_2025_27142_names_that_climb_or_join_are_refused_whoever_sends_them() {
    let bad: [&[u8]; 10] = [
        b"",
        b".",
        b"..",
        b"/",
        b"/etc",
        b"a/b",
        b"../x",
        b"a\0b",
        b"..\0",
        b".sealway-partial-0123456789abcdef",
    ];
    for name in bad {
        for components in [&[name][..], &[b"dir", name], &[name, b"file"], &[b"a", name, b"b"]] {
            assert!(posix(components).is_err(), "{}", Escaped(name));
            assert!(
                RelPath::decode(&wire(components), Rules::POSIX).is_err(),
                "{}",
                Escaped(name)
            );
        }
        assert!(posix(&[b"dir"]).unwrap().child(name, Rules::POSIX).is_err());
    }
    for name in [
        &b"..."[..],
        b".a",
        b"a..",
        b"..a",
        b"\\..\\x",
        b"C:",
        b"~",
        b"-rf",
        b" ",
        b"\xff\xfe",
        b"\n",
    ] {
        assert!(posix(&[name]).is_ok(), "{}", Escaped(name));
    }
}

#[test]
fn our_staging_name_is_refused_in_any_case_of_letters() {
    assert!(matches!(
        posix(&[b".SEALWAY-Partial-x"]),
        Err(NameError::Reserved { .. })
    ));
    // Not to be seen, and left out by file systems that fold.
    for name in [
        ".sealway-\u{200d}partial-x",
        "\u{feff}.Sealway-partial-x",
        ".\u{17f}ealway-partial-x",
    ] {
        assert!(
            matches!(posix(&[name.as_bytes()]), Err(NameError::Reserved { .. })),
            "{}",
            Escaped(name.as_bytes())
        );
    }
    assert!(posix(&[b".sealway-partia"]).is_ok());
    assert!(posix(&[b".sealway-partial"]).is_ok());
}

#[test]
fn limits_of_lengths_hold_to_the_byte() {
    assert!(posix(&[&[b'a'; 255]]).is_ok());
    assert_eq!(posix(&[&[b'a'; 256]]), Err(NameError::Long { bytes: 256 }));
    assert!(RelPath::new(vec!["d"; MAX_DEPTH], Rules::POSIX).is_ok());
    assert_eq!(
        RelPath::new(vec!["d"; MAX_DEPTH + 1], Rules::POSIX),
        Err(NameError::Deep)
    );
    assert_eq!(
        RelPath::decode(&wire(&vec![&b"d"[..]; MAX_DEPTH + 1]), Rules::POSIX),
        Err(NameError::Deep)
    );
    // Sixteen names of 255 and their separators are 4,095.
    let mut full = vec![vec![b'x'; 255]; 16];
    let path = RelPath::new(&full, Rules::POSIX).unwrap();
    assert_eq!(path.to_string().len(), MAX_PATH - 1);
    full.push(vec![b'y']);
    assert_eq!(RelPath::new(&full, Rules::POSIX), Err(NameError::LongPath));
    assert_eq!(posix(&[]), Err(NameError::NoComponents));
    assert_eq!(RelPath::decode(&[0], Rules::POSIX), Err(NameError::NoComponents));
}

#[test]
fn windows_refuses_what_it_takes_for_something_else() {
    for name in [
        "a\\b",
        "a:b",
        "C:",
        "file:stream",
        "con",
        "CON.txt",
        "nul",
        "Aux.tar.gz",
        "COM1",
        "com9.x",
        "LPT1",
        "COM\u{b2}",
        "CONIN$",
        "con .txt",
        "end.",
        "end ",
        "a<b",
        "a>b",
        "a\"b",
        "a|b",
        "a?b",
        "a*b",
        "a\u{7}b",
        "a\u{85}b",
    ] {
        assert!(Rules::WINDOWS.check(name.as_bytes()).is_err(), "{name:?}");
        assert!(Rules::POSIX.check(name.as_bytes()).is_ok(), "{name:?}");
    }
    assert!(Rules::WINDOWS.check(b"\xff").is_err());
    for name in [
        "console",
        "com",
        "com10",
        "COM0x",
        "aux-file",
        "a.b",
        ".gitignore",
        "\u{e9}t\u{e9}",
    ] {
        assert!(Rules::WINDOWS.check(name.as_bytes()).is_ok(), "{name:?}");
    }
}

#[test]
fn cve_2023_43620_no_name_reaches_a_terminal_as_a_command() {
    let shown = |name: &[u8]| Escaped(name).to_string();
    assert_eq!(shown(b"a\x1b[2Jb"), "a\\x1b[2Jb");
    assert_eq!(shown(b"\r\n\t\x07\x7f"), "\\r\\n\\t\\x07\\x7f");
    assert_eq!(shown("\u{9b}31m".as_bytes()), "\\u{9b}31m");
    assert_eq!(shown("photo\u{202e}gpj.exe".as_bytes()), "photo\\u{202e}gpj.exe");
    assert_eq!(
        shown("a\u{200b}b\u{2066}c\u{feff}".as_bytes()),
        "a\\u{200b}b\\u{2066}c\\u{feff}"
    );
    assert_eq!(
        shown("\u{2028}\u{a0}\u{e0041}".as_bytes()),
        "\\u{2028}\\u{a0}\\u{e0041}"
    );
    assert_eq!(shown(b"\xff\xc3"), "\\xff\\xc3");
    assert_eq!(shown(b"\\x1b"), "\\\\x1b");
    assert_eq!(
        shown("\u{4f60}\u{597d} \u{e9}\u{1f600}".as_bytes()),
        "\u{4f60}\u{597d} \u{e9}\u{1f600}"
    );
    assert_eq!(posix(&[b"a\x1b", b"b"]).unwrap().to_string(), "a\\x1b/b");
    let error = posix(&[b"x\x1b\0"]).unwrap_err().to_string();
    assert!(!error.contains('\x1b'), "{error}");
}

#[test]
fn paths_are_ordered_with_directories_before_what_is_in_them() {
    let path = |text: &str| RelPath::new(text.split('/'), Rules::POSIX).unwrap();
    let sorted = ["a", "a/b", "a/b/c", "a/c", "a b", "a-b", "ab", "b"].map(path);
    let mut shuffled = sorted.clone();
    shuffled.reverse();
    shuffled.sort();
    assert_eq!(shuffled, sorted);
    assert_eq!(path("a/b/c").parent(), Some(path("a/b")));
    assert_eq!(path("a").parent(), None);
    assert_eq!(
        (path("a/bc").name(), path("a/bc").top(), path("a/bc").depth()),
        (&b"bc"[..], &b"a"[..], 2)
    );
}

#[test]
fn keys_are_equal_for_one_file_and_for_no_other() {
    let folding = Folding {
        case: true,
        normal: true,
    };
    let path = |text: &str| RelPath::new(text.split('/'), Rules::POSIX).unwrap();
    let same = |a: &str, b: &str| folding.key(&path(a)) == folding.key(&path(b));
    assert!(same("MASSE", "masse") && same("Ma\u{df}e", "MASSE") && same("\u{1e9e}", "ss"));
    assert!(same("\u{3a3}\u{3c2}", "\u{3c3}\u{3a3}") && same("\u{212a}", "k") && same("\u{fb01}", "FI"));
    assert!(same("e\u{301}", "\u{c9}") && same("a/B", "A/b"));
    assert!(!same("a/b", "ab") && !same("a", "b") && !same("a/b", "a/b/c"));
    assert_ne!(Folding::NONE.key(&path("A")), Folding::NONE.key(&path("a")));
}

proptest! {
    #[test]
    fn paths_travel(path in any_path(), after in prop::collection::vec(any::<u8>(), 0..5)) {
        let mut bytes = Vec::new();
        path.encode(&mut bytes);
        for cut in 0..bytes.len() {
            prop_assert_eq!(RelPath::decode(&bytes[..cut], Rules::POSIX), Err(NameError::Truncated));
        }
        let len = bytes.len();
        bytes.extend_from_slice(&after);
        prop_assert_eq!(RelPath::decode(&bytes, Rules::POSIX), Ok((path, len)));
    }

    #[test]
    fn whatever_a_peer_sends_decodes_to_what_the_rules_allow(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        if let Ok((path, used)) = RelPath::decode(&bytes, Rules::POSIX) {
            prop_assert!(path.components().all(|c| Rules::POSIX.check(c).is_ok()));
            let mut again = Vec::new();
            path.encode(&mut again);
            prop_assert_eq!(&again[..], &bytes[..used]);
        }
    }

    #[test]
    fn what_is_shown_has_nothing_to_obey_and_is_never_ambiguous(a in prop::collection::vec(any::<u8>(), 0..20),
        b in prop::collection::vec(any::<u8>(), 0..20)) {
        let shown = Escaped(&a).to_string();
        prop_assert!(!shown.chars().any(char::is_control));
        prop_assert_eq!(a == b, shown == Escaped(&b).to_string());
    }

    #[test]
    fn ranges_are_a_set(steps in prop::collection::vec((any::<bool>(), 0..40u64, 0..40u64), 0..30)) {
        let mut ranges = Ranges::new();
        let mut model = [false; 40];
        for (insert, a, b) in steps {
            let range = a.min(b)..a.max(b);
            let touched = &mut model[range.start as usize..range.end as usize];
            if insert {
                let new = touched.iter().filter(|there| !**there).count() as u64;
                prop_assert_eq!(ranges.insert(range.clone()), new);
            } else {
                ranges.remove(range.clone());
            }
            touched.fill(insert);
            let listed = ranges.to_vec();
            prop_assert!(listed.iter().all(|r| r.start < r.end));
            prop_assert!(listed.windows(2).all(|pair| pair[0].end < pair[1].start));
            for at in 0..40 {
                prop_assert_eq!(listed.iter().any(|r| r.contains(&at)), model[at as usize]);
            }
            prop_assert_eq!(ranges.len(), model.iter().filter(|there| **there).count() as u64);
            prop_assert_eq!(ranges.covers(range.clone()), model[range.start as usize..range.end as usize].iter().all(|t| *t));
            let missing: u64 = ranges.missing(40).iter().map(|r| r.end - r.start).sum();
            prop_assert_eq!(missing + ranges.len(), 40);
        }
    }
}
