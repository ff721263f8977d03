#![allow(clippy::unwrap_used)]

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use super::*;
use crate::measure::NoiseSample;
use crate::measure::parse::Throttle;

/// The made-up world: a clock that only moves when something is done, and what happens at each step of it.
#[derive(Default)]
struct World {
    now: f64,
    canaries: usize,
    windows: usize,
    /// Canary times by number; 5 ms where nothing is said.
    canary: HashMap<usize, f64>,
    /// Seconds a quota takes during the window of that number.
    quota: HashMap<usize, f64>,
    lost_us: u64,
    /// What the processor packages draw, if they tell.
    watts: Option<f64>,
    visits: Vec<String>,
    /// Seconds that a check, and a visit, takes beside what it is asked for.
    beside: [f64; 2],
}

type Shared = Rc<RefCell<World>>;

struct FakeProbe(Shared);

impl Probe for FakeProbe {
    fn now(&mut self) -> f64 {
        self.0.borrow().now
    }

    fn canary(&mut self) -> CanarySample {
        let mut world = self.0.borrow_mut();
        let cpu_s = world.canary.get(&world.canaries).copied().unwrap_or(0.005);
        world.canaries += 1;
        world.now += cpu_s;
        CanarySample {
            cpu_s,
            wall_over_cpu: 1.0,
        }
    }

    fn noise(&mut self) -> NoiseSample {
        let throttle = Some(Throttle {
            periods: 0,
            usec: self.0.borrow().lost_us,
        });
        NoiseSample {
            throttle,
            energy_j: self.0.borrow().watts.map(|watts| watts * self.0.borrow().now),
            ..NoiseSample::default()
        }
    }
}

struct FakeCell {
    world: Shared,
    case: Case,
    subject: &'static str,
    visits: usize,
    /// Error at that visit; visit 0 is the check before the first round.
    error: Option<(usize, CellError)>,
    counted: Counted,
}

impl Timed for FakeCell {
    fn prepare(&mut self) -> Result<(), CellError> {
        let mut world = self.world.borrow_mut();
        world.now += world.beside[0];
        drop(world);
        self.step()
    }

    fn window(&mut self, warmup: Duration, window: Duration) -> Result<Counted, CellError> {
        {
            let mut world = self.world.borrow_mut();
            let number = world.windows;
            world.windows += 1;
            world.now += (warmup + window).as_secs_f64() + world.beside[1];
            world.lost_us += (world.quota.get(&number).copied().unwrap_or(0.0) * 1e6) as u64;
            world
                .visits
                .push(format!("{}{}", self.subject, self.case.int("n").unwrap()));
        }
        self.step()?;
        Ok(self.counted.clone())
    }
}

impl FakeCell {
    fn step(&mut self) -> Result<(), CellError> {
        let visit = self.visits;
        self.visits += 1;
        match &self.error {
            Some((at, error)) if *at == visit => Err(error.clone()),
            _ => Ok(()),
        }
    }
}

#[derive(Default)]
struct FakeObserver {
    stop_after: Option<usize>,
    world: Shared,
    progress: Vec<(u32, u32, String)>,
    /// Round, rounds, seconds of warm-up and window, seconds passed, seconds left.
    paces: Vec<(Option<u32>, u32, f64, f64, f64)>,
    partial: Vec<usize>,
}

impl Observer for FakeObserver {
    fn progress(&mut self, step: &Step<'_>) {
        let doing = if step.round.is_none() { "checking " } else { "" };
        let name = format!("{doing}{} {}", step.subject, step.case);
        self.progress.push((step.done, step.total, name));
        let pace = (step.round, step.rounds, step.timed_s, step.elapsed_s, step.left_s);
        self.paces.push(pace);
    }

    fn round_done(&mut self, partial: &RunResult) {
        self.partial.push(partial.windows.len());
    }

    fn stopped(&self) -> bool {
        self.stop_after
            .is_some_and(|limit| self.world.borrow().windows >= limit)
    }
}

struct Scene {
    world: Shared,
    cells: Vec<Cell>,
    observer: FakeObserver,
    deadline: Option<Deadline>,
    /// What the plan expects of a visit.
    visit: Duration,
}

const CALM: Counted = Counted {
    ops: 10,
    bytes: 100,
    wall_s: 1.0,
    cpu_s: 0.9,
    figures: Vec::new(),
    tails: Vec::new(),
};

/// Cells a1 b1 a2 b2: two subjects in each of two cases, cell `bad` with an error at a visit.
fn scene(bad: Option<(usize, usize, CellError)>) -> Scene {
    let world = Shared::default();
    let cell = |index: usize, subject, n: i64| -> Cell {
        let error = bad
            .clone()
            .filter(|(cell, ..)| *cell == index)
            .map(|(_, visit, error)| (visit, error));
        let (world, case) = (world.clone(), Case::new().with("n", n));
        let timed = FakeCell {
            world,
            case: case.clone(),
            subject,
            visits: 0,
            error,
            counted: CALM,
        };
        Cell::new(case, subject, timed)
    };
    let cells = vec![cell(0, "a", 1), cell(1, "b", 1), cell(2, "a", 2), cell(3, "b", 2)];
    let observer = FakeObserver {
        world: world.clone(),
        ..FakeObserver::default()
    };
    Scene {
        world,
        cells,
        observer,
        deadline: None,
        visit: Duration::from_millis(1500),
    }
}

impl Scene {
    fn run(&mut self, schedule: &[Vec<usize>], extra_rounds: u32) -> Result<Outcome, ScheduleError> {
        let timing = Timing {
            warmup: Duration::from_millis(500),
            window: Duration::from_secs(1),
            extra_rounds,
        };
        let job = Job {
            workload: "test",
            schedule,
            timing,
            visit: self.visit,
            deadline: self.deadline,
        };
        let mut probe = FakeProbe(self.world.clone());
        let mut snapshot = |outcome: &Outcome| RunResult {
            warnings: outcome.warnings(),
            windows: outcome.windows.clone(),
            ..RunResult::default()
        };
        execute(&mut self.cells, &job, &mut probe, &mut self.observer, &mut snapshot)
    }

    fn visits(&self) -> String {
        self.world.borrow().visits.join(" ")
    }
}

/// A B B A over two cases, the cases reversed in every second round.
fn abba(rounds: usize) -> Vec<Vec<usize>> {
    [vec![0, 1, 2, 3], vec![3, 2, 1, 0]]
        .into_iter()
        .cycle()
        .take(rounds)
        .collect()
}

fn failed() -> CellError {
    CellError::failed("out of paper")
}

#[test]
fn order_canaries_and_windows() {
    let mut scene = scene(None);
    let outcome = scene.run(&abba(2), 2).unwrap();
    assert_eq!(scene.visits(), "a1 b1 a2 b2 b2 a2 b1 a1");
    assert!(!outcome.interrupted && outcome.faults.is_empty() && outcome.repeats == 0);
    assert_eq!(outcome.rounds, 2);
    assert_eq!(outcome.cells, [0, 1, 2, 3, 3, 2, 1, 0]);
    // One canary between two windows, and one to begin each round.
    assert_eq!(scene.world.borrow().canaries, 2 * (4 + 1));
    assert_eq!(scene.observer.partial, [4, 8]);
    for (i, window) in outcome.windows.iter().enumerate() {
        assert_eq!((window.order as usize, window.round as usize), (i, i / 4));
        assert_eq!(
            (window.ops, window.bytes, window.wall_s, window.cpu_s),
            (10, 100, 1.0, 0.9)
        );
        assert_eq!(window.canary.len(), 2);
        assert!(window.marks.is_empty());
        assert!((outcome.visits_s[i] - 1.5).abs() < 1e-9);
    }
    assert!((outcome.windows[1].t - (0.005 + 1.5 + 0.005)).abs() < 1e-9);
    assert_eq!(
        outcome.counted(2).map(|window| window.round).collect::<Vec<_>>(),
        [0, 1]
    );
    assert!(outcome.warnings().is_empty());
}

#[test]
fn an_interruption_keeps_what_is_done() {
    let mut scene = scene(None);
    scene.observer.stop_after = Some(6);
    let outcome = scene.run(&abba(3), 2).unwrap();
    assert!(outcome.interrupted);
    assert_eq!((outcome.windows.len(), outcome.rounds), (6, 1));
    assert_eq!(scene.observer.partial, [4]);
    assert_eq!(outcome.warnings().last().unwrap().code, "interrupted");
}

#[test]
fn an_interruption_before_the_first_window() {
    let mut scene = scene(None);
    scene.observer.stop_after = Some(0);
    let outcome = scene.run(&abba(3), 2).unwrap();
    assert!(outcome.interrupted && outcome.windows.is_empty() && scene.visits().is_empty());
}

#[test]
fn a_window_has_the_energy_of_its_timed_part() {
    let mut scene = scene(None);
    let energy = |outcome: &Outcome| outcome.windows[0].figures.get("energy").map(|joules| joules.get());
    assert_eq!(energy(&scene.run(&[vec![0]], 0).unwrap()), None);
    scene.world.borrow_mut().watts = Some(12.0);
    let joules = energy(&scene.run(&[vec![0]], 0).unwrap()).unwrap();
    // 12 W for the 1.0 s of the window, and not for the 1.5 s of the visit.
    assert!((joules - 12.0).abs() < 1e-9, "{joules}");
}

#[test]
fn a_failing_cell_stops_alone() {
    let mut scene = scene(Some((1, 2, failed())));
    let outcome = scene.run(&abba(3), 0).unwrap();
    assert_eq!(scene.visits(), "a1 b1 a2 b2 b2 a2 b1 a1 a1 a2 b2");
    assert_eq!(outcome.windows.len(), 10);
    let fault = outcome.fault(1).unwrap();
    assert_eq!(fault.round, Some(1));
    assert_eq!(fault.subject.as_str(), "b");
    assert_eq!(fault.error, failed());
    assert_eq!(outcome.counted(1).count(), 0);
    assert_eq!(outcome.counted(0).count(), 3);
    let warning = &outcome.warnings()[0];
    assert_eq!(warning.code.as_str(), "cell-failed");
    assert_eq!(warning.place.as_str(), "b n=1");
    assert!(
        warning.text.starts_with("In round 2: failed: out of paper."),
        "{}",
        warning.text
    );
    // The window that failed has no canary after it, so the next one begins with a fresh one.
    assert_eq!(scene.world.borrow().canaries, 5 + 6 + 4 - 1);
}

#[test]
fn a_cell_that_cannot_start_is_never_visited() {
    let wrong = CellError::wrong("byte 3 of 16");
    let mut scene = scene(Some((0, 0, wrong)));
    let outcome = scene.run(&abba(1), 0).unwrap();
    assert_eq!(scene.visits(), "b1 a2 b2");
    assert_eq!(outcome.fault(0).unwrap().round, None);
    assert_eq!(outcome.warnings()[0].code, "cell-wrong");
    assert_eq!(scene.observer.progress.last().unwrap().0, 3);
}

#[test]
fn counting_nothing_is_a_failure() {
    for counted in [
        Counted { ops: 0, ..CALM },
        Counted { wall_s: 0.0, ..CALM },
        Counted {
            wall_s: f64::NAN,
            ..CALM
        },
        Counted { cpu_s: -1.0, ..CALM },
    ] {
        assert!(
            matches!(plausible(counted.clone()), Err(CellError::Failed { .. })),
            "{counted:?}"
        );
    }
    assert_eq!(plausible(CALM), Ok(CALM));
}

#[test]
fn a_slow_canary_marks_both_neighbours() {
    let mut scene = scene(None);
    scene.world.borrow_mut().canary.insert(2, 0.0053);
    let outcome = scene.run(&abba(2), 2).unwrap();
    let marked: Vec<usize> = (0..8).filter(|i| !outcome.windows[*i].marks.is_empty()).collect();
    assert_eq!(marked, [1, 2]);
    assert_eq!(outcome.windows[1].marks, ["canary"]);
    assert_eq!(outcome.repeats, 0);
    let warning = &outcome.warnings()[0];
    assert_eq!(warning.code, "canary");
    assert!(
        warning.text.contains("in 2 of 8 windows, at worst 6 % off"),
        "{}",
        warning.text
    );
}

#[test]
fn a_spoiled_round_is_repeated_for_all_subjects_of_its_case() {
    let mut scene = scene(None);
    // Window 4 is b2 of the second round, which visits b before a.
    scene.world.borrow_mut().quota.insert(4, 0.2);
    let outcome = scene.run(&abba(2), 2).unwrap();
    assert_eq!(scene.visits(), "a1 b1 a2 b2 b2 a2 b1 a1 b2 a2");
    assert_eq!(outcome.repeats, 1);
    assert_eq!(outcome.windows[4].marks, ["spoiled", "throttled", "superseded"]);
    assert_eq!(outcome.windows[5].marks, ["superseded"]);
    assert_eq!(outcome.windows.len(), 10);
    for cell in [2, 3] {
        assert_eq!(outcome.counted(cell).map(|w| w.round).collect::<Vec<_>>(), [0, 2]);
    }
    assert_eq!(outcome.counted(0).map(|w| w.round).collect::<Vec<_>>(), [0, 1]);
    assert_eq!(scene.observer.partial, [4, 8, 10]);
    assert!(outcome.warnings().iter().any(|w| w.code == "repeated"));
}

#[test]
fn no_more_than_two_extra_rounds() {
    let mut scene = scene(None);
    for window in 0..100 {
        scene.world.borrow_mut().quota.insert(window, 0.2);
    }
    let outcome = scene.run(&abba(3), 99).unwrap();
    assert_eq!(outcome.rounds, 3 + MAX_EXTRA_ROUNDS);
    assert_eq!(outcome.windows.len(), 12 + 8);
    // Rounds 0 and 1 of both cases were replaced, once each; round 2 keeps counting although it is spoiled.
    assert_eq!(outcome.repeats, 4);
    assert_eq!(outcome.counted(0).map(|w| w.round).collect::<Vec<_>>(), [2, 3, 4]);
}

#[test]
fn quick_runs_only_mark() {
    let mut scene = scene(None);
    scene.world.borrow_mut().quota.insert(0, 0.2);
    let outcome = scene.run(&abba(1), 0).unwrap();
    assert_eq!(outcome.windows.len(), 4);
    assert_eq!(outcome.windows[0].marks, ["spoiled", "throttled"]);
    assert_eq!(outcome.counted(0).count(), 1);
}

#[test]
fn an_extra_round_cut_short_does_not_count() {
    let mut scene = scene(None);
    scene.world.borrow_mut().quota.insert(0, 0.2);
    scene.observer.stop_after = Some(9);
    let outcome = scene.run(&abba(2), 2).unwrap();
    assert!(outcome.interrupted);
    assert_eq!(scene.visits(), "a1 b1 a2 b2 b2 a2 b1 a1 a1");
    assert_eq!(outcome.repeats, 0);
    assert_eq!(outcome.windows[8].marks, ["superseded"]);
    assert_eq!(outcome.counted(0).map(|w| w.round).collect::<Vec<_>>(), [0, 1]);
}

#[test]
fn an_extra_round_that_never_began_changes_nothing() {
    let mut scene = scene(None);
    scene.world.borrow_mut().quota.insert(0, 0.2);
    scene.observer.stop_after = Some(8);
    let outcome = scene.run(&abba(2), 2).unwrap();
    assert!(outcome.interrupted && outcome.repeats == 0);
    assert_eq!(outcome.windows[0].marks, ["spoiled", "throttled"]);
    assert!(outcome.windows[1..].iter().all(|window| window.marks.is_empty()));
}

#[test]
fn a_schedule_with_an_unknown_cell_is_refused() {
    let mut scene = scene(None);
    let error = scene.run(&[vec![0], vec![1, 4]], 0).unwrap_err();
    assert_eq!(
        error,
        ScheduleError {
            round: 1,
            cell: 4,
            cells: 4
        }
    );
    assert!(scene.visits().is_empty());
    assert_eq!(error.to_string(), "round 1 of the schedule names cell 4 of 4");
}

#[path = "deadline_tests.rs"]
mod deadline;
#[path = "progress_tests.rs"]
mod progress;
