//! Peers of one file and two commands: an HTTPS POST, by our TLS library and by Go's, and the encrypted gRPC of KeibiDrop.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;

use super::super::https_post;
use super::super::processes::{Ends, Moved, Processes, Role};
use super::super::source::ITEM;
use super::super::spec::{Spec, Way};
use super::{Job, Mover, on_path, subject};
use crate::peer::program::version_of;
use crate::result::Subject;
use crate::run::CellError;

/// LocalSend's way, built in.
pub(super) const BUILT_IN: &str = "https-post";

/// The same by Go's standard library.
pub(super) const GO: &str = "https-post-go";

/// KeibiDrop's record layer and gRPC service.
pub(super) const KEIBIDROP: &str = "keibidrop";

/// The program around them.
pub(super) const KEIBIDROP_PROGRAM: &str = "keibidrop-grpc";

/// A program of this kind.
struct Post {
    name: &'static str,
    program: PathBuf,
    /// Words before the command.
    words: &'static [&'static str],
}

pub(super) fn find(name: &str, ours: &Path) -> Result<(Subject, Rc<dyn Mover>), String> {
    let found = |name: &str| -> Result<(PathBuf, String), String> {
        let program = on_path(name)?;
        let version = version_of(name, &program, Command::new(&program).arg("version"))?;
        Ok((program, version))
    };
    let (name, (program, version), words, argv, differs): (_, _, &'static [_], _, &[&str]) = match name {
        BUILT_IN => (
            BUILT_IN,
            (ours.to_owned(), crate::run::version()),
            &["lab", "https-post"],
            [
                "sealway lab https-post receive --dir DIR --cert FILE",
                "sealway lab https-post send --to ADDR --cert FILE --file FILE",
            ],
            &[
                "LocalSend's way: one HTTPS POST, TLS 1.3 by rustls, AES-128-GCM unless the case names another suite; it takes one file",
            ],
        ),
        GO => (
            GO,
            found(GO)?,
            &[],
            [
                "https-post-go receive --dir DIR --cert FILE",
                "https-post-go send --to ADDR --cert FILE --file FILE",
            ],
            &["LocalSend's way: one HTTPS POST, TLS 1.3, AES-128-GCM where the CPU has AES; it takes one file"],
        ),
        _ => (
            KEIBIDROP,
            found(KEIBIDROP_PROGRAM)?,
            &[],
            [
                "keibidrop-grpc receive --to ADDR --file FILE",
                "keibidrop-grpc send --file FILE",
            ],
            &[
                "its record layer, gRPC options and service in a small program, for its own is bound to its user interface; \
                 the handshake is left out, the key is fixed",
                "the receiver dials, and the clock starts with it",
            ],
        ),
    };
    let argv = [("receiver", argv[0]), ("sender", argv[1])];
    let about = subject(name, &program, version, &argv, differs);
    Ok((about, Rc::new(Post { name, program, words })))
}

impl Post {
    fn command(&self, word: &str, job: &Job<'_>) -> Command {
        let mut command = Command::new(&self.program);
        command.args(self.words).arg(word);
        if let Some(suite) = job.spec.suite {
            command.args(["--suite", suite.name()]);
        }
        command
    }
}

impl Mover for Post {
    fn name(&self) -> &'static str {
        self.name
    }

    fn can(&self, spec: &Spec) -> bool {
        let way = if self.name == KEIBIDROP { Way::Grpc } else { Way::Send };
        let suite = spec
            .suite
            .is_none_or(|suite| self.name == BUILT_IN && https_post::has(suite));
        spec.way == way && !spec.shape.is_folder() && suite
    }

    fn go(&self, job: &Job<'_>) -> Result<Moved, CellError> {
        let mut processes = Processes::new(job.folder, job.patience);
        if self.name == KEIBIDROP {
            let sender = processes.start(
                Role::Sender,
                Ends::Alone,
                self.command("send", job).arg("--file").arg(job.source.path()),
            )?;
            let address = processes.told(sender)?;
            let address = job.reached(&mut processes, address)?;
            let started = processes.clock();
            let mut receive = self.command("receive", job);
            receive
                .args(["--to", &address.to_string(), "--file"])
                .arg(job.to.join(ITEM));
            let receiver = processes.start(Role::Receiver, Ends::Alone, &mut receive)?;
            return processes.finish(started, receiver, job.watched());
        }
        let certificate = job.folder.join("certificate.pem");
        let mut receive = self.command("receive", job);
        receive.arg("--dir").arg(job.to).arg("--cert").arg(&certificate);
        let receiver = processes.start(Role::Receiver, Ends::Alone, &mut receive)?;
        let address = processes.told(receiver)?;
        let address = job.reached(&mut processes, address)?;
        let started = processes.clock();
        let mut send = self.command("send", job);
        send.args(["--to", &address.to_string(), "--cert"]).arg(&certificate);
        processes.start(Role::Sender, Ends::Alone, send.arg("--file").arg(job.source.path()))?;
        processes.finish(started, receiver, job.watched())
    }
}
