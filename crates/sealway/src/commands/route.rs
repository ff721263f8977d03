//! `sealway route test`.

use std::fmt::Write as _;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use sealway_proxy::geo;
use sealway_proxy::routes::{Held, Leads, Routes, Traits, Verdict};
use sealway_proxy::settings::Settings;
use sealway_v2ray::config::{Config, File, Position, Rule, Severity, nearest, problem_at};
use sealway_v2ray::{Address, Destination};
use serde_json::{Value, json};

use super::run::files::{environment, location, look, problems, texts};
use crate::args::RouteTest;
use crate::exit::Exit;
use crate::output;
use crate::problem::Problem;
use crate::signals::runtime;

/// The port of a target that says none.
const PORT: u16 = 443;

pub(crate) fn run(options: &RouteTest) -> Result<Exit, Problem> {
    let all = traits(options)?;
    let (sources, config) = look(&options.config)?;
    let files = texts(&sources);
    let wrong = || Problem::usage("the configuration is wrong; no rule was asked");
    let config = config.ok_or_else(wrong)?;
    // An error with a place is told like the others.
    let refuse = |error: sealway_proxy::Error| match &error {
        sealway_proxy::Error::Config { place, what } => {
            let hint = error.hint().to_owned();
            problems(&[problem_at(&files, Severity::Error, place, what.clone(), hint)]);
            wrong()
        }
        _ => Problem::new(Exit::Internal, error),
    };
    known_inbound(options, &config)?;
    let mut settings = Settings::from_config(&config).map_err(refuse)?;
    settings.geo_folders = geo::folders(location("asset", &environment));
    let runtime = runtime()?;
    let within = runtime.enter();
    let routes = Routes::new(&settings).map_err(refuse)?;
    let page = Page {
        config: &config,
        settings: &settings,
        files: &files,
    };
    let mut answers = Vec::new();
    for one in &all {
        let verdict = runtime.block_on(routes.ask(one));
        answers.push((one, verdict));
    }
    drop((routes, within));
    runtime.shutdown_background();
    if options.json {
        let values = answers.iter().map(|(one, verdict)| page.json(one, verdict));
        output::print_json(&values.collect())?;
    } else {
        let texts: Vec<String> = answers.iter().map(|(one, verdict)| page.text(one, verdict)).collect();
        output::print(&texts.join("\n"))?;
    }
    Ok(Exit::Done)
}

fn usage(what: String, hint: &str) -> Problem {
    Problem::usage(what).hint(hint)
}

/// Connections as the command line describes them.
fn traits(options: &RouteTest) -> Result<Vec<Traits>, Problem> {
    let source = options.source.as_deref().map(source).transpose()?;
    let one = |text: &String| {
        let (address, port) = target(text)?;
        let target = match options.network.as_str() {
            "udp" => Destination::udp(address, port),
            _ => Destination::tcp(address, port),
        };
        Ok(Traits {
            source,
            email: options.user.clone().unwrap_or_default(),
            inbound: options.inbound.clone().unwrap_or_default(),
            protocol: options.protocol.clone(),
            ..Traits::of(target)
        })
    };
    options.targets.iter().map(one).collect()
}

fn source(text: &str) -> Result<SocketAddr, Problem> {
    let address = text.parse().or_else(|_| {
        let ip: Result<IpAddr, _> = text.trim_start_matches('[').trim_end_matches(']').parse();
        ip.map(|ip| SocketAddr::new(ip, 0))
    });
    address.map_err(|_| {
        let hint = "write an IP address, with or without a port: 192.0.2.7, 192.0.2.7:5000 or [2001:db8::7]:5000";
        usage(format!("--source {text:?} is no address"), hint)
    })
}

fn target(text: &str) -> Result<(Address, u16), Problem> {
    let hint = "write a domain name or an IP address, with or without a port: www.example.org, 192.0.2.7:80 or [2001:db8::7]:80";
    let wrong = |what: &str| usage(format!("{text:?} {what}"), hint);
    if text.contains("://") || text.contains('/') {
        return Err(wrong("is a URL or a path"));
    }
    if let Ok(ip) = text.parse::<Ipv6Addr>() {
        return Ok((Address::Ipv6(ip), PORT));
    }
    let (host, port) = match text.rsplit_once(':') {
        Some((host, port)) if !port.contains(']') => match port.parse::<u16>() {
            Ok(port) if port != 0 => (host, port),
            _ => return Err(wrong("has no port from 1 to 65535 behind its colon")),
        },
        _ => (text, PORT),
    };
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let address = match bare {
        Some(v6) => v6.parse().ok().map(Address::Ipv6),
        // A colon that is left belongs to no name.
        None => Address::parse(host).ok().filter(|_| !host.contains([':', ' '])),
    };
    Ok((address.ok_or_else(|| wrong("is neither a name nor an address"))?, port))
}

/// Refuses the tag of an inbound that is not there.
fn known_inbound(options: &RouteTest, config: &Config) -> Result<(), Problem> {
    let Some(wanted) = &options.inbound else { return Ok(()) };
    let rules = config.routing.rules.iter().flat_map(|rule| &rule.inbound_tags);
    let tags: Vec<&str> = config
        .inbounds
        .iter()
        .map(|one| one.tag.as_str())
        .chain(rules.map(String::as_str))
        .collect();
    if tags.contains(&wanted.as_str()) {
        return Ok(());
    }
    let problem = Problem::usage(format!("no inbound has the tag {wanted:?}"));
    let near = nearest(wanted, tags.iter().copied());
    Err(problem.hint_if(near.map(|near| format!("did you mean {near:?}?"))))
}

/// What answers are written from.
struct Page<'a> {
    config: &'a Config,
    settings: &'a Settings,
    files: &'a [File<'a>],
}

/// Where something is written.
struct Place {
    file: String,
    line: u32,
    column: u32,
}

impl Page<'_> {
    fn rule(&self, number: usize) -> (Option<&Rule>, Place) {
        let path = format!("routing.rules[{number}]");
        let at = problem_at(self.files, Severity::Error, &path, String::new(), String::new());
        let place = Place {
            file: at.file,
            line: at.line,
            column: at.column,
        };
        (self.config.routing.rules.get(number), place)
    }

    /// The tag of an outbound, or its place where it has none.
    fn outbound(&self, number: usize) -> String {
        match self.settings.outbounds.get(number) {
            Some(one) if !one.tag.is_empty() => one.tag.clone(),
            _ => format!("outbounds[{number}]"),
        }
    }

    /// Where a verdict leads. The API is no outbound of the file, nor is one that is not there: the rule names them.
    fn led(&self, verdict: &Verdict, number: usize) -> String {
        let rule = verdict.rule.and_then(|rule| self.settings.rules.get(rule));
        match rule.filter(|_| number >= self.settings.outbounds.len()) {
            Some(rule) => rule.outbound_tag.clone(),
            None => self.outbound(number),
        }
    }

    fn balancer(&self, number: usize) -> &str {
        self.settings.balancers.get(number).map_or("", |one| one.tag.as_str())
    }

    fn outbounds(&self, numbers: &[usize]) -> Vec<String> {
        numbers.iter().map(|number| self.outbound(*number)).collect()
    }

    /// Where the entry of a list stands that holds, and its text.
    fn entry(&self, rule: Option<&Rule>, held: &Held) -> Option<(Place, Option<String>)> {
        let (rule, number) = (rule?, held.entry?);
        let at: Position = match held.key {
            "domain" => rule.domains.0.get(number)?.at,
            "ip" => rule.ips.0.get(number)?.at,
            "source" => rule.sources.0.get(number)?.at,
            "localIP" => rule.local_ips.0.get(number)?.at,
            _ => return None,
        };
        let file = self.files.get(usize::from(at.file))?;
        let place = Place {
            file: file.name.to_owned(),
            line: at.line,
            column: at.column,
        };
        Some((place, written(file.text, at)))
    }

    fn text(&self, one: &Traits, verdict: &Verdict) -> String {
        let mut text = format!("{}\n", one.target);
        let mut line = |key: &str, value: String| {
            let _ = writeln!(text, "  {key:<10} {value}");
        };
        match verdict.rule {
            None => line("rule", format!("none of {} fits", verdict.passed.len())),
            Some(number) => {
                let (rule, place) = self.rule(number);
                let name = rule.map_or("", |rule| rule.name.as_str());
                let name = if name.is_empty() {
                    String::new()
                } else {
                    format!("{name:?}, ")
                };
                let Place { file, line: at, column } = place;
                line("rule", format!("{} ({name}{file}:{at}:{column})", number + 1));
                for held in &verdict.held {
                    let entry = match self.entry(rule, held) {
                        Some((place, Some(text))) => {
                            format!(", by {text:?} ({}:{}:{})", place.file, place.line, place.column)
                        }
                        Some((place, None)) => format!(", by {}:{}:{}", place.file, place.line, place.column),
                        None => String::new(),
                    };
                    line(held.key, format!("{}{entry}", held.value));
                }
            }
        }
        if let Some(ips) = &verdict.resolved {
            let strategy = self.config.routing.domain_strategy.as_str();
            let found = match ips.as_slice() {
                [] => "to nothing".to_owned(),
                ips => ips.iter().map(ToString::to_string).collect::<Vec<_>>().join(", "),
            };
            line("resolved", format!("{found} ({strategy})"));
        }
        match &verdict.leads {
            Leads::Outbound(number) if verdict.rule.is_none() => {
                line("outbound", format!("{} (the first)", self.outbound(*number)));
            }
            Leads::Outbound(number) => line("outbound", self.led(verdict, *number)),
            Leads::Balancer {
                number,
                candidates,
                fallback,
                ..
            } => {
                line("balancer", self.balancer(*number).to_owned());
                line("one of", self.outbounds(candidates).join(", "));
                let instead = match fallback {
                    Some(number) => self.outbound(*number),
                    None => format!("{} (the first)", self.outbound(0)),
                };
                line("or else", instead);
            }
        }
        text
    }

    fn json(&self, one: &Traits, verdict: &Verdict) -> Value {
        let place = |place: &Place| json!({"file": place.file, "line": place.line, "column": place.column});
        let rule = verdict.rule.map(|number| {
            let (rule, at) = self.rule(number);
            let held = verdict.held.iter().map(|held| {
                let entry = self.entry(rule, held);
                let entry = entry.map(|(at, text)| json!({"text": text, "place": place(&at)}));
                json!({"key": held.key, "value": held.value, "entry": entry})
            });
            let name = rule.map(|rule| &rule.name).filter(|name| !name.is_empty());
            json!({
                "number": number + 1, "ruleTag": name, "place": place(&at),
                "conditions": held.collect::<Vec<_>>(),
            })
        });
        let passed = verdict.passed.iter().enumerate();
        let passed = passed.map(|(at, keys)| json!({"number": at + 1, "fails": keys}));
        let (outbound, balancer) = match &verdict.leads {
            Leads::Outbound(number) => (Some(self.led(verdict, *number)), None),
            Leads::Balancer {
                number,
                candidates,
                fallback,
                ..
            } => {
                let balancer = json!({
                    "tag": self.balancer(*number),
                    "candidates": self.outbounds(candidates),
                    "fallback": self.outbound(fallback.unwrap_or(0)),
                });
                (None, Some(balancer))
            }
        };
        json!({
            "target": one.target.to_string(),
            "rule": rule,
            "passedOver": passed.collect::<Vec<_>>(),
            "resolved": verdict.resolved,
            "outbound": outbound,
            "balancer": balancer,
        })
    }
}

/// The text that is written at a place.
fn written(file: &[u8], at: Position) -> Option<String> {
    let text = std::str::from_utf8(file).ok()?;
    let line = text.lines().nth(usize::try_from(at.line).ok()?.checked_sub(1)?)?;
    let skip = usize::try_from(at.column).ok()?.checked_sub(1)?;
    let (start, _) = line.char_indices().nth(skip)?;
    let mut values = serde_json::Deserializer::from_str(&line[start..]).into_iter::<String>();
    values.next()?.ok()
}
