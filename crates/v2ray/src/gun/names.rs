//! Services and methods, as `serviceName` names them.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::Kind;

/// Longest `serviceName`, bytes: escaped, it has room in the head of a request.
pub const MAX_NAME: usize = 2048;

/// What a segment of a path is escaped for. Servers compare the escaped text, so it has to be that of everybody else: that
/// of Go's `url.PathEscape`.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b':')
    .remove(b'=')
    .remove(b'@');

/// The paths of the two methods.
///
/// ```
/// use sealway_v2ray::gun::{Kind, Names};
///
/// let names = Names::new("a b/c");
/// assert_eq!(names.path(Kind::Hunk), "/a%20b%2Fc/Tun");
/// let names = Names::new("/x/y/T|M");
/// assert_eq!((names.path(Kind::Hunk), names.path(Kind::MultiHunk)), ("/x/y/T", "/x/y/M"));
/// ```
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Names {
    hunk: String,
    multi: String,
    decoded: [Vec<u8>; 2],
}

/// What a path asks a server for.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Call {
    /// The method whose messages are of this kind.
    Method(Kind),
    /// Another method, or another service.
    Unknown,
}

fn escape(text: &str) -> String {
    utf8_percent_encode(text, SEGMENT).to_string()
}

impl Names {
    /// Those of a `serviceName`. Without a leading slash it is the name of the service, and its methods are `Tun` and
    /// `TunMulti`. With one it is the path of both methods, up to the last slash that of the service; `A|B` behind it are
    /// the names of the methods, `A` alone is the name of both.
    pub fn new(name: &str) -> Self {
        let (service, hunk, multi) = match name.strip_prefix('/') {
            None => (escape(name), "Tun".to_owned(), "TunMulti".to_owned()),
            Some(path) => {
                let (service, methods) = path.rsplit_once('/').unwrap_or(("", path));
                let service: Vec<String> = service.split('/').map(escape).collect();
                let mut methods = methods.split('|');
                let first = methods.next().unwrap_or_default();
                let second = methods.next().unwrap_or(first);
                (service.join("/"), escape(first), escape(second))
            }
        };
        let (hunk, multi) = (format!("/{service}/{hunk}"), format!("/{service}/{multi}"));
        let decoded = [&hunk, &multi].map(|path| decode(path));
        Names { hunk, multi, decoded }
    }

    /// The path of a method, escaped, for clients.
    pub fn path(&self, kind: Kind) -> &str {
        match kind {
            Kind::Hunk => &self.hunk,
            Kind::MultiHunk => &self.multi,
        }
    }

    /// What a path asks for. Differences in what is escaped make none: not every client escapes.
    ///
    /// If both methods have one name, it is that of `MultiHunk`, which every `Hunk` is too.
    pub fn call(&self, path: &str) -> Call {
        let path = decode(path);
        let [hunk, multi] = &self.decoded;
        if path == *multi {
            Call::Method(Kind::MultiHunk)
        } else if path == *hunk {
            Call::Method(Kind::Hunk)
        } else {
            Call::Unknown
        }
    }
}

fn decode(path: &str) -> Vec<u8> {
    percent_decode_str(path).collect()
}
