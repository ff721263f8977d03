//! Pages on a narrow screen.

use std::fs;

use sealway_lab::result::RunResult;

use crate::browser::{Picture, browse, browser};

/// As long as a name may be, and as that of a pair may be.
const LONG: &str = "fork-with-a-longest-name";
const PAIR: [&str; 2] = ["fork-with-a-longest-name+", "another-of-such-a-length"];

/// A run in which a subject has another name.
fn renamed(mut run: RunResult, name: &str, other: &str) -> RunResult {
    let windows = run.windows.iter_mut().map(|window| &mut window.subject);
    let rows = run.results.iter_mut().map(|row| &mut row.subject);
    for subject in windows.chain(rows).filter(|subject| *subject == name) {
        other.clone_into(subject);
    }
    run
}

#[test]
fn no_name_is_cut_beside_its_lane() {
    let shows = |name: &str, lines: &[&str]| {
        let page = crate::page_of(&renamed(crate::common::sample(), "ring", name));
        let chart = &page[page.find("id=\"strip-chart\"").unwrap()..];
        let chart = &chart[..chart.find("</svg>").unwrap()];
        for line in lines {
            assert!(chart.contains(&format!(">{line}</text>")), "{line}");
        }
    };
    shows(LONG, &[LONG]);
    shows("sealway+xray", &["sealway+xray"]);
    shows(&PAIR.concat(), &PAIR);
}

/// Pages of all kinds in frames side by side, since a browser window has a least width and a frame has none.
#[test]
fn nothing_leaves_its_card_on_a_narrow_screen() {
    const WIDTH: usize = 360;
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let pages = [
        ("primitives", crate::common::sample()),
        ("transports", renamed(crate::transports::sample(), "xray", LONG)),
        ("load", renamed(crate::load::sample(), "xray", &PAIR.concat())),
        ("published", crate::published::run()),
        ("gpu", crate::gpu::sample()),
    ];
    let mut frames = "<!DOCTYPE html><body style='margin:0;display:flex'>".to_owned();
    for (name, run) in &pages {
        fs::write(folder.path().join(format!("{name}.html")), crate::page_of(run)).unwrap();
        frames += &format!("<iframe src='{name}.html' width={WIDTH} height=9000 style='border:0;flex:none'></iframe>");
    }
    let (frame, shot) = (folder.path().join("frames.html"), folder.path().join("shot.png"));
    fs::write(&frame, frames).unwrap();
    let window = format!("{},9000", pages.len() * WIDTH);
    let action = format!("--screenshot={}", shot.display());
    browse(&browser, folder.path(), &window, &action, &frame, "");
    let picture = Picture::read(&shot);
    for (place, (name, _)) in pages.iter().enumerate() {
        let left = place * WIDTH;
        let ground = picture.at(left + 2, 2);
        let differs = |x: usize| (0..picture.height).filter(|y| picture.at(x, *y) != ground).count();
        // Between the cards and the edges, and the right edge itself.
        for x in [8, WIDTH - 8, WIDTH - 2] {
            let spilled = differs(left + x);
            assert!(spilled < 4, "{name}: {spilled} rows of pixels reach {x} of {WIDTH}");
        }
        assert!(differs(left + 30) > 1000, "{name}: no card was drawn");
    }
}
