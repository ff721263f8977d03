//! HTTP/2 as V2Ray carries a stream: one request, whose body goes up and whose answer comes down.
//!
//! A request names one of the agreed hosts, and its path begins with the agreed one. Nothing else of it counts.
//!
//! ```
//! use sealway_v2ray::h2::Settings;
//!
//! let settings = Settings {
//!     hosts: vec!["a.example".into()],
//!     path: "/my way".into(),
//!     ..Settings::default()
//! };
//! assert_eq!(settings.target(), "/my%20way");
//! assert!(settings.is_ours("a.example:443", "/my%20way/on"));
//! assert!(!settings.is_ours("b.example", "/my%20way"));
//! ```

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use crate::http::same_host;

/// Longest path, bytes: escaped, it has room in the head of a request.
pub const MAX_PATH: usize = 2048;

/// The host that a client names where none is set. Some servers take no other one then.
const USUAL_HOST: &str = "www.example.com";

/// What a path is escaped for, as Go's `URL.EscapedPath` does it.
const PATH: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'~')
    .remove(b'$')
    .remove(b'&')
    .remove(b'+')
    .remove(b',')
    .remove(b'/')
    .remove(b':')
    .remove(b';')
    .remove(b'=')
    .remove(b'@');

/// What both ends agree on.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Settings {
    /// A client names one of them, a server takes each. Without any, a server takes all hosts.
    pub hosts: Vec<String>,
    /// The path, without percent-encoding. It begins with a slash.
    pub path: String,
    /// The method of a client. A server takes all methods.
    pub method: String,
    /// Headers of a client's requests, or of a server's answers.
    pub headers: Vec<(String, String)>,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            hosts: Vec::new(),
            path: "/".to_owned(),
            method: "PUT".to_owned(),
            headers: Vec::new(),
        }
    }
}

impl Settings {
    /// What a client names as the host: the one with this number.
    pub fn host(&self, number: usize) -> &str {
        self.hosts.get(number).map_or(USUAL_HOST, String::as_str)
    }

    /// The path as it stands in a request.
    pub fn target(&self) -> String {
        utf8_percent_encode(&self.path, PATH).to_string()
    }

    /// Whether a request is for us. `host` may have a port, `path` is percent-encoded.
    pub fn is_ours(&self, host: &str, path: &str) -> bool {
        let named = self.hosts.is_empty() || self.hosts.iter().any(|own| same_host(host, own));
        named && percent_decode_str(path).take(self.path.len()).eq(self.path.bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(hosts: &[&str], path: &str) -> Settings {
        Settings {
            hosts: hosts.iter().map(|&host| host.to_owned()).collect(),
            path: path.to_owned(),
            ..Settings::default()
        }
    }

    #[test]
    fn requests_are_known_by_host_and_path() {
        let own = settings(&["a.example", "b.example:8443"], "/way");
        for (host, path, wanted) in [
            ("a.example", "/way", true),
            ("A.Example:443", "/way/on", true),
            ("b.example", "/wayward", true),
            ("b.example:1", "/%77ay", true),
            ("a.example", "/wa", false),
            ("a.example", "/Way", false),
            ("a.example", "", false),
            ("a.example", "/wa%zz", false),
            ("c.example", "/way", false),
            ("", "/way", false),
        ] {
            assert_eq!(own.is_ours(host, path), wanted, "{host} {path}");
        }
        let any = settings(&[], "/");
        assert!(any.is_ours("", "/") && any.is_ours("c.example", "/x") && !any.is_ours("c.example", ""));
    }

    #[test]
    fn a_path_is_escaped_as_others_escape_it_and_known_again() {
        for (path, target) in [
            ("/", "/"),
            ("/a/b;c,d:e@f=g&h+i$j-k_l.m~n", "/a/b;c,d:e@f=g&h+i$j-k_l.m~n"),
            ("/a b?ed=2048#%c", "/a%20b%3Fed=2048%23%25c"),
            ("/\u{e4}", "/%C3%A4"),
        ] {
            let own = settings(&[], path);
            assert_eq!(own.target(), target);
            assert!(own.is_ours("", target), "{path}");
        }
    }

    #[test]
    fn a_client_always_has_a_host() {
        assert_eq!(settings(&[], "/").host(0), "www.example.com");
        assert_eq!(settings(&["a", "b"], "/").host(1), "b");
    }
}
