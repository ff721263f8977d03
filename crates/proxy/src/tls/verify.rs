//! How a server's certificate is judged when not by the usual rules.

use std::fmt;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme};
use sealway_v2ray::text::hex;
use sha2::{Digest, Sha256};
use webpki::{EndEntityCert, KeyUsage, VerifiedPath};

/// What a server must show.
#[derive(Debug)]
pub(crate) enum Trust {
    /// A certificate for one of `names` (for the dialled name if there are none) from an authority we trust.
    Chain {
        usual: Arc<WebPkiServerVerifier>,
        roots: Arc<RootCertStore>,
        names: Vec<ServerName<'static>>,
    },
    /// A certificate with one of these SHA-256 digests, whatever its name and authority; or one of an authority with
    /// such a digest that stands in the chain, for one of `names` as above.
    Pinned {
        pins: Vec<[u8; 32]>,
        names: Vec<ServerName<'static>>,
    },
    /// Anything. The connection is encrypted to whoever answers.
    Anyone,
}

/// Judges by a [`Trust`].
#[derive(Debug)]
pub(crate) struct Verifier {
    pub(crate) trust: Trust,
    /// Digests of whole chains, of which the server's must be one; empty: any.
    pub(crate) chains: Vec<[u8; 32]>,
    /// Digests of public keys, of which the chain must have one; empty: any.
    pub(crate) keys: Vec<[u8; 32]>,
    pub(crate) provider: Arc<CryptoProvider>,
}

fn digest(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// Why a certificate was refused, for our own log.
#[derive(Debug)]
struct Refused(String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Refused {}

fn refused(why: String) -> Error {
    CertificateError::Other(OtherError(Arc::new(Refused(why)))).into()
}

fn base64(digest: &[u8; 32]) -> String {
    STANDARD.encode(digest)
}

/// What was shown is none of what was pinned.
fn differs(what: &str, shown: &[u8; 32], pinned: &[[u8; 32]], text: fn(&[u8; 32]) -> String) -> Error {
    let pinned: Vec<String> = pinned.iter().map(text).collect();
    refused(format!(
        "{what} has the SHA-256 {}, pinned is {}",
        text(shown),
        pinned.join(" or ")
    ))
}

/// Runs `check` for the first of `names` that it likes, or for the dialled name if there are none.
fn any_name(
    names: &[ServerName<'static>],
    dialled: &ServerName<'_>,
    check: impl Fn(&ServerName<'_>) -> Result<ServerCertVerified, Error>,
) -> Result<ServerCertVerified, Error> {
    if names.is_empty() {
        return check(dialled);
    }
    let mut last = Err(CertificateError::NotValidForName.into());
    for name in names {
        last = check(name);
        if last.is_ok() {
            break;
        }
    }
    last
}

/// One digest for a chain of certificates as DER, the server's own first, as V2Ray has it.
pub fn chain_digest<'c>(mut chain: impl Iterator<Item = &'c [u8]>) -> [u8; 32] {
    let first = chain.next().map(digest).unwrap_or_default();
    chain.fold(first, |so_far, one| digest(&[so_far, digest(one)].concat()))
}

impl Verifier {
    /// The chain has a pinned public key. Certificates that are shown and not needed do not count: anyone can show them.
    fn has_pinned_key(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<bool, Error> {
        let unusable = |_| Error::from(CertificateError::BadEncoding);
        let own = EndEntityCert::try_from(end_entity).map_err(unusable)?;
        let is_pinned = |key: &[u8]| self.keys.contains(&digest(key));
        if is_pinned(&own.subject_public_key_info()) {
            return Ok(true);
        }
        let Trust::Chain { roots, .. } = &self.trust else {
            return Ok(false);
        };
        let on_the_way = |path: &VerifiedPath<'_>| {
            let mut between = path.intermediate_certificates();
            let found = between.any(|one| is_pinned(&one.subject_public_key_info()))
                || is_pinned(&sequence(&path.anchor().subject_public_key_info));
            found.then_some(()).ok_or(webpki::Error::UnknownIssuer)
        };
        let found = own.verify_for_usage(
            self.provider.signature_verification_algorithms.all,
            &roots.roots,
            intermediates,
            now,
            KeyUsage::server_auth(),
            None,
            Some(&on_the_way),
        );
        Ok(found.is_ok())
    }
}

/// Content with the tag and length of an ASN.1 sequence before it (X.690 section 8.1).
fn sequence(content: &[u8]) -> Vec<u8> {
    let len = content.len().to_be_bytes();
    let len = &len[len.iter().take_while(|byte| **byte == 0).count()..];
    let mut out = vec![0x30];
    if content.len() >= 0x80 {
        // At most eight bytes of length.
        out.push(0x80 | len.len() as u8);
    }
    out.extend_from_slice(if content.is_empty() { &[0] } else { len });
    out.extend_from_slice(content);
    out
}

impl ServerCertVerifier for Verifier {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        match &self.trust {
            Trust::Anyone => {}
            Trust::Pinned { pins, names } => {
                // The handshake proves possession of the first certificate's key only: any other is worth what it signed.
                if !pins.contains(&digest(end_entity)) {
                    let pinned = intermediates.iter().find(|one| pins.contains(&digest(one)));
                    let mut roots = RootCertStore::empty();
                    let differs = || {
                        differs("the server's certificate", &digest(end_entity), pins, |digest| {
                            hex(digest)
                        })
                    };
                    roots.add(pinned.ok_or_else(differs)?.clone().into_owned())?;
                    let usual = WebPkiServerVerifier::builder_with_provider(roots.into(), Arc::clone(&self.provider))
                        .build()
                        .map_err(|error| refused(format!("the pinned certificate cannot be an authority: {error}")))?;
                    any_name(names, server_name, |name| {
                        usual.verify_server_cert(end_entity, intermediates, name, ocsp_response, now)
                    })?;
                }
            }
            Trust::Chain { usual, names, .. } => {
                any_name(names, server_name, |name| {
                    usual.verify_server_cert(end_entity, intermediates, name, ocsp_response, now)
                })?;
            }
        }
        let chain = std::iter::once(end_entity).chain(intermediates).map(|one| one.as_ref());
        let chain = chain_digest(chain);
        if !self.chains.is_empty() && !self.chains.contains(&chain) {
            return Err(differs("the server's chain", &chain, &self.chains, base64));
        }
        if !self.keys.is_empty() && !self.has_pinned_key(end_entity, intermediates, now)? {
            let own = EndEntityCert::try_from(end_entity).map_err(|_| Error::from(CertificateError::BadEncoding))?;
            let own = digest(&own.subject_public_key_info());
            return Err(differs(
                "the public key of the server's certificate",
                &own,
                &self.keys,
                base64,
            ));
        }
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judge(trust: Trust, chains: Vec<[u8; 32]>, keys: Vec<[u8; 32]>, ca: bool) -> (String, Vec<u8>) {
        let mut wanted = rcgen::CertificateParams::new(["server.example".to_owned()]).unwrap();
        if ca {
            wanted.is_ca = rcgen::IsCa::Ca(rcgen::BasicConstraints::Unconstrained);
        }
        let made = wanted.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap();
        let verifier = Verifier {
            trust,
            chains,
            keys,
            provider: Arc::new(rustls::crypto::aws_lc_rs::default_provider()),
        };
        let name = ServerName::try_from("server.example").unwrap();
        let judged = verifier.verify_server_cert(made.der(), &[], &name, &[], UnixTime::now());
        (crate::Error::from(judged.unwrap_err()).to_string(), made.der().to_vec())
    }

    fn chain() -> Trust {
        // Any authority but the server's own.
        let mut other = rcgen::CertificateParams::new(["other.example".to_owned()]).unwrap();
        other.distinguished_name.push(rcgen::DnType::CommonName, "another");
        let other = other.self_signed(&rcgen::KeyPair::generate().unwrap()).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(other.der().clone()).unwrap();
        let roots = Arc::new(roots);
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let usual = WebPkiServerVerifier::builder_with_provider(Arc::clone(&roots), provider);
        Trust::Chain {
            usual: usual.build().unwrap(),
            roots,
            names: vec![],
        }
    }

    #[test]
    fn a_wrong_pin_is_named_with_what_was_shown() {
        let pins = || Trust::Pinned {
            pins: vec![[0xab; 32]],
            names: vec![],
        };
        let (said, der) = judge(pins(), vec![], vec![], false);
        assert!(
            said.contains(&hex(&digest(&der))) && said.contains(&"ab".repeat(32)),
            "{said}"
        );
        let (said, der) = judge(Trust::Anyone, vec![[7; 32]], vec![], false);
        assert!(
            said.contains(&base64(&digest(&der))) && said.contains(&base64(&[7; 32])),
            "{said}"
        );
        let (said, _) = judge(Trust::Anyone, vec![], vec![[7; 32]], false);
        assert!(
            said.contains("public key") && said.contains(&base64(&[7; 32])),
            "{said}"
        );
    }

    #[test]
    fn a_certificate_that_signed_itself_is_told_what_to_do_about() {
        for ca in [false, true] {
            let (said, _) = judge(chain(), vec![], vec![], ca);
            assert!(
                said.contains("pin it") && said.contains("make it an authority"),
                "{ca}: {said}"
            );
            assert!(
                !said.contains("CaUsedAsEndEntity") && !said.contains("UnknownIssuer"),
                "{said}"
            );
        }
    }
}
