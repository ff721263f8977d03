//! HTTP as a proxy protocol; and what SOCKS and HTTP outbounds have in common.

use super::server::{Server, check_level, nest, one_user, servers};
use super::user::Account;
use super::{Open, Side};
use crate::config::context::{Cx, quoted};
use crate::config::scalar::{Headers, is_header};
use crate::config::schema::Kind;
use crate::config::table::{Decode, object};
use crate::json::Value;
use crate::problem::At;

object! {
    /// HTTP proxy.
    pub struct HttpSettings: "http settings" {
        /// Who may use it. Empty: anyone.
        accounts: Vec<Account> = "accounts" | "users";
        /// Accept requests without an absolute address too.
        allow_transparent: bool = "allowTransparent", default "false";
        /// The level, which `policy.levels` gives a meaning.
        level: u32 = "userLevel", default "0";
    }
    other {
        Accepted "timeout": "The key connIdle of the policy counts.";
    }
}

impl Side for HttpSettings {
    fn has_secrets(&self) -> bool {
        !self.accounts.is_empty()
    }

    fn open(&self) -> Option<Open> {
        self.accounts.is_empty().then_some(Open {
            key: "accounts",
            at: None,
            hint: "write \"listen\": \"127.0.0.1\", or `accounts`",
        })
    }
}

object! {
    /// Who we are at a SOCKS or HTTP server.
    pub(crate) struct ProxyOutUser: "servers[].users[]" {
        /// The name.
        user: String = "user" | "username", required;
        /// The password.
        pass: String = "pass" | "password", required;
        /// The level. The limits of the inbound's user hold.
        level: At<u32> = "level", default "0";
        /// A name, for the reader.
        email: String = "email";
    }
}

servers!(ProxyServer, "socks and http outbound settings.servers[]", ProxyOutUser);

object! {
    /// A SOCKS or HTTP server. It stands here, or in the keys of a user and a server themselves (`address`, `port`,
    /// `user`, …).
    pub(crate) struct ProxyOutSettings: "socks and http outbound settings" {
        /// The server: a list of one.
        servers: Vec<ProxyServer> = "servers", required;
        /// Headers for the CONNECT request. HTTP only.
        headers: At<Headers> = "headers", default "{}";
    }
}

/// A SOCKS or HTTP server.
#[derive(Clone, Debug, PartialEq)]
pub struct ProxyOutbound {
    /// The server.
    pub server: Server,
    /// Our account there, if we need one.
    pub account: Option<Account>,
    /// Headers for the CONNECT request. HTTP only.
    pub headers: At<Headers>,
}

impl Decode for ProxyOutbound {
    fn kind() -> Kind {
        Kind::Object(ProxyOutSettings::TABLE)
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let at = value.at;
        let s = ProxyOutSettings::decode(nest(value, "servers", ProxyOutUser::TABLE, &["headers"]), cx)?;
        let (server, user) = one_user(s.servers, false, at, cx)?;
        if let Some(user) = &user {
            check_level("level", user.level, cx);
        }
        if let Some((name, _)) = s.headers.iter().find(|(name, value)| !is_header(name, value)) {
            let text = format!("{} is no header a request could have", quoted(name));
            let hint = "names are letters, digits and dashes; values have no line ends";
            cx.error_in("headers", s.headers.at, text, hint);
            return None;
        }
        Some(ProxyOutbound {
            server,
            account: user.map(|user| Account {
                user: user.user,
                pass: user.pass,
            }),
            headers: s.headers,
        })
    }
}

impl Side for ProxyOutbound {
    fn checked(self, protocol: &str, cx: &mut Cx<'_>) -> Option<Self> {
        if !self.headers.is_empty() && protocol != "http" {
            let text = format!("`headers` have no effect on a {protocol} outbound");
            cx.warn_in("headers", self.headers.at, text, "they belong to an http outbound");
        }
        Some(self)
    }

    fn has_secrets(&self) -> bool {
        self.account.is_some()
    }
}
