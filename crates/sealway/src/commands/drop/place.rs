//! Where the other end is and who it is, of the options of a command.

use std::io::IsTerminal;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use sealway_aead::choose::Offer;
use sealway_aead::cpu::Cpu;
use sealway_drop::address::{self, AddressError};
use sealway_drop::cancel::Cancel;
use sealway_drop::identity;
use sealway_drop::invite::{Invite, Meet};
use sealway_drop::link::{Connected, Identity, Place, Setup};
use sealway_drop::relay::Meeting;
use sealway_lab::exit::Exit;
use sealway_session::code::CodePhrase;
use zeroize::Zeroizing;

use super::events::Events;
use super::problem;
use crate::args::{DropLink as Link, HashWord, ViaWord};
use crate::problem::{Problem, note};

/// How long an end that dials waits for the other one to listen.
const PATIENCE: Duration = Duration::from_secs(10);

/// The same where a person types a code first.
const TYPING: Duration = Duration::from_secs(600);

/// Which end of the drop a command is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum End {
    Sender,
    Receiver,
    Sharer,
    Mounter,
}

impl End {
    /// Whether it makes the code, and waits where nothing else is said. The other end is told the code, and comes.
    fn is_first(self) -> bool {
        matches!(self, End::Sender | End::Sharer)
    }

    /// The command of the other end.
    fn other(self) -> &'static str {
        match self {
            End::Sender => "receive",
            End::Receiver => "send",
            End::Sharer => "mount",
            End::Mounter => "share",
        }
    }
}

/// Everything that brings up a session.
pub(super) struct Way {
    pub(super) place: Place,
    pub(super) setup: Setup,
    pub(super) connections: u32,
    pub(super) hash: bool,
    pub(super) check: Check,
    pub(super) own: identity::Identity,
    /// Somebody typed the code.
    pub(super) typed: bool,
}

/// What becomes of the check words.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Check {
    /// They are not needed: a code or a key says who the other end is.
    Proved,
    /// Nothing says who it is, and nobody is asked: it is on this machine.
    Local,
    /// Nothing says who it is, and nobody is asked: that was wanted.
    Shown,
    /// A person says whether they are the same at both ends.
    Asked,
}

fn usage(text: impl std::fmt::Display) -> Problem {
    Problem::new(Exit::Usage, text)
}

/// Makes sense of the options. Listens already, so that the address can be said.
pub(super) fn way(link: &Link, end: End, events: Events, cancel: &Cancel) -> Result<Way, Problem> {
    let relay = link.relay.clone().or_else(|| {
        let wanted = link.connect.is_none() && link.listen.is_none();
        std::env::var("SEALWAY_RELAY")
            .ok()
            .filter(|relay| wanted && !relay.is_empty())
    });
    if !end.is_first() && link.connect.is_none() && link.listen.is_none() && relay.is_none() {
        return Err(nowhere(end));
    }
    let (addresses, local) = match link.connect.as_ref().or(link.listen.as_ref()) {
        Some(address) => (resolve(address)?, address::is_this_machine(address)),
        None => (vec![], false),
    };
    let own = identity::Identity::load_or_make().map_err(|error| problem(&error))?;
    if own.path().is_none() {
        events.warn("this machine's key cannot be kept, so a transfer that breaks off begins anew; set SEALWAY_CONFIG_DIR to a folder of yours");
    }
    let code = std::env::var("SEALWAY_CODE")
        .ok()
        .filter(|code| !code.trim().is_empty());
    let by_keys = !link.peer.is_empty() || link.anyone || (local && code.is_none() && !link.code);
    let check = match (by_keys && link.peer.is_empty(), local) {
        (false, _) => Check::Proved,
        (true, true) => Check::Local,
        (true, false) if link.unchecked => Check::Shown,
        (true, false) => Check::Asked,
    };
    if check == Check::Asked && !std::io::stdin().is_terminal() {
        return Err(
            usage("nothing says who the other end is, and there is no terminal to compare the check words on")
                .hint("use a code or --peer KEY in place of --anyone; --unchecked takes whoever comes first"),
        );
    }
    let at_relay = link.connect.is_none() && relay.is_some();
    // The first end waits before it shows a code, so that what it shows holds.
    let listener = match end.is_first() && link.connect.is_none() && !at_relay {
        true => Some(listen(&addresses)?),
        false => None,
    };
    let waits_at = listener.as_ref().and_then(|listener| listener.local_addr().ok());
    let place = match (&link.connect, waits_at) {
        (_, Some(address)) => Meet::Here(address::reachable(address)),
        (Some(_), None) => Meet::There(addresses.clone()),
        (None, None) => Meet::Relay(link.relay.clone()),
    };
    let invite = Invite {
        command: end.other(),
        place,
        key: (!link.peer.is_empty()).then(|| own.public().to_string()),
        options: both_say(link, local && !by_keys),
    };
    let (mut phrase, mut patience, mut typed) = (None, PATIENCE, false);
    let identity = if by_keys {
        let peers = match link.peer.as_slice() {
            [] => None,
            names => Some(names.iter().map(|name| key(name)).collect::<Result<Vec<_>, _>>()?),
        };
        if listener.is_some() {
            events.invite(&invite);
        }
        Identity::Keys {
            own: own.secret().clone(),
            peers,
        }
    } else {
        let given = code.is_some();
        let made = match (code, end.is_first()) {
            (Some(code), _) => parse(&Zeroizing::new(code))?,
            (None, true) => generate()?,
            (None, false) => {
                typed = std::io::stdin().is_terminal();
                ask(cancel)?
            }
        };
        let identity = Identity::Code(made.secret());
        if end.is_first() && !given && !at_relay {
            events.code(&made.reveal(), &invite);
            // Somebody must type that before anybody listens.
            patience = TYPING;
        }
        phrase = Some(made);
        identity
    };
    let place = match (&link.connect, relay) {
        (Some(_), _) => Place::Dial { addresses, patience },
        (None, Some(address)) => meet_there(address, end, phrase, invite, events)?,
        (None, None) => {
            let listener = match listener {
                Some(listener) => listener,
                None => listen(&addresses)?,
            };
            let address = listener.local_addr();
            events.listening(address.map_err(|error| Problem::new(Exit::Internal, error))?);
            Place::Listen(listener)
        }
    };
    Ok(Way {
        place,
        setup: Setup {
            identity,
            offer: offer(link)?,
            strong: link.strong,
        },
        connections: link.connections.unwrap_or_else(default_connections),
        hash: match link.hash {
            HashWord::Auto => !local,
            HashWord::On => true,
            HashWord::Off => false,
        },
        check,
        own,
        typed,
    })
}

fn default_connections() -> u32 {
    std::thread::available_parallelism().map_or(2, |cpus| u32::try_from(cpus.get()).unwrap_or(4).clamp(1, 4))
}

/// The receiving end, where nothing says where the other one is: both would wait.
fn nowhere(end: End) -> Problem {
    let other = end.other();
    usage(format!(
        "nothing says where the other end is, and `sealway {other}` waits for this one"
    ))
    .hint(format_args!(
        "give `--connect HOST:PORT` as `sealway {other}` shows it there; or wait here with `--listen 0.0.0.0:4000` and let it come \
         with `--connect`; or meet with `--relay HOST:PORT` at both ends"
    ))
}

/// Options that both ends must give.
fn both_say(link: &Link, code_on_one_machine: bool) -> Vec<&'static str> {
    let via = match link.via {
        ViaWord::Records => None,
        ViaWord::Grpc => Some("--via grpc"),
        ViaWord::GrpcPlain => Some("--via grpc-plain"),
    };
    let options = [
        code_on_one_machine.then_some("--code"),
        link.anyone.then_some("--anyone"),
        link.strong.then_some("--strong"),
        via,
    ];
    options.into_iter().flatten().collect()
}

fn resolve(address: &str) -> Result<Vec<SocketAddr>, Problem> {
    address::resolve(address).map_err(|error| match error {
        AddressError::Lookup(error) => Problem::new(Exit::Remote, format!("cannot look up {address}: {error}")),
        error => usage(format!("{address}: {error}"))
            .hint("give HOST:PORT, such as 192.168.1.5:4000, [::1]:4000 or [fe80::1%eth0]:4000"),
    })
}

fn offer(link: &Link) -> Result<Offer, Problem> {
    let cpu = Cpu::get();
    match link.suite.as_slice() {
        [] => Ok(Offer::of(cpu)),
        some => Offer::new(some, cpu.has_aes_gcm()).map_err(|error| usage(format!("--suite: {error}"))),
    }
}

/// A key, or the name of one that is known.
fn key(text: &str) -> Result<[u8; 32], Problem> {
    if let Some(dir) = identity::config_dir()
        && let Some(known) = identity::KnownPeers::at(&dir)
            .lookup(text)
            .map_err(|error| problem(&error))?
    {
        return Ok(*known.key.bytes());
    }
    let key: Result<identity::PublicKey, _> = text.parse();
    key.map(|key| *key.bytes()).map_err(|error| {
        usage(format!(
            "--peer {text}: no key of that name is known, and it is no key: {error}"
        ))
        .hint("`sealway identity` at the other end shows its key; `sealway identity remember NAME KEY` gives it a name")
    })
}

fn generate() -> Result<CodePhrase, Problem> {
    let mut failed = None;
    let phrase = CodePhrase::generate(&mut |bytes| failed = failed.or(getrandom::fill(bytes).err()));
    match failed {
        None => Ok(phrase),
        Some(error) => Err(Problem::new(
            Exit::Internal,
            format!("the system gives no random bytes: {error}"),
        )),
    }
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

fn parse(code: &str) -> Result<CodePhrase, Problem> {
    CodePhrase::parse(code).map_err(|error| {
        Problem::new(Exit::Usage, error).hint("type it as the sender shows it, such as 7-word-word-word")
    })
}

/// Reads the code: from the terminal with a question, else the first line of standard input.
fn ask(cancel: &Cancel) -> Result<CodePhrase, Problem> {
    let typed = std::io::stdin().is_terminal();
    let line = || {
        let line = match typed {
            true => super::code::ask_typed("code of the other end (Tab completes words): ", cancel),
            false => super::asking::ask("", cancel),
        };
        line.map_err(|error| problem(&error))
    };
    loop {
        let line = line()?;
        if line.is_empty() {
            return Err(usage("no code was given").hint(
                "type it when asked, write it to standard input, or set SEALWAY_CODE; or use --peer KEY or --anyone",
            ));
        }
        match parse(&line) {
            // Nothing was sent, so no guess is spent.
            Err(mistyped) if typed => note(mistyped.message()),
            parsed => return parsed,
        }
    }
}

fn meet_there(
    address: String,
    end: End,
    phrase: Option<CodePhrase>,
    invite: Invite,
    events: Events,
) -> Result<Place, Problem> {
    let Some(phrase) = phrase else {
        return Err(usage("a relay brings ends together by a code").hint("leave out --peer and --anyone"));
    };
    let meeting = match end.is_first() {
        // The relay gives the number, so the code is only whole now.
        true => {
            let shown = phrase.reveal();
            let words = Zeroizing::new(
                shown
                    .split_once('-')
                    .map_or(String::new(), |(_, words)| words.to_owned()),
            );
            Meeting::Open(Arc::new(move |number| {
                events.code(&Zeroizing::new(format!("{number}-{}", *words)), &invite)
            }))
        }
        false => Meeting::Claim(phrase.nameplate()),
    };
    Ok(Place::Relay { address, meeting })
}

/// The way of a command, and the session at its end. A code whose number nobody waits under is asked for again where it was typed: no
/// guess is spent.
pub(super) fn meet(
    link: &Link,
    end: End,
    events: Events,
    cancel: &Cancel,
) -> Result<(Reached, Result<Connected, sealway_drop::Error>), Problem> {
    loop {
        let Way {
            place,
            setup,
            connections,
            hash,
            check,
            typed,
            ..
        } = way(link, end, events, cancel)?;
        match connect(place, &setup, connections, events, cancel) {
            Err(error) if typed && error.is_unknown_number() => note(format_args!("{error}; type the code again")),
            came => return Ok((Reached { hash, check }, came)),
        }
    }
}

/// What a command still needs to know of its way.
pub(super) struct Reached {
    pub(super) hash: bool,
    pub(super) check: Check,
}

/// Brings up the session of a command. Ends that come and do not fit are named, and the waiting goes on.
///
/// # Errors
/// As [`link::connect`](sealway_drop::link::connect).
pub(super) fn connect(
    place: Place,
    setup: &Setup,
    connections: u32,
    events: Events,
    cancel: &Cancel,
) -> Result<Connected, sealway_drop::Error> {
    sealway_drop::link::connect_telling(place, setup, connections, cancel, &|error| {
        events.turned_away(error);
    })
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
    sealway_drop::confirm::confirm(connected, cancel, |asking| super::asking::yes(&question, asking))
}
