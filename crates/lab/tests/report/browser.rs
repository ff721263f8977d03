//! The page in a real browser: what is drawn, not only that a file exists.
//!
//! Needs Chromium or Chrome on PATH. Without one the tests say so and pass, unless `SEALWAY_REQUIRE_PEERS=1` is set.
use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use sealway_lab::result::RunResult;
use sha2::{Digest as _, Sha256};

/// Window size of both the measured and the pictured page; tall, so that every chart is inside.
const WINDOW: &str = "1200,9000";
/// The subjects' colours in the light and in the dark palette.
const LIGHT: [(&str, [u8; 3]); 4] = [
    ("sealway", [0x00, 0x72, 0xb2]),
    ("aws-lc-rs", [0xd5, 0x5e, 0x00]),
    ("ring", [0x00, 0x9e, 0x73]),
    ("rustcrypto", [0xcc, 0x79, 0xa7]),
];
const DARK: [(&str, [u8; 3]); 4] = [
    ("sealway", [0x56, 0xb4, 0xe9]),
    ("aws-lc-rs", [0xe6, 0x9f, 0x00]),
    ("ring", [0x00, 0x9e, 0x73]),
    ("rustcrypto", [0xcc, 0x79, 0xa7]),
];

/// Works the page as a person would, and writes down what it saw where the test can read it.
const DRIVER: &str = r##"
"use strict";
addEventListener("load", () => {
  const seen = {};
  const say = (name, value) => { seen[name] = value; };
  const note = document.createElement("p");
  note.id = "seen";
  // Where points lie, and which of them nothing else covers.
  const centre = (mark) => { const b = mark.getBoundingClientRect(); return [b.left + b.width / 2, b.top + b.height / 2]; };
  const points = [];
  for (const mark of document.querySelectorAll("#subjects .panel .pt[data-tip]:not(.hollow)")) {
    const [x, y] = centre(mark);
    if (document.elementFromPoint(x, y) === mark) {
      points.push(`${mark.closest(".series").dataset.subject}@${x.toFixed(1)}@${y.toFixed(1)}`);
    }
  }
  say("points", points.join(" "));
  // Sorting: by the ratio, up and down.
  const table = document.querySelector("#peers table.data");
  const heads = Array.from(table.querySelectorAll("thead th"));
  const column = heads.findIndex((head) => head.textContent === "speed ratio");
  const values = () => Array.from(table.tBodies[0].rows, (row) => Number(row.cells[column].textContent));
  const rising = (list) => list.every((value, i) => i === 0 || list[i - 1] <= value);
  heads[column].querySelector("button").click();
  say("sorted-up", rising(values()));
  heads[column].querySelector("button").click();
  say("sorted-down", rising(values().reverse()) && !rising(values()));
  say("rows", values().length);
  // The legend hides one subject and no other, and shows it again.
  const hidden = () => new Set(Array.from(document.querySelectorAll(".series.off"), (group) => group.dataset.subject));
  const press = document.querySelector("[data-toggle=ring] button");
  press.click();
  say("hidden", Array.from(hidden()).join());
  press.click();
  say("shown-again", hidden().size === 0);
  // A value under the pointer, and by keyboard.
  const mark = document.querySelector("#suites .pt[data-tip]");
  const [x, y] = centre(mark);
  mark.dispatchEvent(new PointerEvent("pointermove", { bubbles: true, clientX: x, clientY: y }));
  const tip = document.getElementById("tip");
  say("tip", !tip.hidden && tip.textContent === mark.dataset.tip ? tip.textContent : "");
  const chart = document.querySelector("#forest-0-0");
  chart.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowRight" }));
  say("tip-by-key", tip.hidden ? "" : tip.textContent);
  chart.dispatchEvent(new KeyboardEvent("keydown", { key: "Escape" }));
  say("tip-gone", tip.hidden);
  // The theme button.
  const before = getComputedStyle(document.body).backgroundColor;
  document.querySelector("#tools button").click();
  say("theme-changed", getComputedStyle(document.body).backgroundColor !== before);
  document.querySelector("#tools button").click();
  say("theme-back", getComputedStyle(document.body).backgroundColor === before);
  // The embedded result, and nothing that a hostile text made.
  const result = JSON.parse(document.getElementById("result").textContent);
  say("hostile", result.subjects.some((subject) => subject.version.includes("<script>alert(1)")));
  say("embedded", result.results.length);
  say("scripts", document.scripts.length);
  say("overflow", document.documentElement.scrollWidth - document.documentElement.clientWidth);
  note.dataset.seen = JSON.stringify(seen);
  note.hidden = true;
  document.body.append(note);
});
"##;

pub(crate) fn browser() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let names = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];
    let found = std::env::split_paths(&path)
        .flat_map(|folder| names.map(|name| folder.join(name)))
        .find(|file| file.is_file());
    if found.is_none() {
        let required = std::env::var("SEALWAY_REQUIRE_PEERS").is_ok_and(|value| value == "1");
        assert!(
            !required,
            "no browser on PATH, and SEALWAY_REQUIRE_PEERS=1: install chromium"
        );
        // Not `eprintln`, which the harness hides when a test passes.
        let _ = writeln!(
            std::io::stderr(),
            "skipped: no browser (chromium or google-chrome) on PATH"
        );
    }
    found
}

/// Runs the browser on a page and returns its output and its log.
pub(crate) fn browse(
    browser: &Path,
    folder: &Path,
    window: &str,
    action: &str,
    page: &Path,
    fragment: &str,
) -> (String, String) {
    let (out, log) = (folder.join("out.txt"), folder.join("log.txt"));
    let mut child = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--hide-scrollbars",
        ])
        .args([
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
        ])
        .args([
            "--force-device-scale-factor=1",
            "--force-color-profile=srgb",
            "--enable-logging=stderr",
            "--v=0",
        ])
        .arg(format!("--user-data-dir={}", folder.join("profile").display()))
        .arg(format!("--window-size={window}"))
        .arg(action)
        .arg(format!("file://{}{fragment}", page.display()))
        .stdin(Stdio::null())
        .stdout(fs::File::create(&out).unwrap())
        .stderr(fs::File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let started = Instant::now();
    let status = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break status;
        }
        if started.elapsed() > Duration::from_secs(120) {
            child.kill().unwrap();
            child.wait().unwrap();
            panic!("the browser did not end: {}", fs::read_to_string(&log).unwrap());
        }
        std::thread::sleep(Duration::from_millis(50));
    };
    let log = String::from_utf8_lossy(&fs::read(&log).unwrap()).into_owned();
    assert!(status.success(), "{log}");
    for line in log.lines() {
        let complaint = line.contains("CONSOLE") || line.contains("Content Security Policy");
        assert!(!complaint, "the page complained: {line}");
    }
    (fs::read_to_string(&out).unwrap(), log)
}

/// The page with one more script, which its policy is told to allow; all else is as rendered.
fn with_driver(page: &str) -> String {
    let hash = base64(&Sha256::digest(DRIVER.as_bytes()));
    let allowed = page.replacen("script-src ", &format!("script-src 'sha256-{hash}' "), 1);
    assert_ne!(allowed, page);
    let end = allowed.rfind("</body>").unwrap();
    format!("{}<script>{DRIVER}</script>\n{}", &allowed[..end], &allowed[end..])
}

fn base64(bytes: &[u8]) -> String {
    let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let bits: Vec<u8> = bytes
        .iter()
        .flat_map(|byte| (0..8).rev().map(move |bit| byte >> bit & 1))
        .collect();
    let mut text: String = bits
        .chunks(6)
        .map(|six| {
            six.iter()
                .chain([0; 6].iter())
                .take(6)
                .fold(0usize, |sum, bit| sum * 2 + usize::from(*bit))
        })
        .map(|index| char::from(alphabet[index]))
        .collect();
    while !text.len().is_multiple_of(4) {
        text.push('=');
    }
    text
}

/// What the driver saw.
fn seen(dom: &str) -> BTreeMap<String, serde_json::Value> {
    let start = dom.find("data-seen=\"").expect("the driver did not finish") + "data-seen=\"".len();
    let end = start + dom[start..].find('"').unwrap();
    let text = dom[start..end]
        .replace("&quot;", "\"")
        .replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&amp;", "&");
    serde_json::from_str(&text).unwrap()
}

pub(crate) struct Picture {
    width: usize,
    pub(crate) height: usize,
    channels: usize,
    bytes: Vec<u8>,
}

impl Picture {
    pub(crate) fn read(path: &Path) -> Self {
        let decoder = png::Decoder::new(std::io::BufReader::new(fs::File::open(path).unwrap()));
        let mut reader = decoder.read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        assert_eq!(info.bit_depth, png::BitDepth::Eight);
        let channels = info.color_type.samples();
        assert!(channels >= 3);
        Picture {
            width: info.width as usize,
            height: info.height as usize,
            channels,
            bytes,
        }
    }

    pub(crate) fn at(&self, x: usize, y: usize) -> [u8; 3] {
        assert!(
            x < self.width && y < self.height,
            "{x},{y} is outside {}x{}",
            self.width,
            self.height
        );
        let start = (y * self.width + x) * self.channels;
        [self.bytes[start], self.bytes[start + 1], self.bytes[start + 2]]
    }
}

fn near(a: [u8; 3], b: [u8; 3]) -> bool {
    a.iter().zip(b).all(|(a, b)| a.abs_diff(b) <= 12)
}

fn brightness(colour: [u8; 3]) -> u32 {
    colour.iter().map(|part| u32::from(*part)).sum::<u32>() / 3
}

fn work_the_page(theme: &str, colours: &[(&str, [u8; 3])]) {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    let run = crate::common::sample();
    fs::write(&page, with_driver(&crate::page_of(&run))).unwrap();
    let fragment = format!("#theme={theme}");

    let (dom, _) = browse(&browser, folder.path(), WINDOW, "--dump-dom", &page, &fragment);
    assert!(
        dom.contains("data-script=\"ready\""),
        "the page's own script did not finish"
    );
    let seen = seen(&dom);
    for name in [
        "sorted-up",
        "sorted-down",
        "shown-again",
        "tip-gone",
        "theme-changed",
        "theme-back",
        "hostile",
    ] {
        assert_eq!(seen[name], true, "{name}");
    }
    assert_eq!(seen["hidden"], "ring");
    assert_eq!(seen["rows"], 48, "a ratio for each of 4 suites, 12 cases");
    assert!(seen["tip"].as_str().unwrap().contains("GB/s"), "{}", seen["tip"]);
    assert!(
        seen["tip-by-key"].as_str().unwrap().contains("aws-lc-rs"),
        "{}",
        seen["tip-by-key"]
    );
    assert_eq!(seen["embedded"].as_u64().unwrap() as usize, run.results.len());
    assert_eq!(
        seen["scripts"], 3,
        "the result, the page's script and the driver, and none from a hostile text"
    );
    assert_eq!(seen["overflow"], 0, "the page is wider than the window");

    let shot = folder.path().join("shot.png");
    let action = format!("--screenshot={}", shot.display());
    browse(&browser, folder.path(), WINDOW, &action, &page, &fragment);
    let picture = Picture::read(&shot);
    let background = brightness(picture.at(3, 3));
    assert!(
        if theme == "dark" {
            background < 50
        } else {
            background > 230
        },
        "{theme}: background {background}"
    );

    // Every point that nothing covers must have its subject's colour in the picture.
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for point in seen["points"].as_str().unwrap().split(' ') {
        let mut parts = point.split('@');
        let (subject, x, y) = (parts.next().unwrap(), parts.next().unwrap(), parts.next().unwrap());
        let (x, y) = (
            x.parse::<f64>().unwrap().floor() as usize,
            y.parse::<f64>().unwrap().floor() as usize,
        );
        let (name, wanted) = colours.iter().find(|(name, _)| *name == subject).unwrap();
        let found = picture.at(x, y);
        assert!(
            near(found, *wanted),
            "{subject} at {x},{y}: {found:?} instead of {wanted:?}"
        );
        *counts.entry(name).or_default() += 1;
    }
    for (name, _) in colours {
        assert!(
            counts.get(name).is_some_and(|n| *n >= 10),
            "{name}: too few visible points: {counts:?}"
        );
    }
}

#[test]
fn the_light_page_works_and_shows_its_points() {
    work_the_page("light", &LIGHT);
}

#[test]
fn the_dark_page_works_and_shows_its_points() {
    work_the_page("dark", &DARK);
}

#[test]
fn cut_short_and_empty_runs_render() {
    let Some(browser) = browser() else { return };
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("report.html");
    for (name, run) in [("broken", crate::common::broken()), ("empty", crate::common::empty())] {
        fs::write(&page, crate::page_of(&run)).unwrap();
        let (dom, _) = browse(&browser, folder.path(), WINDOW, "--dump-dom", &page, "");
        assert!(dom.contains("data-script=\"ready\""), "{name}");
    }
}

fn tags(page: &str, open: &str) -> usize {
    page.matches(open).count()
}

fn check_static(run: &RunResult) -> String {
    let page = crate::page_of(run);
    assert!(page.len() < 1_500_000, "{} bytes", page.len());
    let head = &page[..page.find("<style>").unwrap()];
    assert!(head.contains("default-src 'none'; style-src 'sha256-"), "{head}");
    // Nothing may be loaded, from anywhere.
    let markup = format!(
        "{}{}",
        &page[..page.find("<script type=").unwrap()],
        &page[page.rfind("<script>").unwrap()..]
    );
    for load in [
        "http:",
        "https:",
        "//cdn",
        " src=",
        "url(",
        "@import",
        "import(",
        "fetch(",
        "XMLHttpRequest",
        "<link",
        "<img",
        "<iframe",
    ] {
        assert!(!markup.contains(load), "{load}");
    }
    assert_eq!(markup.matches(" href=\"").count(), markup.matches(" href=\"#").count());
    assert_eq!(tags(&markup, "<script"), 1, "one script, and none from a hostile text");
    assert!(!markup.contains(" onload='"), "a quote was not escaped");
    assert!(!page.contains('\u{1b}'));
    assert_eq!(page.matches("</script>").count(), 2);
    // Every drawing speaks, and every figure has its caption.
    assert_eq!(tags(&markup, "<svg"), tags(&markup, "role=\"img\""));
    assert_eq!(tags(&markup, "<svg"), tags(&markup, "<desc id="));
    assert_eq!(tags(&markup, "<figure"), tags(&markup, "<figcaption>"));
    assert_eq!(
        tags(&markup, "<figure"),
        tags(&markup, "<summary>These figures as a table")
    );
    assert!(!page[..page.find("<script type=").unwrap()].contains("NaN"));
    let mut ids: Vec<&str> = markup
        .split(" id=\"")
        .skip(1)
        .map(|rest| rest.split('"').next().unwrap())
        .collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "an id is used twice");
    page
}

#[test]
fn the_page_is_whole_safe_and_small() {
    let page = check_static(&crate::common::sample());
    // Two panels for each of four suites, with a point for each subject and size that was measured.
    let section =
        &page[page.find("<section id=\"subjects\">").unwrap()..page.find("<section id=\"keys-section\">").unwrap()];
    for (subject, suites) in [("sealway", 4), ("aws-lc-rs", 3), ("ring", 3), ("rustcrypto", 4)] {
        let group = format!("data-subject=\"{subject}\">");
        let points: usize = section
            .split(&group)
            .skip(1)
            .map(|rest| rest[..rest.find("</g>").unwrap()].matches("data-tip=").count())
            .sum();
        assert_eq!(points, suites * 2 * crate::common::SIZES.len(), "{subject}");
    }
    check_static(&crate::common::broken());
    check_static(&crate::common::empty());
}

#[test]
fn a_long_run_stays_small_and_says_what_it_left_out() {
    let mut run = crate::common::sample();
    for size in [16i64, 31, 136, 512, 1024, 4096, 8192] {
        let rows: Vec<_> = run
            .results
            .iter()
            .filter(|row| row.case.int("bytes") == Some(64))
            .cloned()
            .collect();
        run.results.extend(rows.into_iter().map(|mut row| {
            row.case = row.case.with("bytes", size);
            row
        }));
    }
    let windows = run.windows.clone();
    run.windows.extend(windows.iter().cloned());
    let page = check_static(&run);
    assert!(page.contains("data-whole=\"false\"") && page.contains("which only the result file has"));
}

#[test]
fn one_subject_alone_has_no_comparison_and_says_so() {
    let mut run = crate::common::sample();
    run.results.retain(|row| row.subject == "sealway");
    for row in &mut run.results {
        row.ratio = None;
    }
    let page = check_static(&run);
    assert!(page.contains("No peer took part"));
}
