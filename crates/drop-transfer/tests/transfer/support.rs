//! Two ends of a transfer in one process, over loopback.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::thread::JoinHandle;
use std::time::Duration;

use sealway_drop::Error;
use sealway_drop::cancel::Cancel;
use sealway_drop::link::{Place, Setup, connect};
use sealway_drop::names::RelPath;
pub(crate) use sealway_drop::testing::*;
use sealway_drop_transfer::dest::{self, Answer, Existing};
use sealway_drop_transfer::hashing::Hashing;
use sealway_drop_transfer::progress::Progress;
use sealway_drop_transfer::receive::{self, Consent, Offered, receive};
use sealway_drop_transfer::send::{self, Summary, send};
use sealway_drop_transfer::source::{ScanOptions, scan};
use zeroize::Zeroizing;

/// Takes everything; conflicts get another name.
pub(crate) struct Yes;

impl Consent for Yes {
    fn accept(&self, _: &Offered) -> Result<(), String> {
        Ok(())
    }

    fn conflict(&self, _: &RelPath, _: &Existing) -> Answer {
        Answer::Rename
    }
}

/// How a test transfer goes.
#[derive(Clone)]
pub(crate) struct Case {
    pub(crate) hashing: Hashing,
    pub(crate) connections: u32,
    pub(crate) conflict: dest::Conflict,
    pub(crate) sender: Setup,
    pub(crate) receiver: Setup,
}

impl Default for Case {
    fn default() -> Self {
        Case {
            hashing: Hashing::default(),
            connections: 2,
            conflict: dest::Conflict::Rename,
            sender: setup(1),
            receiver: setup(2),
        }
    }
}

pub(crate) type Outcome = (Result<Summary, Error>, sealway_drop_transfer::progress::Snapshot);

/// Starts a receiver that listens.
pub(crate) fn receiver(case: &Case, listener: TcpListener, output: &Path, cancel: &Cancel) -> JoinHandle<Outcome> {
    let (case, output, cancel) = (case.clone(), output.to_owned(), cancel.clone());
    std::thread::spawn(move || {
        let progress = Progress::new();
        let dest = dest::Options {
            conflict: case.conflict,
            ..dest::Options::default()
        };
        let options = receive::Options {
            output,
            dest,
            hashing: case.hashing,
            direct: None,
        };
        let result = connect(Place::Listen(listener), &case.receiver, case.connections, &cancel)
            .and_then(|connected| receive(&options, connected, &progress, &cancel, &Yes));
        (result, progress.snapshot())
    })
}

/// Sends to an address.
pub(crate) fn sender(case: &Case, to: &str, paths: &[PathBuf], cancel: &Cancel) -> Outcome {
    let progress = Progress::new();
    let options = send::Options {
        paths: paths.to_vec(),
        hashing: case.hashing,
        direct: None,
        transfer_secret: Zeroizing::new([7; 32]),
    };
    let result = scan(paths, ScanOptions::default(), &mut |_| {})
        .map_err(Error::from)
        .and_then(|scan| {
            let connected = connect(
                Place::Dial {
                    addresses: vec![to.parse().unwrap()],
                    patience: Duration::from_secs(10),
                },
                &case.sender,
                case.connections,
                cancel,
            )?;
            send(&options, &scan, connected, &progress, cancel)
        });
    (result, progress.snapshot())
}

/// A whole transfer; both outcomes, sender first.
pub(crate) fn transfer(case: &Case, paths: &[PathBuf], output: &Path) -> (Outcome, Outcome) {
    let (listener, address) = listen();
    let cancel = Cancel::new();
    let receiver = receiver(case, listener, output, &cancel);
    let sent = sender(case, &address.to_string(), paths, &Cancel::new());
    (sent, receiver.join().unwrap())
}
