//! Somebody who is asked takes their time.

use std::net::{SocketAddr, TcpListener};
use std::sync::mpsc::{Receiver as Wait, Sender as Tell};
use std::thread::JoinHandle;
use std::time::Instant;

use sealway_aead::choose::Offer as Suites;
use sealway_aead::cpu::Cpu;
use socket2::SockRef;
use zeroize::Zeroizing;

use sealway_drop::wire::control::{self, Hello, Offer, Role};

use super::*;
use crate::entry::{Kind, Time};
use sealway_drop::link::{Identity, Place, Setup, connect};
use sealway_drop::wire::control::Entries;
use sealway_drop::wire::kind;
use sealway_drop::wire::talk::hear;

/// How long anything may take.
const LIMIT: Duration = Duration::from_secs(120);

/// Far less than what a list is.
const BUFFER: usize = 64 << 10;

/// A person who says when they are asked, and answers when told to.
struct Person {
    asked: Mutex<Tell<String>>,
    answer: Mutex<Wait<()>>,
}

impl Person {
    /// Panics when there is nobody to answer any more.
    fn ask(&self, what: String) {
        lock(&self.asked).send(what).unwrap();
        lock(&self.answer).recv_timeout(LIMIT).unwrap();
    }
}

impl Consent for Person {
    fn accept(&self, _: &Offered) -> Result<(), String> {
        self.ask("take it?".into());
        Ok(())
    }

    fn conflict(&self, path: &RelPath, _: &dest::Existing) -> Answer {
        self.ask(path.to_string());
        Answer::Rename
    }
}

fn setup(own: u8) -> Setup {
    Setup {
        identity: Identity::Keys {
            own: Zeroizing::new([own; 32]),
            peers: None,
        },
        offer: Suites::of(Cpu::get()),
        strong: false,
    }
}

/// A receiver with a person before it, and a sender that says what it likes.
struct Case {
    output: tempfile::TempDir,
    control: Connection,
    asked: Wait<String>,
    answer: Tell<()>,
    cancel: Cancel,
    ended: JoinHandle<Result<Summary, Error>>,
}

impl Case {
    fn start(taken: &[&str]) -> Self {
        let output = tempfile::tempdir().unwrap();
        for name in taken {
            std::fs::write(output.path().join(name), b"something else").unwrap();
        }
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        SockRef::from(&listener).set_recv_buffer_size(BUFFER).unwrap();
        let address: SocketAddr = listener.local_addr().unwrap();
        let ((told, asked), (answer, answered)) = (channel(), channel());
        let person = Person {
            asked: Mutex::new(told),
            answer: Mutex::new(answered),
        };
        let cancel = Cancel::new();
        let (of, output_of) = (cancel.clone(), output.path().to_owned());
        let ended = std::thread::spawn(move || {
            let connected = connect(Place::Listen(listener), &setup(1), 1, &of)?;
            let options = Options {
                output: output_of,
                dest: dest::Options {
                    conflict: dest::Conflict::Ask,
                    ..dest::Options::default()
                },
                hashing: Hashing::Off,
                direct: None,
            };
            let beat = Duration::from_millis(10);
            receive_beating(beat, &options, connected, &Progress::new(), &of, &person)
        });
        let place = Place::Dial {
            addresses: vec![address],
            patience: LIMIT,
        };
        let control = connect(place, &setup(2), 1, &Cancel::new()).unwrap().peered.connection;
        let stream = control.stream().unwrap();
        SockRef::from(&stream).set_send_buffer_size(BUFFER).unwrap();
        stream.set_write_timeout(Some(LIMIT)).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        Self {
            output,
            control,
            asked,
            answer,
            cancel,
            ended,
        }
    }

    fn say(&mut self, body: Body) {
        say(&mut self.control.writer, body).unwrap();
    }

    fn offer(&mut self, names: &[String]) {
        let files = names.len() as u64;
        let top = names.iter().take(LISTED_NAMES).map(|name| control::Top {
            name: name.as_bytes().to_vec(),
            folder: false,
        });
        let hello = Hello {
            version: control::VERSION,
            role: Role::Sender as i32,
            ..Hello::default()
        };
        self.say(Body::Hello(hello));
        self.say(Body::Offer(Offer {
            transfer: vec![3; 32],
            files,
            top_count: files,
            top: top.collect(),
            ..Offer::default()
        }));
    }

    fn list(&mut self, names: impl Iterator<Item = String>, last: bool) {
        let mut entries = Vec::new();
        for name in names {
            let entry = Entry {
                path: RelPath::new([name.as_bytes()], Rules::POSIX).unwrap(),
                kind: Kind::File { size: 0, sparse: false },
                mode: 0o644,
                mtime: Time::default(),
            };
            entry.encode(&mut entries);
        }
        self.say(Body::Entries(Entries { entries, last }));
    }

    fn wait_for(&self, question: &str) {
        assert_eq!(self.asked.recv_timeout(LIMIT).unwrap(), question);
    }

    /// Hears so many signs of life in a row.
    fn pulses(&mut self, count: usize) {
        let mut heard = 0;
        while heard < count {
            let record = self.control.reader.next().unwrap().unwrap();
            heard = if record.kind == kind::PULSE { heard + 1 } else { 0 };
        }
    }
}

#[test]
fn who_is_asked_is_not_taken_for_dead() {
    let mut case = Case::start(&["taken"]);
    let files = 15_000;
    let names: Vec<String> = (1..files).map(|number| format!("{number:0200}")).collect();
    case.offer(&[&["taken".into()], &names[..]].concat());
    case.wait_for("take it?");
    case.pulses(3);
    case.answer.send(()).unwrap();
    case.list(std::iter::once("taken".into()), false);
    case.wait_for("taken");
    // Far more than fits into the buffers of the system: it arrives because it is taken, though nobody has answered.
    for some in names.chunks(200) {
        case.list(some.iter().cloned(), some.last() == names.last());
    }
    case.pulses(3);
    case.answer.send(()).unwrap();
    let mut decided = 0;
    while decided < files {
        match hear(&mut case.control.reader).unwrap() {
            Some(Body::Decisions(decisions)) => {
                assert_eq!(u64::from(decisions.first), decided);
                decided += decisions.codes.len() as u64;
            }
            other => assert!(matches!(other, Some(Body::Accept(_))), "{other:?}"),
        }
    }
    case.cancel.cancel();
    assert!(matches!(case.ended.join().unwrap(), Err(Error::Cancelled)));
}

#[test]
fn nobody_is_asked_about_what_will_not_come() {
    let mut case = Case::start(&["one", "two"]);
    case.offer(&["one".into(), "two".into()]);
    case.wait_for("take it?");
    case.answer.send(()).unwrap();
    case.list(["one", "two"].into_iter().map(String::from), true);
    case.wait_for("one");
    drop(case.control);
    // The loss is noticed while the question stands.
    let until = Instant::now() + LIMIT;
    while !case.cancel.is_set() {
        assert!(Instant::now() < until, "the end of the connection was not noticed");
        std::thread::sleep(Duration::from_millis(5));
    }
    case.answer.send(()).unwrap();
    let ended = case.ended.join().unwrap();
    assert!(matches!(ended, Err(Error::Network { .. })), "{ended:?}");
    assert!(case.asked.try_recv().is_err(), "asked about the second one too");
    assert_eq!(
        std::fs::read(case.output.path().join("one")).unwrap(),
        b"something else"
    );
}

#[test]
fn a_question_that_fails_ends_all() {
    let mut case = Case::start(&["one"]);
    case.offer(&["one".into()]);
    case.wait_for("take it?");
    case.answer.send(()).unwrap();
    case.list(["one"].into_iter().map(String::from), true);
    case.wait_for("one");
    drop(case.answer);
    let until = Instant::now() + LIMIT;
    while !case.ended.is_finished() {
        assert!(Instant::now() < until, "it goes on");
        std::thread::sleep(Duration::from_millis(5));
    }
    let ended = case.ended.join().unwrap();
    assert!(matches!(ended, Err(Error::Protocol(_))), "{ended:?}");
}
