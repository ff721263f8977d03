//! What clients of the API may send, for the fuzz targets and for the test that replays their corpora. Not part of the public
//! interface.

use prost::Message;

use crate::compiled::{self, inbound, new_user, outbound, rules, write};
use crate::describe::{check, to_json};
use crate::proto::{InboundHandlerConfig, OutboundHandlerConfig, TypedMessage, User};

#[cfg(test)]
mod corpora;

/// An entry: its name, which is also that of its fuzz target and corpus, and the function.
pub type Entry = (&'static str, fn(&[u8]));

/// All entries.
pub const ENTRIES: &[Entry] = &[("api_describe", describe), ("api_compiled", compiled)];

/// Runs the entry of this name.
///
/// # Panics
/// If there is none, or if the entry finds a fault.
pub fn run(name: &str, data: &[u8]) {
    match ENTRIES.iter().find(|(entry, _)| *entry == name) {
        Some((_, entry)) => entry(data),
        None => panic!("there is no fuzz entry {name}"),
    }
}

const INBOUND: &str = "xray.core.InboundHandlerConfig";
const OUTBOUND: &str = "xray.core.OutboundHandlerConfig";

/// Looks at a message by its definition. The first byte says which it is.
fn describe(data: &[u8]) {
    let Some((&kind, bytes)) = data.split_first() else {
        return;
    };
    let kind = match kind % 6 {
        0 => "xray.app.proxyman.command.AlterInboundRequest",
        1 => INBOUND,
        2 => OUTBOUND,
        3 => "xray.app.router.Config",
        4 => "xray.app.router.command.RoutingContext",
        _ => "xray.common.serial.TypedMessage",
    };
    let _ = check(kind, bytes);
    if let Ok(shown) = to_json(kind, bytes) {
        assert!(shown.is_object());
    }
}

/// Reads a compiled message as what the first byte says, and writes again what it can.
fn compiled(data: &[u8]) {
    let Some((&kind, bytes)) = data.split_first() else {
        return;
    };
    match kind % 4 {
        0 => {
            let Ok(Ok(read)) = InboundHandlerConfig::decode(bytes).map(|given| inbound(&given)) else {
                return;
            };
            assert!(read.listen.len() <= compiled::MAX_PORTS);
            for secrets in [false, true] {
                written(INBOUND, &write::inbound(&read, secrets));
            }
        }
        1 => {
            let Ok(Ok(read)) = OutboundHandlerConfig::decode(bytes).map(|given| outbound(&given)) else {
                return;
            };
            for secrets in [false, true] {
                written(OUTBOUND, &write::outbound(&read, secrets));
            }
        }
        2 => {
            let given = TypedMessage {
                r#type: "xray.app.router.Config".to_owned(),
                value: bytes.to_vec(),
            };
            let _ = rules(&given);
        }
        _ => {
            let _ = User::decode(bytes).map(new_user);
        }
    }
}

/// What we say ourselves can be shown. The one type of ours without a definition is that of `dns`.
fn written(kind: &str, message: &impl Message) {
    let bytes = message.encode_to_vec();
    if let Err(what) = check(kind, &bytes) {
        assert_eq!(what, "the type xray.proxy.dns.Config");
    }
    assert!(to_json(kind, &bytes).is_ok());
}
