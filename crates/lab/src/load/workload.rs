//! From a list of cases to a workload that is ready to run.

use std::time::Duration;

use super::cells::{AT_ONCE, Shared, Spec, cells_of};
use crate::link::Link;
use crate::plan::{Overhead, PlanError, Profile};
use crate::result::{Case, ResultRow};
use crate::route::Stack;
use crate::route::engine::PEERS;
use crate::run::Cell;
use crate::workload::fit::fit;
use crate::workload::metric::Metric;
use crate::workload::routes::{self, DIRECT, Found, mark_generator_bound};
use crate::workload::rows::{Reference, Scheme};
use crate::workload::{LabError, Prepared, Request};

/// What is spent besides warm-up and windows: canaries, starting the programs of a route, opening and checking
/// all connections, ending them. Programs with a collector of garbage start in a third of a second on two busy CPUs.
const OVERHEAD: Overhead = Overhead {
    per_cell: Duration::from_millis(350),
    per_window: Duration::from_millis(300),
};

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
    specs.retain(|spec| (suites.is_empty() || sealed(spec.stack)) && request.wants(&spec.case()));
    if specs.is_empty() {
        return Err(LabError::Plan(PlanError::NoCells));
    }
    let Found { subjects, engines } = routes::find(request, specs.iter().map(|spec| spec.stack))?;
    let shared = Shared::new(request.over());
    let cells: Vec<Cell> = specs
        .iter()
        .flat_map(|spec| cells_of(*spec, &engines, &shared))
        .collect();
    Ok(Prepared {
        plan: fit(
            request.profile,
            &cells,
            overhead(&specs, request.link),
            request.limit(),
            1.0,
        )?,
        subjects,
        cells,
        scheme: Scheme {
            // Over a link all come close to what the link gives.
            finish: if request.link.is_some() { mark_nothing } else { mark },
            guests: routes::guests(request),
            ..Scheme::new(name, def, metrics, Reference::BestOr(&PEERS, DIRECT))
        },
        warnings: Vec::new(),
        recommend: |_, _| Vec::new(),
    })
}

fn mark(rows: &mut [ResultRow]) {
    mark_generator_bound(rows, "rate", |row| row.case.canonical());
}

fn mark_nothing(_: &mut [ResultRow]) {}

/// What is spent besides warm-up and windows; over a link also what connections take that are opened some at a time, on the
/// average of the cases.
fn overhead(specs: &[Spec], link: Option<Link>) -> Overhead {
    let Some(link) = link else { return OVERHEAD };
    let flights: usize = specs.iter().map(|spec| spec.connections.div_ceil(AT_ONCE)).sum();
    let average = flights as f64 / specs.len().max(1) as f64;
    Overhead {
        per_window: OVERHEAD.per_window + link.opening().mul_f64(average) + link.round_trip() * 4,
        ..OVERHEAD
    }
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
