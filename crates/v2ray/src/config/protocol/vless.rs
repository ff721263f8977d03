//! VLESS.

use serde_json::json;

use super::Side;
use super::fallback::{self, FallbackTarget, ReadFallback};
use super::server::{Server, check_level, check_plain, nest, one_user, servers};
use super::user::{User, distinct};
use crate::UserId;
use crate::config::context::{Cx, quoted};
use crate::config::limits::limited;
use crate::config::scalar::{Name, Part};
use crate::config::schema::{Kind, Loses};
use crate::config::stream::Stream;
use crate::config::table::{Decode, FromKeys, object, words};
use crate::config::tls::TlsVersion;
use crate::config::transport::Transport;
use crate::json::Value;
use crate::link::{Link, Scheme};
use crate::problem::{At, Position};
use crate::vless::Flow;
use crate::vless::fallback::Fallback;
use crate::vless::vision::Seed;

words! {
    for Flow {
        None = "" | "none";
        Vision = "xtls-rprx-vision";
    }
    other {
        Gone "xtls-rprx-vision-udp443": "it is for outbounds: write \"xtls-rprx-vision\", which serves both";
        Gone "xtls-rprx-direct": "it is gone from every program; what seals the connection is `security`: write tls there";
        Gone "xtls-rprx-origin": "it is gone from every program; what seals the connection is `security`: write tls there";
        Gone "xtls-rprx-splice": "it is gone from every program; what seals the connection is `security`: write tls there";
    }
}

words! {
    /// What connections to a VLESS server do besides.
    pub(crate) enum OutFlowName {
        /// Nothing.
        None = "" | "none";
        /// They are padded, and leave the outer TLS where they are TLS themselves. Datagrams to port 443 are refused, so that
        /// programs fall back from QUIC to TCP.
        Vision = "xtls-rprx-vision";
        /// The same, and datagrams to port 443 are carried.
        VisionUdp443 = "xtls-rprx-vision-udp443";
    }
    other {
        Gone "xtls-rprx-direct": "it is gone from every program; what seals the connection is `security`: write tls there";
        Gone "xtls-rprx-origin": "it is gone from every program; what seals the connection is `security`: write tls there";
        Gone "xtls-rprx-splice": "it is gone from every program; what seals the connection is `security`: write tls there";
    }
}

limited! {
    /// A user of a VLESS inbound.
    pub(crate) struct VlessUserSettings: "vless settings.clients[]" {
        /// The secret id: a UUID, or a name it is made of.
        id: At<UserId> = "id", required;
        /// The name in counters, rules and logs.
        email: At<Name> = "email", default "\"\"";
        /// The level, which `policy.levels` gives a meaning.
        level: u32 = "level", default "0";
        /// The flow. Absent: that of the inbound.
        flow: Option<At<Flow>> = "flow";
        /// Four numbers for the padding of the flow: below how many bytes of content it may be long; below how many its random
        /// part is then; how many content and padding are at least then; below how many a short one is. Absent: those of the
        /// inbound.
        seed: Option<At<Vec<u32>>> = "testseed";
    }
    other {
        Gone "encryption": "remove it: on an inbound the key is `decryption`, beside the users";
        LaterService "reverse": "reverse connections";
        Accepted "testpre": "Outbounds have it.";
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
        flow: Part<At<Flow>> = "flow", default "\"\"";
        /// The numbers for padding of users that have none. Absent: 900, 500, 900, 256.
        seed: Part<Option<At<Vec<u32>>>> = "testseed";
    }
    other {
        Gone "fallback": "write `fallbacks`, a list of objects";
    }
}

/// A user of a VLESS inbound.
#[derive(Clone, Debug, PartialEq)]
pub struct VlessUser {
    /// Who it is.
    pub user: User,
    /// The flow.
    pub flow: Flow,
    /// How much is padded.
    pub seed: Seed,
}

/// What a VLESS inbound knows.
#[derive(Clone, Debug, PartialEq)]
pub struct VlessInbound {
    /// The users. Ids and e-mails are unique.
    pub users: Vec<VlessUser>,
    /// Where everybody else is sent. [`Fallbacks::new`](crate::vless::fallback::Fallbacks::new) takes it.
    pub fallbacks: Vec<Fallback<FallbackTarget>>,
    /// The first flow: that of a user, or of those that name none.
    flow: Option<(Option<usize>, Position)>,
}

impl FromKeys for VlessInbound {
    type Keys = VlessSettings;

    fn from_keys(s: VlessSettings, at: Position, cx: &mut Cx<'_>) -> Option<Self> {
        let decryption = s.decryption.0;
        let seals = decryption.is_some_and(|word| check_encryption("decryption", word.as_ref(), at, cx));
        if let Some(fallbacks) = &s.fallbacks.0 {
            cx.within("fallbacks", |cx| fallback::check(fallbacks, cx));
        }
        let seed = s.seed.0.map(|seed| read_seed(seed, cx));
        let (usual, users) = (s.flow.0, s.users.0?);
        let mut of_users = Vec::new();
        let mut flow = None;
        cx.within("clients", |cx| {
            for (i, user) in users.iter().enumerate() {
                let own = user.flow.as_ref();
                let asked = own.or(usual.as_ref()).filter(|flow| flow.value == Flow::Vision);
                if let (Some(asked), None) = (asked, flow) {
                    flow = Some((own.map(|_| i), asked.at));
                }
                let own = user.seed.clone();
                let own = own.and_then(|own| cx.at_index(i, |cx| read_seed(Some(own), cx)));
                let seed = own.or_else(|| seed.flatten()).unwrap_or_default();
                of_users.push((if asked.is_some() { Flow::Vision } else { Flow::None }, seed));
            }
        });
        let users = users.into_iter().map(|user| {
            let limits = user.limits();
            (user.id, user.email, user.level, limits)
        });
        let users = cx.within("clients", |cx| distinct(users, cx));
        let users = users.into_iter().zip(of_users);
        usual?;
        Some(VlessInbound {
            users: users
                .map(|(user, (flow, seed))| VlessUser { user, flow, seed })
                .collect(),
            fallbacks: s.fallbacks.0?.into_iter().map(|fallback| fallback.value.0).collect(),
            // It needs no TLS around it where VLESS itself seals.
            flow: flow.filter(|_| !seals),
        })
    }
}

/// Reads the numbers for padding.
fn read_seed(given: Option<At<Vec<u32>>>, cx: &mut Cx<'_>) -> Option<Seed> {
    let given = given?;
    match <[u32; 4]>::try_from(&given.value[..]) {
        Ok(numbers) => Some(Seed::new(numbers)),
        Err(_) if given.value.is_empty() => None,
        Err(_) => {
            let text = format!("`testseed` has four numbers, not {}", given.value.len());
            cx.error_in("testseed", given.at, text, "write for example [900, 500, 900, 256]");
            None
        }
    }
}

/// Tells of what the flow does not go with. `at` is where the flow stands.
fn check_vision(stream: &Stream, at: Position, cx: &mut Cx<'_>) {
    let on_both = "on both ends";
    if stream.transport != Transport::Raw {
        let text = "the flow xtls-rprx-vision goes over the transport raw and over no other";
        cx.error_in(
            "flow",
            at,
            text,
            format!("write \"network\": \"raw\" under `streamSettings` {on_both}"),
        );
    }
    match &stream.tls {
        None if stream.is_sealed() => {}
        None => {
            let text = "the flow xtls-rprx-vision needs TLS around it";
            cx.error_in(
                "flow",
                at,
                text,
                format!("write \"security\": \"tls\" under `streamSettings` {on_both}"),
            );
        }
        Some(tls) if tls.max_version != TlsVersion::V13 => {
            let text = "the flow xtls-rprx-vision needs TLS 1.3, which `maxVersion` forbids";
            cx.error_in(
                "flow",
                at,
                text,
                format!("write \"maxVersion\": \"1.3\" under `tlsSettings` {on_both}"),
            );
        }
        Some(_) => {}
    }
}

impl Side for VlessInbound {
    fn has_secrets(&self) -> bool {
        !self.users.is_empty()
    }

    fn check_stream(&self, stream: &Stream, _: Position, cx: &mut Cx<'_>) {
        let Some((user, at)) = self.flow else { return };
        cx.within("settings", |cx| match user {
            Some(i) => cx.within("clients", |cx| cx.at_index(i, |cx| check_vision(stream, at, cx))),
            None => check_vision(stream, at, cx),
        });
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
        flow: At<OutFlowName> = "flow", default "\"\"";
        /// Four numbers for the padding of the flow, as users of inbounds have them. Absent: 900, 500, 900, 256.
        seed: Option<At<Vec<u32>>> = "testseed";
        /// Connections to the server that are made before they are needed, for the flow; 64 at most. Each waits 2 min at most,
        /// and none is made while nobody asks for one.
        ready: At<u32> = "testpre", default "0";
        /// The level. The limits of the inbound's user hold.
        level: At<u32> = "level", default "0";
        /// A name, for the reader.
        email: String = "email";
    }
    other {
        LaterService "reverse": "reverse connections";
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
pub struct VlessOutbound {
    /// The server.
    pub server: Server,
    /// Our id there.
    pub id: UserId,
    /// A name, for the reader.
    pub email: String,
    /// The flow xtls-rprx-vision, if it is asked for.
    pub vision: Option<Vision>,
}

/// The flow xtls-rprx-vision of an outbound.
#[derive(Clone, Debug, PartialEq)]
pub struct Vision {
    /// Datagrams to port 443 are carried.
    pub udp_443: bool,
    /// How much is padded.
    pub seed: Seed,
    /// Connections that are made before they are needed.
    pub ready: u16,
    /// Where the flow is configured.
    pub at: Position,
}

/// Most connections that are made before they are needed.
const MAX_READY: u32 = 64;

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
        let seals = check_encryption("encryption", user.encryption.as_ref(), at, cx);
        if user.ready.value > MAX_READY {
            let text = format!("{} connections at once are too many to keep ready", user.ready.value);
            cx.error_in("testpre", user.ready.at, text, format!("at most {MAX_READY} are kept"));
        }
        let seed = read_seed(user.seed, cx).unwrap_or_default();
        let vision = (user.flow.value != OutFlowName::None).then_some(Vision {
            udp_443: user.flow.value == OutFlowName::VisionUdp443,
            seed,
            ready: user.ready.value.min(MAX_READY) as u16,
            at: user.flow.at,
        });
        if vision.is_none() && user.ready.value > 0 {
            let text = "`testpre` has an effect with the flow xtls-rprx-vision only";
            cx.warn_in("testpre", user.ready.at, text, "write the flow, or 0");
        }
        // Whether there is TLS around it, as without, does not matter then.
        if seals {
            return None;
        }
        Some(VlessOutbound {
            server,
            id: user.id,
            email: user.email,
            vision,
        })
    }
}

impl Side for VlessOutbound {
    fn has_secrets(&self) -> bool {
        true
    }

    fn check_stream(&self, stream: &Stream, at: Position, cx: &mut Cx<'_>) {
        check_plain("VLESS", "the id", &self.server, stream, at, cx);
        if let Some(vision) = &self.vision {
            cx.within("settings", |cx| check_vision(stream, vision.at, cx));
        }
    }

    fn link(&self, left_out: &mut Vec<&'static str>) -> Option<Link> {
        let (address, port) = (self.server.address.clone(), self.server.port);
        let mut link = Link::new(Scheme::Vless, self.id, address, port);
        if let Some(vision) = &self.vision {
            let flow = if vision.udp_443 {
                OutFlowName::VisionUdp443
            } else {
                OutFlowName::Vision
            };
            link.set_parameter("flow", flow.as_str());
            if vision.seed != Seed::default() {
                left_out.push("settings.testseed");
            }
            if vision.ready > 0 {
                left_out.push("settings.testpre");
            }
        }
        Some(link)
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

/// Checks the word that stands for VLESS encryption. Whether it asks VLESS itself to seal, which it cannot do yet.
fn check_encryption(key: &str, word: Option<&At<String>>, object: Position, cx: &mut Cx<'_>) -> bool {
    let own = |word: &At<String>| word.starts_with("mlkem768x25519plus.");
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
        Some(word) if own(word) => {
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
    word.is_some_and(own)
}
