//! Published measurements beside those of a run.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Num, Ratio};

/// What a recipe found: published claims beside the ratios of this run. Ratios are compared, never absolute figures.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Reproduction {
    /// Name of the recipe, such as `bip324`.
    pub recipe: String,
    /// What was published, in a sentence or two.
    #[serde(default)]
    pub about: String,
    /// Where it was published; claims and rankings name them by place, from 1.
    #[serde(default)]
    pub sources: Vec<Source>,
    /// How hardware and method differ from those of the sources, in sentences.
    #[serde(default)]
    pub differs: Vec<String>,
    /// Published claims with what was measured here.
    #[serde(default)]
    pub claims: Vec<Claim>,
    /// Published orders with ours beside them.
    #[serde(default)]
    pub rankings: Vec<Ranking>,
    /// Where our engine is ahead of its peers in this run and where it is behind, in sentences.
    #[serde(default)]
    pub standing: Vec<String>,
    /// Programs that the recipe compares with and that did not take part, each with the command that gets it.
    #[serde(default)]
    pub missing: Vec<String>,
}

/// Where figures were published.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Source {
    /// Who published what.
    pub name: String,
    /// When, as far as it is known.
    #[serde(default)]
    pub date: String,
    /// Where it can be read.
    #[serde(default)]
    pub address: String,
    /// On what hardware and how.
    #[serde(default)]
    pub method: String,
}

/// A published claim: one ratio.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Claim {
    /// What it says.
    pub text: String,
    /// Place of its source, from 1.
    pub source: u32,
    /// The published ratio; 1 for a claim that there is no difference.
    #[schemars(range(min = 0))]
    pub published: f64,
    /// Fraction by which an interval of ours is widened before the published ratio is looked for in it.
    #[schemars(range(min = 0))]
    pub tolerance: f64,
    /// What is above the line of the ratio.
    pub over: String,
    /// What is below it.
    pub under: String,
    /// What makes this one less comparable; empty where nothing does.
    #[serde(default)]
    pub note: String,
    /// What was measured here, by subject and metric.
    #[serde(default)]
    pub readings: Vec<Reading>,
}

/// A claim as one subject bears it out.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Reading {
    /// The subject, or two with a stroke between them; empty where nobody could be measured.
    pub subject: String,
    /// The metric; `1 / …` where less of it is better and the claim is about more.
    pub metric: String,
    /// The measured ratio.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Ratio")]
    pub ratio: Option<Ratio>,
    /// `confirmed`, `larger`, `smaller` (the same direction, another size), `no difference`, `contradicted`, `not decided`
    /// or `not measured`.
    #[schemars(extend("enum" = [
        "confirmed", "larger", "smaller", "no difference", "contradicted", "not decided", "not measured"
    ]))]
    pub verdict: String,
    /// Why nothing was decided or measured, and what to do.
    #[serde(default)]
    pub why: String,
}

/// A published order.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Ranking {
    /// What is ordered.
    pub title: String,
    /// Place of its source, from 1.
    pub source: u32,
    /// Unit of the published figures.
    pub unit: String,
    /// Best first, as published; then what was published without a figure.
    pub entries: Vec<Ranked>,
    /// How far both orders agree, a sentence for each subject and metric.
    #[serde(default)]
    pub agreement: Vec<String>,
}

/// An entry of an order.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Ranked {
    /// What it is.
    pub name: String,
    /// The published figure; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub published: Option<f64>,
    /// Its places here.
    #[serde(default)]
    pub places: Vec<Placed>,
    /// CPUs that its processes kept busy here.
    #[serde(default)]
    pub loads: Vec<Load>,
}

/// CPUs that a process kept busy; 1 is one CPU all the time.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Load {
    /// Of whom.
    pub subject: String,
    /// `client`, `front` or `server`.
    pub process: String,
    /// On the average of a window, the median over rounds.
    pub average: Num,
    /// In the busiest twentieth of a second of a window, the median over rounds.
    pub peak: Num,
}

/// A place in an order of ours.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Placed {
    /// Of whom.
    pub subject: String,
    /// By what.
    pub metric: String,
    /// From 1, among the entries that may be ranked.
    pub place: u32,
    /// True if the rounds do not tell it apart from the place before.
    pub tied: bool,
    /// The median, in SI base units.
    pub median: Num,
}

impl Ranking {
    /// Whether the published figure of an entry is within 2 % of the one before: single runs give these no order.
    pub(crate) fn tied(&self, at: usize) -> bool {
        let before = at.checked_sub(1).and_then(|before| self.entries.get(before));
        let pair = before.zip(self.entries.get(at));
        pair.is_some_and(|(before, entry)| {
            let published = before.published.zip(entry.published);
            published.is_some_and(|(better, worse)| !in_order(better, worse))
        })
    }
}

/// Whether two published figures, the better one first, are far enough from each other to stand for an order: 2 %.
pub(crate) fn in_order(better: f64, worse: f64) -> bool {
    better > worse * 1.02
}
