//! Several addresses, some of which lead nowhere.

use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;

use rustix::event::{PollFd, PollFlags};
use sealway_net::blocking::begin;
use socket2::{Domain, Socket, Type};
use zeroize::Zeroizing;

use super::*;
use crate::dial::wait;
use crate::link::{Connected, Place, connect};
use crate::testing::{code, listen};

/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(60);

/// The usual time between two addresses; those that refuse are not tried again.
fn soon() -> (Duration, Instant) {
    (STAGGER, Instant::now())
}

fn keys(own: u8, peers: Option<Vec<[u8; 32]>>) -> Setup {
    let own = Zeroizing::new([own; 32]);
    Setup {
        identity: Identity::Keys { own, peers },
        ..code("")
    }
}

/// Both ways to know each other: what this end uses, and what the other one does.
fn ways() -> [(Setup, Setup); 2] {
    [(code("same"), code("same")), (keys(1, None), keys(2, None))]
}

/// An address, and a port that nobody takes connections from: they stand, and nothing ever answers.
fn silent() -> (TcpListener, SocketAddr) {
    listen()
}

fn refusing() -> SocketAddr {
    silent().1
}

/// An end that listens, what came of it, and how it is told to stop.
struct Listening {
    address: SocketAddr,
    cancel: Cancel,
    thread: JoinHandle<Result<Connected, Error>>,
}

fn listening(setup: &Setup) -> Listening {
    let (listener, address) = silent();
    let cancel = Cancel::new();
    let (of, setup) = (cancel.clone(), setup.clone());
    let thread = std::thread::spawn(move || connect(Place::Listen(listener), &setup, 1, &of));
    Listening {
        address,
        cancel,
        thread,
    }
}

/// Something said at one end arrives at the other.
fn assert_joined(here: Peered, there: Connected) {
    let (mut here, mut there) = (here.connection, there.peered.connection);
    there.writer.push(1, 0, b"hello").unwrap();
    there.writer.flush().unwrap();
    assert_eq!(here.reader.next().unwrap().unwrap().payload, b"hello");
}

#[test]
fn what_accepts_and_never_answers_holds_nobody_up() {
    for (ours, theirs) in ways() {
        let (_silent, nowhere) = silent();
        let there = listening(&theirs);
        let (peered, address) = race(&[nowhere, there.address], soon(), &ours, &Cancel::new()).unwrap();
        assert_eq!(address, there.address);
        assert_joined(peered, there.thread.join().unwrap().unwrap());
    }
}

/// An address that does not even take connections, and what keeps it so.
fn full() -> (SocketAddr, (Socket, Vec<Socket>)) {
    let full = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    full.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    full.listen(0).unwrap();
    let address = full.local_addr().unwrap().as_socket().unwrap();
    let fillers = (0..4).map(|_| begin(address).unwrap()).collect();
    (address, (full, fillers))
}

/// The next connection, for which nobody waits longer than `LIMIT`.
fn accept(listener: &TcpListener) -> TcpStream {
    let mut fds = [PollFd::new(listener, PollFlags::IN)];
    wait(&mut fds, LIMIT).unwrap();
    assert!(!fds[0].revents().is_empty(), "nobody came");
    listener.accept().unwrap().0
}

#[test]
fn a_full_queue_and_a_refusal_lead_on() {
    let (dead, _filled) = full();
    for (ours, theirs) in ways() {
        let there = listening(&theirs);
        let addresses = [dead, refusing(), there.address];
        let (peered, address) = race(&addresses, soon(), &ours, &Cancel::new()).unwrap();
        assert_eq!(address, there.address);
        assert_joined(peered, there.thread.join().unwrap().unwrap());
    }
}

#[test]
fn one_wrong_answer_to_a_code_is_the_last() {
    let wrong = listening(&code("other"));
    let right = listening(&code("same"));
    // Long enough for the first to answer before it is the turn of the other.
    let stagger = (LIMIT, Instant::now());
    let lost = race(&[wrong.address, right.address], stagger, &code("same"), &Cancel::new())
        .map(drop)
        .unwrap_err();
    assert!(matches!(lost.error, Error::CodeSpent), "{lost:?}");
    assert!(!lost.may_come());
    assert!(matches!(wrong.thread.join().unwrap(), Err(Error::CodeSpent)));
    // The right one was not even asked, or its code would be spent.
    right.cancel.cancel();
    assert!(matches!(right.thread.join().unwrap(), Err(Error::Cancelled)));
}

#[test]
fn of_answers_that_come_together_one_is_looked_at() {
    // Whichever comes first decides; the other must not make up for it.
    for _ in 0..8 {
        let wrong = listening(&code("other"));
        let right = listening(&code("same"));
        let result = race(
            &[wrong.address, right.address],
            (Duration::ZERO, Instant::now()),
            &code("same"),
            &Cancel::new(),
        );
        wrong.cancel.cancel();
        assert!(wrong.thread.join().unwrap().is_err());
        match result {
            Ok((peered, _)) => assert_joined(peered, right.thread.join().unwrap().unwrap()),
            Err(lost) => {
                assert!(matches!(lost.error, Error::CodeSpent), "{lost:?}");
                right.cancel.cancel();
                let there = right.thread.join().unwrap();
                assert!(there.is_err(), "a session that this end does not have");
            }
        }
    }
}

#[test]
fn a_key_that_is_not_the_one_leads_on() {
    let stranger = listening(&keys(3, None));
    let friend = listening(&keys(2, None));
    let (session, _) = race(&[friend.address], soon(), &keys(1, None), &Cancel::new()).unwrap();
    drop(friend.thread.join());
    let friend = listening(&keys(2, None));
    let ours = keys(1, session.peer_key.map(|key| vec![key]));
    let (peered, address) = race(&[stranger.address, friend.address], soon(), &ours, &Cancel::new()).unwrap();
    assert_eq!(address, friend.address);
    assert_joined(peered, friend.thread.join().unwrap().unwrap());
    stranger.cancel.cancel();
    assert!(stranger.thread.join().unwrap().is_err());
}

#[test]
fn two_ways_to_one_end_make_one_session() {
    for _ in 0..16 {
        for (ours, theirs) in ways() {
            let there = listening(&theirs);
            let addresses = [there.address; 4];
            let (peered, _) = race(&addresses, (Duration::ZERO, Instant::now()), &ours, &Cancel::new()).unwrap();
            assert_joined(peered, there.thread.join().unwrap().unwrap());
        }
    }
}

#[test]
fn who_refuses_is_asked_again_while_another_is_silent() {
    for (ours, theirs) in ways() {
        // Its port is taken, and nobody listens there yet.
        let late = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        late.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        let address = late.local_addr().unwrap().as_socket().unwrap();
        let (silent, nowhere) = silent();
        let racing = std::thread::spawn(move || {
            // The second is tried only because the first refused.
            let times = (LIMIT, Instant::now() + LIMIT);
            race(&[address, nowhere], times, &ours, &Cancel::new())
        });
        let _waits = accept(&silent);
        late.listen(8).unwrap();
        let there = connect(Place::Listen(late.into()), &theirs, 1, &Cancel::new()).unwrap();
        let (peered, reached) = racing.join().unwrap().unwrap();
        assert_eq!(reached, address);
        assert_joined(peered, there);
    }
}

#[test]
fn all_are_told_to_stop() {
    let (silent, nowhere) = silent();
    let (dead, _filled) = full();
    let cancel = Cancel::new();
    let (stop, (told, ended)) = (cancel.clone(), channel());
    std::thread::spawn(move || {
        let times = (Duration::ZERO, Instant::now() + LIMIT);
        let result = race(&[dead, refusing(), nowhere], times, &keys(1, None), &cancel);
        told.send(result.map(drop)).unwrap();
    });
    // It waits for an answer, and others for a connection.
    let waits = accept(&silent);
    assert!(ended.try_recv().is_err());
    stop.cancel();
    let result = ended
        .recv_timeout(PATIENCE / 2)
        .expect("an end before anything gives up by itself");
    let error = result.map_err(|lost| lost.error);
    assert!(matches!(error, Err(Error::Cancelled)), "{error:?}");
    drop(waits);
}

#[test]
fn what_says_most_is_said() {
    let mut lost = Lost::nothing();
    let network = |kind: ErrorKind| Error::network("connecting")(kind.into());
    lost.add(network(ErrorKind::NetworkUnreachable));
    assert!(!lost.may_come());
    lost.add(network(ErrorKind::ConnectionRefused));
    lost.add(network(ErrorKind::NetworkUnreachable));
    assert!(
        lost.may_come() && lost.error.to_string().contains("refused"),
        "{lost:?}"
    );
    lost.add(network(ErrorKind::TimedOut));
    lost.add(network(ErrorKind::ConnectionRefused));
    assert!(
        lost.may_come() && lost.error.to_string().contains("no answer"),
        "{lost:?}"
    );
    lost.add(Error::Session(sealway_session::Error::Unauthentic));
    assert!(!lost.may_come());
}

#[test]
fn nothing_to_try_is_an_error() {
    let until = Instant::now();
    for addresses in [&[][..], &[refusing()]] {
        let reached = reach(addresses, until, &keys(1, None), &Cancel::new());
        assert!(matches!(reached.map(drop), Err(Error::Network { .. })));
    }
}
