//! Runs over emulated links.

use super::*;

#[test]
fn figures_over_different_links_are_not_compared() {
    let over = |asked: &str, id: &str| {
        let mut run = run(id, 110.0, 100.0);
        run.link = serde_json::from_value(serde_json::json!({ "asked": asked, "kept": true })).unwrap();
        for row in &mut run.results {
            row.workload_def = asked.to_owned();
        }
        run
    };
    let (near, far) = (over("rtt=1ms", "a"), over("rtt=40ms", "b"));
    let found = compared(&near, &far);
    assert_eq!(found.rows.len() + found.controls.len(), 0);
    assert_eq!(found.ending(false), Ending::Undecidable);
    let note = found.notes.iter().find(|note| note.code == "link").unwrap();
    assert_eq!(
        note.text,
        "The emulated links differ (rtt=1ms and rtt=40ms): no figures of theirs compare."
    );
    assert!(
        found
            .unmatched
            .iter()
            .all(|row| row.reason.starts_with("the emulated links differ"))
    );
    // Nor with those without one.
    let found = compared(&near, &run("c", 110.0, 100.0));
    assert!(found.rows.is_empty() && found.notes.iter().any(|note| note.text.contains("(rtt=1ms and none)")));
    let again = compared(&near, &over("rtt=1ms", "d"));
    assert!(!again.rows.is_empty() && again.notes.iter().all(|note| note.code != "link"));
}

#[test]
fn a_link_that_was_not_kept_is_noted() {
    let over = |kept: bool, id: &str| {
        let mut run = run(id, 110.0, 100.0);
        let link = serde_json::json!({ "asked": "rtt=1ms", "rtt_s": 0.001, "measured_rtt_s": 0.004, "kept": kept });
        run.link = serde_json::from_value(link).unwrap();
        run
    };
    let notes = |old, new| {
        let mut notes = compared(&over(old, "a"), &over(new, "b")).notes;
        notes.retain(|note| note.code == "link-not-kept");
        notes
    };
    assert!(notes(true, true).is_empty());
    assert_eq!(notes(false, false).len(), 2);
    let [note] = &notes(true, false)[..] else {
        panic!("one note");
    };
    assert!(
        note.text.starts_with("The new run did not keep its link: asked for"),
        "{}",
        note.text
    );
    assert!(
        note.text.contains("1 ms") && note.text.contains("4.00 ms"),
        "{}",
        note.text
    );
}
