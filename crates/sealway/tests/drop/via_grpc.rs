//! One file through the gRPC service, between two ends of a session.

use std::io::ErrorKind;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use sealway_drop::Error;
use sealway_drop::cancel::Cancel;
use sealway_drop::link::{Connected, Place, connect};
use sealway_drop::names::RelPath;
use sealway_drop::testing::{content, listen, setup};
use sealway_drop::wire::control::{Body, Cause, Hello, Role, VERSION};
use sealway_drop::wire::kind;
use sealway_drop::wire::talk::payload;
use sealway_drop_mount::grpc::files::{self, Channel};
use sealway_drop_mount::grpc::{ServeOptions, serve};
use sealway_drop_mount::tree::{MemoryTree, TreePath};
use sealway_drop_transfer::dest::{Answer, Destination, Existing, Options};
use sealway_drop_transfer::progress::Progress;
use sealway_drop_transfer::receive::{Consent, Offered, pull};
use sealway_drop_transfer::send::Summary;

/// How long an end that is alone now may take, on a machine that has other things to do.
const SOON: Duration = Duration::from_secs(15);

/// Takes everything.
struct Yes;

impl Consent for Yes {
    fn accept(&self, _: &Offered) -> Result<(), String> {
        Ok(())
    }

    fn conflict(&self, _: &RelPath, _: &Existing) -> Answer {
        Answer::Rename
    }
}

/// A session of an end that listens, and one of an end that dials.
fn listening(listener: TcpListener, cancel: &Cancel) -> Result<Channel, Error> {
    let connected = connect(Place::Listen(listener), &setup(1), 1, cancel)?;
    Ok(Channel::Sealed(Box::new(connected)))
}

fn dialled(address: SocketAddr, cancel: &Cancel) -> Result<Connected, Error> {
    let place = Place::Dial {
        addresses: vec![address],
        patience: Duration::from_secs(60),
    };
    connect(place, &setup(2), 1, cancel)
}

/// Receives into a folder.
fn receive(
    output: &Path,
    channel: Channel,
    progress: &Progress,
    cancel: &Cancel,
    consent: &dyn Consent,
) -> Result<Summary, Error> {
    let destination = Destination::open(output, Options::default())?;
    files::receive(channel, cancel, |remote| pull(&destination, remote, progress, consent))
}

/// An end that listens and receives, and the session with it of one that dialled.
fn receiving(output: &Path, cancel: &Cancel) -> (Connected, JoinHandle<Result<Summary, Error>>) {
    let (listener, address) = listen();
    let (output, cancel) = (output.to_owned(), cancel.clone());
    let thread = std::thread::spawn(move || {
        let way = listening(listener, &cancel)?;
        receive(&output, way, &Progress::new(), &cancel, &Yes)
    });
    (dialled(address, &Cancel::new()).unwrap(), thread)
}

#[test]
fn a_file_arrives() {
    let (tree, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = tree.path().join("file");
    std::fs::write(&file, content(1 << 20, 1)).unwrap();
    let (connected, receiver) = receiving(output.path(), &Cancel::new());
    files::send(file, Channel::Sealed(Box::new(connected)), &Cancel::new()).unwrap();
    assert_eq!(receiver.join().unwrap().unwrap().placed, 1);
    assert_eq!(std::fs::read(output.path().join("file")).unwrap(), content(1 << 20, 1));
}

/// Somebody who is asked, and an end that changes what it serves while they think.
struct Thinking<F: Fn() + Sync> {
    meanwhile: F,
    shown: Mutex<Vec<String>>,
}

impl<F: Fn() + Sync> Consent for Thinking<F> {
    fn accept(&self, offer: &Offered) -> Result<(), String> {
        *self.shown.lock().unwrap() = offer.shown(100, 80);
        (self.meanwhile)();
        Ok(())
    }

    fn conflict(&self, _: &RelPath, _: &Existing) -> Answer {
        Answer::Skip
    }
}

/// Receives from an end that serves `tree`, whatever is in it.
fn pulled(tree: &MemoryTree, meanwhile: impl Fn() + Sync) -> (Result<Summary, Error>, Vec<String>, Vec<String>) {
    let output = tempfile::tempdir().unwrap();
    let (listener, address) = listen();
    let served = Arc::new(tree.clone());
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let _ = runtime.block_on(async {
            let stream = listener.accept().unwrap().0;
            stream.set_nonblocking(true).unwrap();
            let stream = tokio::net::TcpStream::from_std(stream).unwrap();
            serve(stream, served, ServeOptions::default()).await
        });
    });
    let way = Channel::Plain(TcpStream::connect(address).unwrap());
    let consent = Thinking {
        meanwhile,
        shown: Mutex::default(),
    };
    let (progress, cancel) = (Progress::new(), Cancel::new());
    let result = receive(output.path(), way, &progress, &cancel, &consent);
    let there = std::fs::read_dir(output.path()).unwrap();
    let there = there.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let there = there.filter(|name| !name.starts_with(".sealway-partial"));
    (result, consent.shown.into_inner().unwrap(), there.collect())
}

#[test]
fn only_what_was_shown_is_pulled() {
    let path = |name: &str| TreePath::root().join(name.as_bytes()).unwrap();
    let tree = MemoryTree::new();
    tree.put_file(&path("shown"), content(10, 1));
    let (result, shown, there) = pulled(&tree, || tree.put_file(&path("later"), content(10, 2)));
    assert_eq!(result.unwrap().placed, 1);
    assert_eq!((shown, there), (vec!["shown".into()], vec!["shown".to_owned()]));
    // Nor more of it than was shown.
    let tree = MemoryTree::new();
    tree.put_file(&path("grows"), content(10, 1));
    let (result, shown, there) = pulled(&tree, || tree.put_file(&path("grows"), content(1 << 20, 2)));
    assert!(result.is_err(), "{result:?}");
    assert_eq!((shown, there.len()), (vec!["grows".to_owned()], 0));
    // More than can be shown is not asked about.
    let tree = MemoryTree::new();
    for number in 0..101 {
        tree.put_file(&path(&number.to_string()), content(1, 1));
    }
    let (result, shown, there) = pulled(&tree, || ());
    assert!(matches!(result, Err(Error::Protocol(_))), "{result:?}");
    assert_eq!((shown.len(), there.len()), (0, 0));
}

#[test]
fn who_is_waited_for_is_so_until_it_goes_away() {
    let output = tempfile::tempdir().unwrap();
    // By the end of the connection, not by a clock: somebody may be asked before the other end goes on.
    let (connected, receiver) = receiving(output.path(), &Cancel::new());
    drop(connected);
    let ended = receiver.join().unwrap();
    let Err(Error::Network { source, .. }) = ended else {
        panic!("{ended:?}");
    };
    assert_ne!(source.kind(), ErrorKind::TimedOut, "{source}");

    let cancel = Cancel::new();
    let (_connected, receiver) = receiving(output.path(), &cancel);
    cancel.cancel();
    assert!(matches!(receiver.join().unwrap(), Err(Error::Cancelled)));
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

/// Somebody who says that they are asked, and answers at once or when they are let go.
struct Asked {
    told: Mutex<Sender<()>>,
    answers: bool,
    cancel: Cancel,
}

impl Consent for Asked {
    fn accept(&self, _: &Offered) -> Result<(), String> {
        self.told.lock().unwrap().send(()).unwrap();
        while !self.answers && !self.cancel.is_set() {
            std::thread::sleep(Duration::from_millis(5));
        }
        self.answers.then_some(()).ok_or_else(|| "let go".into())
    }

    fn conflict(&self, _: &RelPath, _: &Existing) -> Answer {
        Answer::Skip
    }
}

/// One end is stopped, while the other one's person is asked or in the middle of a large file. What the ends of it say, the one that
/// was stopped first.
fn stopped(sender_stops: bool, while_asked: bool) -> (Error, Error) {
    let (tree, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = tree.path().join("file");
    // Nothing of it is on a disk, and more than comes within a moment.
    std::fs::File::create(&file).unwrap().set_len(2 << 30).unwrap();
    let (listener, address) = listen();
    let cancels = [Cancel::new(), Cancel::new()];
    let (told, asked) = channel();
    let consent = Asked {
        told: Mutex::new(told),
        answers: !while_asked,
        cancel: cancels[1].clone(),
    };
    let progress = Arc::new(Progress::new());
    let (seen, cancel, folder) = (progress.clone(), cancels[1].clone(), output.path().to_owned());
    let receiver = std::thread::spawn(move || {
        let way = listening(listener, &cancel)?;
        receive(&folder, way, &seen, &cancel, &consent)
    });
    let cancel = cancels[0].clone();
    let sender = std::thread::spawn(move || {
        let way = Channel::Sealed(Box::new(dialled(address, &cancel)?));
        files::send(file, way, &cancel)
    });
    asked.recv_timeout(Duration::from_secs(60)).unwrap();
    while !while_asked && progress.snapshot().bytes == 0 {
        assert!(!receiver.is_finished(), "{:?}", receiver.join());
        std::thread::sleep(Duration::from_millis(1));
    }
    cancels[usize::from(!sender_stops)].cancel();
    let (sent, received) = (soon(sender).unwrap_err(), soon(receiver).unwrap_err());
    match sender_stops {
        true => (sent, received),
        false => (received, sent),
    }
}

#[test]
fn a_stop_is_said_at_the_other_end() {
    for sender_stops in [true, false] {
        for while_asked in [true, false] {
            let ended = stopped(sender_stops, while_asked);
            assert!(
                matches!(ended, (Error::Cancelled, Error::OtherEnd(Cause::Stopped))),
                "{sender_stops} {while_asked}: {ended:?}"
            );
        }
    }
}

#[test]
fn a_no_is_said_at_the_other_end() {
    struct No;
    impl Consent for No {
        fn accept(&self, _: &Offered) -> Result<(), String> {
            Err("not wanted".into())
        }

        fn conflict(&self, _: &RelPath, _: &Existing) -> Answer {
            Answer::Skip
        }
    }
    let (tree, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = tree.path().join("file");
    std::fs::write(&file, content(10, 1)).unwrap();
    let (listener, address) = listen();
    let sender = std::thread::spawn(move || {
        let way = Channel::Sealed(Box::new(dialled(address, &Cancel::new())?));
        files::send(file, way, &Cancel::new())
    });
    let way = listening(listener, &Cancel::new()).unwrap();
    let (progress, cancel) = (Progress::new(), Cancel::new());
    let received = receive(output.path(), way, &progress, &cancel, &No);
    assert!(matches!(&received, Err(Error::SaidNo(_))), "{received:?}");
    let sent = soon(sender);
    assert!(
        matches!(&sent, Err(Error::Declined(reason)) if reason == "not wanted"),
        "{sent:?}"
    );
}

/// Ends without a last word of their own, such as those of earlier versions, and those that are killed.
#[test]
fn an_end_that_goes_without_a_word_ends_the_other_one_too() {
    for role in [Role::Sender, Role::Receiver] {
        let (tree, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let file = tree.path().join("file");
        std::fs::write(&file, content(10, 1)).unwrap();
        let (listener, address) = listen();
        let other = std::thread::spawn(move || {
            let way = listening(listener, &Cancel::new())?;
            let (progress, cancel) = (Progress::new(), Cancel::new());
            match role {
                Role::Sender => {
                    let to = output.path();
                    receive(to, way, &progress, &cancel, &Yes).map(drop)
                }
                _ => files::send(file, way, &cancel),
            }
        });
        let Connected { peered, data } = dialled(address, &Cancel::new()).unwrap();
        let mut control = peered.connection;
        let hello = Hello {
            version: VERSION,
            role: role as i32,
            ..Hello::default()
        };
        let hello = payload(Body::Hello(hello));
        control.writer.push(kind::CONTROL, 0, &hello).unwrap();
        control.writer.flush().unwrap();
        let connections = data.open_only(&[1], &Cancel::new());
        let tunnel = connections.next().unwrap().unwrap();
        std::thread::sleep(Duration::from_millis(100));
        drop((tunnel, control));
        let ended = soon(other);
        assert!(matches!(&ended, Err(Error::Network { .. })), "{role:?} {ended:?}");
    }
}
