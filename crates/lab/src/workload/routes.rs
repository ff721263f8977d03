//! What workloads over proxied routes share: the programs that take part, the control without any, and what the
//! generator itself may have limited.

use super::{LabError, Request, subjects};
use crate::result::{ResultRow, Subject};
use crate::route::{Engine, Guest, Pair, Stack, engine};

/// Name of the subject that is no subject: the generator straight to the sink.
pub(crate) const DIRECT: &str = "direct";

/// How much less than [`DIRECT`] a route must deliver: above, the generator may be what was measured.
const HEADROOM: f64 = 1.5;

/// Everyone who takes part in a workload over routes.
#[derive(Debug)]
pub(crate) struct Found {
    /// Subjects for the result file, also those that could not take part; ours first, the control last.
    pub(crate) subjects: Vec<Subject>,
    /// Those that take part, ours first.
    pub(crate) engines: Vec<Engine>,
}

impl Found {
    /// Adds pairs of programs, each once, to run `stacks`.
    ///
    /// # Errors
    /// [`LabError::PeerMissing`] for one that cannot take part.
    pub(crate) fn pair(&mut self, pairs: &[Pair], stacks: &[Stack]) -> Result<(), LabError> {
        for pair in pairs {
            let name = pair.to_string();
            if self.engines.iter().any(|engine| engine.name() == name) {
                continue;
            }
            let engine = pair
                .engine(&self.engines)
                .map_err(|why| LabError::PeerMissing { name, why })?;
            let control = self.subjects.len().saturating_sub(1);
            self.subjects.insert(control, engine.subject(stacks));
            self.engines.push(engine);
        }
        Ok(())
    }
}

/// Looks for our engine, for the peers that were asked for, for user-supplied programs and for pairs of all these, to run
/// `stacks`, of which some may be there twice.
///
/// # Errors
/// [`LabError::UnknownPeer`] or [`LabError::PeerMissing`] for a peer that was asked for by name or supplied,
/// [`LabError::NoProgram`] when the request does not say where our own program is.
pub(crate) fn find(request: &Request, stacks: impl IntoIterator<Item = Stack>) -> Result<Found, LabError> {
    let mut once: Vec<Stack> = stacks.into_iter().collect();
    super::batch::keep_first(&mut once);
    let ours = Engine::sealway(request.program.as_deref().ok_or(LabError::NoProgram)?);
    let mut engines = vec![ours.clone()];
    let mut subjects = subjects::find(&request.peers, &engine::PEERS, |name| {
        let engine = Engine::peer(name)?;
        let subject = engine.subject(&once);
        engines.push(engine);
        Ok(subject)
    })?
    .subjects;
    if let Some(first) = subjects.first_mut() {
        *first = ours.subject(&once);
    }
    for engine in guest_engines(request)? {
        subjects.push(engine.subject(&once));
        engines.push(engine);
    }
    subjects.push(Subject {
        name: DIRECT.to_owned(),
        version: crate::run::version(),
        kind: "in-process".to_owned(),
        setup: "default".to_owned(),
        differs: vec!["no program: from the generator straight to the sink".to_owned()],
        ..Subject::default()
    });
    let mut found = Found { subjects, engines };
    found.pair(&request.pairs, &once)?;
    Ok(found)
}

/// User-supplied programs, asked what they are.
///
/// # Errors
/// [`LabError::PeerMissing`] for one that cannot take part.
pub(super) fn guest_engines(request: &Request) -> Result<Vec<Engine>, LabError> {
    let engine = |guest: &Guest| {
        guest.engine().map_err(|why| LabError::PeerMissing {
            name: guest.name().to_owned(),
            why,
        })
    };
    request.guests.iter().map(engine).collect()
}

/// Names of user-supplied programs.
pub(crate) fn guests(request: &Request) -> Vec<String> {
    request.guests.iter().map(|guest| guest.name().to_owned()).collect()
}

/// Marks the rows of `metric` that came too close to what the generator does without a route; `key` is what a row and
/// its control have in common.
pub(crate) fn mark_generator_bound<K: PartialEq>(rows: &mut [ResultRow], metric: &str, key: impl Fn(&ResultRow) -> K) {
    const MARK: &str = "generator-bound";
    let controls: Vec<(K, f64)> = rows
        .iter()
        .filter(|row| row.subject == DIRECT && row.metric == metric)
        .map(|row| (key(row), row.median.get()))
        .collect();
    for row in rows.iter_mut() {
        if row.subject == DIRECT || row.metric != metric || row.has(MARK) {
            continue;
        }
        let own = key(row);
        let control = controls.iter().find(|(of, _)| *of == own);
        if control.is_some_and(|(_, rate)| row.median.get() * HEADROOM > *rate) {
            row.flags.push(MARK.to_owned());
        }
    }
}
