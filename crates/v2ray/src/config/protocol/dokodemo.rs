//! A tunnel: what comes in goes to one target.

use super::Side;
use crate::Address;
use crate::config::ports::{Networks, Port};
use crate::config::table::object;

object! {
    /// A tunnel: everything goes to one target, or to where it was meant to go.
    pub struct DokodemoSettings: "dokodemo-door settings" {
        /// The host. Absent: loopback, of the listener's family.
        address: Option<Address> = "address" | "rewriteAddress";
        /// The port. 0: the port listened on.
        port: Port = "port" | "rewritePort", default "0";
        /// What to accept.
        networks: Networks = "network" | "allowedNetwork", default "\"tcp\"";
        /// Take what the firewall leads here, to where it was meant to go. `tproxy` in `sockopt` says by which rules it comes, and
        /// `sealway gateway` prints them. `address` and `port` then count for connections of which that is not known.
        follow_redirect: bool = "followRedirect", default "false";
        /// The level, which `policy.levels` gives a meaning.
        level: u32 = "userLevel", default "0";
    }
    other {
        LaterError "portMap": "a target for each port (`portMap`)";
        Accepted "timeout": "The key connIdle of the policy counts.";
    }
}

impl Side for DokodemoSettings {
    fn has_secrets(&self) -> bool {
        false
    }
}
