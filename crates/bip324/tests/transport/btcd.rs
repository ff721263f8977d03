//! The transport of btcd, a third implementation, over TCP in both roles.
//!
//! Its program is made by `scripts/install-peers --tests` from `tests/peers/v2transport`. Without it the tests say so and pass,
//! unless `SEALWAY_REQUIRE_PEERS=1` is set.
//!
//! What it does otherwise, as of 1.1.0: its search for the terminator ends after 4,094 bytes of garbage, where BIP324 allows
//! 4,095, so no more is sent to it; it accepts contents up to 2^24 - 1 bytes.

use std::io::{BufRead, BufReader, Read};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use sealway_bip324::blocking::{Accepted, Messages, accept, connect};
use sealway_bip324::{Magic, Options, Role};

use crate::common::{Numbers, key};

const PROGRAM: &str = "v2transport-go";

/// Only what hangs waits for so long.
const PATIENCE: Duration = Duration::from_secs(120);

/// Most bytes of garbage in which it finds a terminator.
const GARBAGE: usize = 4094;

fn is_there() -> bool {
    let version = Command::new(PROGRAM).arg("version").output();
    let there = version.is_ok_and(|ran| ran.stdout.starts_with(b"v2transport-go 1 "));
    if !there {
        let required = std::env::var("SEALWAY_REQUIRE_PEERS").is_ok_and(|value| value == "1");
        assert!(
            !required,
            "SEALWAY_REQUIRE_PEERS=1, but there is no {PROGRAM}: scripts/install-peers --tests"
        );
        println!("skipped: there is no {PROGRAM}");
    }
    there
}

/// Ends with the test, however that ends.
struct Theirs(Child);

impl Theirs {
    fn start(words: &[&str]) -> Theirs {
        let child = Command::new(PROGRAM)
            .args(words)
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit())
            .spawn();
        Theirs(child.unwrap())
    }

    /// Its end in good order, and the last line it printed.
    fn ended(mut self) -> String {
        let mut rest = String::new();
        self.0.stdout.take().unwrap().read_to_string(&mut rest).unwrap();
        assert!(self.0.wait().unwrap().success(), "{rest}");
        rest
    }
}

impl Drop for Theirs {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn socket(tcp: TcpStream) -> TcpStream {
    tcp.set_read_timeout(Some(PATIENCE)).unwrap();
    tcp.set_write_timeout(Some(PATIENCE)).unwrap();
    tcp
}

/// A connection with theirs, ours in this role.
fn establish(role: Role, options: Options, garbage: usize, decoys: &str) -> (Messages<TcpStream>, Theirs) {
    let garbage = garbage.to_string();
    let words = ["--garbage", &garbage, "--decoys", decoys];
    if role == Role::Initiator {
        let mut theirs = Theirs::start(&[&["responder"], &words[..]].concat());
        let mut stdout = BufReader::with_capacity(1, theirs.0.stdout.take().unwrap());
        let mut line = String::new();
        stdout.read_line(&mut line).unwrap();
        theirs.0.stdout = Some(stdout.into_inner());
        let tcp = TcpStream::connect(line.trim().strip_prefix("listening ").unwrap()).unwrap();
        let messages = connect(socket(tcp), Magic::REGTEST, key(role), options).unwrap();
        return (messages, theirs);
    }
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let to = listener.local_addr().unwrap().to_string();
    let theirs = Theirs::start(&[&["initiator", "--to", &to], &words[..]].concat());
    let tcp = listener.accept().unwrap().0;
    match accept(socket(tcp), Magic::REGTEST, key(role), options).unwrap() {
        Accepted::V2(messages) => (messages, theirs),
        Accepted::V1 { .. } => panic!("taken for v1"),
    }
}

/// Sends messages, with decoys between them, and gets each back.
fn exchange(messages: Messages<TcpStream>, contents: Vec<Vec<u8>>) -> u64 {
    let read = messages.get_ref().try_clone().unwrap();
    let (mut receiver, mut sender) = messages.split_with(|write| (read, write));
    let wanted = contents.clone();
    let sending = thread::spawn(move || {
        for (number, contents) in contents.iter().enumerate() {
            if number % 7 == 3 {
                sender.feed_decoy(&vec![0; number % 100]).unwrap();
            }
            sender.feed(contents).unwrap();
        }
        sender.flush().unwrap();
        sender.get_ref().shutdown(Shutdown::Write).unwrap();
    });
    for (number, wanted) in wanted.iter().enumerate() {
        let came = receiver.recv().unwrap();
        assert!(came == Some(&wanted[..]), "message {number}");
    }
    assert!(receiver.recv().unwrap().is_none());
    sending.join().unwrap();
    receiver.received().decoys
}

#[test]
fn handshakes_with_garbage_and_decoys_of_every_size() {
    if !is_there() {
        return;
    }
    let mut numbers = Numbers(8);
    for role in [Role::Initiator, Role::Responder] {
        for (ours, theirs) in [(0, 0), (1, 4095), (16, 15), (1000, 2000), (GARBAGE, 1), (GARBAGE, 4095)] {
            for decoys in ["", "0", "1,300,0,70000"] {
                let mut options = Options::default();
                options.garbage = numbers.bytes(ours);
                options.decoys = vec![vec![0; 900]; decoys.len() % 4];
                options.version = vec![1; decoys.len()];
                let (messages, program) = establish(role, options, theirs, decoys);
                let count = decoys.split(',').filter(|text| !text.is_empty()).count() as u64;
                assert_eq!(messages.received().decoys, count, "{role:?} {ours} {theirs} {decoys}");
                exchange(messages, vec![b"\x12a ping..".to_vec(), Vec::new()]);
                assert_eq!(program.ended(), "sent back 2\n", "{role:?} {ours} {theirs} {decoys}");
            }
        }
    }
}

#[test]
fn a_thousand_packets_across_changes_of_keys() {
    if !is_there() {
        return;
    }
    for role in [Role::Initiator, Role::Responder] {
        let mut numbers = Numbers(role as u64 + 1);
        let mut options = Options::default();
        options.garbage = numbers.bytes(500);
        let (messages, program) = establish(role, options, 500, "");
        let contents = (0..1000)
            .map(|_| {
                let len = numbers.below(600);
                numbers.bytes(len)
            })
            .collect();
        // One before every hundredth.
        assert_eq!(exchange(messages, contents), 10, "{role:?}");
        assert_eq!(program.ended(), "sent back 1000\n", "{role:?}");
    }
}

#[test]
fn messages_of_four_megabytes() {
    if !is_there() {
        return;
    }
    for role in [Role::Initiator, Role::Responder] {
        let (messages, program) = establish(role, Options::default(), 0, "");
        let long = Numbers(5).bytes(13 + 4_000_000);
        exchange(messages, vec![b"before".to_vec(), long, b"after".to_vec()]);
        assert_eq!(program.ended(), "sent back 3\n", "{role:?}");
    }
}
