//! What warnings and the page say of the speed of the processor.

use sealway_lab::result::{CanarySample, RunResult, Window};
use sealway_lab::run::{Mark, Outcome};

/// A part of a run in which the canary takes so long, but in one window so many times as long.
fn part(workload: &str, cpu_s: f64, times: f64) -> Outcome {
    let window = |round: u32| {
        let strays = round == 4;
        let sample = CanarySample {
            cpu_s: if strays { cpu_s * times } else { cpu_s },
            wall_over_cpu: 1.0,
        };
        Window {
            workload: workload.to_owned(),
            subject: "sealway".to_owned(),
            round,
            t: f64::from(round),
            wall_s: 0.5,
            ops: 100,
            canary: vec![sample; 2],
            marks: strays.then(|| Mark::Canary.to_string()).into_iter().collect(),
            ..Window::default()
        }
    };
    let mut outcome = Outcome::default();
    outcome.windows = (0..9).map(window).collect();
    outcome
}

/// The percentages behind these words.
fn percent(text: &str, words: &str) -> Vec<f64> {
    let behind = text.split(words).skip(1);
    behind
        .map(|rest| rest.split(' ').next().unwrap().parse().unwrap())
        .collect()
}

/// In the second part the processor is a fifth slower than in the first, which is nothing that disturbs either.
#[test]
fn the_page_says_of_all_parts_what_their_warnings_say() {
    let parts = [
        part("primitives", 0.005, 1.0 / 1.07),
        part("packets", 0.006, 1.0 / 1.04),
    ];
    let mut run: RunResult = crate::common::sample();
    run.windows = parts.iter().flat_map(|part| part.windows.clone()).collect();
    run.warnings = parts.iter().flat_map(Outcome::warnings).collect();
    let warnings: Vec<&str> = run.warnings.iter().map(|warning| warning.text.as_str()).collect();
    let told = percent(&warnings.join("\n"), "at worst ");
    assert_eq!(told, [7.0, 4.0], "{warnings:?}");
    let page = percent(&crate::page_of(&run), "the canary strayed by at most ");
    assert_eq!(page, [7.0]);
}
