//! However and whenever an end of a transfer ends, the other one ends soon, and says why.

use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use prost::Message as _;
use sealway_drop::Error;
use sealway_drop::cancel::Cancel;
use sealway_drop::confirm::confirm;
use sealway_drop::link::{Connected, Connection, Place, connect};
use sealway_drop::names::RelPath;
use sealway_drop::wire::control::{Accept, Body, Cause, Decisions, Hello, Message, Role, Stop, VERSION};
use sealway_drop::wire::kind;
use sealway_drop_transfer::dest::{self, Answer, Existing};
use sealway_drop_transfer::hashing::Hashing;
use sealway_drop_transfer::progress::Progress;
use sealway_drop_transfer::receive::{self, Consent, Offered, receive};

use crate::common::Disk;
use crate::support::{self, Case, Outcome, content, listen, setup};

/// What counts as soon on a machine that has other things to do.
const SOON: Duration = Duration::from_secs(10);

/// Before that, a session may not have begun on a machine that has other things to do.
const EARLY: Duration = Duration::from_millis(250);

/// How long anything else may take.
const LIMIT: Duration = Duration::from_secs(60);

/// A folder with a file of so many bytes, and one to receive into.
fn folder(len: usize) -> (tempfile::TempDir, PathBuf, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let (file, output) = (dir.path().join("file"), dir.path().join("out"));
    fs::write(&file, content(len, 1)).unwrap();
    fs::create_dir(&output).unwrap();
    (dir, file, output)
}

/// Its outcome, which must come soon.
fn soon<T>(thread: JoinHandle<T>) -> T {
    let until = Instant::now() + SOON;
    while !thread.is_finished() {
        assert!(Instant::now() < until, "it goes on");
        std::thread::sleep(Duration::from_millis(5));
    }
    thread.join().unwrap()
}

fn sending(file: &Path, to: String, cancel: &Cancel) -> JoinHandle<Outcome> {
    let (file, cancel) = (file.to_owned(), cancel.clone());
    std::thread::spawn(move || support::sender(&Case::default(), &to, &[file], &cancel))
}

/// A stop at any moment, of which the other end says that it was one, if there was time for a session to begin.
fn stopped_after(delay: Duration, receiver_stops: bool) {
    let (_dir, file, output) = folder(64 << 20);
    let (listener, address) = listen();
    let cancels = [Cancel::new(), Cancel::new()];
    let receiver = support::receiver(&Case::default(), listener, &output, &cancels[1]);
    let sender = sending(&file, address.to_string(), &cancels[0]);
    std::thread::sleep(delay);
    let (victim, other) = match receiver_stops {
        true => (receiver, sender),
        false => (sender, receiver),
    };
    cancels[usize::from(receiver_stops)].cancel();
    let (ended, _) = soon(victim);
    if matches!(&ended, Err(Error::Cancelled)) && !other.is_finished() {
        // The end that listens waits on if nobody has come yet.
        let until = Instant::now() + if delay < EARLY { SOON / 8 } else { SOON };
        while !other.is_finished() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    if !other.is_finished() {
        assert!(delay < EARLY, "the other end goes on after {delay:?}");
        cancels[usize::from(!receiver_stops)].cancel();
        drop(soon(other));
        return;
    }
    let (other, _) = soon(other);
    match (&ended, &other) {
        // It was over before.
        (Ok(_), Ok(_)) => {}
        (Err(Error::Cancelled), Err(Error::OtherEnd(Cause::Stopped))) => {}
        // All was in place, and only the farewell was cut short.
        (Err(Error::Cancelled), Ok(_)) if !receiver_stops => {}
        // In the middle of the handshake.
        (Err(Error::Cancelled), Err(Error::Network { .. })) if delay < EARLY => {}
        _ => panic!("after {delay:?}: {ended:?} {other:?}"),
    }
}

#[test]
fn a_stop_at_any_moment_is_said_at_the_other_end() {
    for delay in [0, 1, 3, 8, 20, 50, 120, 200, 350] {
        for receiver_stops in [true, false] {
            stopped_after(Duration::from_millis(delay), receiver_stops);
        }
    }
}

/// A receiver that takes what is offered and then does what it likes.
struct Hand {
    control: Connection,
    data: Vec<Connection>,
}

impl Hand {
    fn say(&mut self, body: Body) {
        let message = Message { body: Some(body) }.encode_to_vec();
        self.control.writer.push(kind::CONTROL, 0, &message).unwrap();
        self.control.writer.flush().unwrap();
    }

    fn hear(&mut self) -> Body {
        loop {
            let record = self.control.reader.next().unwrap().unwrap();
            if record.kind == kind::CONTROL {
                return Message::decode(record.payload).unwrap().body.unwrap();
            }
        }
    }

    /// Up to where content comes, of which it reads nothing.
    fn receive(listener: TcpListener) -> Self {
        let Connected { peered, data } = connect(Place::Listen(listener), &setup(2), 2, &Cancel::new()).unwrap();
        let mut hand = Hand {
            control: peered.connection,
            data: Vec::new(),
        };
        hand.say(Body::Hello(Hello {
            version: VERSION,
            role: Role::Receiver as i32,
            ..Hello::default()
        }));
        assert!(matches!(hand.hear(), Body::Hello(_)));
        assert!(matches!(hand.hear(), Body::Offer(_)));
        hand.say(Body::Accept(Accept {
            hash: true,
            ..Accept::default()
        }));
        assert!(matches!(hand.hear(), Body::Entries(_)));
        hand.say(Body::Decisions(Decisions {
            first: 0,
            codes: vec![1],
        }));
        let connections = data.open_only(&[1, 2], &Cancel::new());
        hand.data.extend(connections.next().map(Result::unwrap));
        hand
    }
}

/// Found where a receiver was stopped by SIGTERM 0.3 s into a large file: data connections stood full, their other ends gone without a
/// word, and the sender, which listened no more once all was decided, stayed for minutes.
#[test]
fn a_sender_whose_data_is_not_taken_hears_that_the_receiver_ends() {
    for cause in [Cause::Stopped, Cause::NoRoom] {
        let (_dir, file, _) = folder(32 << 20);
        let (listener, address) = listen();
        let sender = sending(&file, address.to_string(), &Cancel::new());
        let mut hand = Hand::receive(listener);
        // Until it is blocked: the buffers of a connection are full.
        std::thread::sleep(Duration::from_millis(500));
        hand.say(Body::Stop(Stop {
            cause: cause as u32,
            ..Stop::default()
        }));
        let (sent, _) = soon(sender);
        assert!(matches!(sent, Err(Error::OtherEnd(said)) if said == cause), "{sent:?}");
        // Nothing of the session is left open.
        for data in &hand.data {
            let mut stream = data.stream().unwrap();
            stream.set_read_timeout(Some(LIMIT)).unwrap();
            while matches!(stream.read(&mut [0; 4096]), Ok(1..)) {}
        }
    }
}

#[test]
fn a_sender_whose_data_is_not_taken_notices_that_the_receiver_is_gone() {
    let (_dir, file, _) = folder(32 << 20);
    let (listener, address) = listen();
    let sender = sending(&file, address.to_string(), &Cancel::new());
    let Hand { control, data } = Hand::receive(listener);
    std::thread::sleep(Duration::from_millis(300));
    drop(control);
    let (sent, _) = soon(sender);
    assert!(matches!(sent, Err(Error::Network { .. })), "{sent:?}");
    drop(data);
}

#[test]
fn what_is_said_counts_more_than_connections_that_break() {
    let (_dir, file, _) = folder(32 << 20);
    let (listener, address) = listen();
    let sender = sending(&file, address.to_string(), &Cancel::new());
    let mut hand = Hand::receive(listener);
    hand.data.clear();
    std::thread::sleep(Duration::from_millis(100));
    hand.say(Body::Stop(Stop {
        reason: "enough".into(),
        ..Stop::default()
    }));
    let (sent, _) = soon(sender);
    assert!(
        matches!(&sent, Err(Error::Remote(reason)) if reason == "enough"),
        "{sent:?}"
    );
}

#[test]
fn a_receiver_without_room_says_so() {
    let (_dir, file, output) = folder(8 << 20);
    let Some(_disk) = Disk::over(&output, c"size=2m,mode=700") else {
        return;
    };
    let (listener, address) = listen();
    let receiver = support::receiver(&Case::default(), listener, &output, &Cancel::new());
    let sender = sending(&file, address.to_string(), &Cancel::new());
    let ((received, _), (sent, _)) = (soon(receiver), soon(sender));
    let why = received.as_ref().err().and_then(|error| error.part());
    assert!(matches!(why, Some(dest::Error::NoSpace { .. })), "{received:?}");
    assert!(matches!(sent, Err(Error::OtherEnd(Cause::NoRoom))), "{sent:?}");
}

/// A person who says when they are asked, and answers when told to or let go.
struct Person {
    asked: Mutex<Sender<()>>,
    answer: Mutex<Receiver<bool>>,
    cancel: Cancel,
}

impl Person {
    fn ask(&self) -> bool {
        self.asked.lock().unwrap().send(()).unwrap();
        let answer = self.answer.lock().unwrap();
        while !self.cancel.is_set() {
            if let Ok(yes) = answer.recv_timeout(Duration::from_millis(20)) {
                return yes;
            }
        }
        false
    }
}

impl Consent for Person {
    fn accept(&self, _: &Offered) -> Result<(), String> {
        if self.ask() { Ok(()) } else { Err("not wanted".into()) }
    }

    fn conflict(&self, _: &RelPath, _: &Existing) -> Answer {
        self.ask();
        Answer::Rename
    }
}

struct Asked {
    sender: JoinHandle<Outcome>,
    receiver: JoinHandle<Result<sealway_drop_transfer::send::Summary, Error>>,
    answer: Sender<bool>,
    cancels: [Cancel; 2],
    _dir: tempfile::TempDir,
}

/// A sender, and a receiver whose person is being asked, for the first time or about a name that is taken.
fn asked(conflict: bool) -> Asked {
    let (dir, file, output) = folder(1 << 20);
    if conflict {
        fs::write(output.join("file"), b"another").unwrap();
    }
    let (listener, address) = listen();
    let cancels = [Cancel::new(), Cancel::new()];
    let ((told, asks), (answer, answers)) = (channel(), channel());
    let person = Person {
        asked: Mutex::new(told),
        answer: Mutex::new(answers),
        cancel: cancels[1].clone(),
    };
    let cancel = cancels[1].clone();
    let receiver = std::thread::spawn(move || {
        let connected = connect(Place::Listen(listener), &setup(2), 1, &cancel)?;
        let dest = dest::Options {
            conflict: dest::Conflict::Ask,
            ..dest::Options::default()
        };
        let options = receive::Options {
            output,
            dest,
            hashing: Hashing::All,
            direct: None,
        };
        receive(&options, connected, &Progress::new(), &cancel, &person)
    });
    let sender = sending(&file, address.to_string(), &cancels[0]);
    asks.recv_timeout(LIMIT).unwrap();
    if conflict {
        answer.send(true).unwrap();
        asks.recv_timeout(LIMIT).unwrap();
    }
    Asked {
        sender,
        receiver,
        answer,
        cancels,
        _dir: dir,
    }
}

#[test]
fn a_question_ends_with_the_other_end_and_says_so_there() {
    for conflict in [false, true] {
        let case = asked(conflict);
        case.cancels[0].cancel();
        let received = soon(case.receiver);
        assert!(matches!(received, Err(Error::OtherEnd(Cause::Stopped))), "{received:?}");
        assert!(matches!(soon(case.sender).0, Err(Error::Cancelled)));

        let case = asked(conflict);
        case.cancels[1].cancel();
        let (sent, _) = soon(case.sender);
        assert!(matches!(sent, Err(Error::OtherEnd(Cause::Stopped))), "{sent:?}");
        assert!(matches!(soon(case.receiver), Err(Error::Cancelled)));
    }
    let case = asked(false);
    case.answer.send(false).unwrap();
    let (sent, _) = soon(case.sender);
    assert!(
        matches!(&sent, Err(Error::Declined(reason)) if reason == "not wanted"),
        "{sent:?}"
    );
    let received = soon(case.receiver);
    assert!(matches!(&received, Err(Error::SaidNo(_))), "{received:?}");
}

/// An end that is asked about its check words: the thread, how it is answered, how it is stopped.
type Compared = (JoinHandle<Result<Connected, Error>>, Sender<bool>, Cancel);

fn comparing(place: Place, own: u8) -> Compared {
    let (cancel, (answer, answers)) = (Cancel::new(), channel());
    let of = cancel.clone();
    let thread = std::thread::spawn(move || {
        let mut connected = connect(place, &setup(own), 1, &of)?;
        confirm(&mut connected, &of, |asking| {
            while !asking.is_set() {
                if let Ok(yes) = answers.recv_timeout(Duration::from_millis(20)) {
                    return Ok(yes);
                }
            }
            Err(Error::Cancelled)
        })?;
        Ok(connected)
    });
    (thread, answer, cancel)
}

fn both_comparing() -> [Compared; 2] {
    let (listener, address) = listen();
    let dial = Place::Dial {
        addresses: vec![address],
        patience: LIMIT,
    };
    [comparing(Place::Listen(listener), 1), comparing(dial, 2)]
}

#[test]
fn check_words_that_differ_end_both() {
    for no in [0, 1] {
        let mut ends = both_comparing();
        ends.swap(0, no);
        let [(ours, answer, _keep), (theirs, _unanswered, _kept)] = ends;
        answer.send(false).unwrap();
        let (ours, theirs) = (soon(ours).map(drop), soon(theirs).map(drop));
        assert!(matches!(&ours, Err(Error::SaidNo(_))), "{ours:?}");
        assert!(
            matches!(&theirs, Err(Error::Declined(reason)) if reason.contains("check words")),
            "{theirs:?}"
        );
    }
}

#[test]
fn who_has_said_yes_already_hears_of_a_no_or_a_stop() {
    for stop in [true, false] {
        let (_dir, file, _) = folder(10);
        let [(ours, yes, _), (theirs, no, cancel)] = both_comparing();
        yes.send(true).unwrap();
        let connected = soon(ours).unwrap();
        // It goes on, and waits for the other end's first words.
        let sender = std::thread::spawn(move || {
            let options = sealway_drop_transfer::send::Options {
                paths: vec![file.clone()],
                hashing: Hashing::All,
                direct: None,
                transfer_secret: zeroize::Zeroizing::new([7; 32]),
            };
            let scan = sealway_drop_transfer::source::scan(
                &[file],
                sealway_drop_transfer::source::ScanOptions::default(),
                &mut |_| {},
            )?;
            sealway_drop_transfer::send::send(&options, &scan, connected, &Progress::new(), &Cancel::new())
        });
        std::thread::sleep(Duration::from_millis(100));
        match stop {
            true => cancel.cancel(),
            false => no.send(false).unwrap(),
        }
        let (sent, theirs) = (soon(sender), soon(theirs).map(drop));
        match stop {
            true => assert!(
                matches!(
                    (&sent, &theirs),
                    (Err(Error::OtherEnd(Cause::Stopped)), Err(Error::Cancelled))
                ),
                "{sent:?} {theirs:?}"
            ),
            false => assert!(
                matches!((&sent, &theirs), (Err(Error::Declined(_)), Err(Error::SaidNo(_)))),
                "{sent:?} {theirs:?}"
            ),
        }
    }
}

#[test]
fn what_was_said_before_the_answer_is_not_lost() {
    let (_dir, file, output) = folder(300_000);
    let [(ours, yes, _), (theirs, late, _)] = both_comparing();
    yes.send(true).unwrap();
    let connected = soon(ours).unwrap();
    let path = file.clone();
    let sender = std::thread::spawn(move || {
        let options = sealway_drop_transfer::send::Options {
            paths: vec![path.clone()],
            hashing: Hashing::All,
            direct: None,
            transfer_secret: zeroize::Zeroizing::new([7; 32]),
        };
        let scan = sealway_drop_transfer::source::scan(
            &[path],
            sealway_drop_transfer::source::ScanOptions::default(),
            &mut |_| {},
        )?;
        sealway_drop_transfer::send::send(&options, &scan, connected, &Progress::new(), &Cancel::new())
    });
    // Its greeting is here before the person has answered.
    std::thread::sleep(Duration::from_millis(200));
    late.send(true).unwrap();
    let connected = soon(theirs).unwrap();
    let options = receive::Options {
        output: output.clone(),
        dest: dest::Options::default(),
        hashing: Hashing::All,
        direct: None,
    };
    let received = receive(&options, connected, &Progress::new(), &Cancel::new(), &support::Yes);
    assert!(received.is_ok() && soon(sender).is_ok(), "{received:?}");
    assert_eq!(fs::read(output.join("file")).unwrap(), fs::read(&file).unwrap());
}
