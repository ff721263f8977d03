//! Peers that fail, programs that are killed, mounts that die.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::FileExt;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;
use std::time::Duration;

use rustix::io::Errno;
use sealway_drop_mount::fuse::{Mount, MountError, MountOptions};
use sealway_drop_mount::tree::MemoryTree;

use super::faulty::Faulty;
use super::sharing::{assert_not_mounted, umount};
use super::support::can_mount;
use super::{Mounted, path, until};
use sealway_drop::testing::content;

fn one_file() -> Arc<Faulty<MemoryTree>> {
    let tree = MemoryTree::new();
    tree.put_file(&path("file"), content(8 << 20, 1));
    tree.put_file(&path("other"), "other");
    Faulty::new(tree)
}

/// Whose answers are waited for as long as it takes.
fn patient() -> MountOptions {
    MountOptions {
        timeout: Duration::from_secs(86_400),
        ..MountOptions::default()
    }
}

fn errno<T>(result: std::io::Result<T>) -> Errno {
    match result {
        Ok(_) => panic!("should have failed"),
        Err(error) => Errno::from_io_error(&error).unwrap(),
    }
}

fn read_all(mut file: &File) -> std::io::Result<usize> {
    let mut buffer = Vec::new();
    file.read_to_end(&mut buffer)
}

#[test]
fn a_peer_that_fails_or_answers_short_gives_an_error_and_never_less() {
    for short in [false, true] {
        let tree = one_file();
        let Some(mounted) = Mounted::new(tree.clone(), MountOptions::default()) else {
            return;
        };
        let file = File::open(mounted.at("file")).unwrap();
        let mut start = vec![0; 100_000];
        file.read_exact_at(&mut start, 0).unwrap();
        let switch = if short { &tree.short_reads } else { &tree.fail_reads };
        switch.store(true, SeqCst);
        let mut far = vec![0; 1_000_000];
        assert_eq!(errno(file.read_at(&mut far, 7 << 20)), Errno::IO);
        assert_eq!(errno(read_all(&file)), Errno::IO);
        switch.store(false, SeqCst);
        assert_eq!(fs::read(mounted.at("file")).unwrap(), content(8 << 20, 1));
    }
}

#[test]
fn a_peer_that_does_not_answer_gives_a_timeout() {
    let tree = one_file();
    let options = MountOptions {
        timeout: Duration::from_millis(300),
        ..MountOptions::default()
    };
    let Some(mounted) = Mounted::new(tree.clone(), options) else {
        return;
    };
    let file = File::open(mounted.at("file")).unwrap();
    tree.hold_reads.store(true, SeqCst);
    let mut buffer = [0; 100];
    // The page cache turns what a read of pages says into "I/O error" on some kernels.
    assert!([Errno::TIMEDOUT, Errno::IO].contains(&errno(file.read_at(&mut buffer, 0))));
    tree.hold_calls.store(true, SeqCst);
    assert_eq!(errno(fs::metadata(mounted.at("other"))), Errno::TIMEDOUT);
    tree.hold_calls.store(false, SeqCst);
    tree.release();
    assert!(fs::metadata(mounted.at("other")).is_ok());
}

#[test]
fn after_the_connection_is_lost_everything_fails_at_once() {
    let tree = one_file();
    let options = MountOptions {
        ttl: Duration::ZERO,
        ..patient()
    };
    let Some(mounted) = Mounted::new(tree.clone(), options) else {
        return;
    };
    let file = File::open(mounted.at("file")).unwrap();
    tree.dead.store(true, SeqCst);
    tree.hold_calls.store(true, SeqCst);
    tree.hold_reads.store(true, SeqCst);
    assert_eq!(errno(file.read_at(&mut [0; 100], 1 << 20)), Errno::IO);
    assert_eq!(errno(fs::metadata(mounted.at("other"))), Errno::IO);
    let listed = fs::read_dir(mounted.path()).and_then(|names| names.collect::<Result<Vec<_>, _>>());
    assert_eq!(errno(listed), Errno::IO);
}

#[test]
fn slow_reads_hold_up_neither_names_nor_the_end() {
    let tree = one_file();
    let Some(mut mounted) = Mounted::new(tree.clone(), patient()) else {
        return;
    };
    tree.hold_reads.store(true, SeqCst);
    let readers: Vec<_> = (0..12_u64)
        .map(|i| {
            let file = File::open(mounted.at("file")).unwrap();
            std::thread::spawn(move || errno(file.read_at(&mut [0; 4096], i * 600_000)))
        })
        .collect();
    until("twelve reads", || tree.held() >= 12);
    assert_eq!(fs::metadata(mounted.at("other")).unwrap().len(), 5);
    assert_eq!(fs::read_dir(mounted.path()).unwrap().count(), 2);
    mounted.mount.take().unwrap().unmount().unwrap();
    for reader in readers {
        let error = reader.join().unwrap();
        assert!(
            [Errno::IO, Errno::NOTCONN, Errno::CONNABORTED].contains(&error),
            "{error}"
        );
    }
    assert_not_mounted(mounted.path());
}

#[test]
fn killed_programs_end_although_the_peer_says_nothing() {
    let tree = one_file();
    let Some(mounted) = Mounted::new(tree.clone(), patient()) else {
        return;
    };
    let cat = |name| {
        Command::new("cat")
            .arg(mounted.at(name))
            .stdout(Stdio::null())
            .spawn()
            .unwrap()
    };
    tree.hold_reads.store(true, SeqCst);
    let mut reader = cat("file");
    until("a read", || tree.held() > 0);
    kill(&mut reader);
    until("calling off the read", || tree.cancelled() > 0);
    tree.hold_calls.store(true, SeqCst);
    let mut opener = cat("other");
    until("a waiting program", || is_waiting(opener.id()));
    kill(&mut opener);
    // A signal that a program could handle as well. Not SIGINT: whoever runs the tests in the background has it ignored.
    let mut opener = cat("other");
    until("a waiting program", || is_waiting(opener.id()));
    let id = rustix::process::Pid::from_child(&opener);
    rustix::process::kill_process(id, rustix::process::Signal::TERM).unwrap();
    until("the end", || opener.try_wait().unwrap().is_some());
    tree.hold_calls.store(false, SeqCst);
    tree.release();
    assert_eq!(fs::read(mounted.at("other")).unwrap(), b"other");
}

fn kill(child: &mut Child) {
    child.kill().unwrap();
    until("the end of a killed program", || child.try_wait().unwrap().is_some());
}

/// Whether a process waits in the kernel's part of FUSE.
fn is_waiting(id: u32) -> bool {
    let where_ = fs::read_to_string(format!("/proc/{id}/wchan")).unwrap_or_default();
    let state = fs::read_to_string(format!("/proc/{id}/stat")).unwrap_or_default();
    let name = fs::read_to_string(format!("/proc/{id}/comm")).unwrap_or_default();
    name.trim() == "cat" && (where_.contains("fuse") || where_.contains("request_wait") || state.contains(") D "))
}

#[test]
fn a_mount_whose_server_died_is_taken_away() {
    if !can_mount() {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let mut server = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "failures::serve_until_killed", "--nocapture"])
        .env("MOUNT_TEST_DIR", dir.path())
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    until("the mount", || {
        fs::read(dir.path().join("other")).is_ok_and(|text| text == b"other")
    });
    // Held open, so that the mount cannot end with its server.
    let _held = File::open(dir.path().join("other")).unwrap();
    kill(&mut server);
    until("the dead mount", || {
        fs::metadata(dir.path()).is_err_and(|e| Errno::from_io_error(&e) == Some(Errno::NOTCONN))
    });
    let mount = Mount::start(one_file(), dir.path(), MountOptions::default()).unwrap();
    assert_eq!(fs::read(dir.path().join("other")).unwrap(), b"other");
    // A living mount is not taken away, and not covered by accident.
    let second = Mount::start(one_file(), dir.path(), MountOptions::default());
    assert!(matches!(second, Err(MountError::NotEmpty(_))));
    mount.unmount().unwrap();
    assert_not_mounted(dir.path());
}

/// The server of the test above; does nothing when run as a test.
#[test]
fn serve_until_killed() {
    if let Some(dir) = std::env::var_os("MOUNT_TEST_DIR") {
        let mount = Mount::start(one_file(), dir.as_ref(), MountOptions::default()).unwrap();
        mount.wait().unwrap();
    }
}

#[test]
fn a_mount_ends_by_drop_by_another_hand_and_from_outside() {
    let tree = one_file();
    let Some(mut mounted) = Mounted::new(tree.clone(), MountOptions::default()) else {
        return;
    };
    assert_eq!(fs::read_dir(mounted.path()).unwrap().count(), 2);
    drop(mounted.mount.take());
    assert_not_mounted(mounted.path());

    let mount = Mount::start(tree.clone(), mounted.path(), MountOptions::default()).unwrap();
    let hand = mount.unmounter();
    let waiting = std::thread::spawn(move || mount.wait());
    hand.unmount().unwrap();
    waiting.join().unwrap().unwrap();
    assert_not_mounted(mounted.path());

    let mount = Mount::start(tree, mounted.path(), MountOptions::default()).unwrap();
    umount(mounted.path());
    mount.wait().unwrap();
    mount.unmount().unwrap();
}
