use std::time::Duration;

use sealway_v2ray::config::*;

use super::transports::transport;
use super::*;

#[test]
fn defaults() {
    let config = good(&with(SOCKS, FREEDOM));
    assert_eq!(config.log, Log::default());
    assert_eq!(
        (&config.log.access, &config.log.error),
        (&LogTarget::Off, &LogTarget::Stdout)
    );
    assert!(config.stats.is_none() && config.routing.rules.is_empty());
    assert_eq!(config.routing.domain_strategy, RoutingStrategy::AsIs);
    let policy = config.policy.level(0);
    assert_eq!(policy, LevelPolicy::default());
    assert_eq!(
        [
            policy.handshake,
            policy.conn_idle,
            policy.uplink_only,
            policy.downlink_only
        ]
        .map(|d| d.as_secs()),
        [60, 300, 1, 1]
    );
    let inbound = &config.inbounds[0];
    assert_eq!(inbound.tag, "");
    assert_eq!(
        inbound.listen,
        Listen::Ip {
            ip: None,
            ports: Ports::one(1080)
        }
    );
    assert_eq!(inbound.stream.transport, Transport::Raw);
    assert!(inbound.stream.tls.is_none() && !inbound.stream.accept_proxy_protocol && !inbound.sniffing.enabled.value);
    let InboundProtocol::Socks(socks) = &inbound.protocol else {
        panic!()
    };
    assert!(socks.accounts.is_empty() && !socks.udp && socks.udp_address.is_none() && socks.level == 0);
    assert!(!inbound.listen.is_this_machine());
    let outbound = &config.outbounds[0];
    let OutboundProtocol::Freedom(freedom) = &outbound.protocol else {
        panic!()
    };
    assert_eq!(freedom.redirect, Redirect::default());
    assert_eq!(freedom.domain_strategy, DomainStrategy::AsIs);
    assert!(outbound.send_through.is_none());
    // With a `log` object that says nothing more, the access log goes to standard output.
    let config = good(&format!(
        r#"{{"log":{{}},"stats":{{}},"inbounds":[{SOCKS}],"outbounds":[{FREEDOM}]}}"#
    ));
    assert_eq!(config.log.access, LogTarget::Stdout);
    assert!(config.stats.is_some());
    // A level that is listed has the defaults for what it does not say.
    let config = good(&format!(
        r#"{{"policy":{{"levels":{{"3":{{"uplinkOnly":0}}}}}},"inbounds":[{SOCKS}],"outbounds":[{FREEDOM}]}}"#
    ));
    let level = config.policy.level(3);
    assert_eq!(
        (level.uplink_only, level.downlink_only),
        (Duration::ZERO, Duration::from_secs(1))
    );
    assert_eq!(
        (level.handshake, level.conn_idle),
        (Duration::from_secs(60), Duration::from_secs(300))
    );
}

#[test]
fn every_protocol_alias() {
    for (name, same) in [("dokodemo-door", "tunnel"), ("socks", "mixed"), ("SOCKS", "Mixed")] {
        let read = |name: &str| {
            good(&inbound(&format!(r#"{{"port":1,"protocol":"{name}"}}"#)))
                .inbounds
                .remove(0)
                .protocol
        };
        assert_eq!(
            std::mem::discriminant(&read(name)),
            std::mem::discriminant(&read(same)),
            "{name}"
        );
    }
    for (name, same) in [("freedom", "direct"), ("blackhole", "block")] {
        let read = |name: &str| {
            good(&outbound(&format!(r#"{{"protocol":"{name}"}}"#)))
                .outbounds
                .remove(0)
                .protocol
        };
        assert_eq!(std::mem::discriminant(&read(name)), std::mem::discriminant(&read(same)));
    }
    let a = transport(r#""network":"ws","wsSettings":{"path":"a","host":"h"}"#);
    assert_eq!(
        a,
        transport(r#""method":"WebSocket","WSSETTINGS":{"PATH":"/a","headers":{"Host":"h"}}"#)
    );
    assert_eq!(
        transport(r#""network":"raw""#),
        transport(r#""network":"tcp","tcpSettings":{"header":{"type":"none"}}"#)
    );
    for key in [
        "rawSettings",
        "tcpSettings",
        "wsSettings",
        "httpupgradeSettings",
        "sockopt",
    ] {
        let network = key.trim_end_matches("Settings").replace("sockopt", "raw");
        let text = format!(
            r#"{{"port":1,"protocol":"socks","streamSettings":{{"network":"{network}","{key}":{{"acceptProxyProtocol":true}}}}}}"#
        );
        assert!(good(&inbound(&text)).inbounds[0].stream.accept_proxy_protocol, "{key}");
    }
}

#[test]
fn ports_and_environment() {
    for (port, wanted) in [
        ("443", "443"),
        ("\"443\"", "443"),
        ("\"1000-1002, 3000\"", "1000-1002,3000"),
        ("\"env:PORT\"", "4430"),
    ] {
        let config = good(&inbound(&format!(r#"{{"port":{port},"protocol":"socks"}}"#)));
        let Listen::Ip { ports, .. } = &config.inbounds[0].listen else {
            panic!()
        };
        assert_eq!(ports.to_string(), wanted);
    }
    // What a form left empty is not there.
    good(&inbound(
        r#"{"listen":"","port":1,"tag":"","protocol":"socks","streamSettings":{"security":""}}"#,
    ));
    // The files' own environment goes first.
    let text = format!(
        r#"{{"inbounds":[{{"port":"env:PORT","protocol":"socks"}}],"outbounds":[{FREEDOM}],"ENV":{{"PORT":7}}}}"#
    );
    let Listen::Ip { ports, .. } = good(&text).inbounds.remove(0).listen else {
        panic!()
    };
    assert_eq!(ports.iter().collect::<Vec<_>>(), [7]);
    let ports = Ports::one(5);
    assert!(ports.contains(5) && !ports.contains(6));
}

#[test]
fn servers_nested_and_flat_are_the_same() {
    let user = format!(r#""id":"{ID}","email":"e""#);
    let protocol = |text: &str| good(&outbound(text)).outbounds.remove(0).protocol;
    for (name, extra) in [
        ("vless", r#","encryption":"none""#),
        ("vmess", r#","security":"zero","experiments":"AuthenticatedLength""#),
    ] {
        let flat = protocol(&format!(
            r#"{{"protocol":"{name}","settings":{{"address":"127.0.0.1","port":"9",{user}{extra}}}}}"#
        ));
        let nested = protocol(&format!(
            r#"{{"protocol":"{name}","settings":{{"vnext":[{{"address":"127.0.0.1","port":9,"users":[{{{user}{extra}}}]}}]}}}}"#
        ));
        assert_eq!(flat, nested);
        if let OutboundProtocol::Vmess(vmess) = flat {
            assert_eq!(vmess.security, VmessSecurity::Zero);
            assert!(vmess.experiments.authenticated_length && !vmess.experiments.no_termination_signal);
        }
    }
    for name in ["socks", "http"] {
        let flat = protocol(&format!(
            r#"{{"protocol":"{name}","settings":{{"address":"a","port":9,"user":"u","pass":"p"}}}}"#
        ));
        let nested = protocol(&format!(
            r#"{{"protocol":"{name}","settings":{{"servers":[{{"address":"a","port":9,"users":[{{"user":"u","pass":"p"}}]}}]}}}}"#
        ));
        assert_eq!(flat, nested);
        let alone = protocol(&format!(
            r#"{{"protocol":"{name}","settings":{{"servers":[{{"address":"a","port":9}}]}}}}"#
        ));
        let (OutboundProtocol::Socks(server) | OutboundProtocol::Http(server)) = alone else {
            panic!()
        };
        assert!(server.account.is_none());
    }
}

#[test]
fn freedom_and_dokodemo() {
    let freedom = |text: &str| match good(&outbound(&format!(r#"{{"protocol":"direct","settings":{{{text}}}}}"#)))
        .outbounds
        .remove(0)
        .protocol
    {
        OutboundProtocol::Freedom(freedom) => freedom,
        other => panic!("{other:?}"),
    };
    let redirect = |text: &str| {
        let redirect = freedom(&format!(r#""redirect":"{text}""#)).redirect;
        (redirect.address.map(|a| a.to_string()), redirect.port)
    };
    assert_eq!(redirect(""), (None, None));
    assert_eq!(redirect("a.b:80"), (Some("a.b".into()), Some(80)));
    assert_eq!(redirect(":80"), (None, Some(80)));
    assert_eq!(redirect("a.b:"), (Some("a.b".into()), None));
    assert_eq!(redirect("a.b:0"), (Some("a.b".into()), None));
    assert_eq!(redirect("[::1]:5"), (Some("::1".into()), Some(5)));
    let rule = freedom(r#""finalRules":[{"action":"allow","network":"tcp","port":"80-90","ip":["10.0.0.0/8"]}]"#)
        .final_rules
        .remove(0);
    assert_eq!(rule.action, FinalAction::Allow);
    assert!(rule.ips.matches([10, 1, 2, 3].into()) && !rule.ips.matches([11, 1, 2, 3].into()));
    assert!(bad(&outbound(r#"{"protocol":"freedom","settings":{"proxyProtocol":3}}"#))[0].contains("no version 3"));

    let text = r#"{"port":1,"protocol":"tunnel","settings":{"rewriteAddress":"::1","rewritePort":53,"allowedNetwork":["tcp","UDP"]}}"#;
    let InboundProtocol::Dokodemo(door) = good(&inbound(text)).inbounds.remove(0).protocol else {
        panic!()
    };
    assert_eq!((door.address.unwrap().to_string().as_str(), door.port.0), ("::1", 53));
    assert!(door.networks.tcp && door.networks.udp);
    let InboundProtocol::Dokodemo(door) = good(&inbound(r#"{"port":1,"protocol":"dokodemo-door"}"#))
        .inbounds
        .remove(0)
        .protocol
    else {
        panic!()
    };
    assert!(door.address.is_none() && door.port.0 == 0 && door.networks.tcp && !door.networks.udp);
}

#[test]
fn rules_match() {
    let rule = |text: &str| {
        let text = format!(
            r#"{{"inbounds":[{SOCKS}],"outbounds":[{FREEDOM},{{"tag":"o","protocol":"block"}}],"routing":{{"rules":[{{"outboundTag":"o",{text}}}]}}}}"#
        );
        let rule = good(&text).routing.rules.remove(0);
        assert_eq!(rule.to, RuleTarget::Outbound("o".into()));
        rule
    };
    let domains =
        rule(r#""domain":["full:A.example.","domain:b.example.","keyword:ccc","ddd","regexp:^e+$","dotless:ff"]"#)
            .domains;
    for (name, wanted) in [
        ("a.example", true),
        ("A.EXAMPLE.", true),
        ("x.a.example", false),
        ("b.example", true),
        ("x.b.example", true),
        ("xb.example", false),
        ("xcccx", true),
        ("x.ddd.y", true),
        ("eee", true),
        ("eeex", false),
        ("xff", true),
        ("x.ff", false),
    ] {
        assert_eq!(domains.matches(name), wanted, "{name}");
    }
    let ips = rule(r#""ip":["192.0.2.7","2001:db8::/32","geoip:private"]"#).ips;
    for (ip, wanted) in [
        ("192.0.2.7", true),
        ("8.8.8.8", false),
        ("2001:db8::9", true),
        ("2001:db9::9", false),
        ("127.0.0.1", true),
        ("::ffff:10.0.0.1", true),
        ("fe80::1", true),
        ("100.64.0.1", true),
        ("172.32.0.1", false),
        ("::1", true),
    ] {
        assert_eq!(ips.matches(ip.parse().unwrap()), wanted, "{ip}");
    }
    for text in ["!geoip:private", "geoip:!private"] {
        let ips = rule(&format!(r#""ip":"{text}""#)).ips;
        assert!(ips.matches([8, 8, 8, 8].into()) && !ips.matches([10, 0, 0, 1].into()));
    }
    let users = rule(r#""user":["Ann@example.com","regexp:^B"]"#).users;
    assert!(users.matches("ann@EXAMPLE.com") && users.matches("bob") && users.matches("Bea"));
    assert!(!users.matches("cy") && !users.matches(""));
    let rule = rule(r#""type":"field","network":"udp","port":"53,1000-2000","sourceIP":"10.0.0.0/8","sourcePort":1"#);
    assert!(rule.networks.unwrap().udp && rule.ports.unwrap().contains(1500));
    assert!(!rule.sources.is_empty() && rule.source_ports.unwrap().contains(1));
}

#[test]
fn conditions_about_what_is_carried() {
    let rule = |text: &str| {
        let text = format!(
            r#"{{"inbounds":[{SOCKS}],"outbounds":[{FREEDOM},{{"tag":"o","protocol":"block"}}],"routing":{{"rules":[{{"outboundTag":"o",{text}}}]}}}}"#
        );
        good(&text).routing.rules.remove(0)
    };
    let protocols = rule(r#""protocol":["HTTP","quic"]"#).protocols;
    for (found, wanted) in [
        ("http1", true),
        ("http2", true),
        ("quic", true),
        ("tls", false),
        ("", false),
    ] {
        assert_eq!(protocols.matches(found), wanted, "{found}");
    }
    let attributes = rule(r#""attrs":{":Method":"^(GET|HEAD)$","User-Agent":"curl"}"#).attributes;
    let find = |method: &'static str, agent: Option<&'static str>| {
        attributes.matches(|name| match name {
            ":method" => Some(method),
            "user-agent" => agent,
            _ => None,
        })
    };
    assert!(find("GET", Some("curl/8")) && !find("POST", Some("curl/8")) && !find("GET", None));
    let systems = rule(r#""localOS":["Darwin","linux"]"#).systems;
    assert!(systems.has("linux") && systems.has("macos") && !systems.has("windows"));
    let routes = rule(r#""vlessRoute":"7,100-200""#).vless_routes.unwrap();
    assert!(routes.contains(7) && routes.contains(150) && !routes.contains(8));
    assert_eq!(
        rule(r#""process":["curl","wget.exe","/usr/bin/curl","/opt/","self/","xray/"]"#)
            .processes
            .0,
        [
            ProcessMatch::Name("curl".into()),
            ProcessMatch::Name("wget".into()),
            ProcessMatch::Path("/usr/bin/curl".into()),
            ProcessMatch::Folder("/opt/".into()),
            ProcessMatch::OwnProcess,
            ProcessMatch::OwnProgram,
        ]
    );
}

#[test]
fn balancers_and_what_they_choose_by() {
    let config = good(
        r#"{"inbounds":[{"port":1,"protocol":"socks"}],"outbounds":[{"protocol":"freedom"},{"protocol":"freedom","tag":"p1"},{"protocol":"freedom","tag":"p2"}],
        "routing":{"balancers":[
            {"tag":"a","selector":"p"},
            {"tag":"b","selector":["p1"],"fallbackTag":"p2","strategy":{"type":"ROUNDROBIN"}},
            {"tag":"c","selector":["p"],"strategy":{"type":"leastPing"}},
            {"tag":"d","selector":["p"],"strategy":{"type":"leastload","settings":{"expected":2,"maxRTT":"1s","tolerance":0.1,
                "baselines":["400ms",600000000],"costs":[{"regexp":true,"match":"^p[0-9]","value":2.5},{"match":"p"}]}}}],
            "rules":[{"port":1,"balancerTag":"d"}]},
        "observatory":{"subjectSelector":["p"],"probeInterval":"1m"},
        "burstObservatory":{"subjectSelector":["p1"],"pingConfig":{"destination":"http://192.0.2.1:81/x","sampling":3,"interval":"30s"}}}"#,
    );
    let [a, b, c, d] = config.routing.balancers.as_slice() else {
        panic!()
    };
    assert_eq!((a.kind, b.kind), (BalancerKind::Random, BalancerKind::RoundRobin));
    assert_eq!((c.kind, d.kind), (BalancerKind::LeastPing, BalancerKind::LeastLoad));
    assert!(!a.needs_health() && b.needs_health() && c.needs_health() && d.needs_health());
    assert!(a.selects("p2") && !b.selects("p2") && !a.selects("") && b.fallback == "p2");
    let ms = Duration::from_millis;
    let load = &d.least_load;
    assert_eq!(
        (load.expected, load.max_rtt, load.tolerance),
        (2, Some(ms(1000)), Some(0.1))
    );
    assert_eq!(load.baselines, [ms(400), ms(600)]);
    assert!(matches!(&load.costs[0].pattern, CostMatch::Regexp(_)) && load.costs[0].value == 2.5);
    assert!(matches!(&load.costs[1].pattern, CostMatch::Text(text) if text == "p") && load.costs[1].value == 0.0);
    assert_eq!(config.routing.rules[0].to, RuleTarget::Balancer("d".into()));
    let observatory = config.observatory.unwrap();
    assert_eq!((observatory.interval, observatory.concurrent), (ms(60_000), false));
    assert!(observatory.url.tls && observatory.url.path == "/generate_204");
    let burst = config.burst.unwrap();
    assert_eq!((burst.url.port, burst.sampling, burst.timeout), (81, 3, ms(5000)));
    assert_eq!((burst.interval, burst.method), (ms(30_000), ProbeMethod::Head));
    assert!(burst.connectivity.is_none());
}

#[test]
fn log_words() {
    let read = |log: &str| {
        good(&format!(
            r#"{{"log":{{{log}}},"inbounds":[{SOCKS}],"outbounds":[{FREEDOM}]}}"#
        ))
        .log
    };
    assert_eq!(read(r#""access":"NONE""#).access, LogTarget::Off);
    assert_eq!(
        read(r#""access":"/var/log/a""#).access,
        LogTarget::File("/var/log/a".into())
    );
    assert_eq!(read(r#""loglevel":"Debug""#).level, LogLevel::Debug);
    for (text, ipv4, ipv6) in [
        ("quarter", 8, 16),
        ("half", 16, 32),
        ("full", 0, 0),
        ("/16+/64", 16, 64),
        ("/8", 8, 0),
    ] {
        assert_eq!(
            read(&format!(r#""maskAddress":"{text}""#)).mask_address,
            MaskAddress { ipv4, ipv6 }
        );
    }
    for wrong in ["/15+/32", "/16+/129", "16", "/16+32", "/40", "some"] {
        let text = format!(r#"{{"log":{{"maskAddress":"{wrong}"}},"inbounds":[{SOCKS}],"outbounds":[{FREEDOM}]}}"#);
        assert!(bad(&text)[0].contains("log.maskAddress: "), "{wrong}");
    }
}

#[test]
fn transparent_inbounds() {
    let door = |listen: &str, sockopt: &str| {
        inbound(&format!(
            r#"{{{listen},"protocol":"dokodemo-door","settings":{{"network":"tcp,udp","followRedirect":true}},
                "streamSettings":{{"sockopt":{{{sockopt}}}}}}}"#
        ))
    };
    for (sockopt, wanted) in [
        ("", Tproxy::Off),
        (r#""tproxy":"off""#, Tproxy::Off),
        (r#""tproxy":"Redirect""#, Tproxy::Redirect),
        (r#""tproxy":"tproxy","mark":255"#, Tproxy::Tproxy),
    ] {
        let config = good(&door(r#""port":12345"#, sockopt));
        assert_eq!(config.inbounds[0].stream.sockopt.tproxy, wanted, "{sockopt}");
        let InboundProtocol::Dokodemo(door) = &config.inbounds[0].protocol else {
            panic!()
        };
        assert!(door.follow_redirect && door.address.is_none());
    }
    assert!(
        bad(&door(r#""port":1"#, r#""tproxy":"maybe""#))[0].contains("inbounds[0].streamSettings.sockopt.tproxy: ")
    );
    let told = bad(&door(r#""listen":"/run/door""#, ""));
    assert!(
        told[0].contains("inbounds[0].settings.followRedirect: the firewall leads nothing to a unix socket"),
        "{told:?}"
    );
}
