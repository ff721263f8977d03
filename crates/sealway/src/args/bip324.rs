//! The commands of BIP324.

use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::time::Duration;

use clap::{ArgGroup, Args, Subcommand, ValueEnum, ValueHint};
use sealway_bip324::Magic;
use sealway_lab::link::Link;
use sealway_lab::pin::Pin;

use super::{LabOptions, values};
use crate::exit::Exit;

const BRIDGE_EXITS: [(Exit, &str); 3] = [
    (Exit::Done, "stopped by SIGINT or SIGTERM"),
    (
        Exit::Internal,
        "the address cannot be listened on, or an internal error; starting again later may help",
    ),
    (Exit::Usage, "the command line is wrong"),
];

const PROBE_EXITS: [(Exit, &str); 4] = [
    (
        Exit::Done,
        "the node answered, over v2 or over v1: the output says which",
    ),
    (Exit::Internal, Exit::Internal.words()),
    (Exit::Usage, "the command line is wrong"),
    (Exit::Remote, "nobody answered: no connection, or neither v2 nor v1"),
];

#[derive(Debug, Subcommand)]
pub(crate) enum Bip324 {
    /// Measure packets of BIP324 on this machine, as `sealway lab bip324` does
    ///
    /// Seals and opens the packets of one and of a thousand connections in batches and one at a time, carries them between
    /// two endpoints over loopback, times handshakes, and compares with other implementations in the same run.
    #[command(after_help = Exit::help())]
    Bench(Box<Bench>),
    Bridge(Bridge),
    Probe(Probe),
}

/// What to measure.
#[derive(Args, Debug)]
#[command(mut_arg("peer", |arg| arg.hide(true)), mut_arg("pair", |arg| arg.hide(true)))]
#[command(group(ArgGroup::new("threads").args(["gpu", "what"])))]
pub(crate) struct Bench {
    /// Put an NVIDIA GPU beside the processor, as `sealway lab bip324 --gpu` does
    ///
    /// Measures batches on the processor alone, on the GPU alone, and divided between them by what packets cost on either.
    #[arg(long)]
    pub(crate) gpu: bool,

    /// What to measure [default: all but sockets]
    #[arg(value_name = "WHAT", value_enum, conflicts_with = "gpu")]
    pub(crate) what: Option<BenchWord>,

    /// Connections over sockets, at most 20000; fewer where this process may not open two files for each
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_values_t = [1000, 10_000], requires = "what")]
    #[arg(value_parser = clap::value_parser!(u16).range(1..=20_000))]
    pub(crate) connections: Vec<u16>,

    /// Keep threads on these CPUs, in turn: numbers and ranges such as 0,2-3, or all that there are, one memory node after the
    /// other [default: as the system likes]
    ///
    /// For sockets, the threads of the two ends; with --gpu, those of the cases on several threads. Says which memory nodes the
    /// machine has. A thread's packets lie in the memory of its own node.
    #[arg(long, value_name = "auto|CPU,…", requires = "threads")]
    pub(crate) pin: Option<Pin>,

    /// Emulate a link between both ends, such as rate=100mbit,rtt=40ms,loss=0.1%: only what goes over sockets is measured then
    ///
    /// As `sealway lab --link` has it. For sockets, at most 10000 connections, each of which takes four open files.
    #[arg(long, value_name = "NAME=VALUE,…", value_parser = str::parse::<Link>, conflicts_with = "gpu")]
    pub(crate) link: Option<Link>,

    #[command(flatten)]
    pub(crate) options: LabOptions,
}

/// A part of what can be measured.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum BenchWord {
    /// A node's packets over many TCP connections, both ways
    Sockets,
}

/// Let a program that speaks only v1 speak v2, and v2 peers reach a node that speaks only v1
///
/// Listens, connects once for each connection that comes in, and translates messages both ways. What comes in may be v1
/// or v2, which its first bytes say; what goes out is v2, and v1 if the other side seems to know nothing else. v2 hides
/// what is said from whoever only listens; it does not prove who the other end is.
///
/// SIGINT or SIGTERM stops accepting and lets connections finish for ten seconds; a second one ends them at once.
#[derive(Args, Debug)]
#[command(after_help = Exit::help_of(&BRIDGE_EXITS))]
#[command(group(ArgGroup::new("decoy_policy").args(["decoys", "cover"]).multiple(true)))]
pub(crate) struct Bridge {
    /// Where to listen, such as 127.0.0.1:8333; port 0 lets the system choose
    #[arg(long, value_name = "ADDR")]
    pub(crate) listen: SocketAddr,

    /// Who to connect to, HOST:PORT; without a port, the usual one of the network
    #[arg(long, value_name = "ADDR", value_hint = ValueHint::Hostname)]
    pub(crate) connect: String,

    /// mainnet, testnet3, testnet4, signet, regtest, or a magic as eight hexadecimal digits
    #[arg(long, value_name = "NAME|MAGIC", default_value = "mainnet", value_parser = network)]
    pub(crate) network: Magic,

    /// What to speak to the other side
    #[arg(long, value_name = "VERSION", value_enum, default_value_t = OutgoingWord::Auto)]
    pub(crate) outgoing: OutgoingWord,

    /// What may come in
    #[arg(long, value_name = "VERSION", value_enum, default_value_t = IncomingWord::Any)]
    pub(crate) incoming: IncomingWord,

    /// Send packets that mean nothing after so many of 100 messages, over v2 to either side
    ///
    /// The other end throws them away. They blur the sizes and the times of small messages; they hide neither that something
    /// is sent nor a large block. While the other side does not keep up, none are sent.
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(1..=100))]
    pub(crate) decoys: Option<u8>,

    /// Send such packets while there are no messages too, one in this time on average, such as 10s or 2m
    ///
    /// For each direction that is v2, at random times. They do not keep a connection open.
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub(crate) cover: Option<Duration>,

    /// Sizes of such packets, bytes of contents, every one equally likely; at most 65536
    #[arg(long, value_name = "MIN-MAX", default_value = "0-512", value_parser = decoy_size, requires = "decoy_policy")]
    pub(crate) decoy_size: RangeInclusive<usize>,

    /// Connections at a time; when there are as many, those that have said nothing give way to new ones
    #[arg(long, value_name = "N", default_value_t = 256, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) max_connections: u32,

    /// Connections of one address at a time, of IPv6 one /64; more are closed at once
    ///
    /// Behind Tor or a proxy everybody comes from one address: give as many as --max-connections there.
    #[arg(long, value_name = "N", default_value_t = 32, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    pub(crate) max_per_address: u32,

    /// What to log to standard error
    #[arg(long, value_name = "LEVEL", value_enum, default_value_t = LogWord::Warning)]
    pub(crate) log: LogWord,
}

/// Say whether and how fast a node speaks v2
///
/// Connects, shakes hands in v2 and exchanges version messages. If v2 fails, it tries v1 on another connection, to say
/// what the node is. What the node says of itself is its claim.
#[derive(Args, Debug)]
#[command(after_help = Exit::help_of(&PROBE_EXITS))]
pub(crate) struct Probe {
    /// The node; without a port, the usual one of the network. IPv6 addresses with a port stand in brackets
    #[arg(value_name = "HOST:PORT", value_hint = ValueHint::Hostname)]
    pub(crate) target: String,

    /// mainnet, testnet3, testnet4, signet, regtest, or a magic as eight hexadecimal digits
    #[arg(long, value_name = "NAME|MAGIC", default_value = "mainnet", value_parser = network)]
    pub(crate) network: Magic,

    /// Longest time for all of it, such as 10s or 2m
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = values::duration)]
    pub(crate) timeout: Duration,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What a bridge speaks onward.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum OutgoingWord {
    /// v2, and v1 on another connection if there was no answer at all
    Auto,
    /// v2 only
    V2,
    /// v1 only
    V1,
}

/// What a bridge takes.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum IncomingWord {
    /// v1 and v2
    Any,
    /// v2 only
    V2,
    /// v1 only
    V1,
}

/// How much is logged.
#[derive(Clone, Copy, Debug, Eq, PartialEq, ValueEnum)]
pub(crate) enum LogWord {
    /// Nothing
    None,
    /// What keeps it from working
    Error,
    /// And what it could not do for a connection
    Warning,
    /// And how each connection ended
    Info,
}

fn decoy_size(text: &str) -> Result<RangeInclusive<usize>, String> {
    const MOST: usize = 65_536;
    // The parser of numbers takes a sign too.
    let number = |digits: &str| match digits.bytes().all(|byte| byte.is_ascii_digit()) {
        true => digits.parse().ok().filter(|number| *number <= MOST),
        false => None,
    };
    let sizes = text
        .split_once('-')
        .and_then(|(min, max)| Some((number(min)?, number(max)?)));
    match sizes {
        Some((min, max)) if min <= max => Ok(min..=max),
        _ => Err(format!(
            "give the smallest and the largest number of bytes, such as 0-512; at most {MOST}"
        )),
    }
}

fn network(text: &str) -> Result<Magic, String> {
    text.parse().map_err(|error: sealway_bip324::Error| error.to_string())
}
