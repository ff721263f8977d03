//! The certificate of a route: P-256, made for it, signed by an authority made for it.

use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, PKCS_ECDSA_P256_SHA256};

use crate::peer::proc;

/// The server's name in its certificate and in the client's hello. The domain is reserved for tests.
pub(super) const SERVER_NAME: &str = "path.sealway.test";

/// Names of the files.
pub(super) const AUTHORITY: &str = "authority.crt";
pub(super) const CERTIFICATE: &str = "server.crt";
pub(super) const KEY: &str = "server.key";

/// Makes authority, certificate and key in `folder`, readable by nobody else.
///
/// # Errors
/// What went wrong, for the reader.
pub(super) fn make(folder: &Path) -> Result<(), String> {
    let (authority, certificate, key) = pems().map_err(|error| error.to_string())?;
    for (name, text) in [(AUTHORITY, authority), (CERTIFICATE, certificate), (KEY, key)] {
        proc::write(&folder.join(name), &text).map_err(|error| format!("cannot write {name}: {error}"))?;
    }
    Ok(())
}

/// Authority, certificate with its chain, and key.
fn pems() -> Result<(String, String, String), rcgen::Error> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(DnType::CommonName, "Sealway lab");
    let authority_key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let authority = params.self_signed(&authority_key)?.pem();
    let issuer = Issuer::new(params, authority_key);
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256)?;
    let mut leaf = CertificateParams::new(vec![SERVER_NAME.to_owned()])?;
    leaf.distinguished_name.push(DnType::CommonName, SERVER_NAME);
    let certificate = leaf.signed_by(&key, &issuer)?.pem();
    Ok((authority, certificate, key.serialize_pem()))
}
