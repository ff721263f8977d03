//! What becomes of programs that lie in a run: they are named, heard in the exit code, and nobody is compared with them.

#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::fakes::{Fault, program, turn, turncoat};
use super::{Guest, Stack};
use crate::catalogue;
use crate::ending::Ending;
use crate::plan::Profile;
use crate::report;
use crate::report::terminal::Style;
use crate::result::{Case, RunResult};
use crate::run::Observer;
use crate::workload::{Peers, Request, Workload, run};

/// Those that lie: from the start, by their end, and from the second round on.
const LIARS: [&str; 3] = ["flips", "ends", "turns"];

/// Lets one turn after a round, and stops the run after two.
struct TwoRounds {
    turncoat: PathBuf,
    rounds: u32,
}

impl Observer for TwoRounds {
    fn round_done(&mut self, partial: &RunResult) {
        self.rounds += 1;
        let is_there = partial.results.iter().any(|row| row.subject == "turns");
        assert_eq!(is_there, self.rounds == 1, "nobody may stay that was caught");
        turn(&self.turncoat);
    }

    fn stopped(&self) -> bool {
        self.rounds == 2
    }
}

/// A folder for each program, as all have one name.
fn folder(all: &Path, name: &str) -> PathBuf {
    let folder = all.join(name);
    std::fs::create_dir(&folder).unwrap();
    folder
}

fn measured(workload: &Workload, cases: Option<fn(&Case) -> bool>) -> RunResult {
    let all = tempfile::tempdir().unwrap();
    let honest = |name: &str| program(&folder(all.path(), name), &format!("{name} 1.0"), Fault::None);
    let guest = |name: &str, program: PathBuf| Guest::parse(&format!("{name}={}", program.display()), &[]).unwrap();
    let [flips, ends, turns] = LIARS.map(|name| folder(all.path(), name));
    let request = Request {
        profile: Profile::Quick,
        peers: Peers::None,
        guests: vec![
            guest("honest", honest("honest")),
            guest("flips", program(&flips, "flips 1.0", Fault::OneBitUp)),
            guest("ends", program(&ends, "ends 1.0", Fault::Ends)),
            guest("turns", turncoat(&turns, "turns 1.0", Fault::Flips)),
        ],
        stacks: vec![Stack::VLESS_TCP],
        program: Some(honest("ours")),
        cases,
        budget: Some(Duration::from_secs(12)),
        overtime: true,
        seed: Some(1),
        ..Request::default()
    };
    let mut observer = TwoRounds {
        turncoat: turns,
        rounds: 0,
    };
    run(&[workload], &request, &mut observer).unwrap_or_else(|error| panic!("{error}"))
}

fn found_out(workload: &Workload, cases: Option<fn(&Case) -> bool>) {
    let mut result = measured(workload, cases);
    let code = |name: &str| {
        let of = |place: &str| place.split(' ').next() == Some(name);
        let warning = result.warnings.iter().find(|warning| of(&warning.place));
        warning.map(|warning| warning.code.as_str())
    };
    assert_eq!(
        LIARS.map(code),
        [Some("cell-wrong"), Some("cell-failed"), Some("cell-wrong")]
    );
    assert_eq!(["sealway", "honest"].map(code), [None; 2], "{:?}", result.warnings);
    let names = |name: &String| LIARS.contains(&name.as_str());
    let ratios = || result.results.iter().filter_map(|row| row.ratio.as_ref());
    assert!(!result.results.iter().any(|row| names(&row.subject)));
    assert!(ratios().any(|ratio| ratio.to == "honest") && !ratios().any(|ratio| names(&ratio.to)));

    let page = report::html::render(&result, &catalogue::ALL);
    let text = report::terminal::render(&result, &catalogue::ALL, &Style::default(), &[]);
    for (name, word) in LIARS.into_iter().zip(["wrong data", "failed", "wrong data"]) {
        let warning = result
            .warnings
            .iter()
            .find(|warning| warning.place.starts_with(name))
            .unwrap();
        assert!(warning.text.contains(word), "{warning:?}");
        assert!(page.contains(&warning.place), "{warning:?}");
        assert!(text.contains(name), "{text}");
    }
    assert_eq!(Ending::of(&result, false), Ending::Wrong);
    result.warnings.retain(|warning| warning.code != "cell-wrong");
    assert_eq!(Ending::of(&result, false), Ending::PeerMissing);
}

#[test]
fn liars_among_streams_are_found_out() {
    found_out(&crate::transports::WORKLOAD, None);
}

#[test]
fn liars_among_requests_are_found_out() {
    found_out(
        &crate::requests::WORKLOAD,
        Some(|case| case.text("mode") == Some("keep")),
    );
}

#[test]
fn liars_among_flows_are_found_out() {
    found_out(&crate::flows::WORKLOAD, Some(|case| case.text("mode") == Some("flow")));
}

/// All sources below a folder.
fn sources(folder: &Path) -> String {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let text = |path: PathBuf| match path.extension() {
        _ if path.is_dir() => sources(&path),
        Some(extension) if extension == "rs" => std::fs::read_to_string(&path).unwrap(),
        _ => String::new(),
    };
    entries.map(text).collect()
}

#[test]
fn the_page_of_liars_names_tests_that_are_there() {
    let own = Path::new(env!("CARGO_MANIFEST_DIR"));
    let sources = sources(&own.join("src")) + &sources(&own.join("../sealway/tests"));
    let page = std::fs::read_to_string(own.join("../../docs/dev/liars.md")).unwrap();
    let quoted = page.split('`').skip(1).step_by(2);
    let names: Vec<&str> = quoted
        .filter_map(|path| path.rsplit([':', '…']).next())
        .filter(|name| name.matches('_').count() > 2)
        .collect();
    assert!(names.len() > 30, "{names:?}");
    for name in names {
        assert!(sources.contains(&format!("fn {name}(")), "no test is called {name}");
    }
}
