//! What a cell counts and refuses, and what the table makes of windows, with engines and windows made by hand.

use std::cell::Cell as Switch;
use std::rc::Rc;

use super::cells::{fresh_keys, messages, one_message_scripts, setup};
use super::script::Script;
use super::*;
use crate::plan::Profile;
use crate::result::{Case, ResultRow, Window};
use crate::run::{CellError, Counted, Outcome, Timed};
use crate::workload::batch::Op;
use crate::workload::engine::{Engine, RustCrypto, TagBytes};
use crate::workload::rows::Table;
use sealway_aead::Suite;
use std::fmt;

/// One chunk: the loop ends after the first, however fast it was.
const ONE_CHUNK: Duration = Duration::from_nanos(1);

const BYTES: usize = 100;
const MESSAGES: usize = 16;

/// What the engine under test does wrong.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fault {
    None,
    /// The tag of the last message of a chunk.
    Tag,
    /// The last byte of a text.
    Byte,
    /// It opens everything, and rightly so what is authentic.
    Credulous,
    /// It opens the last message of a chunk to something else.
    Opened,
    /// It seals under another key.
    Key,
    /// It refuses.
    Refuses,
}

thread_local! {
    static FAULT: Switch<Fault> = const { Switch::new(Fault::None) };
}

fn fault(fault: Fault) {
    FAULT.set(fault);
}

/// True for the last message of a chunk.
fn last(nonce: &[u8]) -> bool {
    nonce.last().is_some_and(|&number| usize::from(number) + 1 == MESSAGES)
}

struct Faulty;

impl Engine for Faulty {
    const NAME: &'static str = "faulty";

    type Sealing = <RustCrypto as Engine>::Sealing;
    type Opening = <RustCrypto as Engine>::Opening;

    fn has(_: Suite) -> bool {
        true
    }

    fn sealing(suite: Suite, key: &[u8]) -> Option<Self::Sealing> {
        let mut key = key.to_vec();
        key[0] ^= u8::from(FAULT.get() == Fault::Key);
        RustCrypto::sealing(suite, &key)
    }

    fn opening(suite: Suite, key: &[u8]) -> Option<Self::Opening> {
        RustCrypto::opening(suite, key)
    }

    fn seal(key: &Self::Sealing, nonce: &[u8], aad: &[u8], in_out: &mut [u8]) -> Option<TagBytes> {
        let mut tag = RustCrypto::seal(key, nonce, aad, in_out)?;
        match FAULT.get() {
            Fault::Tag if last(nonce) => tag[0] ^= 1,
            Fault::Byte if last(nonce) => in_out[BYTES - 1] ^= 1,
            Fault::Refuses => return None,
            _ => {}
        }
        Some(tag)
    }

    fn open(key: &Self::Opening, nonce: &[u8], aad: &[u8], in_out: &mut [u8], tag: &TagBytes) -> bool {
        let authentic = RustCrypto::open(key, nonce, aad, in_out, tag);
        match FAULT.get() {
            Fault::Credulous => true,
            Fault::Opened => {
                in_out[0] ^= u8::from(last(nonce));
                authentic
            }
            Fault::Refuses => false,
            _ => authentic,
        }
    }
}

fn messages_cell(op: Op) -> Cell {
    let script = Script::new(Suite::ChaCha20Poly1305, op, BYTES, 13, MESSAGES, 0).unwrap();
    messages::<Faulty>(Case::new(), Rc::new(script))
}

fn key_scripts() -> Rc<Vec<Script>> {
    Rc::new(one_message_scripts(Suite::ChaCha20Poly1305, BYTES, 13).unwrap())
}

fn wrong<T: fmt::Debug>(outcome: Result<T, CellError>, words: &str) {
    match outcome {
        Err(CellError::Wrong { what }) => assert!(what.contains(words), "{what}"),
        other => panic!("{words}: {other:?}"),
    }
}

#[test]
fn a_wrong_answer_is_found_before_the_first_window() {
    for (op, bad, words) in [
        (Op::Seal, Fault::Tag, "tag of message 15"),
        (Op::Seal, Fault::Byte, "byte 99 of 100"),
        (Op::Seal, Fault::Key, "does not open what it sealed"),
        (Op::Seal, Fault::Credulous, "accepts a forged message"),
        (Op::Open, Fault::Credulous, "accepts a forged message"),
        (Op::Open, Fault::Opened, "byte 0 of 100"),
    ] {
        fault(bad);
        wrong(messages_cell(op).prepare(), words);
    }
    fault(Fault::Key);
    wrong(
        fresh_keys::<Faulty>(Case::new(), key_scripts()).prepare(),
        "tag of message 0",
    );
    wrong(
        setup::<Faulty>(Case::new(), key_scripts()).prepare(),
        "tag of message 0",
    );
    fault(Fault::Refuses);
    assert!(matches!(
        messages_cell(Op::Seal).prepare(),
        Err(CellError::Failed { .. })
    ));
}

#[test]
fn a_wrong_answer_is_found_in_a_window() {
    let sealing = |bad, words| {
        fault(Fault::None);
        let mut cell = messages_cell(Op::Seal);
        cell.prepare().unwrap();
        fault(bad);
        wrong(cell.window(Duration::ZERO, ONE_CHUNK), words);
        wrong(cell.window(ONE_CHUNK, Duration::ZERO), words);
    };
    sealing(Fault::Tag, "tag of message 15");
    sealing(Fault::Byte, "byte 99 of 100");
    for (bad, words) in [
        (Fault::Opened, "byte 0 of 100"),
        (Fault::Refuses, "does not open message 0 "),
    ] {
        fault(Fault::None);
        let mut cell = messages_cell(Op::Open);
        cell.prepare().unwrap();
        fault(bad);
        wrong(cell.window(Duration::ZERO, ONE_CHUNK), words);
    }
    for make in [fresh_keys::<Faulty>, setup::<Faulty>] {
        fault(Fault::None);
        let mut cell = make(Case::new(), key_scripts());
        cell.prepare().unwrap();
        fault(Fault::Key);
        wrong(cell.window(Duration::ZERO, ONE_CHUNK), "tag of message 0");
    }
}

#[test]
fn a_window_counts_every_message_once() {
    fault(Fault::None);
    let window = |mut cell: Cell| -> Counted {
        assert_eq!(cell.subject, "faulty");
        cell.prepare().unwrap();
        // The warm-up does not count.
        let counted = cell.window(ONE_CHUNK, ONE_CHUNK).unwrap();
        assert!(counted.wall_s > 0.0 && counted.cpu_s >= 0.0, "{counted:?}");
        counted
    };
    for op in [Op::Seal, Op::Open] {
        let counted = window(messages_cell(op));
        assert_eq!((counted.ops, counted.bytes), (16, 1600));
    }
    let counted = window(fresh_keys::<Faulty>(Case::new(), key_scripts()));
    assert_eq!((counted.ops, counted.bytes), (64, 6400));
    let counted = window(setup::<Faulty>(Case::new(), key_scripts()));
    assert_eq!((counted.ops, counted.bytes), (64, 0));
    let mut unprepared = messages_cell(Op::Seal);
    assert!(matches!(
        unprepared.window(Duration::ZERO, ONE_CHUNK),
        Err(CellError::Failed { .. })
    ));
}

/// Nothing to time.
struct Idle;

impl Timed for Idle {
    fn window(&mut self, _: Duration, _: Duration) -> Result<Counted, CellError> {
        Ok(Counted::default())
    }
}

fn case(op: &str) -> Case {
    let case = Case::new().with("suite", "aes-128-gcm").with("op", op);
    if op == "key-setup" {
        case
    } else {
        case.with("bytes", 1000_i64)
    }
}

/// The rows of one case: for each subject, the CPU seconds of its rounds. Each window has 2000 messages of 1000 bytes and
/// 10 s of wall time; `None` is a round that the subject lacks.
fn rows(op: &str, profile: Profile, subjects: &[(&'static str, &[Option<f64>])]) -> Vec<ResultRow> {
    let cells: Vec<Cell> = subjects
        .iter()
        .map(|(name, _)| Cell::new(case(op), name, Idle))
        .collect();
    let mut outcome = Outcome::default();
    for (cell, (name, rounds)) in subjects.iter().enumerate() {
        for (round, cpu_s) in rounds.iter().enumerate() {
            let Some(cpu_s) = *cpu_s else { continue };
            outcome.cells.push(cell);
            outcome.windows.push(Window {
                workload: NAME.to_owned(),
                case: case(op),
                subject: (*name).to_owned(),
                round: round as u32,
                order: outcome.windows.len() as u32,
                wall_s: 10.0,
                cpu_s,
                bytes: 2_000_000,
                ops: 2000,
                ..Window::default()
            });
        }
    }
    Table::new(&cells, scheme("d1".to_owned()), profile).rows(&outcome)
}

fn find<'a>(rows: &'a [ResultRow], metric: &str, subject: &str) -> &'a ResultRow {
    let mut found = rows.iter().filter(|row| row.metric == metric && row.subject == subject);
    let row = found.next().unwrap();
    assert!(found.next().is_none(), "{metric} {subject} is there twice");
    row
}

fn values(row: &ResultRow) -> Vec<f64> {
    row.values.iter().map(|value| value.get()).collect()
}

/// The same figure in this many rounds.
const fn all(cpu_s: f64) -> [Option<f64>; 9] {
    [Some(cpu_s); 9]
}

#[test]
fn figures_are_per_second_of_cpu_time() {
    let rows = rows(
        "seal",
        Profile::Standard,
        &[
            ("sealway", &all(0.5)),
            ("rustcrypto", &all(1.0)),
            ("openssl", &all(0.25)),
        ],
    );
    assert_eq!(rows.len(), 6);
    for (subject, rate, cost, method, verified) in [
        ("sealway", 4e6, 0.000_25, "C", "full"),
        ("rustcrypto", 2e6, 0.000_5, "C", "full"),
        ("openssl", 8e6, 0.000_125, PROGRAM_METHOD, "self"),
    ] {
        let throughput = find(&rows, "throughput", subject);
        assert_eq!(values(throughput), [rate; 9]);
        assert_eq!((throughput.median.get(), throughput.rounds), (rate, 9));
        assert_eq!(
            (throughput.unit.as_str(), throughput.better.as_str()),
            ("B/s", "higher")
        );
        let cpu = find(&rows, "cpu_per_op", subject);
        assert_eq!(values(cpu), [cost; 9]);
        assert_eq!((cpu.unit.as_str(), cpu.better.as_str()), ("s/op", "lower"));
        assert!(cpu.ratio.is_none(), "one ratio says both");
        for row in [throughput, cpu] {
            assert_eq!(
                (row.method.as_str(), row.verified.as_str()),
                (method, verified),
                "{subject}"
            );
        }
    }
    // The first of the references that is there, and everyone against it.
    assert!(find(&rows, "throughput", "rustcrypto").ratio.is_none());
    for (subject, factor) in [("sealway", 2.0), ("openssl", 4.0)] {
        let ratio = find(&rows, "throughput", subject).ratio.as_ref().unwrap();
        assert_eq!((ratio.to.as_str(), ratio.verdict.as_str()), ("rustcrypto", "faster"));
        assert!((ratio.estimate.get() - factor).abs() < 1e-9, "{ratio:?}");
    }
}

/// The letter of a program's figures.
const PROGRAM_METHOD: &str = "W";

#[test]
fn less_time_for_a_key_is_faster() {
    let judged = |ours: f64, op: &str, metric: &str, verified: &str| {
        let rows = rows(op, Profile::Standard, &[("sealway", &all(ours)), ("ring", &all(1.0))]);
        assert_eq!(rows.len(), 2, "{op} has one metric");
        let row = find(&rows, metric, "sealway");
        assert_eq!((row.verified.as_str(), row.better.as_str()), (verified, "lower"));
        let ratio = row.ratio.clone().unwrap();
        assert!(
            (ratio.estimate.get() - ours).abs() < 1e-9,
            "ours over theirs: {ratio:?}"
        );
        ratio.verdict
    };
    for (op, metric, verified) in [
        ("key-setup", "setup_time", "sampled"),
        ("fresh-key", "cpu_per_op", "full"),
    ] {
        assert_eq!(judged(0.5, op, metric, verified), "faster");
        assert_eq!(judged(2.0, op, metric, verified), "slower");
        assert_eq!(judged(1.0, op, metric, verified), "same");
    }
}

#[test]
fn rounds_are_paired_by_their_number() {
    // The peer lacks round 1. In the rounds that both have, ours takes half the time.
    let ours = [Some(0.5), Some(4.0), Some(1.0), Some(2.0)];
    let theirs = [Some(1.0), None, Some(2.0), Some(4.0)];
    let table = rows("seal", Profile::Quick, &[("sealway", &ours), ("ring", &theirs)]);
    let peer = values(find(&table, "throughput", "ring"));
    assert!(peer[1].is_nan() && peer.len() == 4, "{peer:?}");
    let ratio = find(&table, "throughput", "sealway").ratio.as_ref().unwrap();
    for end in [ratio.estimate, ratio.low, ratio.high] {
        assert!((end.get() - 2.0).abs() < 1e-9, "{ratio:?}");
    }
    // A quick run shows ranges.
    assert_eq!((ratio.how.as_str(), ratio.level), ("range", 0.0));
    // Where there is no clock for CPU time, the wall's is taken.
    let by_wall = rows("seal", Profile::Quick, &[("sealway", &[Some(0.0)])]);
    assert_eq!(values(find(&by_wall, "throughput", "sealway")), [2e5]);
}

/// The arguments and the environment that a program gets, from the cells of a run.
#[test]
fn openssl_is_called_as_its_figures_need() {
    let folder = tempfile::tempdir().unwrap();
    let body = "d=$(dirname \"$0\"); echo \"$* ia32=$OPENSSL_ia32cap arm=$OPENSSL_armcap\" >> \"$d/calls\"; exit 1";
    let program = openssl::Program {
        path: crate::peer::tests::script(folder.path(), "openssl", body),
        version: "OpenSSL 3.0.19".to_owned(),
    };
    let found = subjects::Found { subjects: Vec::new() };
    let mut cells = definition::cells(
        Profile::Quick,
        &[Suite::Aes256Gcm, Suite::XChaCha20Poly1305],
        &found,
        Some(&program),
    );
    let ops: Vec<&str> = cells.iter().filter_map(|cell| cell.case.text("op")).collect();
    let capped = cfg!(any(target_arch = "x86_64", target_arch = "aarch64"));
    assert_eq!(
        ops,
        if capped {
            &["seal", "seal-without-aes"][..]
        } else {
            &["seal"]
        }
    );
    for cell in &mut cells {
        assert!(cell.window(Duration::ZERO, Duration::from_millis(2600)).is_err());
    }
    let calls = std::fs::read_to_string(folder.path().join("calls")).unwrap();
    let arguments = "speed -elapsed -seconds 3 -evp aes-256-gcm -aead -bytes 16384 -mr";
    let own = |name: &str| std::env::var(name).unwrap_or_default();
    let (ia32, arm) = (own("OPENSSL_ia32cap"), own("OPENSSL_armcap"));
    let mut want = vec![format!("{arguments} ia32={ia32} arm={arm}")];
    if cfg!(target_arch = "x86_64") {
        want.push(format!("{arguments} ia32=~0x200000200000000 arm={arm}"));
    } else if cfg!(target_arch = "aarch64") {
        want.push(format!("{arguments} ia32={ia32} arm=1"));
    }
    assert_eq!(calls.lines().collect::<Vec<_>>(), want);
}
