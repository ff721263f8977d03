//! `observatory` and `burstObservatory`: outbounds are measured, for balancers to choose by.

use std::time::Duration;

use super::balancer::Balancer;
use super::context::{Cx, near_tag, quoted};
use super::duration::GoDuration;
use super::routing::Routing;
use super::scalar::{Part, Texts};
use super::schema::Kind;
use super::table::{Decode, FromKeys, object, words};
use crate::Address;
use crate::json::Value;
use crate::problem::{At, Position};

/// Shortest time between two measurements of `observatory`.
const MIN_INTERVAL: Duration = Duration::from_millis(100);
/// Shortest time between two measurements of `burstObservatory`, on average.
const MIN_BURST_INTERVAL: Duration = Duration::from_secs(10);
/// Most measurements of one outbound that are kept.
const MAX_SAMPLING: u16 = 1000;

/// What is fetched to measure an outbound.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbeUrl {
    /// By HTTPS.
    pub tls: bool,
    /// The server.
    pub host: Address,
    /// Its port.
    pub port: u16,
    /// Path and query.
    pub path: String,
}

impl ProbeUrl {
    fn parse(text: &str) -> Option<Self> {
        let (scheme, rest) = text.split_once("://")?;
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "https" => true,
            "http" => false,
            _ => return None,
        };
        let rest = rest.split('#').next()?;
        let (authority, path) = match rest.find(['/', '?']) {
            Some(at) if rest[at..].starts_with('/') => (&rest[..at], rest[at..].to_owned()),
            Some(at) => (&rest[..at], format!("/{}", &rest[at..])),
            None => (rest, "/".to_owned()),
        };
        // Such a text would end the request line.
        if !path.bytes().all(|b| b.is_ascii_graphic()) {
            return None;
        }
        let (host, port) = match authority.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => {
                let digits = port.bytes().all(|b| b.is_ascii_digit());
                (host, port.parse().ok().filter(|port| digits && *port != 0)?)
            }
            _ => (authority, if tls { 443 } else { 80 }),
        };
        let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
        let name = |host: &str| {
            let usual = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
            !host.is_empty() && host.bytes().all(usual)
        };
        let host = match bare {
            Some(v6) => Address::Ipv6(v6.parse().ok()?),
            None => Address::parse(host).ok().filter(|_| name(host))?,
        };
        Some(ProbeUrl { tls, host, port, path })
    }
}

impl Decode for ProbeUrl {
    fn kind() -> Kind {
        Kind::text("URL that begins with `http://` or `https://`")
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let at = value.at;
        let text = String::decode(value, cx)?;
        let url = ProbeUrl::parse(text.trim());
        if url.is_none() {
            let hint = "write http:// or https://, a host and a path";
            cx.error(at, format!("{} cannot be fetched", quoted(&text)), hint);
        }
        url
    }
}

object! {
    /// Outbounds are measured one after another: what fetching something through them takes. Any answer will do.
    pub(crate) struct ObservatorySettings: "observatory" {
        /// How the tags of the outbounds begin that are measured.
        subjects: At<Texts> = "subjectSelector", default "[]";
        /// What is fetched.
        url: ProbeUrl = "probeURL", default "\"https://www.google.com/generate_204\"";
        /// The time between one measurement and the next.
        interval: At<GoDuration> = "probeInterval", default "\"10s\"";
        /// Measure all outbounds at once, at most 8 at a time, and then wait.
        concurrent: bool = "enableConcurrency";
    }
}

/// Outbounds are measured one after another.
#[derive(Clone, Debug, PartialEq)]
pub struct Observatory {
    /// How the tags of the outbounds begin that are measured.
    pub subjects: Vec<String>,
    /// What is fetched.
    pub url: ProbeUrl,
    /// The time between one measurement and the next, or from all of them to all of them.
    pub interval: Duration,
    /// Measure all outbounds at once.
    pub concurrent: bool,
}

impl FromKeys for Observatory {
    type Keys = ObservatorySettings;

    fn from_keys(s: ObservatorySettings, _: Position, cx: &mut Cx<'_>) -> Option<Self> {
        Some(Observatory {
            subjects: subjects(&s.subjects, cx),
            url: s.url,
            interval: at_least(MIN_INTERVAL, "probeInterval", s.interval, cx),
            concurrent: s.concurrent,
        })
    }
}

words! {
    /// How something is fetched.
    pub enum ProbeMethod {
        /// Without its body.
        Head = "HEAD" | "";
        /// With its body, which nobody reads.
        Get = "GET";
    }
}

object! {
    /// How outbounds are measured.
    pub(crate) struct PingSettings: "burstObservatory.pingConfig" {
        /// What is fetched.
        url: ProbeUrl = "destination", default "\"https://connectivitycheck.gstatic.com/generate_204\"";
        /// What is fetched without any outbound after a failure. If that fails too, the network is down and no outbound is
        /// blamed.
        connectivity: Option<ProbeUrl> = "connectivity";
        /// The time between two measurements of an outbound, on average.
        interval: At<GoDuration> = "interval", default "\"1m\"";
        /// How many measurements of an outbound count.
        sampling: At<u16> = "sampling", default "10";
        /// How long an answer may take.
        timeout: GoDuration = "timeout", default "\"5s\"";
        /// How it is fetched.
        method: ProbeMethod = "httpMethod", default "\"HEAD\"";
    }
}

object! {
    /// Outbounds are measured at times of chance, and the latest measurements count together.
    pub(crate) struct BurstSettings: "burstObservatory" {
        /// How the tags of the outbounds begin that are measured.
        subjects: At<Texts> = "subjectSelector", default "[]";
        /// How they are measured.
        ping: Part<PingSettings> = "pingConfig", default "{}";
    }
}

/// Outbounds are measured at times of chance.
#[derive(Clone, Debug, PartialEq)]
pub struct BurstObservatory {
    /// How the tags of the outbounds begin that are measured.
    pub subjects: Vec<String>,
    /// What is fetched.
    pub url: ProbeUrl,
    /// What is fetched without any outbound after a failure.
    pub connectivity: Option<ProbeUrl>,
    /// The time between two measurements of an outbound, on average.
    pub interval: Duration,
    /// How many measurements of an outbound count; at least 1.
    pub sampling: u16,
    /// How long an answer may take.
    pub timeout: Duration,
    /// How it is fetched.
    pub method: ProbeMethod,
}

impl FromKeys for BurstObservatory {
    type Keys = BurstSettings;

    fn from_keys(s: BurstSettings, _: Position, cx: &mut Cx<'_>) -> Option<Self> {
        let subjects = subjects(&s.subjects, cx);
        let ping = s.ping.0?;
        let (interval, sampling) = cx.within("pingConfig", |cx| {
            let sampling = ping.sampling.value.clamp(1, MAX_SAMPLING);
            if sampling != ping.sampling.value && ping.sampling.value != 0 {
                let text = format!("{MAX_SAMPLING} measurements count at most");
                cx.warn_in("sampling", ping.sampling.at, text, "");
            }
            let sampling = if ping.sampling.value == 0 { 10 } else { sampling };
            (at_least(MIN_BURST_INTERVAL, "interval", ping.interval, cx), sampling)
        });
        Some(BurstObservatory {
            subjects,
            url: ping.url,
            connectivity: ping.connectivity,
            interval,
            sampling,
            timeout: match ping.timeout.0 {
                Duration::ZERO => Duration::from_secs(5),
                given => given,
            },
            method: ping.method,
        })
    }
}

fn at_least(least: Duration, key: &str, given: At<GoDuration>, cx: &mut Cx<'_>) -> Duration {
    if given.value.0 >= least {
        return given.value.0;
    }
    let text = format!("measurements follow each other after {least:?} at the soonest");
    cx.warn_in(key, given.at, text, "");
    least
}

/// Tells of a selector that nothing fits.
fn subjects(selector: &At<Texts>, cx: &mut Cx<'_>) -> Vec<String> {
    let starts: Vec<String> = selector.iter().map(str::to_owned).collect();
    // An empty list asks for nothing.
    if !starts.is_empty() && !cx.tags.outbounds.keys().any(|tag| is_subject(&starts, tag)) {
        let first = starts.first().map_or("", String::as_str);
        let hint = near_tag(first, cx.tags.outbounds.keys());
        let text = "nothing is measured: no outbound has a tag that begins so";
        cx.warn_in("subjectSelector", selector.at, text, hint);
    }
    starts
}

/// Whether the outbound of this tag is measured.
pub fn is_subject(subjects: &[String], tag: &str) -> bool {
    !tag.is_empty() && subjects.iter().any(|start| tag.starts_with(start.as_str()))
}

/// Tells of balancers that choose by measurements which nobody takes.
pub(crate) fn check_health(
    routing: &Routing,
    observatory: Option<&Observatory>,
    burst: Option<&BurstObservatory>,
    cx: &mut Cx<'_>,
) {
    let measured = |tag: &str| {
        observatory.is_some_and(|one| is_subject(&one.subjects, tag))
            || burst.is_some_and(|one| is_subject(&one.subjects, tag))
    };
    for (i, balancer) in routing.balancers.iter().enumerate() {
        if !balancer.needs_health() {
            continue;
        }
        let within = |cx: &mut Cx<'_>, tell: &dyn Fn(&mut Cx<'_>, Position)| {
            cx.within("routing", |cx| {
                cx.within("balancers", |cx| cx.at_index(i, |cx| tell(cx, balancer.at)));
            });
        };
        if observatory.is_none() && burst.is_none() {
            within(cx, &|cx, at| {
                let hint = "add \"observatory\": {\"subjectSelector\": […]}, or burstObservatory";
                cx.error(
                    at,
                    format!("nothing measures what the balancer chooses by, {}", needs(balancer)),
                    hint,
                );
            });
            continue;
        }
        let mut unmeasured: Vec<&String> = cx.tags.outbounds.keys().filter(|tag| balancer.selects(tag)).collect();
        unmeasured.retain(|tag| !measured(tag));
        unmeasured.sort_unstable();
        if let Some(tag) = unmeasured.first() {
            let text = match balancer.fallback.is_empty() || !matches!(needs(balancer), "fallbackTag") {
                true => format!("the outbound {} is never chosen, for nothing measures it", quoted(tag)),
                false => format!(
                    "the outbound {} counts as working, for nothing measures it",
                    quoted(tag)
                ),
            };
            within(cx, &|cx, at| cx.warn(at, text.clone(), "name it in subjectSelector"));
        }
    }
}

/// What of a balancer needs measurements.
fn needs(balancer: &Balancer) -> &'static str {
    use super::balancer::BalancerKind;
    match balancer.kind {
        BalancerKind::LeastPing => "leastPing",
        BalancerKind::LeastLoad => "leastLoad",
        BalancerKind::Random | BalancerKind::RoundRobin => "fallbackTag",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read() {
        for (text, wanted) in [
            ("http://a.example", Some((false, "a.example", 80, "/"))),
            ("HTTPS://a.example:8443/b?c#d", Some((true, "a.example", 8443, "/b?c"))),
            ("https://a.example?x", Some((true, "a.example", 443, "/?x"))),
            ("http://[::1]:81/", Some((false, "::1", 81, "/"))),
            ("http://[::1]", Some((false, "::1", 80, "/"))),
            ("http://192.0.2.1/a:1", Some((false, "192.0.2.1", 80, "/a:1"))),
            ("ftp://a.example", None),
            ("a.example", None),
            ("http://", None),
            ("http://u@a.example/", None),
            ("http://a.example:0/", None),
            ("http://a.example:+1/", None),
            ("http://a.example/ HTTP/1.1", None),
            ("http://a.example/\r\nx", None),
            ("http://a b/", None),
            ("http://::1/", None),
        ] {
            let read = ProbeUrl::parse(text);
            let read = read.map(|url| (url.tls, url.host.to_string(), url.port, url.path));
            let wanted = wanted.map(|(tls, host, port, path)| (tls, host.to_owned(), port, path.to_owned()));
            assert_eq!(read, wanted, "{text}");
        }
    }
}
