use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};

use super::places::MAX_ASKING;
use super::table::{Kind, SECTIONS};
use super::*;
use crate::Server;
use crate::settings::Settings;

/// A free port of this machine.
async fn port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    listener.local_addr().unwrap().port()
}

/// The whole answer to a request.
async fn say(io: &mut (impl AsyncReadExt + AsyncWriteExt + Unpin), request: &str) -> String {
    io.write_all(request.as_bytes()).await.unwrap();
    let mut answer = String::new();
    let _ = io.read_to_string(&mut answer).await;
    answer
}

/// True if it is closed before it could have asked.
async fn is_closed(io: &mut (impl AsyncReadExt + Unpin)) -> bool {
    let closed = tokio::time::timeout(HEAD / 2, io.read(&mut [0])).await;
    matches!(closed, Ok(Ok(0)))
}

/// Status and content of what is at a path.
async fn get(port: u16, path: &str) -> (u16, String) {
    let mut tcp = TcpStream::connect(("127.0.0.1", port)).await.unwrap();
    let answer = say(
        &mut tcp,
        &format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n\r\n"),
    )
    .await;
    let (head, body) = answer.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{answer:?}"));
    (head[9..12].parse().unwrap(), body.to_owned())
}

/// The value of a sample.
fn sample(text: &str, name: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in\n{text}")).parse().unwrap()
}

/// Asks until it is so.
async fn until(port: u16, name: &str, wanted: f64) -> String {
    loop {
        let (_, text) = get(port, "/metrics").await;
        if sample(&text, name) == wanted {
            return text;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A server that is watched: its SOCKS port, the port of its numbers, and a port where nobody listens.
async fn watched(metrics: &str) -> (Server, u16, u16, u16) {
    let (socks, numbers, dead) = (port().await, port().await, port().await);
    let text = format!(
        r#"{{
            "metrics": {{ "tag": "numbers", "listen": "127.0.0.1:{numbers}" {metrics} }},
            "inbounds": [{{
                "tag": "in\"side", "listen": "127.0.0.1", "port": {socks}, "protocol": "socks",
                "settings": {{ "auth": "password", "accounts": [{{ "user": "ann", "pass": "secret" }}] }}
            }}],
            "outbounds": [{{
                "tag": "direct", "protocol": "freedom",
                "settings": {{ "finalRules": [{{ "action": "allow", "ip": ["127.0.0.0/8"] }}] }}
            }}],
            "routing": {{
                "balancers": [{{ "tag": "some", "selector": ["direct"] }}],
                "rules": [
                    {{ "domain": ["full:numbers.example"], "outboundTag": "numbers" }},
                    {{ "port": "1-65535", "balancerTag": "some" }}
                ]
            }}
        }}"#
    );
    (
        Server::start(Settings::of_text(&text)).await.unwrap(),
        socks,
        numbers,
        dead,
    )
}

/// A stream by SOCKS to a name or an address, with this password.
async fn through(socks: u16, host: &str, port: u16, password: &str) -> Option<TcpStream> {
    let mut tcp = TcpStream::connect(("127.0.0.1", socks)).await.unwrap();
    let mut hello = vec![5, 1, 2, 1, 3];
    hello.extend_from_slice(b"ann");
    hello.push(password.len() as u8);
    hello.extend_from_slice(password.as_bytes());
    tcp.write_all(&hello).await.unwrap();
    let mut answer = [0; 4];
    tcp.read_exact(&mut answer).await.ok()?;
    if answer != [5, 2, 1, 0] {
        return None;
    }
    let mut request = vec![5, 1, 0, 3, host.len() as u8];
    request.extend_from_slice(host.as_bytes());
    request.extend(port.to_be_bytes());
    tcp.write_all(&request).await.unwrap();
    let mut answer = [0; 10];
    tcp.read_exact(&mut answer).await.ok()?;
    Some(tcp)
}

/// Sends back what comes.
async fn echo() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            tokio::spawn(async move {
                let (mut from, mut to) = tcp.split();
                tokio::io::copy(&mut from, &mut to).await
            });
        }
    });
    address
}

#[tokio::test]
async fn what_happens_is_told() {
    let (server, socks, numbers, dead) = watched(r#", "users": true"#).await;
    let echo = echo().await;
    let mut open = through(socks, "127.0.0.1", echo.port(), "secret").await.unwrap();
    open.write_all(&[7; 1000]).await.unwrap();
    open.read_exact(&mut [0; 1000]).await.unwrap();
    assert!(through(socks, "127.0.0.1", echo.port(), "wrong").await.is_none());
    drop(through(socks, "127.0.0.1", dead, "secret").await);
    let inbound = r#"inbound="in\"side""#;
    let text = until(
        numbers,
        r#"sealway_dial_failures_total{outbound="direct",reason="refused"}"#,
        1.0,
    )
    .await;
    for (name, wanted) in [
        (format!("sealway_connections_open{{{inbound}}}"), 1.0),
        (format!("sealway_connections_accepted_total{{{inbound}}}"), 3.0),
        (
            format!(r#"sealway_connections_refused_total{{{inbound},reason="unauthentic"}}"#),
            1.0,
        ),
        (
            format!(r#"sealway_connections_refused_total{{{inbound},reason="late"}}"#),
            0.0,
        ),
        (format!("sealway_handshake_seconds_count{{{inbound}}}"), 2.0),
        (
            r#"sealway_dial_seconds_bucket{outbound="direct",le="+Inf"}"#.to_owned(),
            1.0,
        ),
        (r#"sealway_outbound_streams_open{outbound="direct"}"#.to_owned(), 1.0),
        (
            r#"sealway_balancer_choices_total{balancer="some",outbound="direct"}"#.to_owned(),
            2.0,
        ),
        (
            r#"sealway_outbound_bytes_total{outbound="direct",direction="uplink"}"#.to_owned(),
            1000.0,
        ),
        (
            r#"sealway_user_bytes_total{user="ann",direction="downlink"}"#.to_owned(),
            1000.0,
        ),
        ("sealway_ready".to_owned(), 1.0),
    ] {
        assert_eq!(sample(&text, &name), wanted, "{name} in\n{text}");
    }
    assert!(sample(&text, "process_resident_memory_bytes") > 1e6);
    drop(open);
    until(numbers, &format!("sealway_connections_open{{{inbound}}}"), 0.0).await;
    until(numbers, r#"sealway_outbound_streams_open{outbound="direct"}"#, 0.0).await;
    drop(server);
}

#[tokio::test]
async fn the_text_is_what_the_format_wants() {
    let (_server, _, numbers, _) = watched("").await;
    let mut tcp = TcpStream::connect(("127.0.0.1", numbers)).await.unwrap();
    let answer = say(&mut tcp, "GET /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
    let (head, text) = answer.split_once("\r\n\r\n").unwrap();
    assert!(
        head.contains("content-type: application/openmetrics-text; version=1.0.0; charset=utf-8"),
        "{head}"
    );
    assert!(text.ends_with("\n# EOF\n") && text.matches("# EOF").count() == 1);
    // Users are told only where that is wanted.
    assert!(!text.contains("sealway_user_bytes_total"));
    let mut lines = text.lines().peekable();
    for metric in SECTIONS.iter().flat_map(|section| section.metrics) {
        assert_eq!(
            lines.next().unwrap(),
            format!("# TYPE {} {}", metric.name, metric.kind.word())
        );
        if !metric.unit().is_empty() {
            assert_eq!(
                lines.next().unwrap(),
                format!("# UNIT {} {}", metric.name, metric.unit())
            );
        }
        assert!(lines.next().unwrap().starts_with(&format!("# HELP {} ", metric.name)));
        while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let name = series.split('{').next().unwrap();
            let suffixes: &[&str] = match metric.kind {
                Kind::Histogram => &["_bucket", "_count", "_sum"],
                kind => &[kind.suffix()],
            };
            let suffix = name.strip_prefix(metric.name).unwrap_or_else(|| panic!("{line}"));
            assert!(
                suffixes.contains(&suffix) && value.parse::<f64>().unwrap() >= 0.0,
                "{line}"
            );
            let labels = metric
                .labels
                .iter()
                .filter(|label| series.contains(&format!("{label}=\"")));
            assert_eq!(labels.count(), metric.labels.len(), "{line}");
        }
    }
    assert_eq!(lines.collect::<Vec<_>>(), ["# EOF"]);
}

#[tokio::test]
async fn panels_read_their_json() {
    let (_server, socks, numbers, _) = watched(r#", "users": true"#).await;
    let echo = echo().await;
    let mut tcp = through(socks, "127.0.0.1", echo.port(), "secret").await.unwrap();
    tcp.write_all(&[7; 10]).await.unwrap();
    tcp.read_exact(&mut [0; 10]).await.unwrap();
    let (status, text) = get(numbers, "/debug/vars").await;
    let vars: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(status, 200);
    assert_eq!(vars["observatory"], Value::Null);
    assert_eq!(
        vars["stats"]["user"]["ann"],
        serde_json::json!({ "uplink": 10, "downlink": 10 })
    );
    assert_eq!(vars["stats"]["outbound"]["direct"]["uplink"], 10);
    assert!(vars["stats"]["inbound"]["in\"side"]["downlink"].as_u64().unwrap() > 10);
    assert!(vars["memstats"]["Sys"].as_u64().unwrap() > 1 << 20);
    // The same by an inbound, as a rule says it.
    let mut by_rule = through(socks, "numbers.example", 80, "secret").await.unwrap();
    let answer = say(
        &mut by_rule,
        "GET /debug/vars HTTP/1.1\r\nHost: numbers.example\r\n\r\n",
    )
    .await;
    assert!(
        answer.starts_with("HTTP/1.1 200 ") && answer.contains("\"stats\""),
        "{answer}"
    );
}

#[test]
fn outbounds_that_are_measured_look_as_with_xray() {
    let stats = Stats::default();
    stats.set_health("a", |health| {
        (health.alive, health.delay) = (true, Duration::from_millis(7));
        (health.last_seen, health.last_try) = (11, 12);
    });
    stats.set_health("b\"", |health| {
        (health.last_try, health.last_error) = (12, "no \"way\"\n".to_owned());
    });
    let vars: Value = serde_json::from_str(&vars::write(&stats, &Process::default())).unwrap();
    let wanted = serde_json::json!({
        "a": { "alive": true, "delay": 7, "outbound_tag": "a", "last_seen_time": 11, "last_try_time": 12 },
        "b\"": { "delay": 99_999_999, "last_error_reason": "no \"way\"\n", "outbound_tag": "b\"", "last_try_time": 12 },
    });
    assert_eq!(vars["observatory"], wanted);
    assert_eq!(
        vars["stats"],
        serde_json::json!({ "inbound": {}, "outbound": {}, "user": {} })
    );
}

#[tokio::test]
async fn a_server_is_ready_until_it_leaves() {
    let (server, socks, numbers, _) = watched("").await;
    assert_eq!(get(numbers, "/readyz").await, (200, "ready\n".to_owned()));
    assert_eq!(get(numbers, "/healthz").await, (200, "alive\n".to_owned()));
    let open = TcpStream::connect(("127.0.0.1", socks)).await.unwrap();
    until(numbers, r#"sealway_connections_open{inbound="in\"side"}"#, 1.0).await;
    server.leave();
    assert_eq!(get(numbers, "/readyz").await, (503, "draining\n".to_owned()));
    // New connections are served all the same, until it shuts down; watchers are, up to the end.
    drop(TcpStream::connect(("127.0.0.1", socks)).await.unwrap());
    let ending = tokio::spawn(server.shutdown(Duration::from_secs(60)));
    while TcpStream::connect(("127.0.0.1", socks)).await.is_ok() {
        tokio::task::yield_now().await;
    }
    assert_eq!(get(numbers, "/healthz").await.0, 200);
    drop(open);
    assert!(ending.await.unwrap());
    assert!(TcpStream::connect(("127.0.0.1", numbers)).await.is_err());
}

#[tokio::test]
async fn who_asks_wrongly_is_told_so() {
    let (_server, _, numbers, _) = watched("").await;
    for (request, status) in [
        ("GET /other HTTP/1.1\r\nHost: localhost\r\n\r\n", "404"),
        (
            "POST /metrics HTTP/1.1\r\nHost: localhost\r\nContent-Length: 0\r\n\r\n",
            "405",
        ),
        // By the name of a page that a browser shows, which leads to this machine.
        ("GET /metrics HTTP/1.1\r\nHost: evil.example\r\n\r\n", "403"),
        ("GET /metrics HTTP/1.1\r\nHost: [::1]:80\r\n\r\n", "200"),
        ("GET /metrics HTTP/1.1\r\nHost: LOCALHOST:80\r\n\r\n", "200"),
        ("HEAD /metrics HTTP/1.1\r\nHost: localhost\r\n\r\n", "200"),
        ("GET / HTTP/9\r\n\r\n", "400"),
    ] {
        let mut tcp = TcpStream::connect(("127.0.0.1", numbers)).await.unwrap();
        let answer = say(&mut tcp, request).await;
        assert_eq!(answer.get(9..12), Some(status), "{request}: {answer}");
    }
    let many: String = (0..=MAX_HEADERS).map(|at| format!("X-{at}: y\r\n")).collect();
    let long = format!(
        "GET /metrics HTTP/1.1\r\nHost: localhost\r\nX: {}\r\n\r\n",
        "y".repeat(MAX_REQUEST)
    );
    let many = format!("GET /metrics HTTP/1.1\r\nHost: localhost\r\n{many}\r\n");
    // Of the long one some is not read, so a reset may overtake the answer.
    for (request, without) in [(many, ""), (long, "431")] {
        let mut tcp = TcpStream::connect(("127.0.0.1", numbers)).await.unwrap();
        let answer = say(&mut tcp, &request).await;
        assert_eq!(answer.get(9..12).unwrap_or(without), "431", "{answer}");
    }
}

/// Whoever leaves early makes no room for more work than is done at a time.
#[tokio::test]
async fn one_answer_is_made_at_a_time() {
    static NOW: AtomicUsize = AtomicUsize::new(0);
    static MOST: AtomicUsize = AtomicUsize::new(0);
    fn slow(_: &Monitor) -> Option<String> {
        MOST.fetch_max(NOW.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        std::thread::sleep(Duration::from_millis(50));
        NOW.fetch_sub(1, Ordering::SeqCst);
        Some(String::new())
    }
    let monitor = Monitor::new(&Arc::default(), None);
    for _ in 0..3 {
        let asked = tokio::time::timeout(Duration::from_millis(5), monitor.worked(text::TYPE, slow));
        assert!(asked.await.is_err());
    }
    assert_eq!(monitor.worked(text::TYPE, slow).await.status(), StatusCode::OK);
    assert_eq!(MOST.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn one_address_keeps_no_other_away() {
    let monitor = Monitor::new(&Arc::default(), None);
    let come = |from: &str, way| {
        let (here, there) = tokio::io::duplex(1024);
        monitor.begin(there, (way, from.parse().ok()));
        here
    };
    let _silent: Vec<_> = (0..16).map(|_| come("192.0.2.1", Way::Open)).collect();
    assert!(is_closed(&mut come("192.0.2.1", Way::Open)).await);
    for mut other in [come("192.0.2.2", Way::Open), come("192.0.2.1", Way::Loopback)] {
        let answer = say(&mut other, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 200 "), "{answer}");
    }
}

#[tokio::test]
async fn few_may_ask_at_a_time_and_none_for_long() {
    let (_server, _, numbers, _) = watched("").await;
    let mut waiting = Vec::new();
    for _ in 0..MAX_ASKING {
        waiting.push(TcpStream::connect(("127.0.0.1", numbers)).await.unwrap());
    }
    // They are accepted in this order.
    let mut late = TcpStream::connect(("127.0.0.1", numbers)).await.unwrap();
    assert!(is_closed(&mut late).await);
    waiting.pop();
    loop {
        let mut tcp = TcpStream::connect(("127.0.0.1", numbers)).await.unwrap();
        let answer = say(&mut tcp, "GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n").await;
        if answer.starts_with("HTTP/1.1 200 ") {
            break;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn the_file_of_a_unix_socket_is_for_its_owner() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("numbers.sock");
    let text = format!(
        r#"{{"outbounds":[{{"protocol":"freedom"}}],"metrics":{{"listen":"{}"}}}}"#,
        path.display()
    );
    let server = Server::start(Settings::of_text(&text)).await.unwrap();
    assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    let mut unix = UnixStream::connect(&path).await.unwrap();
    let answer = say(&mut unix, "GET /readyz HTTP/1.1\r\nHost: any.example\r\n\r\n").await;
    assert!(
        answer.starts_with("HTTP/1.1 503 ") && answer.ends_with("listening nowhere\n"),
        "{answer}"
    );
    assert!(server.shutdown(Duration::ZERO).await);
    assert!(!path.exists());
}

#[tokio::test]
async fn nothing_is_counted_where_nobody_watches() {
    let text = format!(
        r#"{{"outbounds":[{{"tag":"d","protocol":"freedom"}}],"inbounds":[{{"tag":"i","listen":"127.0.0.1","port":{},"protocol":"socks"}}]}}"#,
        port().await
    );
    let server = Server::start(Settings::of_text(&text)).await.unwrap();
    assert!(server.stats().meters().inbounds().is_empty() && server.stats().meters().outbounds().is_empty());
}
