//! The programs that take part in a workload over proxied paths.

use super::{LabError, Request, subjects};
use crate::path::{Engine, Stack, engine};
use crate::result::Subject;

/// Everyone who takes part in a workload over paths.
#[derive(Debug)]
pub(crate) struct Found {
    /// Subjects for the result file, also those that could not take part; ours first.
    pub(crate) subjects: Vec<Subject>,
    /// Those that take part, ours first.
    pub(crate) engines: Vec<Engine>,
}

/// Looks for our engine and for the peers that were asked for, to run `stacks`.
///
/// # Errors
/// [`LabError::UnknownPeer`] or [`LabError::PeerMissing`] for a peer that was asked for by name,
/// [`LabError::NoProgram`] when the request does not say where our own program is.
pub(crate) fn find(request: &Request, stacks: &[Stack]) -> Result<Found, LabError> {
    let ours = request.program.as_deref().ok_or(LabError::NoProgram)?;
    let ours = Engine::sealway(ours);
    let mut engines = vec![ours];
    let found = subjects::find(&request.peers, &engine::PEERS, |name| {
        let engine = Engine::peer(name)?;
        let subject = engine.subject(stacks);
        engines.push(engine);
        Ok(subject)
    })?;
    let mut subjects = found.subjects;
    if let (Some(first), Some(ours)) = (subjects.first_mut(), engines.first()) {
        *first = ours.subject(stacks);
    }
    Ok(Found { subjects, engines })
}
