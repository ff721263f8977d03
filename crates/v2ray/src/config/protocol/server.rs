//! The settings of outbounds that go through a server.

use super::super::context::{Cx, quoted};
use super::super::json::{Data, Member, Value};
use super::super::problem::{At, Position};
use super::super::scalar::Port;
use super::super::sockopt::ScalarText;
use super::super::stream::is_header;
use super::super::table::{Decode, object, words};
use super::super::tls::Headers;

use super::super::user::{Account, Experiments, FlowName, check_alter_id, check_encryption};
use super::check_level;
use crate::{Address, UserId};

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

words! {
    /// How a VMess client has its payload sealed.
    pub enum VmessSecurity {
        /// By what this machine's hardware is good at: AES-128-GCM or ChaCha20-Poly1305.
        Auto = "auto" | "";
        /// AES-128-GCM.
        Aes128Gcm = "aes-128-gcm";
        /// ChaCha20-Poly1305.
        Chacha20Poly1305 = "chacha20-poly1305" | "chacha20-ietf-poly1305";
        /// Not at all, in chunks.
        None = "none";
        /// Not at all. Streams have no chunks either.
        Zero = "zero";
    }
    other {
        Gone "aes-128-cfb": "write auto";
        Gone "legacy": "write auto";
    }
}

object! {
    /// Who we are at a VMess server.
    pub(crate) struct VmessOutUser: "vmess outbound settings.vnext[].users[]" {
        /// The secret id: a UUID, or a name it is made of.
        id: UserId = "id", required;
        /// How the payload is sealed.
        security: VmessSecurity = "security", default "\"auto\"";
        /// Obsolete. Only the AEAD header, alterId 0, is spoken.
        alter_id: Option<At<ScalarText>> = "alterId";
        /// The level. The limits of the inbound's user hold.
        level: At<u32> = "level", default "0";
        /// Experiments, as one text.
        experiments: Experiments = "experiments", default "\"\"";
        /// A name, for the reader.
        email: String = "email";
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

/// Declares the lists of servers, which differ in their users only.
macro_rules! server {
    ($Name:ident, $title:literal, $User:ty) => {
        object! {
            /// A server.
            pub(crate) struct $Name: $title {
                /// Its address.
                address: Address = "address", required;
                /// Its port.
                port: Port = "port", required;
                /// Who we are there: one user.
                users: Vec<$User> = "users";
            }
        }
    };
}
server!(VlessServer, "vless outbound settings.vnext[]", VlessOutUser);
server!(VmessServer, "vmess outbound settings.vnext[]", VmessOutUser);
server!(ProxyServer, "socks and http outbound settings.servers[]", ProxyOutUser);

object! {
    /// A VLESS server. It stands here, or in the keys of a user and a server themselves (`address`, `port`, `id`, …).
    pub(crate) struct VlessOutSettings: "vless outbound settings" {
        /// The server: a list of one.
        servers: Vec<VlessServer> = "vnext", required;
    }
}

object! {
    /// A VMess server. It stands here, or in the keys of a user and a server themselves (`address`, `port`, `id`, …).
    pub(crate) struct VmessOutSettings: "vmess outbound settings" {
        /// The server: a list of one.
        servers: Vec<VmessServer> = "vnext", required;
    }
}

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

/// A server to go through.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct Server {
    /// Its address.
    pub address: Address,
    /// Its port.
    pub port: u16,
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

/// A VMess server.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct VmessOutbound {
    /// The server.
    pub server: Server,
    /// Our id there.
    pub id: UserId,
    /// How the payload is sealed.
    pub security: VmessSecurity,
    /// Experiments.
    pub experiments: Experiments,
    /// A name, for the reader.
    pub email: String,
}

/// A SOCKS or HTTP server.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct ProxyOutbound {
    /// The server.
    pub server: Server,
    /// Our account there, if we need one.
    pub account: Option<Account>,
    /// Headers for the CONNECT request. HTTP only.
    pub headers: Headers,
}

/// Rewrites settings in which server and user stand flat into a list of one server with one user.
fn nest(settings: Value, list: &str, user_keys: &[&str], beside: &[&str]) -> Value {
    let at = settings.at;
    let Data::Object(members) = settings.data else {
        return settings;
    };
    let is = |name: &str, keys: &[&str]| keys.iter().any(|key| key.eq_ignore_ascii_case(name));
    let nested = members.iter().any(|m| is(&m.key, &[list]));
    if nested
        || !members
            .iter()
            .any(|m| is(&m.key, &["address", "port"]) || is(&m.key, user_keys))
    {
        return Value {
            at,
            data: Data::Object(members),
        };
    }
    let (outside, members): (Vec<_>, Vec<_>) = members.into_iter().partition(|m| is(&m.key, beside));
    let (user, mut server): (Vec<_>, Vec<_>) = members.into_iter().partition(|m| is(&m.key, user_keys));
    let member = |key: &str, data| Member {
        key: key.into(),
        at,
        value: Value { at, data },
    };
    let object = |members| Value {
        at,
        data: Data::Object(members),
    };
    // A proxy without a name and a password has no user.
    if !user.is_empty() {
        server.push(member("users", Data::Array(vec![object(user)])));
    }
    let mut all = vec![member(list, Data::Array(vec![object(server)]))];
    all.extend(outside);
    object(all)
}

/// The one server of a list.
fn one<T>(mut list: Vec<T>, what: &str, at: Position, cx: &mut Cx<'_>) -> Option<T> {
    match list.len() {
        1 => list.pop(),
        0 => {
            cx.error(at, format!("there is no {what} here"), format!("list one {what}"));
            None
        }
        n => {
            let text = format!("not supported yet: more than one {what} in an outbound (here are {n})");
            cx.error(at, text, "write one outbound for each");
            None
        }
    }
}

const VLESS_USER: [&str; 9] = [
    "id",
    "encryption",
    "flow",
    "level",
    "email",
    "seed",
    "testpre",
    "testseed",
    "reverse",
];
const VMESS_USER: [&str; 6] = ["id", "security", "alterId", "level", "experiments", "email"];
const PROXY_USER: [&str; 6] = ["user", "pass", "username", "password", "level", "email"];

pub(super) fn read_vless(settings: Value, cx: &mut Cx<'_>) -> Option<VlessOutbound> {
    let at = settings.at;
    let s = VlessOutSettings::decode(nest(settings, "vnext", &VLESS_USER, &[]), cx)?;
    let server = one(s.servers, "server", at, cx)?;
    let user = one(server.users, "user", at, cx)?;
    check_level("level", user.level, cx);
    check_encryption("encryption", user.encryption.as_ref(), at, cx);
    Some(VlessOutbound {
        server: Server {
            address: server.address,
            port: server.port.0,
        },
        id: user.id,
        email: user.email,
    })
}

pub(super) fn read_vmess(settings: Value, cx: &mut Cx<'_>) -> Option<VmessOutbound> {
    let at = settings.at;
    let s = VmessOutSettings::decode(nest(settings, "vnext", &VMESS_USER, &[]), cx)?;
    let server = one(s.servers, "server", at, cx)?;
    let user = one(server.users, "user", at, cx)?;
    check_level("level", user.level, cx);
    check_alter_id(user.alter_id.as_ref(), cx);
    Some(VmessOutbound {
        server: Server {
            address: server.address,
            port: server.port.0,
        },
        id: user.id,
        security: user.security,
        experiments: user.experiments,
        email: user.email,
    })
}

pub(super) fn read_proxy(settings: Value, http: bool, cx: &mut Cx<'_>) -> Option<ProxyOutbound> {
    let at = settings.at;
    let s = ProxyOutSettings::decode(nest(settings, "servers", &PROXY_USER, &["headers"]), cx)?;
    let server = one(s.servers, "server", at, cx)?;
    let user = match server.users.is_empty() {
        true => None,
        false => Some(one(server.users, "user", at, cx)?),
    };
    if let Some(user) = &user {
        check_level("level", user.level, cx);
    }
    check_headers(&s.headers, http, cx)?;
    Some(ProxyOutbound {
        server: Server {
            address: server.address,
            port: server.port.0,
        },
        account: user.map(|user| Account {
            user: user.user,
            pass: user.pass,
        }),
        headers: s.headers.value,
    })
}

/// Checks the headers of a CONNECT request.
fn check_headers(headers: &At<Headers>, http: bool, cx: &mut Cx<'_>) -> Option<()> {
    cx.within("headers", |cx| {
        if !headers.is_empty() && !http {
            let text = "`headers` have no effect on a socks outbound";
            cx.warn(headers.at, text, "they belong to an http outbound");
        }
        let wrong = headers.iter().find(|(name, value)| !is_header(name, value));
        let Some((name, _)) = wrong else { return Some(()) };
        let text = format!("{} is no header a request could have", quoted(name));
        cx.error(
            headers.at,
            text,
            "names are letters, digits and dashes; values have no line ends",
        );
        None
    })
}
