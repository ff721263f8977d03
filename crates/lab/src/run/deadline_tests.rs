//! Runs with a time limit.

use super::*;

/// A scene that has to be over after `seconds`, with what checks and visits take beside windows.
fn in_time(seconds: f64, beside: [f64; 2]) -> Scene {
    let mut scene = scene(None);
    scene.world.borrow_mut().beside = beside;
    scene.deadline = Some(Deadline {
        at: seconds,
        shortest: Duration::from_millis(100),
    });
    scene
}

#[test]
fn a_time_limit_is_a_deadline() {
    // 3 rounds of 4 visits take 18 s and their canaries as planned, and 30 s with the second beside each.
    for (limit, beside, windows, end) in [
        (19.0, 0.0, 12, 19.0),
        (25.0, 1.0, 12, 25.0),
        (13.0, 1.0, 8, 13.0),
        (11.0, 1.0, 4, 11.0),
        (3.0, 1.0, 4, 5.1),
    ] {
        let mut scene = in_time(limit, [0.0, beside]);
        let outcome = scene.run(&abba(3), 2).unwrap();
        assert_eq!(outcome.windows.len(), windows, "{limit}");
        let now = scene.world.borrow().now;
        assert!(now <= end, "{limit}: {now}");
        let warned = outcome.warnings().iter().any(|warning| warning.code == "out-of-time");
        assert_eq!((outcome.out_of_time, warned), (windows < 12, windows < 12), "{limit}");
        assert!(!outcome.interrupted);
    }
}

#[test]
fn what_the_plan_has_dropped_is_not_checked() {
    let mut scene = in_time(10.0, [3.0, 0.0]);
    let outcome = scene.run(&[vec![0, 1], vec![1, 0]], 0).unwrap();
    assert_eq!((outcome.windows.len(), outcome.left_out.len()), (4, 0));
    assert!(scene.world.borrow().now <= 10.0);
}

#[test]
fn checks_leave_half_of_the_time_to_windows_and_whole_cases() {
    let mut scene = in_time(10.0, [3.0, 0.0]);
    let outcome = scene.run(&abba(3), 0).unwrap();
    assert_eq!(
        outcome.left_out,
        [2, 3],
        "the first case was begun, so both its subjects were checked"
    );
    assert_eq!(outcome.windows.len(), 6);
    assert!(scene.world.borrow().now <= 10.0);
    assert_eq!(outcome.warnings()[0].code, "cases-dropped");
    assert!(in_time(10.0, [0.1, 0.0]).run(&abba(3), 0).unwrap().left_out.is_empty());
}
