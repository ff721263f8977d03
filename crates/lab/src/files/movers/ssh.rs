//! Peers over a remote shell on 127.0.0.1, with host key, user key and configuration made for one transfer: scp, rsync
//! through ssh; and rsync's own daemon, which encrypts nothing.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use sealway_aead::Suite;

use super::super::processes::{Ends, Moved, Processes, Role, free_ports, write};
use super::super::spec::{Spec, Way};
use super::{Job, Mover, on_path, subject};
use crate::peer::program::{says, version_of};
use crate::peer::{self, Folder};
use crate::result::Subject;
use crate::run::CellError;

pub(super) const SCP: &str = "scp";
pub(super) const RSYNC_SSH: &str = "rsync-ssh";
pub(super) const RSYNC: &str = "rsync-plain";

/// What is said where the server is missing: the installer leaves it out, for its package opens a port to everybody.
const NO_SERVER: &str =
    "not found: there is no sshd on PATH; apt-get install openssh-server gets it, and opens port 22";

/// How long keys may take to be made.
const PATIENCE: Duration = Duration::from_secs(30);

/// Programs of a remote shell.
#[derive(Clone)]
struct Shell {
    ssh: PathBuf,
    server: PathBuf,
    keygen: PathBuf,
}

struct Remote {
    name: &'static str,
    program: PathBuf,
    shell: Option<Shell>,
}

pub(super) fn find(name: &str) -> Result<(Subject, Rc<dyn Mover>), String> {
    let (name, program, argv, differs) = match name {
        SCP => (
            SCP,
            on_path("scp")?,
            [("sender", "scp -q -r PATH 127.0.0.1:DIR"), ("receiver", "sshd -D")],
            "the ssh of this machine with its own first choice, chacha20-poly1305, unless the case names a suite",
        ),
        RSYNC_SSH => (
            RSYNC_SSH,
            on_path("rsync")?,
            [
                ("sender", "rsync -r -W -e ssh PATH 127.0.0.1:DIR"),
                ("receiver", "sshd -D"),
            ],
            "the ssh of this machine with its own first choice, chacha20-poly1305, unless the case names a suite",
        ),
        _ => (
            RSYNC,
            on_path("rsync")?,
            [
                ("sender", "rsync -r -W PATH rsync://ADDR/to/"),
                ("receiver", "rsync --daemon"),
            ],
            "NOT ENCRYPTED: rsync's own protocol over bare TCP",
        ),
    };
    let shell = if name == RSYNC { None } else { Some(Shell::find()?) };
    let version = match &shell {
        // ssh says its version on standard error; the file's hash is exact.
        Some(shell) if name == SCP => {
            let mut ask = Command::new("/bin/sh");
            ask.args(["-c", "exec \"$0\" -V 2>&1"]).arg(&shell.ssh);
            version_of("OpenSSH_", &shell.ssh, &mut ask)?
        }
        _ => version_of("rsync ", &program, Command::new(&program).arg("--version"))?,
    };
    let about = subject(
        name,
        &program,
        version,
        &argv,
        &[differs, "the clock ends with the sender, which waits for the receiver"],
    );
    Ok((about, Rc::new(Remote { name, program, shell })))
}

impl Shell {
    fn find() -> Result<Shell, String> {
        let shell = Shell {
            ssh: on_path("ssh")?,
            server: on_path("sshd").map_err(|_| NO_SERVER.to_owned())?,
            keygen: on_path("ssh-keygen")?,
        };
        let folder = Folder::temporary("sealway-files-").map_err(|error| error.to_string())?;
        shell.prepare(folder.path(), 1).map_err(|error| error.to_string())?;
        let mut test = Command::new("/bin/sh");
        test.args(["-c", "exec \"$0\" -t -f \"$1\" 2>&1 || true"])
            .arg(&shell.server)
            .arg(folder.path().join("sshd.conf"));
        match says(&mut test)?.trim() {
            "" => Ok(shell),
            words => Err(format!("sshd does not start: {words}")),
        }
    }

    /// Makes keys and configurations in `folder`.
    fn prepare(&self, folder: &Path, port: u16) -> Result<(), CellError> {
        for name in ["host", "user"] {
            let mut make = Command::new(&self.keygen);
            make.args(["-q", "-t", "ed25519", "-N", "", "-C", "", "-f"])
                .arg(folder.join(name));
            peer::run(&mut make, 4096, PATIENCE)
                .map_err(|error| CellError::failed(format_args!("ssh-keygen: {error}")))?;
        }
        let folder = folder.display();
        let config = format!(
            "Port {port}\nListenAddress 127.0.0.1\nHostKey \"{folder}/host\"\nAuthorizedKeysFile \"{folder}/user.pub\"\n\
             StrictModes no\nUsePAM no\nPasswordAuthentication no\nKbdInteractiveAuthentication no\n\
             PermitRootLogin prohibit-password\nAllowTcpForwarding no\nX11Forwarding no\nPrintMotd no\nPidFile none\n\
             Subsystem sftp internal-sftp\n"
        );
        write(&Path::new(&folder.to_string()).join("sshd.conf"), &config)
    }

    /// Options of ssh and scp, which agree on these.
    fn options(folder: &Path, spec: &Spec) -> Vec<String> {
        let file = |name: &str| folder.join(name).display().to_string();
        let (user, known) = (file("user"), format!("UserKnownHostsFile={}", file("known")));
        let mut words = vec!["-F", "none", "-i", &user];
        for option in [
            "IdentitiesOnly=yes",
            "BatchMode=yes",
            "StrictHostKeyChecking=accept-new",
            "LogLevel=ERROR",
            "Compression=no",
            &known,
        ] {
            words.extend(["-o", option]);
        }
        if let Some(cipher) = spec.suite.and_then(cipher) {
            words.extend(["-c", cipher]);
        }
        words.into_iter().map(str::to_owned).collect()
    }
}

/// What ssh calls a suite.
fn cipher(suite: Suite) -> Option<&'static str> {
    match suite {
        Suite::Aes128Gcm => Some("aes128-gcm@openssh.com"),
        Suite::Aes256Gcm => Some("aes256-gcm@openssh.com"),
        Suite::ChaCha20Poly1305 => Some("chacha20-poly1305@openssh.com"),
        _ => None,
    }
}

impl Mover for Remote {
    fn name(&self) -> &'static str {
        self.name
    }

    fn can(&self, spec: &Spec) -> bool {
        spec.way == Way::Send
            && spec
                .suite
                .is_none_or(|suite| self.shell.is_some() && cipher(suite).is_some())
    }

    fn start_up(&self) -> Duration {
        Duration::from_millis(900)
    }

    fn go(&self, job: &Job<'_>) -> Result<Moved, CellError> {
        let [port] = free_ports()?;
        let mut processes = Processes::new(job.folder, job.patience);
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let reached = job.reached(&mut processes, address)?.port().to_string();
        let mut send = Command::new(&self.program);
        let mut server = match &self.shell {
            Some(shell) => {
                shell.prepare(job.folder, port)?;
                let mut server = Command::new(&shell.server);
                server.args(["-D", "-e", "-f"]).arg(job.folder.join("sshd.conf"));
                let options = Shell::options(job.folder, job.spec);
                if self.name == SCP {
                    send.args(["-q", "-r", "-P", &reached]).args(options);
                } else {
                    let words = [vec![shell.ssh.display().to_string(), "-p".to_owned(), reached], options].concat();
                    send.args(["-r", "-W", "-e", &words.join(" ")]);
                }
                send.arg(job.source.path())
                    .arg(format!("127.0.0.1:{}/", job.to.display()));
                server
            }
            None => {
                // As root the daemon would become somebody who may not write there.
                let owner = if crate::route::is_root() {
                    "uid = root\ngid = root\n"
                } else {
                    ""
                };
                let config = job.folder.join("rsyncd.conf");
                let text = format!(
                    "use chroot = no\naddress = 127.0.0.1\nport = {port}\nlog file = /dev/null\n[to]\npath = {}\nread only = no\n{owner}",
                    job.to.display()
                );
                write(&config, &text)?;
                let mut server = Command::new(&self.program);
                server.args(["--daemon", "--no-detach", "--config"]).arg(&config);
                send.args(["-r", "-W"])
                    .arg(job.source.path())
                    .arg(format!("rsync://127.0.0.1:{reached}/to/"));
                server
            }
        };
        let receiver = processes.start(Role::Receiver, Ends::Never, &mut server)?;
        processes.listening(receiver, port)?;
        let started = processes.clock();
        let sender = processes.start(Role::Sender, Ends::Alone, &mut send)?;
        processes.finish(started, sender, job.watched())
    }
}
