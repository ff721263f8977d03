//! Shadowsocks.

use serde_json::json;
use zeroize::Zeroizing;

use super::Side;
use super::server::{NO_USER, Server, check_level, nest, one};
use super::trojan::Password;
use super::user::{Distinct, User};
use crate::Address;
use crate::config::context::Cx;
use crate::config::limits::{Limits, limited};
use crate::config::ports::{Networks, Port};
use crate::config::scalar::{Name, Part};
use crate::config::schema::Kind;
use crate::config::table::{Decode, FromKeys, object, words};
use crate::json::Value;
use crate::link::{Link, Scheme};
use crate::problem::{At, Position};
use crate::shadowsocks::{Key, KeyChain, Method};

words! {
    for Method {
        Aes128Gcm = "aes-128-gcm" | "aead_aes_128_gcm";
        Aes256Gcm = "aes-256-gcm" | "aead_aes_256_gcm";
        ChaCha20Poly1305 = "chacha20-ietf-poly1305" | "chacha20-poly1305" | "aead_chacha20_poly1305";
        XChaCha20Poly1305 = "xchacha20-ietf-poly1305" | "xchacha20-poly1305" | "aead_xchacha20_poly1305";
        Blake3Aes128Gcm = "2022-blake3-aes-128-gcm";
        Blake3Aes256Gcm = "2022-blake3-aes-256-gcm";
        Blake3ChaCha20Poly1305 = "2022-blake3-chacha20-poly1305";
    }
    other {
        Gone "none": "it encrypts nothing: write 2022-blake3-aes-256-gcm or aes-256-gcm on both ends";
        Gone "plain": "it encrypts nothing: write 2022-blake3-aes-256-gcm or aes-256-gcm on both ends";
        Gone "aes-128-cfb": "whoever is in between can change what it seals: write aes-128-gcm on both ends";
        Gone "aes-256-cfb": "whoever is in between can change what it seals: write aes-256-gcm on both ends";
        Gone "aes-256-ctr": "whoever is in between can change what it seals: write aes-256-gcm on both ends";
        Gone "chacha20": "whoever is in between can change what it seals: write chacha20-ietf-poly1305 on both ends";
        Gone "chacha20-ietf": "whoever is in between can change what it seals: write chacha20-ietf-poly1305 on both ends";
        Gone "rc4-md5": "anyone can read what it seals: write aes-256-gcm on both ends";
    }
}

limited! {
    /// A user of a Shadowsocks inbound.
    pub(crate) struct ShadowsocksUserSettings: "shadowsocks settings.clients[]" {
        /// The password; with the AES methods of 2022 a key of the user's own, in base64. Clients there write the inbound's, a
        /// colon and their own.
        password: At<Password> = "password", required;
        /// The method, of 2017. Absent: that of the inbound. All users of a method of 2022 have the inbound's.
        method: Option<At<Method>> = "method";
        /// The name in counters, rules and logs.
        email: At<Name> = "email", default "\"\"";
        /// The level, which `policy.levels` gives a meaning.
        level: u32 = "level", default "0";
    }
    other {
        LaterError "address": "relaying a user to another Shadowsocks server (`address` and `port`)";
        LaterError "port": "relaying a user to another Shadowsocks server (`address` and `port`)";
    }
}

object! {
    /// Shadowsocks. Either one user, whose keys stand here, or `clients`.
    pub(crate) struct ShadowsocksSettings: "shadowsocks settings" {
        /// The method.
        method: Option<At<Method>> = "method";
        /// The password; with a method of 2022 a key of 16 or 32 bytes, by the method, in base64.
        password: Option<At<Password>> = "password";
        /// The name of the one user in counters, rules and logs.
        email: At<Name> = "email", default "\"\"";
        /// The level of the one user, which `policy.levels` gives a meaning.
        level: At<u32> = "level", default "0";
        /// What to accept. Absent: `tcp` with the methods of 2017, `tcp,udp` with those of 2022. Datagrams come to the same port
        /// as they are, whatever carries the streams.
        networks: Option<Networks> = "network";
        /// Users. With the methods of 2017 an empty list is nobody, until the management API adds somebody.
        users: Option<Part<Vec<ShadowsocksUserSettings>>> = "clients" | "users";
        /// With the methods of 2017: refuse requests that came before, as far as they are remembered. Those of 2022 always do.
        once: bool = "ivCheck", default "true";
    }
    other {
        LaterError "plugin": "plugins of Shadowsocks (SIP003)";
        LaterError "pluginOpts": "plugins of Shadowsocks (SIP003)";
        LaterError "pluginArgs": "plugins of Shadowsocks (SIP003)";
    }
}

/// Who may use a Shadowsocks inbound.
#[derive(Clone, Debug, PartialEq)]
pub enum ShadowsocksUsers {
    /// With the methods of 2017: users with keys, and perhaps methods, of their own.
    Classic(Vec<User<Key>>),
    /// With a method of 2022: whoever has this key.
    One(User<Key>),
    /// With a method of 2022: the inbound's key, and users with keys of their own behind it.
    Many(Key, Vec<User<Key>>),
}

/// What a Shadowsocks inbound knows.
#[derive(Clone, Debug, PartialEq)]
pub struct ShadowsocksInbound {
    /// The users. Passwords and e-mails are unique.
    pub users: ShadowsocksUsers,
    /// What to accept.
    pub networks: Networks,
    /// With the methods of 2017: refuse requests that came before.
    pub once: bool,
}

/// The key of a password, or what is wrong with it.
fn key(method: Method, password: &At<Password>, cx: &mut Cx<'_>) -> Option<Key> {
    let made = Key::new(method, &password.value.0);
    made.map_err(|error| cx.error_in("password", password.at, error.to_string(), ""))
        .ok()
}

impl FromKeys for ShadowsocksInbound {
    type Keys = ShadowsocksSettings;

    fn from_keys(s: ShadowsocksSettings, at: Position, cx: &mut Cx<'_>) -> Option<Self> {
        let listed = s.users.is_some();
        let list = s.users.unwrap_or_default().0?;
        let method = s.method.as_ref().map(|word| word.value);
        let modern = method.is_some_and(Method::is_2022);
        // Panels begin with an empty list. With a method of 2022 whoever has the inbound's key is let in then, as Xray does it.
        let alone = list.is_empty() && (modern || !listed);
        // Users of 2017 may have all of it themselves.
        let own = match (method, &s.password) {
            (Some(method), Some(password)) if alone || modern => Some(key(method, password, cx)?),
            (None, _) if alone => {
                cx.error(at, "`method` is missing", Method::kind().wanted());
                return None;
            }
            (Some(_), None) if alone || modern => {
                let hint = "write a password, or with a method of 2022 a key in base64";
                cx.error(at, "`password` is missing", hint);
                return None;
            }
            _ => None,
        };
        if !alone {
            let of_one = [
                ("email", s.email.at, !s.email.value.0.is_empty()),
                ("level", s.level.at, s.level.value != 0),
            ];
            let dropped = s
                .password
                .as_ref()
                .filter(|_| !modern)
                .map(|password| ("password", password.at, true));
            for (key, at, _) in of_one.into_iter().chain(dropped).filter(|(.., written)| *written) {
                cx.warn_in(
                    key,
                    at,
                    "beside `clients` it does nothing",
                    "write it for each of the clients, or take it out",
                );
            }
        }
        let users = cx.within("clients", |cx| users(list, method, modern, cx));
        let users = match own {
            Some(key) if alone => {
                let at = s.password.map_or(at, |password| password.at);
                let user = User::new(At { value: key, at }, (s.email, s.level.value, Limits::default()));
                match modern {
                    true => ShadowsocksUsers::One(user),
                    false => ShadowsocksUsers::Classic(vec![user]),
                }
            }
            Some(key) if !key.method().has_identities() => {
                let text = format!("{} has one key, and no users beside it", key.method());
                cx.error(
                    at,
                    text,
                    "only the AES methods of 2022 tell users apart: write one of them, or no `clients`",
                );
                return None;
            }
            Some(key) => ShadowsocksUsers::Many(key, users?),
            None => ShadowsocksUsers::Classic(users?),
        };
        let usual = Networks { tcp: true, udp: modern };
        Some(ShadowsocksInbound {
            users,
            networks: s.networks.unwrap_or(usual),
            once: s.once,
        })
    }
}

/// The users of a list. `None`: what is wrong has been told.
fn users(
    list: Vec<ShadowsocksUserSettings>,
    method: Option<Method>,
    modern: bool,
    cx: &mut Cx<'_>,
) -> Option<Vec<User<Key>>> {
    let mut seen = Distinct::new("password", "give each user a password of their own");
    let wanted = list.len();
    let one = |(i, user): (usize, ShadowsocksUserSettings)| {
        cx.at_index(i, |cx| {
            let at = user.password.at;
            let own = match (&user.method, method) {
                (Some(word), Some(all)) if modern && word.value != all => {
                    let hint = "leave `method` out of the users of a method of 2022";
                    cx.error_in("method", word.at, format!("the inbound's method is {all}"), hint);
                    return None;
                }
                (Some(word), _) if !modern && word.value.is_2022() => {
                    let hint = "write it, and the inbound's key as `password`, beside `clients`";
                    cx.error_in("method", word.at, "a method of 2022 belongs to the inbound", hint);
                    return None;
                }
                (Some(word), _) => word.value,
                (None, Some(all)) => all,
                (None, None) => {
                    cx.error(at, "`method` is missing", Method::kind().wanted());
                    return None;
                }
            };
            let (value, limits) = (key(own, &user.password, cx)?, user.limits());
            let secret = Zeroizing::new(format!("{own}:{}", *user.password.value.0));
            seen.check((secret.as_bytes(), at), &user.email, cx);
            Some(User::new(At { value, at }, (user.email, user.level, limits)))
        })
    };
    let users: Vec<_> = list.into_iter().enumerate().filter_map(one).collect();
    (users.len() == wanted).then_some(users)
}

impl Side for ShadowsocksInbound {
    fn has_secrets(&self) -> bool {
        true
    }
}

object! {
    /// A Shadowsocks server, and who we are there.
    pub(crate) struct ShadowsocksServer: "shadowsocks outbound settings.servers[]" {
        /// Its address.
        address: Address = "address", required;
        /// Its port, for streams and for datagrams, which go there as they are, whatever carries the streams.
        port: Port = "port", required;
        /// The method.
        method: Method = "method", required;
        /// The password; with a method of 2022 a key in base64, or the server's key, a colon and our own.
        password: At<Password> = "password", required;
        /// The level. The limits of the inbound's user hold.
        level: At<u32> = "level", default "0";
        /// A name, for the reader.
        email: String = "email";
    }
    other {
        LaterError "uot": "datagrams inside of streams (`uot`)";
        Accepted "uotVersion": "Only `uot` has it.";
        Accepted "ivCheck": "It is for inbounds.";
        LaterError "plugin": "plugins of Shadowsocks (SIP003)";
        LaterError "pluginOpts": "plugins of Shadowsocks (SIP003)";
        LaterError "pluginArgs": "plugins of Shadowsocks (SIP003)";
    }
}

object! {
    /// A Shadowsocks server. It stands here, or in the keys of a server themselves (`address`, `port`, `method`, …).
    pub(crate) struct ShadowsocksOutSettings: "shadowsocks outbound settings" {
        /// The server: a list of one.
        servers: Vec<ShadowsocksServer> = "servers", required;
    }
}

/// A Shadowsocks server.
#[derive(Clone, Debug, PartialEq)]
pub struct ShadowsocksOutbound {
    /// The server.
    pub server: Server,
    /// What the password stands for, and its method.
    pub keys: KeyChain,
    /// The password. Links hold it as it is.
    pub password: Password,
    /// A name, for the reader.
    pub email: String,
}

impl Decode for ShadowsocksOutbound {
    fn kind() -> Kind {
        Kind::Object(ShadowsocksOutSettings::TABLE)
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let at = value.at;
        let s = ShadowsocksOutSettings::decode(nest(value, "servers", NO_USER, &[]), cx)?;
        let one = one(s.servers, "server", at, cx)?;
        check_level("level", one.level, cx);
        let password = one.password.value;
        let keys = KeyChain::new(one.method, &password);
        let keys = keys.map_err(|error| {
            cx.within("servers", |cx| {
                cx.at_index(0, |cx| cx.error_in("password", one.password.at, error.to_string(), ""));
            });
        });
        Some(ShadowsocksOutbound {
            server: Server {
                address: one.address,
                port: one.port.0,
            },
            keys: keys.ok()?,
            password,
            email: one.email,
        })
    }
}

impl Side for ShadowsocksOutbound {
    fn has_secrets(&self) -> bool {
        true
    }

    fn link(&self, _: &mut Vec<&'static str>) -> Option<Link> {
        let Server { address, port } = &self.server;
        let mut link = Link::new(
            Scheme::Shadowsocks,
            self.password.as_str().to_owned(),
            address.clone(),
            *port,
        );
        link.encryption = self.keys.method().name().to_owned();
        Some(link)
    }
}

/// The settings of an outbound that a link asks for.
pub(crate) fn of_link(link: &Link) -> serde_json::Value {
    let mut settings = json!({ "method": link.encryption });
    if !link.parameter("plugin").is_empty() {
        settings["plugin"] = link.parameter("plugin").into();
    }
    settings
}
