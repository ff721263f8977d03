//! Who may go where, and who answers in whose name.

use super::*;

#[test]
fn what_comes_straight_to_the_inbound_is_refused() {
    inside("guard::what_comes_straight_to_the_inbound_is_refused", || {
        serve();
        for kind in ["tproxy", "redirect"] {
            std::fs::write(LOG, "").unwrap();
            let running = Proxy::Ours.run(&gateway(kind), &wishes(false));
            let ended = on("client", async || {
                timeout(Duration::from_secs(20), asks(GATE, DOOR)).await
            });
            assert!(matches!(ended, Ok(Err(_))));
            logged("from 192.168.1.2:");
            logged("it came straight to a transparent inbound");
            std::fs::write(LOG, "").unwrap();
            on("client", async || assert_eq!(asks_by_datagram(GATE, DOOR).await, None));
            logged("it came straight to a transparent inbound");
            drop(running);
            undo(&gateway(kind), &wishes(false));
        }
    });
}

#[test]
fn private_targets_are_open_to_neighbours_only_and_the_gateway_to_nobody() {
    inside(
        "guard::private_targets_are_open_to_neighbours_only_and_the_gateway_to_nobody",
        || {
            serve();
            // As somebody may write them who leads everything to the proxy.
            let rules = plan(&gateway("tproxy"), &wishes(false)).apply;
            let kept = rules
                .lines()
                .filter(|line| !line.contains("fib daddr") && !line.contains("@local"));
            let rules = kept.collect::<Vec<_>>().join("\n");
            let _running = Proxy::Ours.run_without_rules(&gateway("tproxy"));
            shell_on("gate", &rules);
            for (from, to, wanted) in [
                ("192.168.1.2", INNER, true),
                ("192.168.1.2", SERVER, true),
                (PUBLIC, SERVER, true),
                (PUBLIC, INNER, false),
                ("192.168.1.2", GATE, false),
            ] {
                std::fs::write(LOG, "").unwrap();
                let answered = on("client", async move || answers(from, to).await);
                assert_eq!(answered, wanted, "{from} {to}");
                if !wanted {
                    logged("refused by the guard of private addresses");
                }
            }
        },
    );
}

#[test]
fn an_answer_comes_from_whoever_gives_it() {
    inside("guard::an_answer_comes_from_whoever_gives_it", || {
        serve();
        for proxy in Proxy::all() {
            let running = proxy.run(&gateway("tproxy"), &wishes(false));
            let from = on("client", async || {
                let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
                let mut buffer = [0; 200];
                loop {
                    socket.send_to(ELSEWHERE, (SERVER, ECHO)).await.unwrap();
                    if let Ok(got) = timeout(Duration::from_secs(1), socket.recv_from(&mut buffer)).await {
                        return got.unwrap().1;
                    }
                }
            });
            assert_eq!(from.ip().to_string(), RESOLVER, "{proxy:?}");
            drop(running);
            undo(&gateway("tproxy"), &wishes(false));
        }
    });
}

/// What a client says names another target than the address it connects to; answers still come from that address.
#[test]
fn a_sniffed_name_takes_the_place_of_an_address() {
    inside("guard::a_sniffed_name_takes_the_place_of_an_address", || {
        serve();
        let mut config = gateway("tproxy");
        config["inbounds"][0]["sniffing"] = json!({"enabled": true, "destOverride": ["http"]});
        config["dns"] = json!({"hosts": {"inner.example": RESOLVER, "gate.example": GATE, "loop.example": "127.0.0.1",
            "wan.example": OUTSIDE, "neighbour.example": INNER}});
        // A rule as most have it opens private networks, and still not the gateway.
        let private = json!({"domainStrategy": "IPIfNonMatch",
            "rules": [{"ip": ["geoip:private"], "outboundTag": "out"}]});
        for routing in [json!({}), private] {
            config["routing"] = routing;
            let running = Proxy::Ours.run(&config, &wishes(false));
            let ask = |name: &'static str| {
                on("client", async move || {
                    let mut stream = TcpStream::connect((SERVER, ECHO)).await.unwrap();
                    let request = format!("GET / HTTP/1.1\r\nHost: {name}\r\n\r\n");
                    stream.write_all(request.as_bytes()).await.unwrap();
                    timeout(Duration::from_secs(3), hears(&mut stream)).await
                })
            };
            for (name, to) in [("inner.example", RESOLVER), ("neighbour.example", INNER)] {
                assert!(took(&ask(name).unwrap().unwrap(), OUTSIDE, to, ECHO), "{name}");
            }
            // No name opens what is on the gateway itself.
            std::fs::write(LOG, "").unwrap();
            let names = ["gate.example", "loop.example", "wan.example"];
            std::thread::scope(|scope| {
                for (name, asked) in names.map(|name| (name, scope.spawn(move || ask(name)))) {
                    assert!(!matches!(asked.join().unwrap(), Ok(Ok(_))), "{name}");
                }
            });
            logged_times("refused by the guard of private addresses", names.len());
            drop(running);
            undo(&config, &wishes(false));
        }
    });
}

/// A resolver of the gateway that the proxy answers in the name of keeps what others ask it, and a client may ask two servers by
/// one socket.
#[test]
fn answers_in_the_name_of_the_gateway_take_nothing_from_it() {
    inside("guard::answers_in_the_name_of_the_gateway_take_nothing_from_it", || {
        serve();
        let mut config = gateway("tproxy");
        config["outbounds"]
            .as_array_mut()
            .unwrap()
            .push(json!({"tag": "dns", "protocol": "dns"}));
        config["dns"] = json!({"hosts": {"a.example": "192.0.2.5"}});
        config["routing"] = json!({"rules": [{"port": 53, "outboundTag": "dns"}]});
        let _running = Proxy::Ours.run(&config, &wishes(false));
        let before = on("gate", async || asks_by_datagram(GATE, DNS).await);
        assert_eq!(before.as_deref(), Some("192.168.1.1 to 192.168.1.1:53"));
        let answered = on("client", async || {
            // One question for a.example, type A.
            let question = b"\x00\x07\x01\x00\x00\x01\x00\x00\x00\x00\x00\x00\x01a\x07example\x00\x00\x01\x00\x01";
            let socket = UdpSocket::bind("0.0.0.0:0").await.unwrap();
            let mut buffer = [0; 600];
            let mut found = Vec::new();
            for server in [SERVER, GATE] {
                for _ in 0..5 {
                    socket.send_to(question, (server, DNS)).await.unwrap();
                    let got = timeout(Duration::from_secs(1), socket.recv_from(&mut buffer)).await;
                    if let Ok(Ok((len, from))) = got {
                        assert!(buffer[..len].ends_with(&[192, 0, 2, 5]));
                        found.push(from.ip().to_string());
                        break;
                    }
                }
            }
            found
        });
        assert_eq!(answered, [SERVER, GATE]);
        let after = on("gate", async || asks_by_datagram(GATE, DNS).await);
        assert_eq!(after, before);
    });
}
