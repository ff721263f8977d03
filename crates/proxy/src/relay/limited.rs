//! Relays of a user with limits, in time that passes only while nothing is to be done.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use sealway_net::sock::Sock;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixStream;
use tokio::task::JoinSet;
use tokio::time::timeout;

use super::*;
use crate::people::{Member, People};
use crate::settings::Limits;
use crate::stats::Traffic;
use crate::tls;

const RATE: u64 = 50 * 125_000;

fn member(limits: Limits) -> Arc<Member> {
    limited(&People::default(), &limits)
}

fn limited(people: &People, limits: &Limits) -> Arc<Member> {
    let member = people.join("anna", 0, Arc::default());
    people.limit(&member, limits);
    member
}

fn at(rate: u64) -> Limits {
    Limits {
        uplink: Some(rate),
        downlink: Some(rate),
        burst: Some(64 << 10),
        ..Limits::default()
    }
}

/// Carries as much as goes in a time through so many connections. Bytes that each has moved, what the kernel moved of all of them,
/// and how they ended.
async fn carry(
    member: &Arc<Member>,
    way: Way,
    with_tls: bool,
    connections: usize,
    time: Duration,
) -> (Vec<usize>, u64, Vec<Option<Error>>) {
    let (mut relays, mut others, mut counts) = (JoinSet::new(), JoinSet::new(), Vec::new());
    for _ in 0..connections {
        let moved = Arc::new(AtomicUsize::new(0));
        counts.push(Arc::clone(&moved));
        let (far, target) = UnixStream::pair().unwrap();
        let far = Stream::new(Sock::Unix(far), Traffic::default());
        let near = match with_tls {
            true => {
                let (near, mut client) = tls::tests::ends(tls::tests::suites()[0]).await;
                others.spawn(async move {
                    while client.more().await.unwrap_or(false) {
                        let len = client.payload().len();
                        client.consume(len);
                        moved.fetch_add(len, Ordering::Relaxed);
                    }
                });
                others.spawn(flood(target));
                near
            }
            false => {
                let (near, client) = UnixStream::pair().unwrap();
                let (from, to) = if way == Way::Up {
                    (client, target)
                } else {
                    (target, client)
                };
                others.spawn(flood(from));
                others.spawn(drain(to, moved));
                Stream::new(Sock::Unix(near), Traffic::default())
            }
        };
        let mut relay = Relay::new(near, far, Timeouts::default(), member.enter(None).unwrap());
        relays.spawn(async move {
            let ended = timeout(time, std::future::poll_fn(|cx| relay.poll(cx))).await;
            (relay.up.spliced + relay.down.spliced, ended.ok().and_then(Result::err))
        });
    }
    let ended = relays.join_all().await;
    let moved = counts.iter().map(|count| count.load(Ordering::Relaxed)).collect();
    let spliced = ended.iter().map(|(spliced, _)| spliced).sum();
    (moved, spliced, ended.into_iter().map(|(_, error)| error).collect())
}

/// Writes without end, and holds its other half open.
async fn flood(mut to: UnixStream) {
    let some = vec![7; 200_000];
    while to.write_all(&some).await.is_ok() {}
}

async fn drain(mut from: UnixStream, moved: Arc<AtomicUsize>) {
    let mut into = vec![0; 200_000];
    while let Ok(got @ 1..) = from.read(&mut into).await {
        moved.fetch_add(got, Ordering::Relaxed);
    }
}

#[tokio::test(start_paused = true)]
async fn all_connections_of_a_user_share_one_rate_evenly() {
    for (with_tls, way) in [(false, Way::Down), (false, Way::Up), (true, Way::Down)] {
        for connections in [1, 8, 64] {
            let time = Duration::from_secs(2);
            let (moved, spliced, _) = carry(&member(at(RATE)), way, with_tls, connections, time).await;
            let all: usize = moved.iter().sum();
            let share = all as f64 / (RATE * 2) as f64;
            let what = format!("TLS {with_tls}, {way:?}, {connections} connections: {share:.3}");
            assert!((0.9..=1.05).contains(&share), "{what}");
            let least = *moved.iter().min().unwrap();
            assert!(
                least as f64 > 0.5 * all as f64 / connections as f64,
                "{what}: {moved:?}"
            );
            match with_tls {
                true => assert_eq!(spliced, 0, "{what}"),
                false => assert!(spliced as f64 > 0.8 * all as f64, "{what}: {spliced} of {all}"),
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn another_limit_holds_for_connections_that_are_carried() {
    let people = People::default();
    let member = limited(&people, &at(RATE));
    let (time, begun) = (Duration::from_secs(2), Instant::now());
    let carried = carry(&member, Way::Down, false, 2, time);
    let change = async {
        sleep_until(begun + time / 2).await;
        limited(&people, &at(RATE / 5));
    };
    let ((moved, ..), ()) = tokio::join!(carried, change);
    let share = moved.iter().sum::<usize>() as f64 / RATE as f64;
    assert!((1.1..=1.3).contains(&share), "{share}");
}

/// A hundred turns at this rate are five seconds.
const SLOW: u64 = 125_000;

#[tokio::test(start_paused = true)]
async fn connections_that_end_while_they_wait_leave_the_rate_to_others() {
    let member = member(at(SLOW));
    carry(&member, Way::Down, false, 100, Duration::from_millis(10)).await;
    let (moved, ..) = carry(&member, Way::Down, false, 1, Duration::from_secs(2)).await;
    assert!(moved[0] as f64 > 0.9 * (SLOW * 2) as f64, "{moved:?}");
}

#[tokio::test(start_paused = true)]
async fn the_end_of_a_direction_takes_nothing() {
    // It is seen by a read into memory, and by the kernel where that moves the bytes.
    for bulk in [false, true] {
        let member = member(at(SLOW));
        let mut ended = Vec::new();
        for _ in 0..100 {
            let [(near, client), (far, target)] = [0; 2].map(|_| UnixStream::pair().unwrap());
            drop(target);
            // A socket that nobody has waited for is not known to have anything to read.
            far.readable().await.unwrap();
            let [near, far] = [near, far].map(|end| Stream::new(Sock::Unix(end), Traffic::default()));
            let mut relay = Relay::new(near, far, Timeouts::default(), member.enter(None).unwrap());
            relay.down.bulk = bulk;
            let now = std::future::poll_fn(|cx| Poll::Ready(relay.poll(cx))).await;
            assert!(
                now.is_pending() && relay.far.is_ended(),
                "bulk: {bulk}, {}",
                ended.len()
            );
            ended.push((relay, client));
        }
        let (moved, ..) = carry(&member, Way::Down, false, 1, Duration::from_secs(2)).await;
        assert!(moved[0] as f64 > 0.9 * (SLOW * 2) as f64, "bulk: {bulk}, {moved:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_rate_that_is_raised_helps_those_who_wait() {
    let people = People::default();
    let (member, begun) = (limited(&people, &at(100)), Instant::now());
    let carried = carry(&member, Way::Down, false, 64, Duration::from_secs(4));
    let change = async {
        sleep_until(begun + Duration::from_secs(2)).await;
        limited(&people, &at(RATE));
    };
    let ((moved, ..), ()) = tokio::join!(carried, change);
    let share = moved.iter().sum::<usize>() as f64 / RATE as f64;
    assert!((0.9..=2.1).contains(&share), "{share}");
}

#[tokio::test(start_paused = true)]
async fn a_quota_ends_connections_and_lets_nobody_in() {
    let quota = 20 << 20;
    let member = member(Limits {
        quota: Some(quota),
        ..Limits::default()
    });
    let (moved, _, ended) = carry(&member, Way::Down, false, 3, Duration::from_secs(100)).await;
    for error in ended {
        assert!(matches!(error, Some(Error::Refused(Refused::Quota))), "{error:?}");
    }
    let share = moved.iter().sum::<usize>() as f64 / quota as f64;
    assert!((0.98..=1.01).contains(&share), "{share}");
    assert!(matches!(member.enter(None), Err(Refused::Quota)));
}

#[tokio::test(start_paused = true)]
async fn a_quota_that_is_set_while_something_is_carried_ends_it() {
    let people = People::default();
    let (member, begun) = (limited(&people, &at(SLOW)), Instant::now());
    let carried = carry(&member, Way::Down, false, 2, Duration::from_secs(100));
    let change = async {
        sleep_until(begun + Duration::from_secs(1)).await;
        let quota = Some(SLOW);
        limited(&people, &Limits { quota, ..at(SLOW) });
    };
    let ((moved, _, ended), ()) = tokio::join!(carried, change);
    for error in ended {
        assert!(matches!(error, Some(Error::Refused(Refused::Quota))), "{error:?}");
    }
    // A second and the burst before it was set, and as much as it allows.
    let share = moved.iter().sum::<usize>() as f64 / SLOW as f64;
    assert!((2.3..=2.7).contains(&share), "{share}");
}

#[tokio::test(start_paused = true)]
async fn who_has_as_many_connections_as_he_may_gets_no_other() {
    let member = member(Limits {
        connections: Some(2),
        addresses: Some(1),
        ..Limits::default()
    });
    let from = |text: &str| Some(text.parse().unwrap());
    let one = member.enter(from("192.0.2.1")).unwrap();
    assert!(matches!(member.enter(from("192.0.2.2")), Err(Refused::Addresses)));
    let _other = member.enter(from("192.0.2.1")).unwrap();
    assert!(matches!(member.enter(from("192.0.2.1")), Err(Refused::Connections)));
    drop(one);
    assert!(member.enter(from("192.0.2.1")).is_ok());
}
