//! VMess.

use serde_json::json;

use super::Side;
use super::server::{Server, check_level, nest, one_user, servers};
use super::user::{User, distinct};
use crate::UserId;
use crate::config::context::{Cx, quoted};
use crate::config::limits::limited;
use crate::config::scalar::{Name, ScalarText};
use crate::config::schema::{Kind, Loses};
use crate::config::table::{Decode, FromKeys, object, words};
use crate::json::Value;
use crate::link::{Link, Scheme};
use crate::problem::{At, Position};

limited! {
    /// A user of a VMess inbound.
    pub(crate) struct VmessUserSettings: "vmess settings.clients[]" {
        /// The secret id: a UUID, or a name it is made of.
        id: At<UserId> = "id", required;
        /// The name in counters, rules and logs.
        email: At<Name> = "email", default "\"\"";
        /// The level, which `policy.levels` gives a meaning. Absent: that of `default`.
        level: Option<u32> = "level";
        /// Obsolete. Only the AEAD header, alterId 0, is spoken.
        alter_id: Option<At<ScalarText>> = "alterId";
        /// Experiments, as one text. The client chooses; `NoTerminationSignal` has no effect here yet.
        experiments: At<Experiments> = "experiments", default "\"\"";
    }
    other {
        Accepted "security": "The client chooses.";
    }
}

/// Experiments of VMess.
#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
pub struct Experiments {
    /// `AuthenticatedLength`: lengths of chunks are sealed too.
    pub authenticated_length: bool,
    /// `NoTerminationSignal`: no chunk says that the stream has ended.
    pub no_termination_signal: bool,
}

impl Decode for Experiments {
    fn kind() -> Kind {
        Kind::text("`AuthenticatedLength`, `NoTerminationSignal`, both with a `|` between, or empty")
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let at = value.at;
        let text = String::decode(value, cx)?;
        for word in text.split(['|', ',', ' ']).filter(|word| !word.is_empty()) {
            if !matches!(word, "AuthenticatedLength" | "NoTerminationSignal") {
                cx.warn(at, format!("{} is no experiment", quoted(word)), "");
            }
        }
        Some(Experiments {
            authenticated_length: text.contains("AuthenticatedLength"),
            no_termination_signal: text.contains("NoTerminationSignal"),
        })
    }
}

object! {
    /// What users have who name nothing else.
    pub(crate) struct VmessDefault: "vmess settings.default" {
        /// The level.
        level: u32 = "level", default "0";
    }
    other {
        Accepted "alterId": "Only the AEAD header is spoken.";
    }
}

object! {
    /// VMess.
    pub(crate) struct VmessSettings: "vmess settings" {
        /// The users.
        users: Vec<VmessUserSettings> = "clients" | "users";
        /// What users have who name nothing else.
        default: VmessDefault = "default", default "{}";
        /// Refuse clients that ask for `none` or `zero`.
        secure_only: bool = "disableInsecureEncryption", default "false";
    }
    other {
        LaterWarning "detour": "dynamic ports (`detour`); clients are not sent to other ports, as Xray does it";
    }
}

/// What a VMess inbound knows.
#[derive(Clone, Debug, PartialEq)]
pub struct VmessInbound {
    /// The users. Ids and e-mails are unique.
    pub users: Vec<User>,
    /// Refuse clients that ask for `none` or `zero`.
    pub secure_only: bool,
}

impl FromKeys for VmessInbound {
    type Keys = VmessSettings;

    fn from_keys(s: VmessSettings, _: Position, cx: &mut Cx<'_>) -> Option<Self> {
        let users = cx.within("clients", |cx| {
            // Said once, of the first of them.
            let old = |user: &VmessUserSettings| user.alter_id.as_ref().is_some_and(is_old);
            if let Some(i) = s.users.iter().position(old) {
                cx.at_index(i, |cx| check_alter_id(s.users[i].alter_id.as_ref(), cx));
            }
            let ends = |user: &VmessUserSettings| user.experiments.no_termination_signal;
            if let Some(i) = s.users.iter().position(ends) {
                let what = "an inbound that ends streams without a last chunk (`NoTerminationSignal`)";
                let at = s.users[i].experiments.at;
                cx.at_index(i, |cx| cx.within("experiments", |cx| cx.later(Loses::Ease, at, what)));
            }
            let level = s.default.level;
            let users = s.users.into_iter();
            let entry = |user: VmessUserSettings| {
                let (level, limits) = (user.level.unwrap_or(level), user.limits());
                (user.id, user.email, level, limits)
            };
            distinct(users.map(entry), cx)
        });
        Some(VmessInbound {
            users,
            secure_only: s.secure_only,
        })
    }
}

impl Side for VmessInbound {
    fn has_secrets(&self) -> bool {
        !self.users.is_empty()
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
        ChaCha20Poly1305 = "chacha20-poly1305" | "chacha20-ietf-poly1305";
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

servers!(VmessServer, "vmess outbound settings.vnext[]", VmessOutUser);

object! {
    /// A VMess server. It stands here, or in the keys of a user and a server themselves (`address`, `port`, `id`, …).
    pub(crate) struct VmessOutSettings: "vmess outbound settings" {
        /// The server: a list of one.
        servers: Vec<VmessServer> = "vnext", required;
    }
}

/// A VMess server.
#[derive(Clone, Debug, PartialEq)]
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

impl Decode for VmessOutbound {
    fn kind() -> Kind {
        Kind::Object(VmessOutSettings::TABLE)
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let at = value.at;
        let s = VmessOutSettings::decode(nest(value, "vnext", VmessOutUser::TABLE, &[]), cx)?;
        let (server, user) = one_user(s.servers, true, at, cx)?;
        let user = user?;
        check_level("level", user.level, cx);
        check_alter_id(user.alter_id.as_ref(), cx);
        Some(VmessOutbound {
            server,
            id: user.id,
            security: user.security,
            experiments: user.experiments,
            email: user.email,
        })
    }
}

impl Side for VmessOutbound {
    fn has_secrets(&self) -> bool {
        true
    }

    fn link(&self, left_out: &mut Vec<&'static str>) -> Option<Link> {
        if self.experiments != Experiments::default() {
            left_out.push("settings.experiments");
        }
        let mut link = Link::new(Scheme::Vmess, self.id, self.server.address.clone(), self.server.port);
        link.encryption = self.security.as_str().to_owned();
        Some(link)
    }
}

/// The settings of an outbound that a link asks for.
pub(crate) fn of_link(link: &Link) -> serde_json::Value {
    let mut settings = json!({ "security": link.encryption });
    if link.alter_id != 0 {
        settings["alterId"] = link.alter_id.into();
    }
    settings
}

/// Whether a client asks for the header of old.
pub(crate) fn is_old(alter_id: &At<ScalarText>) -> bool {
    !matches!(alter_id.0.trim(), "0" | "")
}

/// Says that only the AEAD header is spoken.
pub(crate) fn check_alter_id(alter_id: Option<&At<ScalarText>>, cx: &mut Cx<'_>) {
    let Some(old) = alter_id.filter(|alter_id| is_old(alter_id)) else {
        return;
    };
    let text = format!(
        "alterId is {} here, but only the AEAD header (alterId 0) is spoken",
        quoted(&old.value.0)
    );
    cx.within("alterId", |cx| cx.warn(old.at, text, "write 0 on both ends"));
}
