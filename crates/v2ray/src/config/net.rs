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

/// A list in a geo file that a condition names. What is in it is known only to who has the file.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct GeoList {
    /// The name of the file: `geosite.dat` and `geoip.dat`, or as written behind `ext:`.
    pub file: String,
    /// The code of the list, in upper case.
    pub code: String,
    /// Only names with all of these attributes, in lower case. Empty: all names.
    pub attributes: Vec<String>,
    /// The place of the condition, such as `routing.rules[0].domain[2]`.
    pub place: String,
}

impl GeoList {
    /// Reads `CODE@attribute@attribute` of a file.
    fn read(text: &At<String>, (file, code): (&str, &str), cx: &mut Cx<'_>) -> Option<Self> {
        let mut words = code.split('@');
        let code = words.next().unwrap_or_default();
        let attributes: Vec<String> = words.map(str::to_ascii_lowercase).collect();
        let hint = "write geosite:CODE, geosite:CODE@attribute, geoip:CODE or ext:FILE:CODE";
        if file.is_empty() || code.is_empty() {
            cx.error(text.at, format!("{} names no list in a geo file", quoted(text)), hint);
            return None;
        }
        if attributes.iter().any(String::is_empty) {
            cx.error(
                text.at,
                format!("{} has an `@` without an attribute", quoted(text)),
                hint,
            );
            return None;
        }
        Some(GeoList {
            file: file.to_owned(),
            code: code.to_ascii_uppercase(),
            attributes,
            place: cx.path(),
        })
    }
}

/// A path may hold a colon, and a code does not.
fn file_and_code(text: &str) -> (&str, &str) {
    text.rsplit_once(':').unwrap_or_default()
}

/// A list of IP conditions, of which one must hold.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct IpMatches(pub Vec<At<IpMatch>>);

/// One IP condition.
#[derive(Clone, Debug, PartialEq)]
pub enum IpMatch {
    /// An address of this network.
    Net(IpNet),
    /// `!` and a network: an address outside of it.
    NotNet(IpNet),
    /// An address that [`is_private`] (`true`) or is not (`false`).
    Private(bool),
    /// `geoip:`, `ext:`: an address in this list.
    List(GeoList),
    /// The same with `!`: an address outside of this list.
    NotList(GeoList),
}

impl IpMatch {
    /// Whether it holds for an address. What is in geo files is not known here: a condition about them holds for none.
    pub fn matches(&self, ip: IpAddr) -> bool {
        match self {
            IpMatch::Net(net) => net.contains(&ip.to_canonical()),
            IpMatch::NotNet(net) => !net.contains(&ip.to_canonical()),
            IpMatch::Private(wanted) => is_private(ip) == *wanted,
            IpMatch::List(_) | IpMatch::NotList(_) => false,
        }
    }

    /// Whether it stands for all addresses but some.
    fn is_inverse(&self) -> bool {
        matches!(self, IpMatch::NotNet(_) | IpMatch::Private(false) | IpMatch::NotList(_))
    }

    /// Whether it names private addresses and no others: `geoip:private`, or a network or address within it. What fits
    /// everything, such as `0.0.0.0/0`, says nothing of private addresses in particular.
    pub fn is_private_only(&self) -> bool {
        match self {
            IpMatch::Private(wanted) => *wanted,
            IpMatch::Net(net) if net.prefix_len() == net.max_prefix_len() => is_private(net.addr()),
            IpMatch::Net(net) => PRIVATE.iter().any(|private| private.contains(net)),
            IpMatch::NotNet(_) | IpMatch::List(_) | IpMatch::NotList(_) => false,
        }
    }

    fn read(text: &At<String>, cx: &mut Cx<'_>) -> Option<Self> {
        // Every `!`, in front of all or behind a colon, turns the condition around.
        let bare = text.trim_start_matches('!');
        let (form, rest) = bare.split_once(':').unwrap_or_default();
        let mut turns = text.len() - bare.len();
        let list = match form.to_ascii_lowercase().as_str() {
            "geoip" => {
                let code = rest.trim_start_matches('!');
                turns += rest.len() - code.len();
                if code.eq_ignore_ascii_case("private") {
                    return Some(IpMatch::Private(turns.is_multiple_of(2)));
                }
                Some(GeoList::read(text, ("geoip.dat", code), cx)?)
            }
            "ext" | "ext-ip" => {
                let (file, code) = file_and_code(rest);
                let code_only = code.trim_start_matches('!');
                turns += code.len() - code_only.len();
                Some(GeoList::read(text, (file, code_only), cx)?)
            }
            _ => None,
        };
        let is_inverse = turns % 2 == 1;
        if let Some(list) = list {
            if !list.attributes.is_empty() {
                cx.error(text.at, format!("{}: networks have no attributes", quoted(text)), "");
                return None;
            }
            return Some(if is_inverse {
                IpMatch::NotList(list)
            } else {
                IpMatch::List(list)
            });
        }
        let net = bare
            .parse::<IpNet>()
            .ok()
            .or_else(|| bare.parse::<IpAddr>().ok().map(IpNet::from));
        let net = net.map(|net| match net {
            // ::ffff:192.0.2.0/120 is 192.0.2.0/24.
            IpNet::V6(v6) if v6.prefix_len() >= 96 => match v6.addr().to_ipv4_mapped() {
                Some(v4) => Ipv4Net::new(v4, v6.prefix_len() - 96).map_or(net, IpNet::V4),
                None => net,
            },
            _ => net,
        });
        match net {
            Some(net) if is_inverse => Some(IpMatch::NotNet(net.trunc())),
            Some(net) => Some(IpMatch::Net(net.trunc())),
            None => {
                let hint = "write 192.0.2.7, 192.0.2.0/24, 2001:db8::/32, geoip:private, geoip:CODE or ext:FILE:CODE";
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
    /// Whether one of the conditions holds for an address, as [`IpMatch::matches`] has it.
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
        Kind::text(
            "list of IP addresses, networks (CIDR), `geoip:private`, `geoip:CODE`, `ext:FILE:CODE`; `!` in front: all others",
        )
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let all = read_all(value, cx, IpMatch::read)?;
        let is_net = |one: &&At<IpMatch>| matches!(one.value, IpMatch::NotNet(_));
        let inverse = all.iter().filter(|one| one.value.is_inverse());
        let (nets, lists): (Vec<_>, Vec<_>) = inverse.partition(is_net);
        for two in [nets, lists] {
            if let [_, second, ..] = two.as_slice() {
                let text = "several conditions with `!` stand for what is outside of all of them, as in Xray; in V2Ray, \
                            for what is outside of any of them";
                cx.warn(second.at, text, "leave one, or write two rules");
            }
        }
        Some(IpMatches(all))
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

    /// What of a text it fits first.
    pub fn find<'t>(&self, text: &'t str) -> Option<&'t str> {
        self.0.find(text).map(|found| found.as_str())
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
    /// `geosite:`, `ext:`: a name in this list.
    List(GeoList),
}

impl DomainMatch {
    /// Whether it holds for a name, which must be lower-case and without a dot at its end. What is in geo files is not known
    /// here: a condition about them holds for none.
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
            DomainMatch::List(_) => false,
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
        if lower.is_empty() && !matches!(form.as_str(), "dotless" | "geosite") {
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
            "geosite" => GeoList::read(text, ("geosite.dat", rest), cx).map(DomainMatch::List),
            "ext" | "ext-domain" | "ext-site" => GeoList::read(text, file_and_code(rest), cx).map(DomainMatch::List),
            _ => {
                let hint = "the forms are full:, domain:, keyword:, regexp:, dotless:, geosite: and ext:";
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
        Kind::text(
            "list of `full:`, `domain:`, `keyword:`, `regexp:`, `dotless:` and a text, `geosite:CODE`, `geosite:CODE@attribute`, \
             `ext:FILE:CODE`; a bare text is a keyword",
        )
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
