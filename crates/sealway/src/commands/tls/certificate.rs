//! What is in a certificate (RFC 5280), in the words that Xray has for it.

use std::path::Path;
use std::time::{Duration, UNIX_EPOCH};

use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use sealway_v2ray::text::escape;
use sha2::{Digest, Sha256};
use x509_cert::Certificate;
use x509_cert::der::asn1::ObjectIdentifier;
use x509_cert::der::{Decode, Encode};
use x509_cert::ext::pkix::SubjectAltName;
use x509_cert::ext::pkix::name::GeneralName;
use x509_cert::time::Time;

/// What a certificate says.
pub(crate) struct Shown {
    /// The last of its common names, or empty.
    pub(crate) common_name: String,
    /// The domain names that it is for.
    pub(crate) names: Vec<String>,
    /// The algorithm of its signature.
    pub(crate) signed_by: &'static str,
    /// The algorithm of its key.
    pub(crate) key: &'static str,
    /// When it begins and when it ends to hold, since 1970.
    pub(crate) holds: (Duration, Duration),
}

/// Reads a certificate; `None` for what is none.
pub(crate) fn shown(der: &[u8]) -> Option<Shown> {
    let read = Certificate::from_der(der).ok()?;
    let told = &read.tbs_certificate;
    let mut common_names = told.subject.0.iter().flat_map(|part| part.0.iter());
    let common_name = common_names.rfind(|one| one.oid == COMMON_NAME);
    let names = match told.get::<SubjectAltName>() {
        Ok(Some((_, SubjectAltName(names)))) => names,
        _ => Vec::new(),
    };
    let names = names.into_iter().filter_map(|name| match name {
        GeneralName::DnsName(name) => Some(escape(name.as_str()).into_owned()),
        _ => None,
    });
    let named = |oid: &ObjectIdentifier, table: &[(&str, &'static str)]| {
        let oid = oid.to_string();
        let found = table.iter().find(|(known, _)| *known == oid);
        found.map_or("0", |(_, name)| *name)
    };
    let since_1970 = |time: &Time| time.to_unix_duration();
    Some(Shown {
        common_name: common_name.map_or_else(String::new, |one| {
            escape(&String::from_utf8_lossy(one.value.value())).into_owned()
        }),
        names: names.collect(),
        signed_by: match named(&read.signature_algorithm.oid, &SIGNATURES) {
            PSS => pss(&read.signature_algorithm.to_der().unwrap_or_default()),
            name => name,
        },
        key: named(&told.subject_public_key_info.algorithm.oid, &KEYS),
        holds: (
            since_1970(&told.validity.not_before),
            since_1970(&told.validity.not_after),
        ),
    })
}

const COMMON_NAME: ObjectIdentifier = ObjectIdentifier::new_unwrap("2.5.4.3");
const PSS: &str = "RSAPSS";

/// Algorithms of signatures. What has no name here is 0, as with Xray.
const SIGNATURES: [(&str, &str); 11] = [
    ("1.2.840.113549.1.1.4", "MD5-RSA"),
    ("1.2.840.113549.1.1.5", "SHA1-RSA"),
    ("1.2.840.113549.1.1.10", PSS),
    ("1.2.840.113549.1.1.11", "SHA256-RSA"),
    ("1.2.840.113549.1.1.12", "SHA384-RSA"),
    ("1.2.840.113549.1.1.13", "SHA512-RSA"),
    ("1.2.840.10045.4.1", "ECDSA-SHA1"),
    ("1.2.840.10045.4.3.2", "ECDSA-SHA256"),
    ("1.2.840.10045.4.3.3", "ECDSA-SHA384"),
    ("1.2.840.10045.4.3.4", "ECDSA-SHA512"),
    ("1.3.101.112", "Ed25519"),
];

const KEYS: [(&str, &str); 4] = [
    ("1.2.840.113549.1.1.1", "RSA"),
    ("1.2.840.10040.4.1", "DSA"),
    ("1.2.840.10045.2.1", "ECDSA"),
    ("1.3.101.112", "Ed25519"),
];

/// The hash of RSASSA-PSS (RFC 4055): one of 2.16.840.1.101.3.4.2 among its parameters.
fn pss(algorithm: &[u8]) -> &'static str {
    const SHA2: [u8; 10] = [6, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2];
    let at = algorithm.windows(SHA2.len()).position(|part| part == SHA2);
    match at.and_then(|at| algorithm.get(at + SHA2.len())) {
        Some(1) => "SHA256-RSAPSS",
        Some(2) => "SHA384-RSAPSS",
        Some(3) => "SHA512-RSAPSS",
        _ => "0",
    }
}

/// The SHA-256 of a certificate in hexadecimal.
pub(crate) fn digest(der: &[u8]) -> String {
    Sha256::digest(der).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The certificates in a text: several as PEM, or one as DER.
pub(crate) fn certificates(text: Vec<u8>) -> Result<Vec<CertificateDer<'static>>, String> {
    let is_pem = text.starts_with(b"-----") || text.windows(6).any(|part| part == b"\n-----");
    let chain = match is_pem {
        true => CertificateDer::pem_slice_iter(&text)
            .collect::<Result<Vec<_>, _>>()
            .map_err(|error| error.to_string())?,
        false => vec![CertificateDer::from(text)],
    };
    match chain.iter().all(|one| shown(one).is_some()) {
        true if !chain.is_empty() => Ok(chain),
        true => Err("there is no certificate in it".to_owned()),
        false => Err("it holds what is no certificate".to_owned()),
    }
}

/// The certificates of a file, or what is wrong with its text.
pub(crate) fn read(path: &Path) -> std::io::Result<Result<Vec<CertificateDer<'static>>, String>> {
    std::fs::read(path).map(certificates)
}

/// A line for each certificate of a chain, with its hash: what stands before it, and the hash.
pub(crate) fn hashes(chain: &[CertificateDer<'_>]) -> Vec<(String, String)> {
    let row = |(at, one): (usize, &CertificateDer<'_>)| {
        let which = match at {
            0 => "Leaf SHA256:".to_owned(),
            _ => format!(
                "CA <{}> SHA256:",
                shown(one).map_or_else(String::new, |shown| shown.common_name)
            ),
        };
        (which, digest(one))
    };
    chain.iter().enumerate().map(row).collect()
}

/// Lines with their second halves one below the other, two columns behind the longest first half.
pub(crate) fn aligned(rows: &[(String, String)]) -> String {
    let widest = rows.iter().map(|(first, _)| first.chars().count()).max().unwrap_or(0);
    let line = |(first, second): &(String, String)| {
        let gap = widest + 2 - first.chars().count();
        format!("{first}{:gap$}{second}\n", "")
    };
    rows.iter().map(line).collect()
}

/// A time since 1970 as people read it.
pub(crate) fn day(time: Duration) -> String {
    let since = jiff::Timestamp::try_from(UNIX_EPOCH + time);
    since.map_or_else(|_| "an unknown time".to_owned(), |time| format!("{time:.0}"))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use rcgen::{CertificateParams, DnType, KeyPair, PKCS_ECDSA_P384_SHA384, PKCS_ED25519};

    use super::*;

    #[test]
    fn what_a_certificate_says_is_read() {
        for (kind, signed_by, key) in [
            (&PKCS_ECDSA_P384_SHA384, "ECDSA-SHA384", "ECDSA"),
            (&PKCS_ED25519, "Ed25519", "Ed25519"),
        ] {
            let pair = KeyPair::generate_for(kind).unwrap();
            let names = ["a.example", "*.b.example", "192.0.2.1"].map(str::to_owned);
            let mut wanted = CertificateParams::new(names).unwrap();
            wanted.distinguished_name.push(DnType::CommonName, "one\n\u{202e}two");
            wanted.not_before = rcgen::date_time_ymd(2026, 1, 2);
            wanted.not_after = rcgen::date_time_ymd(2051, 1, 2);
            let made = wanted.self_signed(&pair).unwrap();
            let shown = shown(made.der()).unwrap();
            assert_eq!((shown.signed_by, shown.key), (signed_by, key));
            assert_eq!(shown.names, ["a.example", "*.b.example"]);
            assert_eq!(shown.common_name, "one\\n\\u{202e}two");
            assert_eq!(day(shown.holds.0), "2026-01-02T00:00:00Z");
            assert_eq!(day(shown.holds.1), "2051-01-02T00:00:00Z");
            for cut in [0, 1, 20, made.der().len() - 1] {
                assert!(super::shown(&made.der()[..cut]).is_none(), "{cut}");
            }
        }
    }

    #[test]
    fn the_hash_of_pss_is_among_its_parameters() {
        const PREFIX: [u8; 10] = [6, 9, 0x60, 0x86, 0x48, 1, 0x65, 3, 4, 2];
        for (last, name) in [(1, "SHA256-RSAPSS"), (3, "SHA512-RSAPSS"), (9, "0")] {
            assert_eq!(pss(&[&[0x30, 11][..], &PREFIX, &[last]].concat()), name);
        }
        assert_eq!(pss(&PREFIX), "0");
    }

    #[test]
    fn halves_stand_one_below_the_other() {
        let rows = [("a:", "1"), ("ä…:", "2")].map(|(first, second)| (first.to_owned(), second.to_owned()));
        assert_eq!(aligned(&rows), "a:   1\nä…:  2\n");
        assert_eq!(aligned(&[]), "");
    }
}
