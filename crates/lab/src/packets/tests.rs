//! The packets are what is stated, wrong work is caught, and a real run, short, fills the result; no time is asserted.

use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use sealway_aead::Suite;
use sealway_aead::batch::Backend;

use super::cells::{Make, PacketCell, Scratch, Task};
use super::definition::{Spec, hash, specs};
use super::mover::{Batches, Mover};
use super::pool::{KeyUse, Pool, SEED, SHORTEST};
use super::threads::ThreadsCell;
use super::*;
use crate::catalogue;
use crate::ending::Ending;
use crate::plan::Profile;
use crate::report;
use crate::report::terminal::Style;
use crate::result::{ResultRow, RunResult};
use crate::run::{CellError, Counted, Observer, Timed};
use crate::stats::SplitMix64;
use crate::workload::batch::{Op, Sizes, packets};
use crate::workload::{Peers, Workload, run};

/// Here, and where a packet has a header besides and may have no contents.
#[test]
fn the_mix_is_what_is_stated() {
    the_mix_from(SHORTEST, 325.3);
    the_mix_from(0, 325.1);
    let mut random = SplitMix64::stream(SEED, 0);
    assert!((0..1000).all(|_| (1..=32).contains(&Sizes::Tiny.draw(SHORTEST, &mut random))));
    assert_eq!(Sizes::Fixed(77).draw(SHORTEST, &mut random), 77);
}

fn the_mix_from(least: usize, wanted: f64) {
    let mut random = SplitMix64::stream(SEED, 0);
    let count = packets(Profile::Full);
    let lengths: Vec<usize> = (0..count).map(|_| Sizes::Mix.draw(least, &mut random)).collect();
    let mean = lengths.iter().sum::<usize>() as f64 / count as f64;
    // 0.4 x 16.5 (or 16) + 0.3 x 80.5 + 0.2 x 320.5 + 0.1 x 2304.5; one standard error of the mean is 2.1.
    assert!((mean - wanted).abs() < 8.0, "{mean}");
    for (range, share) in [(least..=32, 0.4), (33..=128, 0.3), (129..=512, 0.2), (513..=4096, 0.1)] {
        let inside: Vec<&usize> = lengths.iter().filter(|length| range.contains(*length)).collect();
        let got = inside.len() as f64 / count as f64;
        assert!((got - share).abs() < 0.006, "{range:?}: {got}");
        let (low, high) = (inside.iter().min().unwrap(), inside.iter().max().unwrap());
        let width = range.end() - range.start();
        assert!(
            **low <= range.start() + width / 50 && **high >= range.end() - width / 50,
            "{range:?}: {low} to {high}"
        );
    }
}

#[test]
fn a_pool_is_the_same_every_time_and_opens_with_another_library() {
    let make = || Pool::new(Suite::ChaCha20Poly1305, Sizes::Mix, KeyUse::Resident, 64).unwrap();
    let pool = make();
    assert!(pool.sealed == make().sealed && pool.plain == make().plain);
    assert_eq!(pool.sealed.len(), pool.plain.len() + 64 * Suite::TAG_LEN);
    for i in 0..pool.count() {
        let mut room = pool.nonce_room();
        let key = sealway_aead::OpeningKey::new(pool.suite, pool.key(i)).unwrap();
        let mut text = vec![0; pool.text(i).len()];
        key.open_to(pool.nonce(&mut room, i), &[], &pool.sealed[pool.wire(i)], &mut text)
            .unwrap();
        assert_eq!(text, pool.plain[pool.text(i)]);
    }
}

#[test]
fn cases_are_those_of_the_definition() {
    let all = Suite::ALL;
    let sweep = |profile| -> Vec<usize> {
        let mut batches: Vec<usize> = specs(profile, &all, 1)
            .iter()
            .filter(|spec| (spec.sizes, spec.op, spec.key_use) == (Sizes::Mix, Op::Seal, KeyUse::Fresh))
            .map(|spec| spec.batch)
            .collect();
        batches.sort_unstable();
        batches
    };
    assert_eq!(
        sweep(Profile::Standard),
        [1, 4, 16, 64, 256, 1024, 4096, 16_384, 65_536]
    );
    assert_eq!(sweep(Profile::Quick), [1, 4, 16, 64, 256, 1024, 4096, 16_384]);
    let has = |specs: &[Spec], wanted: &dyn Fn(&Spec) -> bool| specs.iter().any(wanted);
    for profile in Profile::ALL {
        let list = specs(profile, &all, 2);
        for bytes in [32, 64, 128, 512, 4096, 1 << 20] {
            assert!(has(&list, &|spec| spec.sizes == Sizes::Fixed(bytes)), "{bytes}");
        }
        assert!(has(&list, &|spec| spec.sizes == Sizes::Tiny));
        assert!(has(&list, &|spec| spec.op == Op::Pair));
        assert!(has(&list, &|spec| spec.key_use == KeyUse::Resident
            && spec.suite == Suite::Aes128Gcm));
        assert!(has(&list, &|spec| (spec.threads, spec.batch) == (2, 4096)));
        assert!(!has(&specs(profile, &all, 1), &|spec| spec.threads > 1), "one CPU");
        let unique: std::collections::HashSet<String> = list.iter().map(|spec| format!("{spec:?}")).collect();
        assert_eq!(unique.len(), list.len());
    }
    assert!(specs(Profile::Full, &[Suite::Aes256Gcm], 2).is_empty());
    // A quick run has another pool, so its figures must not join those of the others.
    assert_eq!(hash(Profile::Standard), hash(Profile::Full));
    assert_ne!(hash(Profile::Quick), hash(Profile::Full));
}

/// Our engine with a fault.
struct Broken {
    engine: Batches,
    fault: Fault,
}

#[derive(Clone, Copy, Debug)]
enum Fault {
    /// Seals nothing and says it did.
    Idle,
    /// One bit of the last tag is wrong.
    Tag,
    /// One bit of a ciphertext is wrong.
    Text,
    /// Leaves an opened packet zeroed.
    Opened,
    /// Opens whatever comes.
    Credulous,
    /// None.
    Sound,
}

impl Mover for Broken {
    fn seal(&mut self, pool: &Pool, packets: Range<usize>, wire: &mut [u8]) -> Result<(), CellError> {
        let all = pool.wires(&packets);
        if !matches!(self.fault, Fault::Idle) {
            self.engine.seal(pool, packets, wire)?;
        }
        match self.fault {
            Fault::Tag => wire[all.end - 1] ^= 1,
            Fault::Text => wire[all.start] ^= 0x80,
            _ => {}
        }
        Ok(())
    }

    fn open(&mut self, pool: &Pool, packets: Range<usize>, wire: &[u8], text: &mut [u8]) -> Result<(), CellError> {
        let all = pool.texts(&packets);
        let opened = self.engine.open(pool, packets.clone(), wire, text);
        match self.fault {
            Fault::Opened => text[all.end - 1] ^= 1,
            Fault::Credulous if opened.is_err() => return Ok(()),
            _ => {}
        }
        opened
    }
}

fn broken(fault: Fault, op: Op) -> Task {
    let pool = Pool::new(Suite::ChaCha20Poly1305, Sizes::Mix, KeyUse::Fresh, 256).unwrap();
    let make: Make = Arc::new(move |pool, _| {
        let engine = Batches::new("broken", Backend::Portable, pool, 32)?;
        Ok(Box::new(Broken { engine, fault }))
    });
    Task {
        pool: Arc::new(pool),
        op,
        batch: 32,
        make,
    }
}

fn visit(cell: &mut dyn Timed) -> Result<Counted, CellError> {
    cell.prepare()?;
    cell.window(Duration::ZERO, Duration::from_millis(1))
}

#[test]
fn wrong_work_is_caught_with_one_thread_and_with_two() {
    for (fault, op) in [
        (Fault::Idle, Op::Seal),
        (Fault::Tag, Op::Seal),
        (Fault::Text, Op::Seal),
        (Fault::Opened, Op::Open),
        (Fault::Credulous, Op::Open),
        (Fault::Credulous, Op::Seal),
        (Fault::Tag, Op::Pair),
    ] {
        let one = visit(&mut PacketCell::new(
            broken(fault, op),
            false,
            Rc::new(RefCell::new(Scratch::default())),
        ));
        assert!(matches!(one, Err(CellError::Wrong { .. })), "{fault:?} {op:?}: {one:?}");
        let two = visit(&mut ThreadsCell::new(broken(fault, op), 2));
        assert!(matches!(two, Err(CellError::Wrong { .. })), "{fault:?} {op:?}: {two:?}");
    }
    let plain = broken(Fault::Sound, Op::Seal).pool.plain.len() as u64;
    for op in [Op::Seal, Op::Open, Op::Pair] {
        let scratch = Rc::new(RefCell::new(Scratch::default()));
        let one = visit(&mut PacketCell::new(broken(Fault::Sound, op), true, scratch)).unwrap();
        let two = visit(&mut ThreadsCell::new(broken(Fault::Sound, op), 2)).unwrap();
        // Chunks are the whole pool: from one thread, or a half from each of two.
        for counted in [one, two] {
            let pools = counted.ops / 256;
            assert!(pools > 0 && counted.ops == pools * 256, "{counted:?}");
            assert_eq!(counted.bytes, pools * plain, "{counted:?}");
        }
    }
}

#[derive(Default)]
pub(crate) struct Watcher {
    partials: usize,
}

impl Observer for Watcher {
    fn round_done(&mut self, partial: &RunResult) {
        assert!(!partial.complete);
        self.partials += 1;
    }
}

pub(crate) fn request(suites: &[Suite], budget: u64) -> Request {
    Request {
        profile: Profile::Quick,
        peers: Peers::Named(vec!["rustcrypto".to_owned()]),
        suites: suites.to_vec(),
        budget: Some(Duration::from_secs(budget)),
        overtime: true,
        seed: Some(1),
        command: vec!["sealway".to_owned()],
        ..Request::default()
    }
}

/// Workloads that need no program.
static ALONE: [&Workload; 2] = [&crate::primitives::WORKLOAD, &WORKLOAD];

#[test]
fn a_run_of_all_fills_one_result() {
    let mut watcher = Watcher::default();
    // No more cases than there is time for: packets are made of each before the first window.
    let measured = |case: &Case| {
        let sizes = case.text("sizes");
        let batch = || matches!(case.int("batch"), Some(16 | 4096)) && case.text("keys") == Some("fresh");
        sizes.is_none_or(|sizes| ["mix", "128"].contains(&sizes) && batch())
    };
    let request_of_all = Request {
        cases: Some(measured),
        // A library that is fast without optimisation of this crate.
        peers: Peers::Named(vec!["ring".to_owned()]),
        ..request(&[Suite::ChaCha20Poly1305], 12)
    };
    let result = run(&ALONE, &request_of_all, &mut watcher).unwrap();
    assert_eq!(Ending::of(&result, false), Ending::Done, "{:?}", result.warnings);
    assert!(result.complete && watcher.partials >= 6);
    for workload in ALONE {
        assert!(result.results.iter().any(|row| row.workload == workload.name));
    }
    let orders: Vec<u32> = result.windows.iter().map(|window| window.order).collect();
    assert_eq!(orders, (0..orders.len() as u32).collect::<Vec<_>>());
    for advice in &result.recommendation {
        assert!(
            advice
                .because
                .iter()
                .all(|&i| result.results[i].workload == "primitives")
        );
    }
    let ours = result
        .subjects
        .iter()
        .filter(|subject| subject.name == "sealway")
        .count();
    assert_eq!(ours, 1, "named once");

    let rows: Vec<_> = result.results.iter().filter(|row| row.workload == NAME).collect();
    for row in &rows {
        assert_eq!(row.verified, "full");
        assert!(row.median.get() > 0.0 && row.low <= row.high, "{row:?}");
        let wanted = row.metric == "rate" && row.subject != "ring";
        assert_eq!(row.ratio.is_some(), wanted, "{row:?}");
        if row.metric.starts_with("lane_use") {
            assert!(row.subject.starts_with("sealway") && row.median.get() <= 1.0, "{row:?}");
        }
        let threads = row.case.int("threads");
        if row.metric == "rate" {
            assert_eq!(row.method, if threads == Some(1) { "C" } else { "T" });
        }
    }
    for metric in ["rate", "throughput", "latency_p50", "packet_p50"] {
        assert!(rows.iter().any(|row| row.metric == metric), "{metric}");
    }
    reports_show(result);

    // One that has nothing of what was asked for is left out of all, and is an error alone.
    let aes = request(&[Suite::Aes256Gcm], 6);
    let error = run(&[&WORKLOAD], &aes, &mut watcher).unwrap_err();
    assert_eq!(error.ending(), Ending::Misused);
}

#[test]
fn openssl_is_no_peer_here() {
    let mut wanted = request(&[], 6);
    wanted.peers = Peers::Named(vec!["openssl".to_owned()]);
    let error = run(&[&WORKLOAD], &wanted, &mut Watcher::default()).unwrap_err();
    assert_eq!(error.ending(), Ending::Misused);
    assert!(error.to_string().contains("\"openssl\"") && error.to_string().contains("ring"));
}

/// The page of a run, whose text for a terminal says these words within 80 columns.
pub(crate) fn shown(result: &RunResult, words: &[&str]) -> String {
    let text = report::terminal::render(result, &catalogue::ALL, &Style::default(), &[]);
    let fits = |line: &str| line.starts_with("Repeat") || line.chars().count() <= 80;
    assert!(text.lines().all(fits), "{text}");
    for words in words {
        assert!(text.contains(words), "{words}: {text}");
    }
    report::html::render(result, &catalogue::ALL)
}

/// Renders a run of all; a second batch size is put beside the one that a short run has room for.
fn reports_show(mut result: RunResult) {
    let of_mix = |row: &&ResultRow| {
        let case = Spec::MIX.case();
        row.workload == NAME && row.case == case
    };
    let more: Vec<ResultRow> = result.results.iter().filter(of_mix).cloned().collect();
    assert!(!more.is_empty());
    result.results.extend(more.into_iter().map(|row| ResultRow {
        case: row.case.with("batch", 16_i64),
        ..row
    }));
    let words = [
        "the mix by batch size: chacha20-poly1305",
        "128 B x16",
        "Over all cases of packets",
        "Lanes in use",
    ];
    let page = shown(&result, &words);
    assert!(
        page.contains("id=\"packets-section\"") && page.contains("id=\"packets-0\"") && page.contains("id=\"peers\"")
    );
    let mut alone = result.clone();
    alone.results.retain(|row| row.workload == NAME);
    alone.recommendation.clear();
    let page = report::html::render(&alone, &catalogue::ALL);
    assert!(page.contains("million packets a second") && !page.contains("id=\"peers\""));
}
