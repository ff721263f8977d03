//! Strangers at an open port, and ends that were told what does not fit.

#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sealway_aead::Suite;
use sealway_aead::choose::Offer;
use sealway_drop::cancel::Cancel;
use sealway_drop::key::PublicKey;
use sealway_drop::link::{Connected, Host, Identity, Place, Setup, connect, connect_telling};
use sealway_drop::testing::{code, listen, setup};
use sealway_drop::{Error, Fault};
use sealway_session::handshake::{Auth, Config, Handshake, Kem, PeerKey, Role, StaticKey};
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

/// What an end says first.
fn first(auth: Auth, offer: Offer) -> Vec<u8> {
    let config = Config {
        role: Role::Initiator,
        auth,
        offer,
        kem: Kem::MlKem768,
        prologue: b"sealway drop 1".to_vec(),
    };
    Handshake::new(config, &mut |out| out.fill(7)).unwrap().write().unwrap()
}

/// The first flight of an end that guesses.
fn guess() -> Vec<u8> {
    first(Auth::Code(b"one-two-three".to_vec().into()), setup(1).offer)
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

/// What strangers say who are told why they are refused: a few bytes of the wrong mode, and all of a flight with the wrong suites.
fn refused() -> [Vec<u8>; 2] {
    let (own, peer) = (StaticKey::from_bytes(&[5; 32]), PeerKey::Unknown);
    let keys = first(Auth::Keys { own, peer }, setup(1).offer);
    let code = Auth::Code(b"one-two-three".to_vec().into());
    let suites = first(code, Offer::new(&[Suite::Aes256Gcm], true).unwrap());
    [[b"S", &keys[..8]].concat(), [b"S", &suites[..]].concat()]
}

/// As many as are let in of one address, less the other end. They read nothing and stay.
fn strangers(address: SocketAddr, says: &[u8]) -> Vec<TcpStream> {
    let come = |_| {
        let mut stranger = TcpStream::connect(address).unwrap();
        stranger.write_all(says).unwrap();
        stranger
    };
    let came = (0..23).map(come).collect();
    // So that they are looked at before the other end is.
    std::thread::sleep(Duration::from_millis(300));
    came
}

/// Found where each of them had the turn for as long as it took to tell it why, and the other end gave up.
#[test]
fn strangers_that_are_refused_do_not_hold_the_turn_of_a_code() {
    let words = only(code("castle-lemon-opera"), Suite::ChaCha20Poly1305);
    for says in refused() {
        let (listener, address) = listen();
        let waiting = waiting(listener, &words);
        let strangers = strangers(address, &says);
        let came = connect(dial(address, Duration::ZERO), &words, 1, &Cancel::new());
        assert!(came.is_ok(), "{:?}", came.err());
        assert!(waiting.finished());
        assert!(waiting.thread.join().unwrap().is_ok());
        drop(strangers);

        let (listener, address) = listen();
        let host = Host::start(listener, words.clone(), &Cancel::new()).unwrap();
        let strangers = self::strangers(address, &says);
        let came = connect(dial(address, Duration::ZERO), &words, 1, &Cancel::new());
        assert!(came.is_ok(), "{:?}", came.err());
        assert!(host.next(LIMIT).unwrap().is_some());
        drop(strangers);
    }
}

#[test]
fn strangers_that_are_refused_are_named_a_few_times() {
    let (listener, address) = listen();
    let host = Host::start(listener, setup(1), &Cancel::new()).unwrap();
    let named = || std::iter::from_fn(|| host.turned_away()).count();
    let mut count = 0;
    for _ in 0..20 {
        let came = connect(dial(address, Duration::ZERO), &code("one-two-three"), 1, &Cancel::new());
        assert!(matches!(came, Err(Error::Session(_))), "{:?}", came.err());
        count += named();
    }
    // The last of them is told of here when it knows.
    std::thread::sleep(Duration::from_millis(500));
    assert_eq!(count + named(), 8);
}

/// Threads of this process that look after who comes to a [`Host`].
fn attending() -> usize {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let names = tasks.map(|task| std::fs::read_to_string(task.path().join("comm")).unwrap_or_default());
    names.filter(|name| name.trim() == "host-guest").count()
}

/// Found where each of them kept a thread and a socket for ten seconds, and nothing said how many.
#[test]
fn strangers_that_join_nothing_are_no_more_than_are_let_in() {
    let (listener, address) = listen();
    let host = Host::start(listener, setup(1), &Cancel::new()).unwrap();
    let hello = [&b"J"[..], &[9; 256]].concat();
    let come = |_| {
        let mut stranger = TcpStream::connect(address).unwrap();
        let _ = stranger.write_all(&hello);
        stranger
    };
    let strangers: Vec<_> = (0..200).map(come).collect();
    let until = Instant::now() + Duration::from_secs(6);
    // Those that made room are gone at once, the others after a moment; what is left of the ten seconds would be too long.
    for mut stranger in strangers {
        let left = until
            .saturating_duration_since(Instant::now())
            .max(Duration::from_millis(1));
        stranger.set_read_timeout(Some(left)).unwrap();
        let read = stranger.read(&mut [0]);
        let waits = |error: &std::io::Error| matches!(error.kind(), std::io::ErrorKind::WouldBlock);
        assert!(!read.as_ref().is_err_and(waits), "{read:?}");
    }
    // Another test may have some.
    let threads = attending();
    assert!(threads < 100, "{threads}");
    // Who joins a session is still found.
    let there = connect(dial(address, LIMIT), &setup(2), 1, &Cancel::new()).unwrap();
    let here = host.next(LIMIT).unwrap().unwrap();
    let (there, here) = (there.data.open(&Cancel::new()), here.data.open(&Cancel::new()));
    assert!(matches!(there.next(), Some(Ok(_))));
    assert!(matches!(here.next(), Some(Ok(_))));
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

/// With one suite that others need not have.
fn only(setup: Setup, suite: Suite) -> Setup {
    Setup {
        offer: Offer::new(&[suite], true).unwrap(),
        ..setup
    }
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
