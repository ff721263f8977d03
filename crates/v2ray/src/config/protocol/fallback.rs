//! `settings.fallbacks`: who answers strangers.

use std::collections::HashMap;

use crate::config::context::{Cx, quoted};
use crate::config::dest::{Dest, FallbackDial, read_dest, read_proxy_version};
use crate::config::table::{FromKeys, object};
use crate::problem::{At, Position};
use crate::vless::fallback::Fallback;

/// Where strangers are sent.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct FallbackTarget {
    /// The address to dial.
    pub to: FallbackDial,
    /// Version of the PROXY protocol to announce the client with: 1 or 2. 0: none.
    pub xver: u8,
}

object! {
    /// Where to send a connection that is not a user's. Empty keys fit any connection.
    pub(crate) struct FallbackSettings: "fallbacks[]" {
        /// The server name (SNI), or a part of it.
        name: String = "name";
        /// The agreed ALPN protocol.
        alpn: String = "alpn";
        /// The path of the HTTP request.
        path: At<String> = "path", default "\"\"";
        /// What kind of address `dest` is: `tcp` or `unix`. Empty: as it looks.
        kind: At<String> = "type", default "\"\"";
        /// Where to send it.
        dest: At<Dest> = "dest", required;
        /// The version of the PROXY protocol to announce the client with. 0: none.
        xver: At<u8> = "xver", default "0";
    }
}

/// A fallback as it is read.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ReadFallback(pub(crate) Fallback<FallbackTarget>);

impl FromKeys for ReadFallback {
    type Keys = FallbackSettings;

    fn from_keys(s: FallbackSettings, _: Position, cx: &mut Cx<'_>) -> Option<Self> {
        let to = cx.within("dest", |cx| read_dest(&s.dest, &s.kind, "fallback", cx));
        let path_fits = s.path.is_empty() || s.path.starts_with('/');
        if !path_fits {
            let text = format!("{} does not begin with a slash", quoted(&s.path));
            cx.error_in("path", s.path.at, text, "");
        }
        let xver = read_proxy_version("xver", s.xver, cx);
        let target = FallbackTarget { to: to?, xver: xver? };
        path_fits.then(|| {
            ReadFallback(Fallback {
                name: s.name.to_lowercase(),
                alpn: s.alpn.to_lowercase(),
                path: s.path.value,
                target,
            })
        })
    }
}

/// What is odd about a list of fallbacks.
pub(crate) fn check(list: &[At<ReadFallback>], cx: &mut Cx<'_>) {
    let mut last: HashMap<(&str, &str, &str), usize> = HashMap::new();
    for (i, one) in list.iter().enumerate() {
        let Fallback { name, alpn, path, .. } = &one.value.0;
        if let Some(earlier) = last.insert((name, alpn, path), i) {
            let text = "a later fallback has the same name, alpn and path, and counts instead";
            cx.at_index(earlier, |cx| cx.warn(list[earlier].at, text, "remove one of them"));
        }
    }
    let default = |f: &ReadFallback| f.0.name.is_empty() && f.0.alpn.is_empty() && f.0.path.is_empty();
    if let Some(first) = list.first().filter(|_| !list.iter().any(|f| default(&f.value))) {
        let text =
            "no fallback fits every connection; those that none fits are closed, which shows that this is a proxy";
        cx.warn(first.at, text, "add one with nothing but a `dest`");
    }
}
