//! A workload that nothing else knows: all that one needs, in one file.

use sealway_lab::lens::{Headline, Lens, OURS, Parameter, Part, Plot, Shown};
use sealway_lab::plan::PlanError;
use sealway_lab::workload::{LabError, Workload};

/// Juggling.
pub(crate) static WORKLOAD: Workload = Workload {
    name: "juggling",
    summary: "balls kept in the air",
    peers: &["a-circus"],
    programs: &[],
    gpu: false,
    guests: false,
    alone: false,
    limits: &["Nobody juggled in the wind."],
    prepare: |_| Err(LabError::Plan(PlanError::NoCells)),
    lens: &Lens {
        about: "Juggling",
        others: "other jugglers",
        parameters: &[Parameter::number("balls", 3, "in the air at once")],
        figures: &[
            Shown::new("rate", 60.0, "1/min", "throws/min").related(),
            Shown::new("height", 1.0, "m", "height m"),
        ],
        case: |case| format!("{} balls", case.int("balls").unwrap_or(0)),
        intro: |_| "Throws are counted, not drops.".to_owned(),
        headline: |scope| {
            let row = scope.of(OURS, "rate").next()?;
            let answer = format!("{OURS} throws {} times a second.", row.median.get());
            Some(Headline::new(answer, "balls", "thrown", "alone").ahead(scope.run, row, |name| format!("over {name}")))
        },
        parts: &[Part {
            id: "juggling-section",
            figure: "juggling",
            title: "Balls in the air",
            link: "Juggling",
            caption: "Throws and heights",
            plot: Plot::Bars(&[("Throws", &["rate"]), ("Height", &["height"])]),
            ..Part::PLAIN
        }],
        ..Lens::PLAIN
    },
};
