//! What a recipe is made of.

use super::claim::{Claim, Programs};
use super::ranking::Ranking;
use crate::result::{self, Case};
use crate::route::{Engine, Stack};
use crate::workload::{Peers, Workload};
use sealway_aead::Suite;

/// The programs that figures were published of, V2Ray first: most are of it.
const PUBLISHED: [&str; 2] = ["v2ray", "xray"];

/// Published measurements and how they are made again here.
#[derive(Debug)]
pub struct Recipe {
    /// The name on the command line.
    pub name: &'static str,
    /// What it checks, in a few words.
    pub summary: &'static str,
    /// What was published, in a sentence or two.
    pub(super) about: &'static str,
    pub(super) sources: &'static [Source],
    /// How hardware and method differ from the sources, in sentences.
    pub(super) differs: &'static [&'static str],
    /// What is measured, in this order.
    pub(super) steps: &'static [Step],
    pub(super) claims: &'static [Claim],
    pub(super) rankings: &'static [Ranking],
    pub(super) peers: &'static Programs,
}

impl Recipe {
    /// True if it can measure user-supplied programs.
    pub fn takes_guests(&self) -> bool {
        self.steps.iter().any(|step| step.workload.guests)
    }
}

impl PartialEq for Recipe {
    /// A name stands for one recipe.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Recipe {}

/// Where figures were published.
#[derive(Debug)]
pub(super) struct Source {
    pub(super) name: &'static str,
    pub(super) date: &'static str,
    pub(super) address: &'static str,
    /// On what hardware and how.
    pub(super) method: &'static str,
}

impl Source {
    pub(super) fn facts(&self) -> result::Source {
        result::Source {
            name: self.name.to_owned(),
            date: self.date.to_owned(),
            address: self.address.to_owned(),
            method: self.method.to_owned(),
        }
    }
}

/// A workload with what of it is measured.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) workload: &'static Workload,
    /// Its part of the time, beside those of the other steps.
    pub(super) share: u32,
    pub(super) gpu: bool,
    /// All if empty.
    pub(super) stacks: &'static [Stack],
    /// All if empty.
    pub(super) suites: &'static [Suite],
    /// Which of its cases; all if absent.
    pub(super) cases: Option<fn(&Case) -> bool>,
    /// True if one of the programs that can be both ends of a route is enough: the one that was published about.
    pub(super) one_engine: bool,
}

impl Step {
    /// All of a workload, with one part of the time.
    pub(super) const fn of(workload: &'static Workload) -> Step {
        Step {
            workload,
            share: 1,
            gpu: false,
            stacks: &[],
            suites: &[],
            cases: None,
            one_engine: false,
        }
    }

    /// Who takes part when these were asked for.
    pub(super) fn peers(&self, asked: Peers) -> Peers {
        if asked != Peers::Auto || !self.one_engine {
            return asked;
        }
        match PUBLISHED.into_iter().find(|name| Engine::peer(name).is_ok()) {
            Some(name) => Peers::Named(vec![name.to_owned()]),
            None => Peers::None,
        }
    }
}
