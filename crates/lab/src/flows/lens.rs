//! How the figures of `flows` are read.

use crate::lens::{Lens, Part, Plot};
use crate::load::lens;

pub(super) static LENS: Lens = Lens {
    headline: |scope| lens::headline(scope, "short connections"),
    parts: &[Part {
        id: "flows-section",
        figure: super::NAME,
        title: "Short connections and idle ones",
        link: "Flows",
        caption: "Load on proxied paths",
        plot: Plot::Bars(lens::PANELS),
        reading: lens::READING,
        ..Part::PLAIN
    }],
    ..lens::LENS
};
