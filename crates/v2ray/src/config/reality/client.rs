//! REALITY of an outbound.

use std::fmt;
use std::path::PathBuf;

use super::{RealitySettings, check_site, key, no_effect, set, short_id};
use crate::config::context::{Cx, quoted};
use crate::problem::Position;

/// The hello that is sent.
const OWN_FINGERPRINT: &str = "chrome";
/// Programs whose hellos other programs imitate too.
const FINGERPRINTS: [&str; 11] = [
    "chrome",
    "firefox",
    "safari",
    "ios",
    "android",
    "edge",
    "360",
    "qq",
    "random",
    "randomized",
    "randomizednoalpn",
];

/// REALITY of an outbound. What it identifies itself with is never shown.
#[derive(Clone, PartialEq)]
pub struct ClientReality {
    /// The name to ask for. Empty: the address dialled.
    pub server_name: String,
    /// The browser whose hello to imitate, in lower case, as other programs name it. Not empty.
    pub fingerprint: String,
    /// The server's X25519 public key.
    pub public_key: [u8; 32],
    /// What to identify with.
    pub short_id: [u8; 8],
    /// How many bytes of it were written.
    pub short_id_len: usize,
    /// The server's ML-DSA-65 public key, 1952 bytes. A server without it is refused then.
    pub mldsa65_verify: Option<Box<[u8; 1952]>>,
    /// The path to ask the site for, where it is the real one that has answered. It begins with a slash.
    pub spider_x: String,
    /// The file to add session secrets to.
    pub key_log: Option<PathBuf>,
}

impl fmt::Debug for ClientReality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("ClientReality");
        shown
            .field("server_name", &self.server_name)
            .field("fingerprint", &self.fingerprint);
        shown.finish_non_exhaustive()
    }
}

pub(super) fn read(s: RealitySettings, at: Position, cx: &mut Cx<'_>) -> Option<ClientReality> {
    let listed = |empty: bool, at: Position| (!empty).then_some(at);
    no_effect(
        &[
            ("target", s.target.as_ref().map(|target| target.at)),
            ("type", set(&s.kind)),
            ("xver", listed(s.xver.value == 0, s.xver.at)),
            ("serverNames", listed(s.server_names.is_empty(), s.server_names.at)),
            ("privateKey", s.private_key.as_ref().map(|key| key.at)),
            ("shortIds", listed(s.short_ids.is_empty(), s.short_ids.at)),
            ("minClientVer", s.min_client_version.as_ref().map(|text| text.at)),
            ("maxClientVer", s.max_client_version.as_ref().map(|text| text.at)),
            ("maxTimeDiff", s.max_time_diff.map(|most| most.at)),
            ("mldsa65Seed", s.mldsa65_seed.as_ref().map(|seed| seed.at)),
            ("limitFallbackUpload", s.limit_upload.as_ref().map(|limit| limit.at)),
            ("limitFallbackDownload", s.limit_download.as_ref().map(|limit| limit.at)),
        ],
        cx,
    );
    check_site("serverName", &s.server_name, s.server_name.at, cx);
    let hint = "it is the second line that `sealway x25519` prints for the server's private key";
    let public_key = match &s.public_key {
        None => {
            cx.error(at, "`publicKey` is missing", hint);
            None
        }
        Some(text) => key("publicKey", text, hint, cx),
    };
    let id = match short_id(&s.short_id) {
        Ok(id) => Some(id),
        Err(wrong) => {
            let hint = "it is one of the server's `shortIds`: up to 16 hexadecimal digits, an even number of them";
            cx.error_in("shortId", s.short_id.at, wrong, hint);
            None
        }
    };
    let verify = match &s.mldsa65_verify {
        None => Some(None),
        Some(text) => {
            let hint = "it is the second line that `sealway mldsa65` prints for the server's seed";
            key::<1952>("mldsa65Verify", text, hint, cx).map(|key| Some(Box::new(key)))
        }
    };
    let fingerprint = fingerprint(&s, cx);
    let spider_x = match s.spider_x.trim() {
        "" => Some("/".to_owned()),
        path if path.starts_with('/') && path.bytes().all(|byte| byte.is_ascii_graphic()) => Some(path.to_owned()),
        path => {
            let text = format!("{} is no path of a request", quoted(path));
            cx.error_in("spiderX", s.spider_x.at, text, "write one that begins with a slash");
            None
        }
    };
    Some(ClientReality {
        short_id_len: s.short_id.trim().len() / 2,
        server_name: s.server_name.value,
        fingerprint: fingerprint?,
        public_key: public_key?,
        short_id: id?,
        mldsa65_verify: verify?,
        spider_x: spider_x?,
        key_log: (!s.key_log.is_empty()).then(|| s.key_log.value.into()),
    })
}

fn fingerprint(s: &RealitySettings, cx: &mut Cx<'_>) -> Option<String> {
    let name = s.fingerprint.trim().to_ascii_lowercase();
    let wrong = match name.as_str() {
        "" => return Some(OWN_FINGERPRINT.to_owned()),
        OWN_FINGERPRINT => return Some(name),
        "unsafe" | "hellogolang" => "a hello that no browser sends gives REALITY away",
        known if FINGERPRINTS.contains(&known) || known.starts_with("hello") => {
            let text = format!(
                "{} is not imitated; the hello is that of a recent Chrome",
                quoted(&name)
            );
            cx.warn_in("fingerprint", s.fingerprint.at, text, "write \"chrome\"");
            return Some(name);
        }
        _ => "no browser of this name is known here",
    };
    let hint = format!("write one of {}", FINGERPRINTS.join(", "));
    cx.error_in("fingerprint", s.fingerprint.at, wrong, hint);
    None
}

impl ClientReality {
    /// What to identify with, as it was written.
    pub(crate) fn short_id_text(&self) -> String {
        let written = self.short_id.iter().take(self.short_id_len);
        written.map(|byte| format!("{byte:02x}")).collect()
    }
}
