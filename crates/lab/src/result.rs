//! The result file: one JSON object a run, schema 1.
//!
//! These types are the only definition of the format; its JSON schema is derived from them ([`crate::report::schema`]). Readers ignore unknown keys, so additions are free; `schema`
//! rises only for a breaking change. All quantities are SI base units (`B`, `s`, `B/s`, `1/s`, `s/op`); a number that
//! is not finite is written as the string `"inf"`, `"-inf"` or `"nan"`.

mod case;
mod link;
mod number;
mod reproduction;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

pub use case::{Case, CaseValue};
pub use link::EmulatedLink;
pub use number::Num;
pub(crate) use reproduction::in_order;
pub use reproduction::{Claim, Load, Placed, Ranked, Ranking, Reading, Reproduction, Source};

/// The schema number this library writes and the highest it reads.
pub const SCHEMA: u32 = 1;

/// A whole run: everything needed to rebuild every table and chart, and to repeat the run.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct RunResult {
    /// [`SCHEMA`] at the time of writing.
    #[schemars(extend("const" = SCHEMA))]
    pub schema: u32,
    /// Random identifier of the run, in the text form of a UUID.
    pub run: String,
    /// Start of the run, RFC 3339, UTC.
    pub started: String,
    /// End of the run, RFC 3339, UTC; the last save for a run that was cut short.
    #[serde(default)]
    pub ended: String,
    /// False while the run goes on and for ever after if it was interrupted.
    #[serde(default)]
    pub complete: bool,
    /// Version and commit, as `0.1.0+abcdef012345` (with `-dirty` when the tree was changed).
    pub sealway: String,
    /// `quick`, `standard` or `full`.
    #[serde(default)]
    pub profile: String,
    /// Seed of every random choice of the run, as text because it may exceed 2^53.
    #[serde(default)]
    pub seed: String,
    /// The command line that repeats the run.
    #[serde(default)]
    pub command: Vec<String>,
    /// What the machine is (`machine.key` joins runs of equal machines).
    pub machine: Machine,
    /// The other host; absent where one machine did it all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Responder")]
    pub responder: Option<Responder>,
    /// What the plan was before the first window, and the time that it took.
    #[serde(default)]
    pub plan: PlanFacts,
    /// The link that was emulated between the ends of all that was measured; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "EmulatedLink")]
    pub link: Option<EmulatedLink>,
    /// What a reader must know before believing a row.
    #[serde(default)]
    pub warnings: Vec<Warning>,
    /// Every engine and peer that took part, or that should have and could not.
    #[serde(default)]
    pub subjects: Vec<Subject>,
    /// One entry per workload, subject, case and metric.
    #[serde(default)]
    pub results: Vec<ResultRow>,
    /// One entry per timed window, in the order they ran.
    #[serde(default)]
    pub windows: Vec<Window>,
    /// What to use where, and the figures it rests on.
    #[serde(default)]
    pub recommendation: Vec<Recommendation>,
    /// Published measurements beside those of this run; absent unless it was made to check some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Reproduction")]
    pub reproduction: Option<Reproduction>,
}

impl RunResult {
    /// The subject called `name`, if the run lists one.
    pub fn subject(&self, name: &str) -> Option<&Subject> {
        self.subjects.iter().find(|subject| subject.name == name)
    }
}

/// Facts about the machine. The fixed fields are the ones programs join on; the rest is in `facts`.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Machine {
    /// Hash over model, microcode, cores, kernel `major.minor` and hypervisor: equal for equal machines.
    #[serde(default)]
    pub key: String,
    /// CPU model as the kernel names it.
    #[serde(default)]
    pub cpu: String,
    /// CPU features the engine can use here, by their usual names (`aes`, `avx2`, `avx512f`, …).
    #[serde(default)]
    pub flags: Vec<String>,
    /// Logical CPUs this process may run on.
    #[serde(default)]
    pub cores: u32,
    /// Kernel release.
    #[serde(default)]
    pub kernel: String,
    /// Physical memory in bytes.
    #[serde(default)]
    pub memory: u64,
    /// Architecture: `x86_64`, `aarch64`, …
    #[serde(default)]
    pub arch: String,
    /// Everything else that was captured: sorted names to a string, number, boolean or list.
    #[serde(default)]
    pub facts: BTreeMap<String, Value>,
}

impl Machine {
    /// A fact that is a text.
    pub fn text(&self, fact: &str) -> Option<&str> {
        self.facts.get(fact)?.as_str()
    }
}

/// The host at the other end of a run on two: servers and sink ran there, and `machine` had clients and generator.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Responder {
    /// Version and commit of its program.
    #[serde(default)]
    pub sealway: String,
    /// What it is, in its own words.
    pub machine: Machine,
    /// Shortest time of an answer before the first window, seconds.
    #[serde(default)]
    pub rtt_s: Num,
}

/// What was planned, printed before the run starts, and the time that it took.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct PlanFacts {
    /// Rounds, each a visit to every cell. Where several workloads share a result: the most of any.
    #[serde(default)]
    pub rounds: u32,
    /// Length of a timed window in seconds; of several workloads, the shortest.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub window_s: f64,
    /// Warm-up before each window in seconds.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub warmup_s: f64,
    /// Cells (case times subject) in a round, of all workloads.
    #[serde(default)]
    pub cells: u32,
    /// Expected duration of the whole run in seconds.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub expected_s: f64,
    /// Duration of the whole run in seconds, by a clock that is never set; 0 until it is over, and in older results.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub taken_s: f64,
}

/// One thing a reader must know, with a code that a program can match.
#[derive(Clone, Debug, Deserialize, Eq, JsonSchema, PartialEq, Serialize)]
pub struct Warning {
    /// Stable code, such as `shared-cpu` or `noisy`.
    #[schemars(length(min = 1))]
    pub code: String,
    /// The row, file or part of the machine it is about; empty for the whole run.
    #[serde(default, rename = "where")]
    pub place: String,
    /// One or two sentences for people, with the numbers and what to do.
    pub text: String,
}

/// An engine or a peer.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Subject {
    /// Short name, the one used in `results`: `sealway`, `aws-lc-rs`, `ring`, `rustcrypto`, `openssl`.
    #[schemars(length(min = 1))]
    pub name: String,
    /// Version text as the peer itself or its package states it.
    #[serde(default)]
    pub version: String,
    /// `in-process` or `program`.
    #[serde(default)]
    pub kind: String,
    /// SHA-256 of a program's file, lower-case hex; empty for in-process subjects.
    #[serde(default)]
    #[schemars(regex(pattern = "^([0-9a-f]{64})?$"))]
    pub sha256: String,
    /// Command lines used, by role; empty for in-process subjects.
    #[serde(default)]
    pub role_argv: BTreeMap<String, Vec<String>>,
    /// Configurations of a program, by stack and role, with made-up ports and ids; a text where it is not JSON.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub config: BTreeMap<String, Value>,
    /// `default`, `matched` or `tuned`.
    #[serde(default)]
    pub setup: String,
    /// What differs from the reference set-up, each in a few words.
    #[serde(default)]
    pub differs: Vec<String>,
    /// Why the subject did not take part; empty when it did.
    #[serde(default)]
    pub error: String,
}

/// One figure: a metric of one subject in one case, over all rounds.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct ResultRow {
    /// Workload name, such as `primitives`.
    pub workload: String,
    /// Hash of the numbers that define the workload: equal hashes measure the same thing.
    #[serde(default)]
    pub workload_def: String,
    /// Name of the subject.
    pub subject: String,
    /// Parameters of the case.
    pub case: Case,
    /// `throughput`, `rate`, `latency_p50`, `cpu_per_op`, `setup_time`, …
    pub metric: String,
    /// SI unit of all numbers of this row.
    pub unit: String,
    /// `higher` or `lower`.
    #[schemars(extend("enum" = ["higher", "lower"]))]
    pub better: String,
    /// Median over rounds; where `over` is `samples`, the percentile of the samples of all rounds together.
    pub median: Num,
    /// What `median` is taken over: `rounds`, or `samples` for percentiles and the longest of latencies.
    #[serde(default = "over_rounds")]
    #[schemars(extend("enum" = ["rounds", "samples"]))]
    pub over: String,
    /// Median absolute deviation over rounds.
    #[serde(default)]
    pub mad: Num,
    /// Lower end: of the interval where `how` says so, else the minimum.
    pub low: Num,
    /// Upper end: of the interval where `how` says so, else the maximum.
    pub high: Num,
    /// `range` (minimum and maximum) or `order-statistics` (an interval for the median).
    #[serde(default)]
    pub how: String,
    /// Number of rounds with a value.
    pub rounds: u32,
    /// Value of every round, in round order.
    #[serde(default)]
    pub values: Vec<Num>,
    /// Method letter of the clock or meter; `T` is wall time, `P` a process CPU clock.
    #[serde(default)]
    pub method: String,
    /// `full` when every timed output was compared with the oracle, `sampled` when some were (single keys, whose check takes
    /// longer than their making), `self` when a peer counted for itself.
    #[serde(default)]
    pub verified: String,
    /// Ratio to the reference subject of the same case; absent for the reference itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Ratio")]
    pub ratio: Option<Ratio>,
    /// Marks such as `noisy`, `unusable`, `two-modes`, `outlier`, `not-steady`.
    #[serde(default)]
    pub flags: Vec<String>,
}

fn over_rounds() -> String {
    "rounds".to_owned()
}

impl ResultRow {
    /// The value of every round, in round order.
    pub fn numbers(&self) -> Vec<f64> {
        self.values.iter().map(|value| value.get()).collect()
    }

    /// Whether it has a mark.
    pub fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|found| found == flag)
    }
}

/// How one subject stands to another in the same rounds.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Ratio {
    /// The subject in the denominator.
    pub to: String,
    /// Hodges-Lehmann estimate of this subject over the other; above 1 is faster for `better: higher`.
    pub estimate: Num,
    /// Lower end.
    pub low: Num,
    /// Upper end.
    pub high: Num,
    /// Coverage of the interval, such as 0.969; 0 when it is a plain range.
    #[schemars(range(min = 0, max = 1))]
    pub level: f64,
    /// `signed-rank` or `range` (fewer than six rounds).
    pub how: String,
    /// Smallest detectable effect as a fraction, such as 0.02.
    pub mde: Num,
    /// `faster`, `slower`, `same` or `unknown`, of this subject against `to`.
    #[schemars(extend("enum" = ["faster", "slower", "same", "unknown"]))]
    pub verdict: String,
}

/// One timed window.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Window {
    /// Workload name.
    pub workload: String,
    /// Parameters of the case.
    pub case: Case,
    /// Name of the subject.
    pub subject: String,
    /// Round, from 0.
    pub round: u32,
    /// Position in the whole run, from 0.
    pub order: u32,
    /// Start, seconds since the start of the run.
    #[schemars(range(min = 0))]
    pub t: f64,
    /// Wall time of the window in seconds.
    #[schemars(range(min = 0))]
    pub wall_s: f64,
    /// CPU time of the measuring thread in the window in seconds.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub cpu_s: f64,
    /// Payload bytes processed.
    #[serde(default)]
    pub bytes: u64,
    /// Operations done.
    #[serde(default)]
    pub ops: u64,
    /// Further figures of the window, by the name of their metric.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub figures: BTreeMap<String, Num>,
    /// Canary before and after the window.
    #[serde(default)]
    pub canary: Vec<CanarySample>,
    /// Share of the machine stolen by the hypervisor during the window, 0 to 1.
    #[serde(default)]
    #[schemars(range(min = 0, max = 1))]
    pub steal: f64,
    /// Involuntary context switches of the measuring thread.
    #[serde(default)]
    pub preempted: u64,
    /// Cause recorded for repeating or marking the window; empty for a calm one.
    #[serde(default)]
    pub marks: Vec<String>,
}

impl Window {
    /// Whether it has a mark.
    pub fn has(&self, mark: &str) -> bool {
        self.marks.iter().any(|found| found == mark)
    }
}

/// One run of the canary loop.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct CanarySample {
    /// CPU time of 4,000,000 steps of its loop, in seconds: relative clock speed, the same measure in every run.
    #[schemars(range(min = 0))]
    pub cpu_s: f64,
    /// Wall time over CPU time: 1 when nothing else ran on this CPU.
    #[schemars(range(min = 0))]
    pub wall_over_cpu: f64,
}

/// What to choose in one scenario.
#[derive(Clone, Debug, Deserialize, JsonSchema, PartialEq, Serialize)]
pub struct Recommendation {
    /// Stable name of the scenario: `server`, `mobile`, `mixed-fleet`, `short-connections`, `nonce-misuse`.
    pub scenario: String,
    /// The choice, a suite name where it is one.
    pub choice: String,
    /// Why, in sentences that carry the figures.
    pub reason: String,
    /// Indices into `results` of the figures it rests on.
    #[serde(default)]
    pub because: Vec<usize>,
    /// `clear`, `slight`, `tie` or `unknown`.
    #[schemars(extend("enum" = ["clear", "slight", "tie", "unknown"]))]
    pub confidence: String,
}
