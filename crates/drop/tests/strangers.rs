//! Strangers at an open port and at a relay, and ends that were told what does not fit.

#![allow(clippy::unwrap_used)]

#[path = "support/relay.rs"]
#[allow(dead_code)]
mod relay;
mod support;

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sealway_aead::Suite;
use sealway_aead::choose::Offer;
use sealway_drop::cancel::Cancel;
use sealway_drop::identity::PublicKey;
use sealway_drop::link::{Connected, Identity, Place, Setup, connect, connect_telling};
use sealway_drop::relay::{Limits, Meeting};
use sealway_drop::{Error, Fault};
use sealway_session::handshake::{Auth, Config, Handshake, Kem, Role, StaticKey};
use support::{code, listen, setup};
use zeroize::Zeroizing;

/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(60);

fn dial(address: SocketAddr, patience: Duration) -> Place {
    Place::Dial {
        addresses: vec![address],
        patience,
    }
}

/// An end that waits, and what it was told of those it turned away.
struct Waiting {
    thread: JoinHandle<Result<Connected, Error>>,
    cancel: Cancel,
    told: Arc<Mutex<Vec<String>>>,
}

fn waiting(listener: TcpListener, setup: &Setup) -> Waiting {
    let (cancel, told) = (Cancel::new(), Arc::<Mutex<Vec<String>>>::default());
    let (of, setup, tell) = (cancel.clone(), setup.clone(), told.clone());
    let thread = std::thread::spawn(move || {
        connect_telling(Place::Listen(listener), &setup, 1, &of, &|error| {
            tell.lock().unwrap().push(error.to_string());
        })
    });
    Waiting { thread, cancel, told }
}

impl Waiting {
    fn finished(&self) -> bool {
        let until = Instant::now() + LIMIT;
        while !self.thread.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.thread.is_finished()
    }

    /// What it was told, as soon as it was.
    fn said(&self) -> String {
        let until = Instant::now() + LIMIT;
        loop {
            if let Some(said) = self.told.lock().unwrap().last() {
                return said.clone();
            }
            assert!(Instant::now() < until, "nothing was said");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// The first flight of an end that guesses.
fn guess() -> Vec<u8> {
    let config = Config {
        role: Role::Initiator,
        auth: Auth::Code(b"one-two-three".to_vec().into()),
        offer: setup(1).offer,
        kem: Kem::MlKem768,
        prologue: b"sealway drop 1".to_vec(),
    };
    Handshake::new(config, &mut |out| out.fill(7)).unwrap().write().unwrap()
}

/// Strangers that say these things and stay, and then the other end.
fn among(strangers: &[&[u8]]) {
    let (listener, address) = listen();
    let waiting = waiting(listener, &code("castle-lemon-opera"));
    let come = |bytes: &&[u8]| {
        let mut stranger = TcpStream::connect(address).unwrap();
        stranger.write_all(bytes).unwrap();
        stranger
    };
    let strangers: Vec<_> = strangers.iter().map(come).collect();
    // So that they are looked at before it is.
    std::thread::sleep(Duration::from_millis(200));
    let came = connect(dial(address, LIMIT), &code("castle-lemon-opera"), 1, &Cancel::new());
    assert!(came.is_ok(), "{:?}", came.err());
    assert!(waiting.finished(), "it still waits for strangers");
    let told = waiting.told.lock().unwrap().clone();
    assert!(waiting.thread.join().unwrap().is_ok());
    assert!(told.is_empty(), "nobody reads of strangers: {told:?}");
    drop(strangers);
}

/// Found where one stray `S` on a port with a code held the turn for ten seconds, after which the other end had given up.
#[test]
fn strangers_at_a_port_with_a_code_cost_neither_the_guess_nor_the_transfer() {
    let flight = guess();
    let half = [b"S", &flight[..flight.len() - 1]].concat();
    for stranger in [&b"S"[..], b"SSWI\x01", &half] {
        among(&[stranger]);
    }
    among(&[
        b"S",
        b"",
        b"Sno handshake at all",
        b"GET / HTTP/1.0\r\n\r\n",
        b"J",
        &half,
    ]);
}

#[test]
fn more_strangers_than_are_let_in_keep_nobody_out() {
    among(&[&b""[..]; 150]);
    among(&[&b"S"[..]; 150]);
}

#[test]
fn a_whole_guess_is_one() {
    let (listener, address) = listen();
    let waiting = waiting(listener, &code("castle-lemon-opera"));
    let mut stranger = TcpStream::connect(address).unwrap();
    stranger.write_all(&[b"S", &guess()[..]].concat()).unwrap();
    // The answer says whether it was right; whoever goes away now has learned that.
    stranger.set_read_timeout(Some(LIMIT)).unwrap();
    stranger.read_exact(&mut [0; 16]).unwrap();
    drop(stranger);
    assert!(waiting.finished());
    assert!(matches!(waiting.thread.join().unwrap(), Err(Error::CodeSpent)));
}

#[test]
fn a_stranger_at_a_relay_leads_to_another_number() {
    let relay = relay::Relay::start(Limits::default());
    let (meeting, numbers) = relay::opening();
    let (address, cancel) = (relay.address.clone(), Cancel::new());
    let of = cancel.clone();
    let sender = std::thread::spawn(move || {
        let place = Place::Relay { address, meeting };
        connect(place, &code("castle-lemon-opera"), 1, &of)
    });
    let first = numbers.recv_timeout(LIMIT).unwrap();
    let (mut stranger, _) = relay.claim(first).unwrap();
    stranger.write_all(b"GET / HTTP/1.0\r\n\r\n").unwrap();
    let second = numbers.recv_timeout(LIMIT).unwrap();
    let place = Place::Relay {
        address: relay.address.clone(),
        meeting: Meeting::Claim(second),
    };
    // A number that is nobody's spends nothing. The first may be the second again: the relay draws among few.
    let gone = Place::Relay {
        address: relay.address.clone(),
        meeting: Meeting::Claim(987_654),
    };
    let gone = connect(gone, &code("castle-lemon-opera"), 1, &Cancel::new());
    assert!(matches!(gone, Err(error) if error.is_unknown_number()));
    let receiver = connect(place, &code("castle-lemon-opera"), 1, &Cancel::new());
    assert!(receiver.is_ok(), "{:?}", receiver.err());
    assert!(sender.join().unwrap().is_ok());
}

fn keys(own: u8, peers: Option<Vec<[u8; 32]>>) -> Setup {
    Setup {
        identity: Identity::Keys {
            own: Zeroizing::new([own; 32]),
            peers,
        },
        ..setup(1)
    }
}

fn public(own: u8) -> [u8; 32] {
    *StaticKey::from_bytes(&[own; 32]).public()
}

/// What is said at the end that dials, and at the one that waits on.
fn mismatch(waits: &Setup, comes: &Setup) -> (Error, String) {
    let (listener, address) = listen();
    let waiting = waiting(listener, waits);
    let came = connect(dial(address, Duration::from_secs(5)), comes, 1, &Cancel::new());
    // Where only the other end's key is refused, that is said in place of its first words.
    let error = match came {
        Err(error) => error,
        Ok(mut connected) => connected.peered.connection.reader.next().map(drop).unwrap_err(),
    };
    let said = waiting.said();
    assert!(!waiting.thread.is_finished(), "it does not wait any more");
    waiting.cancel.cancel();
    assert!(waiting.finished());
    assert!(matches!(waiting.thread.join().unwrap(), Err(Error::Cancelled)));
    (error, said)
}

#[test]
fn what_does_not_fit_is_explained_at_both_ends() {
    let words = code("castle-lemon-opera");
    let (error, said) = mismatch(&words, &setup(2));
    assert_eq!(error.fault(), Fault::Identity);
    assert!(
        error.to_string().contains("the other end wants a code phrase"),
        "{error}"
    );
    assert!(said.contains("the other end uses keys"), "{said}");

    let (error, said) = mismatch(&setup(2), &words);
    assert!(error.to_string().contains("the other end uses keys"), "{error}");
    assert!(said.contains("the other end wants a code phrase"), "{said}");

    let strong = |setup: Setup| Setup { strong: true, ..setup };
    for who in [setup(1), words.clone()] {
        let (error, said) = mismatch(&strong(who.clone()), &who);
        assert_eq!(error.fault(), Fault::Usage);
        assert!(error.to_string().contains("the other end was told --strong"), "{error}");
        assert!(said.contains("this end was told --strong"), "{said}");
    }

    let only = |setup: Setup, suite| Setup {
        offer: Offer::new(&[suite], true).unwrap(),
        ..setup
    };
    for who in [setup(1), words] {
        let (error, said) = mismatch(
            &only(who.clone(), Suite::ChaCha20Poly1305),
            &only(who, Suite::Aes256Gcm),
        );
        assert_eq!(error.fault(), Fault::Usage);
        for text in [error.to_string(), said] {
            assert!(text.contains("no cipher suite in common"), "{text}");
        }
    }
}

#[test]
fn a_key_that_is_refused_is_shown_as_identity_shows_it() {
    let shown = |own| PublicKey::new(public(own)).to_string();
    // By the end that waits.
    let (error, said) = mismatch(&keys(1, Some(vec![public(9)])), &keys(2, None));
    assert_eq!(error.fault(), Fault::Identity);
    assert!(
        matches!(error, Error::KeyRefused { own } if own == public(2)),
        "{error:?}"
    );
    for text in [error.to_string(), said] {
        assert!(text.contains(&shown(2)), "{text}");
    }
    // By the end that comes.
    let (error, said) = mismatch(&keys(1, None), &keys(2, Some(vec![public(9)])));
    assert_eq!(error.fault(), Fault::Identity);
    for text in [error.to_string(), said] {
        assert!(text.contains(&shown(1)), "{text}");
    }
}

#[test]
fn a_port_of_somebody_else_is_not_waited_for() {
    let (listener, address) = listen();
    std::thread::spawn(move || listener.incoming().for_each(drop));
    let begun = Instant::now();
    let came = connect(
        dial(address, Duration::from_secs(600)),
        &code("castle-lemon-opera"),
        1,
        &Cancel::new(),
    );
    assert!(matches!(came, Err(Error::Network { .. })));
    assert!(begun.elapsed() < LIMIT);
}
