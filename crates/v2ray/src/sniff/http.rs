//! Requests of HTTP/1 (RFC 9112).

use std::collections::BTreeMap;

use super::{Kind, Look, name};
use crate::Domain;

/// Most bytes of a head that are waited for. Of a longer one, that much is looked at.
const MAX_HEAD: usize = 8 << 10;

const METHODS: [&str; 9] = [
    "GET", "POST", "HEAD", "PUT", "DELETE", "OPTIONS", "CONNECT", "PATCH", "TRACE",
];

/// Whether the bytes begin with a method and a space, or could, with more.
fn begins_with_method(bytes: &[u8]) -> Option<bool> {
    let mut could = None;
    for method in METHODS {
        let len = method.len().min(bytes.len());
        if !bytes[..len].eq_ignore_ascii_case(&method.as_bytes()[..len]) {
            continue;
        }
        match bytes.get(method.len()) {
            Some(b' ') => return Some(true),
            Some(_) => {}
            None => could = Some(false),
        }
    }
    could
}

/// The lines of a head, without their ends, and whether it is whole.
fn lines(bytes: &[u8]) -> (impl Iterator<Item = &[u8]> + Clone, bool) {
    let mut end = 0;
    let mut whole = false;
    while let Some(len) = bytes[end..].iter().position(|&byte| byte == b'\n') {
        let line = &bytes[end..end + len];
        if line.is_empty() || line == b"\r" {
            whole = true;
            break;
        }
        end += len + 1;
    }
    // A line whose end is not there could be the beginning of another one.
    let lines = bytes[..end]
        .split(|&byte| byte == b'\n')
        .take_while(|line| !line.is_empty());
    (lines.map(|line| line.strip_suffix(b"\r").unwrap_or(line)), whole)
}

/// The method, the target and the version.
fn request_line(line: &[u8]) -> Option<[&[u8]; 3]> {
    let mut parts = line.split(|&byte| byte == b' ');
    let all = [parts.next()?, parts.next()?, parts.next()?];
    (parts.next().is_none() && all[2].len() == 8 && all[2][..7].eq_ignore_ascii_case(b"HTTP/1.")).then_some(all)
}

fn field(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let colon = line.iter().position(|&byte| byte == b':')?;
    Some((&line[..colon], line[colon + 1..].trim_ascii()))
}

/// The host of the request. Of two different ones neither counts, for a server may take either.
fn host<'a>(fields: impl Iterator<Item = &'a [u8]>) -> Option<Domain> {
    let mut hosts = fields
        .filter_map(field)
        .filter(|(key, _)| key.eq_ignore_ascii_case(b"host"))
        .map(|(_, value)| value);
    let host = hosts.next()?;
    if hosts.any(|other| other != host) {
        return None;
    }
    let port = host.iter().position(|&byte| byte == b':');
    name(port.map_or(host, |port| &host[..port]))
}

pub(super) fn look(bytes: &[u8], last: bool) -> Look {
    match begins_with_method(bytes) {
        None => return Look::Nothing,
        Some(false) => return Look::More(1),
        Some(true) => {}
    }
    let bytes = &bytes[..bytes.len().min(MAX_HEAD)];
    let (mut lines, whole) = lines(bytes);
    match lines.next() {
        // Servers are lenient about what follows the method.
        Some(_) if whole || last || bytes.len() == MAX_HEAD => Look::found(Kind::Http, host(lines)),
        None if bytes.len() == MAX_HEAD => Look::Nothing,
        _ => Look::More(1),
    }
}

/// What rules may ask of a request: `:method`, `:path`, and its headers by their lower-case names. Of a header that stands
/// there twice the last one counts. No more than 8 KiB are read; empty if it is no request.
pub fn attributes(bytes: &[u8]) -> BTreeMap<String, String> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (mut lines, _) = lines(&bytes[..bytes.len().min(MAX_HEAD)]);
    let Some([method, path, _]) = lines.next().and_then(request_line) else {
        return BTreeMap::new();
    };
    let mut all: BTreeMap<String, String> = lines
        .filter_map(field)
        .map(|(key, value)| (text(key).to_ascii_lowercase(), text(value)))
        .collect();
    all.insert(":method".to_owned(), text(method));
    all.insert(":path".to_owned(), text(path));
    all
}
