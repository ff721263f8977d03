use std::time::Duration;

use sealway_v2ray::Address;
use sealway_v2ray::config::*;

use super::*;

pub(super) fn transport(stream: &str) -> Transport {
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
    assert_eq!(listen("@a"), unix(UnixName::Abstract(b"a".to_vec()), None));
    assert_eq!(
        listen("@@a"),
        unix(UnixName::Abstract([&b"a"[..], &[0; 106]].concat()), None)
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
fn the_http_header() {
    let read = |header: &str| {
        let text = format!(
            r#"{{"port":1,"protocol":"socks","listen":"::1","streamSettings":{{"tcpSettings":{{"header":{header}}}}}}}"#
        );
        let (config, told) = (read(&inbound(&text)).config, told(&read(&inbound(&text))));
        config
            .map(|mut config| config.inbounds.remove(0).stream.transport)
            .ok_or(told)
    };
    let front = |header: &str| match read(header) {
        Ok(Transport::RawHttp(front)) => *front,
        other => panic!("{other:?}"),
    };
    assert_eq!(read(r#"{"type":"none"}"#), Ok(Transport::Raw));
    assert_eq!(read("{}"), Ok(Transport::Raw));
    assert_eq!(
        front(r#"{"type":"HTTP","request":{},"response":{"version":""}}"#),
        Front::default()
    );
    let all = front(
        r#"{"type":"http","request":{"version":"1.0","method":"POST","path":["/a","/b?c"],"headers":{"Host":["x","y"],"A":"b, c"}},
            "response":{"version":"1.0","status":404,"reason":"Not Found","headers":{"S":["1"]}}}"#,
    );
    let (request, response) = (&all.request, &all.response);
    assert_eq!((request.version.as_str(), request.method.as_str()), ("1.0", "POST"));
    assert_eq!(request.paths, ["/a", "/b?c"]);
    let texts = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        request.headers,
        [("A".into(), texts(&["b", "c"])), ("Host".into(), texts(&["x", "y"]))]
    );
    assert_eq!(
        (
            response.version.as_str(),
            response.status.as_str(),
            response.reason.as_str()
        ),
        ("1.0", "404", "Not Found")
    );
    assert_eq!(response.headers, [("S".into(), texts(&["1"]))]);
    for (header, place) in [
        (
            r#"{"type":"http","request":{"version":"2"}}"#,
            "header.request.version: ",
        ),
        (
            r#"{"type":"http","request":{"method":"G T"}}"#,
            "header.request.method: ",
        ),
        (
            r#"{"type":"http","request":{"path":["/a b"]}}"#,
            "header.request.path: ",
        ),
        (r#"{"type":"http","request":{"path":[""]}}"#, "header.request.path: "),
        (
            r#"{"type":"http","request":{"headers":{"A:":["b"]}}}"#,
            "header.request.headers: ",
        ),
        (
            r#"{"type":"http","request":{"headers":{"A":["b\r\nC: d"]}}}"#,
            "header.request.headers: ",
        ),
        (
            r#"{"type":"http","response":{"status":"20"}}"#,
            "header.response.status: ",
        ),
        (
            r#"{"type":"http","response":{"reason":"a\nb"}}"#,
            "header.response.reason: ",
        ),
        (r#"{"type":"srtp"}"#, "header.type: "),
    ] {
        let told = read(header).unwrap_err();
        assert!(told.len() == 1 && told[0].contains(place), "{header}: {told:?}");
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
        FallbackDial::Unix(UnixName::Abstract([&b"x"[..], &[0; 106]].concat()))
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
    assert_eq!(server(files).reload, hour);
    assert_eq!(server(&format!(r#"{files},"oneTimeLoading":true"#)).reload, None);

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
    assert_eq!(read(r#""bindToDevice":"eth0""#).interface, "eth0");
    assert!(read(r#""mptcp":true"#).tcp_mptcp);
    assert_eq!(
        read(r#""domainStrategy":"useipv64""#).domain_strategy.value,
        DomainStrategy::UseIpv6v4
    );
}

#[test]
fn grpc() {
    let read = |key: &str, grpc: &str| match transport(&format!(r#""network":"grpc","{key}":{{{grpc}}}"#)) {
        Transport::Grpc(grpc) => grpc,
        other => panic!("{other:?}"),
    };
    let usual = read("grpcSettings", "");
    assert_eq!(usual, read("gunSettings", ""));
    assert_eq!((usual.service_name.as_str(), usual.authority), ("", None));
    assert_eq!((usual.multi_mode, usual.parse_forwarded_for), (false, false));
    assert_eq!((usual.idle, usual.answer), (None, Duration::from_secs(20)));
    assert_eq!(
        (usual.without_streams, usual.window, usual.user_agent),
        (false, None, None)
    );
    let all = read(
        "gunSettings",
        r#""serviceName":"/a b/T|M","authority":"a.example:1","multiMode":true,"idle_timeout":3,"health_check_timeout":7,
        "permit_without_stream":true,"initial_windows_size":65536,"user_agent":"me","parseXForwardedFor":true"#,
    );
    assert_eq!(all.service_name, "/a b/T|M");
    assert_eq!(all.authority.as_deref(), Some("a.example:1"));
    assert!(all.multi_mode && all.without_streams && all.parse_forwarded_for);
    assert_eq!(
        (all.idle, all.answer),
        (Some(Duration::from_secs(10)), Duration::from_secs(7))
    );
    assert_eq!((all.window, all.user_agent.as_deref()), (Some(65536), Some("me")));
    assert_eq!(
        read("grpcSettings", r#""initial_windows_size":65534,"idle_timeout":-1"#).window,
        None
    );
    for (key, wrong) in [
        ("authority", r#""authority":"a b""#),
        ("user_agent", r#""user_agent":"a\u0001""#),
        ("serviceName", &format!(r#""serviceName":"{}""#, "a".repeat(2049))),
    ] {
        let text = format!(
            r#"{{"port":1,"protocol":"socks","streamSettings":{{"network":"grpc","grpcSettings":{{{wrong}}}}}}}"#
        );
        let told = bad(&inbound(&text));
        assert!(told[0].contains(&format!("grpcSettings.{key}: ")), "{told:?}");
    }
}
