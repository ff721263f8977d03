//! A lab whose peer never gets ready, and that is stopped or killed meanwhile.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::common::sealway;

/// Long enough for anything here on a busy machine.
const AMPLE: Duration = Duration::from_secs(60);

/// A program in the place of xray that starts a child and never listens.
const PEER: &str = "\
#!/bin/sh
case $1 in
-version) exit 2 ;;
version) echo Xray 26.3.27 test ;;
*) sleep 200 & echo $$ $! > \"$0.pids.new\"; mv \"$0.pids.new\" \"$0.pids\"; wait ;;
esac
";

struct Lab {
    child: Child,
    folder: tempfile::TempDir,
    pids: Vec<String>,
}

impl Lab {
    /// One that waits for its peer to listen.
    fn waiting() -> Lab {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("xray");
        // Another process writes it: a file that is open for writing anywhere cannot be started.
        let written = Command::new("/bin/sh")
            .args([
                "-c",
                "printf %s \"$2\" > \"$1\" && chmod 755 \"$1\" && mkdir \"$3\"",
                "sh",
            ])
            .args([path.as_os_str(), PEER.as_ref(), private(folder.path()).as_os_str()])
            .status()
            .unwrap();
        assert!(written.success());
        let child = sealway(&[
            "lab",
            "transports",
            "--quick",
            "--peers",
            "xray",
            "--stack",
            "vless-tcp",
        ])
        .env("PATH", format!("{}:/usr/bin:/bin", folder.path().display()))
        .env("TMPDIR", private(folder.path()))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
        let note = folder.path().join("xray.pids");
        let from = Instant::now();
        while !note.exists() {
            assert!(from.elapsed() < AMPLE, "the peer was not started");
            std::thread::sleep(Duration::from_millis(5));
        }
        let pids = fs::read_to_string(note).unwrap();
        let pids: Vec<String> = pids.split_whitespace().map(str::to_owned).collect();
        assert!(pids.len() == 2 && pids.iter().all(|pid| runs(pid)), "{pids:?}");
        Lab { child, folder, pids }
    }

    fn signal(&self, signal: &str) {
        let mut kill = Command::new("kill");
        kill.args([signal, &self.child.id().to_string()]);
        assert!(kill.status().unwrap().success());
    }

    /// Nothing of the lab is left within a while.
    fn leaves_nothing(&self) {
        let from = Instant::now();
        let left = || {
            let pids = self.pids.iter().filter(|pid| runs(pid)).cloned();
            let names = fs::read_dir(private(self.folder.path())).unwrap();
            let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
            pids.chain(names).collect::<Vec<_>>()
        };
        while !left().is_empty() && from.elapsed() < AMPLE {
            std::thread::sleep(Duration::from_millis(5));
        }
        assert_eq!(left(), [""; 0]);
    }
}

/// Where its private folders go.
fn private(folder: &Path) -> PathBuf {
    folder.join("private folders")
}

fn runs(pid: &str) -> bool {
    fs::read_to_string(format!("/proc/{pid}/stat"))
        .is_ok_and(|stat| !stat.rsplit(')').next().unwrap().trim_start().starts_with(['Z', 'X']))
}

#[test]
fn a_lab_that_is_killed_leaves_no_program_and_no_folder() {
    let mut lab = Lab::waiting();
    assert_ne!(fs::read_dir(private(lab.folder.path())).unwrap().count(), 0);
    lab.signal("-KILL");
    lab.child.wait().unwrap();
    lab.leaves_nothing();
}

#[test]
fn the_first_interrupt_ends_the_wait_for_a_program() {
    let mut lab = Lab::waiting();
    lab.signal("-INT");
    let mut said = String::new();
    lab.child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(lab.child.wait().unwrap().code(), Some(130), "{said}");
    // Nobody waited until the peer's time was up, and nobody says that it has failed.
    assert!(!said.contains("did not listen") && !said.contains("leaving"), "{said}");
    lab.leaves_nothing();
}
