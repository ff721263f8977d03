//! How the figures of `requests` are read.

use crate::lens::{Lens, Part, Plot};
use crate::load::lens;

pub(super) static LENS: Lens = Lens {
    headline: |scope| lens::headline(scope, "requests"),
    parts: &[Part {
        id: "requests-section",
        figure: super::NAME,
        title: "HTTP requests",
        link: "Requests",
        caption: "Load on proxied paths",
        plot: Plot::Bars(lens::PANELS),
        reading: lens::READING,
        ..Part::PLAIN
    }],
    ..lens::LENS
};
