//! The session of a command: its options and environment as what [`sealway_drop::policy`] decides by, and what that says, done.

use std::io::IsTerminal;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use sealway_aead::choose::Offer;
use sealway_aead::cpu::Cpu;
use sealway_drop::address::{self, AddressError};
use sealway_drop::cancel::Cancel;
use sealway_drop::identity::{self, KnownPeers};
use sealway_drop::invite::Invite;
use sealway_drop::link::direct::{Mapper, Ways};
use sealway_drop::link::{self, Connected, Identity, Place, Setup};
use sealway_drop::policy::code::{self, Entered};
use sealway_drop::policy::{self, Check, End, Proof, Refused, Route, Shows, Source, Wishes};
use sealway_drop::relay::Meeting;
use sealway_drop_lan::{Announced, Sign};
use sealway_drop_map::Router;
use sealway_drop_mount::grpc::files::Channel;
use sealway_drop_mount::grpc::plain;
use sealway_drop_transfer::hashing::Hashing;
use sealway_session::code::CodePhrase;
use sealway_session::handshake::Role;
use zeroize::Zeroizing;

use super::events::Events;
use super::{asking, lan};
use crate::args::{DropLink, HashWord, ViaWord};
use crate::exit::Exit;
use crate::problem::{Problem, note};

/// Everything that brings up a session.
pub(super) struct Prepared {
    pub(super) place: Place,
    pub(super) setup: Setup,
    pub(super) connections: u32,
    pub(super) hashing: Hashing,
    pub(super) check: Check,
    pub(super) own: identity::Identity,
    /// Where the code came from, if there is one.
    pub(super) code: Option<Source>,
    /// Lets the network know that this end waits, for as long as it is kept.
    pub(super) announced: Option<Announced>,
}

/// A variable that is not empty. One of spaces alone is kept: as a relay it is an error, not a wish for none.
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

/// How to come together, as far as the options say, and the address that is named for it.
fn route(link: &DropLink) -> (Option<Route>, Option<&str>) {
    let named = [
        (Route::Dial, &link.connect),
        (Route::Wait, &link.listen),
        (Route::Relay, &link.relay),
    ];
    let said = named.into_iter().find_map(|(route, at)| Some((route, at.as_deref()?)));
    (said.map(|(route, _)| route), said.map(|(_, address)| address))
}

/// Makes sense of the options. An end that is waited for listens already, so that the address can be said.
pub(super) fn prepare(link: &DropLink, end: End, events: Events, cancel: &Cancel) -> Result<Prepared, Problem> {
    let (said, address) = route(link);
    let direct = address.filter(|_| said != Some(Route::Relay));
    let (local, usual_relay) = (direct.is_some_and(address::is_this_machine), variable("SEALWAY_RELAY"));
    let given = variable("SEALWAY_CODE")
        .filter(|code| !code.trim().is_empty())
        .map(Zeroizing::new);
    let terms = Wishes {
        end,
        route: said,
        usual_relay: usual_relay.is_some(),
        lan: !link.no_lan,
        local,
        code: link.code,
        given: given.is_some(),
        keys: !link.peer.is_empty(),
        anyone: link.anyone,
        unchecked: link.unchecked,
        person: std::io::stdin().is_terminal(),
    }
    .terms()?;
    let addresses = direct.map_or(Ok(vec![]), resolve)?;
    let own = identity::Identity::load_or_make()?;
    if own.path().is_none() {
        events.warn("this machine's key cannot be kept, so a transfer that breaks off begins anew; set SEALWAY_CONFIG_DIR to a folder of yours");
    }
    let listener = terms.waits_first.then(|| listen(&addresses)).transpose()?;
    let waits_at = listener.as_ref().and_then(|listener| listener.local_addr().ok());
    let mut invite = Invite {
        command: end.other(),
        place: terms.meet(waits_at, &addresses, link.relay.as_deref()),
        near: false,
        key: (terms.proof == Proof::Keys).then(|| own.public().to_string()),
        options: both_say(link, terms.says_code),
    };
    let mut phrase = None;
    let (identity, sign) = match terms.proof {
        Proof::Code(source) => {
            let phrase = phrase.insert(code_from(source, given, cancel)?);
            (Identity::Code(phrase.secret()), Some(Sign::Number(phrase.nameplate())))
        }
        Proof::Keys | Proof::Anyone => {
            let peers = (terms.proof == Proof::Keys).then(|| keys(&link.peer)).transpose()?;
            let sign = peers.as_ref().map(|peers| lan::sign_of(&own, peers)).transpose()?;
            let own = own.secret().clone();
            (Identity::Keys { own, peers }, sign)
        }
    };
    let mut announced = None;
    if let (true, Some(address), Some(sign)) = (terms.announces, waits_at, sign.clone()) {
        announced = lan::announce(address.port(), sign, events);
        invite.near = announced.is_some();
    }
    if waits_at.is_some() && phrase.is_none() {
        events.invite(&invite);
    }
    if let (Shows::AtOnce, Some(phrase)) = (terms.shows, &phrase) {
        events.code(&phrase.reveal(), &invite);
    }
    let place = match (terms.route, phrase) {
        (Route::Dial, _) => Place::Dial {
            addresses,
            patience: terms.patience,
        },
        (Route::Lan, _) => Place::Dial {
            addresses: lan::find(sign, terms.patience, end, events, cancel)?,
            patience: terms.patience,
        },
        (Route::Relay, phrase) => {
            let meeting = match (phrase, terms.shows) {
                (Some(phrase), Shows::Numbered) => Meeting::Open(Arc::new(move |number| {
                    events.code(&code::numbered(&phrase, number), &invite)
                })),
                (Some(phrase), Shows::Never | Shows::AtOnce) => Meeting::Claim(phrase.nameplate()),
                (None, _) => {
                    if end.is_first() {
                        events.invite(&invite);
                    }
                    known(&identity, end)?
                }
            };
            let address = link.relay.clone().or(usual_relay).unwrap_or_default();
            Place::Relay { address, meeting }
        }
        (Route::Wait, _) => {
            let listener = listener.map_or_else(|| listen(&addresses), Ok)?;
            let address = listener.local_addr();
            events.listening(address.map_err(|error| Problem::new(Exit::Internal, error))?);
            Place::Listen(listener)
        }
    };
    Ok(Prepared {
        place,
        setup: Setup {
            identity,
            offer: offer(link)?,
            strong: link.strong,
        },
        connections: link.connections.unwrap_or_else(default_connections),
        hashing: match link.hash {
            HashWord::Sample => Hashing::Sampled,
            HashWord::All => Hashing::All,
            HashWord::Off => Hashing::Off,
        },
        check: terms.check,
        own,
        code: terms.code(),
        announced,
    })
}

/// How this end meets the one with the key that was named, at a relay.
fn known(identity: &Identity, end: End) -> Result<Meeting, Problem> {
    let Identity::Keys {
        own,
        peers: Some(peers),
    } = identity
    else {
        return Err(Refused::RelayNeedsProof.into());
    };
    let &[peer] = peers.as_slice() else {
        let problem = Problem::usage("--peer: at a relay this end can wait for one key only");
        return Err(problem.hint("name one, or start the command once for each"));
    };
    let (own, first) = (identity::Identity::with_secret(own), end.is_first());
    let token = move || {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |since| since.as_secs());
        own.relay_token(&peer, first, now)
            .map_err(|error| sealway_drop::Error::Usage(error.to_string()))
    };
    // As with a number: who makes the code is the responder.
    let role = if first { Role::Responder } else { Role::Initiator };
    Ok(Meeting::Known {
        token: Arc::new(token),
        role,
    })
}

fn default_connections() -> u32 {
    std::thread::available_parallelism().map_or(2, |cpus| u32::try_from(cpus.get()).unwrap_or(4).clamp(1, 4))
}

/// Options that both ends must give.
fn both_say(link: &DropLink, code: bool) -> Vec<&'static str> {
    let via = match link.via {
        ViaWord::Records => None,
        ViaWord::Grpc => Some("--via grpc"),
        ViaWord::GrpcPlain => Some("--via grpc-plain"),
    };
    let options = [
        code.then_some("--code"),
        link.anyone.then_some("--anyone"),
        link.strong.then_some("--strong"),
        via,
    ];
    options.into_iter().flatten().collect()
}

fn resolve(address: &str) -> Result<Vec<SocketAddr>, Problem> {
    address::resolve(address).map_err(|error| match error {
        AddressError::Lookup(error) => Problem::new(Exit::Remote, format!("cannot look up {address}: {error}")),
        error => Problem::usage(format!("{address}: {error}"))
            .hint("give HOST:PORT, such as 192.168.1.5:4000, [::1]:4000 or [fe80::1%eth0]:4000"),
    })
}

fn offer(link: &DropLink) -> Result<Offer, Problem> {
    let cpu = Cpu::get();
    match link.suite.as_slice() {
        [] => Ok(Offer::of(cpu)),
        some => Offer::new(some, cpu.has_aes_gcm()).map_err(|error| Problem::usage(format!("--suite: {error}"))),
    }
}

/// The keys that were named.
fn keys(named: &[String]) -> Result<Vec<[u8; 32]>, Problem> {
    let known = match identity::config_dir() {
        Some(dir) => KnownPeers::at(&dir).list()?,
        None => vec![],
    };
    let keys = named.iter().map(|name| policy::key_named(name, &known));
    Ok(keys.collect::<Result<_, _>>()?)
}

fn listen(addresses: &[SocketAddr]) -> Result<TcpListener, Problem> {
    let everywhere = [
        SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)),
        SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)),
    ];
    let wanted = if addresses.is_empty() {
        &everywhere[..]
    } else {
        addresses
    };
    TcpListener::bind(wanted).map_err(|error| {
        Problem::new(Exit::Remote, format!("cannot listen: {error}")).hint("is another program there already?")
    })
}

/// The code from where it comes; what was mistyped is asked for again.
fn code_from(source: Source, mut given: Option<Zeroizing<String>>, cancel: &Cancel) -> Result<CodePhrase, Problem> {
    loop {
        let line = match source {
            Source::Made => return generate(),
            Source::Given => given.take().unwrap_or_default(),
            Source::Typed => super::code::ask_typed("code of the other end (Tab completes words): ", cancel)?,
            Source::Read => asking::ask("", cancel)?,
        };
        match code::entered(&line, source)? {
            Entered::Code(code) => return Ok(code),
            Entered::Again(mistyped) => note(mistyped),
        }
    }
}

fn generate() -> Result<CodePhrase, Problem> {
    let mut failed = None;
    let phrase = CodePhrase::generate(&mut |bytes| failed = failed.or(getrandom::fill(bytes).err()));
    failed.map_or(Ok(phrase), |error| Err(Problem::no_random_bytes(error)))
}

/// What a command needs to know of a session that was tried to bring up.
pub(super) struct Met {
    pub(super) hashing: Hashing,
    pub(super) check: Check,
    pub(super) own: identity::Identity,
    pub(super) came: Result<Connected, sealway_drop::Error>,
}

/// Brings up the session of a command, with so many further connections if not as many as its options say. Ends that come and do not
/// fit are named, and the waiting goes on. A code whose number nobody waits under is asked for again where it was typed.
pub(super) fn meet(
    link: &DropLink,
    end: End,
    connections: Option<u32>,
    events: Events,
    cancel: &Cancel,
) -> Result<Met, Problem> {
    loop {
        let ready = prepare(link, end, events, cancel)?;
        let connections = connections.unwrap_or(ready.connections);
        let turned_away = |error: &sealway_drop::Error| events.turned_away(error);
        // Until somebody has come.
        let _announced = ready.announced;
        match link::connect_telling(ready.place, &ready.setup, connections, cancel, &turned_away) {
            Err(error) if code::is_asked_again(&error, ready.code) => ask_again(&error),
            came => {
                return Ok(Met {
                    hashing: ready.hashing,
                    check: ready.check,
                    own: ready.own,
                    came,
                });
            }
        }
    }
}

/// By what a direct path is looked for beside a relay.
pub(super) fn ways(link: &DropLink) -> Option<Ways> {
    let mapper: Arc<dyn Mapper> = Arc::new(Router);
    (!link.no_direct).then_some(Ways { mapper: Some(mapper) })
}

/// Says why a code is asked for again.
pub(super) fn ask_again(error: &sealway_drop::Error) {
    note(format_args!("{error}; type the code again"));
}

/// The connection that the gRPC service goes over.
pub(super) fn through_grpc(link: &DropLink, end: End, events: Events, cancel: &Cancel) -> Result<Channel, Problem> {
    if link.via == ViaWord::GrpcPlain {
        let (said, address) = route(link);
        let address = address.unwrap_or_default();
        let route = policy::unsealed(said, address::is_this_machine(address))?;
        return Ok(Channel::Plain(plain::connect(address, route)?));
    }
    let Met { check, came, .. } = meet(link, end, Some(1), events, cancel)?;
    let mut connected = came?;
    confirm(&mut connected, check, events, cancel)?;
    Ok(Channel::Sealed(Box::new(connected)))
}

/// Says that the session stands. Where nothing proves who the other end is, a person compares the check words.
///
/// # Errors
/// [`Error::SaidNo`](sealway_drop::Error::SaidNo) if they differ, and what ends either end meanwhile.
pub(super) fn confirm(
    connected: &mut Connected,
    check: Check,
    events: Events,
    cancel: &Cancel,
) -> Result<(), sealway_drop::Error> {
    let words = connected.peered.check.to_string();
    events.connected(connected.peered.suite.name(), &words, check);
    if check != Check::Asked {
        return Ok(());
    }
    // Without a terminal any more the answer is empty, and no.
    let question = format!("check words: {words}\ndoes the other end show the same? [y/N] ");
    sealway_drop::confirm::confirm(connected, cancel, |asking| asking::yes(&question, asking))
}
