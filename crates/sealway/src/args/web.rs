//! Arguments of the file drop for who has nothing but a browser.

use std::path::PathBuf;

use clap::{Args, ValueHint};

/// How a browser is served.
#[derive(Args, Debug)]
#[command(next_help_heading = "With a browser")]
pub(crate) struct Web {
    /// For someone with nothing but a browser or curl: shows a link (and a QR code) that is all they need
    #[arg(
        long,
        conflicts_with_all = ["connect", "relay", "code", "peer", "anyone", "unchecked", "suite", "strong", "connections"]
    )]
    pub(crate) http: bool,

    /// Without TLS: anyone on the network can read all of it, the link included
    #[arg(long, requires = "http", conflicts_with_all = ["cert", "key"])]
    pub(crate) plain: bool,

    /// A certificate of your own, with its chain, in place of one that is made and kept
    #[arg(long, value_name = "FILE", requires_all = ["http", "key"], value_hint = ValueHint::FilePath)]
    pub(crate) cert: Option<PathBuf>,

    /// Its key
    #[arg(long, value_name = "FILE", requires = "cert", value_hint = ValueHint::FilePath)]
    pub(crate) key: Option<PathBuf>,

    /// A name under which this machine is asked, beside its addresses; may be repeated
    #[arg(long, value_name = "NAME", requires = "http")]
    pub(crate) host: Vec<String>,

    /// Take no file larger than this, such as 500M, 4G or 1T
    #[arg(long, value_name = "SIZE", requires = "http", value_parser = super::values::size)]
    pub(crate) max_size: Option<u64>,
}
