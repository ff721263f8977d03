//! `dns.hosts`: fixed answers.

use crate::Address;
use crate::config::context::{Cx, quoted};
use crate::config::net::DomainMatch;
use crate::config::schema::Kind;
use crate::config::table::Decode;
use crate::json::{Data, Member, Value};
use crate::problem::At;

/// Fixed answers by name, in the order of the file.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Hosts(Vec<(DomainMatch, HostAnswer)>);

impl Hosts {
    /// The conditions and their answers, in the order of the file. The first that fits a name answers it.
    pub fn entries(&self) -> &[(DomainMatch, HostAnswer)] {
        &self.0
    }
}

impl Decode for Hosts {
    fn kind() -> Kind {
        Kind::Map(Box::new(HostAnswer::kind()))
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let Data::Object(members) = value.data else {
            cx.wrong_type(&value, "an object");
            return None;
        };
        let wanted = members.len();
        let one = |member: Member| {
            // A bare name stands for itself here, not for a part of names as in rules.
            let text = if member.key.contains(':') {
                member.key.clone()
            } else {
                format!("full:{}", member.key)
            };
            cx.within(&member.key, |cx| {
                let condition = DomainMatch::read(
                    &At {
                        value: text,
                        at: member.at,
                    },
                    cx,
                );
                Some((condition?, HostAnswer::decode(member.value, cx)?))
            })
        };
        let hosts: Vec<_> = members.into_iter().filter_map(one).collect();
        (hosts.len() == wanted).then_some(Hosts(hosts))
    }
}

/// A fixed answer.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum HostAnswer {
    /// Addresses, or one other name to resolve instead.
    Addresses(Vec<Address>),
    /// No address, with this response code. 0: the name is there and has none.
    Code(u16),
}

impl Decode for HostAnswer {
    fn kind() -> Kind {
        Kind::text("address, name, list of addresses, or `#` and a response code")
    }

    fn decode(value: Value, cx: &mut Cx<'_>) -> Option<Self> {
        let at = value.at;
        match &value.data {
            Data::Array(_) => {
                let addresses = Vec::<Address>::decode(value, cx)?;
                let Some(name) = addresses.iter().find(|address| address.ip().is_none()) else {
                    return Some(HostAnswer::Addresses(addresses));
                };
                if addresses.len() > 1 {
                    let text = format!(
                        "the name {} counts, and nothing else of this list",
                        quoted(&name.to_string())
                    );
                    cx.warn(at, text, "write this name alone, or addresses only");
                }
                Some(HostAnswer::Addresses(vec![name.clone()]))
            }
            Data::String(text) if text.starts_with('#') => match text[1..].parse() {
                Ok(code) if code < 4096 => Some(HostAnswer::Code(code)),
                _ => {
                    let hint = "write # and a number: \"#3\" for a name that does not exist, \"#5\" for a refusal";
                    cx.error(at, format!("{} is no response code of DNS", quoted(text)), hint);
                    None
                }
            },
            _ => Address::decode(value, cx).map(|address| HostAnswer::Addresses(vec![address])),
        }
    }
}
