//! Joins the rows of two runs and finds the controls they share.

use std::collections::BTreeMap;

use super::{CONTROLS, CompareError, Key, Note, OURS, Options, Side};
use crate::result::{ResultRow, RunResult, SCHEMA};
use crate::stats::{Better, MetricKind, is_judged};

/// Rows of a run by key, each with the direction in which it is good.
pub(super) type Index<'a> = BTreeMap<Key, (&'a ResultRow, Better)>;

/// Two runs, checked and indexed.
pub(super) struct Pair<'a> {
    pub(super) old_run: &'a RunResult,
    pub(super) new_run: &'a RunResult,
    pub(super) old: Index<'a>,
    pub(super) new: Index<'a>,
    /// Usable controls, first choice first.
    controls: Vec<String>,
    /// The subject that counts; `None` when all do.
    ours: Option<String>,
}

impl<'a> Pair<'a> {
    pub(super) fn new(old_run: &'a RunResult, new_run: &'a RunResult, options: &Options) -> Result<Self, CompareError> {
        let old = index(old_run, Side::Old)?;
        let new = index(new_run, Side::New)?;
        let ours = options.ours.clone().unwrap_or_else(|| OURS.to_owned());
        let ours = old
            .keys()
            .chain(new.keys())
            .any(|key| key.subject == ours)
            .then_some(ours);
        let mut pair = Pair {
            old_run,
            new_run,
            old,
            new,
            controls: Vec::new(),
            ours,
        };
        pair.controls = pair.shared_controls(options.control.as_deref())?;
        Ok(pair)
    }

    /// The control for the case and metric of `key`.
    pub(super) fn control(&self, key: &Key) -> Option<Key> {
        if self.stands_alone(key) {
            return None;
        }
        let measured = |subject: &String| Key {
            subject: subject.clone(),
            ..key.clone()
        };
        self.controls
            .iter()
            .map(measured)
            .find(|key| self.old.contains_key(key) && self.new.contains_key(key))
    }

    /// The runs share no peer: the speed of the processor is the control.
    pub(super) fn by_canary(&self) -> bool {
        self.controls.is_empty()
    }

    /// Whether a figure needs no control: memory on one machine, whatever the speed of that. What a peer takes of it, by when it
    /// collects garbage, would only hide a change.
    pub(super) fn stands_alone(&self, key: &Key) -> bool {
        MetricKind::of(&key.metric) == MetricKind::Memory && absolutes(self.old_run, self.new_run)
    }

    pub(super) fn counts(&self, subject: &str) -> bool {
        self.ours.as_deref().is_none_or(|ours| ours == subject)
    }

    fn shared_controls(&self, named: Option<&str>) -> Result<Vec<String>, CompareError> {
        if let Some(name) = named {
            return match self.unfit(name) {
                None => Ok(vec![name.to_owned()]),
                Some(why) => Err(CompareError::ControlUnfit {
                    name: name.to_owned(),
                    why,
                }),
            };
        }
        let candidates = || CONTROLS.into_iter().filter(|name| self.ours.as_deref() != Some(*name));
        let fit: Vec<String> = candidates()
            .filter(|name| self.unfit(name).is_none())
            .map(str::to_owned)
            .collect();
        // On one machine the canary serves where no peer does.
        if !fit.is_empty() || absolutes(self.old_run, self.new_run) {
            return Ok(fit);
        }
        let seen = |name: &&str| self.measured(Side::Old, name) || self.measured(Side::New, name);
        let why = |name: &str| self.unfit(name).map(|why| format!("{name}: {why}"));
        Err(CompareError::NoControl {
            why: candidates().filter(seen).filter_map(why).collect(),
        })
    }

    /// A run, and its rows by key.
    pub(super) fn side(&self, side: Side) -> (&'a RunResult, &Index<'a>) {
        match side {
            Side::Old => (self.old_run, &self.old),
            Side::New => (self.new_run, &self.new),
        }
    }

    fn measured(&self, side: Side, subject: &str) -> bool {
        let (_, rows) = self.side(side);
        rows.keys().any(|key| key.subject == subject)
    }

    /// Why `name` cannot be the control; `None` when it can.
    fn unfit(&self, name: &str) -> Option<String> {
        if self.ours.as_deref() == Some(name) {
            return Some("it is the subject that is judged".to_owned());
        }
        for side in [Side::Old, Side::New] {
            if !self.measured(side, name) {
                return Some(format!("it was not measured in the {} run", side.as_str()));
            }
        }
        match (version(self.old_run, name), version(self.new_run, name)) {
            ("", _) | (_, "") => Some("its version is not known in both runs".to_owned()),
            (old, new) if old != new => Some(format!("its version changed from {old} to {new}")),
            (old, _) if rebuilt(self.old_run, self.new_run, name) => Some(format!("it is another build of {old}")),
            _ => None,
        }
    }
}

/// The version of a subject as the run states it; empty when it does not.
pub(super) fn version<'a>(run: &'a RunResult, subject: &str) -> &'a str {
    run.subject(subject).map_or("", |found| found.version.as_str())
}

/// True if a subject is another file in each run. On another architecture it has to be.
pub(super) fn rebuilt(old: &RunResult, new: &RunResult, subject: &str) -> bool {
    let file = |run: &RunResult| {
        run.subject(subject)
            .map_or_else(String::new, |found| found.sha256.clone())
    };
    let (was, is) = (file(old), file(new));
    !was.is_empty() && !is.is_empty() && was != is && old.machine.arch == new.machine.arch
}

fn index(run: &RunResult, side: Side) -> Result<Index<'_>, CompareError> {
    if run.schema > SCHEMA {
        return Err(CompareError::NewerSchema {
            side,
            found: run.schema,
            known: SCHEMA,
        });
    }
    if run.results.is_empty() {
        return Err(CompareError::Empty { side });
    }
    let mut index = Index::new();
    for row in run.results.iter().filter(|row| is_judged(&row.metric)) {
        let malformed = |what: String| {
            let place = format!("{} {} {} {}", row.workload, row.subject, row.case, row.metric);
            CompareError::Malformed { side, place, what }
        };
        let better = Better::parse(&row.better)
            .ok_or_else(|| malformed(format!("`better` is {:?}, not \"higher\" or \"lower\"", row.better)))?;
        if index.insert(Key::of(row), (row, better)).is_some() {
            return Err(malformed("the row is there twice".to_owned()));
        }
    }
    Ok(index)
}

/// Whether absolute figures of the two runs may be compared.
pub(super) fn absolutes(old: &RunResult, new: &RunResult) -> bool {
    !old.machine.key.is_empty() && machines(old) == machines(new) && old.profile == new.profile
}

/// The key of the machine of a run, and of the other one if it ran on two hosts.
pub(crate) fn machines(run: &RunResult) -> (&str, Option<&str>) {
    let responder = run.responder.as_ref();
    (
        &run.machine.key,
        responder.map(|responder| responder.machine.key.as_str()),
    )
}

/// The emulated link of a run.
pub(super) fn link(run: &RunResult) -> Option<&str> {
    run.link.as_ref().map(|link| link.asked.as_str())
}

/// What a reader must know about the two runs.
pub(super) fn notes(old: &RunResult, new: &RunResult, by_canary: bool) -> Vec<Note> {
    let mut notes = Vec::new();
    let mut note = |code: &str, text: &str| notes.push(Note::new(code, text));
    if old.machine.key.is_empty() || new.machine.key.is_empty() {
        let text = "A run does not say which machine it was: only ratios to the control compare.";
        note("machine", text);
    } else if old.machine.key != new.machine.key {
        let text =
            "The machines differ (CPU, microcode, cores, kernel or hypervisor): only ratios to the control compare.";
        note("machine", text);
    }
    if let (Some(was), Some(is)) = (&old.responder, &new.responder) {
        if was.machine.key != is.machine.key {
            let text = "The responders' machines differ: only ratios to the control compare.";
            note("responder-machine", text);
        }
        if was.sealway != is.sealway {
            let text = format!("The responders' versions differ ({} and {}).", was.sealway, is.sealway);
            note("responder-version", &text);
        }
    }
    if old.profile != new.profile {
        let text = format!(
            "The profiles differ ({} and {}): only ratios to the control compare.",
            old.profile, new.profile
        );
        note("profile", &text);
    }
    if link(old) != link(new) {
        let of = |run| link(run).unwrap_or("none");
        let text = format!(
            "The emulated links differ ({} and {}): no figures of theirs compare.",
            of(old),
            of(new)
        );
        note("link", &text);
    }
    for (side, run) in [(Side::Old, old), (Side::New, new)] {
        if let Some(link) = run.link.as_ref().filter(|link| !link.kept) {
            let text = format!(
                "The {} run did not keep its link: asked for {}, measured {}. Its figures are those of the latter.",
                side.as_str(),
                link.wanted(),
                link.seen()
            );
            note("link-not-kept", &text);
        }
        if !run.complete {
            let side = side.as_str();
            let text = format!("The {side} run was cut short: it has fewer rounds than planned.");
            note("incomplete", &text);
        }
    }
    if by_canary {
        let text = "No peer was measured in both runs: the speed of the processor (the canary) is the control.";
        note("no-peer", text);
    }
    if old.run == new.run {
        note("same-run", "Both files are the same run.");
    }
    notes
}
