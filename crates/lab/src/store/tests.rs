#![allow(clippy::unwrap_used)]

use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::*;
use crate::report::terminal::Style;
use crate::result::{CanarySample, Case, Machine, Num, ResultRow, Subject, Window};

/// Noise of nine rounds, about half a per cent, the same for every row unless shifted.
pub(crate) const NOISE: [f64; 9] = [0.0, 0.4, -0.6, 0.5, -0.3, 0.2, -0.5, 0.7, -0.1];

/// A row with nine rounds around `centre`.
pub(crate) fn row(subject: &str, centre: f64) -> ResultRow {
    shifted(subject, centre, subject.len())
}

/// The same with the noise shifted by so many rounds.
pub(crate) fn shifted(subject: &str, centre: f64, shift: usize) -> ResultRow {
    let value = |round: usize| Num(centre * (1.0 + NOISE[(round + shift) % 9] / 100.0));
    ResultRow {
        workload: "primitives".into(),
        workload_def: "d1".into(),
        subject: subject.into(),
        case: Case::new().with("bytes", 16384_i64).with("op", "seal"),
        metric: "throughput".into(),
        unit: "B/s".into(),
        better: "higher".into(),
        over: "rounds".into(),
        median: Num(centre),
        low: Num(centre),
        high: Num(centre),
        how: "order-statistics".into(),
        rounds: 9,
        values: (0..9).map(value).collect(),
        method: "T".into(),
        verified: "full".into(),
        ..ResultRow::default()
    }
}

/// The run of a day, with our engine and a peer.
pub(crate) fn run(day: u32, ours: f64, ring: f64) -> RunResult {
    let subject = |name: &str| Subject {
        name: name.into(),
        version: "0.17".into(),
        ..Subject::default()
    };
    RunResult {
        schema: 1,
        run: format!("{day:08x}-aaaa"),
        started: format!("2021-01-{day:02}T03:04:05Z"),
        complete: true,
        sealway: "0.1.0".into(),
        profile: "standard".into(),
        seed: "1".into(),
        machine: Machine {
            key: "m1".into(),
            cpu: "Some CPU".into(),
            ..Machine::default()
        },
        subjects: vec![subject("sealway"), subject("ring")],
        results: vec![row("sealway", ours), row("ring", ring)],
        ..RunResult::default()
    }
}

/// Leaves what is ours, with a window for each round, before and after which the canary took so long.
pub(crate) fn with_canary(run: &mut RunResult, canary: f64) {
    run.results.retain(|row| row.subject == "sealway");
    let sample = CanarySample {
        cpu_s: canary,
        wall_over_cpu: 1.0,
    };
    for row in &run.results {
        let window = |round| Window {
            workload: row.workload.clone(),
            case: row.case.clone(),
            subject: row.subject.clone(),
            round,
            canary: vec![sample; 2],
            ..Window::default()
        };
        run.windows.extend((0..9).map(window));
    }
}

pub(crate) fn on(branch: &str) -> Label {
    Label {
        branch: Some(branch.to_owned()),
        ..Label::default()
    }
}

fn named(name: &str) -> Label {
    Label {
        name: Some(name.to_owned()),
        ..Label::default()
    }
}

/// What any store does, wherever it is.
pub(super) fn behaves(open: &dyn Fn(Access) -> Result<Store, StoreError>) {
    let missing = open(Access::Read).err().unwrap();
    assert!(matches!(missing, StoreError::Missing(_)), "{missing}");
    let mut store = open(Access::Write).unwrap();
    assert_eq!(store.list().unwrap(), []);
    let (first, second) = (run(2, 110.0, 100.0), run(1, 120.0, 100.0));
    assert_eq!(store.keep(&first, &on("main")).unwrap(), Added::New(1));
    assert_eq!(store.keep(&second, &named("base")).unwrap(), Added::New(2));
    // The same run a second time.
    assert_eq!(store.keep(&first, &Label::default()).unwrap(), Added::Already(1));
    drop(store);

    let mut store = open(Access::Read).unwrap();
    let kept = store.list().unwrap();
    // By their start, not by when they were kept.
    assert_eq!(kept.iter().map(|run| run.id).collect::<Vec<_>>(), [1, 2]);
    assert_eq!(kept[0].label, on("main"));
    assert_eq!(kept[1].label, named("base"));
    let wanted = Kept {
        id: 1,
        ..Kept::of(&first, &on("main")).unwrap()
    };
    assert_eq!(kept[0], wanted);
    assert_eq!(store.result(1).unwrap(), first);
    assert_eq!(store.result(2).unwrap(), second);
    assert!(matches!(store.result(3), Err(StoreError::Gone(3))));
    assert!(
        store.keep(&run(3, 1.0, 1.0), &Label::default()).is_err(),
        "it is open to read"
    );
}

/// Which runs stay, by their numbers.
pub(super) fn prunes(store: &mut Store) {
    for day in [4, 3, 5, 1, 2] {
        let label = if day == 2 { named("base") } else { on("main") };
        store.keep(&run(day, 110.0, 100.0), &label).unwrap();
    }
    let days = |store: &mut Store| {
        let kept = store.list().unwrap();
        kept.iter().map(|run| run.started[9..10].to_owned()).collect::<String>()
    };
    assert_eq!((store.prune(5).unwrap(), days(store)), (0, "54321".to_owned()));
    assert_eq!((store.prune(2).unwrap(), days(store)), (2, "542".to_owned()));
    assert_eq!((store.prune(0).unwrap(), days(store)), (2, "2".to_owned()));
    // A number means one run for ever.
    assert_eq!(store.keep(&run(6, 110.0, 100.0), &on("main")).unwrap(), Added::New(6));
    // One that has a name goes when it is meant itself.
    assert_eq!(store.kept(5).unwrap().unwrap().label, named("base"));
    assert_eq!((store.delete(5).unwrap(), days(store)), (true, "6".to_owned()));
    assert_eq!((store.kept(5).unwrap(), store.delete(5).unwrap()), (None, false));
}

#[test]
fn the_oldest_go_and_give_their_room_back() {
    let folder = tempfile::tempdir().unwrap();
    let place = file(&folder);
    let mut store = Store::open(&place, Access::Write).unwrap();
    let mut large = run(9, 110.0, 100.0);
    large.profile = "x".repeat(1 << 20);
    store.keep(&large, &Label::default()).unwrap();
    let size = || std::fs::metadata(path(&place)).unwrap().len();
    assert!(size() > 1 << 20);
    assert_eq!(store.prune(0).unwrap(), 1);
    assert!(size() < 1 << 17, "{}", size());
    drop(store);
    let other = Place::File(folder.path().join("other.sqlite"));
    prunes(&mut Store::open(&other, Access::Write).unwrap());
}

fn file(folder: &tempfile::TempDir) -> Place {
    Place::File(folder.path().join("new folder/lab.sqlite"))
}

fn path(place: &Place) -> PathBuf {
    PathBuf::from(place.to_string())
}

#[test]
fn a_file_keeps_runs_for_its_user_alone() {
    let folder = tempfile::tempdir().unwrap();
    let place = file(&folder);
    behaves(&|access| Store::open(&place, access));
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path(&place)), 0o600);
    assert_eq!(mode(path(&place).parent().unwrap()), 0o700);
}

#[test]
fn many_write_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let place = file(&folder);
    std::thread::scope(|scope| {
        for day in 1..=8 {
            let place = &place;
            scope.spawn(move || {
                let mut store = Store::open(place, Access::Write).unwrap();
                store.keep(&run(day, 110.0, 100.0), &Label::default()).unwrap();
            });
        }
    });
    let kept = Store::open(&place, Access::Read).unwrap().list().unwrap();
    let starts: Vec<String> = kept.iter().map(|run| run.started[8..10].to_owned()).collect();
    assert_eq!(starts, ["08", "07", "06", "05", "04", "03", "02", "01"]);
}

#[test]
fn what_is_not_ours_is_refused_and_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let place = file(&folder);
    let refused = |wanted: &str| {
        let before = std::fs::read(path(&place)).unwrap();
        for access in [Access::Read, Access::Write] {
            let error = Store::open(&place, access).err().unwrap().to_string();
            assert!(error.contains(wanted), "{error}");
        }
        assert_eq!(std::fs::read(path(&place)).unwrap(), before);
    };
    drop(Store::open(&place, Access::Write).unwrap());
    let connection = || rusqlite::Connection::open(path(&place)).unwrap();
    connection().pragma_update(None, "user_version", SCHEMA + 1).unwrap();
    refused("use the newer sealway");
    connection().pragma_update(None, "application_id", 7).unwrap();
    refused("something else");
    let pipe = folder.path().join("socket");
    let _socket = std::os::unix::net::UnixListener::bind(&pipe).unwrap();
    for access in [Access::Read, Access::Write] {
        for wrong in [pipe.as_path(), folder.path(), Path::new("/dev/null")] {
            let error = Store::open(&Place::File(wrong.to_owned()), access).err().unwrap();
            assert!(matches!(error, StoreError::NoFile(_)), "{error}");
        }
    }
    std::fs::write(
        path(&place),
        "a text of some length that is no database at all".repeat(20),
    )
    .unwrap();
    refused("something else");
}

#[test]
fn a_writer_that_died_does_not_keep_readers_out() {
    let folder = tempfile::tempdir().unwrap();
    let place = file(&folder);
    let mut store = Store::open(&place, Access::Write).unwrap();
    store.keep(&run(1, 110.0, 100.0), &Label::default()).unwrap();
    drop(store);
    // What is on the disk when a process dies in the middle of a transaction: pages written, and a journal to take them back.
    let connection = rusqlite::Connection::open(path(&place)).unwrap();
    connection
        .execute_batch("PRAGMA cache_spill = 1; PRAGMA cache_size = 1; BEGIN IMMEDIATE")
        .unwrap();
    let big = "UPDATE run SET result = randomblob(200000), name = 'half'";
    connection.execute_batch(big).unwrap();
    let copy = Place::File(folder.path().join("copy.sqlite"));
    for suffix in ["", "-journal"] {
        std::fs::copy(format!("{place}{suffix}"), format!("{copy}{suffix}")).unwrap();
    }
    assert_ne!(std::fs::read(path(&copy)).unwrap().len(), 0);
    let mut store = Store::open(&copy, Access::Read).unwrap();
    assert_eq!(store.list().unwrap()[0].label, Label::default());
    assert_eq!(store.result(1).unwrap(), run(1, 110.0, 100.0));
}

#[test]
fn what_is_no_result_is_not_kept() {
    let label = Label::default();
    let changes: [(fn(&mut RunResult), &str); 4] = [
        (|run| run.results.clear(), "no figures"),
        (|run| run.run = "../../x".into(), "`run`"),
        (|run| run.run.clear(), "`run`"),
        (|run| run.started = "yesterday".into(), "`started`"),
    ];
    for (change, why) in changes {
        let mut wrong = run(1, 110.0, 100.0);
        change(&mut wrong);
        let error = Kept::of(&wrong, &label).unwrap_err();
        assert!(error.contains(why), "{error}");
    }
    let mut hostile = run(1, 110.0, 100.0);
    hostile.machine.cpu = format!("\u{1b}[31m\0{}", "x".repeat(1000));
    let kept = Kept::of(&hostile, &named("\u{202e}a\n")).unwrap();
    assert!(kept.cpu.chars().count() == 200 && !kept.cpu.contains(['\u{1b}', '\0']));
    assert_eq!(kept.label.name.as_deref(), Some("\u{fffd}a "));
}

#[test]
fn a_word_means_the_newest_run_that_it_can() {
    let kept = |id: i64, label: Label| Kept {
        id,
        ..Kept::of(&run(id as u32, 110.0, 100.0), &label).unwrap()
    };
    let mut runs = vec![
        kept(5, on("work")),
        kept(4, on("main")),
        kept(3, on("main")),
        kept(2, named("base")),
        kept(1, on("main")),
    ];
    let id = |runs: &[Kept], word: &str, beside: Option<&Kept>| find(runs, word, beside).map(|run| run.id);
    for (word, wanted) in [
        ("last", 5),
        ("3", 3),
        ("00000002", 2),
        ("00000004-aaaa", 4),
        ("base", 2),
        ("main", 4),
    ] {
        assert_eq!(id(&runs, word, None), Ok(wanted), "{word}");
    }
    for word in ["9", "master", "", "0000000f", "0000"] {
        assert_eq!(id(&runs, word, None), Err(FindError::Nothing(word.to_owned())));
    }
    runs[4].run = runs[3].run.clone();
    assert_eq!(
        id(&runs, "00000002", None),
        Err(FindError::Several("00000002".to_owned()))
    );

    // Beside another: not itself, of the same workloads, whole, and of the same machine rather than of another.
    let newest = runs[1].clone();
    assert_eq!(id(&runs, "last", Some(&newest)), Ok(5));
    assert_eq!(id(&runs, "main", Some(&newest)), Ok(3));
    runs[2].machine = "m2".into();
    assert_eq!(id(&runs, "main", Some(&newest)), Ok(1));
    runs[4].complete = false;
    assert_eq!(id(&runs, "main", Some(&newest)), Ok(3));
    runs[2].workloads = "flows".into();
    let error = find(&runs, "main", Some(&newest)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "main: no other whole run of it has measured primitives"
    );
    // What means one run only means it beside any.
    assert_eq!(id(&runs, "3", Some(&newest)), Ok(3));
    assert!(is_exact("3") && is_exact("00000003") && !is_exact("main") && !is_exact("last") && !is_exact(""));
}

#[test]
fn the_store_is_the_one_asked_for_then_that_of_the_environment_then_that_of_the_user() {
    let with = |asked: Option<&str>, variables: &[(&str, &str)]| {
        let variable = |name: &str| {
            let found = variables.iter().find(|(known, _)| *known == name);
            found.map(|(_, value)| OsString::from(value))
        };
        place(asked, variable).map(|place| place.map(|place| place.to_string()))
    };
    let home = ("HOME", "/home/u");
    let user = Some("/home/u/.local/share/sealway/lab.sqlite");
    let data = ("XDG_DATA_HOME", "/data");
    for (asked, variables, wanted) in [
        (None, &[home][..], user),
        (None, &[home, (VARIABLE, "")], user),
        (None, &[home, ("XDG_DATA_HOME", "data")], user),
        (None, &[home, data], Some("/data/sealway/lab.sqlite")),
        (None, &[home, (VARIABLE, "a.sqlite")], Some("a.sqlite")),
        (None, &[home, (VARIABLE, "none")], None),
        (Some("b"), &[home, (VARIABLE, "none")], Some("b")),
        (None, &[], None),
    ] {
        assert_eq!(with(asked, variables).unwrap().as_deref(), wanted, "{variables:?}");
    }
    let server = Place::parse("postgres://u:secret@host/db");
    assert!(matches!(server, Ok(Place::Postgres(_))));
    for wrong in [
        "",
        "mysql://u:secret@host/db",
        "://secret",
        "postgres://u:secret@host:port/db",
        "postgres:/u:secret@host/db",
        "postgresql:u:secret@host/db",
        "Postgres:/u:secret@host/db",
        "POSTGRES://u:secret@host/db",
        " postgres:/u:secret@host/db",
    ] {
        let error = with(Some(wrong), &[]).unwrap_err();
        assert!(error.is_usage() && !error.to_string().contains("secret"), "{error}");
    }
}

#[test]
fn the_list_fits_its_width_and_does_nothing_to_a_terminal() {
    let mut first = Kept::of(&run(1, 110.0, 100.0), &on("main")).unwrap();
    first.id = 12;
    first.label.commit = Some("0123456789abcdef".into());
    let mut second = first.clone();
    second.complete = false;
    second.label.branch = Some("\u{1b}[2Jx-very-long-name-of-a-branch".into());
    let text = render(&[first, second], &Style::default());
    let wanted = "\
run  started (UTC)     workload    profile    branch                commit    pr
12   2021-01-01 03:04  primitives  standard   main                  01234567  So
12   2021-01-01 03:04  primitives  standard*  ?[2Jx-very-long-na..  01234567  So

* cut short
";
    assert_eq!(text, wanted);
}
