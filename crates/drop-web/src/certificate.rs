//! The certificate by which browsers and curl know this machine.

use std::fs::{DirBuilder, File};
use std::io::{Read, Write};
use std::net::IpAddr;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rcgen::{CertificateParams, DnType, ExtendedKeyUsagePurpose, KeyPair, KeyUsagePurpose, PublicKeyData, SanType};
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use sha2::{Digest, Sha256};
use zeroize::Zeroizing;

use crate::error::Error;

/// The file in the folder of the configuration: a line with the end of its time, the key, the certificate.
const FILE: &str = "web.pem";
/// The longest that is read.
const MAX_FILE: u64 = 1 << 20;
/// How long a certificate holds: what Apple's systems take at most of one that a user trusts.
const HOLDS: Duration = Duration::from_secs(397 * 24 * 3600);
/// A new one is made so long before that.
const AHEAD: Duration = Duration::from_secs(30 * 24 * 3600);
/// It holds a day ago as well, for machines whose clocks are late.
const LATE: Duration = Duration::from_secs(24 * 3600);
/// In front of the end of its time, seconds since 1970.
const UNTIL: &str = "# made by sealway; holds until ";

/// A certificate with its key.
pub struct Certificate {
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    /// SHA-256 of the public key, for `curl --pinnedpubkey`.
    pin: String,
}

impl Certificate {
    /// Ours: kept in a folder, made if it is not there or its time is nearly over. Without a folder it is a new one each time.
    ///
    /// # Errors
    /// [`Error::Certificate`]: the folder or the file cannot be used.
    pub fn ours(folder: Option<&Path>, addresses: &[IpAddr]) -> Result<Certificate, Error> {
        let Some(folder) = folder else {
            return Certificate::parse(&make(addresses)?, "the certificate");
        };
        let path = folder.join(FILE);
        let doing = format!("the certificate in {}", path.display());
        if let Some(pem) = kept(&path).map_err(wrong(&doing))? {
            return Certificate::parse(&pem, &doing);
        }
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(folder)
            .map_err(wrong(&doing))?;
        let mode = std::fs::metadata(folder).map_err(wrong(&doing))?.mode();
        if mode & 0o022 != 0 && mode & 0o1000 == 0 {
            return Err(wrong(&doing)("others may change what is in that folder; chmod 700 it"));
        }
        let pem = make(addresses)?;
        // For its owner alone, and whole or not at all.
        let mut file = tempfile::NamedTempFile::new_in(folder).map_err(wrong(&doing))?;
        file.write_all(pem.as_bytes()).map_err(wrong(&doing))?;
        file.as_file().sync_all().map_err(wrong(&doing))?;
        file.persist(&path).map_err(wrong(&doing))?;
        Certificate::parse(&pem, &doing)
    }

    /// The user's own, from two files of PEM.
    ///
    /// # Errors
    /// [`Error::Certificate`]: they cannot be read, or do not belong together.
    pub fn given(certificate: &Path, key: &Path) -> Result<Certificate, Error> {
        let read = |path: &Path| {
            let doing = path.display().to_string();
            std::fs::read(path).map(Zeroizing::new).map_err(wrong(&doing))
        };
        let (chain, secret) = (read(certificate)?, read(key)?);
        let both = Zeroizing::new([&**secret, b"\n", &**chain].concat());
        let text = Zeroizing::new(String::from_utf8_lossy(&both).into_owned());
        Certificate::parse(&text, &format!("{} and {}", certificate.display(), key.display()))
    }

    fn parse(pem: &str, doing: &str) -> Result<Certificate, Error> {
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
        let chain = chain.map_err(wrong(doing))?;
        if chain.is_empty() {
            return Err(wrong(doing)("there is no certificate in it"));
        }
        let key = PrivateKeyDer::from_pem_slice(pem.as_bytes()).map_err(wrong(doing))?;
        // A kind of key that is not known here has no pin to show.
        let pin = KeyPair::try_from(&key).map(|pair| STANDARD.encode(Sha256::digest(pair.subject_public_key_info())));
        Ok(Certificate {
            chain,
            key,
            pin: pin.unwrap_or_default(),
        })
    }

    /// SHA-256 of the certificate, as browsers show it: pairs of digits with colons between.
    pub fn fingerprint(&self) -> String {
        let hash = self
            .chain
            .first()
            .map(|der| Sha256::digest(der.as_ref()))
            .unwrap_or_default();
        let pairs: Vec<String> = hash.iter().map(|byte| format!("{byte:02X}")).collect();
        pairs.join(":")
    }

    /// What `curl --pinnedpubkey` takes; `None` for a kind of key that is not known here.
    pub fn pin(&self) -> Option<String> {
        (!self.pin.is_empty()).then(|| format!("sha256//{}", self.pin))
    }

    /// For the server.
    pub(crate) fn config(&self) -> Result<Arc<ServerConfig>, Error> {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .map_err(wrong("TLS"))?
            .with_no_client_auth()
            .with_single_cert(self.chain.clone(), self.key.clone_key())
            .map_err(wrong("the certificate and its key"))?;
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.enable_secret_extraction = true;
        Ok(Arc::new(config))
    }
}

fn wrong<E: std::fmt::Display>(doing: &str) -> impl Fn(E) -> Error {
    let doing = doing.to_owned();
    move |why| Error::Certificate {
        doing: doing.clone(),
        why: why.to_string(),
    }
}

/// What is kept, if it may be used: not if its time is nearly over. A file that others can read is refused.
fn kept(path: &Path) -> Result<Option<Zeroizing<String>>, String> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        file => file.map_err(|error| error.to_string())?,
    };
    let found = file.metadata().map_err(|error| error.to_string())?;
    if found.mode() & 0o077 != 0 {
        return Err("others may read it; chmod 600 it, or remove it and a new one is made".to_owned());
    }
    if !found.is_file() || found.len() > MAX_FILE {
        return Err("it is not a file of ours; move it away, and a new one is made".to_owned());
    }
    let mut text = Zeroizing::new(String::new());
    file.read_to_string(&mut text).map_err(|error| error.to_string())?;
    let until = text.lines().find_map(|line| line.strip_prefix(UNTIL)?.parse().ok());
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Ok(until
        .is_some_and(|until| now + AHEAD < Duration::from_secs(until))
        .then_some(text))
}

fn make(addresses: &[IpAddr]) -> Result<Zeroizing<String>, Error> {
    let doing = "making a certificate";
    let now = SystemTime::now();
    let until = now + HOLDS;
    let mut wanted = CertificateParams::new(vec!["localhost".to_owned()]).map_err(wrong(doing))?;
    let loopback = [IpAddr::from([127, 0, 0, 1]), IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])];
    let all = loopback
        .iter()
        .chain(addresses)
        .map(|address| SanType::IpAddress(*address));
    wanted.subject_alt_names.extend(all);
    wanted.distinguished_name.push(DnType::CommonName, "Sealway");
    wanted.not_before = (now - LATE).into();
    wanted.not_after = until.into();
    wanted.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    wanted.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    let key = KeyPair::generate().map_err(wrong(doing))?;
    let certificate = wanted.self_signed(&key).map_err(wrong(doing))?.pem();
    let secret = Zeroizing::new(key.serialize_pem());
    let until = until.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
    Ok(Zeroizing::new(format!("{UNTIL}{until}\n{}{certificate}", *secret)))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn a_certificate_is_kept_for_its_owner_alone() {
        let work = tempfile::tempdir().unwrap();
        let folder = work.path().join("config");
        let first = Certificate::ours(Some(&folder), &[]).unwrap();
        let file = folder.join(FILE);
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        let second = Certificate::ours(Some(&folder), &[]).unwrap();
        assert_eq!((first.fingerprint(), first.pin()), (second.fingerprint(), second.pin()));
        assert_eq!(first.fingerprint().len(), 32 * 3 - 1);
        assert_eq!(first.pin().unwrap().len(), "sha256//".len() + 44);

        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o644)).unwrap();
        let error = Certificate::ours(Some(&folder), &[]).err().unwrap().to_string();
        assert!(error.contains("others may read it"), "{error}");
    }

    #[test]
    fn one_whose_time_is_nearly_over_is_replaced() {
        let work = tempfile::tempdir().unwrap();
        let first = Certificate::ours(Some(work.path()), &[]).unwrap();
        let file = work.path().join(FILE);
        let text = std::fs::read_to_string(&file).unwrap();
        let (_, rest) = text.split_once('\n').unwrap();
        let soon = SystemTime::now().duration_since(UNIX_EPOCH).unwrap() + AHEAD / 2;
        std::fs::write(&file, format!("{UNTIL}{}\n{rest}", soon.as_secs())).unwrap();
        let second = Certificate::ours(Some(work.path()), &[]).unwrap();
        assert_ne!(first.fingerprint(), second.fingerprint());
    }

    #[test]
    fn what_is_no_certificate_is_said() {
        let work = tempfile::tempdir().unwrap();
        let (certificate, key) = (work.path().join("c"), work.path().join("k"));
        assert!(Certificate::given(&certificate, &key).is_err());
        let pem = make(&[]).unwrap();
        std::fs::write(&certificate, "nothing").unwrap();
        std::fs::write(&key, &**pem).unwrap();
        // The certificate behind the key counts, too.
        let (secret, _) = pem.split_once("-----BEGIN CERTIFICATE").unwrap();
        std::fs::write(&key, secret).unwrap();
        let error = Certificate::given(&certificate, &key).err().unwrap().to_string();
        assert!(error.contains("no certificate"), "{error}");
        std::fs::write(&certificate, &**make(&[]).unwrap()).unwrap();
        let other = Certificate::given(&certificate, &key).unwrap();
        assert!(other.config().is_err(), "a key of another certificate");
    }
}
