//! Arguments of the file drop.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueEnum, ValueHint};
use sealway_aead::Suite;

use super::after;
use super::web::Web;

/// Send files and folders to someone
///
/// Prints a code phrase; the other end types it into `sealway receive`. Nothing is sent before both ends have proved
/// that they know it. The same command again goes on where a transfer broke off.
///
/// On this machine itself (loopback) no code is needed.
#[derive(Args, Debug)]
#[command(after_help = after::short(after::SEND), after_long_help = after::long(after::SEND))]
pub(crate) struct Send {
    /// What to send; - is standard input
    #[arg(value_name = "PATH", required_unless_present = "text", value_hint = ValueHint::AnyPath)]
    pub(crate) paths: Vec<PathBuf>,

    /// Send to a device that has the app LocalSend: its name, or its address
    #[arg(long, value_name = "NAME|HOST[:PORT]", group = "place", conflicts_with_all = ["code", "peer", "anyone", "suite", "strong", "connections", "via"])]
    pub(crate) localsend: Option<String>,

    /// Send this text, which the device shows, in place of files
    #[arg(long, value_name = "TEXT", requires = "localsend", conflicts_with = "paths")]
    pub(crate) text: Option<String>,

    /// Let LocalSend speak in clear, to devices whose encryption is turned off: anyone on the network can then read and change it
    #[arg(long, requires = "localsend")]
    pub(crate) insecure_http: bool,

    /// Send what a PATH points to if it is a symbolic link, not the link
    #[arg(long)]
    pub(crate) follow: bool,

    /// What standard input is called where it is received (default: stdin)
    #[arg(long, value_name = "NAME")]
    pub(crate) name: Option<OsString>,

    #[command(flatten)]
    pub(crate) link: Link,
}

/// Receive files and folders from someone
///
/// Asks for the code phrase that `sealway send` shows, says what is offered, and asks whether to take it. A file takes its
/// name when all of it is there and verified. The same command again goes on where a transfer broke off.
///
/// With --http, someone sends from a browser into DIR, until Ctrl-C; what is there is not shown.
#[derive(Args, Debug)]
#[command(after_help = after::short(after::RECEIVE), after_long_help = after::long(after::RECEIVE))]
#[command(group = ArgGroup::new("strangers").args(["localsend", "http"]))]
#[command(mut_arg("pin", |arg| arg.requires("strangers")), mut_arg("alias", |arg| arg.requires("localsend")),
    mut_arg("port", |arg| arg.requires("localsend")), mut_arg("insecure_http", |arg| arg.requires("localsend")))]
pub(crate) struct Receive {
    /// Folder to receive into, as --output says it too
    #[arg(value_name = "DIR", conflicts_with = "output", value_hint = ValueHint::DirPath)]
    pub(crate) folder: Option<PathBuf>,

    /// Folder to receive into
    #[arg(long, short, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) output: PathBuf,

    /// Wait for a device that has the app LocalSend; `sealway localsend` waits for one after another
    #[arg(long, group = "place",
        conflicts_with_all = ["code", "peer", "unchecked", "suite", "strong", "connections", "hash", "via", "outside_links"])]
    pub(crate) localsend: bool,

    /// Fetch what such a device offers ("Share via link" in its app): its name, or its address
    #[arg(long, value_name = "NAME|HOST[:PORT]", requires = "localsend")]
    pub(crate) pull: Option<String>,

    #[command(flatten)]
    pub(crate) appearing: Appearing,

    #[command(flatten)]
    pub(crate) guard: Guard,

    /// Make the folder if it is not there
    #[arg(long)]
    pub(crate) create: bool,

    /// Take what is offered without asking
    #[arg(long, short)]
    pub(crate) yes: bool,

    /// What to do with a file whose name is taken by a different one (default: ask on a terminal, else rename)
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) conflict: Option<ConflictWord>,

    /// Also make symbolic links that lead out of what is received
    #[arg(long)]
    pub(crate) outside_links: bool,

    /// Also write names such as .ssh or .bashrc right into a home folder
    #[arg(long)]
    pub(crate) hidden: bool,

    /// Bring every file to the disk before it takes its name
    #[arg(long)]
    pub(crate) fsync: bool,

    #[command(flatten)]
    pub(crate) link: Link,

    #[command(flatten)]
    pub(crate) web: Web,
}

/// Whom this end lets in.
#[derive(Args, Debug)]
pub(crate) struct Guard {
    /// Let in only who knows this PIN; without a value that of SEALWAY_PIN, or a new one, which is shown
    #[arg(long, value_name = "PIN", num_args = 0..=1, require_equals = true, default_missing_value = "", value_parser = super::values::pin)]
    pub(crate) pin: Option<String>,
}

/// How this end appears to devices that have the app LocalSend.
#[derive(Args, Debug)]
pub(crate) struct Appearing {
    /// LocalSend: what this end is called (default: the name of this machine)
    #[arg(long, value_name = "NAME")]
    pub(crate) alias: Option<String>,

    /// LocalSend: port to listen at (default: 53317, or any where that is taken)
    #[arg(long, value_name = "PORT")]
    pub(crate) port: Option<u16>,

    /// LocalSend: speak in clear, with devices whose encryption is turned off: anyone on the network can then read and change it
    #[arg(long)]
    pub(crate) insecure_http: bool,
}

/// Receive from phones and others that have the app LocalSend
///
/// Waits for one device after another, until Ctrl-C. Every offer is asked about. With --yes, devices that were remembered are not
/// asked about; with --anyone beside it, nobody is. A device shows who it is by a certificate; one without is said to be not
/// authenticated.
#[derive(Args, Debug)]
#[command(disable_help_subcommand = true, args_conflicts_with_subcommands = true)]
#[command(after_help = after::short(after::LOCALSEND), after_long_help = after::long(after::LOCALSEND))]
pub(crate) struct Localsend {
    #[command(subcommand)]
    pub(crate) command: Option<LocalsendCommand>,

    /// Folder to receive into
    #[arg(long, short, value_name = "DIR", default_value = ".", value_hint = ValueHint::DirPath)]
    pub(crate) output: PathBuf,

    /// Make the folder if it is not there
    #[arg(long)]
    pub(crate) create: bool,

    /// Take what remembered devices offer without asking
    #[arg(long, short)]
    pub(crate) yes: bool,

    /// With --yes: take what anyone offers, also from devices that show no certificate
    #[arg(long, requires = "yes")]
    pub(crate) anyone: bool,

    /// What to do with a file whose name is taken by a different one (default: ask on a terminal, else rename)
    #[arg(long, value_enum, value_name = "WHAT")]
    pub(crate) conflict: Option<ConflictWord>,

    /// Also write names such as .ssh or .bashrc right into a home folder
    #[arg(long)]
    pub(crate) hidden: bool,

    /// Bring every file to the disk before it takes its name
    #[arg(long)]
    pub(crate) fsync: bool,

    #[command(flatten)]
    pub(crate) appearing: Appearing,

    #[command(flatten)]
    pub(crate) guard: Guard,

    /// Say nothing but errors
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// Print what happens to standard output, one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LocalsendCommand {
    /// List the devices around, and those that are remembered
    Devices {
        /// Print JSON
        #[arg(long)]
        json: bool,

        /// Also ask every address of the own networks, for devices that hear no announcements
        #[arg(long)]
        scan: bool,
    },
    /// Remember a device by its certificate
    Remember {
        /// Its name, or its address
        #[arg(value_name = "NAME|HOST[:PORT]")]
        device: String,

        /// What to call it (default: what it calls itself)
        #[arg(long = "as", value_name = "NAME")]
        name: Option<String>,
    },
    /// Forget a device
    Forget {
        /// The name under which it is remembered
        name: String,
    },
}

/// How the two ends find each other and what they use.
#[derive(Args, Debug)]
#[command(group = ArgGroup::new("place"))]
pub(crate) struct Link {
    /// Connect to the other end, which listens
    #[arg(long, value_name = "HOST:PORT", group = "place")]
    pub(crate) connect: Option<String>,

    /// Wait for the other end on an address of this machine; port 0 takes a free one
    #[arg(long, value_name = "HOST:PORT", group = "place")]
    pub(crate) listen: Option<String>,

    /// Meet the other end at a relay, which sees neither names nor content
    #[arg(long, value_name = "HOST:PORT", group = "place")]
    pub(crate) relay: Option<String>,

    /// Where no place is given: neither look for the other end on this network, nor let the network know that this one waits
    #[arg(long)]
    pub(crate) no_lan: bool,

    /// Stay with the relay: do not look for a direct path, by which the other end learns the addresses of this one
    #[arg(long)]
    pub(crate) no_direct: bool,

    /// Use a code phrase also on this machine itself
    #[arg(long)]
    pub(crate) code: bool,

    /// Speak only to the end with this key, in place of a code; `sealway identity` shows it there. May be repeated
    #[arg(long, value_name = "KEY", conflicts_with = "code")]
    pub(crate) peer: Vec<String>,

    /// Speak to anyone; compare the check words of both ends to know that nobody sits between
    #[arg(long, conflicts_with_all = ["code", "peer"])]
    pub(crate) anyone: bool,

    /// Do not ask whether the check words are the same: whoever comes first is taken for the other end
    #[arg(long, requires = "anyone")]
    pub(crate) unchecked: bool,

    /// Ciphers this end may use (default: what the hardware of both ends does best)
    #[arg(long, value_name = "SUITE,…", value_delimiter = ',', value_parser = super::values::suite())]
    pub(crate) suite: Vec<Suite>,

    /// ML-KEM-1024 in place of ML-KEM-768
    #[arg(long)]
    pub(crate) strong: bool,

    /// Data connections beside the first (default: one for each CPU, four at most)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=16))]
    pub(crate) connections: Option<u32>,

    /// How much of the files both ends also hash (BLAKE3): every record is authenticated; this finds faults of memory, kernel and
    /// programs between file and record
    #[arg(long, value_enum, value_name = "HOW", default_value = "sample")]
    pub(crate) hash: HashWord,

    /// How content goes: as records of its own, or one file through the gRPC service, sealed or (on this machine, for measuring)
    /// not sealed at all. Both ends say the same
    #[arg(
        long,
        value_enum,
        value_name = "WAY",
        default_value = "records",
        hide_short_help = true
    )]
    pub(crate) via: ViaWord,

    /// Do not have the desktop say that a transfer of ten seconds or more has ended
    #[arg(long)]
    pub(crate) no_notify: bool,

    /// Say nothing but errors
    #[arg(long, short)]
    pub(crate) quiet: bool,

    /// Print what happens to standard output, one JSON object a line
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum ConflictWord {
    /// Ask for each
    Ask,
    /// Give the new one another name
    Rename,
    /// Keep the one that is there
    Skip,
    /// Replace the one that is there
    Overwrite,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum ViaWord {
    /// Sealed records, resumable
    Records,
    /// A sealed gRPC service
    Grpc,
    /// A gRPC service in clear: loopback only
    GrpcPlain,
}

#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum HashWord {
    /// One part of 1 MiB in 64, by chance, which is read back where it was written
    #[value(alias = "auto")]
    Sample,
    /// All of every file
    #[value(alias = "on")]
    All,
    /// Nothing, unless the other end wants it
    Off,
}

/// Bring together ends that cannot reach each other
///
/// Pairs connections by number or token and passes bytes on. What passes is sealed between the ends; the relay can neither
/// read nor change it.
#[derive(Args, Debug)]
pub(crate) struct Relay {
    /// Address to listen on
    #[arg(long, value_name = "HOST:PORT", default_value = "[::]:26600")]
    pub(crate) listen: String,

    /// Say nothing but errors
    #[arg(long, short)]
    pub(crate) quiet: bool,
}

/// Show this machine's key, and the keys it knows
#[derive(Args, Debug)]
#[command(disable_help_subcommand = true, args_conflicts_with_subcommands = true)]
pub(crate) struct Identity {
    #[command(subcommand)]
    pub(crate) command: Option<IdentityCommand>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum IdentityCommand {
    /// List the keys that were given names
    List,
    /// Give a key a name, by which --peer knows it
    Remember {
        /// The name
        name: String,
        /// The key, as `sealway identity` shows it there
        key: String,
    },
    /// Forget a key
    Forget {
        /// Its name
        name: String,
    },
}
