//! VLESS, version 0.
//!
//! A request is `00 | id[16] | M | addons[M] | command | [port u16 | type | address]`, a response `00 | M | addons[M]`; what
//! follows either is the payload itself, datagrams ([`packet`]) or the payload in blocks ([`vision`]). There is no encryption,
//! no checksum and no protection against replay: all that is left to the outer layer, TLS as a rule.
//!
//! A server reads once, asks [`first::inspect`] whether a user speaks, and then either decodes a [`Request`] or picks a
//! fallback ([`fallback::Fallbacks`]).

pub mod fallback;
pub mod first;
mod flow;
pub mod packet;
mod request;
mod response;
mod users;
pub mod vision;

pub use flow::Flow;
pub use request::{Command, Request, check_flow};
pub use response::{RESPONSE, decode_response};
pub use users::{Match, Users};

/// The only version there is.
pub const VERSION: u8 = 0;
