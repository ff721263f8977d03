//! Cipher suites, groups and the key log of a TLS configuration.

use std::fmt;
use std::io;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use rustls::crypto::CryptoProvider;
use rustls::{CipherSuite as Id, KeyLog, NamedGroup, ProtocolVersion, SupportedCipherSuite};
use sealway_tls::schedule::key_log_line;

use crate::Error;
use crate::log::Sink;
use crate::settings::{CipherSuite, Curve};

static USUAL: LazyLock<Arc<CryptoProvider>> = LazyLock::new(|| Arc::new(rustls::crypto::aws_lc_rs::default_provider()));

fn suite(suite: CipherSuite) -> Id {
    match suite {
        CipherSuite::Tls13Aes128Gcm => Id::TLS13_AES_128_GCM_SHA256,
        CipherSuite::Tls13Aes256Gcm => Id::TLS13_AES_256_GCM_SHA384,
        CipherSuite::Tls13Chacha20Poly1305 => Id::TLS13_CHACHA20_POLY1305_SHA256,
        CipherSuite::EcdheEcdsaAes128Gcm => Id::TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        CipherSuite::EcdheEcdsaAes256Gcm => Id::TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384,
        CipherSuite::EcdheEcdsaChacha20Poly1305 => Id::TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
        CipherSuite::EcdheRsaAes128Gcm => Id::TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256,
        CipherSuite::EcdheRsaAes256Gcm => Id::TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384,
        CipherSuite::EcdheRsaChacha20Poly1305 => Id::TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256,
    }
}

fn group(curve: Curve) -> NamedGroup {
    match curve {
        Curve::X25519 => NamedGroup::X25519,
        Curve::P256 => NamedGroup::secp256r1,
        Curve::P384 => NamedGroup::secp384r1,
        Curve::X25519MlKem768 => NamedGroup::X25519MLKEM768,
        Curve::Secp256r1MlKem768 => NamedGroup::secp256r1MLKEM768,
    }
}

/// Has the library gather entropy for its random numbers now, in a thread of its own.
///
/// It times memory to do so, once a process, which takes 50 to 100 ms: the first handshake would wait for it.
pub(crate) fn seed() {
    let gather = || {
        // Without entropy every handshake fails, and says so.
        let _ = USUAL.secure_random.fill(&mut [0; 1]);
    };
    // Without a thread the first handshake does it.
    let _ = std::thread::Builder::new().name("entropy".into()).spawn(gather);
}

/// The provider with these suites and groups, in this order. A version of which no suite is named keeps all of its own;
/// without groups all stay.
pub(crate) fn provider(place: &str, suites: &[CipherSuite], groups: &[Curve]) -> Result<Arc<CryptoProvider>, Error> {
    if suites.is_empty() && groups.is_empty() {
        return Ok(Arc::clone(&USUAL));
    }
    let mut provider = CryptoProvider::clone(&USUAL);
    let usual = &USUAL.cipher_suites;
    let named: Vec<SupportedCipherSuite> = suites
        .iter()
        .filter_map(|one| usual.iter().find(|usual| usual.suite() == suite(*one)).copied())
        .collect();
    let of = |list: &[SupportedCipherSuite], version: ProtocolVersion| -> Vec<SupportedCipherSuite> {
        list.iter()
            .filter(|one| one.version().version == version)
            .copied()
            .collect()
    };
    provider.cipher_suites = [ProtocolVersion::TLSv1_3, ProtocolVersion::TLSv1_2]
        .into_iter()
        .flat_map(|version| match of(&named, version) {
            none if none.is_empty() => of(usual, version),
            some => some,
        })
        .collect();
    if !groups.is_empty() {
        // Not every group is among the usual ones.
        let all = rustls::crypto::aws_lc_rs::ALL_KX_GROUPS;
        provider.kx_groups = groups
            .iter()
            .filter_map(|one| all.iter().find(|known| known.name() == group(*one)).copied())
            .collect();
        if provider.kx_groups.len() != groups.len() {
            let place = format!("{place}.curvePreferences");
            return Err(Error::config(place, "one of these groups is not supported"));
        }
    }
    Ok(Arc::new(provider))
}

/// Adds session secrets to a file, in the format of NSS.
pub(crate) struct KeyFile(Sink);

impl KeyFile {
    /// Opens the file, which only its owner may read if it is new.
    pub(crate) fn open(path: &Path) -> io::Result<Self> {
        let lost = |lines| {
            tracing::warn!("masterKeyLog: {lines} secrets were not written, because the file did not take them");
            None
        };
        Ok(KeyFile(Sink::file(path, Box::new(lost))?))
    }
}

impl KeyLog for KeyFile {
    fn log(&self, label: &str, client_random: &[u8], secret: &[u8]) {
        self.0.line(&key_log_line(label, client_random, secret));
    }
}

impl sealway_tls::schedule::KeyLog for KeyFile {
    fn secret(&self, label: &'static str, client_random: &[u8; 32], secret: &[u8]) {
        self.log(label, client_random, secret);
    }
}

impl fmt::Debug for KeyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KeyFile")
    }
}
