use sealway_v2ray::config::*;
use sealway_v2ray::link::Link;
use sealway_v2ray::xhttp::settings::*;
use sealway_v2ray::xhttp::xmux::Xmux;

use super::*;

fn of(settings: &str) -> String {
    outbound(&format!(
        r#"{{"protocol":"vless","settings":{{"address":"a","port":1,"id":"{ID}","encryption":"none"}},"streamSettings":{{
        "network":"xhttp","security":"tls","tlsSettings":{{"serverName":"s"}},"xhttpSettings":{{{settings}}}}}}}"#
    ))
}

fn xhttp(settings: &str) -> Xhttp {
    match good(&of(settings)).outbounds.remove(0).stream.transport {
        Transport::Xhttp(xhttp) => *xhttp,
        other => panic!("{other:?}"),
    }
}

#[test]
fn nothing_set_is_what_the_sheet_says() {
    let read = xhttp("").settings;
    let usual = Settings::default();
    let keys = |settings: &Settings| (settings.session.key.clone(), settings.seq.key.clone());
    assert_eq!(keys(&read), ("x_session".into(), "x_seq".into()));
    let bare = Settings {
        session: usual.session.clone(),
        seq: usual.seq.clone(),
        ..read.clone()
    };
    assert_eq!(bare, usual);
    assert_eq!(xhttp(r#""path":"p/q/?a=b""#).settings.path, "/p/q");
    assert_eq!(xhttp(r#""path":"p/q/?a=b""#).settings.query, "a=b");
    assert_eq!(
        (read.padding.bytes, read.each_post_bytes),
        (Span::new(100, 1000), Span::just(1_000_000))
    );
    assert_eq!(read.stream_up_server_secs, Some(Span::new(20, 80)));
    assert_eq!(read.xmux.max_connections, Span::just(3));
}

#[test]
fn every_key() {
    let read = xhttp(
        r#""host":"h","path":"/p","mode":"packet-up","headers":{"A":"b"},"xPaddingBytes":"10-20","xPaddingObfsMode":true,
        "xPaddingKey":"k","xPaddingHeader":"X-H","xPaddingPlacement":"cookie","xPaddingMethod":"tokenish","noGRPCHeader":true,
        "noSSEHeader":true,"scMaxEachPostBytes":"1000-2000","scMinPostsIntervalMs":5,"scMaxBufferedPosts":9,
        "scStreamUpServerSecs":-1,"serverMaxHeaderBytes":4096,"uplinkHTTPMethod":"put","sessionIDPlacement":"header",
        "seqPlacement":"cookie","seqKey":"n","sessionIDTable":"hex","sessionIDLength":"16-32","uplinkDataPlacement":"header",
        "uplinkDataKey":"X-D","uplinkChunkSize":"100-200","xmux":{"maxConcurrency":"2-4","hKeepAlivePeriod":-1}"#,
    );
    let want = Settings {
        host: "h".into(),
        path: "/p".into(),
        query: String::new(),
        mode: Mode::PacketUp,
        headers: vec![("A".into(), "b".into())],
        padding: Padding {
            bytes: Span::new(10, 20),
            obfuscation: Some(Obfuscation {
                place: PaddingPlace::Cookie,
                key: "k".into(),
                header: "X-H".into(),
                method: PaddingMethod::Tokenish,
            }),
        },
        no_grpc_header: true,
        no_sse_header: true,
        each_post_bytes: Span::new(1000, 2000),
        min_posts_interval_ms: Span::just(5),
        max_buffered_posts: 9,
        stream_up_server_secs: None,
        max_header_bytes: 4096,
        uplink_method: "PUT".into(),
        session: Placed {
            place: Place::Header,
            key: "X-Session".into(),
        },
        seq: Placed {
            place: Place::Cookie,
            key: "n".into(),
        },
        table: Some(Table {
            alphabet: "0123456789abcdef".into(),
            length: Span::new(16, 32),
        }),
        data: Data {
            place: DataPlace::Header,
            header: "X-D".into(),
            cookie: "X-D".into(),
            piece: Span::new(100, 200),
        },
        xmux: Xmux {
            max_concurrency: Span::new(2, 4),
            max_connections: Span::default(),
            reuse_times: Span::default(),
            request_times: Span::default(),
            reusable_secs: Span::default(),
            keep_alive_secs: -1,
        },
    };
    assert_eq!(read.settings, want);
}

/// What stands beside `extra` does not count, but for three keys.
#[test]
fn extra_replaces_all_else() {
    let read = xhttp(
        r#""host":"h","path":"/p","mode":"stream-up","xPaddingBytes":7,"noSSEHeader":true,
        "extra":{"host":"x","path":"/x","mode":"packet-up","scMinPostsIntervalMs":9}"#,
    );
    let settings = read.settings;
    assert_eq!(
        (settings.host.as_str(), settings.path.as_str(), settings.mode),
        ("h", "/p", Mode::StreamUp)
    );
    assert_eq!(
        (settings.padding.bytes, settings.no_sse_header),
        (Span::new(100, 1000), false)
    );
    assert_eq!(settings.min_posts_interval_ms, Span::just(9));
}

#[test]
fn where_what_comes_down_is_asked_for() {
    let text = of(
        r#""mode":"stream-up","downloadSettings":{"address":"b.example","port":8443,"network":"xhttp","security":"tls",
        "tlsSettings":{"serverName":"t"},"xhttpSettings":{"path":"/d"}}"#,
    );
    let download = good(&text).outbounds.remove(0).stream.download.unwrap();
    assert_eq!(
        (download.address.to_string().as_str(), download.port),
        ("b.example", 8443)
    );
    assert!(matches!(&download.stream.transport, Transport::Xhttp(own) if own.settings.path == "/d"));
    for (wrong, what) in [
        (
            r#""mode":"stream-one","downloadSettings":{"address":"b","port":1,"network":"xhttp"}"#,
            "stream-one",
        ),
        (
            r#""downloadSettings":{"port":1,"network":"xhttp"}"#,
            "`address` is missing",
        ),
        (
            r#""downloadSettings":{"address":"b","port":1,"network":"ws"}"#,
            "carried by xhttp",
        ),
        (
            r#""downloadSettings":{"address":"b","port":1,"network":"xhttp",
            "xhttpSettings":{"downloadSettings":{"address":"b","port":1,"network":"xhttp"}}}"#,
            "of their own",
        ),
    ] {
        let told = bad(&of(wrong));
        assert!(told.iter().any(|line| line.contains(what)), "{told:?}");
    }
}

#[test]
fn what_is_wrong_is_told_with_its_key() {
    for (wrong, key) in [
        (r#""headers":{"Host":"a"}"#, "headers"),
        (r#""headers":{"a b":"c"}"#, "headers"),
        (r#""path":"/a b""#, "path"),
        (r#""host":"a b""#, "host"),
        (r#""mode":"packets""#, "mode"),
        (r#""xPaddingBytes":"0-10""#, "xPaddingBytes"),
        (r#""xPaddingBytes":"a""#, "xPaddingBytes"),
        (r#""scMaxEachPostBytes":-1"#, "scMaxEachPostBytes"),
        (r#""serverMaxHeaderBytes":1000000"#, "serverMaxHeaderBytes"),
        (r#""mode":"stream-up","uplinkHTTPMethod":"GET""#, "uplinkHTTPMethod"),
        (
            r#""mode":"stream-one","uplinkDataPlacement":"cookie""#,
            "uplinkDataPlacement",
        ),
        (r#""sessionIDTable":"hex","sessionIDLength":4"#, "sessionIDTable"),
        (r#""sessionIDTable":"a/","sessionIDLength":40"#, "sessionIDTable"),
        (r#""sessionIDKey":"a b""#, "sessionIDKey"),
        (
            r#""xmux":{"maxConcurrency":1,"maxConnections":1}"#,
            "xmux.maxConnections",
        ),
        (r#""extra":"text""#, "extra"),
        (r#""extra":{"xPaddingBytes":-1}"#, "extra.xPaddingBytes"),
    ] {
        let told = bad(&of(wrong));
        assert!(told[0].contains(&format!("xhttpSettings.{key}")), "{wrong}: {told:?}");
    }
    let h3 = of("").replace(r#""serverName":"s""#, r#""serverName":"s","alpn":["h3"]"#);
    let told = bad(&h3);
    assert!(
        told[0].contains("not supported yet: HTTP/3") && told[0].contains("h2"),
        "{told:?}"
    );
    // HTTP/3 beside others is one of several that the ends may agree on.
    good(&of("").replace(r#""serverName":"s""#, r#""serverName":"s","alpn":["h2","h3"]"#));
}

/// What a link says is what the outbound had.
#[test]
fn links_both_ways() {
    for settings in [
        "",
        r#""host":"h","path":"/p?a=b","mode":"stream-up""#,
        r#""mode":"packet-up","headers":{"A":"b"},"xPaddingBytes":"10-20","xPaddingObfsMode":true,"xPaddingMethod":"tokenish",
        "xPaddingPlacement":"header","noGRPCHeader":true,"noSSEHeader":true,"scMaxEachPostBytes":"1000-2000",
        "scMinPostsIntervalMs":5,"uplinkHTTPMethod":"PUT","sessionIDPlacement":"header","seqPlacement":"query",
        "sessionIDTable":"hex","sessionIDLength":32,"uplinkDataPlacement":"cookie","xmux":{"maxConcurrency":"2-4"}"#,
    ] {
        let outbound = good(&of(settings)).outbounds.remove(0);
        let made = Link::from_outbound(&outbound).unwrap();
        assert_eq!(made.left_out, Vec::<&str>::new(), "{settings}");
        let text = made.link.to_string();
        let (again, _) = Link::parse(&text).unwrap().to_outbound().unwrap();
        let settings_of = |outbound: &Outbound| match &outbound.stream.transport {
            Transport::Xhttp(xhttp) => xhttp.settings.clone(),
            other => panic!("{other:?}"),
        };
        let mut want = settings_of(&outbound);
        // The other place has no name for what is not there.
        want.data.header = settings_of(&again).data.header;
        assert_eq!(settings_of(&again), want, "{text}");
    }
    let text =
        format!("vless://{ID}@h:1?encryption=none&type=splithttp&path=%2Fp&extra=%7B%22scMinPostsIntervalMs%22%3A7%7D");
    let (outbound, _) = Link::parse(&text).unwrap().to_outbound().unwrap();
    let Transport::Xhttp(xhttp) = &outbound.stream.transport else {
        panic!()
    };
    assert_eq!(xhttp.settings.min_posts_interval_ms, Span::just(7));
    let wrong = format!("vless://{ID}@h:1?encryption=none&type=xhttp&extra=nonsense");
    assert!(
        Link::parse(&wrong)
            .unwrap()
            .to_outbound()
            .unwrap_err()
            .to_string()
            .contains("extra")
    );
}
