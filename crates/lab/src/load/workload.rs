//! From a list of cases to a workload that is ready to run.

use std::time::Duration;

use super::cells::{DIRECT, LoadCell, Shared, Spec};
use crate::measure::cpu::Method;
use crate::path::engine::PEERS;
use crate::path::{Engine, Stack};
use crate::plan::{Layout, Overhead, Plan, PlanError, Profile};
use crate::result::{Case, ResultRow, Subject};
use crate::run::Cell;
use crate::workload::rows::{Metric, Reference, Scheme};
use crate::workload::{LabError, Prepared, Request, programs};

/// What is spent besides warm-up and windows: canaries, starting the programs of a path, opening and checking all
/// connections, ending them. Programs with a collector of garbage start in a third of a second on two busy CPUs.
const OVERHEAD: Overhead = Overhead {
    per_cell: Duration::from_millis(350),
    per_window: Duration::from_millis(400),
};

/// How much faster than a path `direct` must be: below, the generator may be what was measured.
const HEADROOM: f64 = 1.5;

/// Finds the programs, makes the cells, fits the plan. `specs` come with the most telling first: a time limit drops from
/// the end.
pub(crate) fn prepare(
    request: &Request,
    name: &'static str,
    def: String,
    metrics: fn(&Case) -> &'static [Metric],
    mut specs: Vec<Spec>,
) -> Result<Prepared, LabError> {
    let suites = &request.suites;
    let sealed = |stack: Stack| stack.suite().is_some_and(|suite| suites.contains(&suite));
    specs.retain(|spec| suites.is_empty() || sealed(spec.stack));
    if specs.is_empty() {
        return Err(LabError::Plan(PlanError::NoCells));
    }
    let mut stacks: Vec<Stack> = Vec::new();
    for spec in &specs {
        if !stacks.contains(&spec.stack) {
            stacks.push(spec.stack);
        }
    }
    let found = programs::find(request, &stacks)?;
    let mut subjects = found.subjects;
    subjects.push(Subject {
        name: DIRECT.to_owned(),
        version: crate::run::version(),
        kind: "in-process".to_owned(),
        setup: "default".to_owned(),
        differs: vec!["no program: from the generator straight to the sink".to_owned()],
        ..Subject::default()
    });
    let cells = cells(&specs, &found.engines);
    let layout = Layout::by_case(cells.iter().map(|cell| cell.case().canonical()));
    let plan = Plan::new(request.profile, layout, OVERHEAD, request.limit()).map_err(LabError::Plan)?;
    Ok(Prepared {
        subjects,
        cells,
        plan,
        scheme: Scheme {
            name,
            def,
            metrics,
            reference: Reference::BestOr(&PEERS, DIRECT),
            method: |_, _| Method::Wall,
            verified: |_, _| "full",
            finish: mark_generator_bound,
        },
        warnings: Vec::new(),
        recommend: |_, _| Vec::new(),
    })
}

fn cells(specs: &[Spec], engines: &[Engine]) -> Vec<Box<dyn Cell>> {
    let shared = Shared::default();
    let mut cells: Vec<Box<dyn Cell>> = Vec::new();
    for spec in specs {
        for engine in engines {
            let cell = LoadCell::new(*spec, engine.name(), engine.clone(), shared.clone());
            cells.push(Box::new(cell));
        }
        // A path without programs needs none of them; any stands in for it.
        if let Some(engine) = engines.first() {
            let cell = LoadCell::new(*spec, DIRECT, engine.clone(), shared.clone());
            cells.push(Box::new(cell));
        }
    }
    cells
}

/// The stacks that were asked for, else those of the profile, the most telling first. The direct one is in every case.
pub(crate) fn stacks(profile: Profile, chosen: &[Stack]) -> Vec<Stack> {
    if !chosen.is_empty() {
        return chosen.iter().copied().filter(Stack::has_programs).collect();
    }
    let mut stacks = vec![Stack::VLESS_TCP_TLS, Stack::VLESS_TCP, Stack::VMESS_AES_TCP];
    if profile != Profile::Quick {
        stacks.extend([Stack::VLESS_WS_TLS, Stack::VMESS_CHACHA_TCP]);
    }
    stacks
}

/// Marks what came within two thirds of what the generator does without a path.
fn mark_generator_bound(rows: &mut [ResultRow]) {
    const MARK: &str = "generator-bound";
    let controls: Vec<(String, f64)> = rows
        .iter()
        .filter(|row| row.subject == DIRECT && row.metric == "rate")
        .map(|row| (row.case.canonical(), row.median.get()))
        .collect();
    for row in rows
        .iter_mut()
        .filter(|row| row.subject != DIRECT && row.metric == "rate")
    {
        let case = row.case.canonical();
        let control = controls.iter().find(|(of, _)| *of == case);
        let close = control.is_some_and(|(_, rate)| row.median.get() * HEADROOM > *rate);
        if close && !row.flags.iter().any(|flag| flag == MARK) {
            row.flags.push(MARK.to_owned());
        }
    }
}
