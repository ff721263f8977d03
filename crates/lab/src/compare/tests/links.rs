//! Runs over emulated links.

use super::*;

#[test]
fn figures_over_different_links_are_not_compared() {
    let over = |asked: &str, id: &str| {
        let mut run = run(id, 110.0, 100.0);
        run.link = serde_json::from_value(serde_json::json!({ "asked": asked })).unwrap();
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
