//! Where the other end is and who it is, of the options of a command.

use std::io::{BufRead, IsTerminal, Write};
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::Arc;

use sealway_aead::choose::Offer;
use sealway_aead::cpu::Cpu;
use sealway_drop::identity;
use sealway_drop::link::{Identity, Place, Setup};
use sealway_drop::relay::Meeting;
use sealway_lab::exit::Exit;
use sealway_session::code::CodePhrase;
use zeroize::Zeroizing;

use super::events::Events;
use crate::args::{HashWord, Link};
use crate::problem::Problem;

/// Which end of the drop a command is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum End {
    /// It makes the code.
    Sender,
    /// It is told the code.
    Receiver,
}

/// Everything that brings up a session.
pub(super) struct Way {
    pub(super) place: Place,
    pub(super) setup: Setup,
    pub(super) connections: u32,
    pub(super) hash: bool,
    /// Somebody must compare the check words, since nothing else says who the other end is.
    pub(super) unproved: bool,
    pub(super) own: identity::Identity,
}

fn usage(text: impl std::fmt::Display) -> Problem {
    Problem::new(Exit::Usage, text)
}

/// Makes sense of the options. Listens already, so that the address can be said.
pub(super) fn way(link: &Link, end: End, events: &Events) -> Result<Way, Problem> {
    let relay = link.relay.clone().or_else(|| {
        let wanted = link.connect.is_none() && link.listen.is_none();
        std::env::var("SEALWAY_RELAY").ok().filter(|relay| wanted && !relay.is_empty())
    });
    let addresses = match (&link.connect, &link.listen, &relay) {
        (Some(address), _, _) | (_, Some(address), _) | (_, _, Some(address)) => resolve(address)?,
        (None, None, None) => vec![],
    };
    let local = !addresses.is_empty() && addresses.iter().all(|address| address.ip().is_loopback());
    let own = identity::Identity::load_or_make().map_err(|error| Problem::new(Exit::Storage, error))?;
    let code = std::env::var("SEALWAY_CODE").ok().filter(|code| !code.trim().is_empty());
    let by_keys = !link.peer.is_empty() || link.anyone || (local && relay.is_none() && code.is_none() && !link.code);
    let mut nameplate = None;
    let identity = if by_keys {
        let peers = match link.peer.as_slice() {
            [] => None,
            names => Some(names.iter().map(|name| key(name)).collect::<Result<Vec<_>, _>>()?),
        };
        Identity::Keys { own: own.secret(), peers }
    } else {
        let phrase = match (code, end) {
            (Some(code), _) => parse(&code)?,
            (None, End::Sender) => CodePhrase::generate(&mut random()?),
            (None, End::Receiver) => ask()?,
        };
        nameplate = phrase.nameplate();
        if std::env::var_os("SEALWAY_CODE").is_none() && end == End::Sender && relay.is_none() {
            events.code(&phrase.to_string());
        }
        Identity::Code(phrase.secret())
    };
    let place = match (&link.connect, relay) {
        (Some(address), _) => Place::Dial(address.clone()),
        (None, Some(address)) if link.listen.is_none() => at_relay(address, end, nameplate, &identity, events)?,
        (None, _) => {
            let wanted = match addresses.as_slice() {
                [] => vec![SocketAddr::from(([0, 0, 0, 0, 0, 0, 0, 0], 0)), SocketAddr::from(([0, 0, 0, 0], 0))],
                some => some.to_vec(),
            };
            let listener = TcpListener::bind(wanted.as_slice())
                .map_err(|error| Problem::new(Exit::Remote, format!("cannot listen: {error}")).hint("is another program there already?"))?;
            let address = listener.local_addr().map_err(|error| Problem::new(Exit::Internal, error))?;
            events.listening(address);
            Place::Listen(listener)
        }
    };
    let unproved = matches!(identity, Identity::Keys { peers: None, .. }) && !local;
    Ok(Way {
        place,
        setup: Setup { identity, offer: offer(link)?, strong: link.strong },
        connections: link.connections.unwrap_or_else(default_connections),
        hash: match link.hash {
            HashWord::Auto => !local,
            HashWord::On => true,
            HashWord::Off => false,
        },
        unproved,
        own,
    })
}

fn default_connections() -> u32 {
    std::thread::available_parallelism().map_or(2, |cpus| u32::try_from(cpus.get()).unwrap_or(4).clamp(1, 4))
}

fn resolve(address: &str) -> Result<Vec<SocketAddr>, Problem> {
    match address.to_socket_addrs() {
        Ok(addresses) => Ok(addresses.collect()),
        Err(error) if address.rsplit_once(':').is_none_or(|(_, port)| port.parse::<u16>().is_err()) => {
            Err(usage(format!("{address}: {error}")).hint("give HOST:PORT, such as 192.168.1.5:4000 or [::1]:4000"))
        }
        Err(error) => Err(Problem::new(Exit::Remote, format!("cannot look up {address}: {error}"))),
    }
}

fn offer(link: &Link) -> Result<Offer, Problem> {
    let best = Offer::of(&Cpu::detect());
    match link.suite.as_slice() {
        [] => Ok(best),
        some => Offer::new(some, best.aes_hardware()).map_err(|error| usage(format!("--suite: {error}"))),
    }
}

fn key(text: &str) -> Result<[u8; 32], Problem> {
    identity::key_or_name(text)
        .map_err(|error| usage(format!("--peer {text}: {error}")).hint("`sealway identity` at the other end shows its key"))
}

fn random() -> Result<impl FnMut(&mut [u8]), Problem> {
    let mut probe = [0; 1];
    getrandom::fill(&mut probe).map_err(|error| Problem::new(Exit::Internal, format!("the system gives no random bytes: {error}")))?;
    Ok(|bytes: &mut [u8]| {
        // Looked at above: a system that gives random bytes once does not stop.
        while getrandom::fill(bytes).is_err() {
            std::thread::yield_now();
        }
    })
}

fn parse(code: &str) -> Result<CodePhrase, Problem> {
    code.parse::<CodePhrase>()
        .map_err(|error| Problem::new(Exit::Usage, error).hint("type it as the sender shows it, such as 7-word-word-word"))
}

/// Reads the code: from the terminal with a question, else the first line of standard input.
fn ask() -> Result<CodePhrase, Problem> {
    let stdin = std::io::stdin();
    if stdin.is_terminal() {
        let mut stderr = std::io::stderr().lock();
        let _ = write!(stderr, "code of the sender: ");
        let _ = stderr.flush();
    }
    let mut line = Zeroizing::new(String::new());
    stdin.lock().read_line(&mut line).map_err(|error| usage(format!("cannot read the code: {error}")))?;
    if line.trim().is_empty() {
        return Err(usage("no code was given").hint(
            "type it when asked, write it to standard input, or set SEALWAY_CODE; or use --peer KEY or --anyone",
        ));
    }
    parse(line.trim())
}

fn at_relay(
    address: String,
    end: End,
    nameplate: Option<u32>,
    identity: &Identity,
    events: &Events,
) -> Result<Place, Problem> {
    let Identity::Code(_) = identity else {
        return Err(usage("a relay brings ends together by a code").hint("leave out --peer and --anyone"));
    };
    let meeting = match (end, nameplate) {
        (End::Sender, _) => {
            let events = events.clone();
            Meeting::Open(Arc::new(move |number| events.nameplate(number)))
        }
        (End::Receiver, Some(number)) => Meeting::Claim(number),
        (End::Receiver, None) => return Err(usage("this code has no number").hint("type all of it, such as 7-word-word-word")),
    };
    Ok(Place::Relay { address, meeting })
}
