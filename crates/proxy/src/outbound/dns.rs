//! Answers questions of DNS that are sent to it, whatever their target.
//!
//! Nobody knows who sends a datagram, and an answer may be longer than its question. So an answer in a datagram is no longer than
//! the client says it takes, [`message::LARGEST`](crate::dns::message::LARGEST) bytes at most, and one association has
//! [`MAX_ASKED`] questions at once.

mod onward;
mod packets;
mod stream;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use sealway_v2ray::{Destination, Network};

use super::{Dialer, Far, Protocol, Surroundings};
use crate::Error;
use crate::dns::message::{Asked, NoQuestion};
use crate::error::Pending;
use crate::lists::Names;
use crate::resolver::Resolver;
use crate::roads::{self, Caller};
use crate::settings::{DnsAction, DnsOut, NonIpQuery};
use crate::stats::Traffic;
use crate::stream::Stream;
use crate::udp::PacketEnd;

use onward::Onward;
use packets::Packets;
use stream::Conversation;

/// Questions that one stream or association has at once. More of a stream wait; more datagrams are dropped.
const MAX_ASKED: usize = 64;

/// Response codes: not there to be had, and no answer from those who were asked.
const REFUSED: u16 = 5;
const SERVER_FAILURE: u16 = 2;

/// An answer to come; `None`: there is none.
type Coming = Pin<Box<dyn Future<Output = Option<Vec<u8>>> + Send>>;

/// What becomes of a question.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum Fate {
    /// The object `dns` answers it.
    Ours,
    /// It goes to its target.
    Onward,
    /// It is left without an answer.
    Dropped,
    /// It is answered with a code.
    Code(u16),
}

/// The outbound.
pub(super) struct Dns {
    answers: Arc<Answers>,
}

struct Answers {
    settings: DnsOut,
    /// The names of each rule; `None`: all.
    names: Vec<Option<Names>>,
    resolver: Arc<Resolver>,
    onward: Onward,
    traffic: Traffic,
}

impl Dns {
    pub(super) fn new(place: &str, settings: DnsOut, dialer: Dialer, around: &Surroundings) -> Result<Self, Error> {
        let names = settings.rules.iter().enumerate().map(|(at, rule)| {
            let domains: Vec<_> = rule.domains.0.iter().map(|one| one.value.clone()).collect();
            match domains.as_slice() {
                [] => Ok(None),
                domains => {
                    let place = format!("{place}.settings.rules[{at}].domain");
                    around.lists.names(&place, domains).map(Some)
                }
            }
        });
        let names = names.collect::<Result<_, Error>>()?;
        let traffic = dialer.traffic.clone();
        Ok(Dns {
            answers: Arc::new(Answers {
                names,
                resolver: Arc::clone(&around.resolver),
                onward: Onward::new(&settings, dialer, Arc::clone(&around.loops)),
                settings,
                traffic,
            }),
        })
    }
}

impl Answers {
    fn fate(&self, asked: &Asked) -> Fate {
        let (name, kind, about) = (asked.name(), asked.kind(), asked.family().is_some());
        let usual = if about { Fate::Ours } else { Fate::Code(0) };
        let rules = self.settings.rules.iter().zip(&self.names);
        for (rule, names) in rules {
            let of_kind = rule.types.as_ref().is_none_or(|types| types.contains(kind));
            if !of_kind || names.as_ref().is_some_and(|names| !names.matches(&name)) {
                continue;
            }
            return match rule.action {
                DnsAction::Direct => Fate::Onward,
                DnsAction::Drop => Fate::Dropped,
                DnsAction::Return => Fate::Code(rule.code),
                // Only addresses can be answered.
                _ => usual,
            };
        }
        let refused = match self.settings.non_ip_query {
            Some(NonIpQuery::Drop) => Fate::Dropped,
            _ => Fate::Code(REFUSED),
        };
        if self.settings.block_types.contains(&kind) {
            return refused;
        }
        match self.settings.non_ip_query {
            _ if about => Fate::Ours,
            None if self.settings.block_types.is_empty() => usual,
            Some(NonIpQuery::Skip) => Fate::Onward,
            _ => refused,
        }
    }

    /// The answer to a message that came over this kind of network for this target. `None`: it gets none.
    async fn answer(&self, bytes: &[u8], network: Network, to: &Destination, caller: &Caller) -> Option<Vec<u8>> {
        self.traffic.sent(bytes.len());
        let asked = match Asked::read(bytes) {
            Ok(asked) => asked,
            Err(NoQuestion::Silence) => return None,
            Err(NoQuestion::Answer(answer)) => return Some(answer),
        };
        let room = match network {
            Network::Tcp => usize::from(u16::MAX),
            Network::Udp => asked.room(),
        };
        let fate = match caller.asks_names {
            // The object `dns` itself: its own answer is what it asks for.
            true => Fate::Onward,
            false => self.fate(&asked),
        };
        let answer = match (fate, asked.family()) {
            (Fate::Ours, Some(family)) => match self.resolver.answer(&asked.name(), family, caller.source).await {
                Ok(found) => asked.answer(found.code, &found.ips, found.ttl, room),
                Err(failed) => {
                    tracing::debug!("{}: {}", asked.name(), failed.why);
                    asked.answer(SERVER_FAILURE, &[], 0, room)
                }
            },
            (Fate::Ours, None) => asked.answer(0, &[], 0, room),
            (Fate::Dropped, _) => return None,
            (Fate::Code(code), _) => asked.answer(code, &[], 0, room),
            (Fate::Onward, _) => match self.onward.ask(&asked, bytes, network, to, caller).await {
                Ok(answer) if answer.len() <= room => answer,
                // The client asks again by a stream.
                Ok(_) => asked.truncated(),
                Err(error) => {
                    tracing::debug!("{}: {error}", asked.name());
                    asked.answer(SERVER_FAILURE, &[], 0, room)
                }
            },
        };
        self.traffic.received(answer.len());
        Some(answer)
    }

    /// The same, to be waited for.
    fn coming(self: &Arc<Self>, bytes: Vec<u8>, network: Network, to: &Destination, caller: &Arc<Caller>) -> Coming {
        let (answers, to, caller) = (Arc::clone(self), to.clone(), Arc::clone(caller));
        Box::pin(roads::inherit(async move {
            answers.answer(&bytes, network, &to, &caller).await
        }))
    }
}

impl Protocol for Dns {
    fn connect<'a>(&'a self, to: &'a Destination, caller: &'a Caller) -> Pending<'a, Far> {
        Box::pin(async move {
            // Questions of the object `dns` may be in TLS.
            let stream = match caller.asks_names {
                true => self.answers.onward.stream(to, caller).await?,
                false => {
                    let conversation = Conversation::new(Arc::clone(&self.answers), to.clone(), caller.clone());
                    Stream::new(Box::new(conversation), Traffic::default())
                }
            };
            Ok(Far::Stream(Box::new(stream)))
        })
    }

    fn associate<'a>(&'a self, _: &'a Destination, caller: &'a Caller) -> Pending<'a, Box<dyn PacketEnd>> {
        let packets = Packets::new(Arc::clone(&self.answers), caller.clone());
        Box::pin(async move { Ok(Box::new(packets) as Box<dyn PacketEnd>) })
    }

    fn is_open_to_all(&self, _: &Destination) -> bool {
        true
    }
}

#[cfg(test)]
mod tests;
