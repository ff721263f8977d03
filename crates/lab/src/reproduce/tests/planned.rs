//! What recipes measure in the time that they have.

use super::*;
use crate::peer::tests::script;
use crate::route::Guest;

#[test]
fn ciphers_through_a_proxy_have_time_for_every_case_beside_v2ray() {
    let folder = tempfile::tempdir().unwrap();
    let old = script(folder.path(), "old", "[ $1 = -version ] && echo V2Ray 4.34.0");
    let asked = Request {
        budget: None,
        guests: vec![Guest::parse(&format!("old={}", old.display()), &[]).unwrap()],
        ..request(Profile::Standard)
    };
    for (workload, part) in parts(&v2ray_aead::RECIPE, &asked, false) {
        let plan = (workload.prepare)(&part).unwrap().plan;
        assert_eq!(plan.cases_dropped, 0, "{}", workload.name);
        // A window has the samples that percentiles want.
        let shortest = Duration::from_millis(if workload.guests { 300 } else { 100 });
        assert!(
            plan.window >= shortest && Some(plan.expected) <= part.budget,
            "{}: {plan:?}",
            workload.name
        );
    }
}

#[test]
fn a_full_recipe_has_no_pairs_of_programs() {
    let folder = tempfile::tempdir().unwrap();
    let old = script(folder.path(), "old", "[ $1 = -version ] && echo V2Ray 4.34.0");
    let asked = Request {
        budget: None,
        guests: vec![Guest::parse(&format!("old={}", old.display()), &[]).unwrap()],
        ..request(Profile::Full)
    };
    let (workload, part) = parts(&vless_vmess::RECIPE, &asked, false).remove(0);
    let subjects = (workload.prepare)(&part).unwrap().subjects;
    let names: Vec<&str> = subjects.iter().map(|subject| subject.name.as_str()).collect();
    assert!(
        names.contains(&"old") && !names.iter().any(|name| name.contains('+')),
        "{names:?}"
    );
}

#[test]
fn nothing_but_the_cipher_changes_from_file_to_file() {
    let cases = cases(&drop_ciphers::RECIPE, Profile::Standard);
    for way in ["send", "grpc", "mount-read"] {
        for suite in ["aes-128-gcm", "aes-256-gcm", "chacha20-poly1305", "default"] {
            let alike = cases.iter().filter(|(_, case)| {
                let is = |name, value| case.text(name) == Some(value);
                is("way", way) && is("suite", suite) && is("place", "memory") && case.int("total") == Some(100_000_000)
            });
            assert_eq!(alike.count(), 1, "{way} {suite}");
        }
    }
}

/// Stops a run at its first window.
struct Stopper;

impl Observer for Stopper {
    fn stopped(&self) -> bool {
        true
    }
}

#[test]
fn a_part_without_time_is_left_out_though_it_is_the_first() {
    let part = |budget| Request {
        budget: Some(budget),
        suites: vec![sealway_aead::Suite::Aes128Gcm],
        ..request(Profile::Quick)
    };
    let short = (&crate::primitives::WORKLOAD, part(Duration::from_nanos(1)));
    let fits = (&crate::primitives::WORKLOAD, part(Duration::from_secs(600)));
    let measure = |parts: &[Part<'_>]| workload::run_parts(parts, &request(Profile::Quick), &mut Stopper);
    let found = measure(&[short.clone(), fits]).unwrap();
    let left_out = |warning: &Warning| warning.text.starts_with("primitives is left out: ");
    assert!(
        found.plan.cells > 0 && found.warnings.iter().any(left_out),
        "{:?}",
        found.warnings
    );
    assert!(matches!(
        measure(&[short]),
        Err(LabError::Plan(PlanError::LimitTooShort { .. }))
    ));
}
