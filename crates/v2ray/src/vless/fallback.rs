//! Fallbacks: who answers a connection that is not a user's.
//!
//! Entries are keyed by server name, ALPN protocol and HTTP path, any of which may be empty for "any". The order of the
//! entries does not matter, except that the last of several with the same keys counts. Missing entries are inherited, in
//! this order:
//!
//! 1. each non-empty name gets a node for every ALPN that the empty name has;
//! 2. within every name, each non-empty ALPN takes the paths it lacks from that name's own empty ALPN;
//! 3. each non-empty name takes, ALPN by ALPN, the paths it lacks from the empty name.
//!
//! So a name's own empty ALPN wins over the same ALPN of the empty name.

use std::collections::BTreeMap;

/// One fallback: its keys and where it leads. An empty key means any.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Fallback<T> {
    /// Server name (SNI) or a part of one. Compared in lower case.
    pub name: String,
    /// ALPN protocol. Compared in lower case.
    pub alpn: String,
    /// HTTP path, compared exactly; starts with `/`.
    pub path: String,
    /// Where it leads.
    pub target: T,
}

/// All fallbacks of an inbound, ready to choose from.
#[derive(Clone, Debug)]
pub struct Fallbacks<T> {
    names: BTreeMap<String, Alpns<T>>,
}

type Paths<T> = BTreeMap<String, T>;
type Alpns<T> = BTreeMap<String, Paths<T>>;

/// Why no fallback fits.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum NoFallback {
    /// No entry for the server name and none for any name.
    Name,
    /// The name is known, but neither the ALPN protocol nor any.
    Alpn,
    /// Name and ALPN protocol are known, but neither the path nor any.
    Path,
}

/// What the first bytes say about the HTTP path.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Look<'a> {
    /// The path, without query.
    Path(&'a [u8]),
    /// There is none to be had.
    None,
    /// They are the beginning of an HTTP request line and the path is not complete.
    Unfinished,
}

/// First and last offset at which the path may begin: after a method of three to seven letters and a space.
const PATH_STARTS: std::ops::RangeInclusive<usize> = 4..=8;
/// The path must have ended before this offset.
const PATH_END: usize = 64;

impl<T: Clone> Fallbacks<T> {
    /// Builds the tree and lets it inherit.
    pub fn new(entries: impl IntoIterator<Item = Fallback<T>>) -> Self {
        let mut names: BTreeMap<String, Alpns<T>> = BTreeMap::new();
        for entry in entries {
            names
                .entry(entry.name.to_lowercase())
                .or_default()
                .entry(entry.alpn.to_lowercase())
                .or_default()
                .insert(entry.path, entry.target);
        }
        if let Some(any) = names.get("") {
            let alpns: Vec<String> = any.keys().cloned().collect();
            for alpn in alpns {
                for node in names.values_mut() {
                    node.entry(alpn.clone()).or_default();
                }
            }
        }
        for node in names.values_mut() {
            if let Some(any) = node.get("").cloned() {
                for paths in node.values_mut() {
                    inherit(paths, &any);
                }
            }
        }
        if let Some(default) = names.get("").cloned() {
            for node in names.values_mut() {
                for (alpn, paths) in node.iter_mut() {
                    if let Some(from) = default.get(alpn) {
                        inherit(paths, from);
                    }
                }
            }
        }
        Fallbacks { names }
    }
}

fn inherit<T: Clone>(paths: &mut Paths<T>, from: &Paths<T>) {
    for (path, target) in from {
        if !paths.contains_key(path) {
            paths.insert(path.clone(), target.clone());
        }
    }
}

impl<T> Fallbacks<T> {
    /// Whether there are none, so that strangers are simply closed.
    pub fn is_empty(&self) -> bool {
        self.names.is_empty()
    }

    /// Chooses the target for a connection.
    ///
    /// `name` is the server name the TLS client asked for and `alpn` the protocol agreed on, both empty without TLS;
    /// `first` is what the first read gave.
    ///
    /// # Errors
    /// [`NoFallback`] says which key found nothing; the connection is then closed.
    pub fn choose(&self, name: &str, alpn: &str, first: &[u8]) -> Result<&T, NoFallback> {
        let paths = self.paths(name, alpn)?;
        let path = match path_matters(paths).then(|| look(first)) {
            Some(Look::Path(path)) => std::str::from_utf8(path).unwrap_or(""),
            _ => "",
        };
        paths.get(path).or_else(|| paths.get("")).ok_or(NoFallback::Path)
    }

    /// Whether reading on could change the choice: the path matters, and the bytes so far are the beginning of an HTTP
    /// request line that has not shown its path yet. A web server would wait here too.
    pub fn wants_more(&self, name: &str, alpn: &str, first: &[u8]) -> bool {
        self.paths(name, alpn)
            .is_ok_and(|paths| path_matters(paths) && look(first) == Look::Unfinished)
    }

    fn paths(&self, name: &str, alpn: &str) -> Result<&Paths<T>, NoFallback> {
        let name = name.to_lowercase();
        let alpns = match self.names.get(&name) {
            Some(alpns) => alpns,
            None => self
                .best_part(&name)
                .or_else(|| self.names.get(""))
                .ok_or(NoFallback::Name)?,
        };
        alpns
            .get(&alpn.to_lowercase())
            .or_else(|| alpns.get(""))
            .ok_or(NoFallback::Alpn)
    }

    /// The longest configured name that stands somewhere in `name`; of equally long ones the first in byte order.
    fn best_part(&self, name: &str) -> Option<&Alpns<T>> {
        let mut best: Option<(&String, &Alpns<T>)> = None;
        for (key, alpns) in &self.names {
            if !key.is_empty() && name.contains(key.as_str()) && best.is_none_or(|(b, _)| key.len() > b.len()) {
                best = Some((key, alpns));
            }
        }
        best.map(|(_, alpns)| alpns)
    }
}

fn path_matters<T>(paths: &Paths<T>) -> bool {
    paths.len() > 1 || !paths.contains_key("")
}

/// Looks for the path of an HTTP/1 request line. The preface of HTTP/2 (`PRI * …`) has none.
fn look(first: &[u8]) -> Look<'_> {
    let found = scan(first);
    if first.len() < super::first::MIN_FIRST && matches!(found, Look::Path(_)) {
        // No HTTP request ends this early, so the rest is on its way.
        return Look::Unfinished;
    }
    found
}

fn scan(first: &[u8]) -> Look<'_> {
    let method = first.iter().take_while(|b| b.is_ascii_uppercase()).count();
    if method == first.len() {
        return if method < *PATH_STARTS.end() {
            Look::Unfinished
        } else {
            Look::None
        };
    }
    let start = method + 1;
    if first[method] != b' ' || !PATH_STARTS.contains(&start) {
        return scan_anywhere(first);
    }
    match first.get(start) {
        None => Look::Unfinished,
        Some(b'/') => ended(first, start),
        Some(_) => scan_anywhere(first),
    }
}

/// The rule for bytes that are no plain request line: a slash after a space within the first bytes still begins a path.
fn scan_anywhere(first: &[u8]) -> Look<'_> {
    if first.get(4) == Some(&b'*') {
        return Look::None;
    }
    for start in PATH_STARTS {
        if first.get(start) == Some(&b'/') && first[start - 1] == b' ' {
            return match ended(first, start) {
                Look::Unfinished => Look::None,
                look => look,
            };
        }
    }
    Look::None
}

fn ended(first: &[u8], start: usize) -> Look<'_> {
    for (at, byte) in first.iter().enumerate().take(PATH_END).skip(start + 1) {
        match byte {
            b'?' | b' ' => return Look::Path(&first[start..at]),
            b'\r' | b'\n' => return Look::None,
            _ => {}
        }
    }
    if first.len() < PATH_END {
        Look::Unfinished
    } else {
        Look::None
    }
}

#[cfg(test)]
mod tests;
