//! `finalmask`: what makes the bytes of a connection look otherwise.

use crate::config::context::{Cx, quoted};
use crate::config::schema::{Kind, Loses};
use crate::config::table::{Decode, object};
use crate::json::{Data, Value};

/// The types that are known, and what to say of each.
const TYPES: [(&str, &str); 13] = [
    ("fragment", "`finalmask` of the type fragment"),
    ("noise", "`finalmask` of the type noise"),
    ("header-custom", "`finalmask` of the type header-custom"),
    ("mkcp-legacy", "`finalmask` of the type mkcp-legacy"),
    ("mkcp-original", "`finalmask` of the type mkcp-original"),
    ("mkcp-aes128gcm", "`finalmask` of the type mkcp-aes128gcm"),
    ("realm", "`finalmask` of the type realm"),
    ("salamander", "`finalmask` of the type salamander"),
    ("sudoku", "`finalmask` of the type sudoku"),
    ("xdns", "`finalmask` of the type xdns"),
    ("xicmp", "`finalmask` of the type xicmp"),
    ("xmc", "`finalmask` of the type xmc"),
    (
        "header-http",
        "`finalmask` of the type header-http; write the `header` of rawSettings",
    ),
];

object! {
    /// What makes the bytes of a connection look otherwise. No type of it is supported yet.
    pub(crate) struct FinalMask: "streamSettings.finalmask" {
        /// For streams: each with its `type`.
        tcp: Vec<Mask> = "tcp";
        /// For datagrams: each with its `type`.
        udp: Vec<Mask> = "udp";
    }
    other {
        LaterError "quicParams": "parameters of QUIC (`finalmask.quicParams`)";
        LaterError "settings": "`finalmask`";
    }
}

/// One of them. None can be read, for none is supported.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mask;

impl Decode for Mask {
    fn kind() -> Kind {
        Kind::text("object with a `type`")
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let at = value.at;
        let Data::Object(members) = value.data else {
            cx.wrong_type(&value, "an object");
            return None;
        };
        let kind = members.into_iter().rfind(|m| m.key.eq_ignore_ascii_case("type"));
        let (text, at) = match kind {
            None => {
                cx.error(at, "`type` is missing", "");
                return None;
            }
            Some(kind) => (String::decode(kind.value, cx)?, kind.at),
        };
        let known = TYPES.iter().find(|(name, _)| text.eq_ignore_ascii_case(name));
        cx.within("type", |cx| match known {
            Some((_, what)) => cx.later(Loses::Protection, at, what),
            None => cx.error(
                at,
                format!("{} is no type of `finalmask` that is known here", quoted(&text)),
                "",
            ),
        });
        None
    }
}
