//! The proxy's commands.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::PossibleValuesParser;
use clap::{Args, Subcommand, ValueHint};

use super::values;
use crate::exit::Exit;
use crate::voice::Voice;

const RUN_EXIT_CODES: &str = "\
Exit codes:
    0  stopped by SIGINT or SIGTERM; with --test: the configuration is usable
    1  an address cannot be listened on, or an internal error; starting again later may help
    2  the command line is wrong
   23  the configuration is wrong; starting again does not help";

const RUN_ENVIRONMENT: &str = "\
Environment (V2RAY_… in place of XRAY_… is understood as well):
  XRAY_LOCATION_CONFIG   folder of the config.json to take when none is named
  XRAY_LOCATION_CONFDIR  what --confdir says
  XRAY_LOCATION_CERT     folder that relative paths of certificates start from
  XRAY_LOCATION_ASSET    folder of geosite.dat and geoip.dat, before the usual ones [default: that of the program]";

/// Run the proxy
///
/// Serves a config.json as V2Ray and Xray know it. Several files are put together: an inbound or outbound takes the
/// place of an earlier one with its tag, and every other key replaces the earlier one whole. Long options may have one
/// dash (-config, -confdir, -test, -dump, -strict, -format), as those programs write them, and `run` may be left out before them.
///
/// SIGINT or SIGTERM stops accepting and lets connections finish for ten seconds, or as --grace says; a second one ends them at
/// once. SIGUSR1 opens the log files again, after a rotation. SIGHUP reads the configuration and every file that it names again: what has
/// changed counts for new connections, and those that there are go on. If something is wrong, nothing changes.
#[derive(Args, Clone, Debug)]
#[command(after_help = RUN_EXIT_CODES, after_long_help = format!("{RUN_EXIT_CODES}\n\n{RUN_ENVIRONMENT}"))]
pub(crate) struct Run {
    /// A configuration: a file, `stdin:` for standard input, or an address [default: config.json here]
    ///
    /// An address is http://…, https://…, or a path of HTTP at a unix socket of this machine: /run/a.sock:/path, and @name:/path for
    /// an abstract one. The server has 30 seconds for an answer of status 200 and at most 32 MiB.
    #[arg(short, long = "config", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Vec<PathBuf>,

    /// Also take every .json and .jsonc file of this folder, in the order of their names
    #[arg(long, value_name = "DIR", value_hint = ValueHint::DirPath)]
    pub(crate) confdir: Option<PathBuf>,

    /// Only say whether the configuration is usable here: keys, certificates, logs, options of sockets
    #[arg(long)]
    pub(crate) test: bool,

    /// Print the one configuration that several files come to, and do nothing else
    #[arg(long, conflicts_with = "test")]
    pub(crate) dump: bool,

    /// Make errors of all warnings about the configuration, such as that anyone can use a proxy
    #[arg(long)]
    pub(crate) strict: bool,

    /// How long connections may go on after the signal to end
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = values::pause)]
    pub(crate) grace: Duration,

    /// How long after that signal new connections are still accepted, while /readyz of `metrics` says that they are not welcome
    ///
    /// For load balancers, which take a moment to notice.
    #[arg(long, value_name = "TIME", default_value = "0s", value_parser = values::pause)]
    pub(crate) delay: Duration,

    /// Form of the configuration
    #[arg(long, default_value = "auto", value_parser = PossibleValuesParser::new(["auto", "json"]))]
    pub(crate) format: String,

    /// In whose words it speaks.
    #[arg(skip)]
    pub(crate) voice: Voice,
}

/// Call the management API of a running proxy
///
/// The words, their flags and what is printed are those of `xray api`: the answer as JSON. Flags may have one dash or two, and
/// their values stand behind `=` or in the next argument.
#[derive(Args, Debug)]
#[command(after_help = proxy_api_help())]
pub(crate) struct ProxyApi {
    /// What to do, and its flags
    #[arg(
        value_name = "WORD",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    pub(crate) words: Vec<String>,
}

fn proxy_api_help() -> String {
    let mut help = "Words:\n".to_owned();
    for word in sealway_api::client::WORDS {
        help += &format!("  {:<23} {}\n", word.name, word.help);
    }
    help += "\nFlags of every word:\n  \
        -server HOST:PORT       Where the API listens, or unix:/path or @name [default: 127.0.0.1:8080]\n  \
        -timeout SECONDS        How long a call may take [default: 3]\n\n";
    help + &Exit::help_of(&[
        (Exit::Done, "the server has done it"),
        (Exit::Internal, Exit::Internal.words()),
        (Exit::Usage, Exit::Usage.words()),
        (Exit::Remote, "the server cannot be reached, or refuses"),
    ])
}

/// Have a running proxy finish and end
///
/// Sends SIGTERM to a `sealway run` of this program and waits until it has ended: its /readyz says no, it listens for as long as
/// its --delay says, and its connections may go on for as long as its --grace says. A second drain ends them at once.
#[derive(Args, Debug)]
#[command(after_help = Exit::help_of(&DRAIN_EXITS))]
pub(crate) struct Drain {
    /// Its process [default: the only one there is]
    #[arg(long, value_name = "PID", conflicts_with = "socket", value_parser = clap::value_parser!(i32).range(1..))]
    pub(crate) pid: Option<i32>,

    /// The unix socket of its `metrics.listen`: whoever listens there is meant
    #[arg(long, value_name = "PATH", value_hint = ValueHint::FilePath)]
    pub(crate) socket: Option<PathBuf>,

    /// How long its end is waited for, 0s for not at all [default: for as long as it takes]
    #[arg(long, value_name = "TIME", value_parser = values::pause)]
    pub(crate) wait: Option<Duration>,
}

/// Of `drain`.
const DRAIN_EXITS: [(Exit, &str); 4] = [
    (Exit::Done, "the proxy has ended, or was told to with --wait 0s"),
    (Exit::Internal, "an internal error"),
    (
        Exit::Usage,
        "the command line is wrong, or no process, or none that is a proxy, is meant",
    ),
    (Exit::Remote, "the proxy goes on after --wait"),
];

/// Print the firewall's rules for a transparent proxy
///
/// Prints commands that lead the connections of other machines to the transparent inbounds of a configuration (a dokodemo-door
/// with `followRedirect`), and of this machine's own programs with --own. Nothing is applied: read them, and give them to a shell
/// of root. What would not work, or lead in a circle, is said on standard error.
#[derive(Args, Debug)]
#[command(after_help = Exit::help_of(&ASKED_EXITS))]
pub(crate) struct Gateway {
    /// A configuration, `stdin:` for standard input [default: config.json here]
    #[arg(short, long = "config", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Vec<PathBuf>,

    /// Interface that clients are behind; may be given several times [default: every interface]
    #[arg(long, value_name = "IFACE", value_delimiter = ',', value_parser = interface)]
    pub(crate) lan: Vec<String>,

    /// Also lead this machine's own programs to the proxy
    ///
    /// Its outbounds then need a mark (`sockopt.mark`), by which their connections are told from those of other programs.
    #[arg(long)]
    pub(crate) own: bool,

    /// Mark of packets on their way to the proxy
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) mark: u32,

    /// Routing table for packets with this mark
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = table)]
    pub(crate) table: u32,

    /// Leave IPv6 alone
    #[arg(long)]
    pub(crate) no_ipv6: bool,

    /// Print what undoes the rules
    #[arg(long)]
    pub(crate) undo: bool,
}

/// A number of a routing table that is not one of the system's own.
fn table(text: &str) -> Result<u32, String> {
    match text.parse() {
        Ok(0) | Err(_) => Err("no number of a routing table".to_owned()),
        Ok(253..=255) => Err("the system's own routes are in this table".to_owned()),
        Ok(number) => Ok(number),
    }
}

/// A name of an interface, which goes into commands for a shell.
fn interface(text: &str) -> Result<String, String> {
    let usual = |byte: u8| byte.is_ascii_alphanumeric() || b"._-@:+".contains(&byte);
    match text.len() {
        1..=15 if text.bytes().all(usual) && !text.starts_with('-') => Ok(text.to_owned()),
        _ => Err("no name of an interface; `ip link` lists them".to_owned()),
    }
}

#[derive(Debug, Subcommand)]
pub(crate) enum Route {
    /// Tell which rule decides where something goes
    ///
    /// For each target: the rule that decides, with its place in the file, what each of its conditions holds for, and the outbound or
    /// the balancer that it leads to. Nothing is connected to. If the configuration has rules look up names, they are looked up as it
    /// says.
    Test(RouteTest),
}

#[derive(Args, Debug)]
#[command(after_help = Exit::help_of(&ASKED_EXITS))]
pub(crate) struct RouteTest {
    /// A domain name or an IP address, with or without a port [default port: 443]
    #[arg(value_name = "TARGET", required = true)]
    pub(crate) targets: Vec<String>,

    /// A configuration, `stdin:` for standard input [default: config.json here]
    #[arg(short, long = "config", value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) config: Vec<PathBuf>,

    /// What is carried
    #[arg(long, default_value = "tcp", value_parser = PossibleValuesParser::new(["tcp", "udp"]))]
    pub(crate) network: String,

    /// Tag of the inbound that it comes by
    #[arg(long, value_name = "TAG")]
    pub(crate) inbound: Option<String>,

    /// Address of the client
    #[arg(long, value_name = "IP[:PORT]")]
    pub(crate) source: Option<String>,

    /// E-mail of the user
    #[arg(long, value_name = "EMAIL")]
    pub(crate) user: Option<String>,

    /// What sniffing finds: http1, tls, quic or bittorrent
    #[arg(long, value_name = "PROTOCOL")]
    pub(crate) protocol: Option<String>,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Of commands that read a configuration and answer.
const ASKED_EXITS: [(Exit, &str); 3] = [
    (Exit::Done, "the answer is printed"),
    (Exit::Internal, "an internal error"),
    (Exit::Usage, "the command line or the configuration is wrong"),
];

const GEO_FOLDERS: &str = "\
Geo files are looked for in the folder that XRAY_LOCATION_ASSET or V2RAY_LOCATION_ASSET names, or else in that of the program;
then in /usr/local/share/sealway, /usr/share/sealway, and where Xray and V2Ray have theirs: /usr/local/share/xray,
/usr/share/xray, /opt/share/xray, /usr/local/share/v2ray, /usr/share/v2ray.";

#[derive(Debug, Subcommand)]
pub(crate) enum Geo {
    /// Print the lists of a geo file
    ///
    /// One line for each list: its code as configurations write it, and the number of its entries.
    #[command(after_long_help = GEO_FOLDERS)]
    List {
        /// The file, by name or path [default: geosite.dat and geoip.dat]
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: Option<PathBuf>,
    },
    /// Print what is in a list
    ///
    /// One line for each entry, as configurations write it, with its attributes behind it.
    #[command(after_long_help = GEO_FOLDERS)]
    Show {
        /// The list as rules write it: geosite:CODE, geosite:CODE@attribute, geoip:CODE or ext:FILE:CODE
        #[arg(value_name = "LIST")]
        list: String,

        /// Only names with this attribute; several: with all of them
        #[arg(long, value_name = "NAME")]
        attr: Vec<String>,
    },
    /// Print the lists that hold a name or an address
    ///
    /// One line for each list, with the first of its entries that does.
    #[command(after_long_help = GEO_FOLDERS)]
    Lookup {
        /// A domain name, or an IP address
        #[arg(value_name = "NAME")]
        name: String,

        /// The file to look into [default: geosite.dat for names, geoip.dat for addresses]
        #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: Option<PathBuf>,
    },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Link {
    /// Print the configuration that a share link stands for
    ///
    /// The answer is a whole config.json: a local SOCKS and HTTP inbound, and the link's outbound. A link holds the id, and
    /// every user of this machine can read what stands on a command line: write - and give the link on standard input.
    ToConfig {
        /// - to read the link (ss://, trojan://, vless:// or vmess://) from standard input
        #[arg(value_name = "LINK")]
        link: String,

        /// Port of the local inbound
        #[arg(long, value_name = "PORT", default_value_t = 1080, value_parser = clap::value_parser!(u16).range(1..))]
        port: u16,

        /// Print the outbound only
        #[arg(long, conflicts_with = "port")]
        outbound: bool,
    },
    /// Print the share links of a configuration's outbounds
    ///
    /// One line for every VLESS and VMess outbound. What an outbound says and no link can say is named on standard error.
    FromConfig {
        /// The configuration, `stdin:` for standard input
        #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
        file: PathBuf,

        /// Only the outbound with this tag
        #[arg(long, value_name = "TAG")]
        tag: Option<String>,

        /// Write VMess links in the older form that v2rayN began (base64 of JSON)
        #[arg(long)]
        v2rayn: bool,
    },
}

/// Long options of `run` that may be written with one dash, and whether a value follows.
const SINGLE_DASH: [(&str, bool); 6] = [
    ("config", true),
    ("confdir", true),
    ("format", true),
    ("test", false),
    ("dump", false),
    ("strict", false),
];

/// The arguments as clap takes them: after `run`, a long option with one dash gets its second. A switch may have a value
/// there (`-test=true`), as those programs' flags have. As there, `run` may be left out before its options, and `-version` is
/// a command.
pub(crate) fn with_two_dashes(arguments: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut out: Vec<OsString> = arguments.collect();
    match out.get(1).and_then(|word| word.to_str()) {
        Some("-version") => out[1] = "version".into(),
        Some(word) if is_of_run(word) => out.insert(1, "run".into()),
        _ => {}
    }
    if out.get(1).is_none_or(|word| word != "run") {
        return out;
    }
    let mut literal = false;
    let rest: Vec<OsString> = out.split_off(2);
    for word in rest {
        // What follows an option that takes a value is that value, whatever it looks like.
        let is_value = literal || out.last().is_some_and(|last| last == "-c" || takes_value(last));
        literal |= word == "--";
        match word.to_str().filter(|_| !is_value).map(two_dashes) {
            Some(Spelling::Changed(word)) => out.push(word.into()),
            Some(Spelling::Off) => {}
            Some(Spelling::Kept) | None => out.push(word),
        }
    }
    out
}

/// Whether a word is an option that `run` alone has.
fn is_of_run(word: &str) -> bool {
    let Some(bare) = word.strip_prefix('-') else {
        return false;
    };
    let name = bare.strip_prefix('-').unwrap_or(bare);
    let name = name.split('=').next().unwrap_or_default();
    (bare == "c" || bare.starts_with("c=")) || SINGLE_DASH.iter().any(|(known, _)| *known == name)
}

fn takes_value(word: &OsString) -> bool {
    let long = word.to_str().and_then(|word| word.strip_prefix("--"));
    long.is_some_and(|long| SINGLE_DASH.contains(&(long, true)))
}

enum Spelling {
    Kept,
    Changed(String),
    /// A switch that is set to false, which is the same as absent.
    Off,
}

fn two_dashes(word: &str) -> Spelling {
    let Some(bare) = word.strip_prefix('-') else {
        return Spelling::Kept;
    };
    let bare = bare.strip_prefix('-').unwrap_or(bare);
    let (name, value) = bare.split_once('=').map_or((bare, None), |(n, v)| (n, Some(v)));
    match SINGLE_DASH.iter().find(|(known, _)| *known == name) {
        None => Spelling::Kept,
        Some((_, true)) => Spelling::Changed(format!("--{bare}")),
        Some((_, false)) => match value {
            None | Some("true" | "1" | "t" | "T" | "TRUE" | "True") => Spelling::Changed(format!("--{name}")),
            Some("false" | "0" | "f" | "F" | "FALSE" | "False") => Spelling::Off,
            Some(_) => Spelling::Changed(format!("--{bare}")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changed(words: &str) -> String {
        let words = with_two_dashes(words.split(' ').map(OsString::from));
        words.join(" ".as_ref()).to_string_lossy().into_owned()
    }

    #[test]
    fn one_dash_becomes_two_for_run_only() {
        for (given, wanted) in [
            ("sealway run -c a -test", "sealway run -c a --test"),
            (
                "sealway run -config a -config=b -confdir d",
                "sealway run --config a --config=b --confdir d",
            ),
            (
                "sealway run -format json -strict=true",
                "sealway run --format json --strict",
            ),
            ("sealway run -test=false --config a", "sealway run --config a"),
            ("sealway run -test=maybe", "sealway run --test=maybe"),
            ("sealway run -c -test", "sealway run -c -test"),
            ("sealway run -config -test", "sealway run --config -test"),
            ("sealway run -c=a -h", "sealway run -c=a -h"),
            ("sealway run -- -test", "sealway run -- -test"),
            ("sealway lab -test", "sealway lab -test"),
            ("sealway -c a", "sealway run -c a"),
            ("sealway -c=a", "sealway run -c=a"),
            ("sealway -config a -test", "sealway run --config a --test"),
            ("sealway --config=a", "sealway run --config=a"),
            ("sealway -test -c a", "sealway run --test -c a"),
            ("sealway -confdir d -strict", "sealway run --confdir d --strict"),
            ("sealway -version", "sealway version"),
            ("sealway --version", "sealway --version"),
            ("sealway -V", "sealway -V"),
            ("sealway -h", "sealway -h"),
            ("sealway -connect a", "sealway -connect a"),
            ("sealway", "sealway"),
        ] {
            assert_eq!(changed(given), wanted);
        }
    }
}
