//! What a rule may say about IP addresses, domain names and users.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ipnet::{IpNet, Ipv4Net, Ipv6Net};
use regex::Regex;

use super::context::{Cx, quoted};
use super::scalar::Texts;
use super::schema::Kind;
use super::table::Decode;
use crate::json::Value;
use crate::problem::{At, Position};

const fn v4(a: u8, b: u8, c: u8, prefix: u8) -> IpNet {
    IpNet::V4(Ipv4Net::new_assert(Ipv4Addr::new(a, b, c, 0), prefix))
}

const fn v6([a, b, c]: [u16; 3], last: u16, prefix: u8) -> IpNet {
    IpNet::V6(Ipv6Net::new_assert(Ipv6Addr::new(a, b, c, 0, 0, 0, 0, last), prefix))
}

/// What `geoip:private` stands for: the networks that are nobody's public address (RFC 6890 and its successors).
const PRIVATE: [IpNet; 24] = [
    v4(0, 0, 0, 8),
    v4(10, 0, 0, 8),
    v4(100, 64, 0, 10),
    v4(127, 0, 0, 8),
    v4(169, 254, 0, 16),
    v4(172, 16, 0, 12),
    v4(192, 0, 0, 24),
    v4(192, 0, 2, 24),
    v4(192, 88, 99, 24),
    v4(192, 168, 0, 16),
    v4(198, 18, 0, 15),
    v4(198, 51, 100, 24),
    v4(203, 0, 113, 24),
    v4(224, 0, 0, 4),
    v4(240, 0, 0, 4),
    v6([0, 0, 0], 0, 128),
    v6([0, 0, 0], 1, 128),
    v6([0x64, 0xff9b, 1], 0, 48),
    v6([0x100, 0, 0], 0, 64),
    v6([0x2001, 0xdb8, 0], 0, 32),
    v6([0xfc00, 0, 0], 0, 7),
    v6([0xfe80, 0, 0], 0, 10),
    v6([0xfec0, 0, 0], 0, 10),
    v6([0xff00, 0, 0], 0, 8),
];

/// Whether an address is private in the sense of `geoip:private`: loopback, link-local, local networks, multicast,
/// documentation and reserved ranges. An IPv4 address inside an IPv6 one, also one that a translator (RFC 6052) or a 6to4
/// router (RFC 3056) would take out of it, counts as the IPv4 address.
pub fn is_private(ip: IpAddr) -> bool {
    let ip = ip.to_canonical();
    if PRIVATE.iter().any(|net| net.contains(&ip)) {
        return true;
    }
    let IpAddr::V6(v6) = ip else { return false };
    let inside = match v6.octets() {
        // NAT64, and the old form of IPv4 inside IPv6.
        [0, 0x64, 0xff, 0x9b, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d]
        | [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, a, b, c, d] => [a, b, c, d],
        [0x20, 0x02, a, b, c, d, ..] => [a, b, c, d],
        _ => return false,
    };
    is_private(IpAddr::from(inside))
}

const LIST_NETWORKS: &str = "list the networks themselves (192.0.2.0/24); the rule stands for them, so keep it";
const LIST_NAMES: &str = "list the names themselves (domain:example.org); the rule stands for them, so keep it";

/// A list of IP conditions, of which one must hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IpMatches(pub Vec<At<IpMatch>>);

/// One IP condition.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum IpMatch {
    /// An address of this network.
    Net(IpNet),
    /// An address that [`is_private`] (`true`) or is not (`false`).
    Private(bool),
}

impl IpMatch {
    /// Whether it holds for an address.
    pub fn matches(&self, ip: IpAddr) -> bool {
        match self {
            IpMatch::Net(net) => net.contains(&ip.to_canonical()),
            IpMatch::Private(wanted) => is_private(ip) == *wanted,
        }
    }

    /// Whether it names private addresses and no others: `geoip:private`, or a network or address within it. What fits
    /// everything, such as `0.0.0.0/0`, says nothing of private addresses in particular.
    pub fn is_private_only(&self) -> bool {
        match self {
            IpMatch::Private(wanted) => *wanted,
            IpMatch::Net(net) if net.prefix_len() == net.max_prefix_len() => is_private(net.addr()),
            IpMatch::Net(net) => PRIVATE.iter().any(|private| private.contains(net)),
        }
    }

    fn read(text: &At<String>, cx: &mut Cx<'_>) -> Option<Self> {
        let lower = text.to_ascii_lowercase();
        let bare = lower.strip_prefix('!').unwrap_or(&lower);
        if let Some(code) = bare.strip_prefix("geoip:") {
            let wanted = lower.starts_with("geoip:") && !code.starts_with('!');
            if code.trim_start_matches('!') == "private" {
                return Some(IpMatch::Private(wanted));
            }
            let what = format!("geoip files, as {} needs; only geoip:private is built in", quoted(text));
            cx.later_but(text.at, &what, LIST_NETWORKS);
            return None;
        }
        if bare.starts_with("ext:") || bare.starts_with("ext-ip:") {
            let what = format!("geoip files, as {} needs", quoted(text));
            cx.later_but(text.at, &what, LIST_NETWORKS);
            return None;
        }
        let net = text
            .parse::<IpNet>()
            .ok()
            .or_else(|| text.parse::<IpAddr>().ok().map(IpNet::from));
        let net = net.map(|net| match net {
            // ::ffff:192.0.2.0/120 is 192.0.2.0/24.
            IpNet::V6(v6) if v6.prefix_len() >= 96 => match v6.addr().to_ipv4_mapped() {
                Some(v4) => Ipv4Net::new(v4, v6.prefix_len() - 96).map_or(net, IpNet::V4),
                None => net,
            },
            _ => net,
        });
        match net {
            Some(net) => Some(IpMatch::Net(net.trunc())),
            None => {
                let hint = "write 192.0.2.7, 192.0.2.0/24, 2001:db8::/32 or geoip:private";
                cx.error(
                    text.at,
                    format!("{} is neither an IP address nor a network", quoted(text)),
                    hint,
                );
                None
            }
        }
    }
}

impl IpMatches {
    /// Whether one of the conditions holds for an address.
    pub fn matches(&self, ip: IpAddr) -> bool {
        self.0.iter().any(|m| m.matches(ip))
    }

    /// Whether there are no conditions.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// Reads every text of a list.
fn read_all<T>(value: Value, cx: &mut Cx<'_>, read: fn(&At<String>, &mut Cx<'_>) -> Option<T>) -> Option<Vec<At<T>>> {
    let texts = Texts::decode(value, cx)?.0;
    let wanted = texts.len();
    let all: Vec<At<T>> = texts
        .iter()
        .enumerate()
        .filter_map(|(i, text)| {
            let at = text.at;
            cx.at_index(i, |cx| read(text, cx)).map(|value| At { value, at })
        })
        .collect();
    (all.len() == wanted).then_some(all)
}

impl Decode for IpMatches {
    fn kind() -> Kind {
        Kind::text("list of IP addresses, networks (CIDR), `geoip:private`, `!geoip:private`")
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        read_all(value, cx, IpMatch::read).map(IpMatches)
    }
}

/// A regular expression that compares by its text.
#[derive(Clone, Debug)]
pub struct Pattern(Regex);

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl Pattern {
    /// The expression as it was written.
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Whether it is found in a text.
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }

    pub(super) fn read(pattern: &str, any_case: bool, at: Position, cx: &mut Cx<'_>) -> Option<Self> {
        let mut builder = regex::RegexBuilder::new(pattern);
        // Half a megabyte bounds what a pattern like (a{1000}){1000} may cost.
        match builder.case_insensitive(any_case).size_limit(1 << 19).build() {
            Ok(regex) => Some(Pattern(regex)),
            Err(error) => {
                let error = error.to_string();
                let line = error.lines().last().unwrap_or_default();
                cx.error(at, format!("{} is no regular expression: {line}", quoted(pattern)), "");
                None
            }
        }
    }
}

/// A list of domain conditions, of which one must hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DomainMatches(pub Vec<At<DomainMatch>>);

/// One domain condition. Texts are lower-case.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum DomainMatch {
    /// `full:` exactly this name.
    Full(String),
    /// `domain:` this name or one below it.
    Domain(String),
    /// `keyword:`, or no prefix: this text anywhere in the name.
    Keyword(String),
    /// `regexp:` this expression.
    Regexp(Pattern),
    /// `dotless:` a name without a dot that holds this text.
    Dotless(String),
}

impl DomainMatch {
    /// Whether it holds for a name, which must be lower-case and without a dot at its end.
    pub fn matches(&self, name: &str) -> bool {
        match self {
            DomainMatch::Full(full) => name == full,
            DomainMatch::Domain(domain) => {
                let above = name.strip_suffix(domain.as_str());
                above.is_some_and(|above| above.is_empty() || above.ends_with('.'))
            }
            DomainMatch::Keyword(text) => name.contains(text.as_str()),
            DomainMatch::Regexp(pattern) => pattern.is_match(name),
            DomainMatch::Dotless(text) => !name.contains('.') && name.contains(text.as_str()),
        }
    }

    pub(crate) fn read(text: &At<String>, cx: &mut Cx<'_>) -> Option<Self> {
        let (form, rest) = text.split_once(':').unwrap_or(("keyword", text));
        let mut lower = rest.to_lowercase();
        let form = form.to_ascii_lowercase();
        // Names are compared without the dot of the root.
        if matches!(form.as_str(), "full" | "domain") && lower.ends_with('.') {
            lower.pop();
        }
        if lower.is_empty() && form != "dotless" {
            cx.error(text.at, format!("{} names no domain", quoted(text)), "");
            return None;
        }
        match form.as_str() {
            "full" => Some(DomainMatch::Full(lower)),
            "domain" => Some(DomainMatch::Domain(lower)),
            "keyword" => Some(DomainMatch::Keyword(lower)),
            "regexp" => Pattern::read(rest, false, text.at, cx).map(DomainMatch::Regexp),
            "dotless" if lower.contains('.') => {
                cx.error(
                    text.at,
                    format!("{} asks for a name without a dot and has one", quoted(text)),
                    "",
                );
                None
            }
            "dotless" => Some(DomainMatch::Dotless(lower)),
            "geosite" | "ext" | "ext-domain" | "ext-site" => {
                let what = format!("geosite files, as {} needs", quoted(text));
                cx.later_but(text.at, &what, LIST_NAMES);
                None
            }
            _ => {
                let hint = "the forms are full:, domain:, keyword:, regexp: and dotless:";
                cx.error(
                    text.at,
                    format!("{} is no form of a domain condition", quoted(text)),
                    hint,
                );
                None
            }
        }
    }
}

impl DomainMatches {
    /// Whether one of the conditions holds for a name. Letter case and a dot at the end make no difference.
    pub fn matches(&self, name: &str) -> bool {
        let name = name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase();
        self.0.iter().any(|m| m.matches(&name))
    }

    /// Whether there are no conditions.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Decode for DomainMatches {
    fn kind() -> Kind {
        Kind::text("list of `full:`, `domain:`, `keyword:`, `regexp:`, `dotless:` and a text; a bare text is a keyword")
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        read_all(value, cx, DomainMatch::read).map(DomainMatches)
    }
}

/// A list of user conditions, of which one must hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserMatches(pub Vec<At<UserMatch>>);

/// One user condition.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum UserMatch {
    /// The user's e-mail is this, in lower case.
    Email(String),
    /// `regexp:` the user's e-mail matches.
    Regexp(Pattern),
}

impl UserMatches {
    /// Whether one of the conditions holds for a user's e-mail, whatever its letter case. Without an e-mail none does.
    pub fn matches(&self, email: &str) -> bool {
        let lower = email.to_lowercase();
        !email.is_empty()
            && self.0.iter().any(|m| match &m.value {
                UserMatch::Email(wanted) => *wanted == lower,
                UserMatch::Regexp(pattern) => pattern.is_match(email),
            })
    }

    /// Whether there are no conditions.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl Decode for UserMatches {
    fn kind() -> Kind {
        Kind::text("list of e-mails, or `regexp:` and an expression")
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let read = |text: &At<String>, cx: &mut Cx<'_>| match text.strip_prefix("regexp:") {
            Some(pattern) => Pattern::read(pattern, true, text.at, cx).map(UserMatch::Regexp),
            None => Some(UserMatch::Email(text.trim().to_lowercase())),
        };
        read_all(value, cx, read).map(UserMatches)
    }
}
