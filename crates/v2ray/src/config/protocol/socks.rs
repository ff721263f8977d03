//! SOCKS.

use std::net::IpAddr;

use super::user::Account;
use super::{Open, Side};
use crate::config::context::Cx;
use crate::config::table::{object, words};
use crate::problem::At;

words! {
    /// Who may use a SOCKS inbound.
    pub enum SocksAuth {
        /// Anyone.
        NoAuth = "noauth" | "";
        /// Those with an account.
        Password = "password";
    }
}

object! {
    /// SOCKS 4, 4a and 5.
    pub struct SocksSettings: "socks settings" {
        /// Who may use it.
        auth: At<SocksAuth> = "auth", default "\"noauth\"";
        /// Accounts, for `password`.
        accounts: Vec<Account> = "accounts" | "users";
        /// Allow datagrams.
        udp: bool = "udp", default "false";
        /// The address to send datagrams to, as clients are told. Absent: that of their TCP connection.
        udp_address: Option<IpAddr> = "ip";
        /// The level, which `policy.levels` gives a meaning.
        level: u32 = "userLevel", default "0";
    }
    other {
        Accepted "timeout": "The key connIdle of the policy counts.";
    }
}

impl Side for SocksSettings {
    fn checked(mut self, _: &str, cx: &mut Cx<'_>) -> Option<Self> {
        match self.auth.value {
            SocksAuth::Password if self.accounts.is_empty() => {
                let text = "nobody could use it: `auth` is password and there are no accounts";
                cx.error(self.auth.at, text, "list who may use it under `accounts`");
                return None;
            }
            SocksAuth::NoAuth if !self.accounts.is_empty() => {
                let text = "there are accounts, but `auth` is noauth: anyone may use it";
                cx.warn(self.auth.at, text, "write \"auth\": \"password\"");
                self.accounts.clear();
            }
            _ => {}
        }
        Some(self)
    }

    fn has_secrets(&self) -> bool {
        !self.accounts.is_empty()
    }

    fn open(&self) -> Option<Open> {
        (self.auth.value == SocksAuth::NoAuth).then_some(Open {
            key: "auth",
            at: Some(self.auth.at),
            hint: "write \"listen\": \"127.0.0.1\", or \"auth\": \"password\" and `accounts`",
        })
    }
}
