//! V2Ray's HTTP/2: its keys and its links.

use std::time::Duration;

use sealway_v2ray::config::{Http, Outbound, Transport};
use sealway_v2ray::h2::Settings;
use sealway_v2ray::link::Link;

use super::transports::transport;
use super::*;

fn http(settings: &str) -> Http {
    match transport(&format!(r#""network":"h2","httpSettings":{{{settings}}}"#)) {
        Transport::Http(http) => http,
        other => panic!("{other:?}"),
    }
}

#[test]
fn keys() {
    assert_eq!(http(""), Http::default());
    assert_eq!(transport(r#""network":"http""#), Transport::Http(Http::default()));
    assert_eq!(Http::default().answer, Duration::from_secs(15));
    // As forms leave what nobody has filled in.
    assert_eq!(
        http(r#""host":[""],"path":"","method":"","headers":{}"#),
        Http::default()
    );
    let all = http(
        r#""host":["a.example","b.example:8443"],"path":"a b?c","method":"POST","read_idle_timeout":10,"health_check_timeout":7,
        "headers":{"Accept":["x","y"],"X-A":"z","Host":"c","connection":["keep-alive"],"X-None":[]},"parseXForwardedFor":true"#,
    );
    let settings = Settings {
        hosts: vec!["a.example".into(), "b.example:8443".into()],
        path: "/a b?c".into(),
        method: "POST".into(),
        headers: vec![("Accept".into(), "y".into()), ("X-A".into(), "z".into())],
    };
    assert_eq!(all.settings, settings);
    assert_eq!(
        (all.idle, all.answer),
        (Some(Duration::from_secs(10)), Duration::from_secs(7))
    );
    assert!(all.parse_forwarded_for);
    assert_eq!(http(r#""host":"a.example,b.example""#).settings.hosts.len(), 2);
    let none = http(r#""read_idle_timeout":-1,"health_check_timeout":-1"#);
    assert_eq!((none.idle, none.answer), (None, Duration::from_secs(15)));
}

#[test]
fn what_no_request_could_say_is_named() {
    for (key, wrong) in [
        ("host", r#""host":["a.example","https://a.example"]"#.to_owned()),
        ("host", r#""host":["a b"]"#.to_owned()),
        ("host", r#""host":["b\u00fccher.example"]"#.to_owned()),
        ("path", format!(r#""path":"/{}""#, "a".repeat(2048))),
        ("method", r#""method":"PUT IT""#.to_owned()),
        ("method", r#""method":"connect""#.to_owned()),
        ("headers", r#""headers":{"a b":"c"}"#.to_owned()),
        ("headers", r#""headers":{"a":["b","c\nd"]}"#.to_owned()),
        ("headers", r#""headers":{"a":"\u00fc"}"#.to_owned()),
        ("host", r#""host":7"#.to_owned()),
        ("read_idle_timeout", r#""read_idle_timeout":"1s""#.to_owned()),
    ] {
        let text = format!(
            r#"{{"port":1,"protocol":"socks","streamSettings":{{"network":"http","httpSettings":{{{wrong}}}}}}}"#
        );
        let told = bad(&inbound(&text));
        let place = format!("httpSettings.{key}");
        assert!(told.len() == 1 && told[0].contains(&place), "{wrong}: {told:?}");
    }
}

fn client(stream: &str) -> String {
    outbound(&format!(
        r#"{{"protocol":"vless","settings":{{"address":"s.example","port":443,"id":"{ID}","encryption":"none"}},
        "streamSettings":{{"network":"h2",{stream}}}}}"#
    ))
}

#[test]
fn an_outbound_needs_tls() {
    good(&client(r#""security":"tls""#));
    for stream in [r#""security":"none""#, r#""httpSettings":{"path":"/p"}"#] {
        let told = bad(&client(stream));
        let wanted = "streamSettings.security: the transport http of an outbound needs tls";
        assert!(told.iter().any(|line| line.contains(wanted)), "{told:?}");
    }
    // A server in front may have ended it.
    assert!(matches!(transport(r#""network":"h2""#), Transport::Http(_)));
}

/// HTTP/3 in the list is offered like the others, and is nobody's error.
#[test]
fn names_of_application_protocols_are_offered_as_they_stand() {
    for network in ["raw", "ws", "httpupgrade", "grpc", "h2"] {
        let stream = r#""security":"tls","tlsSettings":{"alpn":["h3","h2","http/1.1"]}"#;
        let text = client(stream).replace("\"h2\",\"security", &format!("\"{network}\",\"security"));
        let tls = good(&text).outbounds.remove(0).stream.tls.unwrap();
        assert_eq!(tls.alpn, ["h3", "h2", "http/1.1"], "{network}");
    }
}

/// The outbound of a link, which comes back as the link that is expected.
#[track_caller]
fn there_and_back(text: &str, again: &str) -> Outbound {
    let link = Link::parse(text).unwrap();
    let (outbound, problems) = link.to_outbound().unwrap();
    assert_eq!(problems, []);
    let made = Link::from_outbound(&outbound).unwrap();
    assert_eq!((made.link.to_string().as_str(), made.left_out), (again, vec![]));
    outbound
}

#[test]
fn links() {
    let tail = "security=tls&encryption=none&host=a.example%2Cb.example&path=%2Fa%20b&sni=s.example#n";
    let http = format!("vless://{ID}@192.0.2.1:443?type=http&{tail}");
    let outbound = there_and_back(&http, &http);
    let Transport::Http(settings) = outbound.stream.transport else {
        panic!()
    };
    assert_eq!(settings.settings.hosts, ["a.example", "b.example"]);
    assert_eq!(settings.settings.path, "/a b");
    there_and_back(&http.replace("type=http", "type=h2"), &http);
    let trojan = "trojan://p@a.example:443?type=http&security=tls&sni=a.example#n";
    there_and_back(trojan, trojan);
    // Without `sni` the first host is asked for.
    let bare = "trojan://p@192.0.2.1:443?type=h2&host=a.example%2Cb.example#n";
    let (outbound, _) = Link::parse(bare).unwrap().to_outbound().unwrap();
    assert_eq!(outbound.stream.tls.unwrap().server_name.as_deref(), Some("a.example"));
    let open = Link::parse(&format!("vless://{ID}@192.0.2.1:443?type=http")).unwrap();
    let error = open.to_outbound().unwrap_err().to_string();
    assert!(error.contains("needs tls or reality"), "{error}");
}

#[test]
fn links_of_vmess_say_h2() {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    for word in ["h2", "http"] {
        let json = format!(
            r#"{{"v":"2","ps":"n","add":"192.0.2.1","port":"443","id":"{ID}","aid":"0","net":"{word}","type":"none",
            "host":"a.example","path":"/p","tls":"tls"}}"#
        );
        let link = Link::parse(&format!("vmess://{}", STANDARD.encode(json))).unwrap();
        let (outbound, problems) = link.to_outbound().unwrap();
        assert_eq!(problems, []);
        let Transport::Http(http) = &outbound.stream.transport else {
            panic!()
        };
        assert_eq!(
            (http.settings.host(0), http.settings.path.as_str()),
            ("a.example", "/p")
        );
        let text = link.to_string();
        let said = STANDARD.decode(text.strip_prefix("vmess://").unwrap()).unwrap();
        let said = String::from_utf8(said).unwrap();
        assert!(said.contains(r#""net":"h2""#), "{said}");
    }
}

#[test]
fn what_no_link_can_say_is_listed() {
    let stream = r#""security":"tls","httpSettings":{"method":"POST","headers":{"a":"b"},"read_idle_timeout":5}"#;
    let outbound = good(&client(stream)).outbounds.remove(0);
    let left_out = Link::from_outbound(&outbound).unwrap().left_out;
    assert_eq!(left_out, ["method", "headers", "read_idle_timeout"]);
}
