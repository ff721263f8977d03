//! Bytes as they are.

use super::{Carrier, Transport};
use crate::config::context::Cx;
use crate::config::table::{object, words};

words! {
    /// What raw connections begin with.
    pub(crate) enum HeaderName {
        /// Nothing.
        None = "none" | "";
    }
    other {
        LaterError "http": "the header type http (a made-up HTTP request before the first bytes)";
    }
}

object! {
    /// What raw connections begin with.
    pub(crate) struct RawHeader: "rawSettings.header" {
        /// The kind of header.
        kind: HeaderName = "type", default "\"none\"";
    }
    other {
        Accepted "request": "Only the header type http has it.";
        Accepted "response": "Only the header type http has it.";
    }
}

object! {
    /// Bytes as they are.
    pub(crate) struct RawSettings: "streamSettings.rawSettings" {
        /// Require the PROXY protocol, version 1 or 2, at the begin of each connection.
        accept_proxy_protocol: bool = "acceptProxyProtocol", default "false";
        /// What connections begin with.
        header: RawHeader = "header", default "{}";
    }
}

impl Carrier for RawSettings {
    fn transport(self, _: &mut Cx<'_>) -> Option<(Transport, bool)> {
        Some((Transport::Raw, self.accept_proxy_protocol))
    }
}
