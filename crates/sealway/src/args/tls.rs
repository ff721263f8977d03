//! The commands about TLS.

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueHint};

use crate::exit::Exit;

#[derive(Debug, Subcommand)]
pub(crate) enum Tls {
    Cert(TlsCert),
    /// Print the hashes of certificates
    ///
    /// A line for each certificate of the file, in hexadecimal as `pinnedPeerCertSha256` takes it, and one for the whole chain, in base64
    /// as `pinnedPeerCertificateChainSha256` takes it.
    #[command(after_help = Exit::help_of(&HASH_EXITS))]
    Hash {
        /// Certificates as PEM, or one as DER
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
    Ping(TlsPing),
}

/// Make a certificate that is signed by itself
///
/// Writes NAME.crt and NAME.key, which only its owner may read, or prints both as the JSON that `certificates` of a configuration takes.
/// Clients know such a certificate by its hash: see `sealway tls hash`.
#[derive(Args, Debug)]
#[command(after_help = Exit::help_of(&CERT_EXITS))]
pub(crate) struct TlsCert {
    /// A name or an IP address that it is for; may be given several times
    #[arg(value_name = "DOMAIN", required = true)]
    pub(crate) domains: Vec<String>,

    /// Write NAME.crt and NAME.key [default: print JSON]
    #[arg(long, value_name = "NAME", value_hint = ValueHint::FilePath)]
    pub(crate) file: Option<PathBuf>,

    /// For how many days it holds
    #[arg(long, value_name = "N", default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=36_500))]
    pub(crate) days: u32,

    /// Let it sign other certificates
    #[arg(long)]
    pub(crate) ca: bool,
}

/// Say what TLS a server speaks, and which certificates it shows
///
/// Shakes hands twice: without a name, as a stranger who only has the address, and with it. For each: the version, the cipher suite, the
/// key exchange, and every certificate with its names, its time and its hash. With the name it is also said whether the system's
/// authorities vouch for the chain.
#[derive(Args, Debug)]
#[command(after_help = Exit::help_of(&PING_EXITS))]
pub(crate) struct TlsPing {
    /// The name of the server, with or without a port [default port: 443]
    #[arg(value_name = "DOMAIN[:PORT]")]
    pub(crate) server: String,

    /// Its address [default: looked up]
    #[arg(long, value_name = "IP")]
    pub(crate) ip: Option<IpAddr>,
}

const CERT_EXITS: [(Exit, &str); 4] = [
    (Exit::Done, "the certificate is made"),
    (Exit::Internal, Exit::Internal.words()),
    (Exit::Usage, "the command line is wrong"),
    (Exit::Storage, "a file cannot be written"),
];

const HASH_EXITS: [(Exit, &str); 4] = [
    (Exit::Done, "the hashes are printed"),
    (Exit::Internal, Exit::Internal.words()),
    (Exit::Usage, "there is no certificate in the file"),
    (Exit::Storage, "the file cannot be read"),
];

const PING_EXITS: [(Exit, &str); 5] = [
    (
        Exit::Done,
        "it speaks TLS with the name, and the system's authorities vouch for it",
    ),
    (Exit::Internal, Exit::Internal.words()),
    (Exit::Usage, "the command line is wrong"),
    (
        Exit::Remote,
        "it cannot be found or reached, or does not end a handshake with the name",
    ),
    (
        Exit::Identity,
        "nobody vouches for the certificate that it shows for the name",
    ),
];
