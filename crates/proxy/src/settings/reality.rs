//! REALITY.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

pub use sealway_v2ray::config::{Secret, ThrottledAfter};

use super::dial::FallbackDial;

/// Settings of an inbound's REALITY. What clients identify themselves with is never shown.
#[derive(Clone, PartialEq)]
pub struct ServerReality {
    /// The server whose handshake is borrowed, and which strangers are passed on to.
    pub target: FallbackDial,
    /// Version of the PROXY protocol to announce clients to it with: 1 or 2. 0: none.
    pub xver: u8,
    /// Names that clients may ask for, compared as they are. An empty one is for clients that name none.
    pub server_names: Vec<String>,
    /// The X25519 private key.
    pub private_key: Secret,
    /// What clients may identify themselves with.
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

/// Settings of an outbound's REALITY. What it identifies itself with is never shown.
#[derive(Clone, PartialEq)]
pub struct ClientReality {
    /// The name to ask for. Empty: the address that is dialled.
    pub server_name: String,
    /// The browser whose hello to imitate, as other programs name it.
    pub fingerprint: String,
    /// The server's X25519 public key.
    pub public_key: [u8; 32],
    /// What to identify with.
    pub short_id: [u8; 8],
    /// The server's ML-DSA-65 public key. A server without it is refused then.
    pub mldsa65_verify: Option<Box<[u8; 1952]>>,
    /// The path to ask the site for, where it is the real one that has answered.
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

#[cfg(test)]
impl ServerReality {
    /// What tests begin with: the target is this port here.
    pub(crate) fn to_port(port: u16) -> Self {
        ServerReality {
            target: FallbackDial::Local(port),
            xver: 0,
            server_names: vec!["a.test".to_owned()],
            private_key: Secret([1; 32]),
            short_ids: vec![[0; 8]],
            min_client_version: None,
            max_client_version: None,
            max_time_diff: None,
            mldsa65_seed: None,
            limit_upload: None,
            limit_download: None,
            key_log: None,
        }
    }
}
