//! Where connections of strangers go, as `dest` and `target` say it.

use super::context::{Cx, quoted};
use super::endpoint::{UnixName, host_port};
use super::schema::{Kind, Loses};
use super::table::Decode;
use crate::Address;
use crate::json::{Data, Value};
use crate::problem::At;

/// A version of the PROXY protocol, 0 for none. `None`: it is told that there is no such one.
pub(crate) fn read_proxy_version(key: &str, version: At<u8>, cx: &mut Cx<'_>) -> Option<u8> {
    if version.value <= 2 {
        return Some(version.value);
    }
    let text = format!("there is no version {} of the PROXY protocol", version.value);
    cx.error_in(key, version.at, text, "write 0, 1 or 2");
    None
}

/// Address of a fallback.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum FallbackDial {
    /// A port of this machine, or of `localhost`: 127.0.0.1, then ::1.
    Local(u16),
    /// TCP to a host.
    Tcp(Address, u16),
    /// A unix socket.
    Unix(UnixName),
}

/// The text of a `dest`, which may be a number.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Dest(String);

impl Decode for Dest {
    fn kind() -> Kind {
        Kind::text("port of this machine, `host:port`, path of a unix socket, or `@` and an abstract name")
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        match value.data {
            Data::Number(text) => Some(Dest(text.into())),
            Data::String(_) => String::decode(value, cx).map(Dest),
            _ => {
                cx.wrong_type(&value, "a port or a string");
                None
            }
        }
    }
}

/// Reads the address of a `dest`, which is one of a `what`.
pub(crate) fn read_dest(dest: &At<Dest>, kind: &At<String>, what: &str, cx: &mut Cx<'_>) -> Option<FallbackDial> {
    let text = dest.value.0.trim();
    let unix = UnixName::parse(text);
    let wanted = kind.to_ascii_lowercase();
    let read = match (wanted.as_str(), unix) {
        ("" | "unix", Some(unix)) => unix.map(FallbackDial::Unix),
        ("unix", None) => Err(format!("{} is no name of a unix socket", quoted(text))),
        ("serve", _) => {
            cx.later(Loses::Protection, kind.at, &format!("a {what} that serves by itself"));
            return None;
        }
        ("" | "tcp", _) if text == "serve-ws-none" => {
            cx.later(Loses::Protection, dest.at, &format!("a {what} that serves by itself"));
            return None;
        }
        ("" | "tcp", _) => host_port(text).map(|(host, port)| match host {
            // Xray's compiled form writes a port alone so.
            Some(Address::Domain(name)) if name.as_str().eq_ignore_ascii_case("localhost") => FallbackDial::Local(port),
            Some(host) => FallbackDial::Tcp(host, port),
            None => FallbackDial::Local(port),
        }),
        (other, _) => {
            let text = format!("{} is no type of {what}", quoted(other));
            cx.error(kind.at, text, "write tcp or unix, or leave it out");
            return None;
        }
    };
    let hint = "write a port, host:port, /path/of/a/socket or @abstract";
    read.map_err(|text| cx.error(dest.at, text, hint)).ok()
}
