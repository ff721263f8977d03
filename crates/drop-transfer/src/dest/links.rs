//! Where symbolic links of a transfer lead.

use sealway_drop::names::RelPath;

/// Whether a link that is at `path` leads to somewhere below the destination, whatever other links say.
///
/// The folder of the link is a real one, so `..` at the front climbs exactly. After a name, which may be a link itself, `..`
/// may lead anywhere; such a target counts as leading out.
pub(super) fn stays_inside(path: &RelPath, target: &[u8]) -> bool {
    lands_in(path, target).is_some()
}

/// The components, from the destination on, of where a link leads.
pub(super) fn lands_in<'a>(path: &'a RelPath, target: &'a [u8]) -> Option<Vec<&'a [u8]>> {
    if target.first() == Some(&b'/') {
        return None;
    }
    let mut depth = path.depth() - 1;
    let mut names = Vec::new();
    for component in target.split(|b| *b == b'/') {
        match component {
            b"" | b"." => {}
            b".." if !names.is_empty() => return None,
            b".." => depth = depth.checked_sub(1)?,
            name => names.push(name),
        }
    }
    // The destination itself is more than what was sent.
    let way: Vec<_> = path.components().take(depth).chain(names).collect();
    (!way.is_empty()).then_some(way)
}
