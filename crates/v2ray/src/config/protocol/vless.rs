//! VLESS.

use serde_json::json;

use super::Side;
use super::fallback::{self, FallbackTarget, ReadFallback};
use super::server::{Server, check_level, check_plain, nest, one_user, servers};
use super::user::{User, distinct};
use crate::UserId;
use crate::config::context::{Cx, quoted};
use crate::config::scalar::{Name, Part};
use crate::config::schema::{Kind, Loses};
use crate::config::stream::Stream;
use crate::config::table::{Decode, object, words};
use crate::json::Value;
use crate::link::{Link, Scheme};
use crate::problem::{At, Position};
use crate::vless::fallback::Fallback;

words! {
    /// What a VLESS user's connections may do besides.
    pub(crate) enum FlowName {
        /// Nothing.
        None = "" | "none";
    }
    other {
        LaterError "xtls-rprx-vision": "the flow xtls-rprx-vision";
        LaterError "xtls-rprx-vision-udp443": "the flow xtls-rprx-vision";
        Gone "xtls-rprx-direct": "it is gone from every program; what seals the connection is `security`: write tls there";
        Gone "xtls-rprx-origin": "it is gone from every program; what seals the connection is `security`: write tls there";
        Gone "xtls-rprx-splice": "it is gone from every program; what seals the connection is `security`: write tls there";
    }
}

object! {
    /// A user of a VLESS inbound.
    pub(crate) struct VlessUserSettings: "vless settings.clients[]" {
        /// The secret id: a UUID, or a name it is made of.
        id: At<UserId> = "id", required;
        /// The name in counters, rules and logs.
        email: At<Name> = "email", default "\"\"";
        /// The level, which `policy.levels` gives a meaning.
        level: u32 = "level", default "0";
        /// The flow. Absent: that of the inbound.
        flow: Option<FlowName> = "flow";
    }
    other {
        Gone "encryption": "remove it: on an inbound the key is `decryption`, beside the users";
        LaterService "reverse": "reverse connections";
        Accepted "testpre": "Only the flow xtls-rprx-vision has it.";
        Accepted "testseed": "Only the flow xtls-rprx-vision has it.";
    }
}

object! {
    /// VLESS.
    pub(crate) struct VlessSettings: "vless settings" {
        /// The users.
        users: Part<Vec<VlessUserSettings>> = "clients" | "users";
        /// The encryption of VLESS itself: `none`. It must be there.
        decryption: Part<Option<At<String>>> = "decryption";
        /// Where everybody else is sent. An empty list closes their connections.
        fallbacks: Part<Vec<At<ReadFallback>>> = "fallbacks";
        /// The flow of users that name none.
        flow: Part<FlowName> = "flow", default "\"\"";
    }
    other {
        Gone "fallback": "write `fallbacks`, a list of objects";
        Accepted "testseed": "Only the flow xtls-rprx-vision has it.";
    }
}

/// What a VLESS inbound knows.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct VlessInbound {
    /// The users. Ids and e-mails are unique.
    pub users: Vec<User>,
    /// Where everybody else is sent. [`Fallbacks::new`](crate::vless::fallback::Fallbacks::new) takes it.
    pub fallbacks: Vec<Fallback<FallbackTarget>>,
}

impl Decode for VlessInbound {
    fn kind() -> Kind {
        Kind::Object(VlessSettings::TABLE)
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let at = value.at;
        let s = VlessSettings::decode(value, cx)?;
        if let Some(decryption) = s.decryption.0 {
            check_encryption("decryption", decryption.as_ref(), at, cx);
        }
        if let Some(fallbacks) = &s.fallbacks.0 {
            cx.within("fallbacks", |cx| fallback::check(fallbacks, cx));
        }
        let users = s.users.0?.into_iter().map(|user| (user.id, user.email, user.level));
        let users = cx.within("clients", |cx| distinct(users, cx));
        s.flow.0?;
        Some(VlessInbound {
            users,
            fallbacks: s.fallbacks.0?.into_iter().map(|fallback| fallback.value.0).collect(),
        })
    }
}

impl Side for VlessInbound {
    fn has_secrets(&self) -> bool {
        !self.users.is_empty()
    }
}

object! {
    /// Who we are at a VLESS server.
    pub(crate) struct VlessOutUser: "vless outbound settings.vnext[].users[]" {
        /// The secret id: a UUID, or a name it is made of.
        id: UserId = "id", required;
        /// The encryption of VLESS itself: `none`. It must be there.
        encryption: Option<At<String>> = "encryption";
        /// The flow.
        flow: FlowName = "flow", default "\"\"";
        /// The level. The limits of the inbound's user hold.
        level: At<u32> = "level", default "0";
        /// A name, for the reader.
        email: String = "email";
    }
    other {
        LaterService "reverse": "reverse connections";
        Accepted "testpre": "Only the flow xtls-rprx-vision has it.";
        Accepted "testseed": "Only the flow xtls-rprx-vision has it.";
        Accepted "seed": "";
    }
}

servers!(VlessServer, "vless outbound settings.vnext[]", VlessOutUser);

object! {
    /// A VLESS server. It stands here, or in the keys of a user and a server themselves (`address`, `port`, `id`, …).
    pub(crate) struct VlessOutSettings: "vless outbound settings" {
        /// The server: a list of one.
        servers: Vec<VlessServer> = "vnext", required;
    }
}

/// A VLESS server.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct VlessOutbound {
    /// The server.
    pub server: Server,
    /// Our id there.
    pub id: UserId,
    /// A name, for the reader.
    pub email: String,
}

impl Decode for VlessOutbound {
    fn kind() -> Kind {
        Kind::Object(VlessOutSettings::TABLE)
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let at = value.at;
        let s = VlessOutSettings::decode(nest(value, "vnext", VlessOutUser::TABLE, &[]), cx)?;
        let (server, user) = one_user(s.servers, true, at, cx)?;
        let user = user?;
        check_level("level", user.level, cx);
        check_encryption("encryption", user.encryption.as_ref(), at, cx);
        Some(VlessOutbound {
            server,
            id: user.id,
            email: user.email,
        })
    }
}

impl Side for VlessOutbound {
    fn has_secrets(&self) -> bool {
        true
    }

    fn check_stream(&self, stream: &Stream, at: Position, cx: &mut Cx<'_>) {
        check_plain("VLESS", "the id", &self.server, stream, at, cx);
    }

    fn link(&self, _: &mut Vec<&'static str>) -> Option<Link> {
        Some(Link::new(
            Scheme::Vless,
            self.id,
            self.server.address.clone(),
            self.server.port,
        ))
    }
}

/// The settings of an outbound that a link asks for.
pub(crate) fn of_link(link: &Link) -> serde_json::Value {
    let mut settings = json!({ "encryption": link.encryption });
    if !link.parameter("flow").is_empty() {
        settings["flow"] = link.parameter("flow").into();
    }
    settings
}

/// Checks the word that stands for VLESS encryption.
pub(crate) fn check_encryption(key: &str, word: Option<&At<String>>, object: Position, cx: &mut Cx<'_>) {
    match word {
        None => cx.error(
            object,
            format!("`{key}` is missing"),
            format!("write \"{key}\": \"none\""),
        ),
        Some(word) if word.eq_ignore_ascii_case("none") => {}
        Some(word) if word.is_empty() => {
            cx.within(key, |cx| {
                cx.error(word.at, format!("`{key}` is empty"), "write \"none\"")
            });
        }
        Some(word) if word.starts_with("mlkem768x25519plus.") => {
            cx.within(key, |cx| {
                cx.later(Loses::Protection, word.at, "VLESS encryption (mlkem768x25519plus)")
            });
        }
        Some(word) => {
            let text = format!("{} is no encryption of VLESS that is known here", quoted(word));
            let hint =
                "check how it is spelt; \"none\" is all that is spoken yet, and hides nothing without TLS around it";
            cx.within(key, |cx| cx.error(word.at, text, hint));
        }
    }
}
