//! `streamSettings.tlsSettings`.

use std::path::PathBuf;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use super::context::{Cx, quoted};
use super::scalar::Texts;
use super::schema::Kind;
use super::table::{Decode, FromKeys, object, words};
use crate::json::{Data, Value};
use crate::problem::{At, Position};

mod certificate;

pub use certificate::{Certificate, CertificateUsage, Pem};

words! {
    /// A version of TLS.
    pub enum TlsVersion {
        /// TLS 1.0, which we do not speak.
        V10 = "1.0";
        /// TLS 1.1, which we do not speak.
        V11 = "1.1";
        /// TLS 1.2.
        V12 = "1.2";
        /// TLS 1.3.
        V13 = "1.3";
    }
}

words! {
    /// A cipher suite of TLS, by its IANA name.
    pub enum CipherSuite {
        /// TLS 1.3.
        Tls13Aes128Gcm = "TLS_AES_128_GCM_SHA256";
        /// TLS 1.3.
        Tls13Aes256Gcm = "TLS_AES_256_GCM_SHA384";
        /// TLS 1.3.
        Tls13Chacha20Poly1305 = "TLS_CHACHA20_POLY1305_SHA256";
        /// TLS 1.2.
        EcdheEcdsaAes128Gcm = "TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256";
        /// TLS 1.2.
        EcdheEcdsaAes256Gcm = "TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384";
        /// TLS 1.2.
        EcdheEcdsaChacha20Poly1305 = "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256";
        /// TLS 1.2.
        EcdheRsaAes128Gcm = "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256";
        /// TLS 1.2.
        EcdheRsaAes256Gcm = "TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384";
        /// TLS 1.2.
        EcdheRsaChacha20Poly1305 = "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256";
    }
}

words! {
    /// A group for the key exchange of TLS.
    pub enum Curve {
        /// X25519.
        X25519 = "x25519";
        /// secp256r1.
        P256 = "curveP256" | "P-256" | "secp256r1";
        /// secp384r1.
        P384 = "curveP384" | "P-384" | "secp384r1";
        /// X25519 with ML-KEM-768.
        X25519MlKem768 = "X25519MLKEM768";
        /// secp256r1 with ML-KEM-768.
        Secp256r1MlKem768 = "SecP256r1MLKEM768";
    }
    other {
        LaterError "curveP521": "the group secp521r1";
        LaterError "SecP384r1MLKEM1024": "the group SecP384r1MLKEM1024";
        Gone "X25519Kyber768Draft00": "write X25519MLKEM768";
    }
}

object! {
    /// TLS.
    pub(crate) struct TlsSettings: "streamSettings.tlsSettings" {
        /// The name the server must prove to have. Empty: the address dialled.
        server_name: At<String> = "serverName", default "\"\"";
        /// Application protocols to offer or accept, best first. Empty: h2 and http/1.1; over ws and httpupgrade
        /// http/1.1; over grpc and http h2, which is one of them there in any case.
        alpn: Texts = "alpn";
        /// The lowest version to speak. TLS 1.0 and 1.1 are never spoken.
        min_version: Option<At<TlsVersion>> = "minVersion";
        /// The highest version to speak.
        max_version: Option<At<TlsVersion>> = "maxVersion";
        /// Cipher suites by IANA name, best first, with colons between them. A version of which none is named keeps all of
        /// its own.
        cipher_suites: At<String> = "cipherSuites", default "\"\"";
        /// Groups for the key exchange, best first. Empty: the library's choice.
        curves: Curves = "curvePreferences";
        /// Certificates to show, or to trust.
        certificates: Vec<Certificate> = "certificates";
        /// Refuse clients that ask for a name no certificate has.
        reject_unknown_sni: At<bool> = "rejectUnknownSni", default "false";
        /// Resume earlier sessions.
        session_resumption: bool = "enableSessionResumption" | "sessionTicket", default "false";
        /// Trust the certificates given here only, not the system's.
        disable_system_root: At<bool> = "disableSystemRoot", default "false";
        /// The browser whose hello to imitate. Recognised; our library's own hello is sent.
        fingerprint: At<String> = "fingerprint", default "\"\"";
        /// SHA-256 of certificates, in hex: the server's certificate, or one of its chain, must be one of them.
        pinned_certificates: At<Texts> = "pinnedPeerCertSha256", default "[]";
        /// SHA-256 over the hashes of the chain, in base64: the server's chain must be one of them.
        pinned_chains: At<Texts> = "pinnedPeerCertificateChainSha256", default "[]";
        /// SHA-256 of public keys, in base64: one of the server's chain must be one of them.
        pinned_public_keys: At<Texts> = "pinnedPeerCertificatePublicKeySha256", default "[]";
        /// Names of which the server's certificate must have one, in place of `serverName`.
        verify_names: At<Texts> = "verifyPeerCertByName" | "verifyPeerCertInNames", default "[]";
        /// Require a certificate of each client, from an authority listed with the usage `verifyclient`.
        verify_client: At<bool> = "verifyClientCertificate", default "false";
        /// The file to add session secrets to, for reading captures.
        key_log: At<String> = "masterKeyLog", default "\"\"";
        /// Do not check the server's certificate.
        allow_insecure: Option<At<bool>> = "allowInsecure";
    }
    other {
        LaterError "echServerKeys": "encrypted client hello (`echServerKeys`)";
        LaterError "echConfigList": "encrypted client hello (`echConfigList`)";
        LaterError "echConfig": "encrypted client hello (`echConfig`)";
        LaterError "echDohServer": "encrypted client hello (`echDohServer`)";
        LaterError "echForceQuery": "encrypted client hello (`echForceQuery`)";
        LaterError "echSockopt": "encrypted client hello (`echSockopt`)";
        Accepted "show": "";
        Accepted "preferServerCipherSuites": "";
        Accepted "disableSessionResumption": "None are resumed anyway, unless `enableSessionResumption` is set.";
    }
}

/// A list of groups.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Curves(
    /// The groups, best first.
    pub Vec<Curve>,
);

impl Decode for Curves {
    fn kind() -> Kind {
        Kind::List(Box::new(Curve::kind()))
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let names = Texts::decode(value, cx)?.0;
        let wanted = names.len();
        let one = |name: At<String>| {
            let value = Value {
                at: name.at,
                data: Data::String(name.value),
            };
            Curve::decode(value, &mut *cx)
        };
        let curves: Vec<Curve> = names.into_iter().filter_map(one).collect();
        (curves.len() == wanted).then_some(Curves(curves))
    }
}

/// TLS, ready to be used.
#[derive(Clone, Debug, PartialEq)]
pub struct Tls {
    /// The name the server must prove to have. `None`: the address dialled.
    pub server_name: Option<String>,
    /// Application protocols, best first.
    pub alpn: Vec<String>,
    /// The lowest version, TLS 1.2 or 1.3.
    pub min_version: TlsVersion,
    /// The highest version, TLS 1.2 or 1.3.
    pub max_version: TlsVersion,
    /// Cipher suites, best first. Empty: the library's choice.
    pub cipher_suites: Vec<CipherSuite>,
    /// Groups for the key exchange, best first. Empty: the library's choice.
    pub curves: Vec<Curve>,
    /// Certificates to show or to trust.
    pub certificates: Vec<Certificate>,
    /// Refuse clients that ask for a name no certificate has.
    pub reject_unknown_sni: bool,
    /// Resume earlier sessions.
    pub session_resumption: bool,
    /// Do not trust the system's certificates.
    pub disable_system_root: bool,
    /// The browser whose hello to imitate, as it was written. Empty: none was named.
    pub fingerprint: String,
    /// SHA-256 of certificates, one of which must be in the server's chain. Empty: no such check.
    pub pinned_certificates: Vec<[u8; 32]>,
    /// SHA-256 over the hashes of the chain. Empty: no such check.
    pub pinned_chains: Vec<[u8; 32]>,
    /// SHA-256 of public keys, one of which must be in the server's chain. Empty: no such check.
    pub pinned_public_keys: Vec<[u8; 32]>,
    /// Names of which the server's certificate must have one. Empty: `server_name`.
    pub verify_names: Vec<String>,
    /// Require a certificate of each client.
    pub verify_client: bool,
    /// The file to write session secrets to.
    pub key_log: Option<PathBuf>,
    /// Do not check the server's certificate.
    pub allow_insecure: bool,
    /// Keys that are set and mean something to clients only.
    pub(crate) of_clients: Vec<(&'static str, Position)>,
    /// Keys that are set and mean something to servers only.
    pub(crate) of_servers: Vec<(&'static str, Position)>,
}

impl FromKeys for Tls {
    type Keys = TlsSettings;

    fn from_keys(s: TlsSettings, _: Position, cx: &mut Cx<'_>) -> Option<Self> {
        let (min_version, max_version) = versions(&s, cx)?;
        let cipher_suites = cipher_suites(&s.cipher_suites, cx)?;
        if !s.fingerprint.is_empty() {
            let text = "the fingerprint is noted but not imitated; the hello is that of our TLS library";
            cx.warn_in("fingerprint", s.fingerprint.at, text, "");
        }
        if let Some(insecure) = s.allow_insecure.filter(|insecure| insecure.value) {
            let text = "the server's certificate will not be checked; anyone on the way can read and change everything";
            let hint = "pin the certificate with `pinnedPeerCertSha256` instead";
            cx.warn_in("allowInsecure", insecure.at, text, hint);
        }
        if !s.key_log.is_empty() {
            let text = "session secrets are written to this file: whoever has it can read the captured connections";
            let hint = "take it out when you have what you need";
            cx.warn_in("masterKeyLog", s.key_log.at, text, hint);
        }
        let insecure_at = s
            .allow_insecure
            .filter(|insecure| insecure.value)
            .map(|insecure| insecure.at);
        let lists = [
            ("pinnedPeerCertSha256", &s.pinned_certificates),
            ("pinnedPeerCertificateChainSha256", &s.pinned_chains),
            ("pinnedPeerCertificatePublicKeySha256", &s.pinned_public_keys),
            ("verifyPeerCertByName", &s.verify_names),
        ];
        let of_clients = [
            ("serverName", !s.server_name.is_empty(), s.server_name.at),
            ("fingerprint", !s.fingerprint.is_empty(), s.fingerprint.at),
            (
                "disableSystemRoot",
                s.disable_system_root.value,
                s.disable_system_root.at,
            ),
            ("allowInsecure", insecure_at.is_some(), insecure_at.unwrap_or_default()),
        ]
        .into_iter()
        .chain(lists.map(|(key, list)| (key, !list.is_empty(), list.at)))
        .collect::<Vec<_>>();
        let of_servers = [
            ("rejectUnknownSni", s.reject_unknown_sni.value, s.reject_unknown_sni.at),
            ("verifyClientCertificate", s.verify_client.value, s.verify_client.at),
        ];
        // Authorities for the other end's certificate have a side as well.
        let set = |keys: &[(&'static str, bool, Position)], usage: CertificateUsage| {
            let set = keys.iter().filter(|(_, set, _)| *set).map(|(key, _, at)| (*key, *at));
            let certificates = s.certificates.iter().filter(|one| one.usage == usage);
            set.chain(certificates.map(|one| ("certificates", one.at)))
                .collect::<Vec<_>>()
        };
        let of_clients = set(&of_clients, CertificateUsage::Verify);
        let of_servers = set(&of_servers, CertificateUsage::VerifyClient);
        let none_if_empty = |text: String| (!text.is_empty()).then_some(text);
        let pinned_certificates = digests("pinnedPeerCertSha256", &s.pinned_certificates, hex32, cx);
        let pinned_chains = digests("pinnedPeerCertificateChainSha256", &s.pinned_chains, base64_32, cx);
        let keys = digests(
            "pinnedPeerCertificatePublicKeySha256",
            &s.pinned_public_keys,
            base64_32,
            cx,
        );
        Some(Tls {
            server_name: none_if_empty(s.server_name.value),
            alpn: s.alpn.iter().map(str::to_owned).collect(),
            min_version,
            max_version,
            cipher_suites,
            curves: s.curves.0,
            certificates: s.certificates,
            reject_unknown_sni: s.reject_unknown_sni.value,
            session_resumption: s.session_resumption,
            disable_system_root: s.disable_system_root.value,
            fingerprint: s.fingerprint.value,
            pinned_certificates: pinned_certificates?,
            pinned_chains: pinned_chains?,
            pinned_public_keys: keys?,
            verify_names: s.verify_names.iter().map(str::to_owned).collect(),
            verify_client: s.verify_client.value,
            key_log: none_if_empty(s.key_log.value).map(Into::into),
            allow_insecure: insecure_at.is_some(),
            of_clients,
            of_servers,
        })
    }
}

/// The settings of TLS, which are read only where it is used.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct UnreadTls(pub(crate) Value);

impl Decode for UnreadTls {
    fn kind() -> Kind {
        Tls::kind()
    }

    fn decode(value: Value, _: &mut Cx<'_>) -> Option<Self> {
        Some(UnreadTls(value))
    }
}

fn versions(s: &TlsSettings, cx: &mut Cx<'_>) -> Option<(TlsVersion, TlsVersion)> {
    let mut min = TlsVersion::V12;
    if let Some(asked) = s.min_version {
        if asked.value < TlsVersion::V12 {
            let text = format!("TLS {} is never spoken; 1.2 is the lowest version here", asked.as_str());
            cx.warn_in("minVersion", asked.at, text, "write \"1.2\"");
        }
        min = min.max(asked.value);
    }
    let max = s.max_version.map_or(TlsVersion::V13, |asked| asked.value);
    if max < min {
        let at = s
            .max_version
            .or(s.min_version)
            .map(|asked| asked.at)
            .unwrap_or_default();
        let text = format!("no version is left between TLS {} and {}", min.as_str(), max.as_str());
        cx.error_in("maxVersion", at, text, "1.2 and 1.3 are spoken");
        return None;
    }
    Some((min, max))
}

fn cipher_suites(list: &At<String>, cx: &mut Cx<'_>) -> Option<Vec<CipherSuite>> {
    let names = || list.split(':').map(str::trim).filter(|name| !name.is_empty());
    let mut suites = Vec::new();
    for name in names() {
        let known = CipherSuite::WORDS
            .iter()
            .find(|(_, words)| words.iter().any(|w| w.eq_ignore_ascii_case(name)));
        match known {
            Some((suite, _)) => suites.push(*suite),
            None => {
                let text = format!("the cipher suite {} is not spoken here and left out", quoted(name));
                cx.warn_in("cipherSuites", list.at, text, "");
            }
        }
    }
    if suites.is_empty() && names().next().is_some() {
        let hint = "name at least one AEAD suite of TLS 1.2 or 1.3";
        cx.error_in("cipherSuites", list.at, "no cipher suite is left", hint);
        return None;
    }
    Some(suites)
}

fn digests(
    key: &str,
    list: &At<Texts>,
    decode: fn(&str) -> Option<[u8; 32]>,
    cx: &mut Cx<'_>,
) -> Option<Vec<[u8; 32]>> {
    let mut digests = Vec::new();
    for text in &list.0 {
        match decode(text.trim()) {
            Some(digest) => digests.push(digest),
            None => {
                let text_is = format!("{} is not the 32 bytes of a SHA-256", quoted(text));
                cx.error_in(key, text.at, text_is, "");
                return None;
            }
        }
    }
    Some(digests)
}

/// What is wrong about the certificates of an inbound.
pub(crate) fn check_certificates(tls: &Tls, stream: Position, cx: &mut Cx<'_>) {
    cx.within("tlsSettings", |cx| {
        let has = |usage| tls.certificates.iter().any(|c| c.usage == usage);
        if !has(CertificateUsage::Encipherment) {
            let hint = "list one under `tlsSettings.certificates`, with `certificateFile` and `keyFile`";
            cx.error(stream, "an inbound with TLS needs a certificate", hint);
        }
        if tls.verify_client && !has(CertificateUsage::VerifyClient) {
            let at = tls.of_servers.iter().find(|(key, _)| *key == "verifyClientCertificate");
            let at = at.map_or(stream, |(_, at)| *at);
            let text = "no client could prove itself: there is no authority for clients' certificates";
            let hint = "list it under `certificates` with \"usage\": \"verifyclient\"";
            cx.error_in("verifyClientCertificate", at, text, hint);
        }
    });
}

/// Reads 64 hexadecimal digits, with or without colons between the bytes.
pub(crate) fn hex32(text: &str) -> Option<[u8; 32]> {
    let digits: Vec<u8> = text.bytes().filter(|b| *b != b':').collect();
    if digits.len() != 64 {
        return None;
    }
    let mut out = [0; 32];
    for (byte, pair) in out.iter_mut().zip(digits.chunks_exact(2)) {
        let [high, low] = [pair[0], pair[1]].map(|d| char::from(d).to_digit(16));
        *byte = u8::try_from(high? << 4 | low?).ok()?;
    }
    Some(out)
}

/// Reads the base64 of 32 bytes.
fn base64_32(text: &str) -> Option<[u8; 32]> {
    STANDARD.decode(text).ok()?.try_into().ok()
}
