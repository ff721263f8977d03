//! `downloadSettings`: where a client asks for what comes down.

use super::Stream;
use crate::Address;
use crate::config::context::Cx;
use crate::config::table::Decode;
use crate::config::transport::Transport;
use crate::json::{Data, Member, Value};

/// Where a client asks for what comes down.
#[derive(Clone, Debug, PartialEq)]
pub struct Download {
    /// The server.
    pub address: Address,
    /// Its port.
    pub port: u16,
    /// What carries the requests.
    pub stream: Stream,
}

impl Download {
    /// Reads `downloadSettings`.
    pub(super) fn read(mut value: Value, cx: &mut Cx<'_>) -> Option<Box<Download>> {
        let at = value.at;
        let Data::Object(members) = &mut value.data else {
            cx.wrong_type(&value, "an object");
            return None;
        };
        let mut take = |name: &str| {
            let found = members
                .iter()
                .rposition(|member| member.key.eq_ignore_ascii_case(name))?;
            Some(members.remove(found)).map(|Member { value, .. }| value)
        };
        let (address, port) = (take("address"), take("port"));
        let missing = |name: &str, cx: &mut Cx<'_>| cx.error(at, format!("`{name}` is missing"), "");
        let address = match address {
            Some(value) => cx.within("address", |cx| Address::decode(value, cx)),
            None => {
                missing("address", cx);
                None
            }
        };
        let port = match port {
            Some(value) => cx.within("port", |cx| u16::decode(value, cx)),
            None => {
                missing("port", cx);
                None
            }
        };
        // Whoever asks is a client.
        let listens = std::mem::take(&mut cx.listens);
        let stream = Stream::decode(value, cx);
        cx.listens = listens;
        let stream = stream?;
        match &stream.transport {
            Transport::Xhttp(_) if stream.download.is_some() => {
                cx.error(
                    at,
                    "`downloadSettings` cannot hold others of their own",
                    "take the inner ones out",
                );
                return None;
            }
            Transport::Xhttp(_) => {}
            _ => {
                cx.error(
                    at,
                    "what comes down is carried by xhttp as well",
                    "write xhttp as its `network`",
                );
                return None;
            }
        }
        Some(Box::new(Download {
            address: address?,
            port: port?,
            stream,
        }))
    }
}
