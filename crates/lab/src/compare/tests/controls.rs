//! Rows of other implementations.

use super::*;

#[test]
fn controls_are_chosen_by_version_preference_and_case() {
    let mut old = run("a", 110.0, 100.0);
    let mut new = run("b", 110.0, 100.0);
    let add = |run: &mut RunResult, name: &str, version: &str| {
        run.subjects.push(Subject {
            name: name.into(),
            version: version.into(),
            ..Subject::default()
        });
        run.results.push(row(name, 64, 100.0));
    };
    for run in [&mut old, &mut new] {
        add(run, "aws-lc-rs", "1.19");
        add(run, "rustcrypto", "0.11");
    }
    let controls = |found: &Comparison| -> Vec<String> {
        found
            .rows
            .iter()
            .filter(|row| row.counts)
            .map(|row| row.control.clone().unwrap())
            .collect()
    };
    assert_eq!(
        controls(&compared(&old, &new)),
        ["aws-lc-rs", "ring", "ring", "ring", "ring", "ring"]
    );
    let named = Options {
        control: Some("rustcrypto".into()),
        ..Options::default()
    };
    let found = compare(&old, &new, &named).unwrap();
    let unknown: Vec<&Row> = found
        .rows
        .iter()
        .filter(|row| row.counts && row.control.is_none())
        .collect();
    assert_eq!(unknown.len(), 5);
    assert!(
        unknown
            .iter()
            .all(|row| row.verdict == Verdict::Unknown && row.note.contains("no control"))
    );

    new.subjects
        .iter_mut()
        .find(|subject| subject.name == "aws-lc-rs")
        .unwrap()
        .version = "1.20".into();
    let found = compared(&old, &new);
    assert_eq!(controls(&found)[0], "ring");
    let peer = found.rows.iter().find(|row| row.key.subject == "aws-lc-rs").unwrap();
    assert_eq!(peer.note, "version 1.19 became 1.20");
    let named = |name: &str| {
        compare(
            &old,
            &new,
            &Options {
                control: Some(name.into()),
                ..Options::default()
            },
        )
        .unwrap_err()
    };
    assert!(
        named("aws-lc-rs")
            .to_string()
            .contains("its version changed from 1.19 to 1.20")
    );
    assert!(
        named("openssl")
            .to_string()
            .contains("it was not measured in the old run")
    );
    assert!(
        named("sealway")
            .to_string()
            .contains("it is the subject that is judged")
    );
    assert_eq!(named("sealway").ending(), Ending::Misused);
}

#[test]
fn peers_are_shown_but_do_not_count() {
    let mut old = run("a", 110.0, 100.0);
    let mut new = run("b", 110.0, 100.0);
    for (run, rate) in [(&mut old, 100.0), (&mut new, 50.0)] {
        run.results.push(row("rustcrypto", 64, rate));
    }
    let found = compared(&old, &new);
    assert!(
        found
            .rows
            .iter()
            .any(|row| row.verdict == Verdict::Slower && !row.counts)
    );
    assert_eq!(
        (found.headline.kind, found.ending(true)),
        (HeadlineKind::Same, Ending::Done)
    );
    let ours = Options {
        ours: Some("rustcrypto".into()),
        ..Options::default()
    };
    let found = compare(&old, &new, &ours).unwrap();
    assert_eq!(confirmed(&found, &[&found]).ending(false), Ending::Slower);
}
