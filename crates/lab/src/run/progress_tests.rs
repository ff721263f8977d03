//! What an observer is told of where a run is, and how long it will take.

use super::*;

#[test]
fn progress_names_the_cell() {
    let mut scene = scene(None);
    scene.run(&abba(1), 0).unwrap();
    let told = &scene.observer.progress;
    assert_eq!(told[0], (0, 4, "checking a n=1".to_owned()));
    assert_eq!(
        told[4..],
        [
            (0, 4, "a n=1".to_owned()),
            (1, 4, "b n=1".to_owned()),
            (2, 4, "a n=2".to_owned()),
            (3, 4, "b n=2".to_owned()),
        ]
    );
}

/// A scene whose checks and visits take so much beside windows.
fn slow(bad: Option<(usize, usize, CellError)>, beside: [f64; 2]) -> Scene {
    let scene = scene(bad);
    scene.world.borrow_mut().beside = beside;
    scene
}

fn near(a: f64, b: f64) -> bool {
    (a - b).abs() < 0.1
}

#[test]
fn the_time_left_is_that_of_the_plan_and_then_that_of_the_last_round() {
    let mut scene = slow(None, [2.0, 0.5]);
    scene.run(&abba(3), 0).unwrap();
    let told = &scene.observer.paces;
    assert_eq!(told.len(), 4 + 12);
    // Nothing is known of checks before the first is done, and nothing is planned beside the windows.
    assert_eq!(told[0], (None, 3, 0.0, 0.0, 12.0 * 1.5));
    assert_eq!(told[3], (None, 3, 0.0, 6.0, 2.0 + 12.0 * 1.5));
    assert_eq!(told[4], (Some(1), 3, 1.5, 8.0, 12.0 * 1.5));
    // From the second round on the half second, and the canary, count; so the end is known.
    let end = scene.world.borrow().now;
    for step in &told[8..] {
        let (_, _, _, elapsed, left) = *step;
        assert!(near(elapsed + left, end), "{step:?}: {end}");
    }
    assert_eq!(told[15].0, Some(3));
}

#[test]
fn cells_that_are_gone_take_no_time() {
    let mut scene = slow(Some((1, 0, failed())), [0.0, 0.0]);
    scene.run(&abba(2), 0).unwrap();
    let told = &scene.observer.paces;
    let (round, _, _, elapsed, left) = told[4];
    assert_eq!(round, Some(1));
    assert!(near(elapsed + left, 6.0 * 1.5), "{:?}", told[4]);
}

#[test]
fn an_extra_round_is_one_more() {
    let mut scene = scene(None);
    scene.world.borrow_mut().quota.insert(0, 0.5);
    scene.run(&abba(2), 1).unwrap();
    let last = scene.observer.paces.last().unwrap();
    assert_eq!((last.0, last.1), (Some(3), 3));
    assert!(scene.observer.paces[..12].iter().all(|step| step.1 == 2));
    assert!(near(last.4, 1.5), "{last:?}");
}

#[test]
fn visits_still_to_come_are_counted_in_an_extra_round_too() {
    let mut scene = slow(Some((3, 1, failed())), [0.0, 0.0]);
    scene.world.borrow_mut().quota.insert(0, 0.5);
    scene.run(&abba(2), 1).unwrap();
    let end = scene.world.borrow().now;
    for step in scene.observer.paces.iter().filter(|step| step.0 == Some(3)) {
        assert!(near(step.3 + step.4, end), "{step:?}: {end}");
    }
    assert!(scene.observer.paces.iter().any(|step| step.0 == Some(3)));
}

#[test]
fn the_first_time_left_is_that_of_visits_without_a_window() {
    let mut scene = scene(None);
    scene.visit = Duration::from_millis(300);
    scene.run(&abba(3), 0).unwrap();
    assert!(near(scene.observer.paces[0].4, 12.0 * 0.3));
}
