#![allow(clippy::unwrap_used)]

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use super::movers::{Job, Mover};
use super::processes::{Ends, Moved, Processes, Role};
use super::source::ITEM;
use super::*;
use crate::catalogue;
use crate::result::{Num, ResultRow};
use crate::run::{CellError, Counted, Timed};

#[test]
fn peers_of_the_workload_are_known_to_all() {
    assert!(PEERS.iter().all(|name| catalogue::ALL.peers().contains(name)));
}

#[test]
fn cases_begin_with_the_most_telling_and_end_with_a_choice_of_suites() {
    for profile in Profile::ALL {
        let all = specs(profile, &[]);
        assert_eq!(
            (all[0].way, all[0].shape, all[0].place),
            (Way::Send, Shape::File, Storage::Memory)
        );
        let cases: std::collections::BTreeSet<String> = all.iter().map(|spec| spec.case().canonical()).collect();
        assert_eq!(cases.len(), all.len(), "every case once");
        let disk = all.iter().any(|spec| spec.place == Storage::Disk);
        assert_eq!(disk, profile != Profile::Quick, "a quick run leaves disks alone");
        let chosen = specs(profile, &[sealway_aead::Suite::ChaCha20Poly1305]);
        assert_eq!(chosen.len(), 1);
        assert_eq!(chosen[0].case().text("suite"), Some("chacha20-poly1305"));
    }
}

#[test]
fn a_transfer_is_planned_without_a_window() {
    struct Idle;
    impl Timed for Idle {
        fn window(&mut self, _: Duration, _: Duration) -> Result<Counted, CellError> {
            Ok(Counted::default())
        }
    }
    let cells = [1_i64, 2].map(|n| Cell::new(Case::new().with("n", n), "a", Idle));
    let beside = Duration::from_millis(300);
    let planned = |timed: [bool; 2]| {
        let takes = timed.map(|timed| Takes { beside, timed });
        plan(&Request::default(), &cells, &takes).unwrap()
    };
    let transfers = planned([false, false]);
    let visits = 2 * transfers.rounds;
    assert_eq!(transfers.expected, Duration::from_millis(2 * 200) + beside * visits);
    assert_eq!(transfers.visit, beside, "and the time left is told by it");
    let one = planned([true, false]);
    assert_eq!(one.expected, transfers.expected + one.window * one.rounds);
    assert!(one.warmup.is_zero() && one.window > Duration::from_secs(1));
}

/// What a script makes of `$1`, the source, in `$2`, the destination.
struct Script {
    receiver: String,
    sender: String,
}

const WAIT: &str = "while [ ! -e done ]; do sleep 0.01; done";

fn shell(script: &str, job: &Job<'_>) -> Command {
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script, "sh"]).arg(job.source.path()).arg(job.to);
    command
}

impl Mover for Script {
    fn name(&self) -> &'static str {
        "script"
    }

    fn can(&self, _: &Spec) -> bool {
        true
    }

    fn go(&self, job: &Job<'_>) -> Result<Moved, CellError> {
        let mut processes = Processes::new(job.folder, Duration::from_secs(60));
        let receiver = processes.start(Role::Receiver, Ends::Alone, &mut shell(&self.receiver, job))?;
        let started = processes.clock();
        processes.start(Role::Sender, Ends::Alone, &mut shell(&self.sender, job))?;
        processes.finish(started, receiver, (job.spec.shape == Shape::Byte).then_some(job.to))
    }
}

/// A case in memory, with everybody's own cipher.
fn spec(way: Way, shape: Shape) -> Spec {
    Spec {
        way,
        shape,
        place: Storage::Memory,
        suite: None,
        profile: Profile::Quick,
    }
}

fn window(shape: Shape, receiver: &str, sender: &str) -> Result<Counted, CellError> {
    let [receiver, sender] = [receiver, sender].map(str::to_owned);
    let script = Rc::new(Script { receiver, sender });
    let mut cell = FileCell::new(spec(Way::Send, shape), script, Sources::default(), None);
    cell.window(Duration::ZERO, Duration::ZERO)
}

fn error(shape: Shape, receiver: &str, sender: &str) -> String {
    window(shape, receiver, sender).unwrap_err().to_string()
}

#[test]
fn a_transfer_is_counted_with_the_costs_of_both() {
    let counted = window(Shape::Small, WAIT, "cp -r \"$1\" \"$2\" && touch done").unwrap();
    assert_eq!((counted.ops, counted.bytes), (625, 625 * 4096));
    assert!(counted.wall_s > 0.0 && counted.cpu_s > 0.0);
    let names: Vec<&str> = counted.figures.iter().map(|(name, _)| *name).collect();
    for name in [
        "cpu_per_gb",
        "cpu_per_gb_sender",
        "cpu_per_gb_receiver",
        "memory_receiver",
        "rate",
    ] {
        assert!(names.contains(&name), "{name} in {names:?}");
    }
}

#[test]
fn set_up_is_the_time_to_the_first_byte_and_not_to_the_end() {
    // The receiver stays a while after the byte has come.
    let counted = window(
        Shape::Byte,
        "while [ ! -e done ]; do sleep 0.01; done; sleep 0.5",
        "cp \"$1\" \"$2\" && touch done",
    )
    .unwrap();
    let of = |name: &str| counted.figures.iter().find(|(found, _)| *found == name).unwrap().1;
    assert!(of("total_time") >= of("setup_time") + 0.4, "{counted:?}");
}

#[test]
fn what_did_not_arrive_whole_is_an_error() {
    for (spoil, words) in [
        ("rm \"$2\"/item/d001/f00300", "f00300"),
        (
            "printf x | dd of=\"$2\"/item/d000/f00007 conv=notrunc",
            "other contents",
        ),
        (
            "f=\"$2\"/item/d000/f00007; b=$(tail -c 1 \"$f\" | od -An -tu1); \
             printf \"\\\\$(printf %03o $((b ^ 1)))\" | dd of=\"$f\" bs=1 seek=4095 conv=notrunc",
            "other contents",
        ),
        ("head -c 4095 \"$1\"/d000/f00007 > \"$2\"/item/d000/f00007", "f00007"),
    ] {
        let sender = format!("cp -r \"$1\" \"$2\"; {spoil}; touch done");
        let found = error(Shape::Small, WAIT, &sender);
        assert!(
            found.starts_with("wrong data") && found.contains(words),
            "{spoil}: {found}"
        );
    }
    let nothing = error(Shape::Byte, "true", "true");
    assert!(
        nothing.starts_with("wrong data") && nothing.contains("not there"),
        "{nothing}"
    );
}

#[test]
fn a_program_that_fails_is_quoted_and_ends_the_wait() {
    let from = Instant::now();
    let sender = error(Shape::Byte, "sleep 50", "echo no such code >&2; exit 3");
    assert!(
        sender.starts_with("failed: the sender") && sender.contains("no such code"),
        "{sender}"
    );
    let receiver = error(Shape::Byte, "echo full >&2; exit 1", "sleep 50");
    assert!(
        receiver.starts_with("failed: the receiver") && receiver.contains("full"),
        "{receiver}"
    );
    assert!(from.elapsed() < Duration::from_secs(40), "it waited for who sleeps");
}

#[test]
fn what_is_asked_to_end_may_say_good_bye() {
    let folder = tempfile::tempdir().unwrap();
    let mark = folder.path().join("bye");
    let script = "trap 'touch \"$0\"; exit 0' TERM; echo listening 127.0.0.1:9; while :; do sleep 0.01; done";
    let start = |processes: &mut Processes<'_>| {
        let mut command = Command::new("/bin/sh");
        let place = processes
            .start(Role::Sender, Ends::Asked, command.args(["-c", script]).arg(&mark))
            .unwrap();
        assert_eq!(processes.told(place).unwrap().port(), 9);
    };
    let mut processes = Processes::new(folder.path(), Duration::from_secs(60));
    start(&mut processes);
    processes.dismiss().unwrap();
    assert!(mark.exists());
    // The same when nobody comes to ask.
    std::fs::remove_file(&mark).unwrap();
    let mut processes = Processes::new(folder.path(), Duration::from_secs(60));
    start(&mut processes);
    drop(processes);
    assert!(mark.exists());
}

fn row(subject: &str, shape: &str, metric: &str, values: [f64; 3]) -> ResultRow {
    let case = Case::new()
        .with("way", "send")
        .with("shape", shape)
        .with("place", "memory")
        .with("suite", "default");
    ResultRow {
        workload: NAME.to_owned(),
        subject: subject.to_owned(),
        case,
        metric: metric.to_owned(),
        better: "higher".to_owned(),
        median: Num(values[1]),
        low: Num(values[0]),
        high: Num(values[2]),
        how: "range".to_owned(),
        rounds: 3,
        values: values.map(Num).to_vec(),
        verified: "full".to_owned(),
        ..ResultRow::default()
    }
}

#[test]
fn advice_is_the_fastest_that_encrypts() {
    let rows = [
        row("rsync-plain", "file", "throughput", [3e9, 3.1e9, 3.2e9]),
        row("sealway", "file", "throughput", [1.9e9, 2e9, 2.1e9]),
        row("scp", "file", "throughput", [3e8, 3.1e8, 3.2e8]),
        row("sealway", "file", "cpu_per_gb", [0.5, 0.5, 0.5]),
        row("sealway", "small", "throughput", [1e8, 1e8, 1e8]),
    ];
    let advice = advice::advise(&rows);
    assert_eq!(advice.len(), 1, "one small row alone is no choice: {advice:?}");
    assert_eq!(
        (advice[0].scenario.as_str(), advice[0].choice.as_str()),
        ("one big file", "sealway")
    );
    assert_eq!(advice[0].confidence, "clear");
    assert_eq!(advice[0].because, [1, 2]);
    assert!(
        advice[0]
            .reason
            .contains("sealway moves 2.00 GB/s for 0.500 s/GB of CPU time"),
        "{}",
        advice[0].reason
    );
}

#[test]
fn of_equals_the_cheaper_is_chosen() {
    let rows = [
        row("croc", "file", "throughput", [1e9, 1.01e9, 1.02e9]),
        row("sealway", "file", "throughput", [1.01e9, 1e9, 1e9]),
        row("croc", "file", "cpu_per_gb", [3.0, 3.0, 3.0]),
        row("sealway", "file", "cpu_per_gb", [0.5, 0.5, 0.5]),
    ];
    let advice = advice::advise(&rows);
    assert_eq!(
        (advice[0].choice.as_str(), advice[0].confidence.as_str()),
        ("sealway or croc", "unknown")
    );
}

#[test]
fn the_item_is_what_is_sent() {
    let folder = tempfile::tempdir().unwrap();
    let source = source::Source::make(folder.path(), Shape::Byte, &[(1, 1)]).unwrap();
    assert_eq!(source.path().file_name(), Path::new(ITEM).file_name());
}

/// Reads a plain copy of the source as if it were mounted, after `spoil` has had it.
fn read_mounted(way: Way, spoil: impl FnOnce(&Path)) -> Result<Moved, CellError> {
    let folder = tempfile::tempdir().unwrap();
    let [from, to, own] = ["from", "to", "own"].map(|name| folder.path().join(name));
    for path in [&from, &to, &own] {
        std::fs::create_dir(path).unwrap();
    }
    let source = source::Source::make(&from, Shape::File, &[(1, 1_000_000)]).unwrap();
    let copy = to.join(ITEM);
    std::fs::copy(source.path(), &copy).unwrap();
    spoil(&copy);
    let spec = spec(way, Shape::File);
    let mut processes = Processes::new(&own, Duration::from_secs(60));
    let mut idle = Command::new("/bin/sh");
    idle.args(["-c", "trap 'exit 5' TERM; while :; do sleep 0.01; done"]);
    processes.start(Role::Receiver, Ends::Asked, &mut idle).unwrap();
    let job = Job {
        spec: &spec,
        source: &source,
        to: &to,
        folder: &own,
        patience: Duration::from_secs(60),
        window: Duration::from_millis(200),
        link: None,
    };
    movers::mounted::read(processes, &job, &copy)
}

#[test]
fn a_mounted_file_is_read_whole_and_here_and_there() {
    let whole = read_mounted(Way::Read, |_| ()).unwrap();
    assert_eq!(whole.read, Some((8, 1_000_000)));
    assert!(whole.cpu.contains_key(&Role::Receiver));
    let random = read_mounted(Way::Random, |_| ()).unwrap();
    let (reads, bytes) = random.read.unwrap();
    assert!(reads > 0 && bytes == reads * 4096);
}

#[test]
fn a_mounted_file_that_differs_is_an_error() {
    for way in [Way::Read, Way::Random] {
        let zeros = read_mounted(way, |copy| std::fs::write(copy, vec![0; 1_000_000]).unwrap());
        assert!(matches!(zeros, Err(CellError::Wrong { .. })), "{way:?}");
    }
    let short = read_mounted(Way::Read, |copy| {
        let bytes = std::fs::read(copy).unwrap();
        std::fs::write(copy, &bytes[..999_999]).unwrap();
    });
    assert!(matches!(short, Err(CellError::Wrong { what }) if what.contains("999999 bytes")));
    // One byte that no sample need see: the second reading does.
    let one = read_mounted(Way::Read, |copy| {
        let mut bytes = std::fs::read(copy).unwrap();
        bytes[123_456] ^= 1;
        std::fs::write(copy, bytes).unwrap();
    });
    assert!(matches!(one, Err(CellError::Wrong { .. })));
}
