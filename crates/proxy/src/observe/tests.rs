use super::*;

#[test]
fn times_of_chance_lie_below_the_end() {
    let end = Duration::from_secs(10);
    let drawn: Vec<Duration> = (0..1000).map(|_| chance(end)).collect();
    assert!(drawn.iter().all(|time| *time < end));
    assert!(drawn.iter().any(|time| *time < end / 10) && drawn.iter().any(|time| *time > end / 10 * 9));
}
