//! Peers that meet by a code: croc and magic-wormhole, with their own servers on 127.0.0.1.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use super::super::processes::{Ends, Moved, Processes, Role, free_ports};
use super::super::source::Shape;
use super::super::spec::{Spec, Way};
use super::{Job, Mover, on_path, subject};
use crate::peer::program::{INSTALLER, says, version_of};
use crate::result::Subject;
use crate::run::CellError;

pub(super) const CROC: &str = "croc";
pub(super) const WORMHOLE: &str = "wormhole";

/// What sets croc's servers up to tell others what they do.
const CROC_REPORTS: [&str; 4] = ["UMAMI_URL", "UMAMI_WEBSITE_ID", "UMAMI_SRC", "SITE_URL"];

struct Croc {
    program: PathBuf,
}

pub(super) fn croc() -> Result<(Subject, Rc<dyn Mover>), String> {
    let program = on_path(CROC)?;
    let about = subject(
        CROC,
        &program,
        version_of("croc ", &program, Command::new(&program).arg("--version"))?,
        &[
            ("relay", "croc relay --host 127.0.0.1 --ports PORTS"),
            ("sender", "croc --yes --quiet --relay ADDR send --no-local PATH"),
            (
                "receiver",
                "croc --yes --quiet --relay ADDR --ip ADDR --overwrite --out DIR",
            ),
        ],
        &[
            "through a relay of its own on this machine, whose cost is that of the relay; no discovery",
            "it compares a hash of each file before and after, within the time",
            "the receiver starts once the sender has reached the relay",
            "as its makers build it, it asks the name server for their relay each time it starts",
        ],
    );
    Ok((about, Rc::new(Croc { program })))
}

impl Croc {
    fn command(&self, folder: &Path, secret: &str) -> Command {
        let mut command = Command::new(&self.program);
        command
            .env("HOME", folder)
            .env("XDG_CONFIG_HOME", folder)
            .env("CROC_SECRET", secret);
        for variable in CROC_REPORTS {
            command.env_remove(variable);
        }
        command
    }
}

impl Mover for Croc {
    fn name(&self) -> &'static str {
        CROC
    }

    fn can(&self, spec: &Spec) -> bool {
        can(spec)
    }

    fn over_links(&self) -> bool {
        false
    }

    fn go(&self, job: &Job<'_>) -> Result<Moved, CellError> {
        let ports = free_ports::<5>()?;
        let secret = code(ports[0])?;
        let mut processes = Processes::new(job.folder, job.patience);
        let list = ports.map(|port| port.to_string()).join(",");
        let mut relay = self.command(job.folder, &secret);
        relay.args(["relay", "--host", "127.0.0.1", "--ports", &list]);
        let relay = processes.start(Role::Relay, Ends::Never, &mut relay)?;
        for port in ports {
            processes.listening(relay, port)?;
        }
        let address = format!("127.0.0.1:{}", ports[0]);
        let end = || {
            let mut command = self.command(job.folder, &secret);
            command.args(["--yes", "--quiet", "--ignore-stdin", "--disable-clipboard"]);
            command.args(["--relay", &address, "--relay6", ""]);
            command
        };
        let started = processes.clock();
        let sender = processes.start(
            Role::Sender,
            Ends::Alone,
            end().args(["send", "--no-local"]).arg(job.source.path()),
        )?;
        processes.connected(sender, ports[0])?;
        let mut receive = end();
        // With an address given it does not look for senders in the network.
        receive.args(["--ip", &address, "--overwrite", "--out"]).arg(job.to);
        let receiver = processes.start(Role::Receiver, Ends::Alone, &mut receive)?;
        processes.finish(started, receiver, job.watched())
    }
}

struct Wormhole {
    program: PathBuf,
    /// The program that runs its two servers.
    servers: PathBuf,
}

pub(super) fn wormhole() -> Result<(Subject, Rc<dyn Mover>), String> {
    let program = on_path(WORMHOLE)?;
    let real = program.canonicalize().map_err(|error| error.to_string())?;
    let servers = real.with_file_name("twistd");
    let known = says(Command::new(&servers).arg("--help")).unwrap_or_default();
    for server in ["wormhole-mailbox", "transitrelay"] {
        if !known.contains(server) {
            return Err(format!(
                "its server {server} is not beside it, and nothing here leaves this machine: {INSTALLER} gets all three"
            ));
        }
    }
    let about = subject(
        WORMHOLE,
        &program,
        version_of("magic-wormhole ", &program, Command::new(&program).arg("--version"))?,
        &[
            (
                "relay",
                "twistd --nodaemon wormhole-mailbox; twistd --nodaemon transitrelay",
            ),
            (
                "sender",
                "wormhole --relay-url URL --transit-helper ADDR send --no-listen --code CODE PATH",
            ),
            (
                "receiver",
                "wormhole --relay-url URL --transit-helper ADDR receive --no-listen --accept-file CODE",
            ),
        ],
        &[
            "through its mailbox and its transit relay on this machine: ends that listen would do so at all addresses",
            "XSalsa20-Poly1305; folders travel as one zip file",
        ],
    );
    Ok((about, Rc::new(Wormhole { program, servers })))
}

impl Mover for Wormhole {
    fn name(&self) -> &'static str {
        WORMHOLE
    }

    fn can(&self, spec: &Spec) -> bool {
        can(spec)
    }

    fn start_up(&self) -> Duration {
        Duration::from_secs(3)
    }

    fn over_links(&self) -> bool {
        false
    }

    fn go(&self, job: &Job<'_>) -> Result<Moved, CellError> {
        let [mailbox, transit] = free_ports::<2>()?;
        let code = code(mailbox)?;
        let mut processes = Processes::new(job.folder, job.patience);
        let endpoint = |port: u16| format!("--port=tcp:{port}:interface=127.0.0.1");
        for (service, port) in [("wormhole-mailbox", mailbox), ("transitrelay", transit)] {
            let mut server = Command::new(&self.servers);
            server
                .args(["--nodaemon", "--pidfile=", service, &endpoint(port)])
                .env("HOME", job.folder);
            let server = processes.start(Role::Relay, Ends::Never, &mut server)?;
            processes.listening(server, port)?;
        }
        let end = |word: &str| {
            let mut command = Command::new(&self.program);
            command.env("HOME", job.folder);
            command.args(["--relay-url", &format!("ws://127.0.0.1:{mailbox}/v1")]);
            command.args(["--transit-helper", &format!("tcp:127.0.0.1:{transit}")]);
            command.args([word, "--no-listen", "--hide-progress"]);
            command
        };
        let started = processes.clock();
        let mut send = end("send");
        processes.start(
            Role::Sender,
            Ends::Alone,
            send.args(["--code", &code]).arg(job.source.path()),
        )?;
        let mut receive = end("receive");
        receive.args(["--accept-file", "-o"]).arg(job.to).arg(&code);
        let receiver = processes.start(Role::Receiver, Ends::Alone, &mut receive)?;
        processes.finish(started, receiver, job.watched())
    }
}

/// Whether they can do a case. They have one cipher each, and take seconds to start: the file by which ciphers are compared says
/// nothing of them.
fn can(spec: &Spec) -> bool {
    spec.way == Way::Send && spec.suite.is_none() && spec.shape != Shape::Hundred
}

/// A code that nobody has used: a number, and two words of which croc wants at least six letters together.
fn code(number: u16) -> Result<String, CellError> {
    let secret =
        crate::run::run_id().map_err(|error| CellError::failed(format_args!("cannot draw a code: {error}")))?;
    Ok(format!("{number}-{}", secret.replace('-', "")))
}
