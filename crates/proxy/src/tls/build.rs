//! TLS settings turned into what `rustls` takes.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rustls::client::{Resumption, WebPkiServerVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::ServerName;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::{ClientConfig, KeyLog, RootCertStore, ServerConfig, SupportedProtocolVersion};

use crate::Error;
use crate::settings::{Certificate, ClientTls, Pem, ServerTls, Versions};
use crate::tls::certs::{Certificates, Source, certificates};
use crate::tls::provider::{KeyFile, provider};
use crate::tls::verify::{Trust, Verifier};

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

/// Judges the certificates of sites as the system does.
pub(crate) fn system_verifier(place: &str, provider: &Arc<CryptoProvider>) -> Result<Arc<WebPkiServerVerifier>, Error> {
    WebPkiServerVerifier::builder_with_provider(system_roots(place)?, Arc::clone(provider))
        .build()
        .map_err(|error| Error::config(place, format!("no certificate authority to trust: {error}")))
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

/// Certificates to show, each with its place among those of the configuration.
fn sources(place: &str, own: &[Certificate], entries: &[usize]) -> Vec<Source> {
    let listed = own.iter().enumerate().map(|(at, certificate)| Source {
        place: format!("{place}.certificates[{}]", entries.get(at).unwrap_or(&at)),
        certificate: certificate.certificate.clone(),
        key: certificate.key.clone(),
        once: certificate.once,
    });
    listed.collect()
}

/// Adds the authorities of PEM text to `roots`.
fn trust(place: &str, authorities: &[Pem], roots: &mut RootCertStore) -> Result<(), Error> {
    let place = format!("{place}.certificates");
    for authority in authorities {
        for certificate in certificates(&place, authority)? {
            roots
                .add(certificate)
                .map_err(|error| Error::config(&place, format!("not a certificate authority: {error}")))?;
        }
    }
    Ok(())
}

fn key_log(place: &str, path: &Option<PathBuf>) -> Result<Option<Arc<dyn KeyLog>>, Error> {
    let opened = open_key_log(place, path)?;
    Ok(opened.map(|opened| Arc::new(opened) as Arc<_>))
}

fn open_key_log(place: &str, path: &Option<PathBuf>) -> Result<Option<KeyFile>, Error> {
    let Some(path) = path else { return Ok(None) };
    let opened = KeyFile::open(path).map_err(|error| {
        let what = format!("{} cannot be opened: {error}", path.display());
        Error::config(format!("{place}.masterKeyLog"), what)
    })?;
    Ok(Some(opened))
}

/// The server's side. The certificates are returned too, to load them again later.
pub(crate) fn server(place: &str, tls: &ServerTls) -> Result<(Arc<ServerConfig>, Arc<Certificates>), Error> {
    let place = &format!("{place}.tlsSettings");
    if tls.certificates.is_empty() {
        return Err(Error::config(place, "TLS needs a certificate: add one to certificates"));
    }
    let provider = provider(place, &tls.cipher_suites, &tls.groups)?;
    let sources = sources(place, &tls.certificates, &tls.entries);
    let certificates = Certificates::load(sources, tls.reject_unknown_sni, Arc::clone(&provider))?;
    let certificates = Arc::new(certificates);
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions(place, tls.versions)?)?;
    let builder = if tls.client_authorities.is_empty() {
        builder.with_no_client_auth()
    } else {
        let mut roots = RootCertStore::empty();
        trust(place, &tls.client_authorities, &mut roots)?;
        let verifier = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build();
        builder.with_client_cert_verifier(
            verifier.map_err(|error| Error::config(format!("{place}.verifyClientCertificate"), error.to_string()))?,
        )
    };
    let mut config = builder.with_cert_resolver(Arc::clone(&certificates) as Arc<_>);
    config.alpn_protocols = alpn(&tls.alpn);
    config.enable_secret_extraction = true;
    if let Some(log) = key_log(place, &tls.key_log)? {
        config.key_log = log;
    }
    if !tls.resumption {
        config.send_tls13_tickets = 0;
        config.session_storage = Arc::new(NoServerSessionStorage {});
    }
    Ok((Arc::new(config), certificates))
}

/// Everything that [`server`] would refuse, not only the first of it. Makes no file.
pub(crate) fn server_problems(place: &str, tls: &ServerTls) -> Vec<Error> {
    let at = format!("{place}.tlsSettings");
    let mut found = own_problems(&at, &tls.certificates, &tls.entries, &tls.key_log);
    let quiet = ServerTls {
        key_log: None,
        ..tls.clone()
    };
    if found.is_empty() {
        found.extend(server(place, &quiet).err());
    }
    found
}

/// The same for [`client`].
pub(crate) fn client_problems(place: &str, tls: &ClientTls) -> Vec<Error> {
    let at = format!("{place}.tlsSettings");
    let mut found = own_problems(&at, &tls.certificates, &tls.entries, &tls.key_log);
    let quiet = ClientTls {
        key_log: None,
        ..tls.clone()
    };
    if found.is_empty() {
        found.extend(client(place, &quiet).err());
    }
    found
}

/// What is wrong with each certificate that this end shows, and with the key log.
fn own_problems(place: &str, own: &[Certificate], entries: &[usize], key_log: &Option<PathBuf>) -> Vec<Error> {
    let sources = sources(place, own, entries);
    let mut found: Vec<Error> = sources.iter().flat_map(Source::problems).collect();
    found.extend(key_log_problem(place, key_log));
    found
}

/// What is wrong with a key log.
pub(crate) fn key_log_problem(place: &str, key_log: &Option<PathBuf>) -> Option<Error> {
    let path = key_log.as_ref()?;
    let error = crate::files::can_append(path).err()?;
    let what = format!("{} cannot be opened: {error}", path.display());
    Some(Error::config(format!("{place}.masterKeyLog"), what))
}

/// The same for handshakes of our own.
pub(crate) fn own_key_log(
    place: &str,
    path: &Option<PathBuf>,
) -> Result<Option<Arc<dyn sealway_tls::schedule::KeyLog>>, Error> {
    let opened = open_key_log(place, path)?;
    Ok(opened.map(|opened| Arc::new(opened) as Arc<_>))
}

/// What the client's side believes.
fn trusted(place: &str, tls: &ClientTls, provider: &Arc<CryptoProvider>) -> Result<Trust, Error> {
    let names: Result<Vec<_>, _> = tls.verify_names.iter().map(|name| server_name(place, name)).collect();
    if !tls.pinned.is_empty() {
        return Ok(Trust::Pinned {
            pins: tls.pinned.clone(),
            names: names?,
        });
    }
    if tls.allow_insecure {
        return Ok(Trust::Anyone);
    }
    let mut roots = if tls.no_system_roots {
        RootCertStore::empty()
    } else {
        RootCertStore::clone(&*system_roots(place)?)
    };
    trust(place, &tls.authorities, &mut roots)?;
    let roots = Arc::new(roots);
    let usual = WebPkiServerVerifier::builder_with_provider(Arc::clone(&roots), Arc::clone(provider))
        .build()
        .map_err(|error| Error::config(place, format!("no certificate authority to trust: {error}")))?;
    Ok(Trust::Chain {
        usual,
        roots,
        names: names?,
    })
}

/// The client's side.
pub(crate) fn client(place: &str, tls: &ClientTls) -> Result<Arc<ClientConfig>, Error> {
    let place = &format!("{place}.tlsSettings");
    let provider = provider(place, &tls.cipher_suites, &tls.groups)?;
    let verifier = Verifier {
        trust: trusted(place, tls, &provider)?,
        chains: tls.pinned_chains.clone(),
        keys: tls.pinned_keys.clone(),
        provider: Arc::clone(&provider),
    };
    let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
        .with_protocol_versions(&versions(place, tls.versions)?)?
        .dangerous()
        .with_custom_certificate_verifier(Arc::new(verifier));
    let mut config = if tls.certificates.is_empty() {
        builder.with_no_client_auth()
    } else {
        let own = Certificates::load(sources(place, &tls.certificates, &tls.entries), false, provider)?;
        builder.with_client_cert_resolver(Arc::new(own))
    };
    config.alpn_protocols = alpn(&tls.alpn);
    config.enable_secret_extraction = true;
    if let Some(log) = key_log(place, &tls.key_log)? {
        config.key_log = log;
    }
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
