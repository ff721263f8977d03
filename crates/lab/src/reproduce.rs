//! Published measurements, made again: which cases of which workloads they need, what was claimed, and what these rounds
//! say of it.
//!
//! A [`Recipe`] is data: steps, claims and orders. [`run`] measures its steps one after the other within one time limit;
//! [`evaluate`] reads a finished result, of this machine or another, and needs nothing else. A claim is a ratio of two
//! cells, so that hardware and clock fall out of it; one rule ([`Verdict::of`]) says how far it was borne out. What could
//! not be measured is named with its reason.

mod bip324;
mod claim;
mod drop_ciphers;
mod ranking;
mod recipe;
mod rounds;
mod v2ray_aead;
mod verdict;
mod vless_vmess;

use std::time::Duration;

pub use recipe::Recipe;
pub use verdict::Verdict;

use crate::lens::rank::{barred, speed};
use crate::lens::{OURS, list};
use crate::measure::WarningCode;
use crate::packets;
use crate::peer::program::INSTALLER;
use crate::plan::{PlanError, Profile};
use crate::result::{Ranking, Ratio, Reproduction, ResultRow, RunResult, Warning};
use crate::route::Stack;
use crate::run::Observer;
use crate::stats::{Better, Rules, ratio, unpaired};
use crate::transports;
use crate::workload::{self, LabError, Part, Request, Workload};

/// Every recipe.
pub static ALL: [&Recipe; 4] = [
    &v2ray_aead::RECIPE,
    &vless_vmess::RECIPE,
    &drop_ciphers::RECIPE,
    &bip324::RECIPE,
];

/// Time limits of a quick and of a standard run without a budget: with start and report they stay under two and ten
/// minutes.
const QUICK_LIMIT: Duration = Duration::from_secs(105);
const STANDARD_LIMIT: Duration = Duration::from_secs(9 * 60 + 20);

/// What is said where no front can be started.
const NGINX: &str = "nginx: scripts/install-peers gets it with its module for streams (Debian: apt-get install nginx \
                     libnginx-mod-stream)";

/// Most cases that are named in a sentence.
const NAMED: usize = 6;

/// The recipe called `name`.
pub fn named(name: &str) -> Option<&'static Recipe> {
    ALL.into_iter().find(|recipe| recipe.name == name)
}

impl Recipe {
    /// True if everything of it can be measured with the windows of a [`Preset`](crate::plan::Preset).
    pub fn knows_presets(&self) -> bool {
        self.steps.iter().all(|step| step.workload == &transports::WORKLOAD)
    }
}

/// Measures what a recipe needs and judges its claims.
///
/// Suites and stacks of the request narrow down those of the recipe; what is left out then is not measured, and its claims
/// say so. The budget is that of the whole run.
///
/// # Errors
/// [`LabError`], as [`workload::run`].
pub fn run(recipe: &Recipe, request: &Request, observer: &mut dyn Observer) -> Result<RunResult, LabError> {
    let device = recipe.steps.iter().any(|step| step.gpu) && packets::gpu::is_there();
    let parts = parts(recipe, request, device);
    if parts.is_empty() {
        return Err(LabError::Plan(PlanError::NoCells));
    }
    let mut result = workload::run_parts(&parts, request, observer)?;
    result.reproduction = Some(evaluate(recipe, &result));
    Ok(result)
}

/// The steps with what is asked of each; those of a device only if there is one, so that others have its time.
fn parts(recipe: &Recipe, request: &Request, device: bool) -> Vec<Part<'static>> {
    let limit = request.budget.or(match request.profile {
        Profile::Quick => Some(QUICK_LIMIT),
        Profile::Standard => Some(STANDARD_LIMIT),
        // Each workload has a limit of its own for that.
        Profile::Full => None,
    });
    let there = recipe.steps.iter().filter(|step| device || !step.gpu);
    let steps = there.filter_map(|step| {
        let suites = narrowed(step.suites, &request.suites)?;
        let stacks = narrowed(step.stacks, &request.stacks)?;
        Some((step, suites, stacks))
    });
    let steps: Vec<_> = steps.collect();
    let shares: u32 = steps.iter().map(|(step, ..)| step.share).sum();
    let of: Vec<&Workload> = steps.iter().map(|(step, ..)| step.workload).collect();
    let parts = steps.iter().map(|(step, suites, stacks)| {
        let part = Request {
            budget: limit.map(|limit| limit * step.share / shares.max(1)),
            peers: step.peers(request.peers_of(step.workload, &of)),
            suites: suites.clone(),
            stacks: stacks.clone(),
            cases: step.cases,
            gpu: step.gpu,
            ..request.clone()
        };
        (step.workload, part)
    });
    parts.collect()
}

/// What is in both lists, where an empty one stands for everything; `None` if that is nothing.
fn narrowed<T: Copy + PartialEq>(own: &[T], asked: &[T]) -> Option<Vec<T>> {
    match (own, asked) {
        (_, []) => Some(own.to_vec()),
        ([], _) => Some(asked.to_vec()),
        _ => {
            let both: Vec<T> = own.iter().copied().filter(|item| asked.contains(item)).collect();
            (!both.is_empty()).then_some(both)
        }
    }
}

/// What a result says of a recipe's claims. Any result can be read, also of another machine or of workloads that were
/// measured by themselves.
pub fn evaluate(recipe: &Recipe, run: &RunResult) -> Reproduction {
    Reproduction {
        recipe: recipe.name.to_owned(),
        about: recipe.about.to_owned(),
        sources: recipe.sources.iter().map(|source| source.facts()).collect(),
        differs: recipe.differs.iter().map(|&text| text.to_owned()).collect(),
        claims: recipe
            .claims
            .iter()
            .map(|claim| claim.evaluate(recipe.peers, run))
            .collect(),
        rankings: recipe
            .rankings
            .iter()
            .map(|ranking| ranking.evaluate(run))
            .filter(is_placed)
            .collect(),
        standing: standing(recipe, run),
        missing: missing(recipe, run),
    }
}

/// An order in which nobody has a place here says nothing.
fn is_placed(ranking: &Ranking) -> bool {
    ranking.entries.iter().any(|entry| !entry.places.is_empty())
}

/// Who did not take part, each with the reason, or with what gets it.
fn missing(recipe: &Recipe, run: &RunResult) -> Vec<String> {
    let programs =
        recipe.peers.iter().filter_map(
            |(name, get)| match run.subjects.iter().find(|known| known.name == *name) {
                Some(known) if known.error.is_empty() => None,
                Some(known) => Some(format!("{name}: {}", known.error)),
                None => Some(format!("{name}: {get}")),
            },
        );
    // It is no subject: what stands behind it is unavailable, and a warning says so.
    let fronts = recipe.steps.iter().flat_map(|step| step.stacks).any(Stack::needs_nginx);
    let lacks = |warning: &Warning| warning.text.contains("nginx") && warning.text.contains(INSTALLER);
    let nginx = (fronts && run.warnings.iter().any(lacks)).then(|| NGINX.to_owned());
    programs.chain(nginx).collect()
}

/// Where our engine is ahead of the peers of its cases and where it is behind, a sentence or two for each workload and
/// peer.
fn standing(recipe: &Recipe, run: &RunResult) -> Vec<String> {
    let mut workloads: Vec<&'static Workload> = Vec::new();
    for step in recipe.steps {
        if !workloads.contains(&step.workload) {
            workloads.push(step.workload);
        }
    }
    workloads
        .into_iter()
        .flat_map(|workload| beside(workload, run))
        .collect()
}

fn beside(workload: &Workload, run: &RunResult) -> Vec<String> {
    let leads = |row: &&ResultRow| row.workload == workload.name && row.subject == OURS && workload.lens.leads(row);
    let rows: Vec<_> = run
        .results
        .iter()
        .filter(leads)
        .filter_map(|row| Some((row, speed(row)?)))
        .filter(|(_, speed)| !speed.to.starts_with(OURS) && speed.to != workload.lens.control)
        .collect();
    let mut peers: Vec<&str> = rows.iter().map(|(_, speed)| speed.to).collect();
    peers.sort_unstable();
    peers.dedup();
    let sentence = |peer: &str| {
        let mine = || rows.iter().filter(|(_, speed)| speed.to == peer);
        let count = |verdict: &str| mine().filter(|(_, speed)| speed.verdict == verdict).count();
        let worse: Vec<String> = mine()
            .filter(|(_, speed)| speed.verdict == "slower")
            .map(|(row, speed)| {
                format!(
                    "{} ({})",
                    (workload.lens.case)(&row.case),
                    crate::format::times(speed.estimate)
                )
            })
            .collect();
        let mut text = format!(
            "Beside {peer} in {}: {OURS} is better in {} of {}, worse in {}, the same in {}; {} not decided.",
            workload.name,
            count("faster"),
            crate::format::count(mine().count(), "case"),
            worse.len(),
            count("same"),
            count("unknown")
        );
        match worse.get(NAMED..).map_or(0, <[String]>::len) {
            _ if worse.is_empty() => {}
            0 => text.push_str(&format!(" Worse: {}.", list(&worse))),
            more => text.push_str(&format!(" Worse: {}, and {more} more.", worse[..NAMED].join(", "))),
        }
        text
    };
    peers.into_iter().map(sentence).collect()
}

/// The marks that keep a row from being held against another of the same subject. That its stack lets forgeries pass is no
/// reason: it is what was published about.
fn marks_of_its_own(row: &ResultRow) -> impl Iterator<Item = &str> {
    barred(row).filter(|mark| *mark != WarningCode::Unauthenticated.code())
}

/// Whether a row can be held against another of the same subject.
fn sound(row: &ResultRow) -> bool {
    let figure = row.median.get();
    figure.is_finite() && figure > 0.0 && marks_of_its_own(row).next().is_none()
}

/// One row over another, and whether it is of the rounds that both have: of figures of different rounds there is only a
/// range. More is taken to be better unless `better` says otherwise. As all ratios of a quick run it has no interval.
fn row_ratio(run: &RunResult, metric: &str, [over, under]: [&ResultRow; 2], better: Better) -> (Ratio, bool) {
    let rules = Rules::of(metric);
    let rules = if run.profile == Profile::Quick.as_str() {
        rules.without_intervals()
    } else {
        rules
    };
    if let Some([ours, theirs]) = rounds::paired(run, [over, under]) {
        return (ratio(&under.subject, &ours, &theirs, better, rules), true);
    }
    let numbers = |row: &ResultRow| row.values.iter().map(|value| value.get()).collect::<Vec<f64>>();
    let found = unpaired(&under.subject, &numbers(over), &numbers(under), better, rules);
    (found, false)
}

#[cfg(test)]
mod tests;
