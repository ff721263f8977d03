use std::sync::Arc;

use super::*;
use crate::settings::Level;

fn counted() -> Arc<Level> {
    Arc::new(Level {
        count_uplink: true,
        count_downlink: true,
        ..Level::default()
    })
}

#[test]
fn names_and_values() {
    let stats = Stats::default();
    let traffic = stats.traffic("inbound", "in", true, false);
    traffic.received(3);
    traffic.sent(4);
    let member = stats.people().join("A@b", 0, counted());
    assert_eq!(stats.all(), [("inbound>>>in>>>traffic>>>uplink".to_owned(), 3)]);
    let presence = member.enter(None).unwrap();
    presence.received(5);
    presence.sent(6);
    let names = [
        "inbound>>>in>>>traffic>>>uplink",
        "user>>>A@b>>>traffic>>>downlink",
        "user>>>A@b>>>traffic>>>uplink",
    ];
    let values: Vec<_> = names.map(str::to_owned).into_iter().zip([3, 6, 5]).collect();
    assert_eq!(stats.all(), values);
    for (name, value) in &values {
        assert_eq!(stats.get(name).unwrap().get(), *value, "{name}");
    }
    // Counters keep the case that was given.
    for name in [
        "user>>>a@b>>>traffic>>>uplink",
        "user>>>A@b>>>traffic>>>sideways",
        "user>>>A@b>>>traffic",
        "user>>>>>>traffic>>>uplink",
        "inbound>>>in>>>traffic>>>downlink",
        "",
    ] {
        assert!(stats.get(name).is_none(), "{name}");
    }
    let mut shown = Vec::new();
    stats.each(
        true,
        |name| name.contains("uplink"),
        |name, value| shown.push((name.to_owned(), value)),
    );
    assert_eq!(shown, [values[0].clone(), values[2].clone()]);
    assert_eq!(stats.get(names[2]).unwrap().take(), 0);
    assert_eq!(stats.get(names[1]).unwrap().take(), 6);
    assert_eq!(stats.get(names[1]).unwrap().get(), 0);
}

#[test]
fn each_of_many_users_is_shown_once() {
    for users in [0, 1, 2_000, 2_500] {
        let stats = Stats::default();
        let mut wanted = Vec::new();
        for number in 0..users {
            let member = stats.people().join(&format!("user{number:04}"), 0, counted());
            member.enter(None).unwrap().received(number);
            wanted.push((format!("user>>>user{number:04}>>>traffic>>>downlink"), 0));
            wanted.push((format!("user>>>user{number:04}>>>traffic>>>uplink"), number as u64));
        }
        assert_eq!(stats.all(), wanted);
    }
}

/// What is taken while it is counted is counted once.
#[test]
fn a_reset_loses_nothing() {
    let stats = Stats::default();
    let member = stats.people().join("a", 0, counted());
    let presence = member.enter(None).unwrap();
    let mut sum = 0;
    let mut take = || stats.each(true, |_| true, |_, value| sum += value);
    std::thread::scope(|scope| {
        let counting: Vec<_> = (0..2)
            .map(|_| {
                scope.spawn(|| {
                    for _ in 0..100_000 {
                        presence.received(3);
                        presence.sent(4);
                    }
                })
            })
            .collect();
        while !counting.iter().all(|one| one.is_finished()) {
            take();
        }
    });
    take();
    assert_eq!(sum, 2 * 100_000 * 7);
}
