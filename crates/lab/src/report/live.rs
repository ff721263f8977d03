//! What is shown of a run while it goes on: lines of text from what is known of it. Drawing them is the caller's work.

use super::terminal::{Style, in_charset};
use crate::format::{clean, clock, count};
use crate::result::{PlanFacts, ResultRow, RunResult};
use crate::run::Step;
use crate::workload::Catalogue;

/// Characters of the bar, and of the one for a terminal of less than so many columns.
const BAR: usize = 20;
const SHORT_BAR: usize = 10;
const NARROW: usize = 60;

/// Most figures that are shown, those with the widest spread.
const MOST: usize = 5;

/// Shorter runs need no second word on their time.
const WORTH_SAYING: f64 = 60.0;

/// A run under way, of one workload after the other.
#[derive(Clone, Debug)]
pub struct Live {
    catalogue: Catalogue,
    announced_s: f64,
    now: Option<Now>,
    spreads: Vec<Spread>,
    /// How many figures have a spread.
    figures: usize,
    /// The time has been said again for this workload, or need not be.
    corrected: bool,
}

/// What begins, in words.
#[derive(Clone, Debug)]
struct Now {
    workload: String,
    what: String,
    round: Option<u32>,
    rounds: u32,
    done: u32,
    total: u32,
    left_s: f64,
}

/// How far the rounds of a figure lie apart.
#[derive(Clone, Debug)]
struct Spread {
    what: String,
    /// Distance of the ends over the median.
    share: f64,
}

impl Live {
    /// A run of workloads of `catalogue` that has not begun.
    pub fn new(catalogue: Catalogue) -> Live {
        Live {
            catalogue,
            announced_s: 0.0,
            now: None,
            spreads: Vec::new(),
            figures: 0,
            corrected: false,
        }
    }

    /// The next workload has a plan.
    pub fn planned(&mut self, plan: &PlanFacts) {
        *self = Live {
            announced_s: plan.expected_s,
            corrected: plan.expected_s < WORTH_SAYING,
            ..Live::new(self.catalogue)
        };
    }

    /// Something begins.
    pub fn step(&mut self, step: &Step<'_>) {
        let lens = self.catalogue.named(step.workload).map(|workload| workload.lens);
        let case = lens.map_or_else(|| step.case.to_string(), |lens| (lens.case)(step.case));
        self.now = Some(Now {
            workload: clean(step.workload),
            what: clean(&format!("{}  {case}", step.subject)),
            round: step.round,
            rounds: step.rounds,
            done: step.done,
            total: step.total,
            left_s: step.left_s,
        });
    }

    /// A round is complete: the figures of the workload under way stand in `partial`.
    pub fn round_done(&mut self, partial: &RunResult) {
        let Some(workload) = self.now.as_ref().and_then(|now| self.catalogue.named(&now.workload)) else {
            return;
        };
        let lens = workload.lens;
        let of = |row: &&ResultRow| row.workload == workload.name && row.rounds > 1 && lens.leads(row);
        self.spreads = partial
            .results
            .iter()
            .filter(of)
            .map(|row| Spread {
                what: clean(&format!("{}  {}", row.subject, (lens.case)(&row.case))),
                share: (row.high.get() - row.low.get()) / row.median.get(),
            })
            .filter(|spread| spread.share.is_finite())
            .collect();
        self.figures = self.spreads.len();
        self.spreads.sort_by(|a, b| b.share.total_cmp(&a.share));
        self.spreads.truncate(MOST);
    }

    /// The time that the workload under way will take, in words, if the first round has shown that it is over a fifth off what was announced.
    /// It is said once for each workload.
    pub fn correction(&mut self, step: &Step<'_>) -> Option<String> {
        if self.corrected || step.round.is_none_or(|round| round < 2) {
            return None;
        }
        self.corrected = true;
        let takes = step.elapsed_s + step.left_s;
        let off = (takes / self.announced_s - 1.0).abs() > 0.2;
        off.then(|| {
            format!(
                "{}: by the first round about {} in all",
                clean(step.workload),
                clock(takes)
            )
        })
    }

    /// What is known, in at most `rows` lines of at most `columns` characters.
    pub fn lines(&self, columns: usize, rows: usize, style: &Style) -> Vec<String> {
        let Some(now) = &self.now else { return Vec::new() };
        let page = Page {
            columns,
            unicode: style.unicode,
        };
        let mut lines = vec![
            page.parts(&[now.workload.clone(), now.where_it_is(), now.visit()]),
            page.parts(&[now.bar(&page), now.percent(), now.left(), self.announced()]),
            page.cut(&format!("now     {}", now.what)),
        ];
        for (place, spread) in self.spreads.iter().enumerate() {
            let label = if place == 0 { "spread  " } else { "        " };
            lines.push(page.with_figure(&format!("{label}{}", spread.what), &percent(spread.share)));
        }
        let more = self.figures - self.spreads.len();
        if more > 0 {
            lines.push(page.cut(&format!("        and less for {more} more")));
        }
        lines.truncate(rows);
        lines
    }

    fn announced(&self) -> String {
        format!("(announced {})", clock(self.announced_s))
    }
}

impl Now {
    fn where_it_is(&self) -> String {
        match self.round {
            Some(round) => format!("round {round} of {}", self.rounds),
            None => "checks before the first round".to_owned(),
        }
    }

    fn visit(&self) -> String {
        match self.round {
            Some(_) => format!("visit {} of {}", self.done.saturating_add(1), self.total),
            None => String::new(),
        }
    }

    fn share(&self) -> f64 {
        (f64::from(self.done) / f64::from(self.total.max(1))).min(1.0)
    }

    fn bar(&self, page: &Page) -> String {
        let long = if page.columns < NARROW { SHORT_BAR } else { BAR };
        let full = (self.share() * long as f64) as usize;
        let (done, open) = if page.unicode { ("█", "░") } else { ("#", "-") };
        format!("{}{}", done.repeat(full), open.repeat(long - full))
    }

    fn percent(&self) -> String {
        format!("{:.0} %", (self.share() * 100.0).floor())
    }

    fn left(&self) -> String {
        format!("{} left", clock(self.left_s))
    }
}

/// What fits.
struct Page {
    columns: usize,
    unicode: bool,
}

impl Page {
    /// Parts of a line, as many from the first on as there is room for; empty ones are none.
    fn parts(&self, parts: &[String]) -> String {
        let mut line = String::new();
        for part in parts.iter().filter(|part| !part.is_empty()) {
            let part = in_charset(part, self.unicode);
            let gap = if line.is_empty() { "" } else { "  " };
            let long = line.chars().count() + gap.len() + part.chars().count();
            if !line.is_empty() && long > self.columns {
                break;
            }
            line.push_str(gap);
            line.push_str(&part);
        }
        self.cut(&line)
    }

    /// The start of a line.
    fn cut(&self, line: &str) -> String {
        let line = in_charset(line, self.unicode);
        if line.chars().count() <= self.columns {
            return line;
        }
        let dots = if self.unicode { "…" } else { "..." };
        let kept = self.columns.saturating_sub(dots.chars().count());
        let short: String = line.chars().take(kept).collect();
        format!("{}{dots}", short.trim_end())
            .chars()
            .take(self.columns)
            .collect()
    }

    /// A line with a figure at its right end.
    fn with_figure(&self, line: &str, figure: &str) -> String {
        const FIGURE: usize = 8;
        let room = self.columns.saturating_sub(FIGURE).min(72);
        let text = Page { columns: room, ..*self }.cut(line);
        self.cut(&format!("{text:room$}{figure:>FIGURE$}"))
    }
}

/// The announcement of a plan.
pub fn announcement(plan: &PlanFacts) -> String {
    format!(
        "{} of {}: about {}",
        count(plan.rounds as usize, "round"),
        count(plan.cells as usize, "measurement"),
        clock(plan.expected_s)
    )
}

/// A share in per cent; two digits below 10.
fn percent(share: f64) -> String {
    let percent = share.abs() * 100.0;
    if percent < 9.95 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}
