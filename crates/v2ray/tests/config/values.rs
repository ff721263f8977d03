use std::time::Duration;

use sealway_v2ray::Address;
use sealway_v2ray::config::*;

use super::*;

fn transport(stream: &str) -> Transport {
    let text = format!(r#"{{"port":1,"protocol":"socks","streamSettings":{{{stream}}}}}"#);
    good(&inbound(&text)).inbounds.remove(0).stream.transport
}

fn upgrade(stream: &str) -> Upgrade {
    match transport(stream) {
        Transport::WebSocket(upgrade) | Transport::HttpUpgrade(upgrade) => upgrade,
        other => panic!("{other:?}"),
    }
}

#[test]
fn defaults() {
    let config = good(&with(SOCKS, FREEDOM));
    assert_eq!(config.log, Log::default());
    assert_eq!(
        (&config.log.access, &config.log.error),
        (&LogTarget::Off, &LogTarget::Stdout)
    );
    assert!(!config.stats && config.routing.rules.is_empty());
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
    assert!(!inbound.protocol.is_remote_facing());
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
    assert!(config.stats);
    // A level that is listed has the defaults for what it does not say.
    let config = good(&format!(
        r#"{{"policy":{{"levels":{{"3":{{"uplinkOnly":0,"bufferSize":4}}}}}},"inbounds":[{SOCKS}],"outbounds":[{FREEDOM}]}}"#
    ));
    let level = config.policy.level(3);
    assert_eq!(
        (level.uplink_only, level.buffer_size),
        (Duration::ZERO, BufferSize::Bytes(4096))
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
fn listening_addresses() {
    let listen = |text: &str| {
        good(&inbound(&format!(
            r#"{{"listen":"{text}","port":1,"protocol":"http"}}"#
        )))
        .inbounds
        .remove(0)
        .listen
    };
    assert_eq!(
        listen("127.0.0.1"),
        Listen::Ip {
            ip: Some([127, 0, 0, 1].into()),
            ports: Ports::one(1)
        }
    );
    assert_eq!(listen("[::1]"), listen("::1"));
    let unix = |name, mode| Listen::Unix { name, mode };
    let path = || UnixName::Path("/run/a".into());
    assert_eq!(listen("/run/a"), unix(path(), None));
    assert_eq!(listen("/run/a,0666"), unix(path(), Some(0o666)));
    assert_eq!(
        listen("@a"),
        unix(
            UnixName::Abstract {
                name: "a".into(),
                padded: false
            },
            None
        )
    );
    assert_eq!(
        listen("@@a"),
        unix(
            UnixName::Abstract {
                name: "a".into(),
                padded: true
            },
            None
        )
    );
    // A unix socket needs no port.
    good(&inbound(r#"{"listen":"@a","protocol":"http"}"#));
    for wrong in ["example.com", "/a,0999", "@", "300.1.1.1"] {
        let told = bad(&inbound(&format!(
            r#"{{"listen":"{wrong}","port":1,"protocol":"http"}}"#
        )));
        assert!(told[0].contains("inbounds[0].listen"), "{told:?}");
    }
}

#[test]
fn fallbacks() {
    let with_list = |list: &str| {
        let text = format!(
            r#"{{"port":1,"protocol":"vless","settings":{{"users":[{{"id":"{ID}"}}],"decryption":"none","fallbacks":[{list}]}}}}"#
        );
        let loaded = read(&inbound(&text));
        (told(&loaded), loaded.config)
    };
    let dial = |dest: &str| {
        let (told, config) = with_list(&format!(r#"{{"dest":{dest}}}"#));
        let InboundProtocol::Vless(mut vless) = config.ok_or(told)?.inbounds.remove(0).protocol else {
            panic!()
        };
        Ok::<_, Vec<String>>(vless.fallbacks.remove(0).target.to)
    };
    let tcp = |host: &str, port| FallbackDial::Tcp(Address::parse(host).unwrap(), port);
    assert_eq!(dial("80").unwrap(), FallbackDial::Local(80));
    assert_eq!(dial("\"80\"").unwrap(), FallbackDial::Local(80));
    assert_eq!(dial("\"example.com:80\"").unwrap(), tcp("example.com", 80));
    assert_eq!(dial("\"[::1]:80\"").unwrap(), tcp("::1", 80));
    assert_eq!(
        dial("\"/run/x\"").unwrap(),
        FallbackDial::Unix(UnixName::Path("/run/x".into()))
    );
    assert_eq!(
        dial("\"@@x\"").unwrap(),
        FallbackDial::Unix(UnixName::Abstract {
            name: "x".into(),
            padded: true
        })
    );
    for wrong in [
        "0",
        "65536",
        "\"\"",
        "\"a\"",
        "\"a:\"",
        "\"::1:80\"",
        "-1",
        "\"serve-ws-none\"",
        "80.5",
        "\"a b:80\"",
    ] {
        assert!(dial(wrong).unwrap_err()[0].contains("fallbacks[0].dest"), "{wrong}");
    }
    let (told, config) =
        with_list(r#"{"name":"A.example","alpn":"H2","path":"/x","dest":"@a","type":"unix","xver":2},{"dest":80}"#);
    assert_eq!(told, Vec::<String>::new());
    let InboundProtocol::Vless(vless) = &config.unwrap().inbounds[0].protocol else {
        panic!()
    };
    let first = &vless.fallbacks[0];
    assert_eq!(
        (
            first.name.as_str(),
            first.alpn.as_str(),
            first.path.as_str(),
            first.target.xver
        ),
        ("a.example", "h2", "/x", 2)
    );
    assert!(with_list(r#"{"dest":80,"path":"x"}"#).0[0].contains("does not begin with a slash"));
    assert!(with_list(r#"{"dest":80,"xver":3}"#).0[0].contains("no version 3"));
    assert!(with_list(r#"{"dest":80,"type":"udp"}"#).0[0].contains("no type of fallback"));
    assert!(with_list(r#"{"dest":80},{"dest":81}"#).0[0].contains("counts instead"));
    assert!(with_list(r#"{"path":"/x","dest":81}"#).0[0].contains("no fallback fits every connection"));
}

#[test]
fn early_data() {
    let read = |ws: &str| upgrade(&format!(r#""network":"ws","wsSettings":{{{ws}}}"#));
    assert_eq!(read("").path, "/");
    assert_eq!(read("").early_data, None);
    let x = read(r#""path":"/a?b=1&ed=2048""#);
    assert_eq!(
        (x.path.as_str(), x.early_data),
        ("/a?b=1", Some(EarlyData::Whole { limit: 2048 }))
    );
    assert_eq!(read(r#""path":"/a?ed=2048""#).path, "/a");
    assert_eq!(read(r#""path":"/a?x=1""#).path, "/a?x=1");
    let v = read(r#""maxEarlyData":100,"earlyDataHeaderName":"Sec-WebSocket-Protocol""#);
    assert_eq!(
        v.early_data,
        Some(EarlyData::Split {
            limit: 100,
            header: Some("Sec-WebSocket-Protocol".into())
        })
    );
    assert_eq!(
        read(r#""maxEarlyData":100"#).early_data,
        Some(EarlyData::Split {
            limit: 100,
            header: None
        })
    );
    assert_eq!(read(r#""heartbeatPeriod":10"#).heartbeat, Some(Duration::from_secs(10)));
    for wrong in [
        r#""path":"/a?ed=100000""#,
        r#""path":"/a b""#,
        r#""headers":{"a b":"c"}"#,
        r#""headers":{"a":"b\n"}"#,
        r#""host":"a b""#,
    ] {
        let text =
            format!(r#"{{"port":1,"protocol":"socks","streamSettings":{{"network":"ws","wsSettings":{{{wrong}}}}}}}"#);
        assert!(bad(&inbound(&text))[0].contains("wsSettings"), "{wrong}");
    }
}

#[test]
fn tls() {
    let digest = "ab".repeat(32);
    let text = format!(
        r#"{{"protocol":"socks","settings":{{"address":"a","port":1}},"streamSettings":{{"security":"TLS","tlsSettings":{{
        "serverName":"s","alpn":"h2,http/1.1","minVersion":"1.3","cipherSuites":"TLS_AES_128_GCM_SHA256:tls_chacha20_poly1305_sha256",
        "curvePreferences":["X25519MLKEM768","x25519"],"pinnedPeerCertSha256":"{digest}","verifyPeerCertByName":"a,b",
        "pinnedPeerCertificateChainSha256":["{}"],"enableSessionResumption":true,"disableSystemRoot":true,
        "certificates":[{{"certificate":["-----BEGIN","-----END"],"usage":"verify"}}]}}}}}}"#,
        "q6urq6urq6urq6urq6urq6urq6urq6urq6urq6urq6s="
    );
    let config = good(&outbound(&text));
    let tls = config.outbounds[0].stream.tls.as_ref().unwrap();
    assert_eq!(tls.server_name.as_deref(), Some("s"));
    assert_eq!(tls.alpn, ["h2", "http/1.1"]);
    assert_eq!((tls.min_version, tls.max_version), (TlsVersion::V13, TlsVersion::V13));
    assert_eq!(
        tls.cipher_suites,
        [CipherSuite::Tls13Aes128Gcm, CipherSuite::Tls13Chacha20Poly1305]
    );
    assert_eq!(tls.curves, [Curve::X25519MlKem768, Curve::X25519]);
    assert_eq!(
        (tls.pinned_certificates.clone(), tls.pinned_chains.clone()),
        (vec![[0xab; 32]], vec![[0xab; 32]])
    );
    assert_eq!(tls.verify_names, ["a", "b"]);
    assert_eq!(
        tls.certificates[0].certificate,
        Pem::Inline("-----BEGIN\n-----END".into())
    );
    assert!(
        tls.session_resumption
            && tls.disable_system_root
            && !tls.allow_insecure
            && tls.certificates[0].reload.is_none()
    );

    let server = |certificate: &str| {
        let text = format!(
            r#"{{"port":1,"protocol":"socks","streamSettings":{{"security":"tls","tlsSettings":{{"certificates":[{{{certificate}}}]}}}}}}"#
        );
        good(&inbound(&text))
            .inbounds
            .remove(0)
            .stream
            .tls
            .unwrap()
            .certificates
            .remove(0)
    };
    let files = r#""certificateFile":"c","keyFile":"k""#;
    let hour = Some(Duration::from_secs(3600));
    assert_eq!((server(files).reload, server(files).ocsp_stapling), (hour, None));
    assert_eq!(server(&format!(r#"{files},"oneTimeLoading":true"#)).reload, None);
    let stapled = server(&format!(r#"{files},"ocspStapling":60"#));
    assert_eq!(
        (stapled.reload, stapled.ocsp_stapling),
        (Some(Duration::from_secs(60)), Some(Duration::from_secs(60)))
    );

    let client = |tls: &str| {
        outbound(&format!(
            r#"{{"protocol":"socks","settings":{{"address":"a","port":1}},"streamSettings":{{"security":"tls","tlsSettings":{{{tls}}}}}}}"#
        ))
    };
    for (wrong, what) in [
        (r#""maxVersion":"1.1""#, "no version is left between TLS 1.2 and 1.1"),
        (r#""minVersion":"1.4""#, "is not known here"),
        (r#""pinnedPeerCertSha256":"abc""#, "is not the 32 bytes of a SHA-256"),
        (
            r#""cipherSuites":"TLS_RSA_WITH_RC4_128_SHA""#,
            "is not spoken here and left out",
        ),
        (r#""echConfigList":"x""#, "not supported yet: encrypted client hello"),
        (r#""certificates":[{"certificateFile":"c"}]"#, "has no key"),
        (r#""certificates":[{"keyFile":"c"}]"#, "no certificate here"),
    ] {
        assert!(
            bad(&client(wrong))[0].contains(what),
            "{wrong}: {:?}",
            bad(&client(wrong))
        );
    }
    assert!(warned(&client(r#""minVersion":"1.0""#))[0].contains("never spoken"));
    assert!(warned(&client(r#""fingerprint":"chrome""#))[0].contains("not imitated"));
}

#[test]
fn sockopt() {
    let read = |text: &str| {
        let text = format!(r#"{{"protocol":"freedom","streamSettings":{{"sockopt":{{{text}}}}}}}"#);
        good(&outbound(&text)).outbounds.remove(0).stream.sockopt
    };
    assert_eq!(read(r#""tcpFastOpen":true"#).tcp_fast_open, Some(FastOpen::Queue(256)));
    assert_eq!(read(r#""tcpFastOpen":9"#).tcp_fast_open, Some(FastOpen::Queue(9)));
    assert_eq!(read(r#""tcpFastOpen":false"#).tcp_fast_open, Some(FastOpen::Off));
    assert_eq!(read("").tcp_fast_open, None);
    assert_eq!(read(r#""bindToDevice":"eth0""#).interface, "eth0");
    assert!(read(r#""mptcp":true"#).tcp_mptcp && read(r#""v6only":true"#).v6_only);
    assert_eq!(
        read(r#""domainStrategy":"useipv64""#).domain_strategy,
        DomainStrategy::UseIpv6v4
    );
    let custom = read(r#""customSockopt":[{"type":"int","opt":"5","value":7}]"#)
        .custom
        .remove(0);
    assert_eq!(
        (custom.level.0, custom.option.0, custom.typed_value()),
        (6, 5, Some(CustomValue::Int(7)))
    );
}

#[test]
fn servers_nested_and_flat_are_the_same() {
    let user = format!(r#""id":"{ID}","level":2,"email":"e""#);
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
            assert_eq!((vmess.security, vmess.level), (VmessSecurity::Zero, 2));
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
        assert_eq!(rule.outbound, 1);
        rule
    };
    let domains =
        rule(r#""domain":["full:A.example","domain:b.example","keyword:ccc","ddd","regexp:^e+$","dotless:ff"]"#)
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
    let users = rule(r#""user":["Ann@example.com","regexp:^b"]"#).users;
    assert!(users.matches("ann@EXAMPLE.com") && users.matches("bob") && !users.matches("cy") && !users.matches(""));
    let rule = rule(
        r#""type":"field","network":"udp","port":"53,1000-2000","sourceIP":"10.0.0.0/8","sourcePort":1,"vlessRoute":"5-6""#,
    );
    assert!(rule.networks.unwrap().udp && rule.ports.unwrap().contains(1500) && rule.vless_routes.unwrap().contains(6));
    assert!(!rule.sources.is_empty() && rule.source_ports.unwrap().contains(1));
}

#[test]
fn hosts_answer() {
    let config = good(&format!(
        r#"{{"dns":{{"servers":["localhost"],"hosts":{{"a.example":"192.0.2.1","domain:b.example":["::1","192.0.2.2"]}}}},"inbounds":[{SOCKS}],"outbounds":[{FREEDOM}]}}"#
    ));
    let answer = |name: &str| config.dns.hosts.answer(name).map(|answer| answer.0.len());
    assert_eq!(
        (answer("A.example."), answer("x.a.example"), answer("x.b.example")),
        (Some(1), None, Some(2))
    );
    let told = warned(&format!(
        r#"{{"dns":{{"servers":["1.1.1.1"]}},"inbounds":[{SOCKS}],"outbounds":[{FREEDOM}]}}"#
    ));
    assert!(
        told[0].contains("not supported yet: the DNS server \"1.1.1.1\""),
        "{told:?}"
    );
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
        ("quarter", 24, 96),
        ("half", 16, 64),
        ("full", 0, 0),
        ("/16+/32", 16, 32),
        ("/8", 8, 128),
    ] {
        assert_eq!(
            read(&format!(r#""maskAddress":"{text}""#)).mask_address,
            MaskAddress { ipv4, ipv6 }
        );
    }
}
