mod bounds;

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::Error;

/// A server that answers after a while, or not.
struct Fixture {
    after: Duration,
    /// Addresses of both families; `None`: an error.
    ips: Option<Vec<IpAddr>>,
    ttl: Option<u32>,
    asked: AtomicUsize,
    names: Mutex<Vec<String>>,
}

impl Exchange for Fixture {
    fn ask(self: Arc<Self>, question: Question) -> Pending<'static, Answer> {
        self.asked.fetch_add(1, Ordering::SeqCst);
        self.names.lock().unwrap().push(question.name.to_ascii());
        Box::pin(async move {
            tokio::time::sleep(self.after).await;
            let ips = self.ips.clone().ok_or(Error::Closed)?;
            Ok(Answer {
                ips: ips
                    .into_iter()
                    .filter(|ip| Family::of(*ip) == question.family)
                    .collect(),
                ttl: self.ttl,
                code: 0,
            })
        })
    }
}

fn server(after: u64, ips: &[&str]) -> Fixture {
    Fixture {
        after: Duration::from_millis(after),
        ips: Some(ips.iter().map(|ip| ip.parse().unwrap()).collect()),
        ttl: Some(60),
        asked: AtomicUsize::new(0),
        names: Mutex::default(),
    }
}

fn dead() -> Fixture {
    server(1_000_000, &[])
}

fn broken() -> Fixture {
    Fixture {
        ips: None,
        ..server(0, &[])
    }
}

/// A configuration and its servers, each of which stands at `192.0.2.53`.
fn dns(text: &str, servers: Vec<Fixture>) -> (Arc<Dns>, Vec<Arc<Fixture>>) {
    let text = format!(r#"{{{text}, "outbounds": [{{"protocol": "freedom"}}]}}"#);
    let dns = Dns::new(&settings::Settings::of_text(&text).dns, &Lists::default()).unwrap();
    let mut fixtures = servers.into_iter().map(Arc::new);
    let mut all = Vec::new();
    let wires = dns.servers.iter().map(|server| {
        let fixture = server.is_wire().then(|| fixtures.next().unwrap())?;
        all.push(Arc::clone(&fixture));
        Some(fixture as Arc<dyn Exchange>)
    });
    let wires = wires.collect();
    dns.set(wires);
    (dns, all)
}

async fn ask(dns: &Arc<Dns>, name: &str) -> String {
    ask_for(dns, name, Wanted::BOTH).await
}

async fn ask_for(dns: &Arc<Dns>, name: &str, wanted: Wanted) -> String {
    match dns.lookup(name, wanted, true).await {
        Ok(found) => {
            let ips: Vec<String> = found.ips.iter().map(ToString::to_string).collect();
            if ips.is_empty() {
                format!("nothing {}", found.code)
            } else {
                ips.join(" ")
            }
        }
        Err(failed) => format!("failed: {}", failed.why),
    }
}

fn asked(servers: &[Arc<Fixture>]) -> Vec<usize> {
    servers
        .iter()
        .map(|server| server.asked.load(Ordering::SeqCst))
        .collect()
}

const V4: Wanted = Wanted { v4: true, v6: false };

#[tokio::test(start_paused = true)]
async fn servers_are_asked_in_the_order_of_their_conditions() {
    let servers = |more: &str| {
        format!(
            r#""dns": {{"queryStrategy": "UseIPv4", {more} "servers": [
                {{"address": "192.0.2.53"}},
                {{"address": "192.0.2.53", "domains": ["domain:cn"], "skipFallback": true}},
                {{"address": "192.0.2.53", "domains": ["domain:both.cn"]}}]}}"#
        )
    };
    let three = || vec![server(0, &["192.0.2.1"]), broken(), server(0, &["192.0.2.3"])];
    let (one, at) = dns(&servers(""), three());
    assert_eq!(ask(&one, "a.example").await, "192.0.2.1");
    assert_eq!(asked(&at), [1, 0, 0]);
    assert_eq!(ask(&one, "a.cn").await, "192.0.2.1");
    assert_eq!(asked(&at), [2, 1, 0]);
    assert_eq!(ask(&one, "a.both.cn").await, "192.0.2.3");
    assert_eq!(asked(&at), [2, 2, 1]);
    let (two, at) = dns(&servers(r#""disableFallback": true,"#), three());
    assert_eq!(ask(&two, "a.cn").await, "failed: peer closed the connection early");
    assert_eq!(
        ask(&two, "a.example").await,
        "192.0.2.1",
        "nothing is left, so the first is asked"
    );
    assert_eq!(asked(&at), [1, 1, 0]);
    let (three_, at) = dns(&servers(r#""disableFallbackIfMatch": true,"#), three());
    assert_eq!(ask(&three_, "a.cn").await, "failed: peer closed the connection early");
    assert_eq!(ask(&three_, "a.example").await, "192.0.2.1");
    assert_eq!(asked(&at), [1, 1, 0]);
}

#[tokio::test(start_paused = true)]
async fn answers_that_are_not_expected_go_to_the_next_server() {
    let filter =
        |filter: &str| format!(r#""dns": {{"servers": [{{"address": "192.0.2.53", {filter}}}, "192.0.2.53"]}}"#);
    let two = || vec![server(0, &["192.0.2.1", "198.51.100.1"]), server(0, &["203.0.113.1"])];
    for (text, wanted) in [
        (r#""expectedIPs": ["192.0.2.0/24"]"#, "192.0.2.1"),
        (r#""expectIPs": ["10.0.0.0/8"]"#, "203.0.113.1"),
        (r#""expectedIPs": ["*", "10.0.0.0/8"]"#, "192.0.2.1 198.51.100.1"),
        (r#""expectedIPs": ["*", "198.51.100.0/24"]"#, "198.51.100.1"),
        (
            r#""expectedIPs": ["*", "192.0.2.0/24"], "unexpectedIPs": ["192.0.2.0/24"]"#,
            "198.51.100.1",
        ),
        (r#""unexpectedIPs": ["192.0.2.0/24"]"#, "198.51.100.1"),
        (r#""unexpectedIPs": ["0.0.0.0/0"]"#, "203.0.113.1"),
        (r#""unexpectedIPs": ["0.0.0.0/0", "*"]"#, "192.0.2.1 198.51.100.1"),
        (r#""expectedIPs": ["10.0.0.0/8"], "finalQuery": true"#, "nothing 0"),
    ] {
        assert_eq!(ask(&dns(&filter(text), two()).0, "a.example").await, wanted, "{text}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_dead_server_costs_its_time_and_nothing_with_parallel_questions() {
    let text = |parallel| {
        let server = r#"{"address": "192.0.2.53", "timeoutMs": 700}"#;
        format!(r#""dns": {{"enableParallelQuery": {parallel}, "servers": [{server}, {server}]}}"#)
    };
    let two = || vec![dead(), server(10, &["192.0.2.1", "2001:db8::1"])];
    let began = Instant::now();
    let (serial, _) = dns(&text(false), two());
    assert_eq!(ask(&serial, "a.example").await, "192.0.2.1 2001:db8::1");
    let took = began.elapsed().as_millis();
    assert!((700..760).contains(&took), "{took} ms");
    let began = Instant::now();
    let (parallel, _) = dns(&text(true), two());
    assert_eq!(ask(&parallel, "a.example").await, "192.0.2.1 2001:db8::1");
    let took = began.elapsed().as_millis();
    assert!(took < 60, "{took} ms");
    // Servers with conditions of their own keep their turn.
    let ordered = r#""dns": {"enableParallelQuery": true, "servers": [
        {"address": "192.0.2.53", "domains": ["full:a.example"]}, "192.0.2.53"]}"#;
    let (ordered, at) = dns(ordered, vec![server(300, &["192.0.2.9"]), server(0, &["192.0.2.1"])]);
    let began = Instant::now();
    assert_eq!(ask_for(&ordered, "a.example", V4).await, "192.0.2.9");
    assert!(began.elapsed().as_millis() >= 300);
    assert_eq!(asked(&at), [1, 1], "both were asked at once");
}

#[tokio::test(start_paused = true)]
async fn one_family_does_not_wait_for_the_other() {
    struct Slow(Family);
    impl Exchange for Slow {
        fn ask(self: Arc<Self>, question: Question) -> Pending<'static, Answer> {
            Box::pin(async move {
                if question.family == self.0 {
                    tokio::time::sleep(Duration::from_secs(3)).await;
                }
                let ip = match question.family {
                    Family::V4 => "192.0.2.1".parse(),
                    Family::V6 => "2001:db8::1".parse(),
                };
                Ok(Answer {
                    ips: vec![ip.unwrap()],
                    ttl: Some(60),
                    code: 0,
                })
            })
        }
    }
    for (slow, wanted) in [(Family::V4, "2001:db8::1"), (Family::V6, "192.0.2.1")] {
        let (dns, _) = dns(r#""dns": {"servers": ["localhost"]}"#, vec![]);
        let dns = Arc::new(Dns {
            wires: OnceLock::from(vec![Some(Arc::new(Slow(slow)) as Arc<dyn Exchange>)]),
            servers: servers::all(&wire_settings(), &Lists::default()).unwrap(),
            settings: wire_settings(),
            hosts: Hosts::new(&wire_settings(), &Lists::default()).unwrap(),
            cache: Arc::default(),
            flights: Flights::default(),
            fake: dns.fake.is_some().then(|| Arc::new(FakePools::new(&[]))),
            lookups: Default::default(),
            system: System::default(),
        });
        let began = Instant::now();
        assert_eq!(ask(&dns, "a.example").await, wanted);
        assert_eq!(began.elapsed().as_millis(), 50);
        tokio::time::sleep(Duration::from_secs(4)).await;
        assert_eq!(
            ask(&dns, "a.example").await,
            "192.0.2.1 2001:db8::1",
            "the late answer is kept"
        );
    }
}

fn wire_settings() -> settings::Dns {
    let text = r#"{"dns": {"servers": ["192.0.2.53"]}, "outbounds": [{"protocol": "freedom"}]}"#;
    settings::Settings::of_text(text).dns
}

#[tokio::test(start_paused = true)]
async fn equal_questions_are_asked_once_and_answers_are_kept() {
    let (one, at) = dns(
        r#""dns": {"servers": ["192.0.2.53"]}"#,
        vec![server(100, &["192.0.2.1"])],
    );
    let asking: Vec<_> = (0..500)
        .map(|_| {
            let dns = Arc::clone(&one);
            tokio::spawn(async move { ask_for(&dns, "a.example", V4).await })
        })
        .collect();
    for task in asking {
        assert_eq!(task.await.unwrap(), "192.0.2.1");
    }
    assert_eq!(asked(&at), [1]);
    ask_for(&one, "a.example", V4).await;
    assert_eq!(asked(&at), [1]);
    tokio::time::sleep(Duration::from_secs(61)).await;
    ask_for(&one, "a.example", V4).await;
    assert_eq!(asked(&at), [2]);
    // Nothing is kept where that is asked for, nor where the server does not say how long it holds.
    let (two, at) = dns(
        r#""dns": {"disableCache": true, "servers": ["192.0.2.53"]}"#,
        vec![server(0, &["192.0.2.1"])],
    );
    let (three, at3) = dns(
        r#""dns": {"servers": ["192.0.2.53"]}"#,
        vec![Fixture {
            ttl: None,
            ..server(0, &[])
        }],
    );
    for _ in 0..2 {
        ask_for(&two, "a.example", V4).await;
        assert_eq!(ask_for(&three, "a.example", V4).await, "nothing 0");
    }
    assert_eq!((asked(&at), asked(&at3)), (vec![2], vec![2]));
    // That there is nothing is kept for as long as the server says.
    let (four, at) = dns(r#""dns": {"servers": ["192.0.2.53"]}"#, vec![server(0, &[])]);
    for _ in 0..2 {
        assert_eq!(ask_for(&four, "a.example", V4).await, "nothing 0");
    }
    assert_eq!(asked(&at), [1]);
}

#[tokio::test(start_paused = true)]
async fn stale_answers_are_served_where_that_is_asked_for() {
    let text = r#""dns": {"serveStale": true, "serveExpiredTTL": 30, "servers": ["192.0.2.53"]}"#;
    let (dns, at) = dns(text, vec![server(500, &["192.0.2.1"])]);
    ask_for(&dns, "a.example", V4).await;
    tokio::time::sleep(Duration::from_secs(70)).await;
    let began = Instant::now();
    assert_eq!(ask_for(&dns, "a.example", V4).await, "192.0.2.1");
    assert_eq!(began.elapsed(), Duration::ZERO);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(asked(&at), [2], "it was asked for anew");
    tokio::time::sleep(Duration::from_secs(100)).await;
    let began = Instant::now();
    ask_for(&dns, "a.example", V4).await;
    assert_eq!(began.elapsed().as_millis(), 500, "too old");
}

#[tokio::test(start_paused = true)]
async fn names_are_asked_for_as_they_are() {
    let (system, _) = dns(r#""dns": {"servers": ["localhost"]}"#, vec![]);
    let (dns, at) = dns(r#""dns": {"servers": ["192.0.2.53"]}"#, vec![server(0, &["192.0.2.1"])]);
    for name in [
        "-a.example",
        "a/b.example",
        "_dns.example",
        "a b.example",
        "a\\.b.example",
        "a..example",
        "ü.example",
    ] {
        let answer = ask_for(&dns, name, V4).await;
        let is_odd = name.contains([' ', '\\', 'ü']) || name.contains("..");
        assert_eq!(answer.starts_with("failed: no name"), is_odd, "{name}: {answer}");
    }
    let asked: Vec<usize> = at[0]
        .names
        .lock()
        .unwrap()
        .iter()
        .map(|name| name.matches('.').count())
        .collect();
    assert_eq!(asked, [2, 2, 2]);
    // The system would read more into it.
    assert_eq!(
        ask_for(&system, "a\\.b.example", V4).await,
        "failed: no name that DNS could have"
    );
}

#[tokio::test(start_paused = true)]
async fn an_address_that_does_not_count_is_no_reason_not_to_wait() {
    struct Slow;
    impl Exchange for Slow {
        fn ask(self: Arc<Self>, question: Question) -> Pending<'static, Answer> {
            Box::pin(async move {
                let ip = match question.family {
                    Family::V4 => "192.0.2.1".parse(),
                    Family::V6 => {
                        tokio::time::sleep(Duration::from_secs(1)).await;
                        "2001:db8::1".parse()
                    }
                };
                Ok(Answer {
                    ips: vec![ip.unwrap()],
                    ttl: Some(60),
                    code: 0,
                })
            })
        }
    }
    let text = r#"{"dns": {"servers": [{"address": "192.0.2.53", "unexpectedIPs": ["192.0.2.0/24"]}]},
        "outbounds": [{"protocol": "freedom"}]}"#;
    let settings = settings::Settings::of_text(text).dns;
    let dns = Dns::new(&settings, &Lists::default()).unwrap();
    dns.set(vec![Some(Arc::new(Slow) as Arc<dyn Exchange>)]);
    assert_eq!(ask(&dns, "a.example").await, "2001:db8::1");
}

#[tokio::test(start_paused = true)]
async fn a_question_that_its_own_server_needs_is_no_endless_wait() {
    struct Circle(OnceLock<Arc<Dns>>);
    impl Exchange for Circle {
        fn ask(self: Arc<Self>, question: Question) -> Pending<'static, Answer> {
            Box::pin(async move {
                let name = question.name.to_ascii();
                let dns = Arc::clone(self.0.get().unwrap());
                // The outbound's server has this name, whatever is asked for.
                let _ = name;
                dns.lookup("proxy.example", V4, false)
                    .await
                    .map_err(|_| Error::Closed)?;
                Ok(Answer {
                    ips: vec![],
                    ttl: None,
                    code: 0,
                })
            })
        }
    }
    let circle = Arc::new(Circle(OnceLock::new()));
    let config = wire_settings();
    let dns = Dns::new(&config, &Lists::default()).unwrap();
    dns.set(vec![Some(Arc::clone(&circle) as Arc<dyn Exchange>)]);
    let _ = circle.0.set(Arc::clone(&dns));
    let began = Instant::now();
    for name in ["proxy.example", "a.example"] {
        assert!(dns.lookup(name, V4, false).await.is_err());
    }
    assert_eq!(began.elapsed(), Duration::ZERO, "nothing was waited for");
}

#[tokio::test(start_paused = true)]
async fn fixed_and_fake_answers_need_no_server() {
    let text = r##""fakedns": [{"ipPool": "198.18.0.0/16", "poolSize": 100}],
        "dns": {"hosts": {"a.example": ["192.0.2.1", "2001:db8::1"], "none.example": "#3", "b.example": "c.example"},
            "servers": ["fakedns", "192.0.2.53"]}"##;
    let (dns, at) = dns(text, vec![server(0, &["192.0.2.7"])]);
    assert_eq!(ask(&dns, "a.example").await, "192.0.2.1 2001:db8::1");
    assert_eq!(ask_for(&dns, "a.example", V4).await, "192.0.2.1");
    assert_eq!(ask(&dns, "none.example").await, "nothing 3");
    let fake = ask_for(&dns, "x.example", V4).await;
    assert!(fake.starts_with("198.18."), "{fake}");
    assert_eq!(dns.fake(fake.parse().unwrap()), Fake::Name("x.example".into()));
    assert_eq!(asked(&at), [0]);
    // Without a pool of its family, a name has no address, and nobody else is asked for one that leads past the pools.
    assert_eq!(ask_for(&dns, "x.example", Wanted::only(Family::V6)).await, "nothing 0");
    assert_eq!(asked(&at), [0]);
    // What is dialled is never a fake address.
    let real = dns.lookup("b.example", V4, false).await.unwrap();
    assert_eq!(real.ips[..], ["192.0.2.7".parse::<IpAddr>().unwrap()]);
    assert_eq!(at[0].names.lock().unwrap()[0], "c.example.");
}

#[tokio::test(start_paused = true)]
async fn families_are_asked_for_as_the_strategies_say() {
    let (dns, at) = dns(
        r#""dns": {"servers": [{"address": "192.0.2.53", "queryStrategy": "UseIPv6"}, {"address": "192.0.2.53", "queryStrategy": "UseIPv4"}]}"#,
        vec![
            server(0, &["192.0.2.1", "2001:db8::1"]),
            server(0, &["192.0.2.2", "2001:db8::2"]),
        ],
    );
    assert_eq!(ask(&dns, "a.example").await, "2001:db8::1");
    assert_eq!(ask_for(&dns, "a.example", V4).await, "192.0.2.2");
    assert_eq!(asked(&at), [1, 1]);
}

/// A mixed name from clients that hold no name at all.
#[tokio::test(start_paused = true)]
async fn names_that_dns_cannot_have_fail() {
    let (dns, at) = dns(r#""dns": {"servers": ["192.0.2.53"]}"#, vec![server(0, &[])]);
    for name in ["", "a..b", &"x".repeat(70), &"x.".repeat(200), "\u{fc}.example"] {
        let told = ask(&dns, name).await;
        assert!(told.starts_with("failed") || name.is_empty(), "{name}: {told}");
    }
    assert!(asked(&at)[0] <= 2);
}
