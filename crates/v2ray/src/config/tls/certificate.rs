//! `tlsSettings.certificates`.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use crate::config::context::Cx;
use crate::config::schema::{Kind, Loses};
use crate::config::table::{Decode, FromKeys, object, words};
use crate::json::{Data, Value};
use crate::problem::{At, Position};

words! {
    /// What a certificate is for.
    pub enum CertificateUsage {
        /// This end shows it, and holds its key. On an outbound, to servers that ask for one.
        Encipherment = "encipherment" | "";
        /// The other end's chain may end at it.
        Verify = "verify";
        /// A client's chain may end at it.
        VerifyClient = "verifyclient";
    }
    other {
        LaterService "issue": "certificates made on the fly (`issue`)";
    }
}

object! {
    /// A certificate.
    pub(crate) struct CertificateSettings: "tlsSettings.certificates[]" {
        /// The file with the certificate and the chain to its root, PEM.
        certificate_file: String = "certificateFile";
        /// The file with its key, PEM.
        key_file: String = "keyFile";
        /// The certificate itself, as lines of PEM.
        certificate: Lines = "certificate";
        /// The key itself, as lines of PEM.
        key: Lines = "key";
        /// What it is for.
        usage: CertificateUsage = "usage", default "\"encipherment\"";
        /// How often a server's own certificate is read again, seconds. 0: every hour. Authorities and a client's
        /// certificate are read once. No OCSP answer is fetched yet.
        ocsp_stapling: At<Duration> = "ocspStapling", default "0";
        /// Never read the files again.
        one_time_loading: bool = "oneTimeLoading", default "false";
    }
    other {
        Accepted "buildChain": "Only certificates made on the fly need it.";
        Accepted "serveOnNode": "";
    }
}

/// Lines of text, written as an array or as one string.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Lines(
    /// The lines with line ends between them.
    pub String,
);

impl Decode for Lines {
    fn kind() -> Kind {
        Kind::text("list of lines")
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        match value.data {
            Data::String(text) => Some(Lines(text)),
            _ => Vec::<String>::decode(value, cx).map(|lines| Lines(lines.join("\n"))),
        }
    }
}

/// Where PEM text is found.
#[derive(Clone, Eq, PartialEq)]
pub enum Pem {
    /// In this file.
    File(PathBuf),
    /// Here.
    Inline(String),
}

/// Shows how long the text is, and not the text, which may be a private key.
impl fmt::Debug for Pem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pem::File(path) => f.debug_tuple("File").field(path).finish(),
            Pem::Inline(text) => write!(f, "Inline({} bytes)", text.len()),
        }
    }
}

/// A certificate, and its key where its use needs one.
#[derive(Clone, Debug, PartialEq)]
pub struct Certificate {
    /// The certificate and its chain.
    pub certificate: Pem,
    /// Its key. Always there for [`CertificateUsage::Encipherment`].
    pub key: Option<Pem>,
    /// What it is for.
    pub usage: CertificateUsage,
    /// How often the files are read again, if at all.
    pub reload: Option<Duration>,
    /// Where it is configured.
    pub at: Position,
}

/// How often files of certificates are read again.
const RELOAD: Duration = Duration::from_secs(3600);

impl FromKeys for Certificate {
    type Keys = CertificateSettings;

    fn from_keys(s: CertificateSettings, at: Position, cx: &mut Cx<'_>) -> Option<Self> {
        // As in the peers, a file goes before lines.
        let pem = |file: String, lines: Lines| match (file.is_empty(), lines.0.is_empty()) {
            (false, _) => Some(Pem::File(file.into())),
            (true, false) => Some(Pem::Inline(lines.0)),
            (true, true) => None,
        };
        let Some(certificate) = pem(s.certificate_file, s.certificate) else {
            cx.error(
                at,
                "there is no certificate here",
                "give `certificateFile`, or `certificate` with lines of PEM",
            );
            return None;
        };
        let key = pem(s.key_file, s.key);
        if s.usage == CertificateUsage::Encipherment && key.is_none() {
            cx.error(
                at,
                "the certificate has no key",
                "give `keyFile`, or `key` with lines of PEM",
            );
            return None;
        }
        let period = (!s.ocsp_stapling.is_zero()).then_some(s.ocsp_stapling.value);
        if period.is_some() && s.usage == CertificateUsage::Encipherment {
            let what = "OCSP answers (`ocspStapling`); the files are read again at that interval";
            cx.within("ocspStapling", |cx| cx.later(Loses::Ease, s.ocsp_stapling.at, what));
        }
        let files = matches!(certificate, Pem::File(_));
        Some(Certificate {
            certificate,
            key,
            usage: s.usage,
            reload: (files && !s.one_time_loading).then(|| period.unwrap_or(RELOAD)),
            at,
        })
    }
}
