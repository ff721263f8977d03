//! What a report shows, before anything is drawn: the run, the answer, and the view of each workload through its lens.

use super::standings::{Sum, sums};
use crate::format::{self, count, gap};
use crate::lens::headline::UNKNOWN;
use crate::lens::rank::settle_all;
use crate::lens::{Against, Calm, Family, Grade, Headline, Lens, OURS, Scope, subjects};
use crate::remote;
use crate::result::{Case, CaseValue, Machine, Recommendation, Reproduction, ResultRow, RunResult};
use crate::workload::{Catalogue, Workload};

/// A run as both reports show it.
pub(crate) struct Report<'a> {
    pub(crate) run: &'a RunResult,
    /// Subjects that have at least one row or were listed, ours first, controls last: the order of every table and legend.
    pub(crate) subjects: Vec<&'a str>,
    /// Workloads that have rows, in the order of the catalogue.
    pub(crate) views: Vec<View<'a>>,
}

/// The rows of a workload and what its lens makes of them.
pub(crate) struct View<'a> {
    pub(crate) workload: &'static Workload,
    pub(crate) lens: &'static Lens,
    pub(crate) scope: Scope<'a>,
    pub(crate) families: Vec<Family<'a>>,
    pub(crate) intro: String,
    pub(crate) findings: Vec<String>,
}

impl<'a> Report<'a> {
    /// Sorts a run that is [`harmless`]. Rows of workloads that the catalogue does not have are left for the table of all
    /// figures.
    pub(crate) fn new(run: &'a RunResult, catalogue: &Catalogue) -> Report<'a> {
        let mut subjects = subjects(run, &catalogue.peers());
        // Behind those too that no workload knows by name.
        subjects.sort_by_key(|name| catalogue.controls().any(|control| control == *name));
        let views = catalogue.iter().filter_map(|workload| {
            let of = |row: &&ResultRow| row.workload == workload.name;
            let rows: Vec<&ResultRow> = run.results.iter().filter(of).collect();
            (!rows.is_empty()).then(|| View::new(workload, run, rows, subjects.clone()))
        });
        Report {
            run,
            views: views.collect(),
            subjects,
        }
    }

    /// The answer, and the workload that gives it: the first that names something, or else that has a reason why not.
    pub(crate) fn headline(&self) -> (Option<&View<'a>>, Headline) {
        if let Some((view, answer)) = self.answers().into_iter().next() {
            return (Some(view), answer);
        }
        let none = "This run has no figures.".to_owned();
        let none = Headline::new(none, UNKNOWN, "no answer", "nothing to compare");
        (self.views.first(), none)
    }

    /// What the other workloads name, each in a sentence with its lead.
    pub(crate) fn also(&self) -> impl Iterator<Item = String> {
        let others = self.answers().into_iter().skip(1);
        others.filter(|(_, answer)| answer.which != UNKNOWN).map(|(_, answer)| {
            let Headline { lead, lead_note, .. } = &answer;
            match answer.sure {
                None => answer.answer.clone(),
                Some(sure) => format!(
                    "{} Use {} ({}): {lead}{}{lead_note}.",
                    answer.answer,
                    answer.which,
                    sure.word(),
                    gap(lead)
                ),
            }
        })
    }

    /// The answers of all workloads, that which leads first.
    fn answers(&self) -> Vec<(&View<'a>, Headline)> {
        let views = self.views.iter();
        let mut answers: Vec<(&View<'a>, Headline)> = views
            .filter_map(|view| Some((view, (view.lens.headline)(&view.scope)?)))
            .collect();
        let named = |(_, answer): &(&View<'a>, Headline)| answer.which != UNKNOWN;
        if let Some(leads) = answers.iter().position(named) {
            answers[..=leads].rotate_right(1);
        }
        answers
    }

    /// How sure a recommendation is, by its figures and how calm the machine was while they were taken.
    pub(crate) fn grade(&self, item: &Recommendation) -> Grade {
        let rows = item.because.iter().filter_map(|index| self.run.results.get(*index));
        Grade::read(&item.confidence).on(&Calm::of_rows(self.run, rows))
    }

    /// Who was measured, and what they are: names come before they are used.
    pub(crate) fn measured(&self, view: &View<'_>) -> String {
        // Variants of ours, but no pair of ours with another program.
        let is_ours = |name: &str| name.starts_with(OURS) && !name.contains('+');
        let took_part = |name: &&&str| {
            !is_ours(name) && **name != view.lens.control && view.scope.rows.iter().any(|row| row.subject == **name)
        };
        let others: Vec<&str> = self.subjects.iter().filter(took_part).copied().collect();
        let (pairs, programs): (Vec<&str>, Vec<&str>) = others.into_iter().partition(|name| name.contains('+'));
        let mut names = programs.join(", ");
        if !pairs.is_empty() {
            let gap = if names.is_empty() { "" } else { "; " };
            names += &format!("{gap}as client+server: {}", pairs.join(", "));
        }
        match names.as_str() {
            "" => format!("Measured: {OURS}, which is this program."),
            names => format!("Measured: {OURS} (this program) beside {} ({names}).", view.lens.others),
        }
    }

    /// A case in a few words.
    pub(crate) fn case(&self, row: &ResultRow) -> String {
        let view = self.views.iter().find(|view| view.workload.name == row.workload);
        view.map_or_else(|| row.case.to_string(), |view| (view.lens.case)(&row.case))
    }

    /// Which of the fixed series colours and shapes a subject has, 0 to 4; 5 for one without.
    pub(crate) fn series(&self, subject: &str) -> usize {
        let mut found = self.views.iter().map(|view| view.series(subject));
        found.find(|series| *series < 5).unwrap_or(5)
    }

    /// The title of a scenario that a workload of the catalogue has advice for.
    pub(crate) fn scenario<'s>(&self, name: &'s str) -> &'s str {
        let mut titles = self.views.iter().flat_map(|view| view.lens.scenarios);
        titles
            .find(|(known, _)| *known == name)
            .map_or(name, |(_, title)| title)
    }

    /// What the numbers cannot show, by workload, each with its name; what holds for all comes last, without a name.
    pub(crate) fn limits(&self) -> Vec<(&'static str, &'static [&'static str])> {
        let views = self.views.iter();
        let limits = |workload: &'static Workload| match self.run.responder {
            Some(_) => &remote::LIMITS[..],
            None => workload.limits,
        };
        let own = views.map(|view| (view.workload.name, limits(view.workload)));
        let link = self.run.link.iter().map(|_| ("the emulated link", &LINK[..]));
        let counters = self.counters().map(|counter| (counter.name, &counter.meaning[..]));
        own.chain(link).chain(counters).chain([("", &ALWAYS[..])]).collect()
    }

    /// What the run has figures of, besides what the workloads are about.
    pub(crate) fn counters(&self) -> impl Iterator<Item = &'static Counter> {
        let has = move |counter: &&Counter| {
            self.run
                .results
                .iter()
                .any(|row| row.metric.starts_with(counter.metrics))
        };
        COUNTERS.iter().filter(has)
    }
}

/// A counter of the machine that figures are shown of where it can be read.
pub(crate) struct Counter {
    name: &'static str,
    /// The same as a heading on the terminal.
    pub(crate) label: &'static str,
    /// How its metrics begin.
    metrics: &'static str,
    /// What must be known of it.
    pub(crate) meaning: [&'static str; 1],
}

static COUNTERS: [Counter; 2] = [
    Counter {
        name: "energy",
        label: "Energy   ",
        metrics: "energy_per_",
        meaning: [
            "Joules are those of all processor packages of the machine that measures, whoever used them: they hold for a \
             machine that is quiet otherwise.",
        ],
    },
    Counter {
        name: "cycles",
        label: "Cycles   ",
        metrics: "cycles_per_",
        meaning: [
            "Cycles are those of the measuring thread in user space, without those of the kernel. They do not depend on \
             the clock speed, but for waits on memory.",
        ],
    },
];

/// What an emulated link is not.
const LINK: [&str; 2] = [
    "The link is a model: one window like Reno's, packets lost one by one, a stall of one round trip for each, a queue that drops nothing.",
    "Timeouts, reordering, jitter, bursts of losses and other ways of congestion control are not in it; handshakes lose nothing.",
];

/// What every reader of any figure should know that it does not show.
pub(crate) const ALWAYS: [&str; 3] = [
    "The speed of a virtual machine or a laptop changes with neighbours, heat and power; ratios of one run hold better than absolute rates.",
    "Sizes and loads that were not measured are not interpolated; lines between points only guide the eye.",
    "Side channels, code size and build effort are not measured; a fast row says nothing about them.",
];

impl<'a> View<'a> {
    fn new(workload: &'static Workload, run: &'a RunResult, rows: Vec<&'a ResultRow>, subjects: Vec<&'a str>) -> Self {
        let scope = Scope { run, rows, subjects };
        let lens = workload.lens;
        View {
            workload,
            lens,
            families: scope.families(lens),
            intro: (lens.intro)(&scope),
            findings: (lens.findings)(&scope),
            scope,
        }
    }

    /// As [`Report::series`], by this lens alone.
    pub(crate) fn series(&self, subject: &str) -> usize {
        if subject == OURS {
            return 0;
        }
        let colours = self.lens.colours.iter().take(4);
        colours
            .clone()
            .position(|known| *known == subject)
            .map_or(5, |place| place + 1)
    }

    /// The standings over all cases that say something.
    pub(crate) fn standings(&self) -> Vec<Sum<'a>> {
        // Ours is the client of a pair, or its server.
        let of_ours = |name: &str| name.split('+').any(|half| half.starts_with(OURS));
        let counts = |name: &&&str| self.lens.against == Against::First || of_ours(name);
        let subjects = self.scope.subjects.iter().filter(counts);
        subjects.flat_map(|name| sums(self.lens, &self.scope, name)).collect()
    }
}

/// The rounds actually visited, of those planned: `9 rounds`, `2 to 3 of 3 rounds`.
pub(crate) fn visited(run: &RunResult) -> String {
    let done = run.results.iter().map(|row| row.rounds);
    let (least, most) = (done.clone().min().unwrap_or(0), done.max().unwrap_or(0));
    match run.plan.rounds {
        planned if least == planned && most == planned => count(planned as usize, "round"),
        planned if least == most => format!("{most} of {planned} rounds"),
        planned => format!("{least} to {most} of {planned} rounds"),
    }
}

/// The rounds actually visited, and what is measured in each, in words.
pub(crate) fn rounds(run: &RunResult) -> String {
    format!(
        "{} of {}, {} each after {} warm-up",
        visited(run),
        count(run.plan.cells as usize, "measurement"),
        format::seconds(run.plan.window_s),
        format::seconds(run.plan.warmup_s),
    )
}

/// The CPU, and the rest of the machine in one line.
pub(crate) fn machine(m: &Machine) -> (&str, String) {
    let cpu = if m.cpu.is_empty() { "unknown CPU" } else { &m.cpu };
    let mut rest = vec![count(m.cores as usize, "CPU")];
    if !m.arch.is_empty() {
        rest.push(m.arch.clone());
    }
    if !m.kernel.is_empty() {
        rest.push(format!("Linux {}", m.kernel));
    }
    if m.memory > 0 {
        rest.push(format::memory(m.memory));
    }
    (cpu, rest.join(", "))
}

/// Subjects that should have taken part and did not.
pub(crate) fn absent(run: &RunResult) -> impl Iterator<Item = String> {
    let missing = run.subjects.iter().filter(|subject| !subject.error.is_empty());
    missing.map(|subject| format!("{} took no part: {}", subject.name, subject.error))
}

/// Makes texts of something harmless.
macro_rules! clean_texts {
    ($of:ident, $($text:ident),+) => {
        $(clean(&mut $of.$text);)+
    };
}

/// The run with every foreign text made harmless for any display (see [`format::clean`]), and with the verdicts that its rows
/// may have: nothing after this has to think of either.
pub(crate) fn harmless(run: &RunResult) -> RunResult {
    let mut run = run.clone();
    settle_all(&mut run.results);
    clean_texts!(run, run, started, ended, sealway, profile, seed);
    clean_machine(&mut run.machine);
    if let Some(responder) = &mut run.responder {
        clean(&mut responder.sealway);
        clean_machine(&mut responder.machine);
    }
    run.command.iter_mut().for_each(clean);
    for warning in &mut run.warnings {
        clean_texts!(warning, code, place, text);
    }
    for subject in &mut run.subjects {
        clean_texts!(subject, name, version, kind, sha256, setup, error);
        subject.differs.iter_mut().for_each(clean);
        subject.role_argv.values_mut().flatten().for_each(clean);
    }
    for row in &mut run.results {
        clean_texts!(row, workload, subject, metric, unit, verified);
        row.flags.iter_mut().for_each(clean);
        clean_case(&mut row.case);
        if let Some(ratio) = &mut row.ratio {
            clean_texts!(ratio, to, verdict);
        }
    }
    for window in &mut run.windows {
        clean(&mut window.subject);
        window.marks.iter_mut().for_each(clean);
        clean_case(&mut window.case);
    }
    for item in &mut run.recommendation {
        clean_texts!(item, scenario, choice, reason, confidence);
    }
    if let Some(link) = &mut run.link {
        clean(&mut link.asked);
    }
    if let Some(found) = &mut run.reproduction {
        clean_reproduction(found);
    }
    run
}

fn clean(text: &mut String) {
    // Nearly all texts are harmless as they are, and there can be many.
    if !text.bytes().all(|byte| byte.is_ascii_graphic() || byte == b' ') {
        *text = format::clean(text);
    }
}

fn clean_machine(machine: &mut Machine) {
    clean_texts!(machine, key, cpu, kernel, arch);
    machine.flags.iter_mut().for_each(clean);
}

fn clean_reproduction(found: &mut Reproduction) {
    clean_texts!(found, recipe, about);
    for texts in [&mut found.differs, &mut found.standing, &mut found.missing] {
        texts.iter_mut().for_each(clean);
    }
    for source in &mut found.sources {
        clean_texts!(source, name, date, address, method);
    }
    for claim in &mut found.claims {
        clean_texts!(claim, text, over, under, note);
        for reading in &mut claim.readings {
            clean_texts!(reading, subject, metric, verdict, why);
        }
    }
    for ranking in &mut found.rankings {
        clean_texts!(ranking, title, unit);
        ranking.agreement.iter_mut().for_each(clean);
        for entry in &mut ranking.entries {
            clean(&mut entry.name);
            for load in &mut entry.loads {
                clean_texts!(load, subject, process);
            }
            for place in &mut entry.places {
                clean_texts!(place, subject, metric);
            }
        }
    }
}

fn clean_case(case: &mut Case) {
    let cleaned = case.0.iter().map(|(name, value)| match value {
        CaseValue::Text(text) => (format::clean(name), CaseValue::Text(format::clean(text))),
        other => (format::clean(name), other.clone()),
    });
    case.0 = cleaned.collect();
}
