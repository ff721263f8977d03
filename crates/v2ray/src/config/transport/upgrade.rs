//! A request that a transport begins with, as WebSocket and HTTPUpgrade have it.

use percent_encoding::percent_decode_str;

use crate::config::context::{Cx, quoted};
use crate::config::scalar::{Headers, is_header};
use crate::problem::At;

/// How the first bytes of a client travel inside the request.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum EarlyData {
    /// `?ed=N`. WebSocket: a first payload of at most `limit` bytes goes into `Sec-WebSocket-Protocol` as a whole, a
    /// longer one does not at all. HTTPUpgrade: for writing payload without waiting for the answer, which not every server
    /// can take.
    Whole {
        /// Bytes.
        limit: u32,
    },
    /// `maxEarlyData`: the first `limit` bytes go into this header, or behind the path, and the rest follows in frames.
    Split {
        /// Bytes.
        limit: u32,
        /// The header. `None`: behind the path.
        header: Option<String>,
    },
}

/// A request that WebSocket or HTTPUpgrade begins with.
#[derive(Clone, Debug, PartialEq)]
pub struct Upgrade {
    /// The path. It begins with a slash and has no `ed` in its query.
    pub path: String,
    /// The Host header, if one is set.
    pub host: Option<String>,
    /// More headers, without Host.
    pub headers: Headers,
    /// How the first bytes travel, if early.
    pub early_data: Option<EarlyData>,
}

/// Most early data either side takes, bytes.
const MAX_EARLY_DATA: u32 = 8192;

/// The request that the keys of a transport ask for. `older` is early data in the older style.
pub(crate) fn upgrade(
    path: At<String>,
    mut host: String,
    mut headers: Headers,
    older: (u32, String),
    cx: &mut Cx<'_>,
) -> Option<Upgrade> {
    let (text, ed) = split_early_data(&path);
    let wrong = text.chars().find(|c| c.is_control() || *c == ' ' || *c == '#');
    if let Some(c) = wrong {
        let text = format!("{} holds {c:?}, which no path may", quoted(&path));
        cx.error_in("path", path.at, text, "write it percent-encoded");
        return None;
    }
    // An old place of the host.
    if let Some(name) = headers.keys().find(|name| name.eq_ignore_ascii_case("host")).cloned() {
        let value = headers.remove(&name).unwrap_or_default();
        if host.is_empty() {
            host = value;
        }
    }
    for (name, value) in &headers {
        if !is_header(name, value) {
            let text = format!("{} is no header a request could have", quoted(name));
            cx.error_in("headers", path.at, text, "");
            return None;
        }
    }
    if host.chars().any(|c| c.is_control() || c == ' ') {
        let text = format!("{} is no Host header", quoted(&host));
        cx.error_in("host", path.at, text, "");
        return None;
    }
    let (limit, header) = older;
    let early_data = match (ed, limit) {
        (0, 0) => None,
        (0, limit) => Some(EarlyData::Split {
            limit,
            header: (!header.is_empty()).then_some(header),
        }),
        (limit, _) => Some(EarlyData::Whole { limit }),
    };
    if ed.max(limit) > MAX_EARLY_DATA {
        let text = format!(
            "at most {MAX_EARLY_DATA} bytes of early data fit into a request, not {}",
            ed.max(limit)
        );
        let key = if ed > 0 { "path" } else { "maxEarlyData" };
        cx.error_in(key, path.at, text, "2560 is what other programs recommend");
        return None;
    }
    let path = if text.starts_with('/') {
        text
    } else {
        format!("/{text}")
    };
    Some(Upgrade {
        path,
        host: (!host.is_empty()).then_some(host),
        headers,
        early_data,
    })
}

/// Takes `ed=N` out of the query of a path.
fn split_early_data(path: &str) -> (String, u32) {
    let Some((before, query)) = path.split_once('?') else {
        return (path.to_owned(), 0);
    };
    let mut ed = 0;
    let mut rest: Vec<&str> = Vec::new();
    for pair in query.split('&') {
        match pair
            .strip_prefix("ed=")
            .map(|n| percent_decode_str(n).decode_utf8_lossy().parse())
        {
            Some(Ok(n)) => ed = n,
            _ => rest.push(pair),
        }
    }
    match rest.join("&") {
        rest if rest.is_empty() && ed > 0 => (before.to_owned(), ed),
        _ if ed == 0 => (path.to_owned(), 0),
        rest => (format!("{before}?{rest}"), ed),
    }
}
