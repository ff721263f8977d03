//! XHTTP: a byte stream carried by ordinary HTTP requests, which any proxy or CDN between passes on.
//!
//! What comes down is the body of one response. What goes up is the body of the same request (stream-one), of another one
//! (stream-up), or of many numbered ones (packet-up). Requests of one stream know each other by a session id. Here stand
//! requests and answers without a version of HTTP: a method, a target, header lines and what they mean.

pub mod data;
pub mod ids;
pub mod padding;
pub mod place;
pub mod queue;
pub mod request;
pub mod serve;
pub mod settings;
mod span;
pub mod xmux;

pub use request::{Asked, Outgoing, request};
pub use serve::{Ask, Incoming, Post, Refusal, judge};
pub use settings::Settings;

use crate::Protocol;

/// The protocol that errors of this module name.
const PROTOCOL: Protocol = Protocol::Xhttp;
