//! Answers questions of DNS that are sent to it, whatever their target.

use super::Side;
use super::server::check_level;
use crate::config::context::Cx;
use crate::config::net::DomainMatches;
use crate::config::ports::{Port, Ports};
use crate::config::schema::Loses;
use crate::config::stream::Stream;
use crate::config::table::{object, words};
use crate::problem::{At, Position};
use crate::{Address, Network};

words! {
    /// What becomes of questions that are not about addresses.
    pub enum NonIpQuery {
        /// They are refused.
        Reject = "reject";
        /// They are left without an answer.
        Drop = "drop";
        /// They go to their target.
        Skip = "skip";
    }
}

words! {
    /// What becomes of a question.
    pub enum DnsAction {
        /// It goes to its target.
        Direct = "direct";
        /// It is left without an answer.
        Drop = "drop";
        /// It is answered with a response code and nothing else.
        Return = "return";
        /// The object `dns` answers it. Only questions about addresses (A, AAAA) can be.
        Hijack = "hijack";
    }
}

words! {
    for Network {
        Tcp = "tcp";
        Udp = "udp";
    }
}

object! {
    /// A rule about questions. The first that fits decides. All conditions must hold.
    pub struct DnsRule: "dns settings.rules[]" {
        /// What becomes of the question.
        action: DnsAction = "action", required;
        /// Types of questions, as numbers: 1 is A, 28 is AAAA, 65 is HTTPS. Absent: all.
        types: Option<Ports> = "qType";
        /// Names. Empty: all.
        domains: DomainMatches = "domain" | "domains";
        /// The response code of `return`.
        code: u16 = "rCode", default "0";
    }
}

object! {
    /// Answers questions of DNS that are sent to it, whatever their target: those about addresses by the object `dns`.
    pub struct DnsSettings: "dns settings" {
        /// How questions that go on are sent. Absent: as they came.
        network: Option<Network> = "rewriteNetwork" | "network";
        /// Where they are sent. Absent: to their target.
        address: Option<Address> = "rewriteAddress" | "address";
        /// The port they are sent to. 0: that of their target.
        port: Port = "rewritePort" | "port", default "0";
        /// The level. The limits of the inbound's user hold.
        level: At<u32> = "userLevel", default "0";
        /// What becomes of questions that are not about addresses. Absent, and without rules: they get an empty answer.
        non_ip_query: Option<NonIpQuery> = "nonIPQuery";
        /// Types of questions that are refused, or dropped if `nonIPQuery` says so.
        block_types: Vec<u16> = "blockTypes";
        /// Rules about questions, in place of the two keys above.
        rules: At<Vec<DnsRule>> = "rules", default "[]";
    }
}

impl Side for DnsSettings {
    fn checked(self, _: &str, cx: &mut Cx<'_>) -> Option<Self> {
        if !self.rules.value.is_empty() && (self.non_ip_query.is_some() || !self.block_types.is_empty()) {
            let text = "`rules` cannot stand beside `nonIPQuery` and `blockTypes`";
            cx.error_in("rules", self.rules.at, text, "write all of it as rules");
            return None;
        }
        if self.rules.value.iter().any(|rule| rule.code >= 4096) {
            let text = "a response code of DNS has 12 bits";
            cx.error_in(
                "rules",
                self.rules.at,
                text,
                "3 is for a name that does not exist, 5 for a refusal",
            );
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
            let what = "TLS and transports on a dns outbound; questions go on as they are";
            cx.within("streamSettings", |cx| cx.later(Loses::Protection, stream.at, what));
        }
    }
}
