//! How a server's certificate is judged when not by the usual rules.

use std::sync::Arc;

use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, DigitallySignedStruct, Error, SignatureScheme};
use sha2::{Digest, Sha256};

/// What a server must show.
#[derive(Debug)]
pub(crate) enum Trust {
    /// A certificate for one of `names` (for the dialled name if there are none) from an authority we trust.
    Chain {
        usual: Arc<WebPkiServerVerifier>,
        names: Vec<ServerName<'static>>,
    },
    /// A certificate with one of these SHA-256 digests; names and authorities do not matter.
    Pinned(Vec<[u8; 32]>),
    /// Anything. The connection is encrypted to whoever answers.
    Anyone,
}

/// Judges by a [`Trust`].
#[derive(Debug)]
pub(crate) struct Verifier {
    pub(crate) trust: Trust,
    pub(crate) provider: Arc<CryptoProvider>,
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
            Trust::Anyone => Ok(ServerCertVerified::assertion()),
            Trust::Pinned(pins) => {
                // The handshake proves possession of the first certificate's key only, so the pin must name that one.
                let digest: [u8; 32] = Sha256::digest(end_entity).into();
                if pins.contains(&digest) {
                    Ok(ServerCertVerified::assertion())
                } else {
                    Err(CertificateError::ApplicationVerificationFailure.into())
                }
            }
            Trust::Chain { usual, names } if names.is_empty() => {
                usual.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now)
            }
            Trust::Chain { usual, names } => {
                let mut last = Err(CertificateError::NotValidForName.into());
                for name in names {
                    last = usual.verify_server_cert(end_entity, intermediates, name, ocsp_response, now);
                    if last.is_ok() {
                        break;
                    }
                }
                last
            }
        }
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
