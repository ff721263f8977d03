//! Trojan.

use std::ops::Deref;

use serde_json::json;
use zeroize::Zeroizing;

use super::Side;
use super::fallback::{self, FallbackTarget, ReadFallback};
use super::server::{NO_USER, Server, check_level, check_plain, nest, one};
use super::user::{Distinct, User};
use crate::Address;
use crate::config::context::Cx;
use crate::config::limits::limited;
use crate::config::ports::Port;
use crate::config::scalar::{Name, Part};
use crate::config::schema::Kind;
use crate::config::stream::Stream;
use crate::config::table::{Decode, FromKeys, object, words};
use crate::json::Value;
use crate::link::{Link, Scheme};
use crate::problem::{At, Position};
use crate::trojan::Key;
use crate::vless::fallback::Fallback;

words! {
    /// Trojan has no flows.
    pub(crate) enum NoFlow {
        /// None.
        None = "" | "none";
    }
    other {
        Gone "xtls-rprx-vision": "Trojan has no flows: write `security` tls, which all of it rests on, or a vless inbound and outbound for a flow";
        Gone "xtls-rprx-vision-udp443": "Trojan has no flows: write `security` tls, which all of it rests on, or a vless inbound and outbound for a flow";
        Gone "xtls-rprx-direct": "Trojan has no flows: write `security` tls, which all of it rests on";
        Gone "xtls-rprx-origin": "Trojan has no flows: write `security` tls, which all of it rests on";
        Gone "xtls-rprx-splice": "Trojan has no flows: write `security` tls, which all of it rests on";
    }
}

limited! {
    /// A user of a Trojan inbound.
    pub(crate) struct TrojanUserSettings: "trojan settings.clients[]" {
        /// The password.
        password: At<Password> = "password", required;
        /// The name in counters, rules and logs.
        email: At<Name> = "email", default "\"\"";
        /// The level, which `policy.levels` gives a meaning.
        level: u32 = "level", default "0";
        /// Nothing: Trojan has no flows.
        flow: NoFlow = "flow", default "\"\"";
    }
}

object! {
    /// Trojan.
    pub(crate) struct TrojanSettings: "trojan settings" {
        /// The users.
        users: Part<Vec<TrojanUserSettings>> = "clients" | "users";
        /// Where everybody else is sent. An empty list closes their connections.
        fallbacks: Part<Vec<At<ReadFallback>>> = "fallbacks";
    }
    other {
        Gone "fallback": "write `fallbacks`, a list of objects";
    }
}

/// What a Trojan inbound knows.
#[derive(Clone, Debug, PartialEq)]
pub struct TrojanInbound {
    /// The users. Passwords and e-mails are unique.
    pub users: Vec<User<Key>>,
    /// Where everybody else is sent. [`Fallbacks::new`](crate::vless::fallback::Fallbacks::new) takes it.
    pub fallbacks: Vec<Fallback<FallbackTarget>>,
}

impl FromKeys for TrojanInbound {
    type Keys = TrojanSettings;

    fn from_keys(s: TrojanSettings, _: Position, cx: &mut Cx<'_>) -> Option<Self> {
        if let Some(fallbacks) = &s.fallbacks.0 {
            cx.within("fallbacks", |cx| fallback::check(fallbacks, cx));
        }
        let list = s.users.0?;
        let users = cx.within("clients", |cx| users(list, cx));
        Some(TrojanInbound {
            users,
            fallbacks: s.fallbacks.0?.into_iter().map(|fallback| fallback.value.0).collect(),
        })
    }
}

fn users(list: Vec<TrojanUserSettings>, cx: &mut Cx<'_>) -> Vec<User<Key>> {
    let mut seen = Distinct::new("password", "give each user a password of their own");
    let one = |(i, user): (usize, TrojanUserSettings)| {
        let (limits, at) = (user.limits(), user.password.at);
        let value = Key::of_password(&user.password.value.0);
        cx.at_index(i, |cx| seen.check((value.as_bytes(), at), &user.email, cx));
        User::new(At { value, at }, (user.email, user.level, limits))
    };
    list.into_iter().enumerate().map(one).collect()
}

/// A password, which is not empty. Wiped when it is dropped.
#[derive(Clone, PartialEq)]
pub struct Password(pub(crate) Zeroizing<String>);

impl Deref for Password {
    type Target = String;

    fn deref(&self) -> &String {
        &self.0
    }
}

/// Does not show it.
impl std::fmt::Debug for Password {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Password(…)")
    }
}

impl Decode for Password {
    fn kind() -> Kind {
        String::kind()
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let at = value.at;
        let password = Zeroizing::new(String::decode(value, cx)?);
        if password.is_empty() {
            let hint = "everyone would know it: write a long random one, the same at both ends";
            cx.error(at, "the password is empty", hint);
        }
        (!password.is_empty()).then_some(Password(password))
    }
}

impl Side for TrojanInbound {
    fn has_secrets(&self) -> bool {
        !self.users.is_empty()
    }
}

object! {
    /// A Trojan server, and who we are there.
    pub(crate) struct TrojanServer: "trojan outbound settings.servers[]" {
        /// Its address.
        address: Address = "address", required;
        /// Its port.
        port: Port = "port", required;
        /// Our password.
        password: Password = "password", required;
        /// The level. The limits of the inbound's user hold.
        level: At<u32> = "level", default "0";
        /// A name, for the reader.
        email: String = "email";
        /// Nothing: Trojan has no flows.
        flow: NoFlow = "flow", default "\"\"";
    }
}

object! {
    /// A Trojan server. It stands here, or in the keys of a server themselves (`address`, `port`, `password`, …).
    pub(crate) struct TrojanOutSettings: "trojan outbound settings" {
        /// The server: a list of one.
        servers: Vec<TrojanServer> = "servers", required;
    }
}

/// A Trojan server.
#[derive(Clone, Debug, PartialEq)]
pub struct TrojanOutbound {
    /// The server.
    pub server: Server,
    /// Our password there. Links hold it as it is.
    pub password: Password,
    /// A name, for the reader.
    pub email: String,
}

impl Decode for TrojanOutbound {
    fn kind() -> Kind {
        Kind::Object(TrojanOutSettings::TABLE)
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let at = value.at;
        let s = TrojanOutSettings::decode(nest(value, "servers", NO_USER, &[]), cx)?;
        let one = one(s.servers, "server", at, cx)?;
        check_level("level", one.level, cx);
        Some(TrojanOutbound {
            server: Server {
                address: one.address,
                port: one.port.0,
            },
            password: one.password,
            email: one.email,
        })
    }
}

impl Side for TrojanOutbound {
    fn has_secrets(&self) -> bool {
        true
    }

    fn check_stream(&self, stream: &Stream, at: Position, cx: &mut Cx<'_>) {
        check_plain("Trojan", "what stands for the password", &self.server, stream, at, cx);
    }

    fn link(&self, _: &mut Vec<&'static str>) -> Option<Link> {
        let mut link = Link::new(
            Scheme::Trojan,
            self.password.as_str().to_owned(),
            self.server.address.clone(),
            self.server.port,
        );
        // Links of Trojan that say nothing mean TLS, so one without it says so.
        link.security = "none".to_owned();
        Some(link)
    }
}

/// The settings of an outbound that a link asks for.
pub(crate) fn of_link(link: &Link) -> serde_json::Value {
    let mut settings = json!({});
    if !link.parameter("flow").is_empty() {
        settings["flow"] = link.parameter("flow").into();
    }
    settings
}
