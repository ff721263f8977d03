use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use super::*;

const PATIENCE: Duration = Duration::from_secs(20);

fn lost() -> Lost {
    Box::new(|n| Some(format!("{n} dropped")))
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap()
}

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn lines_come_whole_in_order_and_the_file_is_its_owners() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let sink = Sink::file(&path, lost()).unwrap();
    let other = sink.clone();
    for n in 0..1000 {
        sink.line(&format!("line {n}"));
    }
    other.line("forged\n2026/01/01 from 1.2.3.4 accepted \u{1b}[2J");
    assert!(sink.flush(PATIENCE));
    let mut wanted: Vec<_> = (0..1000).map(|n| format!("line {n}")).collect();
    wanted.push("forged\\n2026/01/01 from 1.2.3.4 accepted \\u{1b}[2J".into());
    assert_eq!(read(&path).lines().collect::<Vec<_>>(), wanted);
    assert_eq!(mode(&path), 0o600);
    // One that is there keeps the rights that somebody gave it.
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o640)).unwrap();
    let again = Sink::file(&path, lost()).unwrap();
    again.line("later");
    assert!(again.flush(PATIENCE));
    assert_eq!(mode(&path), 0o640);
    assert!(read(&path).ends_with("later\n"));
}

#[test]
fn a_log_that_was_moved_away_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let (path, moved) = (folder.path().join("log"), folder.path().join("log.1"));
    let sink = Sink::file(&path, lost()).unwrap();
    sink.line("old");
    assert!(sink.flush(PATIENCE));
    std::fs::rename(&path, &moved).unwrap();
    sink.line("still old");
    assert!(sink.flush(PATIENCE));
    reopen();
    sink.line("new");
    assert!(sink.flush(PATIENCE));
    assert_eq!(
        (read(&moved).as_str(), read(&path).as_str()),
        ("old\nstill old\n", "new\n")
    );
    assert_eq!(mode(&path), 0o600);
}

fn pipe(folder: &Path) -> PathBuf {
    let path = folder.join("pipe");
    assert!(Command::new("mkfifo").arg(&path).status().unwrap().success());
    path
}

#[test]
fn nobody_waits_for_a_pipe_that_nobody_reads_and_what_is_dropped_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = pipe(folder.path());
    // Nobody has it open, then somebody has and does not read, then everything is read.
    let sink = Sink::file(&path, lost()).unwrap();
    let line = "x".repeat(99);
    let total = 30_000u64;
    for _ in 0..total / 2 {
        sink.line(&line);
    }
    assert!(!sink.flush(Duration::from_millis(10)));
    let mut reader = OpenOptions::new().read(true).open(&path).unwrap();
    for _ in 0..total / 2 {
        sink.line(&line);
    }
    let dropped = sink.lost();
    assert!(dropped > 0);
    assert!(!sink.flush(Duration::from_millis(10)));
    let all = std::thread::spawn(move || {
        let mut all = String::new();
        reader.read_to_string(&mut all).unwrap();
        all
    });
    assert!(sink.flush(PATIENCE));
    drop(sink);
    let all = all.join().unwrap();
    let written = all.lines().filter(|one| *one == line).count() as u64;
    let said: u64 = all
        .lines()
        .filter_map(|one| one.strip_suffix(" dropped")?.parse::<u64>().ok())
        .sum();
    assert!(said >= dropped);
    assert_eq!(written + said, total);
}

#[test]
fn lines_that_cannot_be_written_are_counted_and_said_later() {
    let folder = tempfile::tempdir().unwrap();
    let path = pipe(folder.path());
    let sink = Sink::file(&path, lost()).unwrap();
    drop(OpenOptions::new().read(true).open(&path).unwrap());
    // The reader has gone.
    for _ in 0..3 {
        sink.line("into the void");
    }
    assert!(!sink.flush(Duration::from_millis(300)));
    let mut reader = OpenOptions::new().read(true).open(&path).unwrap();
    sink.line("seen");
    assert!(sink.flush(PATIENCE));
    drop(sink);
    let mut all = String::new();
    reader.read_to_string(&mut all).unwrap();
    assert_eq!(all, "seen\n3 dropped\n");
}

/// Lines of ten bytes each, written one at a time.
fn lines(sink: &Sink, numbers: std::ops::Range<u32>) {
    for n in numbers {
        sink.line(&format!("line {n:04}"));
        assert!(sink.flush(PATIENCE));
    }
}

#[test]
fn a_large_file_is_begun_anew_and_so_many_are_kept() {
    for keep in [0, 1, 3] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("log");
        let rotation = Rotation { max_bytes: 35, keep };
        let sink = Sink::rotated(&path, Some(rotation), lost()).unwrap();
        lines(&sink, 0..17);
        // Three lines a file.
        let mut files: Vec<_> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        assert_eq!(files.len(), usize::from(keep) + 1, "{files:?}");
        assert_eq!(read(&path), "line 0015\nline 0016\n");
        for (at, file) in files.iter().enumerate().skip(1) {
            let first = 15 - 3 * at;
            assert_eq!(
                read(file),
                (first..first + 3).map(|n| format!("line {n:04}\n")).collect::<String>()
            );
            assert_eq!(mode(file), 0o600);
        }
    }
}

#[test]
fn of_a_link_what_it_leads_to_is_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    let (link, path) = (folder.path().join("link"), folder.path().join("log"));
    std::os::unix::fs::symlink("log", &link).unwrap();
    let sink = Sink::rotated(&link, Some(Rotation { max_bytes: 35, keep: 1 }), lost()).unwrap();
    lines(&sink, 0..8);
    assert_eq!(read(&path), "line 0006\nline 0007\n");
    assert_eq!(read(&folder.path().join("log.1")).len(), 30);
    assert!(link.is_symlink());
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 3);
}

#[test]
fn two_logs_of_one_file_stay_in_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    let rotation = Some(Rotation { max_bytes: 35, keep: 9 });
    let sinks = [
        Sink::rotated(&path, rotation, lost()).unwrap(),
        Sink::rotated(&path, rotation, lost()).unwrap(),
    ];
    for n in 0..20 {
        lines(&sinks[n as usize % 2], n..n + 1);
    }
    let older = (1..=9).rev().map(|n| folder.path().join(format!("log.{n}")));
    let all: String = older
        .chain([path])
        .filter_map(|file| std::fs::read_to_string(file).ok())
        .collect();
    assert_eq!(all, (0..20).map(|n| format!("line {n:04}\n")).collect::<String>());
}

/// Waits until so many lines are known to be lost.
fn counts(sink: &Sink, lost: u64) {
    let until = Instant::now() + PATIENCE;
    while sink.lost() != lost {
        assert!(Instant::now() < until, "{}", sink.lost());
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn a_rotation_that_fails_loses_lines_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("log");
    // A folder with something in it is in the way.
    let way = folder.path().join("log.1");
    std::fs::create_dir(&way).unwrap();
    std::fs::write(way.join("x"), "").unwrap();
    let sink = Sink::rotated(&path, Some(Rotation { max_bytes: 35, keep: 1 }), lost()).unwrap();
    lines(&sink, 0..3);
    for n in 3..9 {
        sink.line(&format!("line {n:04}"));
        assert!(!sink.flush(Duration::from_millis(20)));
    }
    counts(&sink, 6);
    assert_eq!(read(&path).len(), 30);
    std::fs::remove_dir_all(&way).unwrap();
    lines(&sink, 9..10);
    assert_eq!(read(&path), "line 0009\n6 dropped\n");
    assert_eq!(read(&way).len(), 30);
}

#[test]
fn a_full_disk_loses_lines_and_nothing_else() {
    let sink = Sink::rotated(
        Path::new("/dev/full"),
        Some(Rotation { max_bytes: 35, keep: 1 }),
        lost(),
    )
    .unwrap();
    for n in 0..5 {
        sink.line(&format!("line {n}"));
        assert!(!sink.flush(Duration::from_millis(20)));
    }
    counts(&sink, 5);
    assert!(Path::new("/dev/full").exists() && !Path::new("/dev/full.1").exists());
}
