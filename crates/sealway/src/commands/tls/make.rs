//! Making certificates.

use std::collections::BTreeMap;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use rcgen::{BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, KeyPair, KeyUsagePurpose};
use zeroize::Zeroizing;

/// A certificate holds an hour ago as well, for machines whose clocks are late.
const LATE: Duration = Duration::from_secs(3600);

/// What a certificate is to say.
pub(crate) struct Wanted {
    pub(crate) domains: Vec<String>,
    pub(crate) common_name: String,
    pub(crate) organisation: String,
    /// It may sign others.
    pub(crate) is_authority: bool,
    pub(crate) holds: Duration,
}

/// A certificate signed by itself, and its key; both as PEM.
pub(crate) struct Made {
    certificate: String,
    key: Zeroizing<String>,
}

impl Made {
    /// Makes one.
    ///
    /// # Errors
    /// Names or times that cannot be written into a certificate.
    pub(crate) fn new(wanted: Wanted) -> Result<Made, String> {
        let said = |error: rcgen::Error| error.to_string();
        let mut params = CertificateParams::new(wanted.domains).map_err(said)?;
        params
            .distinguished_name
            .push(DnType::OrganizationName, wanted.organisation);
        params.distinguished_name.push(DnType::CommonName, wanted.common_name);
        let now = SystemTime::now();
        params.not_before = (now - LATE).into();
        params.not_after = now.checked_add(wanted.holds).ok_or("no such time")?.into();
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
        if wanted.is_authority {
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.key_usages.push(KeyUsagePurpose::KeyCertSign);
        }
        let key = KeyPair::generate().map_err(said)?;
        Ok(Made {
            certificate: params.self_signed(&key).map_err(said)?.pem(),
            key: Zeroizing::new(key.serialize_pem()),
        })
    }

    /// Writes `NAME.crt`, and `NAME.key` for its owner alone.
    ///
    /// # Errors
    /// The file that cannot be written, and why.
    pub(crate) fn write(&self, name: &Path) -> Result<(), (PathBuf, io::Error)> {
        for (end, text, mode) in [(".crt", &self.certificate, 0o644), (".key", &*self.key, 0o600)] {
            let mut path = name.as_os_str().to_owned();
            path.push(end);
            write(Path::new(&path), text, mode).map_err(|error| (path.into(), error))?;
        }
        Ok(())
    }

    /// Both as configurations take them.
    pub(crate) fn json(&self) -> Zeroizing<String> {
        let lines = |text| str::lines(text).collect::<Vec<_>>();
        let both = BTreeMap::from([("certificate", lines(&self.certificate)), ("key", lines(&self.key))]);
        let mut out = Zeroizing::new(Vec::with_capacity(self.room()));
        // It has room, and lines of text can always be written.
        let _ = serde_json::to_writer_pretty(&mut *out, &both);
        out.push(b'\n');
        Zeroizing::new(String::from_utf8(std::mem::take(&mut *out)).unwrap_or_default())
    }

    /// Room for the JSON: a text that has to grow leaves what it held behind, unwiped. A line has a place of its own there, with quotes,
    /// a comma and what stands in front.
    fn room(&self) -> usize {
        let of = |text: &str| text.len() + 16 * text.lines().count() + 64;
        of(&self.certificate) + of(&self.key)
    }
}

/// Writes a file that is new, so that it is nobody else's; one that was there is taken away.
fn write(path: &Path, text: &str, mode: u32) -> io::Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create_new(true).mode(mode).open(path)?;
    file.write_all(text.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_key_is_written_once_where_it_is_wiped() {
        let wanted = Wanted {
            domains: (0..100).map(|number| format!("a{number}.example")).collect(),
            common_name: "a".into(),
            organisation: "b".into(),
            is_authority: false,
            holds: Duration::from_secs(3600),
        };
        let made = Made::new(wanted).unwrap();
        let json = made.json();
        assert!(json.len() <= made.room(), "it had to grow");
        let read: serde_json::Value = serde_json::from_str(&json).unwrap();
        let lines = |text: &str| serde_json::Value::from(text.lines().collect::<Vec<_>>());
        assert_eq!(read["certificate"], lines(&made.certificate));
        assert_eq!(read["key"], lines(&made.key));
        assert!(json.ends_with("}\n"));
    }
}
