//! An end that was told no address looks for the one that waits.

use std::collections::{HashMap, HashSet};
use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, Instant};

use mdns_sd::{Receiver, RecvTimeoutError, ResolvedService, ScopedIp, ServiceDaemon, ServiceEvent};

use crate::announce::now;
use crate::near::{dialled, in_order};
use crate::question::Question;
use crate::{Error, SERVICE, Sign, daemon};

/// How long others may take to answer as well, once one has.
const OTHERS: Duration = Duration::from_millis(300);
/// How often it is looked whether somebody has answered, and whether somebody wants no more.
const TICK: Duration = Duration::from_millis(20);
/// Most ends that are looked at, meant or not.
const MAX_ENDS: usize = 1024;

/// Looks for the end with this sign for at most `limit`, and says where it waits, the likely addresses first.
///
/// # Errors
/// [`Error::Several`] if more than one answers to it, [`Error::Nobody`], [`Error::Stopped`] soon after `stop` says so,
/// [`Error::Multicast`], [`Error::Random`].
pub fn search(sign: &Sign, limit: Duration, stop: &dyn Fn() -> bool) -> Result<Vec<SocketAddr>, Error> {
    let question = Question::new()?;
    let daemon = daemon()?;
    let found = daemon.browse(SERVICE).map_err(Error::from).and_then(|announced| {
        let found = gather(Found::new(sign, limit), question, &announced, stop);
        let _ = daemon.stop_browse(SERVICE);
        found
    });
    end(&daemon);
    found
}

fn end(daemon: &ServiceDaemon) {
    if let Ok(ended) = daemon.shutdown() {
        let _ = ended.recv_timeout(OTHERS);
    }
}

/// Takes what is answered and what is announced, whichever comes first.
fn gather(
    mut found: Found<'_>,
    mut question: Question,
    announced: &Receiver<ServiceEvent>,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<SocketAddr>, Error> {
    while !found.is_done() {
        if stop() {
            return Err(Error::Stopped);
        }
        for answer in question.answers() {
            if found.is_done() {
                break;
            }
            let heard = answer.addresses.iter().copied();
            found.add(&answer.name, answer.port, heard, |key| answer.value(key))?;
        }
        match announced.recv_timeout(TICK) {
            Ok(ServiceEvent::ServiceResolved(service)) => {
                let value = |key: &str| service.txt_properties.get_property_val(key).flatten();
                found.add(&service.fullname, service.port, heard(&service), value)?;
            }
            // It has gone again, so that another may stand there.
            Ok(ServiceEvent::ServiceRemoved(_, name)) => {
                found.ends.remove(&name);
            }
            Ok(_) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    found
        .ends
        .into_values()
        .next()
        .map(|end| end.addresses)
        .ok_or(Error::Nobody)
}

/// Addresses of an announcement, with the numbers of the interfaces that link-local ones belong to.
fn heard(service: &ResolvedService) -> impl Iterator<Item = (IpAddr, u32)> {
    service.addresses.iter().map(|address| {
        let interface = match address {
            ScopedIp::V6(v6) => v6.scope_id().index,
            _ => 0,
        };
        (address.to_ip_addr(), interface)
    })
}

/// An end that is meant.
struct End {
    port: u16,
    addresses: Vec<SocketAddr>,
}

/// The ends that are meant, so far.
struct Found<'a> {
    sign: &'a Sign,
    until: Instant,
    /// The names of all, each of which is heard many times.
    names: HashSet<String>,
    /// By name: one that is heard on several interfaces has more addresses each time.
    ends: HashMap<String, End>,
}

impl Found<'_> {
    fn new(sign: &Sign, limit: Duration) -> Found<'_> {
        Found {
            sign,
            until: Instant::now() + limit,
            names: HashSet::new(),
            ends: HashMap::new(),
        }
    }

    fn is_done(&self) -> bool {
        Instant::now() >= self.until || self.names.len() >= MAX_ENDS
    }

    /// Somebody was heard of. That it is somebody else than before, by name or by port, is an error, if both are meant.
    fn add<'a>(
        &mut self,
        name: &str,
        port: u16,
        heard: impl Iterator<Item = (IpAddr, u32)>,
        value: impl Fn(&str) -> Option<&'a [u8]>,
    ) -> Result<(), Error> {
        if !self.names.contains(name) {
            self.names.insert(name.to_owned());
        }
        if !self.sign.is_meant(now(), value) {
            return Ok(());
        }
        let mut addresses = dialled(heard, port);
        if addresses.is_empty() {
            return Ok(());
        }
        if self.ends.is_empty() {
            self.until = self.until.min(Instant::now() + OTHERS);
        }
        let none = End {
            port,
            addresses: Vec::new(),
        };
        let end = self.ends.entry(name.to_owned()).or_insert(none);
        addresses.append(&mut end.addresses);
        end.addresses = in_order(addresses);
        if end.port != port || self.ends.len() > 1 {
            return Err(Error::Several);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_is_heard_of_twice_is_one_and_two_are_too_many() {
        // Link-local addresses are dialled whatever networks this machine has.
        let address = |last: u16, interface| [(IpAddr::from([0xfe80, 0, 0, 0, 0, 0, 0, last]), interface)].into_iter();
        let text = |key: &str| match key {
            "txtvers" => Some(&b"1"[..]),
            "n" => Some(&b"7"[..]),
            _ => None,
        };
        let sign = Sign::Number(7);
        let mut found = Found::new(&sign, Duration::from_secs(3600));
        let before = found.until;
        found.add("other", 4000, address(9, 1), |_| None).unwrap();
        found.add("port", 22, address(9, 1), text).unwrap();
        assert!(found.ends.is_empty() && found.until == before);
        for (last, interface) in [(1, 1), (2, 2), (1, 1)] {
            found.add("a", 4000, address(last, interface), text).unwrap();
        }
        assert_eq!(found.ends["a"].addresses.len(), 2);
        assert!(found.until < before, "others have some time only");
        assert!(matches!(found.add("b", 4000, address(3, 1), text), Err(Error::Several)));
        // Under the name of one that is known.
        found.ends.remove("b");
        assert!(matches!(found.add("a", 4001, address(3, 1), text), Err(Error::Several)));
    }

    #[test]
    fn many_ends_end_a_search_and_many_answers_of_one_do_not() {
        let sign = Sign::Number(7);
        let mut found = Found::new(&sign, Duration::from_secs(3600));
        for number in 0..2 * MAX_ENDS {
            let name = (number % (MAX_ENDS - 1)).to_string();
            found.add(&name, 4000, std::iter::empty(), |_| None).unwrap();
        }
        assert!(!found.is_done());
        found.add("one more", 4000, std::iter::empty(), |_| None).unwrap();
        assert!(found.is_done());
    }
}
