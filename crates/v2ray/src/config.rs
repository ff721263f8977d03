//! `config.json`, parsed into valid types.
//!
//! [`load`] takes the text of one file or several and gives back a [`Config`] in which nothing is left to check, or
//! all the [`Problem`]s at once, each with its place. Whatever the tables of keys do not know is warned about; what
//! other programs have and this one does not have yet is named as such. [`reference()`] writes the tables down.

mod api;
mod balancer;
mod chain;
mod conditions;
mod context;
mod dest;
mod dns;
mod duration;
mod endpoint;
mod foreign;
mod inbound;
mod limits;
mod locate;
mod log;
mod mask;
mod merge;
mod merged;
mod metrics;
mod net;
mod observatory;
mod outbound;
mod policy;
mod ports;
mod protocol;
mod quotas;
mod reach;
mod reality;
mod reference;
mod routing;
mod scalar;
mod schema;
mod share;
mod sniffing;
mod sockopt;
mod stats;
mod stream;
mod table;
mod tls;
mod transport;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use crate::json::{self, Data, Value, members};
use api::MaybeApi;
use context::{Cx, quoted};
use dns::FakeDns;
use scalar::{Listed, Part, ScalarMap};
use table::{Decode, object};

pub use crate::problem::{At, Position, Problem, Severity};
pub use api::{API_LISTENER, Api, ApiService, ApiTls};
pub use balancer::{Balancer, BalancerKind, Cost, CostMatch, LeastLoad};
pub use conditions::{Attributes, ProcessMatch, Processes, Protocols, Systems};
pub use context::nearest;
pub use dest::FallbackDial;
pub use dns::{Dns, DnsAddress, DnsIps, DnsServer, DnsTransport, FakePool, HostAnswer, Hosts, QueryStrategy};
pub use endpoint::UnixName;
pub use inbound::{Inbound, Listen};
pub use limits::{Day, Gib, Kib, Limits, Mbps};
pub use locate::problem_at;
pub use log::{AccessFormat, Log, LogLevel, LogSize, LogTarget, LogsKept};
pub use mask::MaskAddress;
pub use merged::merged;
pub use metrics::{Metrics, ServiceListen};
pub use net::{DomainMatch, DomainMatches, GeoList, IpMatch, IpMatches, Pattern, UserMatch, UserMatches, is_private};
pub use observatory::{BurstObservatory, Observatory, ProbeMethod, ProbeUrl, is_subject};
pub use outbound::{Mux, Outbound, ProxySettings, SendThrough, XudpProxyUdp443};
pub use policy::{LevelPolicy, Levels, Policy, SystemPolicy};
pub use ports::{Networks, Port, Ports};
pub use protocol::{
    Account, BlackholeAnswer, BlackholeResponse, BlackholeSettings, DnsAction, DnsRule, DnsSettings, DokodemoSettings,
    Experiments, FallbackTarget, FinalAction, FinalRule, Fragment, FreedomSettings, HttpSettings, InboundProtocol,
    Noise, NoisePacket, NoiseTo, NonIpQuery, OutboundProtocol, Packets, Password, ProxyOutbound, Redirect, Server,
    ShadowsocksInbound, ShadowsocksOutbound, ShadowsocksUsers, SocksAuth, SocksSettings, TrojanInbound, TrojanOutbound,
    User, Vision, VlessInbound, VlessOutbound, VlessUser, VmessInbound, VmessOutbound, VmessSecurity,
};
pub use reality::{ClientReality, FallbackLimit, Reality, Secret, ServerReality, ThrottledAfter};
pub use reference::{keys, reference};
pub use routing::{Routing, RoutingStrategy, Rule, RuleTarget};
pub use scalar::{Headers, ScalarText, Texts};
pub use sniffing::{Override, Overrides, Sniffing};
pub use sockopt::{DomainStrategy, Sockopt, Tproxy};
pub use stats::{NodeName, Stats, StatsStore};
pub use stream::{Download, Stream};
pub use tls::{Certificate, CertificateUsage, CipherSuite, Curve, Pem, Tls, TlsVersion};
pub use transport::{EarlyData, Front, Grpc, Http, Transport, Upgrade, Xhttp};

object! {
    /// What a file may hold.
    struct Settings: "the top level" {
        /// Names for `env:NAME` in ports and addresses, asked before the environment of the process.
        env: ScalarMap = "env";
        /// What is logged, and where to.
        log: Part<Option<Log>> = "log";
        /// Name resolution.
        dns: Part<Dns> = "dns", default "{}";
        /// Pools of addresses that stand for names, for the DNS server `fakedns`: an object, or a list with one for each family.
        fake: Part<FakeDns> = "fakedns";
        /// Which outbound a connection takes.
        routing: Part<Routing> = "routing", default "{}";
        /// Timeouts, buffers and which counters are kept.
        policy: Part<Policy> = "policy", default "{}";
        /// Where connections come in.
        inbounds: Listed<Inbound> = "inbounds";
        /// Where connections go out. The first is for whatever no rule is about.
        outbounds: Listed<Outbound> = "outbounds";
        /// Keep the counters that `policy` asks for.
        stats: Part<Option<Stats>> = "stats";
        /// The management API.
        api: Part<MaybeApi> = "api", default "{}";
        /// Numbers for whoever watches the server.
        metrics: Part<Option<Metrics>> = "metrics";
        /// Measuring outbounds one after another, for balancers.
        observatory: Part<Option<Observatory>> = "observatory";
        /// Measuring outbounds many times each, for balancers.
        burst: Part<Option<BurstObservatory>> = "burstObservatory";
    }
    other {
        LaterWarning "geodata": "fetching geo files (`geodata`); fetch them with another program, and SIGHUP loads them again";
        LaterWarning "multiObservatory": "several observers (`multiObservatory`); one is `observatory` or `burstObservatory`";
        LaterWarning "browserForwarder": "dialling by a browser (`browserForwarder`)";
        Accepted "version": "";
        Accepted "remarks": "It is a name for the reader.";
        Gone "inbound": "write `inbounds`, a list of objects";
        Gone "inboundDetour": "write its objects into `inbounds`";
        Gone "outbound": "write `outbounds`, a list of objects";
        Gone "outboundDetour": "write its objects into `outbounds`";
        Gone "transport": "write the settings into the `streamSettings` of each inbound and outbound";
        Gone "reverse": "it has no successor here yet";
    }
}

/// A file.
#[derive(Clone, Copy, Debug)]
pub struct File<'a> {
    /// Its name, for messages; "tail" in it matters to the order of outbounds (see [`load`]).
    pub name: &'a str,
    /// Its bytes.
    pub text: &'a [u8],
}

/// How to read.
#[derive(Clone, Copy)]
pub struct Options<'a> {
    /// Make errors of all warnings.
    pub strict: bool,
    /// Gives the value of a variable of the environment, for `env:NAME`.
    pub env: &'a dyn Fn(&str) -> Option<String>,
}

impl Default for Options<'_> {
    /// Not strict, and an empty environment.
    fn default() -> Self {
        Options {
            strict: false,
            env: &|_| None,
        }
    }
}

/// What came of a reading.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// The configuration. `None` if, and only if, one of the problems is an error.
    pub config: Option<Config>,
    /// What is wrong, in the order of the files. At most some 200; a last one says if there are more.
    pub problems: Vec<Problem>,
    /// What could be read of a configuration with errors, for finding others that only show when it is put to use.
    pub draft: Draft,
}

/// The parts of a configuration with errors that are right themselves. It must not be run: what protects may be missing.
#[derive(Clone, Debug, Default)]
pub struct Draft {
    /// What is logged, and where to.
    pub log: Option<Log>,
    /// Inbounds with their places in the list.
    pub inbounds: Vec<(usize, Inbound)>,
    /// Outbounds with their places in the list.
    pub outbounds: Vec<(usize, Outbound)>,
}

impl Loaded {
    /// The errors among the problems.
    pub fn errors(&self) -> impl Iterator<Item = &Problem> {
        self.problems
            .iter()
            .filter(|problem| problem.severity == Severity::Error)
    }

    /// The files, by their places among those given to [`load`], that hold ids, passwords or keys: nobody but the owner should
    /// be able to read them.
    pub fn files_with_secrets(&self) -> BTreeSet<u16> {
        let config = self.config.iter();
        let inbounds = config.clone().flat_map(|config| &config.inbounds);
        let inbounds = inbounds.chain(self.draft.inbounds.iter().map(|(_, inbound)| inbound));
        let outbounds = config.flat_map(|config| &config.outbounds);
        let outbounds = outbounds.chain(self.draft.outbounds.iter().map(|(_, outbound)| outbound));
        let inbounds = inbounds.filter(|one| one.protocol.has_secrets() || one.stream.has_keys());
        let outbounds = outbounds.filter(|one| one.protocol.has_secrets() || one.stream.has_keys());
        let store = self
            .config
            .iter()
            .filter_map(|config| config.stats.as_ref()?.store.as_ref());
        let store = store.filter(|store| store.value.has_secrets());
        inbounds
            .map(|one| one.at.file)
            .chain(outbounds.map(|one| one.at.file))
            .chain(store.map(|store| store.at.file))
            .collect()
    }
}

/// A configuration in which every value is valid and every reference leads somewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Config {
    /// What is logged, and where to.
    pub log: Log,
    /// Name resolution.
    pub dns: Dns,
    /// Which outbound a connection takes.
    pub routing: Routing,
    /// Timeouts, buffers and which counters are kept.
    pub policy: Policy,
    /// Where connections come in.
    pub inbounds: Vec<Inbound>,
    /// Where connections go out. There is at least one, and the first is the default.
    pub outbounds: Vec<Outbound>,
    /// Whether counters are kept at all, and where what users have used.
    pub stats: Option<Stats>,
    /// The management API.
    pub api: Option<Api>,
    /// Numbers for whoever watches the server.
    pub metrics: Option<Metrics>,
    /// Outbounds that are measured one after another.
    pub observatory: Option<Observatory>,
    /// Outbounds that are measured many times each.
    pub burst: Option<BurstObservatory>,
    /// Names for `env:NAME`.
    pub env: BTreeMap<String, String>,
}

/// Reads the text of one file, or of several in the order they were given.
///
/// Later files go over earlier ones: inbounds and outbounds whose tag is there already take that one's place (an
/// untagged one that of the first untagged one); new inbounds are put behind the others, new outbounds before them, or
/// behind if the file's name has "tail" in it; `env` gains the new names; every other key replaces the earlier one
/// whole.
///
/// # Errors
/// All problems are collected in [`Loaded::problems`]; [`Loaded::config`] is `None` if one of them is an error. A
/// syntax error ends the reading of its file, and then nothing else is told of any file.
pub fn load(files: &[File<'_>], options: &Options<'_>) -> Loaded {
    let names: Vec<&str> = files.iter().map(|file| file.name).collect();
    let mut cx = Cx::new(Settings::TABLE, &names, options.strict, options.env);
    let whole = merge::all(files, &mut cx);
    let (config, draft) = match whole {
        Some(value) if cx.errors() == 0 => match foreign::told(&value) {
            // What else there is to say would be about keys that are right where they come from.
            Some((text, hint)) => {
                cx.error(value.at, text, hint);
                (None, Draft::default())
            }
            None => decode(value, &mut cx),
        },
        _ => (None, Draft::default()),
    };
    let config = config.filter(|_| cx.errors() == 0);
    Loaded {
        config,
        problems: cx.finish(),
        draft,
    }
}

/// Reads a file as JSON and nothing more: comments go, and of equal keys the last stays.
///
/// # Errors
/// The syntax error.
pub fn plain(file: &File<'_>) -> Result<serde_json::Value, Problem> {
    fn value(from: Value) -> serde_json::Value {
        match from.data {
            Data::Null => serde_json::Value::Null,
            Data::Bool(value) => value.into(),
            // What no number of this machine can be stays a text.
            Data::Number(text) => serde_json::from_str(&text).unwrap_or_else(|_| text.as_ref().into()),
            Data::String(text) => text.into(),
            Data::Array(values) => values.into_iter().map(value).collect(),
            Data::Object(members) => members.into_iter().map(|m| (m.key, value(m.value))).collect(),
        }
    }
    match json::read(file.text, 0) {
        Ok(document) => Ok(value(document.value)),
        Err(fault) => Err(Problem {
            severity: Severity::Error,
            file: file.name.to_owned(),
            line: fault.at.line,
            column: fault.at.column,
            path: String::new(),
            text: fault.text,
            hint: fault.hint.to_owned(),
        }),
    }
}

/// Reads an outbound that stands alone, as a link makes one.
pub(crate) fn read_outbound(text: &str) -> (Option<Outbound>, Vec<Problem>) {
    let mut cx = Cx::new(Settings::TABLE, &["link"], false, &|_| None);
    let outbound = match json::read(text.as_bytes(), 0) {
        Ok(document) => Outbound::decode(document.value, &mut cx),
        Err(fault) => {
            cx.error(fault.at, fault.text, fault.hint);
            None
        }
    };
    let outbound = outbound.filter(|_| cx.errors() == 0);
    (outbound, cx.finish())
}

/// Reads the whole of a configuration, or what can be read of it.
fn decode(mut value: Value, cx: &mut Cx<'_>) -> (Option<Config>, Draft) {
    let at = value.at;
    // Ports and addresses may refer to it.
    cx.env = take_env(&mut value);
    // Rules refer to these, also where the rest of an inbound or outbound cannot be read.
    cx.tags.inbounds = find_tags(&value, "inbounds", cx);
    cx.tags.queries = dns::tags(&value);
    cx.tags.outbounds = find_tags(&value, "outbounds", cx);
    cx.tags.api = merge::tag_under(&value, "api").map(|(tag, _)| tag);
    // A rule may lead to who asks for numbers.
    if let Some((tag, at)) = merge::tag_under(&value, "metrics") {
        if cx.tags.outbounds.contains_key(&tag) {
            let text = format!("an outbound has the tag {} already", quoted(&tag));
            cx.within("metrics", |cx| cx.error_in("tag", at, text, "choose another one"));
        }
        cx.tags.services.push(tag);
    }
    let routing = members(&value).iter().rfind(|m| m.key.eq_ignore_ascii_case("routing"));
    if let Some(routing) = routing {
        cx.tags.balancers = cx.within("routing", |cx| find_tags(&routing.value, "balancers", cx));
    }
    let missing_outbounds = !has(&value, "outbounds");
    let Some(s) = Settings::decode(value, cx) else {
        return (None, Draft::default());
    };
    if s.outbounds.read.is_empty() && s.outbounds.whole {
        let text = if missing_outbounds {
            "`outbounds` is missing"
        } else {
            "there is no outbound"
        };
        cx.error(
            at,
            text,
            "add {\"protocol\": \"freedom\"} to connect straight to the target",
        );
    }
    if s.inbounds.read.is_empty() && s.inbounds.whole && s.outbounds.whole {
        cx.warn(
            at,
            "there is no inbound: nothing will ever connect",
            "add one under `inbounds`",
        );
    }
    reach::check_open(&s.inbounds.read, cx);
    chain::check(&s.outbounds.read, cx);
    if let (Some(policy), Some(stats)) = (&s.policy.0, &s.stats.0) {
        let store = stats.as_ref().and_then(|stats| stats.store.as_ref());
        quotas::check(&s.inbounds.read, policy, store, cx);
    }
    if let Some(routing) = &s.routing.0 {
        reach::check_doors(&s.inbounds.read, &s.outbounds.read, routing, cx);
        if let Some(MaybeApi(Some(api))) = &s.api.0 {
            api::check(api, &s.inbounds.read, routing, cx);
        }
        if let (Some(observatory), Some(burst)) = (&s.observatory.0, &s.burst.0) {
            observatory::check_health(routing, observatory.as_ref(), burst.as_ref(), cx);
        }
    }
    // If one could not be read, there is an error.
    let (observatory, burst, metrics) = (s.observatory.0.flatten(), s.burst.0.flatten(), s.metrics.0.flatten());
    let api = s.api.0.and_then(|api| api.0);
    let config = match (s.log.0, s.dns.0, s.fake.0, s.routing.0, s.policy.0, s.stats.0) {
        (Some(log), Some(dns), Some(fake), Some(routing), Some(policy), Some(stats)) if cx.errors() == 0 => Config {
            log: log.unwrap_or_default(),
            dns: Dns { fake: fake.0, ..dns },
            routing,
            policy,
            inbounds: s.inbounds.read.into_iter().map(|(_, inbound)| inbound).collect(),
            outbounds: s.outbounds.read.into_iter().map(|(_, outbound)| outbound).collect(),
            stats,
            api,
            metrics,
            observatory,
            burst,
            env: std::mem::take(&mut cx.env),
        },
        (log, ..) => {
            let draft = Draft {
                log: log.flatten(),
                inbounds: s.inbounds.read,
                outbounds: s.outbounds.read,
            };
            return (None, draft);
        }
    };
    (Some(config), Draft::default())
}

fn has(value: &Value, key: &str) -> bool {
    members(value)
        .iter()
        .any(|m| m.key.eq_ignore_ascii_case(key) && !m.value.is_null())
}

/// The names of the `env` object. What is wrong about it is told when its turn comes.
fn take_env(value: &mut Value) -> BTreeMap<String, String> {
    let env = members(value).iter().rfind(|m| m.key.eq_ignore_ascii_case("env"));
    let pairs = env.map(|m| members(&m.value)).unwrap_or_default();
    let text = |value: &Value| match &value.data {
        Data::String(text) => Some(text.clone()),
        Data::Number(text) => Some(text.to_string()),
        _ => None,
    };
    pairs
        .iter()
        .filter_map(|m| Some((m.key.clone(), text(&m.value)?)))
        .collect()
}

/// The tags of a list and their places in it. Tells of those that are used twice.
fn find_tags(value: &Value, list: &str, cx: &mut Cx<'_>) -> HashMap<String, usize> {
    let mut found: HashMap<String, (usize, Position)> = HashMap::new();
    let member = members(value).iter().rfind(|m| m.key.eq_ignore_ascii_case(list));
    let values = match member.map(|m| &m.value.data) {
        Some(Data::Array(values)) => values.as_slice(),
        _ => &[],
    };
    for (i, value) in values.iter().enumerate() {
        let Some((tag, at)) = merge::tag_value(value).filter(|(tag, _)| !tag.is_empty()) else {
            continue;
        };
        if let Some((_, first)) = found.get(tag) {
            let text = format!("the one on line {} has the same tag {}", first.line, quoted(tag));
            let hint = "a tag is how rules and counters tell them apart";
            cx.within(list, |cx| cx.at_index(i, |cx| cx.error_in("tag", at, text, hint)));
        } else {
            found.insert(tag.to_owned(), (i, at));
        }
    }
    found.into_iter().map(|(tag, (i, _))| (tag, i)).collect()
}
