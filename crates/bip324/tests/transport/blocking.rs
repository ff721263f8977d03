//! The layer over `std::io`: handshakes and messages over streams of every temper.

use std::collections::VecDeque;
use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use sealway_bip324::blocking::{Accepted, Messages, TransportError, accept, connect, draw_garbage, draw_key};
use sealway_bip324::decoy::{DecoyPolicy, Decoys};
use sealway_bip324::{Connection, Error, Event, Magic, Options, Role};

use crate::common::{Numbers, key};

fn sockets() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let here = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let there = listener.accept().unwrap().0;
    (here, there)
}

fn v2<IO>(accepted: Accepted<IO>) -> Messages<IO> {
    match accepted {
        Accepted::V2(messages) => messages,
        Accepted::V1 { .. } => panic!("taken for v1"),
    }
}

/// Both ends over a pair of streams.
fn pair<A, B>(a: A, b: B, options: Options) -> (Messages<A>, Messages<B>)
where
    A: Read + Write,
    B: Read + Write + Send + 'static,
{
    let theirs = options.clone();
    let there = thread::spawn(move || accept(b, Magic::REGTEST, key(Role::Responder), theirs).unwrap());
    let here = connect(a, Magic::REGTEST, key(Role::Initiator), options).unwrap();
    (here, v2(there.join().unwrap()))
}

/// Reads and writes few bytes at a time, is interrupted, and says now and then that its time is up.
struct Moody<IO> {
    io: IO,
    numbers: Numbers,
    /// Whether its time may be up.
    impatient: Arc<Mutex<bool>>,
}

impl<IO> Moody<IO> {
    fn new(io: IO, seed: u64) -> Self {
        Moody {
            io,
            numbers: Numbers(seed),
            impatient: Arc::default(),
        }
    }

    /// How many bytes of so many are taken this time.
    fn mood(&mut self, of: usize) -> io::Result<usize> {
        match self.numbers.below(8) {
            0 => Err(io::ErrorKind::Interrupted.into()),
            1 if *self.impatient.lock().unwrap() => Err(io::ErrorKind::WouldBlock.into()),
            2 if *self.impatient.lock().unwrap() => Err(io::ErrorKind::TimedOut.into()),
            _ => Ok(of.min(1 + self.numbers.below(3000))),
        }
    }
}

impl<IO: Read> Read for Moody<IO> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let n = self.mood(out.len())?;
        self.io.read(&mut out[..n])
    }
}

impl<IO: Write> Write for Moody<IO> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let n = self.mood(bytes.len())?;
        self.io.write(&bytes[..n])
    }

    fn flush(&mut self) -> io::Result<()> {
        self.io.flush()
    }
}

fn contents(number: usize) -> Vec<u8> {
    let len = match number % 50 {
        0 => 0,
        49 => 200_000,
        n => n * n,
    };
    Numbers(number as u64).bytes(len)
}

/// Makes a call again for as long as the stream says that its time was up.
fn again<T>(mut call: impl FnMut() -> Result<T, TransportError>) -> T {
    loop {
        match call() {
            Ok(done) => return done,
            Err(TransportError::Io(error))
                if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut) => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[test]
fn decoys_by_a_policy_change_no_message() {
    let (a, b) = sockets();
    let (mut here, mut there) = pair(a, b, Options::default());
    let policy = DecoyPolicy::new(100, 0, 300).unwrap();
    here.set_decoys(Some(Decoys::new(policy, &[5; 32])));
    let sending = thread::spawn(move || {
        let (_, mut sender) = here.split_with(|tcp| (tcp.try_clone().unwrap(), tcp));
        (0..100).for_each(|number| sender.send(&contents(number)).unwrap());
        sender.sent()
    });
    for number in 0..100 {
        assert!(there.recv().unwrap() == Some(&contents(number)[..]), "message {number}");
    }
    assert_eq!(there.recv().unwrap(), None);
    let sent = sending.join().unwrap();
    assert_eq!((sent.messages, sent.decoys), (100, 100));
    assert_eq!(there.received().decoys, 100);
}

#[test]
fn messages_both_ways_over_streams_of_every_mood() {
    for seed in 0..4 {
        let (a, b) = sockets();
        let (a, b) = (Moody::new(a, seed), Moody::new(b, seed + 100));
        let moods = [Arc::clone(&a.impatient), Arc::clone(&b.impatient)];
        let mut options = Options::default();
        options.garbage = vec![9; 1000 * seed as usize];
        options.decoys = vec![vec![0; 30]; 3];
        let (here, mut there) = pair(a, b, options);
        assert_eq!(here.session_id(), there.session_id());
        assert_eq!((here.role(), there.role()), (Role::Initiator, Role::Responder));
        assert_eq!((here.received().decoys, there.received().decoys), (3, 3));
        for mood in &moods {
            *mood.lock().unwrap() = true;
        }
        const COUNT: usize = 120;
        let echo = thread::spawn(move || {
            while let Some(contents) = again(|| Ok(there.recv()?.map(<[u8]>::to_vec))) {
                again(|| there.feed(&contents));
            }
            again(|| there.flush());
            there.get_ref().io.shutdown(Shutdown::Write).unwrap();
            (there.received(), there.sent())
        });
        let clone = here.get_ref().io.try_clone().unwrap();
        let (mut receiver, mut sender) = here.split_with(|moody| (Moody::new(clone, seed + 200), moody));
        let sending = thread::spawn(move || {
            for number in 0..COUNT {
                if number % 10 == 0 {
                    again(|| sender.feed_decoy(&[0; 50]));
                }
                let contents = contents(number);
                let (head, rest) = contents.split_at(contents.len() / 2);
                again(|| sender.feed_parts(&[head, rest]));
            }
            again(|| sender.flush());
            assert_eq!((sender.waiting(), sender.sent().messages), (0, COUNT as u64));
            sender.get_ref().io.shutdown(Shutdown::Write).unwrap();
        });
        for number in 0..COUNT {
            let came = again(|| Ok(receiver.recv()?.map(<[u8]>::to_vec)));
            assert!(came.as_deref() == Some(&contents(number)[..]), "message {number}");
        }
        assert!(again(|| Ok(receiver.recv()?.is_none())));
        assert!(!receiver.has_message().unwrap() && receiver.recv().unwrap().is_none());
        sending.join().unwrap();
        let (received, sent) = echo.join().unwrap();
        assert_eq!(
            (received.messages, received.decoys),
            (COUNT as u64, 3 + COUNT as u64 / 10)
        );
        assert_eq!(
            (sent.messages, receiver.received().messages),
            (COUNT as u64, COUNT as u64)
        );
        assert_eq!(sent.bytes, receiver.received().bytes);
    }
}

#[test]
fn v1_is_known_and_nothing_of_it_is_lost() {
    let mut wire = Magic::REGTEST.v1_prefix().to_vec();
    wire.extend(b"the rest of a version message");
    let (mut a, b) = sockets();
    a.write_all(&wire).unwrap();
    a.shutdown(Shutdown::Write).unwrap();
    match accept(b, Magic::REGTEST, key(Role::Responder), Options::default()).unwrap() {
        Accepted::V1 { mut io, received } => {
            let mut all = received;
            io.read_to_end(&mut all).unwrap();
            assert_eq!(all, wire);
        }
        Accepted::V2(_) => panic!("taken for v2"),
    }
}

#[test]
fn handshakes_that_fail_say_why() {
    let refused = |role, wire: &[u8]| {
        let (mut a, b) = sockets();
        a.write_all(wire).unwrap();
        a.shutdown(Shutdown::Write).unwrap();
        let keeps = thread::spawn(move || a.read_to_end(&mut Vec::new()));
        let error = match role {
            Role::Initiator => connect(b, Magic::REGTEST, key(role), Options::default()).unwrap_err(),
            Role::Responder => accept(b, Magic::REGTEST, key(role), Options::default()).unwrap_err(),
        };
        let _ = keeps.join();
        error
    };
    let silent = refused(Role::Initiator, b"");
    assert!(matches!(silent.error, TransportError::CutOff), "{silent:?}");
    assert!(silent.peer_may_speak_v1_only && silent.bytes_received == 0);
    let short = refused(Role::Initiator, &[7; 100]);
    assert!(matches!(short.error, TransportError::CutOff), "{short:?}");
    assert!(!short.peer_may_speak_v1_only && short.before_terminator && short.bytes_received == 100);
    for role in [Role::Initiator, Role::Responder] {
        let endless = refused(role, &[7; 64 + 4111]);
        assert!(
            matches!(endless.error, TransportError::Protocol(Error::NoTerminator)),
            "{endless:?}"
        );
        assert!(endless.before_terminator && endless.bytes_received == 64 + 4111);
    }
    let other = refused(Role::Responder, &[&Magic::MAINNET.v1_prefix()[..], &[0; 48]].concat());
    assert!(
        matches!(other.error, TransportError::Protocol(Error::OtherNetwork { .. })),
        "{other:?}"
    );
    let mut options = Options::default();
    options.garbage = vec![0; 4096];
    let (a, _b) = sockets();
    let error = connect(a, Magic::REGTEST, key(Role::Initiator), options).unwrap_err();
    assert!(
        matches!(error.error, TransportError::Protocol(Error::GarbageTooLong { .. })),
        "{error:?}"
    );
}

/// What is read from is what was prepared, what is written goes nowhere.
struct Prepared(VecDeque<u8>);

impl Read for Prepared {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        self.0.read(out)
    }
}

impl Write for Prepared {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// All bytes of a responder's side of a connection with [`key`]'s initiator: its handshake, then these messages.
fn wire_of(messages: &[&[u8]]) -> Vec<u8> {
    let mut a = Connection::initiator(Magic::REGTEST, key(Role::Initiator), Options::default()).unwrap();
    let mut b = Connection::responder(Magic::REGTEST, key(Role::Responder), Options::default()).unwrap();
    let mut wire = Vec::new();
    for _ in 0..2 {
        let n = b.handle_input(a.output()).unwrap();
        a.advance_output(n);
        wire.extend_from_slice(b.output());
        let n = a.handle_input(b.output()).unwrap();
        b.advance_output(n);
    }
    assert!(matches!(a.poll_event(), Some(Event::Established { .. })));
    for message in messages {
        b.send(message).unwrap();
    }
    wire.extend_from_slice(b.output());
    wire
}

#[test]
fn good_messages_are_given_before_what_is_wrong() {
    let wire = wire_of(&[b"first", b"second", b"third"]);
    let open = |wire: Vec<u8>| {
        connect(
            Prepared(wire.into()),
            Magic::REGTEST,
            key(Role::Initiator),
            Options::default(),
        )
    };
    // Cut at every place of the last message: in between is an end, within is none.
    for cut in 0..=25 {
        let mut messages = open(wire[..wire.len() - cut].to_vec()).unwrap();
        assert_eq!(messages.recv().unwrap().unwrap(), b"first");
        assert_eq!(messages.recv().unwrap().unwrap(), b"second");
        match (cut, messages.recv()) {
            (0, Ok(Some(contents))) => assert_eq!(contents, b"third"),
            (25, Ok(None)) => {}
            (1..25, Err(TransportError::CutOff)) => {
                let after = messages.recv();
                assert!(
                    matches!(after, Err(TransportError::Protocol(Error::Closed))),
                    "{after:?}"
                );
            }
            (_, other) => panic!("{cut}: {other:?}"),
        }
    }
    let mut wrong = wire;
    let at = wrong.len() - 30;
    wrong[at] ^= 1;
    let mut messages = open(wrong).unwrap();
    assert_eq!(messages.recv().unwrap().unwrap(), b"first");
    let second = messages.recv();
    assert!(
        matches!(second, Err(TransportError::Protocol(Error::Unauthentic))),
        "{second:?}"
    );
}

#[test]
fn keys_and_garbage_come_of_what_is_drawn() {
    let mut numbers = Numbers(3);
    let mut random = |out: &mut [u8]| {
        out.copy_from_slice(&numbers.bytes(out.len()));
        Ok(())
    };
    draw_key(&mut random).unwrap();
    let lengths: Vec<usize> = (0..50).map(|_| draw_garbage(&mut random).unwrap().len()).collect();
    assert!(lengths.iter().all(|len| *len <= 4095) && lengths.iter().any(|len| *len > 2000));
    assert!(
        draw_key(&mut |out| {
            out.fill(0);
            Ok(())
        })
        .is_err()
    );
}
