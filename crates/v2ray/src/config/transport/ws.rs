//! WebSocket (RFC 6455).

use super::upgrade::upgrade;
use super::{Carrier, Transport};
use crate::config::context::Cx;
use crate::config::scalar::Headers;
use crate::config::table::object;
use crate::problem::At;

object! {
    /// WebSocket.
    pub(crate) struct WsSettings: "streamSettings.wsSettings" {
        /// The path of the request. `?ed=N` at its end sends up to N bytes of early data inside the request.
        path: At<String> = "path", default "\"/\"";
        /// The Host header: sent by clients, and required of them by servers if it is not empty.
        host: String = "host";
        /// More headers of the request.
        headers: Headers = "headers";
        /// Require the PROXY protocol, version 1 or 2, at the begin of each connection.
        accept_proxy_protocol: bool = "acceptProxyProtocol", default "false";
        /// Most bytes of early data in the older style, in the header or path that `earlyDataHeaderName` says.
        max_early_data: u32 = "maxEarlyData", default "0";
        /// The header for early data in the older style. Empty: behind the path.
        early_data_header: String = "earlyDataHeaderName";
    }
    other {
        LaterWarning "heartbeatPeriod": "pings (`heartbeatPeriod`)";
        LaterError "useBrowserForwarding": "connections made by a browser (`useBrowserForwarding`)";
    }
}

impl Carrier for WsSettings {
    fn transport(self, cx: &mut Cx<'_>) -> Option<(Transport, bool)> {
        let older = (self.max_early_data, self.early_data_header);
        let upgrade = upgrade(self.path, self.host, self.headers, older, cx)?;
        Some((Transport::WebSocket(upgrade), self.accept_proxy_protocol))
    }
}
