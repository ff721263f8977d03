//! Server certificates: loading, choosing by name, loading again.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use rustls::SignatureScheme;
use rustls::client::ResolvesClientCert;
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use webpki::EndEntityCert;

use crate::Error;
use crate::settings::Pem;

fn read(pem: &Pem, place: &str) -> Result<Vec<u8>, Error> {
    match pem {
        Pem::File(path) => std::fs::read(path)
            .map_err(|error| Error::config(place, format!("{} cannot be read: {error}", path.display()))),
        Pem::Inline(text) => Ok(text.clone().into_bytes()),
    }
}

/// What it is called in messages.
fn name(pem: &Pem) -> String {
    match pem {
        Pem::File(path) => path.display().to_string(),
        Pem::Inline(_) => "the text".into(),
    }
}

/// The key it is configured by.
fn key(pem: &Pem, file: &'static str, text: &'static str) -> &'static str {
    match pem {
        Pem::File(_) => file,
        Pem::Inline(_) => text,
    }
}

/// One certificate and its key.
#[derive(Clone, Debug)]
pub(crate) struct Source {
    /// Where it is configured.
    pub(crate) place: String,
    pub(crate) certificate: Pem,
    pub(crate) key: Pem,
    /// Never read again.
    pub(crate) once: bool,
}

impl Source {
    /// Where certificate and key are configured.
    fn places(&self) -> (String, String) {
        let certificate = key(&self.certificate, "certificateFile", "certificate");
        let key = key(&self.key, "keyFile", "key");
        (format!("{}.{certificate}", self.place), format!("{}.{key}", self.place))
    }

    fn private_key(&self) -> Result<PrivateKeyDer<'static>, Error> {
        let (_, place) = self.places();
        PrivateKeyDer::from_pem_slice(&read(&self.key, &place)?).map_err(|error| {
            let what = format!("{} holds no usable private key: {error}", name(&self.key));
            Error::config(place, what)
        })
    }

    /// What is wrong with either, each for itself.
    pub(crate) fn problems(&self) -> Vec<Error> {
        let certificate = certificates(&self.places().0, &self.certificate).err();
        certificate.into_iter().chain(self.private_key().err()).collect()
    }
}

/// All certificates of PEM text.
pub(crate) fn certificates(place: &str, pem: &Pem) -> Result<Vec<CertificateDer<'static>>, Error> {
    let bytes = read(pem, place)?;
    let certificates: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&bytes).collect();
    match certificates {
        Ok(certificates) if !certificates.is_empty() => Ok(certificates),
        Ok(_) => Err(Error::config(
            place,
            format!("{} holds no certificate; PEM is expected", name(pem)),
        )),
        Err(error) => Err(Error::config(place, format!("{} is not PEM: {error}", name(pem)))),
    }
}

struct Loaded {
    key: Arc<CertifiedKey>,
    names: Vec<String>,
}

impl Loaded {
    fn load(source: &Source, provider: &CryptoProvider) -> Result<Loaded, Error> {
        let (place, key_place) = source.places();
        let chain = certificates(&place, &source.certificate)?;
        let key = source.private_key()?;
        let names = EndEntityCert::try_from(&chain[0])
            .map_err(|error| {
                let what = format!("{} is not a usable certificate: {error}", name(&source.certificate));
                Error::config(&place, what)
            })?
            .valid_dns_names()
            .map(str::to_ascii_lowercase)
            .collect();
        let key = CertifiedKey::from_der(chain, key, provider).map_err(|error| {
            let what = format!("{} does not fit the certificate: {error}", name(&source.key));
            Error::config(key_place, what)
        })?;
        Ok(Loaded {
            key: Arc::new(key),
            names,
        })
    }

    fn has(&self, name: &str) -> bool {
        self.names.iter().any(|own| own == name)
    }

    /// `*.example.org` stands for exactly one label (RFC 6125 section 6.4.3).
    fn covers(&self, name: &str) -> bool {
        let Some((_, parent)) = name.split_once('.') else {
            return false;
        };
        self.names.iter().any(|own| own.strip_prefix("*.") == Some(parent))
    }
}

/// What was loaded again, to be taken up or not.
pub(crate) struct Fresh(Vec<Arc<Loaded>>);

/// The certificates of one inbound.
pub(crate) struct Certificates {
    sources: Vec<Source>,
    provider: Arc<CryptoProvider>,
    loaded: ArcSwap<Vec<Arc<Loaded>>>,
    reject_unknown: bool,
}

impl Certificates {
    /// Loads all sources.
    pub(crate) fn load(
        sources: Vec<Source>,
        reject_unknown: bool,
        provider: Arc<CryptoProvider>,
    ) -> Result<Self, Error> {
        let loaded: Result<Vec<_>, _> = sources
            .iter()
            .map(|source| Loaded::load(source, &provider).map(Arc::new))
            .collect();
        Ok(Certificates {
            sources,
            provider,
            loaded: ArcSwap::from_pointee(loaded?),
            reject_unknown,
        })
    }

    /// Loads again what may have changed. What cannot be loaded stays as it was; its errors are returned.
    pub(crate) fn reload(&self) -> Vec<Error> {
        let (fresh, errors) = self.read_again(false);
        self.take_up(fresh);
        errors
    }

    /// Loads again what may have changed, and what is never looked at again only if `all` is. What cannot be loaded stays as it
    /// is, with an error.
    pub(crate) fn read_again(&self, all: bool) -> (Fresh, Vec<Error>) {
        let mut errors = Vec::new();
        let old = self.loaded.load();
        let fresh = self.sources.iter().zip(old.iter()).map(|(source, old)| {
            let inline = matches!((&source.certificate, &source.key), (Pem::Inline(_), Pem::Inline(_)));
            if inline || source.once && !all {
                return Arc::clone(old);
            }
            Loaded::load(source, &self.provider)
                .map(Arc::new)
                .unwrap_or_else(|error| {
                    errors.push(error);
                    Arc::clone(old)
                })
        });
        (Fresh(fresh.collect()), errors)
    }

    /// Shows what was loaded again from now on.
    pub(crate) fn take_up(&self, fresh: Fresh) {
        self.loaded.store(Arc::new(fresh.0));
    }

    /// Loads again what may have changed, time after time, until these certificates are gone. Must be called within a tokio
    /// runtime.
    pub(crate) fn keep_fresh(self: &Arc<Self>, period: Duration) {
        let own = Arc::downgrade(self);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(period).await;
                let Some(own) = own.upgrade() else { return };
                // Files are read where that may take its time.
                let errors = tokio::task::spawn_blocking(move || own.reload()).await;
                for error in errors.unwrap_or_default() {
                    tracing::warn!("certificate not loaded again, the old one stays: {error}");
                }
            }
        });
    }

    /// The certificate for a server name: exact, then wildcard, then the first unless unknown names are refused.
    fn choose(&self, name: Option<&str>) -> Option<Arc<CertifiedKey>> {
        let loaded = self.loaded.load();
        let first = loaded.first()?;
        let Some(name) = name.map(str::to_ascii_lowercase) else {
            return Some(Arc::clone(&first.key));
        };
        let by_name = loaded
            .iter()
            .find(|loaded| loaded.has(&name))
            .or_else(|| loaded.iter().find(|loaded| loaded.covers(&name)));
        match by_name {
            Some(found) => Some(Arc::clone(&found.key)),
            None if self.reject_unknown => None,
            None => Some(Arc::clone(&first.key)),
        }
    }
}

impl ResolvesServerCert for Certificates {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.choose(hello.server_name())
    }
}

/// As a client: the first certificate whose kind the server takes.
impl ResolvesClientCert for Certificates {
    fn resolve(&self, _: &[&[u8]], schemes: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
        let loaded = self.loaded.load();
        let fits = |loaded: &&Arc<Loaded>| loaded.key.key.choose_scheme(schemes).is_some();
        loaded.iter().find(fits).map(|loaded| Arc::clone(&loaded.key))
    }

    fn has_certs(&self) -> bool {
        !self.sources.is_empty()
    }
}

impl fmt::Debug for Certificates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Certificates({})", self.sources.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(names: &[&str]) -> (Source, Vec<u8>) {
        let names: Vec<String> = names.iter().map(|&name| name.into()).collect();
        let made = rcgen::generate_simple_self_signed(names).unwrap();
        let source = Source {
            place: String::new(),
            certificate: Pem::Inline(made.cert.pem()),
            key: Pem::Inline(made.signing_key.serialize_pem()),
            once: false,
        };
        (source, made.cert.der().to_vec())
    }

    fn provider() -> Arc<CryptoProvider> {
        Arc::new(rustls::crypto::aws_lc_rs::default_provider())
    }

    #[test]
    fn the_name_chooses() {
        let (a, a_der) = source(&["a.example", "*.b.example"]);
        let (b, b_der) = source(&["x.b.example"]);
        for reject in [false, true] {
            let all = Certificates::load(vec![a.clone(), b.clone()], reject, provider()).unwrap();
            let chosen = |name| all.choose(name).map(|key| key.cert[0].to_vec());
            assert_eq!(chosen(None), Some(a_der.clone()));
            assert_eq!(chosen(Some("A.example")), Some(a_der.clone()));
            assert_eq!(
                chosen(Some("x.b.example")),
                Some(b_der.clone()),
                "an exact name goes before a wildcard"
            );
            assert_eq!(chosen(Some("y.b.example")), Some(a_der.clone()));
            assert_eq!(
                chosen(Some("z.y.b.example")),
                (!reject).then(|| a_der.clone()),
                "a wildcard is one label"
            );
            assert_eq!(chosen(Some("else.example")), (!reject).then(|| a_der.clone()));
        }
    }

    #[test]
    fn a_changed_file_is_loaded_and_a_broken_one_is_not() {
        let dir = tempfile::tempdir().unwrap();
        let (cert, key) = (dir.path().join("c.pem"), dir.path().join("k.pem"));
        let write = |names: &[&str]| {
            let (source, der) = source(names);
            std::fs::write(&cert, read(&source.certificate, "").unwrap()).unwrap();
            std::fs::write(&key, read(&source.key, "").unwrap()).unwrap();
            der
        };
        let first = write(&["a.example"]);
        let files = Source {
            place: String::new(),
            certificate: Pem::File(cert.clone()),
            key: Pem::File(key.clone()),
            once: false,
        };
        let all = Certificates::load(vec![files], false, provider()).unwrap();
        let now = || all.choose(None).unwrap().cert[0].to_vec();
        assert_eq!(now(), first);
        let second = write(&["a.example"]);
        assert!(all.reload().is_empty());
        assert_eq!(now(), second);
        std::fs::write(&key, "not a key").unwrap();
        let errors: Vec<_> = all.reload().iter().map(ToString::to_string).collect();
        assert!(errors.len() == 1 && errors[0].starts_with(".keyFile: "), "{errors:?}");
        assert_eq!(now(), second);
    }
}
