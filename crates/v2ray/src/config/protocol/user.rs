//! Users and accounts.

use std::collections::HashMap;

use super::context::{Cx, quoted};
use super::json::Value;
use super::problem::{At, Position};
use super::scalar::Name;
use super::sockopt::ScalarText;
use super::table::{Decode, Kind, Loses, object, words};
use crate::UserId;

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

/// A user of an inbound.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct User {
    /// The secret id.
    pub id: UserId,
    /// The name in counters, rules and logs, as it was written. Empty: none. Letter case makes no difference.
    pub email: String,
    /// The level, which the policy gives a meaning.
    pub level: u32,
    /// Where the user is configured.
    pub at: Position,
}

object! {
    /// A user's name and password.
    pub struct Account: "accounts[]" {
        /// The name.
        user: String = "user" | "username", required;
        /// The password.
        pass: String = "pass" | "password", required;
    }
    other {
        Accepted "level": "The key userLevel beside the accounts counts.";
        Accepted "email": "";
    }
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

/// Finds users with the same id or e-mail.
pub(crate) fn check_unique(users: &[(At<UserId>, At<Name>)], cx: &mut Cx<'_>) {
    let mut ids: HashMap<[u8; 16], Position> = HashMap::new();
    let mut emails: HashMap<String, Position> = HashMap::new();
    for (i, (id, email)) in users.iter().enumerate() {
        cx.at_index(i, |cx| {
            if let Some(first) = ids.get(id.value.as_bytes()) {
                let text = format!("the user on line {} has the same id", first.line);
                cx.within("id", |cx| {
                    cx.error(
                        id.at,
                        text,
                        "give each user an id of their own: `sealway uuid` makes one",
                    )
                });
            } else {
                ids.insert(*id.value.as_bytes(), id.at);
            }
            if email.is_empty() {
                return;
            }
            match emails.get(&email.to_lowercase()) {
                Some(first) => {
                    let text = format!("the user on line {} has the same e-mail {}", first.line, quoted(email));
                    cx.within("email", |cx| {
                        cx.error(email.at, text, "counters and rules tell users apart by it")
                    });
                }
                None => {
                    emails.insert(email.to_lowercase(), email.at);
                }
            }
        });
    }
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
