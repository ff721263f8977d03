//! From a list of cases to a workload that is ready to run.

use std::time::Duration;

use super::advice;
use super::cells::{AT_ONCE, Shared, Spec, cells_of};
use crate::lens::OURS;
use crate::link::Link;
use crate::plan::{Overhead, PlanError, Profile};
use crate::result::{Case, ResultRow};
use crate::route::engine::PEERS;
use crate::route::{Engine, Stack};
use crate::run::Cell;
use crate::transports::mark_forged;
use crate::workload::fit::fit;
use crate::workload::metric::Metric;
use crate::workload::routes::{self, DIRECT, Found, mark_generator_bound};
use crate::workload::rows::{Reference, Scheme};
use crate::workload::{LabError, Prepared, Request};

/// What a visit has besides its programs, its warm-up and its window: a canary, a sink and a generator.
const VISIT: Duration = Duration::from_millis(15);

/// How many connections are opened and have their first exchange in a second, on two CPUs and with TLS: straight to the sink,
/// through our engine, and through programs that collect garbage.
const STRAIGHT: f64 = 25_000.0;
const THROUGH_OURS: f64 = 4_000.0;
const THROUGH_PEERS: f64 = 1_500.0;

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
            overhead(&specs, &engines, request.link),
            request.limit(),
            1.0,
        )?,
        subjects,
        cells,
        scheme: Scheme {
            // Over a link all come close to what the link gives.
            finish: if request.link.is_some() { mark_forged } else { mark },
            guests: routes::guests(request),
            ..Scheme::new(name, def, metrics, Reference::BestOr(&PEERS, DIRECT))
        },
        warnings: Vec::new(),
        recommend: advice::by_scenario,
    })
}

fn mark(rows: &mut [ResultRow]) {
    mark_generator_bound(rows, "rate", |row| row.case.canonical());
    mark_forged(rows);
}

/// What is spent besides warm-up and windows, on the average of all cells: programs that start, and connections that are opened
/// before a window and before the first one; over a link also what it takes for connections that are opened some at a time.
fn overhead(specs: &[Spec], engines: &[Engine], link: Option<Link>) -> Overhead {
    let (mut checks, mut visits) = (Duration::ZERO, Duration::ZERO);
    for (place, spec) in specs.iter().enumerate() {
        // In the first case of a stack programs that should seal start once more, for the bit that is flipped on their wire.
        let flips = spec.stack.authenticated() && specs[..place].iter().all(|other| other.stack != spec.stack);
        let over = link.map_or(Duration::ZERO, |link| {
            link.opening() * flights(spec.connections) + link.round_trip() * 4
        });
        let through = engines.iter().map(|engine| {
            let rate = if engine.name() == OURS {
                THROUGH_OURS
            } else {
                THROUGH_PEERS
            };
            (engine.start(&spec.stack), rate)
        });
        for (start, rate) in through.chain([(Duration::ZERO, STRAIGHT)]) {
            let opening = |count: usize| Duration::from_secs_f64(count as f64 / rate);
            checks += start * (1 + u32::from(flips)) + opening(AT_ONCE);
            visits += VISIT + start + opening(spec.opened()) + over;
        }
    }
    let cells = u32::try_from(specs.len() * (engines.len() + 1))
        .unwrap_or(u32::MAX)
        .max(1);
    Overhead {
        per_cell: checks / cells,
        per_window: visits / cells,
    }
}

/// How often connections are opened together until there are so many.
fn flights(connections: usize) -> u32 {
    u32::try_from(connections.div_ceil(AT_ONCE)).unwrap_or(u32::MAX)
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

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::load::cells::Drive;
    use crate::load::scripts::{FLOW, HOLD};

    #[test]
    fn a_plan_counts_the_connections_that_are_opened() {
        let flow = Spec::new(Stack::VLESS_TCP, "flow", &FLOW, 32, Drive::Closed);
        let hold = Spec::new(Stack::VLESS_TCP, "hold", &HOLD, 2000, Drive::Idle);
        let ours = [Engine::sealway(Path::new("sealway"))];
        let of = |specs: &[Spec], link| overhead(specs, &ours, link).per_window;
        // 1,976 more, half of them straight to the sink.
        let more = of(&[hold], None) - of(&[flow], None);
        assert_eq!(more.as_millis(), 247 + 39, "{more:?}");
        let both = of(&[flow, hold], None) - of(&[flow], None);
        assert_eq!(both.as_millis(), (more / 2).as_millis());
        // Our server waits for the next second.
        let vmess = Spec {
            stack: Stack::VMESS_AES_TCP,
            ..flow
        };
        let wait = of(&[vmess], None) - of(&[flow], None);
        assert_eq!(wait.as_millis(), 250, "half of the windows have no server");
        let link: Link = "rtt=100ms".parse().unwrap_or_else(|error| panic!("{error}"));
        assert!(of(&[hold], Some(link)) > of(&[hold], None) + link.opening() * 62);
    }
}
