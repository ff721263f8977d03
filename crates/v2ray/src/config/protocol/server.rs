//! The server that an outbound goes through, and who we are there.

use crate::Address;
use crate::config::context::Cx;
use crate::config::net::is_private;
use crate::config::schema::{Loses, Object};
use crate::config::stream::Stream;
use crate::json::{Data, Member, Value};
use crate::problem::{At, Position};

/// Declares a list of servers. The lists differ in their users only.
macro_rules! servers {
    ($Name:ident, $title:literal, $User:ty) => {
        object! {
            /// A server.
            pub(crate) struct $Name: $title {
                /// Its address.
                address: $crate::Address = "address", required;
                /// Its port.
                port: $crate::config::ports::Port = "port", required;
                /// Who we are there: one user.
                users: Vec<$User> = "users";
            }
        }

        impl From<$Name> for ($crate::config::protocol::server::Server, Vec<$User>) {
            fn from(from: $Name) -> Self {
                let server = $crate::config::protocol::server::Server {
                    address: from.address,
                    port: from.port.0,
                };
                (server, from.users)
            }
        }
    };
}
pub(crate) use servers;

/// A server to go through.
#[derive(Clone, Debug, PartialEq)]
pub struct Server {
    /// Its address.
    pub address: Address,
    /// Its port.
    pub port: u16,
}

/// For [`nest`]: a server whose own keys say who we are there.
pub(crate) const NO_USER: &Object = &Object {
    title: "",
    about: &[],
    keys: &[],
    others: &[],
};

/// Rewrites settings in which server and user stand flat into a `list` of one server with one user. `beside` are keys that
/// stay where they are.
pub(crate) fn nest(settings: Value, list: &str, user: &Object, beside: &[&str]) -> Value {
    let at = settings.at;
    let Data::Object(members) = settings.data else {
        return settings;
    };
    let is = |name: &str, keys: &[&str]| keys.iter().any(|key| key.eq_ignore_ascii_case(name));
    let nested = members.iter().any(|m| is(&m.key, &[list]));
    let is_flat = |m: &Member| is(&m.key, &["address", "port"]) || user.knows(&m.key);
    if nested || !members.iter().any(is_flat) {
        return Value {
            at,
            data: Data::Object(members),
        };
    }
    let (outside, members): (Vec<_>, Vec<_>) = members.into_iter().partition(|m| is(&m.key, beside));
    let (user, mut server): (Vec<_>, Vec<_>) = members.into_iter().partition(|m| user.knows(&m.key));
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
pub(crate) fn one<T>(mut list: Vec<T>, what: &str, at: Position, cx: &mut Cx<'_>) -> Option<T> {
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

/// The one server of a list, and the one user there. A user who is not `needed` may be missing.
pub(crate) fn one_user<S: Into<(Server, Vec<U>)>, U>(
    servers: Vec<S>,
    needed: bool,
    at: Position,
    cx: &mut Cx<'_>,
) -> Option<(Server, Option<U>)> {
    let (server, users) = one(servers, "server", at, cx)?.into();
    let user = match users.is_empty() && !needed {
        true => None,
        false => Some(one(users, "user", at, cx)?),
    };
    Some((server, user))
}

/// Tells of a server far away that is spoken to in the clear. `secret` is what of the user goes there.
pub(crate) fn check_plain(
    protocol: &str,
    secret: &str,
    server: &Server,
    stream: &Stream,
    at: Position,
    cx: &mut Cx<'_>,
) {
    let address = &server.address;
    let stays_near =
        address.ip().is_some_and(is_private) || address.domain().is_some_and(|name| name.as_str() == "localhost");
    if !stream.is_sealed() && !stays_near {
        let text = format!(
            "{protocol} does not encrypt, and there is no TLS: everything, {secret} included, can be read on the way"
        );
        let hint = "write \"security\": \"tls\" under `streamSettings` on both ends";
        cx.warn(at, text, hint);
    }
}

/// Tells of limits that are asked for by an outbound's user.
pub(crate) fn check_level(key: &str, level: At<u32>, cx: &mut Cx<'_>) {
    if level.value != 0 {
        let what = "limits of an outbound's own; those of the inbound's user hold";
        cx.within(key, |cx| cx.later(Loses::Ease, level.at, what));
    }
}
