//! What a request asks for: the path behind the token, and the few words of the query that mean something.
//!
//! A target is `/TOKEN/a/b?words`. Its components are taken apart before they are decoded, each is decoded once, and each must then
//! be a name by the rules of the drop. So neither `..`, nor `%2e%2e`, nor `%2f` leads anywhere (CVE-2025-27142).

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, percent_encode};
use sealway_drop::names::{RelPath, Rules};

use crate::secret::Secret;

/// The longest target, bytes.
pub const MAX_TARGET: usize = 16 << 10;

/// All that is not unreserved (RFC 3986 section 2.3).
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A whole folder as one file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Format {
    /// Stored, not compressed.
    Zip,
    /// Of GNU's kind, not compressed.
    Tar,
}

/// What is asked for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Target {
    /// Below what is shared; `None` is all of it.
    pub path: Option<RelPath>,
    /// Whether it ends as a folder's does, with a slash.
    pub folder: bool,
    /// What is to be done with it.
    pub query: Query,
}

/// The words of a query. Others mean nothing.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Query {
    /// The whole folder as one file.
    pub archive: Option<Format>,
    /// To be stored, not shown.
    pub download: bool,
    /// How a folder is listed.
    pub order: Order,
    /// When a file that is sent here changed, milliseconds since 1970.
    pub modified: Option<i64>,
}

/// By what a folder is listed, folders first.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Order {
    /// The column.
    pub by: Column,
    /// Whether the largest comes first.
    pub descending: bool,
}

/// A column of a listing.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub enum Column {
    /// By name.
    #[default]
    Name,
    /// By size.
    Size,
    /// By the time of the last change.
    Time,
}

impl Column {
    /// Its word in a query.
    pub fn word(self) -> &'static str {
        match self {
            Column::Name => "name",
            Column::Size => "size",
            Column::Time => "time",
        }
    }
}

/// Reads a target. `None` if the token is wrong or the path is none, which look alike from outside.
pub fn read(target: &str, token: &Secret) -> Option<Target> {
    if target.len() > MAX_TARGET {
        return None;
    }
    let (path, words) = target.split_once('?').unwrap_or((target, ""));
    let path = path.strip_prefix('/')?;
    let (said, rest) = match path.split_once('/') {
        Some((said, rest)) => (said, Some(rest)),
        None => (path, None),
    };
    if !token.is(said.as_bytes()) {
        return None;
    }
    let query = query(words);
    let (names, folder) = match rest {
        None => (None, false),
        Some("") => (None, true),
        Some(rest) => match rest.strip_suffix('/') {
            Some(rest) => (Some(rest), true),
            None => (Some(rest), false),
        },
    };
    let path = match names {
        None => None,
        Some(names) => {
            let names = names.split('/').map(decoded).collect::<Option<Vec<_>>>()?;
            Some(RelPath::new(names, Rules::local()).ok()?)
        }
    };
    Some(Target { path, folder, query })
}

fn query(words: &str) -> Query {
    let mut query = Query::default();
    for word in words.split('&') {
        let (key, value) = word.split_once('=').unwrap_or((word, ""));
        match key {
            "zip" => query.archive = Some(Format::Zip),
            "tar" => query.archive = Some(Format::Tar),
            "download" => query.download = true,
            "desc" => query.order.descending = true,
            "sort" => {
                let columns = [Column::Name, Column::Size, Column::Time];
                let column = columns.into_iter().find(|column| column.word() == value);
                query.order.by = column.unwrap_or_default();
            }
            "modified" => query.modified = value.parse().ok(),
            _ => {}
        }
    }
    query
}

/// One component, decoded once; `None` where `%` is not followed by two digits.
fn decoded(name: &str) -> Option<Vec<u8>> {
    let mut bytes = name.bytes();
    let mut decoded = Vec::with_capacity(name.len());
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let high = char::from(bytes.next()?).to_digit(16)?;
                let low = char::from(bytes.next()?).to_digit(16)?;
                (high << 4 | low) as u8
            }
            byte => byte,
        });
    }
    Some(decoded)
}

/// A name as a component of a link.
pub fn encoded(name: &[u8]) -> PercentEncode<'_> {
    percent_encode(name, ENCODED)
}

/// A path as a link, without a slash before or behind.
pub fn link(path: &RelPath) -> String {
    let names: Vec<String> = path.components().map(|name| encoded(name).to_string()).collect();
    names.join("/")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token() -> Secret {
        Secret::given("token".into())
    }

    fn names(target: &str) -> Option<Vec<String>> {
        let path = read(target, &token())?.path;
        let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
        Some(path.map_or(vec![], |path| path.components().map(text).collect()))
    }

    #[test]
    fn paths_are_taken_apart_before_they_are_decoded() {
        for (target, expected) in [
            ("/token", Some(vec![])),
            ("/token/", Some(vec![])),
            ("/token/a", Some(vec!["a"])),
            ("/token/a/b%20c/", Some(vec!["a", "b c"])),
            ("/token/%E4%BD%A0", Some(vec!["你"])),
            ("/token/100%25", Some(vec!["100%"])),
            // Decoded once: the rest is a name.
            ("/token/%252e%252e", Some(vec!["%2e%2e"])),
            ("/token/..", None),
            ("/token/%2e%2E/x", None),
            ("/token/a/%2e/b", None),
            ("/token/a%2fb", None),
            ("/token/a%00", None),
            ("/token//a", None),
            ("/token/a//", None),
            ("/token/%", None),
            ("/token/%4", None),
            ("/token/%zz", None),
            ("/token/.sealway-partial-x", None),
            ("/Token/a", None),
            ("/toke/a", None),
            ("//token/a", None),
            ("token/a", None),
            ("/", None),
            ("", None),
            ("*", None),
        ] {
            let expected = expected.map(|names| names.into_iter().map(String::from).collect());
            assert_eq!(names(target), expected, "{target}");
        }
        assert!(read(&format!("/token/{}", "a".repeat(MAX_TARGET)), &token()).is_none());
    }

    #[test]
    fn what_is_no_folder_has_no_slash() {
        let folder = |target| read(target, &token()).unwrap().folder;
        assert!(folder("/token/") && folder("/token/a/") && !folder("/token/a") && !folder("/token"));
    }

    #[test]
    fn queries_say_what_is_to_be_done() {
        let query = |words: &str| read(&format!("/token/?{words}"), &token()).unwrap().query;
        assert_eq!(query(""), Query::default());
        assert_eq!(query("zip").archive, Some(Format::Zip));
        assert_eq!(query("x=1&tar=&y").archive, Some(Format::Tar));
        assert!(query("download=1").download);
        let order = query("sort=size&desc").order;
        assert_eq!((order.by, order.descending), (Column::Size, true));
        assert_eq!(query("sort=evil").order, Order::default());
        assert_eq!(query("modified=-1").modified, Some(-1));
        assert_eq!(query("modified=9223372036854775808&size=x"), Query::default());
    }

    #[test]
    fn links_lead_back() {
        for name in [
            "a b",
            "100%",
            "javascript:alert(1)",
            "?#&=",
            "你好",
            "\"><script>",
            "~-._",
        ] {
            let path = RelPath::new(["folder", name], Rules::POSIX).unwrap();
            let link = link(&path);
            assert!(
                link.bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || b"-._~%/".contains(&byte)),
                "{link}"
            );
            let found = read(&format!("/token/{link}"), &token()).unwrap();
            assert_eq!(found.path, Some(path));
        }
    }
}
