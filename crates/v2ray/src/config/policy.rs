//! `policy`: timeouts, and which counters are kept.

use std::collections::BTreeMap;
use std::time::Duration;

use super::context::{Cx, quoted};
use super::limits::limited;
use super::schema::Kind;
use super::table::{Decode, object};
use crate::json::Value;

limited! {
    /// Limits and counters of the users of one level. Levels that are not listed have the defaults.
    pub struct LevelPolicy: "policy.levels" {
        /// How long TLS, the transport and the request header may take together.
        handshake: Duration = "handshake", default "60";
        /// How long a connection may carry nothing in either direction.
        conn_idle: Duration = "connIdle", default "300";
        /// How long the client's side may go on without data once the target has ended. 0 closes at once.
        uplink_only: Duration = "uplinkOnly", default "1";
        /// How long the target's side may go on without data once the client has ended. 0 closes at once.
        downlink_only: Duration = "downlinkOnly", default "1";
        /// Count what each user sends.
        stats_user_uplink: bool = "statsUserUplink", default "false";
        /// Count what each user receives.
        stats_user_downlink: bool = "statsUserDownlink", default "false";
        /// List the addresses that each user is connected from. Those of loopback, 127.0.0.1 and ::1, are left out.
        stats_user_online: bool = "statsUserOnline", default "false";
    }
    other {
        LaterWarning "bufferSize": "`bufferSize`; a direction of a connection holds at most some 256 KiB here, 512 KiB while the kernel carries it";
    }
}

impl Default for LevelPolicy {
    fn default() -> Self {
        LevelPolicy {
            handshake: Duration::from_secs(60),
            conn_idle: Duration::from_secs(300),
            uplink_only: Duration::from_secs(1),
            downlink_only: Duration::from_secs(1),
            stats_user_uplink: false,
            stats_user_downlink: false,
            stats_user_online: false,
            max_connections: None,
            max_addresses: None,
            uplink: None,
            downlink: None,
            burst: None,
            quota: None,
            reset_day: None,
        }
    }
}

object! {
    /// Counters of inbounds and outbounds. They need `stats` as well.
    pub struct SystemPolicy: "policy.system" {
        /// Count what arrives at each inbound.
        stats_inbound_uplink: bool = "statsInboundUplink", default "false";
        /// Count what each inbound sends back.
        stats_inbound_downlink: bool = "statsInboundDownlink", default "false";
        /// Count what leaves by each outbound.
        stats_outbound_uplink: bool = "statsOutboundUplink", default "false";
        /// Count what comes back by each outbound.
        stats_outbound_downlink: bool = "statsOutboundDownlink", default "false";
    }
    other {
        LaterWarning "overrideAccessLogDest": "access log lines with the sniffed destination";
    }
}

/// The levels by their number.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Levels(BTreeMap<u32, LevelPolicy>);

impl Decode for Levels {
    fn kind() -> Kind {
        BTreeMap::<String, LevelPolicy>::kind()
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let at = value.at;
        let mut levels = BTreeMap::new();
        for (name, policy) in BTreeMap::<String, LevelPolicy>::decode(value, cx)? {
            match name.trim().parse() {
                Ok(level) => levels.insert(level, policy),
                Err(_) => {
                    cx.error(
                        at,
                        format!("{} is no level", quoted(&name)),
                        "levels are whole numbers in quotes: \"0\"",
                    );
                    return None;
                }
            };
        }
        Some(Levels(levels))
    }
}

object! {
    /// Timeouts, buffers and which counters are kept.
    pub struct Policy: "policy" {
        /// By level, a number in quotes. Users without a level have level 0.
        levels: Levels = "levels", default "{}";
        /// Counters of inbounds and outbounds.
        system: SystemPolicy = "system", default "{}";
    }
}

impl Policy {
    /// The policy of a level.
    pub fn level(&self, level: u32) -> LevelPolicy {
        self.levels.0.get(&level).cloned().unwrap_or_default()
    }

    /// The levels that are listed.
    pub fn listed(&self) -> impl Iterator<Item = u32> {
        self.levels.0.keys().copied()
    }
}
