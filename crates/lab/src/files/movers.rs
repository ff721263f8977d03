//! Who moves files: our own program and its peers, each with the commands that its users would type.

mod codes;
pub(super) mod mounted;
mod one_file;
mod ours;
mod ssh;

use std::net::SocketAddr;
use std::path::Path;
use std::rc::Rc;
use std::time::Duration;

use super::processes::{Moved, Processes, system};
use super::source::{Shape, Source};
use super::spec::Spec;
use crate::link::{Link, Relay};
use crate::peer::program::{self, on_path};
use crate::result::Subject;
use crate::run::CellError;
use crate::workload::{LabError, Request, subjects};

/// Names of all peers.
pub(super) const PEERS: [&str; 9] = [
    one_file::BUILT_IN,
    one_file::GO,
    ssh::RSYNC,
    ssh::RSYNC_SSH,
    ssh::SCP,
    codes::CROC,
    codes::WORMHOLE,
    one_file::KEIBIDROP,
    ours::PLAIN,
];

/// Names of all programs that they are, and of those beside them.
pub(super) const PROGRAMS: [&str; 9] = [
    one_file::GO,
    "rsync",
    ssh::SCP,
    "ssh",
    "sshd",
    "ssh-keygen",
    codes::CROC,
    codes::WORMHOLE,
    one_file::KEIBIDROP_PROGRAM,
];

/// A start that is too long for a quick run.
const SLOW: Duration = Duration::from_secs(2);

/// One transfer.
pub(super) struct Job<'a> {
    pub(super) spec: &'a Spec,
    pub(super) source: &'a Source,
    /// The empty folder that gets the files.
    pub(super) to: &'a Path,
    /// An empty folder that nobody else may read.
    pub(super) folder: &'a Path,
    /// How long it may take.
    pub(super) patience: Duration,
    /// How long to go on, where a transfer has no end of its own.
    pub(super) window: Duration,
    /// The link between both ends, and the seed of its losses.
    pub(super) link: Option<(Link, u64)>,
}

impl Job<'_> {
    /// Under which address the other end reaches what listens at `to`: over the link, if there is one. The link lasts as long as
    /// the processes.
    fn reached(&self, processes: &mut Processes<'_>, to: SocketAddr) -> Result<SocketAddr, CellError> {
        let Some((link, seed)) = self.link else { return Ok(to) };
        let relay = Relay::open(to, link).map_err(system("emulate a link"))?;
        relay.engage(seed);
        Ok(processes.keep(relay))
    }

    /// Where the first byte is looked for: only where set-up is the question, for to look costs something.
    fn watched(&self) -> Option<&Path> {
        (self.spec.shape == Shape::Byte).then_some(self.to)
    }
}

/// A subject.
pub(super) trait Mover {
    fn name(&self) -> &'static str;

    /// True for a case that it can do at all.
    fn can(&self, spec: &Spec) -> bool;

    /// What a transfer takes besides moving bytes, roughly: for the plan.
    fn start_up(&self) -> Duration {
        Duration::from_millis(80)
    }

    /// False for one that a link cannot stand before.
    fn over_links(&self) -> bool {
        true
    }

    /// Moves the source once.
    fn go(&self, job: &Job<'_>) -> Result<Moved, CellError>;
}

/// Everyone who takes part, ours first.
pub(super) struct Found {
    pub(super) subjects: Vec<Subject>,
    pub(super) movers: Vec<Rc<dyn Mover>>,
}

impl Found {
    /// Leaves out whoever goes by ways of its own, before which no link can stand.
    pub(super) fn leave_out_unlinked(&mut self) {
        let why = "left out over a link: it goes by servers of its own, before which none can stand";
        self.leave_out(|mover| !mover.over_links(), why);
    }

    /// Leaves out whoever takes seconds to start: a quick run has none to give.
    pub(super) fn leave_out_slow(&mut self) {
        let why = "left out of a quick run, for it takes seconds to start; `--peers` with its name brings it in";
        self.leave_out(|mover| mover.start_up() >= SLOW, why);
    }

    fn leave_out(&mut self, which: impl Fn(&dyn Mover) -> bool, why: &str) {
        for mover in self.movers.extract_if(.., |mover| which(&**mover)) {
            let subjects = self.subjects.iter_mut();
            for subject in subjects.filter(|subject| subject.name == mover.name()) {
                why.clone_into(&mut subject.error);
            }
        }
    }
}

/// Looks for our program and for the peers that were asked for.
pub(super) fn find(request: &Request) -> Result<Found, LabError> {
    let program = request.program.as_deref().ok_or(LabError::NoProgram)?;
    let mut movers: Vec<Rc<dyn Mover>> = Vec::new();
    let (mut ours, mover) = ours::find(program);
    movers.extend(mover.map(|mover| Rc::new(mover) as Rc<dyn Mover>));
    let found = subjects::find(&request.peers, &PEERS, |name| {
        let (subject, mover): (Subject, Rc<dyn Mover>) = match name {
            one_file::BUILT_IN | one_file::GO | one_file::KEIBIDROP => one_file::find(name, program)?,
            codes::CROC => codes::croc()?,
            codes::WORMHOLE => codes::wormhole()?,
            ours::PLAIN => ours::plain(program)?,
            _ => ssh::find(name)?,
        };
        movers.push(mover);
        Ok(subject)
    })?;
    let mut subjects = found.subjects;
    if let Some(first) = subjects.first_mut() {
        std::mem::swap(first, &mut ours);
    }
    Ok(Found { subjects, movers })
}

/// A program as the result file describes it.
fn subject(name: &str, program: &Path, version: String, argv: &[(&str, &str)], differs: &[&str]) -> Subject {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect();
    Subject {
        name: name.to_owned(),
        version,
        kind: "program".to_owned(),
        sha256: program::sha256_of(program).unwrap_or_default(),
        role_argv: argv
            .iter()
            .map(|(role, line)| ((*role).to_owned(), words(line)))
            .collect(),
        setup: "default".to_owned(),
        differs: differs.iter().map(|&text| text.to_owned()).collect(),
        ..Subject::default()
    }
}
