use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::timeout;

use super::*;
use crate::stats::Stats;

fn level() -> Arc<Level> {
    Arc::new(Level {
        count_uplink: true,
        count_downlink: true,
        count_online: true,
        ..Level::default()
    })
}

fn address(text: &str) -> Option<IpAddr> {
    Some(text.parse().unwrap())
}

#[test]
fn one_person_in_whatever_case_and_however_many_inbounds() {
    let people = People::default();
    let (one, other) = (people.join("A@b", 0, level()), people.join("a@B", 0, level()));
    assert!(Arc::ptr_eq(&one.person, &other.person));
    assert_eq!((one.email(), other.email(), one.person.email()), ("A@b", "a@B", "A@b"));
    let (_in, _too) = (one.enter(None).unwrap(), other.enter(None).unwrap());
    assert_eq!(people.find("a@b").unwrap().connections(), 2);
    // Who has no name is nobody else.
    let (one, other) = (people.join("", 0, level()), people.join("", 0, level()));
    assert!(!Arc::ptr_eq(&one.person, &other.person) && people.find("").is_none());
}

#[test]
fn counters_come_into_being_with_the_first_connection() {
    let people = People::default();
    let up_only = Arc::new(Level {
        count_uplink: true,
        ..Level::default()
    });
    let one = people.join("a", 0, up_only);
    assert!(one.person.counters().iter().all(Option::is_none));
    let presence = one.enter(None).unwrap();
    presence.received(5);
    presence.sent(7);
    let counted = |person: &Person| person.counters().map(|tally| tally.map(Tally::get));
    assert_eq!(counted(&one.person), [Some(5), None]);
    let both = people.join("a", 0, level()).enter(None).unwrap();
    both.sent(7);
    assert_eq!(counted(&one.person), [Some(5), Some(7)]);
}

#[test]
fn addresses_are_listed_while_something_comes_from_them() {
    let people = People::default();
    let one = people.join("a", 0, level());
    let list = || {
        let mut all: Vec<_> = one.person.seen().into_iter().map(|(ip, _)| ip.to_string()).collect();
        all.sort();
        assert_eq!(all.len(), one.person.addresses() as usize);
        all
    };
    let first = one.enter(address("192.0.2.1")).unwrap();
    let again = one.enter(address("::ffff:192.0.2.1")).unwrap();
    let six = one.enter(address("2001:db8::1:2")).unwrap();
    let local = ["127.0.0.1", "::1", "::ffff:127.0.0.1"].map(|one_of| one.enter(address(one_of)).unwrap());
    assert_eq!(list(), ["192.0.2.1", "2001:db8::1:2"]);
    assert_eq!(one.person.connections(), 6);
    drop(first);
    assert_eq!(list().len(), 2);
    drop(again);
    assert_eq!(list(), ["2001:db8::1:2"]);
    // Other addresses of loopback are nobody's default.
    let odd = one.enter(address("127.0.0.2")).unwrap();
    assert_eq!(list().len(), 2);
    drop((six, local, odd));
    assert_eq!((list().len(), one.person.connections()), (0, 0));
    assert!(one.person.online().is_none());
    // He is known to have been here.
    let stats = Stats::default();
    assert_eq!(stats.online("a"), None);
    let late = stats.people().join("a", 0, level());
    assert_eq!(stats.online("a"), None);
    drop(late.enter(address("127.0.0.1")).unwrap());
    assert_eq!(stats.online("a"), Some(0));
    // Whoever is not to be listed is not.
    let hidden = people.join("b", 0, Arc::default());
    let _in = hidden.enter(address("192.0.2.1")).unwrap();
    assert_eq!(hidden.person.addresses(), 0);
}

#[test]
fn the_list_of_addresses_is_bounded() {
    let one = People::default().join("a", 0, level());
    let all: Vec<_> = (0..online::MAX_ADDRESSES as u32 + 10)
        .map(|number| {
            one.enter(Some(IpAddr::from((0xc000_0200 + number).to_be_bytes())))
                .unwrap()
        })
        .collect();
    assert_eq!(one.person.addresses() as usize, online::MAX_ADDRESSES);
    drop(all);
    assert_eq!(one.person.addresses(), 0);
}

#[tokio::test]
async fn a_removal_ends_everything_of_a_member_and_nothing_else() {
    let people = People::default();
    let (here, there) = (people.join("a", 0, level()), people.join("a", 0, level()));
    let carried = |member: &Arc<Member>| {
        let mut presence = member.enter(None).unwrap();
        tokio::spawn(async move { presence.unless_gone(std::future::pending::<()>()).await })
    };
    let ending: Vec<_> = (0..100).map(|_| carried(&here)).collect();
    let staying = carried(&there);
    while here.gone().waiting() < 100 {
        tokio::task::yield_now().await;
    }
    here.end();
    for one in ending {
        let ended = timeout(Duration::from_secs(10), one).await.expect("it goes on");
        assert!(ended.unwrap().is_none());
    }
    assert_eq!(here.enter(None).unwrap_err(), Refused::Removed);
    assert_eq!(here.person.connections(), 1);
    assert!(!staying.is_finished());
    // What is over in time is not held up, and leaves nothing behind.
    let mut presence = there.enter(None).unwrap();
    assert_eq!(presence.unless_gone(async { 7 }).await, Some(7));
    drop(presence);
    staying.abort();
    let _ = staying.await;
    assert_eq!(there.gone().waiting(), 0);
    assert!(there.gone().is_quiet());
}

#[test]
fn who_is_known_from_before_is_the_same_member_or_at_least_ends_with_him() {
    let people = People::default();
    let first = people.join("Anna@b", 1, level());
    let same = people.join_again("Anna@b", 1, level(), Some(&first));
    assert!(Arc::ptr_eq(&first, &same));
    let others = [
        people.join_again("anna@b", 1, level(), Some(&first)),
        people.join_again("Anna@b", 2, level(), Some(&first)),
        people.join_again("Anna@b", 1, Arc::default(), Some(&first)),
    ];
    assert_eq!(others.each_ref().map(|one| one.email()), ["anna@b", "Anna@b", "Anna@b"]);
    assert_eq!(others.each_ref().map(|one| one.level_number), [1, 2, 1]);
    assert_eq!(*others[2].level, Level::default());
    // Those who come after one who was another are the same as the very first, and hold nobody in between.
    let later = people.join_again("Anna@b", 3, level(), Some(&others[1]));
    assert!(Arc::ptr_eq(later.first().unwrap(), &first));
    let all = [&first, &same, &others[0], &others[1], &others[2], &later];
    assert!(
        all.iter()
            .all(|one| one.is(&first) && Arc::ptr_eq(&one.person, &first.person))
    );
    let stranger = people.join("Anna@b", 1, level());
    assert!(!stranger.is(&first));
    let _presence = later.enter(None).unwrap();
    others[0].end();
    for one in all {
        assert_eq!(one.enter(None).unwrap_err(), Refused::Removed);
    }
    assert!(stranger.enter(None).is_ok());
    // He is there for as long as he is a member of anything.
    for one in all {
        people.leave(one);
    }
    assert!(people.find("anna@b").unwrap().is_member());
    people.leave(&stranger);
    assert!(!people.find("anna@b").unwrap().is_member());
}

#[tokio::test(start_paused = true)]
async fn counters_of_who_was_removed_are_dropped_after_ten_minutes_once_read() {
    let people = People::default();
    let minutes = |count: u64| tokio::time::advance(Duration::from_secs(60 * count));
    let there = |email| people.find(email).is_some();
    // Nobody would miss him.
    people.leave(&people.join("unused", 0, level()));
    assert!(!there("unused"));
    let (read, unread, back) = (
        people.join("read", 0, level()),
        people.join("unread", 0, level()),
        people.join("back", 0, level()),
    );
    for member in [&read, &unread, &back] {
        let presence = member.enter(None).unwrap();
        presence.received(1);
        // What is read while something is carried is not the last word.
        member.person.was_read();
        drop(presence);
        assert!(!member.person.is_settled());
        people.leave(member);
    }
    read.person.was_read();
    back.person.was_read();
    minutes(9).await;
    people.each(|_| {});
    assert!(there("read") && there("unread") && there("back"));
    let again = people.join("Back", 0, level());
    assert!(Arc::ptr_eq(&again.person, &back.person));
    minutes(2).await;
    people.each(|_| {});
    assert!(!there("read") && there("unread") && there("back"));
    unread.person.was_read();
    minutes(10).await;
    people.each(|_| {});
    assert!(!there("unread") && there("back"));
    people.leave(&again);
    minutes(11).await;
    people.each(|_| {});
    assert!(!there("back"));
}

#[tokio::test(start_paused = true)]
async fn who_was_forgotten_is_counted_and_limited_anew_after_a_reload() {
    let people = People::default();
    let one_at_a_time = Limits {
        connections: Some(1),
        ..Limits::default()
    };
    let first = people.join("Anna@b", 0, level());
    people.limit(&first, &one_at_a_time);
    let presence = first.enter(address("192.0.2.1")).unwrap();
    presence.received(5);
    drop(presence);
    first.person.was_read();
    people.leave(&first);
    tokio::time::advance(registry::KEPT + Duration::from_secs(1)).await;
    people.each(|_| {});
    assert!(people.find("anna@b").is_none());
    // The file that is read anew names her as the one before did.
    let again = people.join_again("Anna@b", 0, level(), Some(&first));
    let found = people.find("anna@b").expect("she is known");
    assert!(Arc::ptr_eq(&found, &again.person) && !Arc::ptr_eq(&found, &first.person));
    assert!(found.counters().iter().all(Option::is_none));
    people.limit(&again, &one_at_a_time);
    let presence = again.enter(address("192.0.2.1")).unwrap();
    presence.received(7);
    assert_eq!(again.enter(None).unwrap_err(), Refused::Connections);
    assert_eq!(found.counters()[0].map(Tally::get), Some(7));
    assert_eq!((found.connections(), found.addresses()), (1, 1));
    // Nobody else goes by her name, and she is there while she is a member.
    let mut all = 0;
    people.each(|_| all += 1);
    assert_eq!(all, 1);
    drop(presence);
    people.leave(&again);
    assert!(!found.is_member());
}

#[test]
fn those_whose_counters_nobody_reads_are_bounded() {
    let people = People::default();
    for number in 0..registry::MAX_DEPARTED + 10 {
        let member = people.join(&format!("u{number}"), 0, level());
        drop(member.enter(None).unwrap());
        people.leave(&member);
    }
    let mut left = 0;
    people.each(|_| left += 1);
    assert_eq!(left, registry::MAX_DEPARTED);
    assert!(people.find("u9").is_none() && people.find("u10").is_some());
}

/// There may be 100,000 of them, each with its name and a few places in tables.
#[test]
fn a_person_and_a_member_are_small() {
    assert!(size_of::<Person>() <= 80, "{}", size_of::<Person>());
    assert!(size_of::<Member>() <= 56, "{}", size_of::<Member>());
}
