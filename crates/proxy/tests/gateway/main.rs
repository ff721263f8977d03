//! Transparent proxying with real rules of a real firewall: a client, a gateway and a server in network namespaces.
//! A program of its own: it starts itself again in them.
#![allow(clippy::unwrap_used)]

mod guard;
mod lab;

use std::io::{Read, Write};
use std::time::Duration;

use lab::*;
use sealway_proxy::gateway::Wishes;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream, UdpSocket};
use tokio::time::timeout;

/// A gateway whose inbound takes connections by this kind of rules, and marks its own.
fn gateway(tproxy: &str) -> Value {
    json!({
        "log": {"loglevel": "warning", "access": LOG},
        "inbounds": [{
            "tag": "gate", "port": DOOR, "protocol": "dokodemo-door",
            "settings": {"network": "tcp,udp", "followRedirect": true},
            "streamSettings": {"sockopt": {"tproxy": tproxy}}
        }],
        "outbounds": [{"tag": "out", "protocol": "freedom", "streamSettings": {"sockopt": {"mark": 255}}}]
    })
}

fn wishes(own: bool) -> Wishes {
    Wishes {
        lan: vec!["lan".into()],
        mark: 1,
        table: 100,
        ipv6: true,
        own,
    }
}

fn took(told: &str, from: &str, to: &str, port: u16) -> bool {
    let to = if to.contains(':') {
        format!("[{to}]")
    } else {
        to.to_owned()
    };
    told == format!("{from} to {to}:{port}")
}

#[track_caller]
fn carries(proxy: Proxy, from: &'static str) {
    // The gateway forwards nothing: what arrives has gone through the proxy, and shows its address.
    for (to, seen_as) in [(SERVER, OUTSIDE), (RESOLVER, OUTSIDE), (SERVER_V6, OUTSIDE_V6)] {
        let (stream, datagram, dns) = on(from, async move || {
            let mut stream = asks(to, ECHO).await.unwrap();
            stream.0.write_all(b"and back\n").await.unwrap();
            assert_eq!(hears(&mut stream.0).await.unwrap(), "and back");
            (
                stream.1,
                asks_by_datagram(to, ECHO).await,
                asks_by_datagram(to, DNS).await,
            )
        });
        assert!(took(&stream, seen_as, to, ECHO), "{proxy:?}: {stream}");
        for (answer, port) in [(datagram, ECHO), (dns, DNS)] {
            let answer = answer.unwrap_or_else(|| panic!("{proxy:?}: no answer from {to}"));
            assert!(took(&answer, seen_as, to, port), "{proxy:?}: {answer}");
        }
    }
}

/// Waits for a line of the access log.
#[track_caller]
fn logged(what: &str) -> String {
    logged_times(what, 1)
}

/// Waits for so many lines.
#[track_caller]
fn logged_times(what: &str, times: usize) -> String {
    for _ in 0..200 {
        let text = std::fs::read_to_string(LOG).unwrap_or_default();
        if text.lines().filter(|line| line.contains(what)).count() >= times {
            return text;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!(
        "no line with {what:?}:\n{}",
        std::fs::read_to_string(LOG).unwrap_or_default()
    );
}

#[test]
fn tproxy_carries_streams_and_datagrams_of_both_families() {
    inside("tproxy_carries_streams_and_datagrams_of_both_families", || {
        serve();
        for proxy in Proxy::all() {
            let running = proxy.run(&gateway("tproxy"), &wishes(false));
            carries(proxy, "client");
            drop(running);
            undo(&gateway("tproxy"), &wishes(false));
        }
    });
}

#[test]
fn redirect_carries_streams_and_tproxy_its_datagrams() {
    inside("redirect_carries_streams_and_tproxy_its_datagrams", || {
        serve();
        for proxy in Proxy::all() {
            let running = proxy.run(&gateway("redirect"), &wishes(false));
            carries(proxy, "client");
            drop(running);
            undo(&gateway("redirect"), &wishes(false));
        }
    });
}

/// Connects from an address, and whether anything answers.
async fn answers(from: &str, to: &str) -> bool {
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(format!("{from}:0").parse().unwrap()).unwrap();
    let mut stream: TcpStream = socket.connect(format!("{to}:{ECHO}").parse().unwrap()).await.unwrap();
    matches!(timeout(Duration::from_secs(2), hears(&mut stream)).await, Ok(Ok(_)))
}

/// Without the proxy nothing arrives: the gateway forwards nothing, and the rules are gone when they are undone.
#[test]
fn undone_rules_lead_nothing_anywhere() {
    inside("undone_rules_lead_nothing_anywhere", || {
        serve();
        let there = || {
            [
                "nft list ruleset",
                "ip rule",
                "ip -6 rule",
                "ip route show table all",
                "ip -6 route show table all",
            ]
            .map(|list| shell(&format!("ip netns exec gate {list}")))
        };
        let before = there();
        let _running = Proxy::Ours.run(&gateway("tproxy"), &wishes(true));
        let applied = there();
        assert!(
            applied.iter().zip(&before).all(|(now, before)| now != before),
            "{applied:?}"
        );
        // Once more changes nothing, and takes no more to undo.
        shell_on("gate", &plan(&gateway("tproxy"), &wishes(true)).apply);
        assert_eq!(there(), applied);
        undo(&gateway("tproxy"), &wishes(true));
        assert_eq!(there(), before);
        // A table that leads elsewhere already is not touched, and nothing is applied.
        shell("ip -n gate route add default via 9.9.9.9 table 100");
        let before = there();
        let script = plan(&gateway("tproxy"), &wishes(true)).apply;
        shell(&format!("! ip netns exec gate sh <<'EOF' 2>/dev/null\n{script}EOF\n"));
        assert_eq!(there(), before);
        let arrived = on("client", async || {
            timeout(Duration::from_secs(1), asks(SERVER, ECHO)).await
        });
        assert!(!matches!(arrived, Ok(Ok(_))));
    });
}

/// Whether a client's stream and its datagram arrive, to these addresses. All are sent at once: what does not arrive takes seconds.
fn arrive() -> [bool; 4] {
    on("client", async || {
        let stream = async |to| matches!(timeout(Duration::from_secs(2), asks(to, ECHO)).await, Ok(Ok(_)));
        let datagram = async |to| asks_by_datagram(to, ECHO).await.is_some();
        tokio::join!(stream(SERVER), datagram(SERVER), stream(SERVER_V6), datagram(SERVER_V6)).into()
    })
}

/// A gateway that also forwards, as most do: what the rules lead to the proxy never goes past it.
#[test]
fn nothing_goes_past_a_proxy_that_does_not_run() {
    inside("nothing_goes_past_a_proxy_that_does_not_run", || {
        serve();
        forward();
        // IPv6 takes a while until hosts have found each other.
        assert!((0..5).any(|_| arrive() == [true; 4]), "the gateway forwards");
        for kind in ["tproxy", "redirect"] {
            shell_on("gate", &plan(&gateway(kind), &wishes(false)).apply);
            assert_eq!(arrive(), [false; 4], "{kind}: before it runs");
            if let Some(&proxy) = Proxy::all().get(1) {
                let running = proxy.run_without_rules(&gateway(kind));
                assert_eq!(arrive(), [true; 4], "{kind}: while it runs");
                drop(running);
                assert_eq!(arrive(), [false; 4], "{kind}: after it was killed");
            }
            undo(&gateway(kind), &wishes(false));
        }
        assert_eq!(arrive(), [true; 4], "the rules are gone");
    });
}

/// Questions for the gateway's own resolver come to the proxy only if it surely answers them.
#[test]
fn a_resolver_of_the_gateway_is_asked_unless_the_proxy_answers() {
    inside("a_resolver_of_the_gateway_is_asked_unless_the_proxy_answers", || {
        serve();
        let to_dns = json!({"port": 53, "outboundTag": "dns"});
        let private = json!({"ip": ["geoip:private"], "outboundTag": "out"});
        for (rules, by_proxy) in [
            (json!([{"port": 53, "outboundTag": "out"}]), false),
            (json!([to_dns]), true),
            (
                json!([{"port": 53, "inboundTag": ["other"], "outboundTag": "dns"}]),
                false,
            ),
            (json!([{"port": 53, "network": "tcp", "outboundTag": "dns"}]), false),
            (json!([private, to_dns]), false),
            (json!([to_dns, private]), true),
            (
                json!([{"port": 53, "source": ["192.168.9.0/24"], "outboundTag": "dns"}]),
                false,
            ),
            (
                json!([{"domain": ["full:a.example"], "outboundTag": "out"}, to_dns]),
                true,
            ),
            (json!([{"port": 53, "outboundTag": "elsewhere"}]), true),
        ] {
            let mut config = gateway("tproxy");
            let socket = json!({"sockopt": {"mark": 255}});
            config["outbounds"].as_array_mut().unwrap().extend([
                json!({"tag": "dns", "protocol": "dns", "streamSettings": socket,
                    "settings": {"address": SERVER, "nonIPQuery": "skip"}}),
                json!({"tag": "elsewhere", "protocol": "freedom", "streamSettings": socket,
                    "settings": {"redirect": format!("{RESOLVER}:53")}}),
            ]);
            config["routing"] = json!({"rules": rules});
            let text = rules.to_string();
            let applied = plan(&config, &wishes(false)).apply;
            let to_us = applied.contains("ipv4 udp dport 53 tproxy");
            assert_eq!(to_us, by_proxy, "{text}");
            // Where they are not led to the proxy, it answers with its own address.
            if !by_proxy {
                let _running = Proxy::Ours.run(&config, &wishes(false));
                let told = on("client", async || asks_by_datagram(GATE, DNS).await);
                assert_eq!(told.as_deref(), Some("192.168.1.2 to 192.168.1.1:53"), "{text}");
                undo(&config, &wishes(false));
            }
        }
    });
}

/// A session of somebody with this machine that the firewall has not known so far, in which this machine speaks first.
#[test]
fn open_connections_stay_as_they_are() {
    inside("open_connections_stay_as_they_are", || {
        serve();
        for (port, kind) in [(2201, "tproxy"), (2202, "redirect")] {
            let listener = on("gate", async move || {
                std::net::TcpListener::bind((OUTSIDE, port)).unwrap()
            });
            let mut theirs = on("server", async move || {
                std::net::TcpStream::connect((OUTSIDE, port)).unwrap()
            });
            let (mut ours, _) = listener.accept().unwrap();
            let running = Proxy::Ours.run(&gateway(kind), &wishes(true));
            for stream in [&theirs, &ours] {
                stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            }
            for _ in 0..3 {
                let mut said = [0; 4];
                ours.write_all(b"ping").unwrap();
                theirs
                    .read_exact(&mut said)
                    .unwrap_or_else(|error| panic!("{kind}: {error}"));
                theirs.write_all(b"pong").unwrap();
                ours.read_exact(&mut said)
                    .unwrap_or_else(|error| panic!("{kind}: {error}"));
            }
            let told = on("gate", async || asks(SERVER, ECHO).await.unwrap().1);
            assert!(took(&told, OUTSIDE, SERVER, ECHO), "{kind}: {told}");
            drop(running);
            undo(&gateway(kind), &wishes(true));
        }
    });
}

#[test]
fn programs_of_the_gateway_go_through_the_proxy_and_the_proxy_does_not() {
    inside(
        "programs_of_the_gateway_go_through_the_proxy_and_the_proxy_does_not",
        || {
            serve();
            for (proxy, kind) in [
                (Proxy::Ours, "tproxy"),
                (Proxy::Ours, "redirect"),
                (Proxy::Xray, "tproxy"),
                (Proxy::Xray, "redirect"),
            ] {
                if !Proxy::all().contains(&proxy) {
                    continue;
                }
                let mut config = gateway(kind);
                // Another port shows that a connection has gone through the proxy.
                config["outbounds"][0]["settings"] = json!({"redirect": format!(":{SINK}")});
                let running = proxy.run(&config, &wishes(true));
                for from in ["gate", "client"] {
                    for (to, seen_as) in [(SERVER, OUTSIDE), (SERVER_V6, OUTSIDE_V6)] {
                        let told = on(from, async move || asks(to, ECHO).await.unwrap().1);
                        assert!(took(&told, seen_as, to, SINK), "{proxy:?} {kind} {from}: {told}");
                    }
                }
                // Services of the gateway answer whom they like.
                let direct = on("client", async || answers(PUBLIC, GATE).await);
                assert!(direct, "{proxy:?} {kind}");
                drop(running);
                undo(&config, &wishes(true));
            }
            let mut config = gateway("tproxy");
            config["outbounds"][0]["settings"] = json!({"redirect": format!(":{DNS}")});
            let _running = Proxy::Ours.run(&config, &wishes(true));
            for from in ["gate", "client"] {
                for (to, seen_as) in [(RESOLVER, OUTSIDE), (SERVER_V6, OUTSIDE_V6)] {
                    let told = on(from, async move || asks_by_datagram(to, ECHO).await).unwrap();
                    assert!(took(&told, seen_as, to, DNS), "{from}: {told}");
                }
            }
        },
    );
}

#[test]
fn a_connection_that_comes_back_is_refused() {
    inside("a_connection_that_comes_back_is_refused", || {
        serve();
        for (kind, mark, words) in [
            (
                "tproxy",
                None,
                "own, and has no mark; set `mark` in the `sockopt` of every outbound",
            ),
            (
                "redirect",
                Some(7),
                "own, with the mark 7; have the rules of the firewall return packets with it",
            ),
        ] {
            std::fs::write(LOG, "").unwrap();
            let mut config = gateway(kind);
            let rules = plan(&config, &wishes(true)).apply;
            config["outbounds"][0]["streamSettings"]["sockopt"] = mark.map_or(json!({}), |mark| json!({"mark": mark}));
            let running = Proxy::Ours.run_without_rules(&config);
            shell_on("gate", &rules);
            for (number, (from, to)) in [("client", SERVER), ("gate", SERVER), ("client", SERVER_V6)]
                .into_iter()
                .enumerate()
            {
                let ended = on(from, async move || {
                    timeout(Duration::from_secs(20), asks(to, ECHO)).await
                });
                assert!(matches!(ended, Ok(Err(_))), "{kind} {from}");
                logged(words);
                let log = logged_times("accepted tcp", number + 1);
                // Dialled five times at most for each that asks, and nothing asked for again.
                let accepted = log.lines().filter(|line| line.contains("accepted tcp")).count();
                assert_eq!(accepted, number + 1, "{log}");
            }
            std::fs::write(LOG, "").unwrap();
            on("client", async || {
                assert_eq!(asks_by_datagram(SERVER, ECHO).await, None)
            });
            let log = logged(words);
            assert_eq!(
                log.lines().filter(|line| line.contains("accepted udp")).count(),
                1,
                "{log}"
            );
            drop(running);
            undo(&config, &wishes(true));
        }
    });
}

/// The namespaces of one kind are not those of the other: what is left of a thousand closed connections would keep the kernel from
/// leading one that has the same ports elsewhere.
fn a_thousand_at_once(name: &str, kind: &'static str) {
    inside(name, || {
        let descriptors = rustix::process::Resource::Nofile;
        let limit = rustix::process::getrlimit(descriptors);
        let most = rustix::process::Rlimit {
            current: limit.maximum,
            ..limit
        };
        rustix::process::setrlimit(descriptors, most).unwrap();
        serve();
        let _running = Proxy::Ours.run(&gateway(kind), &wishes(false));
        on("client", async || {
            let mut open = Vec::new();
            for n in 0..1000 {
                let to = [SERVER, SERVER_V6, RESOLVER][n % 3];
                open.push(tokio::spawn(async move {
                    let (mut stream, told) = asks(to, ECHO).await.unwrap();
                    assert!(told.contains(to), "{told}");
                    let line = format!("number {n}");
                    stream.write_all(format!("{line}\n").as_bytes()).await.unwrap();
                    assert_eq!(hears(&mut stream).await.unwrap(), line);
                    stream
                }));
            }
            let mut streams = Vec::new();
            for one in open {
                streams.push(one.await.unwrap());
            }
            assert_eq!(streams.len(), 1000);
        });
    });
}

#[test]
fn a_thousand_connections_at_once_by_tproxy() {
    a_thousand_at_once("a_thousand_connections_at_once_by_tproxy", "tproxy");
}

#[test]
fn a_thousand_connections_at_once_by_redirect() {
    a_thousand_at_once("a_thousand_connections_at_once_by_redirect", "redirect");
}

#[test]
fn one_port_reaches_two_servers() {
    inside("one_port_reaches_two_servers", || {
        serve();
        for (kind, port) in [("tproxy", 4000), ("redirect", 4001)] {
            let config = gateway(kind);
            let running = Proxy::Ours.run(&config, &wishes(false));
            on("client", async move || {
                let mut open = Vec::new();
                for to in [SERVER, RESOLVER] {
                    let (stream, told) = asks_from(port, to)
                        .await
                        .unwrap_or_else(|error| panic!("{kind} {to}: {error}"));
                    assert!(told.contains(to), "{told}");
                    open.push(stream);
                }
                for stream in &mut open {
                    stream.write_all(b"both are there\n").await.unwrap();
                    assert_eq!(hears(stream).await.unwrap(), "both are there");
                }
            });
            drop(running);
            undo(&config, &wishes(false));
        }
    });
}

/// Pipes that this process has.
fn pipes() -> usize {
    let open = std::fs::read_dir("/proc/self/fd").unwrap();
    let links = open.filter_map(|entry| std::fs::read_link(entry.ok()?.path()).ok());
    links.filter(|to| to.to_string_lossy().starts_with("pipe:")).count()
}

#[test]
fn much_goes_through_the_kernel() {
    const LEN: usize = 64 << 20;
    inside("much_goes_through_the_kernel", || {
        serve();
        for kind in ["tproxy", "redirect"] {
            let running = Proxy::Ours.run(&gateway(kind), &wishes(false));
            let before = pipes();
            let most = on("client", async move || {
                let (mut stream, _) = asks(SERVER, SINK).await.unwrap();
                let (bytes, mut most) = (vec![7; 1 << 20], 0);
                for _ in 0..LEN / bytes.len() {
                    stream.write_all(&bytes).await.unwrap();
                    most = most.max(pipes());
                }
                stream.shutdown().await.unwrap();
                let mut taken = String::new();
                stream.read_to_string(&mut taken).await.unwrap();
                assert_eq!(taken, LEN.to_string());
                most
            });
            assert!(most > before, "{kind}: {most} pipes, as before");
            drop(running);
            undo(&gateway(kind), &wishes(false));
        }
    });
}
