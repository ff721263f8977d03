//! What the two hosts of a run say of its streams: one question, one answer.

use serde::{Deserialize, Serialize};

use super::traffic::{Planned, State, Trouble};
use crate::route::Served;
use crate::run::CellError;

/// What the host that measures asks for.
#[derive(Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum Ask {
    /// A sink, and the server of the stack of that name before it, in place of those that there are.
    Open { stack: String },
    /// The sink's ends of these streams, in place of those that there are.
    Begin { streams: Vec<Planned> },
    /// How things stand.
    Look(Look),
    /// Nothing any more.
    Close,
}

/// How things stand at the generator's ends.
#[derive(Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Look {
    pub(super) states: Vec<State>,
    /// Senders are to stop.
    pub(super) stop: bool,
    /// Peaks of memory begin here.
    pub(super) reset: bool,
}

/// What the other host answers.
#[derive(Debug, Deserialize, PartialEq, Serialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub(super) enum Answer {
    Done,
    Opened(Opened),
    Seen(Seen),
    /// It cannot be done; `unavailable` if that was to be expected.
    Refused {
        what: String,
        unavailable: bool,
    },
}

/// Where streams go.
#[derive(Debug, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Opened {
    /// The sink's port: on loopback behind a server, else at the address of the channel.
    pub(super) sink: u16,
    pub(super) server: Option<Served>,
}

/// How things stand at the sink's ends.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Seen {
    /// Nanoseconds of this host's clock; only differences mean something.
    pub(super) at_ns: u64,
    pub(super) states: Vec<State>,
    /// Ends that are still to come.
    pub(super) open: usize,
    /// What went wrong since it was asked last.
    pub(super) trouble: Option<Trouble>,
    /// CPU time of the server and its peak of memory in bytes; absent without one.
    pub(super) server: Option<Usage>,
}

/// What a program has taken so far.
#[derive(Clone, Copy, Debug, Default, Deserialize, PartialEq, Serialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Usage {
    pub(super) cpu_ns: u64,
    pub(super) memory: u64,
}

impl From<CellError> for Answer {
    fn from(error: CellError) -> Answer {
        match error {
            CellError::Unavailable { what } => Answer::Refused {
                what,
                unavailable: true,
            },
            CellError::Wrong { what } | CellError::Failed { what } => Answer::Refused {
                what,
                unavailable: false,
            },
        }
    }
}

/// Reads an answer, and what it is written as again: for the fuzz target.
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) fn reads_answer(said: &[u8]) {
    if let Ok(answer) = serde_json::from_slice::<Answer>(said) {
        let again = serde_json::to_vec(&answer).and_then(|said| serde_json::from_slice(&said));
        assert_eq!(again.ok(), Some(answer));
    }
}
