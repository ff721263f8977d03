//! REALITY of an inbound.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use super::{FallbackLimit, RealitySettings, Secret, check_site, key, no_effect, set, short_id};
use crate::Address;
use crate::config::context::{Cx, quoted};
use crate::config::dest::{FallbackDial, read_dest, read_proxy_version};
use crate::problem::{At, Position};

/// How far clocks may differ where `maxTimeDiff` is absent.
const USUAL_TIME_DIFF: Duration = Duration::from_secs(120);

/// REALITY of an inbound. What clients identify themselves with is never shown.
#[derive(Clone, PartialEq)]
pub struct ServerReality {
    /// The server whose handshake is borrowed.
    pub target: FallbackDial,
    /// Version of the PROXY protocol to announce clients to it with: 1 or 2. 0: none.
    pub xver: u8,
    /// Names that clients may ask for, at least one. An empty one is for clients that name none.
    pub server_names: Vec<String>,
    /// The X25519 private key.
    pub private_key: Secret,
    /// What clients may identify themselves with, at least one.
    pub short_ids: Vec<[u8; 8]>,
    /// The lowest version that a client may say it has.
    pub min_client_version: Option<[u8; 3]>,
    /// The highest version that a client may say it has.
    pub max_client_version: Option<[u8; 3]>,
    /// By how much clocks may differ. `None`: any time, and then a recorded hello is known only as long as it is remembered.
    pub max_time_diff: Option<Duration>,
    /// The seed of the ML-DSA-65 key.
    pub mldsa65_seed: Option<Secret>,
    /// The limit for what strangers send to the target.
    pub limit_upload: Option<ThrottledAfter>,
    /// The limit for what the target sends to strangers.
    pub limit_download: Option<ThrottledAfter>,
    /// The file to add session secrets to.
    pub key_log: Option<PathBuf>,
}

impl fmt::Debug for ServerReality {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("ServerReality");
        shown
            .field("target", &self.target)
            .field("server_names", &self.server_names);
        shown.finish_non_exhaustive()
    }
}

/// From some byte on, how fast one direction of a connection may go.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct ThrottledAfter {
    /// Bytes that pass before the limit holds.
    pub after: u64,
    /// Bytes a second from then on, at least 1.
    pub rate: u64,
    /// Bytes that may come at once after a pause, no less than `rate`.
    pub burst: u64,
}

fn limit(limit: Option<At<FallbackLimit>>) -> Option<ThrottledAfter> {
    let limit = limit?.value;
    (limit.bytes_per_sec > 0).then(|| ThrottledAfter {
        after: limit.after_bytes,
        rate: limit.bytes_per_sec,
        burst: limit.burst_bytes_per_sec.max(limit.bytes_per_sec),
    })
}

pub(super) fn read(s: RealitySettings, at: Position, cx: &mut Cx<'_>) -> Option<ServerReality> {
    no_effect(
        &[
            ("serverName", set(&s.server_name)),
            ("fingerprint", set(&s.fingerprint)),
            ("publicKey", s.public_key.as_ref().map(|key| key.at)),
            ("shortId", set(&s.short_id)),
            ("mldsa65Verify", s.mldsa65_verify.as_ref().map(|key| key.at)),
            ("spiderX", set(&s.spider_x)),
        ],
        cx,
    );
    // Each part is read whatever became of the others, so that all problems are found at once.
    let target = match &s.target {
        None => {
            let hint = "name the site whose handshake is borrowed, as in \"www.example.com:443\"";
            cx.error(at, "`target` is missing", hint);
            None
        }
        Some(target) => cx.within("target", |cx| read_dest(target, &s.kind, "target", cx)),
    };
    if let (Some(FallbackDial::Tcp(Address::Domain(name), _)), Some(place)) = (&target, &s.target) {
        check_site("target", name.as_str(), place.at, cx);
    }
    let xver = read_proxy_version("xver", s.xver, cx);
    let names = names(&s, at, cx);
    let hint = "`sealway x25519` makes one, and the public key for clients";
    let private_key = match &s.private_key {
        None => {
            cx.error(at, "`privateKey` is missing", hint);
            None
        }
        Some(text) => key("privateKey", text, hint, cx).map(Secret),
    };
    let ids = short_ids(&s, at, cx);
    let min = version("minClientVer", s.min_client_version.as_ref(), cx);
    let max = version("maxClientVer", s.max_client_version.as_ref(), cx);
    if let (Some(Some(min)), Some(Some(max)), Some(place)) = (min, max, &s.max_client_version)
        && max < min
    {
        let text = "no client can have a version between `minClientVer` and `maxClientVer`";
        cx.error_in("maxClientVer", place.at, text, "");
        return None;
    }
    let seed = match &s.mldsa65_seed {
        None => Some(None),
        Some(text) => {
            let seed = key("mldsa65Seed", text, "`sealway mldsa65` makes one", cx).map(Secret);
            if seed.is_some() && seed == private_key {
                let text = "`mldsa65Seed` is the same as `privateKey`";
                cx.error_in(
                    "mldsa65Seed",
                    s.mldsa65_seed.as_ref()?.at,
                    text,
                    "`sealway mldsa65` makes one",
                );
                return None;
            }
            seed.map(Some)
        }
    };
    Some(ServerReality {
        target: target?,
        xver: xver?,
        server_names: names?,
        private_key: private_key?,
        short_ids: ids?,
        min_client_version: min?,
        max_client_version: max?,
        max_time_diff: match s.max_time_diff.map(|most| most.value) {
            None => Some(USUAL_TIME_DIFF),
            Some(0) => None,
            Some(most) => Some(Duration::from_millis(most)),
        },
        mldsa65_seed: seed?,
        limit_upload: limit(s.limit_upload),
        limit_download: limit(s.limit_download),
        key_log: (!s.key_log.is_empty()).then(|| s.key_log.value.into()),
    })
}

fn names(s: &RealitySettings, at: Position, cx: &mut Cx<'_>) -> Option<Vec<String>> {
    if s.server_names.is_empty() {
        let hint = "list the names of the target's certificate that clients may ask for";
        cx.error(at, "`serverNames` is missing", hint);
        return None;
    }
    let mut whole = true;
    for (index, name) in s.server_names.0.iter().enumerate() {
        cx.within("serverNames", |cx| {
            cx.at_index(index, |cx| {
                if name.contains('*') {
                    let text = format!("{} has a *, and names are compared as they are", quoted(name));
                    cx.error(name.at, text, "list each name");
                    whole = false;
                } else if name.len() > 255 || !name.bytes().all(|byte| byte.is_ascii_graphic()) {
                    let text = format!("{} is no name that a client can ask for", quoted(name));
                    cx.error(name.at, text, "letters beyond ASCII are written as xn--…");
                    whole = false;
                }
            });
        });
        check_site("serverNames", name, name.at, cx);
    }
    whole.then(|| s.server_names.iter().map(str::to_owned).collect())
}

fn short_ids(s: &RealitySettings, at: Position, cx: &mut Cx<'_>) -> Option<Vec<[u8; 8]>> {
    if s.short_ids.is_empty() {
        let hint = "list at least one: up to 16 hexadecimal digits, an even number of them, or \"\"";
        cx.error(at, "`shortIds` is missing", hint);
        return None;
    }
    let mut ids = Vec::new();
    for (index, text) in s.short_ids.0.iter().enumerate() {
        match short_id(text) {
            Ok(id) => ids.push(id),
            Err(wrong) => cx.within("shortIds", |cx| {
                cx.at_index(index, |cx| {
                    cx.error(
                        text.at,
                        wrong,
                        "write up to 16 hexadecimal digits, an even number of them",
                    );
                });
            }),
        }
    }
    (ids.len() == s.short_ids.0.len()).then_some(ids)
}

/// Reads `x.y.z`, of which later parts may be missing.
fn version(key: &str, text: Option<&At<String>>, cx: &mut Cx<'_>) -> Option<Option<[u8; 3]>> {
    let Some(text) = text else {
        return Some(None);
    };
    let mut version = [0; 3];
    let parts: Vec<&str> = text.trim().split('.').collect();
    let read = parts.len() <= version.len()
        && version.iter_mut().zip(&parts).all(|(number, part)| {
            let digits = !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit());
            match part.parse() {
                Ok(read) if digits => {
                    *number = read;
                    true
                }
                _ => false,
            }
        });
    if !read {
        let text_is = format!("{} is no version of a client", quoted(text));
        cx.error_in(key, text.at, text_is, "write it as in 26.3.27, each number up to 255");
        return None;
    }
    Some(Some(version))
}
