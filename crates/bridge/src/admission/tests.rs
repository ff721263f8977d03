#![allow(clippy::unwrap_used)]

use std::net::IpAddr;

use super::*;

const LIMITS: Limits = Limits {
    connections: 16,
    per_address: 8,
    per_address_per_second: 100,
};

fn v4(last: u8) -> Origin {
    Origin::of(IpAddr::from([192, 0, 2, last]))
}

fn fill(places: &mut Places, from: Origin, count: usize, now: Instant) -> Vec<u64> {
    (0..count).map(|_| places.enter(from, now).unwrap().0).collect()
}

/// What is kept twice or more says the same.
fn consistent(places: &Places) {
    let silent: BTreeSet<u64> = places
        .guests
        .iter()
        .filter(|(_, g)| g.silent)
        .map(|(id, _)| *id)
        .collect();
    assert_eq!(places.silent, silent);
    let open: usize = places.held.values().map(|held| held.open).sum();
    assert_eq!(open, places.guests.len());
    let ranks: BTreeSet<_> = places.held.iter().filter_map(|(from, held)| held.rank(*from)).collect();
    assert_eq!(places.ranks, ranks);
    assert!(
        places
            .held
            .values()
            .all(|held| held.open > 0 && held.silent.len() <= held.open)
    );
    assert!(places.guests.len() <= places.limits.connections);
}

#[test]
fn an_address_has_its_share_and_no_more() {
    let now = Instant::now();
    let mut places = Places::new(LIMITS, now);
    let first = fill(&mut places, v4(1), 8, now);
    assert_eq!(places.enter(v4(1), now).unwrap_err(), Refusal::AddressFull);
    assert!(places.enter(v4(2), now).is_ok());
    // Once they have spoken they stay; a place that is free again is given again.
    first.iter().for_each(|id| places.spoke(*id));
    assert_eq!(places.enter(v4(1), now + 2 * GRACE).unwrap_err(), Refusal::AddressFull);
    assert!(places.leave(first[3]).is_some());
    assert!(places.leave(first[3]).is_none());
    assert!(!places.enter(v4(1), now).unwrap().2);
    consistent(&places);
}

#[test]
fn those_of_an_address_that_say_nothing_give_way_to_others_of_it() {
    let now = Instant::now();
    let mut places = Places::new(LIMITS, now);
    let ids = fill(&mut places, v4(1), 8, now);
    let later = now + GRACE;
    assert!(places.enter(v4(1), later).unwrap().2);
    assert!(!places.guests.contains_key(&ids[0]) && places.guests.contains_key(&ids[1]));
    consistent(&places);
}

#[test]
fn the_youngest_silent_one_of_who_holds_most_gives_way() {
    let now = Instant::now();
    let mut places = Places::new(LIMITS, now);
    let spoken = fill(&mut places, v4(3), 3, now);
    spoken.iter().for_each(|id| places.spoke(*id));
    let some = fill(&mut places, v4(1), 5, now);
    let most = fill(&mut places, v4(2), 8, now);
    assert_eq!(places.guests.len(), 16);
    let (_, _, evicted) = places.enter(v4(4), now).unwrap();
    assert!(evicted && !places.guests.contains_key(&most[7]) && places.guests.contains_key(&some[4]));
    // Nobody who has spoken is asked to leave, and nobody takes more than others have.
    let took = (0..20).filter(|_| places.enter(v4(4), now).is_ok()).count();
    assert_eq!(places.held[&v4(4)].open, took + 1);
    assert!(took < 5, "{took}");
    assert!(spoken.iter().all(|id| places.guests.contains_key(id)));
    consistent(&places);
}

#[test]
fn among_equals_the_one_that_has_been_silent_for_long_gives_way() {
    let now = Instant::now();
    let mut places = Places::new(LIMITS, now);
    let ids: Vec<u64> = (0..16).map(|n| places.enter(v4(n), now).unwrap().0).collect();
    assert_eq!(places.enter(v4(99), now).unwrap_err(), Refusal::Full);
    places.spoke(ids[0]);
    assert!(places.enter(v4(99), now + GRACE).unwrap().2);
    assert!(places.guests.contains_key(&ids[0]) && !places.guests.contains_key(&ids[1]));
    // All have spoken: nobody gives way.
    let all: Vec<u64> = places.guests.keys().copied().collect();
    all.iter().for_each(|id| places.spoke(*id));
    assert_eq!(places.enter(v4(98), now + 10 * GRACE).unwrap_err(), Refusal::Full);
    consistent(&places);
}

#[test]
fn memory_follows_open_connections_and_a_limit() {
    let mut now = Instant::now();
    let mut places = Places::new(LIMITS, now);
    for n in 0..50_000u32 {
        now += Duration::from_micros(10);
        let from = Origin::V6([0x2001, 0xdb8, (n >> 16) as u16, n as u16]);
        if let Ok((id, ..)) = places.enter(from, now)
            && n % 3 == 0
        {
            places.leave(id);
        }
    }
    consistent(&places);
    assert!(places.held.len() <= 16 && places.guests.len() <= 16);
    assert!(
        places.buckets.len() <= 2 * crate::rate::REMEMBERED,
        "{}",
        places.buckets.len()
    );
}

#[tokio::test]
async fn a_place_is_free_when_it_is_dropped_and_says_when_it_was_taken() {
    let now = Instant::now();
    let limits = Limits {
        connections: 2,
        ..LIMITS
    };
    let admission = Admission::new(limits, now);
    let (a, _) = admission.enter(v4(1), now).unwrap();
    let (b, _) = admission.enter(v4(1), now).unwrap();
    let (c, evicted) = admission.enter(v4(2), now).unwrap();
    assert!(evicted);
    b.taken().await;
    drop(b);
    a.spoke();
    c.spoke();
    assert_eq!(admission.enter(v4(3), now).map(|_| ()).unwrap_err(), Refusal::Full);
    drop(a);
    assert!(admission.enter(v4(3), now).is_ok());
}
