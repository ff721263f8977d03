use super::*;
use crate::step::whole as whole_message;

const KEY: [u8; 16] = *b"the sample nonce";

fn server(path: &str, host: Option<&str>, early: Early) -> Server {
    Server {
        path: path.into(),
        host: host.map(Into::into),
        early,
        trusted: vec!["CF-Ray".into()],
    }
}

fn upgrade(answer: Answer) -> (Vec<u8>, Vec<u8>, Option<std::net::IpAddr>) {
    match answer {
        Answer::Upgrade { reply, early, client } => (reply, early, client),
        Answer::Refuse { error, .. } => panic!("{error}"),
    }
}

/// RFC 6455 section 1.3: key and accept of the example.
#[test]
fn the_example_of_the_rfc() {
    assert_eq!(accept_of("dGhlIHNhbXBsZSBub25jZQ=="), "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    assert_eq!(BASE64.encode(KEY), "dGhlIHNhbXBsZSBub25jZQ==");
}

#[test]
fn both_sides_with_early_data_in_every_style() {
    let data = vec![0xfe; 1000];
    for early in [Early::Protocol, Early::Header("X-Early".into()), Early::Path] {
        for early_data in [&data[..], b""] {
            let headers = [("User-Agent", "test")];
            let client = Client {
                host: "a.example",
                path: "/ws",
                headers: &headers,
                early: early.clone(),
                early_data,
            };
            let mut sent = request(&client, &KEY).unwrap();
            let server = server("/ws", Some("A.example:8443"), early.clone());
            for n in (0..sent.len()).step_by(if early_data.is_empty() { 1 } else { 37 }) {
                assert_eq!(accept(&sent[..n], &server), Step::More(1));
            }
            let whole = sent.len();
            sent.extend_from_slice(b"frames");
            let Step::Done { value, used } = accept(&sent, &server) else {
                panic!()
            };
            assert_eq!(used, whole);
            let (reply, got, _) = upgrade(value);
            assert_eq!(got, early_data, "{early:?}");
            whole_message(&reply, |bytes| parse_answer(bytes, &KEY));
            assert!(parse_answer(&reply, &[0; 16]).is_err());
            let echoed = String::from_utf8_lossy(&reply).contains("Sec-WebSocket-Protocol");
            assert_eq!(echoed, early == Early::Protocol && !early_data.is_empty());
        }
    }
}

fn head(path: &str, more: &str) -> String {
    format!(
        "GET {path} HTTP/1.1\r\nHost: a.example\r\nUpgrade: WebSocket\r\nConnection: keep-alive, Upgrade\r\n\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n{more}\r\n"
    )
}

#[test]
fn paths_and_hosts() {
    let ask = |path: &str, server: &Server| accept(head(path, "").as_bytes(), server).done().unwrap();
    for (ours, theirs) in [
        ("/ws", "/ws"),
        ("ws", "/ws"),
        ("", "/"),
        ("/", "/?x"),
        ("/ws", "/ws?ed=1"),
        ("/a b", "/a%20b"),
    ] {
        upgrade(ask(theirs, &server(ours, None, Early::Protocol)));
    }
    for (ours, theirs) in [
        ("/ws", "/"),
        ("/ws", "/ws/"),
        ("/ws", "/WS"),
        ("/ws", "/wsx"),
        ("/ws", "ws"),
        ("/a", "/%6"),
        ("/", "*"),
    ] {
        let got = ask(theirs, &server(ours, None, Early::Protocol));
        assert!(
            matches!(got, Answer::Refuse { reply: NOT_FOUND, .. }),
            "{ours} {theirs}"
        );
    }
    upgrade(ask("/", &server("/", Some("A.EXAMPLE"), Early::Protocol)));
    for host in ["b.example", "a.example.b", ""] {
        let got = ask("/", &server("/", Some(host), Early::Protocol));
        assert!(matches!(got, Answer::Refuse { reply: NOT_FOUND, .. }), "{host}");
    }
}

#[test]
fn a_protocol_that_is_no_early_data_is_no_error() {
    let sent = head("/", "Sec-WebSocket-Protocol: chat, superchat\r\n");
    let (reply, early, _) = upgrade(
        accept(sent.as_bytes(), &server("/", None, Early::Protocol))
            .done()
            .unwrap(),
    );
    assert!(early.is_empty());
    assert!(
        String::from_utf8(reply)
            .unwrap()
            .contains("Sec-WebSocket-Protocol: chat, superchat\r\n")
    );
}

/// Anyone could name any address as the client's (xray-core 5331 and 6309).
#[test]
fn bug_xray_5331_forwarded_addresses_need_a_trusted_header() {
    let ask = |more: &str| {
        let answer = accept(head("/", more).as_bytes(), &server("/", None, Early::Protocol))
            .done()
            .unwrap();
        upgrade(answer).2
    };
    assert_eq!(ask("X-Forwarded-For: 192.0.2.1\r\n"), None);
    assert_eq!(
        ask("X-Forwarded-For: 192.0.2.1, 192.0.2.2\r\nCf-Ray: 1\r\n"),
        Some("192.0.2.1".parse().unwrap())
    );
    assert_eq!(ask("X-Forwarded-For: nonsense\r\nCf-Ray: 1\r\n"), None);
    assert_eq!(ask("Cf-Ray: 1\r\n"), None);
}

#[test]
fn what_is_no_handshake() {
    let server = server("/", None, Early::Protocol);
    let good = head("/", "");
    for (from, to) in [
        ("GET", "POST"),
        ("HTTP/1.1", "HTTP/1.0"),
        ("WebSocket\r", "h2c\r"),
        ("keep-alive, Upgrade", "keep-alive"),
        ("Version: 13", "Version: 8"),
        ("b25jZQ==", "b25j"),
        ("\r\nHost", "\r\n Host"),
    ] {
        let bad = good.replacen(from, to, 1);
        assert_ne!(bad, good);
        let got = accept(bad.as_bytes(), &server).done().unwrap();
        assert!(matches!(got, Answer::Refuse { reply: BAD_REQUEST, .. }), "{bad}");
    }
    let endless = vec![b'G'; MAX_HEAD];
    assert!(matches!(
        accept(&endless, &server).done(),
        Some(Answer::Refuse {
            error: Error::TooLong { .. },
            ..
        })
    ));
    let answer = b"HTTP/1.1 404 Not Found\r\n\r\n";
    assert_eq!(
        parse_answer(answer, &KEY),
        Err(Error::Refused {
            protocol: Protocol::WebSocket,
            code: 404
        })
    );
    let client = Client {
        host: "a\r\nb",
        ..Client::default()
    };
    assert!(request(&client, &KEY).is_err());
    assert!(
        request(
            &Client {
                path: "/a b",
                ..Client::default()
            },
            &KEY
        )
        .is_err()
    );
}
