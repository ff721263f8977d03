//! The lab on two hosts.

use std::net::SocketAddr;
use std::path::PathBuf;

use clap::{Args, ValueHint};

use crate::exit::Exit;

const EXAMPLES: &str = "\
Examples:
  sealway lab respond                                           this machine only; prints a token
  sealway lab respond --listen 192.0.2.7:26700                  one address, for other hosts
  sealway lab respond --listen 0.0.0.0:26700 --token-file FILE  with a token that both have";

/// How a responder ends.
const EXITS: [(Exit, &str); 3] = [
    (Exit::Done, "told to stop"),
    (Exit::Internal, "internal error, or the address is not to be had"),
    (Exit::Usage, "the command line or the token is wrong"),
];

/// The other one of two hosts.
#[derive(Args, Debug)]
pub(crate) struct Remote {
    /// Have servers and sink on the host that runs `sealway lab respond` there; for the workload transports
    ///
    /// Generator and clients run here. Only this engine is measured, in stacks without nginx and not with --link. The token is that of
    /// --token-file, or of the variable SEALWAY_LAB_TOKEN.
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "gpu")]
    pub(crate) remote: Option<String>,

    /// File with the token of the other host, which nobody else may read
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, requires = "remote")]
    pub(crate) token_file: Option<PathBuf>,
}

/// Respond to a lab on another host
///
/// Runs the sink and this engine's servers for `sealway lab transports --remote`, and reports what they took. One client is served at a
/// time, if it has the token: that of --token-file, of the variable SEALWAY_LAB_TOKEN, or one that is made and printed once. It can
/// start stacks by their names, and nothing else; all that it has started ends within seconds when it is gone. Each server takes a
/// port of its own that firewalls must let through, between 10000 and the first of net.ipv4.ip_local_port_range. Runs until Ctrl-C.
#[derive(Args, Debug)]
#[command(after_help = Exit::help_of(&EXITS), after_long_help = format!("{EXAMPLES}\n\n{}", Exit::help_of(&EXITS)))]
pub(crate) struct Respond {
    /// Where to listen; who is to be served from other hosts says so here
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:26700")]
    pub(crate) listen: SocketAddr,

    /// File with the token, which nobody else may read
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) token_file: Option<PathBuf>,
}
