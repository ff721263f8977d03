//! One file through the gRPC service, between two ends of a session.

#![allow(clippy::unwrap_used)]

mod support;

use std::io::ErrorKind;
use std::path::Path;
use std::thread::JoinHandle;
use std::time::Duration;

use sealway_drop::Error;
use sealway_drop::cancel::Cancel;
use sealway_drop::dest;
use sealway_drop::grpc::files::{self, Way};
use sealway_drop::link::{Connected, Place, connect};
use sealway_drop::progress::Progress;
use sealway_drop::send::Summary;
use support::{Yes, content, listen, setup};

/// An end that listens and receives, and the session with it of one that dialled.
fn receiving(output: &Path, cancel: &Cancel) -> (Connected, JoinHandle<Result<Summary, Error>>) {
    let (listener, address) = listen();
    let (output, cancel) = (output.to_owned(), cancel.clone());
    let thread = std::thread::spawn(move || {
        let way = Way::Sealed(Box::new(connect(Place::Listen(listener), &setup(1), 1, &cancel)?));
        files::receive(&output, dest::Options::default(), way, &Progress::new(), &cancel, &Yes)
    });
    let place = Place::Dial {
        addresses: vec![address],
        patience: Duration::from_secs(60),
    };
    (connect(place, &setup(2), 1, &Cancel::new()).unwrap(), thread)
}

#[test]
fn a_file_arrives() {
    let (tree, output) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let file = tree.path().join("file");
    std::fs::write(&file, content(1 << 20, 1)).unwrap();
    let (connected, receiver) = receiving(output.path(), &Cancel::new());
    files::send(file, Way::Sealed(Box::new(connected)), &Cancel::new()).unwrap();
    assert_eq!(receiver.join().unwrap().unwrap().placed, 1);
    assert_eq!(std::fs::read(output.path().join("file")).unwrap(), content(1 << 20, 1));
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
