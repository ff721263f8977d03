//! A user-supplied program is believed as little as any other.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::cells::{Spec, TransportCell};
use super::traffic::Direction;
use super::*;
use crate::peer::tests::script;
use crate::result::PlanFacts;
use crate::route::Guest;
use crate::route::fakes::{Fault, program};
use crate::run::{CellError, Counted, Observer, Timed};
use crate::workload::{Peers, run};

fn guest(name: &str, program: &Path) -> Guest {
    Guest::parse(&format!("{name}={}", program.display()), &[]).unwrap()
}

fn cell(stack: Stack, program: &Path) -> TransportCell {
    let spec = Spec {
        stack,
        streams: 1,
        direction: Direction::Down,
    };
    TransportCell::new(spec, Some(guest("fork", program).engine().unwrap()), false, None)
}

/// The verdict on a fake before its first window.
fn checked(stack: Stack, fault: Fault) -> Result<(), CellError> {
    let folder = tempfile::tempdir().unwrap();
    cell(stack, &program(folder.path(), "fork 1.0", fault)).prepare()
}

/// A window in which something arrived, which on a busy machine not every one has.
fn window(cell: &mut TransportCell) -> Counted {
    let mut windows = (0..100).map(|_| {
        cell.window(Duration::from_millis(1), Duration::from_millis(50))
            .unwrap()
    });
    windows.find(|counted| counted.bytes > 0).unwrap()
}

#[test]
fn a_guest_that_does_its_work_is_measured() {
    let folder = tempfile::tempdir().unwrap();
    let mut cell = cell(Stack::VLESS_TCP, &program(folder.path(), "fork 1.0", Fault::None));
    cell.prepare().unwrap();
    let counted = window(&mut cell);
    assert!(counted.figures.iter().any(|(name, _)| *name == "cpu_per_gb_client"));
}

#[test]
fn a_guest_that_lies_is_found_out_before_the_first_window() {
    let bypass = "failed: the client bypasses the server";
    for (stack, fault, words) in [
        (Stack::VLESS_TCP, Fault::Flips, "wrong data: "),
        (Stack::VLESS_TCP, Fault::OneBitUp, "wrong data: "),
        (Stack::VLESS_TCP, Fault::OneBitDown, "wrong data: "),
        (Stack::VLESS_TCP, Fault::Ends, "failed: "),
        (Stack::VLESS_TCP, Fault::Bypass, bypass),
        (Stack::VMESS_AES_TCP, Fault::Bypass, bypass),
    ] {
        let error = checked(stack, fault).unwrap_err().to_string();
        assert!(error.starts_with(words), "{stack} {fault:?}: {error}");
    }
}

#[test]
fn a_guest_that_turns_bad_is_found_in_a_window() {
    for fault in [Fault::Flips, Fault::Short, Fault::EndsLate] {
        let folder = tempfile::tempdir().unwrap();
        let mut cell = cell(Stack::VLESS_TCP, &program(folder.path(), "fork 1.0", fault));
        // No check came before, and a busy machine does not get as far as the fault in every one.
        let mut windows = (0..100).map(|_| cell.window(Duration::from_millis(1), Duration::from_millis(50)));
        let found = windows.find_map(Result::err).unwrap();
        let is_wrong = matches!(found, CellError::Wrong { .. });
        assert!(is_wrong || fault != Fault::Flips, "{found:?}");
        assert!(
            is_wrong || matches!(found, CellError::Failed { .. }),
            "{fault:?}: {found:?}"
        );
    }
}

#[test]
fn a_guest_that_delivers_too_little_has_failed() {
    let found = checked(Stack::VLESS_TCP, Fault::Short);
    assert!(
        matches!(found, Err(CellError::Wrong { .. } | CellError::Failed { .. })),
        "{found:?}"
    );
}

#[test]
fn a_guest_that_does_not_seal_is_marked() {
    let folder = tempfile::tempdir().unwrap();
    let mut cell = cell(Stack::VMESS_AES_TCP, &program(folder.path(), "fork 1.0", Fault::None));
    cell.prepare().unwrap();
    assert!(window(&mut cell).figures.contains(&(FORGEABLE, 1.0)));
}

#[test]
fn a_guest_that_is_not_what_it_says_has_failed_in_its_own_words() {
    let folder = tempfile::tempdir().unwrap();
    let body = "[ \"$1\" = -version ] && echo V2Ray 4.9 && exit; echo \"unknown word $1\" >&2; exit 2";
    let found = cell(Stack::VLESS_TCP, &script(folder.path(), "liar", body)).prepare();
    assert!(
        matches!(&found, Err(CellError::Failed { what }) if what.contains("unknown word -config")),
        "{found:?}"
    );
}

#[test]
fn guests_are_subjects_beside_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let fake = program(folder.path(), "fork 1.0", Fault::None);
    let request = |program: PathBuf| Request {
        profile: Profile::Quick,
        peers: Peers::None,
        guests: vec![guest("fork", &program)],
        stacks: vec![Stack::VLESS_TCP],
        program: std::env::current_exe().ok(),
        seed: Some(1),
        ..Request::default()
    };
    let prepared = prepare(&request(fake)).unwrap_or_else(|error| panic!("{error}"));
    let names: Vec<_> = prepared.subjects.iter().map(|subject| subject.name.as_str()).collect();
    assert_eq!(names, ["sealway", "fork", "direct"]);
    assert_eq!(prepared.subjects[1].version, "fork 1.0");
    let cells: Vec<_> = prepared.cells.iter().map(|cell| cell.subject.as_str()).collect();
    assert_eq!(cells, ["direct", "sealway", "fork"]);
    assert_eq!(prepared.scheme.guests, ["fork"], "ratios may be to it");
    // It was named: without it there is no run.
    let missing = prepare(&request(folder.path().join("none"))).err();
    assert!(
        matches!(&missing, Some(LabError::PeerMissing { name, .. }) if name == "fork"),
        "{missing:?}"
    );
}

/// Nothing may begin.
struct Never;

impl Observer for Never {
    fn planned(&mut self, facts: &PlanFacts) {
        panic!("{facts:?}");
    }

    fn stopped(&self) -> bool {
        true
    }
}

#[test]
fn a_guest_that_is_not_there_ends_a_run_before_it_begins() {
    let request = Request {
        profile: Profile::Quick,
        peers: Peers::None,
        guests: vec![guest("fork", Path::new("/no/such"))],
        program: std::env::current_exe().ok(),
        ..Request::default()
    };
    let ended = run(&[&crate::primitives::WORKLOAD, &WORKLOAD], &request, &mut Never);
    assert!(matches!(ended, Err(LabError::PeerMissing { .. })), "{:?}", ended.err());
}
