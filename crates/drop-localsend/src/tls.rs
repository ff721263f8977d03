//! TLS as LocalSend wants it: certificates that nobody signed, known by their SHA-256.
//!
//! Both verifiers leave names, dates and issuers alone and check what counts: that the other end has the key of the certificate it
//! shows, and, where one is pinned, that it is that certificate. There is no resumption, since a resumed session asks no verifier.

use std::path::Path;
use std::sync::{Arc, Mutex};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{ClientConfig, Resumption};
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{NoServerSessionStorage, ServerConfig};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{
    CertificateError, CipherSuite, DigitallySignedStruct, DistinguishedName, SignatureScheme, SupportedCipherSuite,
};
use sealway_aead::cpu::Cpu;
use sealway_drop::identity::{self, Kept};
use sealway_drop::lock;
use zeroize::Zeroizing;

use crate::error::Error;
use crate::fingerprint::Fingerprint;

/// The file with certificate and key, beside the key of this machine.
const FILE: &str = "localsend_certificate.pem";
/// The subject of every LocalSend certificate.
const SUBJECT: &str = "LocalSend User";

/// The certificate of this end, and configurations with it.
pub(crate) struct Tls {
    provider: Arc<CryptoProvider>,
    key: Arc<SingleCertAndKey>,
    fingerprint: Fingerprint,
    server: Arc<ServerConfig>,
    kept: bool,
}

impl Tls {
    /// The certificate that is kept in this folder; on first use, and where there is no folder, a new one.
    ///
    /// # Errors
    /// If the file is not its owner's alone or is no certificate with its key.
    pub(crate) fn load_or_make(dir: Option<&Path>) -> Result<Tls, sealway_drop::Error> {
        let fresh = || certificate().map_err(|error| identity::Error::Unable(error.to_string()));
        let (pem, kept) = match dir {
            Some(dir) => Kept::at(dir, FILE).secret(fresh)?,
            None => (fresh()?, false),
        };
        Ok(Tls::of(&pem, kept)?)
    }

    fn of(pem: &str, kept: bool) -> Result<Tls, Error> {
        let wrong = |error: &dyn std::fmt::Display| Error::Certificate(format!("{FILE}: {error}"));
        let certificate = CertificateDer::from_pem_slice(pem.as_bytes()).map_err(|error| wrong(&error))?;
        let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(|error| wrong(&error))?;
        let fingerprint = Fingerprint::of(&certificate);
        let provider = Arc::new(provider());
        let key = provider
            .key_provider
            .load_private_key(key)
            .map_err(|error| wrong(&error))?;
        let certified = CertifiedKey::new(vec![certificate], key);
        certified.keys_match().map_err(|error| wrong(&error))?;
        let key = Arc::new(SingleCertAndKey::from(certified));
        let asks = Arc::new(Asks(provider.signature_verification_algorithms));
        let mut server = ServerConfig::builder_with_provider(provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| wrong(&error))?
            .with_client_cert_verifier(asks)
            .with_cert_resolver(key.clone());
        server.session_storage = Arc::new(NoServerSessionStorage {});
        server.send_tls13_tickets = 0;
        server.alpn_protocols = vec![b"http/1.1".to_vec()];
        server.enable_secret_extraction = true;
        Ok(Tls {
            provider,
            key,
            fingerprint,
            server: Arc::new(server),
            kept,
        })
    }

    /// What this end is known by.
    pub(crate) fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Whether the certificate is there the next time.
    pub(crate) fn is_kept(&self) -> bool {
        self.kept
    }

    pub(crate) fn server(&self) -> Arc<ServerConfig> {
        self.server.clone()
    }

    /// A configuration for one connection, and what it has seen of the other end if that fails.
    pub(crate) fn client(&self, pin: Option<Fingerprint>) -> Result<(Arc<ClientConfig>, Arc<Pinned>), Error> {
        let pinned = Arc::new(Pinned {
            pin,
            algorithms: self.provider.signature_verification_algorithms,
            seen: Mutex::new(None),
        });
        let mut client = ClientConfig::builder_with_provider(self.provider.clone())
            .with_safe_default_protocol_versions()
            .map_err(|error| Error::Certificate(error.to_string()))?
            .dangerous()
            .with_custom_certificate_verifier(pinned.clone())
            .with_client_cert_resolver(self.key.clone());
        client.resumption = Resumption::disabled();
        client.alpn_protocols = vec![b"http/1.1".to_vec()];
        client.enable_secret_extraction = true;
        Ok((Arc::new(client), pinned))
    }
}

/// A new certificate and its key: RSA-2048, as every version of the app knows it; valid from 1975 to 4096, as the app's own.
fn certificate() -> Result<Zeroizing<String>, rcgen::Error> {
    let key = rcgen::KeyPair::generate_rsa_for(&rcgen::PKCS_RSA_SHA256, rcgen::RsaKeySize::_2048)?;
    let mut params = rcgen::CertificateParams::default();
    params.distinguished_name = rcgen::DistinguishedName::new();
    params.distinguished_name.push(rcgen::DnType::CommonName, SUBJECT);
    let certificate = params.self_signed(&key)?.pem();
    let secret = Zeroizing::new(key.serialize_pem());
    let mut text = Zeroizing::new(String::with_capacity(certificate.len() + secret.len()));
    text.push_str(&certificate);
    text.push_str(&secret);
    Ok(text)
}

/// The library's, with AES-128-GCM first where the hardware has it: as strong as anything here needs, and the fastest.
fn provider() -> CryptoProvider {
    let mut provider = rustls::crypto::aws_lc_rs::default_provider();
    if Cpu::get().has_aes_gcm() {
        let first = |suite: &SupportedCipherSuite| suite.suite() != CipherSuite::TLS13_AES_128_GCM_SHA256;
        provider.cipher_suites.sort_by_key(first);
    }
    provider
}

/// The part of a verifier that is as in any TLS: that the other end has the key. Names the field with the algorithms.
macro_rules! signatures {
    ($algorithms:tt) => {
        fn verify_tls12_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            verify_tls12_signature(message, cert, dss, &self.$algorithms)
        }

        fn verify_tls13_signature(
            &self,
            message: &[u8],
            cert: &CertificateDer<'_>,
            dss: &DigitallySignedStruct,
        ) -> Result<HandshakeSignatureValid, rustls::Error> {
            verify_tls13_signature(message, cert, dss, &self.$algorithms)
        }

        fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
            self.$algorithms.supported_schemes()
        }
    };
}

/// What a client makes sure of.
#[derive(Debug)]
pub(crate) struct Pinned {
    pin: Option<Fingerprint>,
    algorithms: WebPkiSupportedAlgorithms,
    seen: Mutex<Option<Fingerprint>>,
}

impl Pinned {
    /// The certificate that the other end showed.
    pub(crate) fn seen(&self) -> Option<Fingerprint> {
        *lock(&self.seen)
    }

    /// Whether it is another one than was pinned.
    pub(crate) fn is_other(&self) -> bool {
        self.pin.is_some() && self.seen().is_some_and(|seen| Some(seen) != self.pin)
    }
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let found = Fingerprint::of(end_entity);
        *lock(&self.seen) = Some(found);
        match self.pin {
            Some(pin) if pin != found => Err(CertificateError::ApplicationVerificationFailure.into()),
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    signatures!(algorithms);
}

/// A server that asks for a certificate, does without, and takes any whose key the client has.
#[derive(Debug)]
struct Asks(WebPkiSupportedAlgorithms);

impl ClientCertVerifier for Asks {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &[]
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    signatures!(0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_certificate_is_made_once() {
        let dir = tempfile::tempdir().unwrap();
        let own = dir.path().join("own");
        let first = Tls::load_or_make(Some(&own)).unwrap();
        let again = Tls::load_or_make(Some(&own)).unwrap();
        assert_eq!(first.fingerprint(), again.fingerprint());
        assert!(again.is_kept());
        let other = Tls::load_or_make(None).unwrap();
        assert!(!other.is_kept() && other.fingerprint() != first.fingerprint());
        std::fs::write(own.join(FILE), "nothing").unwrap();
        assert!(Tls::load_or_make(Some(&own)).is_err());
    }
}
