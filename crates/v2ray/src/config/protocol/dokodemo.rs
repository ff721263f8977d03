//! A tunnel: what comes in goes to one target.

use super::Side;
use crate::Address;
use crate::config::ports::{Networks, Port};
use crate::config::table::object;

object! {
    /// A tunnel: everything goes to one target.
    pub struct DokodemoSettings: "dokodemo-door settings" {
        /// The host. Absent: loopback, of the listener's family.
        address: Option<Address> = "address" | "rewriteAddress";
        /// The port. 0: the port listened on.
        port: Port = "port" | "rewritePort", default "0";
        /// What to accept.
        networks: Networks = "network" | "allowedNetwork", default "\"tcp\"";
        /// The level, which `policy.levels` gives a meaning.
        level: u32 = "userLevel", default "0";
    }
    other {
        LaterError "followRedirect": "transparent proxying (`followRedirect`)";
        LaterError "portMap": "a target for each port (`portMap`)";
        Accepted "timeout": "The key connIdle of the policy counts.";
    }
}

impl Side for DokodemoSettings {
    fn has_secrets(&self) -> bool {
        false
    }
}
