//! Straight to the target.

use super::Side;
use super::server::check_level;
use crate::Address;
use crate::config::context::Cx;
use crate::config::endpoint::optional_host_port;
use crate::config::net::IpMatches;
use crate::config::ports::{Networks, Ports};
use crate::config::scalar::texts;
use crate::config::schema::Loses;
use crate::config::sockopt::DomainStrategy;
use crate::config::stream::Stream;
use crate::config::table::{object, words};
use crate::problem::{At, Position};

texts! {
    Redirect = "`host:port`, `host:` or `:port`", |text| {
        let (address, port) = optional_host_port(text)?;
        Ok(Redirect { address, port })
    }, "write host:port, :port to keep the host, or host: to keep the port";
}

/// Where connections go in place of their target.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct Redirect {
    /// The host. `None`: the target's.
    pub address: Option<Address>,
    /// The port. `None`: the target's.
    pub port: Option<u16>,
}

words! {
    /// What a final rule does.
    pub enum FinalAction {
        /// Connect.
        Allow = "allow";
        /// Do not.
        Block = "block";
    }
}

object! {
    /// A rule on the address that is dialled. The first that fits decides. All conditions must hold.
    pub struct FinalRule: "freedom settings.finalRules[]" {
        /// What it does.
        action: FinalAction = "action", required;
        /// Kinds of traffic. Absent: all.
        networks: Option<Networks> = "network";
        /// Ports. Absent: all.
        ports: Option<Ports> = "port";
        /// Addresses. Empty: all.
        ips: IpMatches = "ip";
    }
    other {
        LaterWarning "blockDelay": "`blockDelay`; what is blocked is left waiting for 30 to 90 seconds";
    }
}

object! {
    /// Straight to the target.
    pub struct FreedomSettings: "freedom settings" {
        /// How names become addresses.
        domain_strategy: DomainStrategy = "domainStrategy" | "targetStrategy", default "\"AsIs\"";
        /// Where to go in place of the target.
        redirect: Redirect = "redirect";
        /// The level. The limits of the inbound's user hold.
        level: At<u32> = "userLevel", default "0";
        /// The version of the PROXY protocol to announce the client with. 0: none.
        proxy_protocol: At<u8> = "proxyProtocol", default "0";
        /// Rules on the address that is dialled.
        final_rules: Vec<FinalRule> = "finalRules";
    }
    other {
        LaterError "fragment": "cutting the first packets into pieces (`fragment`)";
        LaterError "noise": "datagrams of noise (`noise`)";
        LaterError "noises": "datagrams of noise (`noises`)";
        LaterError "ipsBlocked": "`ipsBlocked`; write `finalRules`";
        Accepted "timeout": "The key connIdle of the policy counts.";
    }
}

impl Side for FreedomSettings {
    fn checked(self, _: &str, cx: &mut Cx<'_>) -> Option<Self> {
        if self.proxy_protocol.value > 2 {
            let text = format!(
                "there is no version {} of the PROXY protocol",
                self.proxy_protocol.value
            );
            cx.error_in("proxyProtocol", self.proxy_protocol.at, text, "write 0, 1 or 2");
            return None;
        }
        check_level("userLevel", self.level, cx);
        Some(self)
    }

    fn has_secrets(&self) -> bool {
        false
    }

    fn check_stream(&self, stream: &Stream, _: Position, cx: &mut Cx<'_>) {
        if !stream.is_bare() {
            let what = "TLS and transports on a freedom outbound; targets are dialled as they are";
            cx.within("streamSettings", |cx| cx.later(Loses::Protection, stream.at, what));
        }
    }
}
