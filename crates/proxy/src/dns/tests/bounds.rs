//! How much is asked at a time, and what is kept.

use super::*;

#[tokio::test(start_paused = true)]
async fn questions_on_their_way_are_bounded() {
    let (dns, at) = dns(r#""dns": {"servers": ["192.0.2.53"]}"#, vec![dead()]);
    let asking: Vec<_> = (0..flights::MAX_FLIGHTS + 100)
        .map(|n| {
            let dns = Arc::clone(&dns);
            tokio::spawn(async move { ask_for(&dns, &format!("{n}.example"), V4).await })
        })
        .collect();
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(asked(&at), [flights::MAX_FLIGHTS]);
    let ended: Vec<String> = {
        let mut ended = Vec::new();
        for task in asking {
            ended.push(task.await.unwrap());
        }
        ended
    };
    let refused = ended.iter().filter(|why| why.contains("too many")).count();
    assert_eq!(refused, 100);
    ask_for(&dns, "again.example", V4).await;
    assert_eq!(asked(&at), [flights::MAX_FLIGHTS + 1], "they have ended");
}

#[tokio::test(start_paused = true)]
async fn a_client_leaves_room_for_others() {
    let (dns, at) = dns(r#""dns": {"servers": ["192.0.2.53"]}"#, vec![dead()]);
    let client = |last: u8| -> Option<IpAddr> { Some([198, 51, 100, last].into()) };
    let ask = |client: Option<IpAddr>, n: usize| {
        let dns = Arc::clone(&dns);
        tokio::spawn(async move {
            let name = format!("{n}.example");
            of_client(client, ask_for(&dns, &name, V4)).await
        })
    };
    // Its network of IPv6 is one client.
    let v6 = |n: usize| Some(format!("2001:db8::{:x}", n + 1).parse().unwrap());
    let (room, each) = (flights::MAX_OF_CLIENT, flights::MAX_OF_CLIENT + 50);
    let many: Vec<_> = (0..each)
        .flat_map(|n| [ask(client(1), n), ask(v6(n), each + n)])
        .collect();
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(asked(&at), [2 * room]);
    ask(client(2), 2 * each);
    // What somebody else asks for already costs nothing.
    let joined = ask(client(1), 2 * each);
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert!(asked(&at) == [2 * room + 1] && !joined.is_finished());
    // All clients together leave room for what is needed to ask.
    for last in 3..30 {
        (0..room).for_each(|n| drop(ask(client(last), usize::from(last) * 1000 + n)));
    }
    tokio::time::sleep(Duration::from_millis(10)).await;
    let before = asked(&at)[0];
    assert!(before < flights::MAX_FLIGHTS, "{before}");
    drop(ask(None, 999_999));
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(asked(&at), [before + 1]);
    let mut refused = 0;
    for task in many {
        refused += usize::from(task.await.unwrap().contains("too many"));
    }
    assert_eq!(refused, 2 * 50);
    ask(client(1), 800_000);
    tokio::time::sleep(Duration::from_millis(10)).await;
    assert_eq!(asked(&at), [before + 2], "its questions have ended");
}

#[tokio::test(start_paused = true)]
async fn that_there_is_nothing_is_not_served_stale() {
    let text = r#""dns": {"serveStale": true, "servers": ["192.0.2.53"]}"#;
    let (dns, at) = dns(text, vec![server(500, &[])]);
    ask_for(&dns, "a.example", V4).await;
    tokio::time::sleep(Duration::from_secs(70)).await;
    let began = Instant::now();
    assert_eq!(ask_for(&dns, "a.example", V4).await, "nothing 0");
    assert_eq!((began.elapsed().as_millis(), asked(&at)), (500, vec![2]));
}

#[tokio::test]
async fn the_system_is_asked_once_for_both_families() {
    let (dns, _) = dns(r#""dns": {"servers": ["localhost"]}"#, vec![]);
    assert_eq!(ask_for(&dns, "localhost", V4).await, "127.0.0.1");
    let key = Key::new(0, Family::V4, "localhost");
    let Some(Kept::Fresh(kept)) = dns.cache.get(&key, Instant::now()) else {
        panic!("nothing is kept");
    };
    let (six, _): (Vec<IpAddr>, Vec<IpAddr>) = kept.ips.iter().partition(|ip| ip.is_ipv6());
    let wanted = match six.as_slice() {
        [] => "nothing 0".to_owned(),
        six => six.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "),
    };
    assert_eq!(ask_for(&dns, "localhost", Wanted::only(Family::V6)).await, wanted);
    assert_eq!(dns.cache.size().0, 1);
    // That it has failed is remembered for a while.
    let began = Instant::now();
    dns.cache.put(
        Key::new(0, Family::V4, "x.localhost"),
        nothing(SERVER_FAILURE),
        FAILURE_HOLDS,
        began,
    );
    assert_eq!(
        ask_for(&dns, "x.localhost", V4).await,
        "failed: the system's resolver has no answer"
    );
}
