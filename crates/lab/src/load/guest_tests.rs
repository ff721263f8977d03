//! A user-supplied program is believed as little under load as with streams.

#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::time::Duration;

use super::cells::{Drive, LoadCell, Shared, Spec, sets_pace};
use super::script::Script;
use super::scripts::{FLOW, HOLD, HTTP_KEEP};
use crate::peer::tests::script;
use crate::route::fakes::{Fault, program};
use crate::route::{Engine, Guest, Stack};
use crate::run::{CellError, Timed};
use crate::transports::FORGEABLE;
use crate::workload::routes::DIRECT;

/// What `requests` and `flows` put on a route.
const SCRIPTS: [(&str, &Script); 2] = [("keep", &HTTP_KEEP), ("flow", &FLOW)];

/// How the verdicts on wrong bytes begin, and those on all else.
const WRONG: &str = "wrong data: ";
const FAILED: &str = "failed: ";

fn engine(folder: &Path, name: &str, fault: Fault) -> Engine {
    let text = format!("{name}={}", program(folder, "fork 1.0", fault).display());
    Guest::parse(&text, &[]).unwrap().engine().unwrap()
}

fn spec((mode, script): (&'static str, &'static Script)) -> Spec {
    Spec::new(Stack::VLESS_TCP, mode, script, 4, Drive::Closed)
}

/// The verdicts on a fake before its first window.
fn checked(fault: Fault) -> [Result<(), CellError>; 2] {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine(folder.path(), "fork", fault);
    SCRIPTS.map(|script| LoadCell::new(spec(script), engine.name(), &engine, true, &Shared::default()).prepare())
}

#[test]
fn a_guest_that_does_its_work_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine(folder.path(), "fork", Fault::None);
    for script in SCRIPTS {
        let mut cell = LoadCell::new(spec(script), engine.name(), &engine, true, &Shared::default());
        cell.prepare().unwrap();
        // A busy machine does not finish one in every window.
        let mut windows = (0..100).map(|_| cell.window(Duration::ZERO, Duration::from_millis(50)).unwrap());
        assert!(windows.any(|counted| counted.ops > 0));
    }
}

#[test]
fn a_guest_that_lies_is_found_out_before_the_first_window() {
    for (fault, words) in [
        (Fault::Flips, WRONG),
        (Fault::OneBitUp, WRONG),
        (Fault::OneBitDown, WRONG),
        (Fault::Short, FAILED),
        (Fault::Ends, FAILED),
        (Fault::Bypass, "failed: the client bypasses the server"),
    ] {
        for found in checked(fault) {
            let error = found.unwrap_err().to_string();
            assert!(error.starts_with(words), "{fault:?}: {error}");
        }
    }
}

/// What is found in a window that no check came before.
fn found_in_a_window(script: (&'static str, &'static Script), fault: Fault) -> CellError {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine(folder.path(), "fork", fault);
    let mut cell = LoadCell::new(spec(script), engine.name(), &engine, true, &Shared::default());
    // A busy machine does not get as far as the fault in every one.
    let mut windows = (0..100).map(|_| cell.window(Duration::ZERO, Duration::from_millis(50)));
    windows.find_map(Result::err).unwrap()
}

#[test]
fn a_guest_that_turns_bad_is_found_in_a_window() {
    for script in SCRIPTS {
        for (fault, words) in [
            (Fault::OneBitUp, WRONG),
            (Fault::OneBitDown, WRONG),
            (Fault::Short, FAILED),
            (Fault::EndsLate, FAILED),
        ] {
            let found = found_in_a_window(script, fault).to_string();
            assert!(found.starts_with(words), "{script:?} {fault:?}: {found}");
        }
    }
}

/// A program that speaks the words of VMess and sends everything as it is.
#[test]
fn a_guest_that_sends_plaintext_for_sealed_bytes_is_marked() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine(folder.path(), "fork", Fault::None);
    for (mode, script, drive) in [
        ("keep", &HTTP_KEEP, Drive::Closed),
        ("flow", &FLOW, Drive::Closed),
        ("hold", &HOLD, Drive::Idle),
    ] {
        let spec = Spec::new(Stack::VMESS_AES_TCP, mode, script, 4, drive);
        let mut cell = LoadCell::new(spec, engine.name(), &engine, true, &Shared::default());
        cell.prepare().unwrap();
        let counted = cell.window(Duration::ZERO, Duration::from_millis(50)).unwrap();
        assert!(counted.figures.contains(&(FORGEABLE, 1.0)), "{mode}: {counted:?}");
    }
}

#[test]
fn a_lie_to_the_server_is_nobody_elses() {
    let folder = tempfile::tempdir().unwrap();
    let engine = engine(folder.path(), "fork", Fault::OneBitUp);
    let shared = Shared::default();
    let cell = |subject: &str| LoadCell::new(spec(SCRIPTS[0]), subject, &engine, true, &shared);
    assert!(matches!(cell("fork").prepare(), Err(CellError::Wrong { .. })));
    cell(DIRECT).prepare().unwrap();
}

#[test]
fn guests_set_the_rate_only_if_no_peer_does() {
    let folder = tempfile::tempdir().unwrap();
    let ours = Engine::sealway(&script(folder.path(), "sealway", ""));
    let guest = engine(folder.path(), "fork", Fault::None);
    let paces = |engines: &[Engine]| {
        engines
            .iter()
            .map(|engine| sets_pace(engine, engines))
            .collect::<Vec<_>>()
    };
    assert_eq!(paces(&[ours.clone(), guest.clone()]), [true, true]);
    // A name of a peer makes it one.
    let peer = engine(folder.path(), "xray", Fault::None);
    assert_eq!(paces(&[ours, peer, guest]), [true, true, false]);
}
