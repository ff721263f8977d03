//! What people and programs read, from honest files and from hostile ones.

use proptest::prelude::*;

use super::*;

#[test]
fn impossible_figures_are_not_known() {
    let mut new = run("b", 110.0, 100.0);
    let row = &mut new.results[4];
    row.values.clear();
    row.median = Num(-9e213);
    let found = compared(&run("a", 110.0, 100.0), &new);
    let row = found.rows.iter().find(|row| row.own.new == Num(-9e213)).unwrap();
    assert!(row.own.factor.get().is_nan());
    assert_eq!(row.verdict, Verdict::Unknown);
    assert_eq!(row.note.as_str(), "a round has no ratio to the control");
}

#[test]
fn rows_without_round_values_still_show_their_direction() {
    let bare = |mut run: RunResult| {
        run.results.iter_mut().for_each(|row| row.values.clear());
        run
    };
    let found = compared(&bare(run("a", 110.0, 100.0)), &bare(run("b", 55.0, 100.0)));
    let row = &found.rows[0];
    assert!((row.ratio.unwrap().factor.get() - 0.5).abs() < 1e-12);
    assert!(row.mde.get().is_nan());
    assert_eq!(row.verdict, Verdict::Unknown);
}

#[test]
fn text_reads_well_and_json_has_the_same() {
    let mut new = run("b", 110.0, 100.0);
    set(&mut new, "sealway", 65536, 99.0);
    let found = compared(&run("a", 110.0, 100.0), &new);
    let text = found.render(&ALL);
    let title = "primitives: throughput of sealway, higher is better, control ring\n";
    assert!(text.contains(title), "{text}");
    // What touches the answer stands beside it, before the runs.
    let (answer, runs) = text.split_at(text.find("old: ").unwrap());
    assert!(
        answer.contains("careful: One run does not prove") && !runs.contains("careful"),
        "{text}"
    );
    let table: Vec<&str> = text
        .lines()
        .skip_while(|line| !line.starts_with("case"))
        .take(2)
        .collect();
    assert_eq!(
        table[0],
        "case                                    own control   ratio   sees limit verdict"
    );
    assert!(
        table[1].starts_with("seal xchacha20-poly1305 64 KiB      -10.0 %  +0.0 % -10.0 %"),
        "{text}"
    );
    assert!(table[1].ends_with(" 5.0% slower"), "{text}");
    let json = serde_json::to_value(&found).unwrap();
    assert_eq!(json["headline"]["kind"], "slower");
    assert_eq!(json["rows"][0]["subject"], "sealway");
    assert_eq!(
        json["rows"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|row| row["verdict"] == "slower")
            .count(),
        1
    );
    assert_eq!(json["controls"][0]["moved"], false);
}

#[test]
fn cases_of_the_same_words_are_told_apart_and_long_words_keep_their_end() {
    let (mut old, mut new) = (run("a", 110.0, 100.0), run("b", 110.0, 100.0));
    for run in [&mut old, &mut new] {
        let mut also: Vec<ResultRow> = run
            .results
            .iter()
            .filter(|row| row.case.int("bytes") == Some(64))
            .cloned()
            .collect();
        for row in &mut also {
            row.case = std::mem::take(&mut row.case).with("aad", 0_i64);
        }
        run.results.extend(also);
    }
    let text = compared(&old, &new).render(&ALL);
    for label in ["seal xchacha20-poly1305 64 B", "seal xchacha20-poly1305 256 B      "] {
        assert!(text.contains(label), "{text}");
    }
    for end in ["(aad=0)", "(aad=13)"] {
        assert!(
            text.lines()
                .any(|line| line.trim_start().starts_with(end) && line.ends_with("same")),
            "{text}"
        );
    }
}

#[test]
fn a_page_shows_both_runs_and_does_nothing_with_hostile_texts() {
    let (mut old, mut new) = (run("a", 110.0, 100.0), run("b", 110.0, 100.0));
    set(&mut new, "sealway", 65536, 99.0);
    let hostile = "<script>alert(1)</script>\u{1b}[2J";
    old.sealway = hostile.to_owned();
    new.results[2].case = std::mem::take(&mut new.results[2].case).with("x", hostile);
    let page = compared(&old, &new).page(&ALL);
    assert!(
        page.contains("&lt;script&gt;") && !page.contains("<script") && !page.contains('\u{1b}'),
        "{page}"
    );
    for words in [
        "<h1>Slower against the control: 1 slower",
        "seal xchacha20-poly1305 64 KiB",
        "Of 5 cases: 1 slower, 0 faster, 4 same, 0 not decided.",
        "<h2>Not compared</h2>",
        "not measured in the old run",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert_eq!(page.matches("class=\"interval\"").count(), 5, "{page}");
    assert!(!page.contains("NaN"), "{page}");
}

proptest! {
    #[test]
    fn hostile_files_do_no_harm(
        text in "\\PC{0,200}|[\\x00-\\x1f]{0,20}",
        values in proptest::collection::vec(proptest::num::f64::ANY, 0..12),
        median in proptest::num::f64::ANY,
    ) {
        let mut old = run("a", 110.0, 100.0);
        let mut new = run("b", 110.0, 100.0);
        for run in [&mut old, &mut new] {
            run.run.clone_from(&text);
            run.results[0].workload.clone_from(&text);
            let named = std::mem::take(&mut run.results[2].case).with(&text, text.as_str());
            run.results[2].case = named;
        }
        new.results[4].values = values.iter().copied().map(Num).collect();
        new.results[4].median = Num(median);
        let found = compared(&old, &new);
        prop_assert!(serde_json::to_string(&found).is_ok());
        found.page(&ALL);
        found.ending(true);
    }

    #[test]
    fn exchanging_runs_turns_the_verdicts(ours in 60.0..160.0_f64, ring in 60.0..160.0_f64) {
        let (a, b) = (run("a", 110.0, 100.0), run("b", ours, ring));
        let (forth, back) = (compared(&a, &b), compared(&b, &a));
        for (x, y) in forth.rows.iter().zip(&back.rows) {
            let opposite = match x.verdict {
                Verdict::Faster => Verdict::Slower,
                Verdict::Slower => Verdict::Faster,
                other => other,
            };
            prop_assert_eq!(opposite, y.verdict);
        }
    }
}
