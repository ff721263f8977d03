//! A lab whose peer never gets ready, and that is stopped or killed meanwhile.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use rustix::process::Signal;

use crate::common::program::{Program, exists, write_program};
use crate::common::{sealway, until, words};

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
    program: Program,
    folder: tempfile::TempDir,
    pids: Vec<String>,
}

impl Lab {
    /// One that waits for its peer to listen.
    fn waiting() -> Lab {
        let folder = tempfile::tempdir().unwrap();
        write_program(folder.path(), "xray", PEER);
        fs::create_dir(private(folder.path())).unwrap();
        let mut command = sealway(&words("lab transports --quick --peers xray --stack vless-tcp"));
        command
            .env("PATH", format!("{}:/usr/bin:/bin", folder.path().display()))
            .env("TMPDIR", private(folder.path()));
        let program = Program::start(command.stdout(Stdio::null()).stderr(Stdio::piped()));
        let note = folder.path().join("xray.pids");
        until("the peer was not started", || note.exists());
        let pids = fs::read_to_string(note).unwrap();
        let pids: Vec<String> = pids.split_whitespace().map(str::to_owned).collect();
        assert!(pids.len() == 2 && pids.iter().all(|pid| exists(pid)), "{pids:?}");
        Lab { program, folder, pids }
    }

    /// Nothing of the lab is left within a while.
    fn leaves_nothing(&self) {
        until("a program is left", || !self.pids.iter().any(|pid| exists(pid)));
        let folders = || fs::read_dir(private(self.folder.path())).unwrap();
        until("a folder is left", || folders().next().is_none());
    }
}

/// Where its private folders go.
fn private(folder: &Path) -> PathBuf {
    folder.join("private folders")
}

#[test]
fn a_lab_that_is_killed_leaves_no_program_and_no_folder() {
    let mut lab = Lab::waiting();
    assert_ne!(fs::read_dir(private(lab.folder.path())).unwrap().count(), 0);
    lab.program.signal(Signal::KILL);
    lab.program.ended();
    lab.leaves_nothing();
}

#[test]
fn the_first_interrupt_ends_the_wait_for_a_program() {
    let mut lab = Lab::waiting();
    lab.program.signal(Signal::INT);
    let mut said = String::new();
    lab.program.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    assert_eq!(lab.program.ended().code(), Some(130), "{said}");
    // Nobody waited until the peer's time was up, and nobody says that it has failed.
    assert!(!said.contains("did not listen") && !said.contains("leaving"), "{said}");
    lab.leaves_nothing();
}
