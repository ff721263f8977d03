//! Our own program: `send` and `receive`, `share` and `mount`.

use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use super::super::processes::{Ends, Moved, Processes, Role, free_ports, system};
use super::super::source::ITEM;
use super::super::spec::{Spec, Way};
use super::{Job, Mover, mounted, subject};
use crate::peer::program::says;
use crate::result::Subject;
use crate::run::CellError;

/// Our own subject.
const OURS: &str = "sealway";

/// The same gRPC service without the session beneath.
pub(super) const PLAIN: &str = "grpc-plain";

/// The program, and what it can do.
pub(super) struct Ours {
    name: &'static str,
    program: PathBuf,
    ways: BTreeSet<Way>,
    /// Word for `--via`.
    via: &'static str,
}

/// True if a command of the program knows all of these words.
fn knows(program: &Path, command: &str, words: &[&str]) -> bool {
    says(Command::new(program).args([command, "--help"])).is_ok_and(|help| words.iter().all(|word| help.contains(word)))
}

/// Looks at what this build of our program has. The subject says so where it has nothing.
pub(super) fn find(program: &Path) -> (Subject, Option<Ours>) {
    let mut ways = BTreeSet::new();
    if knows(program, "receive", &["--listen"]) && knows(program, "send", &["--connect"]) {
        ways.insert(Way::Send);
        if knows(program, "receive", &["--via"]) {
            ways.insert(Way::Grpc);
        }
    }
    if knows(program, "share", &["--listen"]) && knows(program, "mount", &["--connect"]) {
        ways.extend([Way::Read, Way::Random]);
    }
    let mut about = subject(
        OURS,
        program,
        crate::run::version(),
        &[
            ("receiver", "sealway receive --listen ADDR --output DIR --yes --quiet"),
            ("sender", "sealway send --connect ADDR --quiet PATH"),
        ],
        &["on one machine's loopback it asks for no code"],
    );
    if ways.is_empty() {
        about.error = "not in this build: it has no commands to send and receive".to_owned();
        return (about, None);
    }
    let mover = Ours {
        name: OURS,
        program: program.to_owned(),
        ways,
        via: "grpc",
    };
    (about, Some(mover))
}

/// The gRPC service over bare TCP: what the session costs is the difference.
pub(super) fn plain(program: &Path) -> Result<(Subject, Rc<dyn Mover>), String> {
    if !knows(program, "receive", &["--via", PLAIN]) {
        return Err("not in this build: it has no gRPC without a session".to_owned());
    }
    let about = subject(
        PLAIN,
        program,
        crate::run::version(),
        &[
            (
                "receiver",
                "sealway receive --via grpc-plain --listen ADDR --output DIR --yes --quiet",
            ),
            ("sender", "sealway send --via grpc-plain --connect ADDR --quiet PATH"),
        ],
        &["NOT ENCRYPTED: the gRPC service of sealway over bare TCP, as a baseline"],
    );
    let mover = Ours {
        name: PLAIN,
        program: program.to_owned(),
        ways: BTreeSet::from([Way::Grpc]),
        via: PLAIN,
    };
    Ok((about, Rc::new(mover)))
}

impl Ours {
    /// A command of the program with what both ends are told.
    fn command(&self, word: &str, job: &Job<'_>) -> Command {
        let spec = job.spec;
        let mut command = Command::new(&self.program);
        command.arg(word).arg("--quiet");
        // Keys and known peers of whoever measures are left alone.
        for variable in ["HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME"] {
            command.env(variable, job.folder);
        }
        command.env_remove("SEALWAY_CODE");
        if spec.way == Way::Grpc {
            command.args(["--via", self.via]);
        }
        if let Some(suite) = spec.suite {
            command.args(["--suite", suite.name()]);
        }
        command
    }

    fn send(&self, job: &Job<'_>) -> Result<Moved, CellError> {
        let [port] = free_ports()?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let mut processes = Processes::new(job.folder, job.patience);
        let mut receive = self.command("receive", job);
        receive
            .args(["--listen", &address.to_string(), "--yes", "--output"])
            .arg(job.to);
        let receiver = processes.start(Role::Receiver, Ends::Alone, &mut receive)?;
        processes.listening(receiver, port)?;
        let reached = job.reached(&mut processes, address)?.to_string();
        let started = processes.clock();
        let mut send = self.command("send", job);
        processes.start(
            Role::Sender,
            Ends::Alone,
            send.args(["--connect", &reached]).arg(job.source.path()),
        )?;
        processes.finish(started, receiver, job.watched())
    }

    fn mount(&self, job: &Job<'_>) -> Result<Moved, CellError> {
        let [port] = free_ports()?;
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let shared = job.source.path().parent().unwrap_or(Path::new("/"));
        let point = job.folder.join("mount");
        std::fs::create_dir(&point).map_err(system("make a mount point"))?;
        let mut processes = Processes::new(job.folder, job.patience);
        let mut share = self.command("share", job);
        let sender = processes.start(
            Role::Sender,
            Ends::Asked,
            share.arg(shared).args(["--listen", &address.to_string()]),
        )?;
        processes.listening(sender, port)?;
        let reached = job.reached(&mut processes, address)?.to_string();
        let mut mount = self.command("mount", job);
        let receiver = processes.start(
            Role::Receiver,
            Ends::Asked,
            mount.arg(&point).args(["--connect", &reached]),
        )?;
        processes.mounted(receiver, &point)?;
        mounted::read(processes, job, &point.join(ITEM))
    }
}

impl Mover for Ours {
    fn name(&self) -> &'static str {
        self.name
    }

    fn can(&self, spec: &Spec) -> bool {
        self.ways.contains(&spec.way)
    }

    fn go(&self, job: &Job<'_>) -> Result<Moved, CellError> {
        match job.spec.way {
            Way::Send | Way::Grpc => self.send(job),
            Way::Read | Way::Random => self.mount(job),
        }
    }
}
