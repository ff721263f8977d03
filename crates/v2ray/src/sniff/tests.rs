use super::*;

/// A ClientHello with this name and as many bytes more in an extension that nobody knows.
pub(super) fn hello(name: Option<&str>, more: usize) -> Vec<u8> {
    fn sized(width: usize, content: &[u8]) -> Vec<u8> {
        let len = (content.len() as u32).to_be_bytes();
        [&len[4 - width..], content].concat()
    }
    let mut extensions = vec![0xfa, 0xfa];
    extensions.extend(sized(2, &vec![7; more]));
    if let Some(name) = name {
        let names = [&[0][..], &sized(2, name.as_bytes())].concat();
        extensions.extend_from_slice(&[0, 0]);
        extensions.extend(sized(2, &sized(2, &names)));
    }
    let mut hello = vec![3, 3];
    hello.extend_from_slice(&[5; 32]);
    hello.extend(sized(1, &[6; 32]));
    hello.extend(sized(2, &[0x13, 1]));
    hello.extend(sized(1, &[0]));
    hello.extend(sized(2, &extensions));
    [&[1][..], &sized(3, &hello)].concat()
}

/// A handshake message in records of this many bytes.
fn records(message: &[u8], len: usize) -> Vec<u8> {
    let record = |piece: &[u8]| [&[22, 3, 1, (piece.len() >> 8) as u8, piece.len() as u8], piece].concat();
    message.chunks(len).flat_map(record).collect()
}

fn found(kind: Kind, name: &str) -> Look {
    let domain = (!name.is_empty()).then(|| Domain::new(name).unwrap());
    Look::found(kind, domain)
}

/// Looks at every beginning: each asks for more, and for no more than there is, until all is there.
fn grows(bytes: &[u8], wanted: &Look) {
    for end in 0..bytes.len() {
        match stream(&bytes[..end], false) {
            Look::More(more) => assert!(more > 0 && end + more <= bytes.len(), "{more} more at {end}"),
            other => panic!("{other:?} at {end} of {}", bytes.len()),
        }
    }
    assert_eq!(stream(bytes, false), *wanted);
    // What follows changes nothing.
    assert_eq!(stream(&[bytes, b"\r\n\x00more"].concat(), false), *wanted);
}

#[test]
fn a_tls_hello_is_read_over_any_records() {
    for more in [0, 1500] {
        let message = hello(Some("Www.Example.ORG"), more);
        for len in [
            1,
            2,
            3,
            4,
            5,
            7,
            message.len() / 5 + 1,
            message.len() / 2,
            message.len(),
        ] {
            grows(&records(&message, len), &found(Kind::Tls, "www.example.org"));
        }
    }
    // The longest that is read, and one byte more.
    let over = hello(None, 0).len();
    let longest = tls::MAX_HELLO - over;
    assert_eq!(
        stream(&records(&hello(None, longest), 16 << 10), false),
        found(Kind::Tls, "")
    );
    assert_eq!(
        stream(&records(&hello(None, longest + 1), 16 << 10), false),
        Look::Nothing
    );
}

#[test]
fn the_hello_of_a_real_client_is_read() {
    let hello = include_bytes!("../../../../fuzz/corpus/sniff_stream/tls_chromium_156");
    grows(hello, &found(Kind::Tls, "real-chrome.example"));
}

#[test]
fn a_tls_hello_without_a_usable_name_is_tls() {
    for name in [
        None,
        Some("192.0.2.1"),
        Some("2001:db8::1"),
        Some("a b"),
        Some(""),
        Some("1.2.3"),
        Some("a..b"),
        Some("."),
    ] {
        assert_eq!(
            stream(&records(&hello(name, 0), 9000), false),
            found(Kind::Tls, ""),
            "{name:?}"
        );
    }
    assert_eq!(
        stream(&records(&hello(Some("host.example."), 0), 9000), false),
        found(Kind::Tls, "host.example")
    );
    // An old one, without extensions.
    let mut old = hello(None, 0);
    old.truncate(4 + 2 + 32 + 33 + 4 + 2);
    old[3] = (old.len() - 4) as u8;
    assert_eq!(stream(&records(&old, 9000), false), found(Kind::Tls, ""));
}

#[test]
fn what_is_no_hello_is_no_tls() {
    let good = records(&hello(Some("a.example"), 0), 9000);
    for (at, byte) in [(0, 23), (1, 2), (3, 0x41), (5, 2), (6, 1), (43, 255), (77, 255)] {
        let mut bent = good.clone();
        bent[at] = byte;
        assert_eq!(stream(&bent, true), Look::Nothing, "byte {at}");
    }
    assert_eq!(
        stream(&[22, 3, 1, 0, 0, 22, 3, 1], false),
        Look::Nothing,
        "a record of nothing"
    );
    // Another kind of record in between.
    let mut cut = records(&hello(Some("a.example"), 0), 50);
    cut[55] = 23;
    assert_eq!(stream(&cut, false), Look::Nothing);
}

#[test]
fn an_http_request_is_read_to_the_end_of_its_head() {
    let request = b"GET /a?b HTTP/1.1\r\nAccept: */*\r\nhOsT: Www.Example.org:8080\r\nX: y\r\n\r\n";
    grows(request, &found(Kind::Http, "www.example.org"));
    for method in ["get", "POST", "hEaD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE"] {
        let request = format!("{method} / HTTP/1.0\nHost:a.example\n\n");
        grows(request.as_bytes(), &found(Kind::Http, "a.example"));
    }
    let all = attributes(request);
    let all: Vec<_> = all.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(
        all,
        [
            (":method", "GET"),
            (":path", "/a?b"),
            ("accept", "*/*"),
            ("host", "Www.Example.org:8080"),
            ("x", "y")
        ]
    );
    assert!(attributes(b"\x16\x03\x01").is_empty() && attributes(b"GET / HTTP/1.1").is_empty());
}

#[test]
fn an_http_request_is_http_whatever_its_host() {
    for (host, name) in [
        ("Host: 192.0.2.1", ""),
        ("Host: [2001:db8::1]:80", ""),
        ("Host:", ""),
        ("Host: a.example\r\nHost: b.example", ""),
        ("Host: a.example\r\nHost: a.example", "a.example"),
        ("X: y", ""),
        ("Host: under_score.example.", "under_score.example"),
        ("Host: bücher.example", ""),
    ] {
        let request = format!("GET / HTTP/1.1\r\n{host}\r\n\r\n");
        assert_eq!(stream(request.as_bytes(), false), found(Kind::Http, name), "{host}");
    }
}

#[test]
fn a_head_that_does_not_end_is_used_as_far_as_it_goes() {
    let begun = b"GET / HTTP/1.1\r\nHost: a.example\r\nCookie: x";
    assert_eq!(stream(begun, false), Look::More(1));
    assert_eq!(stream(begun, true), found(Kind::Http, "a.example"));
    // The end of the line has to be there: it could be a.example.net.
    assert_eq!(
        stream(b"GET / HTTP/1.1\r\nHost: a.example", true),
        found(Kind::Http, "")
    );
    assert_eq!(stream(b"GET / HTTP/1.1", true), Look::More(1));
    let long = [&b"GET / HTTP/1.1\r\nHost: a.example\r\nCookie: "[..], &[b'x'; 9000]].concat();
    assert_eq!(stream(&long[..(8 << 10) - 1], false), Look::More(1));
    assert_eq!(stream(&long[..8 << 10], false), found(Kind::Http, "a.example"));
    assert_eq!(attributes(&long).len(), 3);
    let line = [&b"GET /"[..], &[b'x'; 9000]].concat();
    assert_eq!(stream(&line, false), Look::Nothing);
    // What the line holds beside the method is between the client and a server that may be lenient.
    for line in ["GET / HTTP/2", "GET /a b HTTP/1.1", "get  ", "POST \0"] {
        let head = format!("{line}\r\nHost: a.example\r\n\r\n");
        assert_eq!(stream(head.as_bytes(), false), found(Kind::Http, "a.example"), "{line}");
        assert!(attributes(head.as_bytes()).is_empty(), "{line}");
    }
}

#[test]
fn other_streams_are_nothing_at_once() {
    for bytes in [
        &b"\0"[..],
        b"SSH-2.0-x",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"GETX / HTTP/1.1\r\n",
        b"GET\r\n",
        b"\x13BitTorrent pr0",
        b"\x16\x02",
    ] {
        assert_eq!(stream(bytes, false), Look::Nothing, "{bytes:?}");
    }
    assert_eq!(stream(b"", false), Look::More(1));
}

#[test]
fn bittorrent_is_known_by_all_its_ways() {
    grows(b"\x13BitTorrent protocol", &found(Kind::Bittorrent, ""));
    let syn = |extension: u8, more: &[u8]| {
        let mut packet = [0; 20];
        (packet[0], packet[1], packet[3], packet[17]) = (0x41, extension, 7, 1);
        [&packet[..], more].concat()
    };
    let is =
        |bytes: &[u8]| datagram(bytes).is_some_and(|found| found.kind == Kind::Bittorrent && found.domain.is_none());
    assert!(is(&syn(0, &[])));
    // Extensions, one behind the other, to the end.
    assert!(is(&syn(2, &[0, 8, 1, 2, 3, 4, 5, 6, 7, 8])) && is(&syn(1, &[2, 1, 9, 0, 0])));
    for no in [
        syn(0, &[0]),
        syn(1, &[]),
        syn(1, &[0]),
        syn(1, &[0, 2, 1]),
        syn(1, &[1, 0]),
        syn(1, &[0, 1, 1, 1]),
    ] {
        assert!(!is(&no), "{no:?}");
    }
    let mut data = syn(0, &[]);
    data[0] = 0x01;
    assert!(!is(&data) && !is(&syn(0, &[])[..19]), "only what opens a connection");
    for yes in [
        &b"d1:ad2:id20:abcdefghij0123456789e1:q4:ping1:t2:aa1:y1:qe"[..],
        b"d1:rd2:id20:mnopqrstuvwxyz123456e1:t2:aa1:y1:re",
        b"d1:eli201e5:helloe1:t2:aa1:y1:ee",
        b"d2:ip6:abcdef1:rd2:id20:mnopqrstuvwxyz123456e1:t2:aa1:y1:re",
    ] {
        assert!(is(yes));
        assert!(!is(&yes[..yes.len() - 1]));
    }
    assert!(!is(b"d1:ad2:id20:abcdefghij0123456789e1:q4:pinge") && !is(b"") && !is(b"de"));
}

/// What a name is, step by step.
fn plain(text: &[u8]) -> Option<Domain> {
    let text = std::str::from_utf8(text).ok()?;
    let text = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let crate::Address::Domain(domain) = crate::Address::parse(&text).ok()? else {
        return None;
    };
    let last = text.rsplit('.').next().unwrap_or_default();
    let usable = text.split('.').all(|label| !label.is_empty()) && !last.bytes().all(|byte| byte.is_ascii_digit());
    usable.then_some(domain)
}

proptest::proptest! {
    #[test]
    fn names_are_what_they_are_step_by_step(
        text in "[aZ0-9.]{0,6}|[a-cX_.:\\[\\]\u{e9}-]{0,6}|[0-9.]{0,9}",
        bytes in proptest::collection::vec(0u8.., 0..5),
    ) {
        proptest::prop_assert_eq!(name(text.as_bytes()), plain(text.as_bytes()));
        proptest::prop_assert_eq!(name(&bytes), plain(&bytes));
    }
}
