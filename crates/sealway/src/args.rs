//! What the command line accepts, and the help, man pages and completions that follow from it.

mod after;
mod bip324;
mod drop;
mod keys;
mod proxy;
mod remote;
mod share;
mod store;
mod tls;
mod values;
mod web;
mod xray;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::LazyLock;
use std::time::Duration;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, Parser, Subcommand, ValueHint};
use clap_complete::Shell;
use sealway_aead::Suite;
use sealway_lab::catalogue::ALL;
use sealway_lab::link::Link as LabLink;
use sealway_lab::plan::Preset;
use sealway_lab::reproduce::Recipe;
use sealway_lab::route::{Guest, Pair as LabPair, Stack};

use crate::exit::Exit;

pub(crate) use bip324::{Bench as Bip324Bench, BenchWord, Bip324, Bridge, IncomingWord, LogWord, OutgoingWord, Probe};
pub(crate) use drop::{
    Appearing, ConflictWord, Guard, HashWord, Identity, IdentityCommand, Link as DropLink, Localsend, LocalsendCommand,
    Receive, Relay, Send, ViaWord,
};
pub(crate) use keys::{Mldsa65, Uuid, X25519};
pub(crate) use proxy::{Drain, Gateway, Geo, Link, ProxyApi, Route, RouteTest, Run, with_two_dashes};
pub(crate) use remote::{Remote, Respond};
pub(crate) use share::{Changing, Direction, Mount, MountAt, Mounting, Pair, Share};
pub(crate) use store::{Export, Import, Keep, Prune, Runs, Show, Stored, Trend};
pub(crate) use tls::{Tls, TlsCert, TlsPing};
pub(crate) use values::{Measured, PeerWord, scope};
pub(crate) use web::Web;
pub(crate) use xray::of_xray;

/// Version and commit of this build; clap wants them to live as long as the program.
pub(crate) fn version() -> &'static str {
    static VERSION: LazyLock<String> = LazyLock::new(sealway_lab::run::version);
    &VERSION
}

/// The proxy's codes are those of the programs that it stands in for.
const RUN_DIFFERS: &str = "`sealway run` has codes of its own: see `sealway run --help`.";

const ENVIRONMENT: &str = "\
Environment:
  SEALWAY_CPU_DISABLE  CPU features to do without (aes,avx2,avx512,…); `sealway cpu` lists them
  SEALWAY_LAB_STORE    where the lab keeps its runs; none: nowhere
  SEALWAY_LAB_TOKEN    the token of a lab on two hosts; never give it on the command line, where others see it
  XDG_DATA_HOME        where that is by default, in sealway/lab.sqlite (default: ~/.local/share)
  XDG_CACHE_HOME       where what a GPU costs is kept (default: ~/.cache)
  NO_COLOR             set to anything: no colours";

/// Encrypted transport with proof
///
/// Sealway seals bytes into records with an authenticated cipher that suits the hardware of both ends, carries
/// connections as V2Ray and Xray do, and measures how fast that is on this machine, side by side with other
/// implementations.
#[derive(Debug, Parser)]
#[command(name = "sealway", version = version(), max_term_width = 100, arg_required_else_help = true)]
#[command(after_help = format!("{}\n\n{RUN_DIFFERS}", Exit::help()))]
#[command(after_long_help = format!("{}\n\n{RUN_DIFFERS}\n\n{ENVIRONMENT}", Exit::help()))]
pub(crate) struct Cli {
    /// Take the words that follow as that program does, and print what it prints; so does `sealway` under the name xray
    #[arg(long, value_name = "PROGRAM", value_parser = ["xray"])]
    compat: Option<String>,

    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Speak BIP324, the encrypted transport between Bitcoin nodes
    #[command(subcommand, disable_help_subcommand = true)]
    Bip324(Bip324),
    /// Print shell completions
    ///
    /// Prints a completion script to standard output. Put it where your shell looks for completions, for example:
    /// sealway completions bash > ~/.local/share/bash-completion/completions/sealway
    Completions {
        /// The shell to print for
        shell: Shell,
    },
    /// Show what this CPU has for ciphers, and which suite follows from it
    Cpu {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    Drain(Drain),
    Gateway(Gateway),
    /// Look into geo files: lists of names and of networks
    #[command(subcommand, disable_help_subcommand = true)]
    Geo(Geo),
    Identity(Identity),
    /// Measure ciphers and transports on this machine
    Lab(Box<Lab>),
    /// Turn share links into configurations and back
    #[command(subcommand, disable_help_subcommand = true)]
    Link(Link),
    Localsend(Box<Localsend>),
    /// Write man pages
    Man {
        /// An existing folder to write them to
        #[arg(value_name = "DIR", value_hint = ValueHint::DirPath)]
        folder: PathBuf,
    },
    Mldsa65(Mldsa65),
    Mount(Box<Mount>),
    Pair(Box<Pair>),
    ProxyApi(ProxyApi),
    Receive(Box<Receive>),
    Relay(Relay),
    /// Ask the rules of a configuration
    #[command(subcommand, disable_help_subcommand = true)]
    Route(Route),
    Run(Run),
    Send(Box<Send>),
    Share(Box<Share>),
    /// Look at the TLS of a server, and make certificates
    #[command(subcommand, disable_help_subcommand = true)]
    Tls(Tls),
    Uuid(Uuid),
    /// Print the version, as --version does
    Version,
    #[command(name = "x25519")]
    X25519(X25519),
}

/// Measure ciphers and transports on this machine
///
/// Runs subjects (this engine and its peers) side by side in rounds, checks every output, and reports medians with their
/// spread and ratios within the same run. The table goes to standard output; progress and notes go to standard error.
#[derive(Args, Debug)]
#[command(
    args_conflicts_with_subcommands = true,
    subcommand_help_heading = "Other lab commands"
)]
#[command(disable_help_subcommand = true, after_help = Exit::help())]
#[command(after_long_help = format!("{}\n\n{ENVIRONMENT}", Exit::help()))]
pub(crate) struct Lab {
    #[command(subcommand)]
    pub(crate) command: Option<LabCommand>,
    #[command(flatten)]
    pub(crate) run: LabRun,
}

/// A run.
#[derive(Args, Debug)]
pub(crate) struct LabRun {
    #[arg(value_name = "WORKLOAD", value_parser = values::workload(ALL), default_value = ALL.0[0].name)]
    /// What to measure
    pub(crate) workload: Measured,

    /// Measure an NVIDIA GPU beside this machine's processor, for the workloads packets and bip324
    ///
    /// On a machine without a GPU it says so, and that is no failure. packets: kernels alone, with the link, and one call as a
    /// program makes it. bip324: packets of connections on the processor, on the GPU, and divided between them by what they cost
    /// on either; that is measured once and kept in
    /// $XDG_CACHE_HOME/sealway/costs (~/.cache/sealway/costs). Delete the file to measure it again.
    #[arg(long)]
    pub(crate) gpu: bool,

    /// What of the workload packets to measure on the GPU [default: all]
    ///
    /// kernel: its kernels alone, packets lie in its memory. pinned: packets lie in memory that it reads. call: one call as a
    /// program makes it, from one thread and from all. link: copies alone.
    #[arg(long, value_name = "MODE,…", value_delimiter = ',', requires = "gpu")]
    #[arg(value_parser = clap::builder::PossibleValuesParser::new(sealway_lab::packets::MODES))]
    pub(crate) gpu_mode: Vec<String>,

    /// Emulate a link between both ends, such as rate=100mbit,rtt=40ms,loss=0.1%, for the workloads bip324, transports, requests, flows
    /// and files
    ///
    /// Any of rate= (each direction: bit, kbit, mbit or gbit a second, 1kbit to 100gbit), rtt= (there and back: us, ms or s, up to 10s)
    /// and loss= (of packets, with rtt=, up to 50%). It is a model of what TCP shows over such a link, in user space; it is measured by
    /// itself first, and the report says what it gives. Results over different links do not compare. Of bip324 there are only the cases
    /// over sockets then.
    #[arg(long, value_name = "NAME=VALUE,…", value_parser = str::parse::<LabLink>, conflicts_with = "gpu")]
    pub(crate) link: Option<LabLink>,

    #[command(flatten)]
    pub(crate) windows: Windows,

    #[command(flatten)]
    pub(crate) remote: Remote,

    #[command(flatten)]
    pub(crate) options: LabOptions,
}

/// Windows of somebody else.
#[derive(Args, Debug)]
pub(crate) struct Windows {
    /// Measure as a published program does: iperf3 is one stream for 60 s, three times, without a time limit
    ///
    /// For the workload transports, and for recipes that have nothing else. Each stack takes about three minutes with each
    /// program; --stack and --peers choose from them.
    #[arg(long, value_name = "NAME", value_parser = values::preset())]
    #[arg(conflicts_with_all = ["quick", "full", "budget"])]
    pub(crate) preset: Option<Preset>,
}

/// Options of a run, whatever it measures.
#[derive(Args, Debug)]
pub(crate) struct LabOptions {
    /// 3 rounds of 0.5 s: under a minute for each workload, medians and ranges only
    #[arg(long, conflicts_with = "full")]
    pub(crate) quick: bool,

    /// 15 rounds of 10 s, for records
    #[arg(long)]
    pub(crate) full: bool,

    /// Programs and libraries to compare with: `auto` takes those that are installed, one that is named has to be
    #[arg(long, value_name = "auto|none|NAME,…", value_delimiter = ',', default_value = "auto")]
    #[arg(value_parser = values::peer(&ALL))]
    pub(crate) peers: Vec<PeerWord>,

    /// A program to measure beside them through proxies, under a name of its own; can be given several times
    ///
    /// One of V2Ray's kind: it is client and server with the configurations of Xray and V2Ray, as `PATH run -c FILE`, or as
    /// `PATH -config FILE` if it answers `-version` with V2Ray before 5. One that says it is sing-box or shoes gets configurations
    /// of that form. It is believed as little as any other, and has to be there. For the workloads transports, requests and
    /// flows and what contains them.
    #[arg(long, value_name = "NAME=PATH", value_parser = values::guest)]
    pub(crate) peer: Vec<Guest>,

    /// Two programs as one subject, one the client of the other: sealway, a peer, or the name of a --peer
    ///
    /// What it gives to change one end only: `--pair sealway+xray` beside `--peers xray`. Both have to be there. For the workloads
    /// transports, requests and flows and what contains them, but not for recipes. `transports --full` has our program with each other
    /// one, both ways.
    #[arg(long, value_name = "CLIENT+SERVER,…", value_delimiter = ',')]
    pub(crate) pair: Vec<LabPair>,

    /// Cipher suites to measure [default: all]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = values::suite())]
    pub(crate) suite: Vec<Suite>,

    /// Stacks to measure, each a proxy protocol with what carries it [default: by the length of the run]
    #[arg(long, value_name = "NAME,…", value_delimiter = ',', value_parser = values::stack())]
    pub(crate) stack: Vec<Stack>,

    /// Longest time for the whole run, such as 90s, 5m or 1h: shortens windows first, then leaves cases out; `all` shares
    /// it out
    #[arg(long, value_name = "TIME", value_parser = values::duration)]
    pub(crate) budget: Option<Duration>,

    /// Seed of every random choice, to repeat a run [default: random]
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,

    /// Write the result to FILE, - for standard output (the table then goes to standard error)
    ///
    /// An older file is replaced in one step when the run ends. Until then the rounds that are done stand beside it, in
    /// FILE.partial.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) json: Option<PathBuf>,

    /// Write a report with charts to FILE, one page that opens without a network
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,

    /// Fail with code 6 when figures are too noisy to use
    #[arg(long)]
    pub(crate) strict: bool,

    #[command(flatten)]
    pub(crate) keep: Keep,

    /// Draw no progress
    #[arg(long)]
    pub(crate) no_progress: bool,

    /// For build machines: no progress, no colour
    #[arg(long)]
    pub(crate) ci: bool,
}

#[derive(Debug, Subcommand)]
pub(crate) enum LabCommand {
    Compare(Compare),
    /// Say whether to trust figures of this machine
    ///
    /// Measures one library under two names, as if they were two: a difference between them is the lab's own error here. Then
    /// looks for what moves figures: the clock, the speed of the processor, other programs.
    #[command(after_help = Exit::help())]
    Doctor {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    Export(Export),
    Import(Import),
    Prune(Prune),
    Reproduce(Reproduce),
    Respond(Respond),
    Runs(Runs),
    Show(Show),
    Trend(Trend),
    /// One end of an HTTPS POST: what the workload `files` compares with
    #[command(subcommand, hide = true)]
    HttpsPost(HttpsPost),
}

/// One end of an HTTPS POST on this machine.
#[derive(Debug, Subcommand)]
pub(crate) enum HttpsPost {
    /// Take one file and end
    Receive {
        /// Folder that gets the file
        #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
        dir: PathBuf,
        /// File that gets the certificate
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        cert: PathBuf,
        /// The only suite of TLS
        #[arg(long, value_name = "NAME", value_parser = values::suite(), default_value = "aes-128-gcm")]
        suite: Suite,
    },
    /// Send one file
    Send {
        /// Address of the receiver
        #[arg(long, value_name = "ADDR")]
        to: SocketAddr,
        /// The receiver's certificate
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        cert: PathBuf,
        /// The only suite of TLS
        #[arg(long, value_name = "NAME", value_parser = values::suite(), default_value = "aes-128-gcm")]
        suite: Suite,
        /// The file
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: PathBuf,
    },
}

/// Check published measurements on this machine
///
/// Measures what a published comparison has measured, within ten minutes (`--quick`: two), and puts both side by side. A claim
/// is a ratio, and so is what is measured; each is confirmed, of another size, contradicted or not decided, by one rule. Programs
/// that are missing are named with the command that gets them. Suites and stacks that are asked for narrow the recipe down.
#[derive(Args, Debug)]
#[command(after_help = Exit::help(), mut_arg("pair", |arg| arg.hide(true)))]
pub(crate) struct Reproduce {
    /// Which measurements
    #[arg(value_name = "RECIPE", value_parser = values::recipe())]
    pub(crate) recipe: &'static Recipe,

    /// Measure nothing: read a result that --json wrote, of this machine or another
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    #[arg(conflicts_with_all = ["quick", "full", "peers", "peer", "suite", "stack", "budget", "seed", "preset"])]
    pub(crate) from: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) windows: Windows,

    #[command(flatten)]
    pub(crate) options: LabOptions,
}

/// Compare two results
///
/// A result is a file that `sealway lab --json` wrote, or a kept run: its number, the first eight characters of its identifier,
/// `last`, or a name or branch, whose newest run of the same workload is meant.
///
/// Each figure is taken over that of a control, a program that both runs have measured, and the change of this ratio is judged:
/// so what changed on the machine falls out. What only one of them has is listed. One run does not prove a slowdown: the exit
/// code is 5 only if a figure is slower in a repeat (`--again`) too, and 6 without one.
#[derive(Args, Debug)]
#[command(after_help = Exit::help())]
pub(crate) struct Compare {
    /// The older result: a file or a kept run
    #[arg(value_name = "A", value_hint = ValueHint::FilePath)]
    pub(crate) before: PathBuf,

    /// The newer result
    #[arg(value_name = "B", value_hint = ValueHint::FilePath)]
    pub(crate) after: PathBuf,

    /// A further result of the newer build, to confirm what changed; may be given several times
    #[arg(long, value_name = "FILE|RUN", value_hint = ValueHint::FilePath)]
    pub(crate) again: Vec<PathBuf>,

    /// The control by name [default: chosen from the programs that both have]
    #[arg(long, value_name = "NAME")]
    pub(crate) control: Option<String>,

    /// Write a page with both runs side by side to FILE
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) stored: Stored,

    /// Fail with code 6 when nothing can be decided
    #[arg(long)]
    pub(crate) strict: bool,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// The word after `lab` may be meant as one of its commands, which the list of workloads does not name.
pub(crate) fn with_lab_commands(mut error: clap::Error) -> clap::Error {
    let about_workload =
        matches!(error.get(ContextKind::InvalidArg), Some(ContextValue::String(a)) if a == "[WORKLOAD]");
    if error.kind() == ErrorKind::InvalidValue && about_workload {
        let lab = Lab::augment_args(clap::Command::new("lab"));
        let commands = lab.get_subcommands().filter(|command| !command.is_hide_set());
        let commands: Vec<String> = commands.map(|command| format!("'{}'", command.get_name())).collect();
        let tips = [
            scope(ALL.iter()),
            format!("other lab commands: {}", commands.join(", ")),
        ];
        let tips = tips.into_iter().map(Into::into).collect();
        error.insert(ContextKind::Suggested, ContextValue::StyledStrs(tips));
    }
    error
}

#[cfg(test)]
mod tests;
