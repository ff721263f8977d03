//! TLS settings turned into what `rustls` takes.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::ServerName;
use rustls::server::NoServerSessionStorage;
use rustls::{ClientConfig, RootCertStore, ServerConfig, SupportedProtocolVersion};

use crate::Error;
use crate::settings::{ClientTls, PemSource, ServerTls, Versions};
use crate::tls::certs::{Certificates, Pem, Source, certificates};
use crate::tls::verify::{Trust, Verifier};

static PROVIDER: LazyLock<Arc<CryptoProvider>> =
    LazyLock::new(|| Arc::new(rustls::crypto::aws_lc_rs::default_provider()));

/// The system's authorities, read once: there are some 140 files of them.
static SYSTEM_ROOTS: Mutex<Option<Arc<RootCertStore>>> = Mutex::new(None);

fn system_roots(place: &str) -> Result<Arc<RootCertStore>, Error> {
    let mut kept = SYSTEM_ROOTS.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(roots) = &*kept {
        return Ok(Arc::clone(roots));
    }
    let mut roots = RootCertStore::empty();
    let found = rustls_native_certs::load_native_certs();
    roots.add_parsable_certificates(found.certs);
    if roots.is_empty() {
        return Err(Error::config(
            place,
            "this system has no certificate authorities; install the package ca-certificates, or name one in certificates with usage verify",
        ));
    }
    Ok(Arc::clone(kept.insert(Arc::new(roots))))
}

fn versions(place: &str, versions: Versions) -> Result<Vec<&'static SupportedProtocolVersion>, Error> {
    let mut chosen = Vec::new();
    if versions.tls13 {
        chosen.push(&rustls::version::TLS13);
    }
    if versions.tls12 {
        chosen.push(&rustls::version::TLS12);
    }
    if chosen.is_empty() {
        return Err(Error::config(
            place,
            "no TLS version is left; 1.2 and 1.3 are supported",
        ));
    }
    Ok(chosen)
}

fn alpn(names: &[String]) -> Vec<Vec<u8>> {
    names.iter().map(|name| name.clone().into_bytes()).collect()
}

fn pem(source: &PemSource) -> Pem {
    match source {
        PemSource::File(path) => Pem::File(path.clone()),
        PemSource::Text(text) => Pem::Inline(text.clone()),
    }
}

/// The server's side. The certificates are returned too, to load them again later.
pub(crate) fn server(place: &str, tls: &ServerTls) -> Result<(Arc<ServerConfig>, Arc<Certificates>), Error> {
    if tls.certificates.is_empty() {
        return Err(Error::config(place, "TLS needs a certificate: add one to certificates"));
    }
    let sources = tls.certificates.iter().map(|certificate| Source {
        certificate: pem(&certificate.certificate),
        key: pem(&certificate.key),
        once: certificate.once,
    });
    let certificates = Certificates::load(sources.collect(), tls.reject_unknown_sni, Arc::clone(&PROVIDER))?;
    let certificates = Arc::new(certificates);
    let mut config = ServerConfig::builder_with_provider(Arc::clone(&PROVIDER))
        .with_protocol_versions(&versions(place, tls.versions)?)?
        .with_no_client_auth()
        .with_cert_resolver(Arc::clone(&certificates) as Arc<_>);
    config.alpn_protocols = alpn(&tls.alpn);
    config.enable_secret_extraction = true;
    if !tls.resumption {
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
    }
    Ok((Arc::new(config), certificates))
}

/// The client's side.
pub(crate) fn client(place: &str, tls: &ClientTls) -> Result<Arc<ClientConfig>, Error> {
    let trust = if tls.allow_insecure {
        tracing::warn!("{place}: allowInsecure: whoever answers is believed to be the server");
        Trust::Anyone
    } else if !tls.pinned.is_empty() {
        Trust::Pinned(tls.pinned.clone())
    } else {
        let mut roots = if tls.no_system_roots {
            RootCertStore::empty()
        } else {
            RootCertStore::clone(&*system_roots(place)?)
        };
        for authority in &tls.authorities {
            for certificate in certificates(&pem(authority))? {
                roots
                    .add(certificate)
                    .map_err(|error| Error::config(place, format!("not a certificate authority: {error}")))?;
            }
        }
        let usual = WebPkiServerVerifier::builder_with_provider(Arc::new(roots), Arc::clone(&PROVIDER))
            .build()
            .map_err(|error| Error::config(place, format!("no certificate authority to trust: {error}")))?;
        let names: Result<Vec<_>, _> = tls.verify_names.iter().map(|name| server_name(place, name)).collect();
        Trust::Chain { usual, names: names? }
    };
    let verifier = Verifier {
        trust,
        provider: Arc::clone(&PROVIDER),
    };
    let mut config = ClientConfig::builder_with_provider(Arc::clone(&PROVIDER))
        .with_protocol_versions(&versions(place, tls.versions)?)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier))
        .with_no_client_auth();
    config.alpn_protocols = alpn(&tls.alpn);
    config.enable_secret_extraction = true;
    if !tls.resumption {
        config.resumption = Resumption::disabled();
    }
    Ok(Arc::new(config))
}

/// A name or address to ask a server for.
pub(crate) fn server_name(place: &str, name: &str) -> Result<ServerName<'static>, Error> {
    ServerName::try_from(name.to_owned())
        .map_err(|_| Error::config(place, format!("{name:?} is no server name; set serverName")))
}
