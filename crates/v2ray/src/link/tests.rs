mod properties;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use super::*;
use crate::config::{EarlyData, OutboundProtocol, Transport, VmessSecurity};

const ID: &str = "b831381d-6324-4d53-ad4f-8cda48b30811";

fn parse(text: &str) -> Link {
    Link::parse(text).unwrap()
}

#[test]
fn a_vless_link() {
    let text = format!(
        "vless://{ID}@[2001:db8::1]:443?type=ws&security=tls&encryption=none&alpn=h2%2Chttp%2F1.1&fp=&host=h.example&path=%2Fa%3Fed%3D2048&sni=s.example#%E5%90%8D%20a"
    );
    let link = parse(&text);
    assert_eq!(
        (link.scheme, link.form, link.name.as_str()),
        (Scheme::Vless, Form::Uri, "名 a")
    );
    assert_eq!((link.address.to_string().as_str(), link.port), ("2001:db8::1", 443));
    assert_eq!(
        (link.network.as_str(), link.security.as_str(), link.encryption.as_str()),
        ("ws", "tls", "none")
    );
    assert_eq!(link.parameter("alpn"), "h2,http/1.1");
    assert_eq!(link.parameter("path"), "/a?ed=2048");
    assert!(!link.parameters.contains_key("fp"));
    // Written in one order, without what is empty.
    assert_eq!(link.to_string(), text.replace("&fp=", ""));

    let (outbound, problems) = link.to_outbound().unwrap();
    assert_eq!(problems, []);
    assert_eq!(outbound.tag, "名 a");
    let OutboundProtocol::Vless(vless) = &outbound.protocol else {
        panic!()
    };
    assert_eq!((vless.id.to_string().as_str(), vless.server.port), (ID, 443));
    let Transport::WebSocket(upgrade) = &outbound.stream.transport else {
        panic!()
    };
    assert_eq!(
        (upgrade.path.as_str(), upgrade.host.as_deref()),
        ("/a", Some("h.example"))
    );
    assert_eq!(upgrade.early_data, Some(EarlyData::Whole { limit: 2048 }));
    let tls = outbound.stream.tls.as_ref().unwrap();
    assert_eq!((tls.server_name.as_deref(), tls.alpn.len()), (Some("s.example"), 2));
    let made = Link::from_outbound(&outbound).unwrap();
    assert_eq!((made.link, made.left_out), (link, vec![]));
}

/// The name of a link becomes a tag, which wrote lines of the access log.
#[test]
fn control_characters_are_refused() {
    let uri = |query: &str, name: &str| format!("vless://{ID}@192.0.2.1:443?encryption=none&{query}#{name}");
    let json = |name: &str| {
        let json = format!(r#"{{"v":"2","ps":"{name}","add":"192.0.2.1","port":443,"id":"{ID}"}}"#);
        format!("vmess://{}", STANDARD.encode(json))
    };
    for (text, wanted) in [
        (
            uri("", "ab%0Ac"),
            "the name of the link is wrong: character 3 of it is the control character \\u{a}",
        ),
        (
            uri("", "%1B[2J"),
            "the name of the link is wrong: character 1 of it is the control character \\u{1b}",
        ),
        (
            uri("", "%E2%80%AEgpj"),
            "the name of the link is wrong: character 1 of it is the control character \\u{202e}",
        ),
        (
            json("a\\nb"),
            "the name of the link is wrong: character 2 of it is the control character \\u{a}",
        ),
        (
            uri("type=ws&host=h%0D%0AX:y", "n"),
            "a parameter of the link is wrong: character 2 of it is the control character \\u{d}",
        ),
    ] {
        assert_eq!(Link::parse(&text).unwrap_err().to_string(), wanted, "{text}");
    }
    assert_eq!(parse(&uri("extra=%7B%0A%7D", "n")).parameter("extra"), "{\n}");
}

#[test]
fn a_vmess_link_of_the_older_form() {
    let json = format!(
        r#"{{"v":"2","ps":"a b","add":"192.0.2.1","port":443,"id":"{ID}","aid":0,"net":"ws","type":"none","host":"h","path":"/p","tls":"tls","sni":"s","alpn":"","fp":"chrome","insecure":"1"}}"#
    );
    for body in [
        STANDARD.encode(&json),
        STANDARD_NO_PAD.encode(&json),
        URL_SAFE_NO_PAD.encode(&json),
        STANDARD.encode(&json).chars().flat_map(|c| [c, '\n']).collect(),
    ] {
        let link = parse(&format!("  VMESS://{body} "));
        assert_eq!(
            (link.form, link.name.as_str(), link.encryption.as_str()),
            (Form::Json, "a b", "auto")
        );
        assert_eq!((link.network.as_str(), link.security.as_str()), ("ws", "tls"));
        assert_eq!(
            (link.parameter("headerType"), link.parameter("allowInsecure")),
            ("none", "1")
        );
        assert_eq!(parse(&link.to_string()), link);
        let (outbound, problems) = link.to_outbound().unwrap();
        let OutboundProtocol::Vmess(vmess) = outbound.protocol else {
            panic!()
        };
        assert_eq!(vmess.security, VmessSecurity::Auto);
        // The fingerprint, and that nothing is checked.
        assert_eq!(problems.len(), 2);
    }
    let link = parse(&format!(
        "vmess://{}",
        STANDARD.encode(format!(r#"{{"add":"a","port":"1","id":"{ID}"}}"#))
    ));
    assert_eq!(
        (link.network.as_str(), link.security.as_str(), link.encryption.as_str()),
        ("raw", "none", "auto")
    );
    let grpc = format!(
        r#"{{"add":"a","port":"1","id":"{ID}","net":"grpc","path":"svc","type":"multi","host":"auth","scy":"none","aid":"64"}}"#
    );
    let link = parse(&format!("vmess://{}", STANDARD.encode(grpc)));
    assert_eq!(
        (
            link.parameter("serviceName"),
            link.parameter("mode"),
            link.parameter("authority")
        ),
        ("svc", "multi", "auth")
    );
    assert_eq!((link.alter_id, parse(&link.to_string())), (64, link.clone()));
}

#[test]
fn a_vmess_link_of_the_uri_form() {
    let link = parse(&format!(
        "vmess://{ID}@a.example:1/?type=httpupgrade&security=tls&insecure=1#x"
    ));
    assert_eq!(
        (link.form, link.encryption.as_str(), link.parameter("allowInsecure")),
        (Form::Uri, "auto", "1")
    );
    assert_eq!(
        link.to_string(),
        format!("vmess://{ID}@a.example:1?type=httpupgrade&security=tls&allowInsecure=1#x")
    );
    let aes = parse(&format!("vmess://{ID}@a.example:1?encryption=aes-128-gcm"));
    assert_eq!(
        aes.to_string(),
        format!("vmess://{ID}@a.example:1?type=tcp&security=none&encryption=aes-128-gcm")
    );
}

#[test]
fn a_link_with_the_http_header() {
    for (query, hosts, paths) in [
        ("", &["www.baidu.com", "www.bing.com"][..], &["/"][..]),
        (
            "&host=a.example%2Cb.example&path=%2Fa%2C%2Fb",
            &["a.example", "b.example"],
            &["/a", "/b"],
        ),
        ("&path=%2Fa", &["www.baidu.com", "www.bing.com"], &["/a"]),
        ("&host=a.example", &["a.example"], &["/"]),
    ] {
        let text = format!("vless://{ID}@127.0.0.1:1?type=tcp&security=none&encryption=none&headerType=http{query}");
        let link = parse(&text);
        let (outbound, problems) = link.to_outbound().unwrap();
        assert_eq!(problems, []);
        let Transport::RawHttp(front) = &outbound.stream.transport else {
            panic!()
        };
        assert_eq!(front.request.paths, paths);
        let host = front.request.headers.iter().find(|(name, _)| name == "Host").unwrap();
        assert_eq!(host.1, hosts);
        assert_eq!(front.request.headers.len(), 5);
        let made = Link::from_outbound(&outbound).unwrap();
        assert_eq!((made.link, made.left_out), (link, vec![]));
    }
    // What no link can say.
    let usual = r#""User-Agent":"a","Accept-Encoding":"gzip, deflate","Connection":"keep-alive","Pragma":"no-cache""#;
    let defaults = crate::http::front::Request::default().headers;
    let hostless = defaults.iter().filter(|(name, _)| name != "Host").cloned();
    let hostless = serde_json::to_string(&hostless.collect::<BTreeMap<_, _>>()).unwrap();
    for request in [
        r#"{"method":"POST"}"#.to_owned(),
        r#"{"path":["/a,b"]}"#.to_owned(),
        r#"{"path":["/a",",/b"]}"#.to_owned(),
        format!(r#"{{"headers":{{"Host":"a.example",{usual}}}}}"#),
        format!(r#"{{"headers":{hostless}}}"#),
        format!(r#"{{"headers":{}}}"#, hostless.replacen('{', r#"{"Host":["a,b"],"#, 1)),
        format!(r#"{{"headers":{}}}"#, hostless.replacen('{', r#"{"host":["a"],"#, 1)),
    ] {
        let text = format!(
            r#"{{"protocol":"vless","settings":{{"address":"127.0.0.1","port":1,"id":"{ID}","encryption":"none"}},"streamSettings":{{"rawSettings":{{"header":{{"type":"http","request":{request}}}}}}}}}"#
        );
        let (outbound, _) = crate::config::read_outbound(&text);
        assert_eq!(
            Link::from_outbound(&outbound.unwrap()).unwrap().left_out,
            ["header.request"],
            "{request}"
        );
    }
}

#[test]
fn a_trojan_link() {
    let text = "trojan://p%40%3Aw%20%2F@[2001:db8::1]:443?type=ws&security=tls&path=%2Fa&sni=s.example#x";
    let link = parse(text);
    assert_eq!(
        (link.scheme, &link.user),
        (Scheme::Trojan, &Credential::Password("p@:w /".into()))
    );
    assert_eq!((link.security.as_str(), link.encryption.as_str()), ("tls", ""));
    assert_eq!(link.to_string(), text);
    assert!(!format!("{link:?}").contains("p@"));
    let (outbound, problems) = link.to_outbound().unwrap();
    assert_eq!(problems, []);
    let OutboundProtocol::Trojan(trojan) = &outbound.protocol else {
        panic!()
    };
    assert_eq!((trojan.password.as_str(), trojan.server.port), ("p@:w /", 443));
    assert!(outbound.stream.tls.is_some());
    let made = Link::from_outbound(&outbound).unwrap();
    assert_eq!((made.link, made.left_out), (link, vec![]));
    // TLS is what a link means that does not say so; one without it has to say so.
    let short = parse("trojan://p@a.example:443#n");
    assert_eq!(short.security, "tls");
    assert_eq!(short.to_string(), "trojan://p@a.example:443?type=tcp&security=tls#n");
    let plain = parse("trojan://p@127.0.0.1:443?security=none");
    let (outbound, _) = plain.to_outbound().unwrap();
    assert!(outbound.stream.tls.is_none());
    assert_eq!(Link::from_outbound(&outbound).unwrap().link, plain);
    // An "@" in the password that nobody has encoded, and a flow, which there is none of.
    assert_eq!(parse("trojan://a@b@h:1").user, Credential::Password("a@b".into()));
    let error = parse("trojan://p@h:1?flow=xtls-rprx-vision").to_outbound().unwrap_err();
    assert!(
        error.to_string().contains("\"xtls-rprx-vision\" is obsolete"),
        "{error}"
    );
}

#[test]
fn grpc_links_come_back() {
    let transport = |link: &Link| {
        let (outbound, _) = link.to_outbound().unwrap();
        let again = Link::from_outbound(&outbound).unwrap();
        assert_eq!(again.left_out, Vec::<&str>::new());
        for name in ["serviceName", "mode", "authority"] {
            assert_eq!(again.link.parameter(name), link.parameter(name), "{name}");
        }
        match outbound.stream.transport {
            Transport::Grpc(grpc) => grpc,
            other => panic!("{other:?}"),
        }
    };
    let uri = |query: &str| parse(&format!("vless://{ID}@h:1?type=grpc&{query}"));
    let link = uri("serviceName=%2Fx%20y%2FT%7CM&mode=multi&authority=a.example&security=tls");
    let grpc = transport(&link);
    assert_eq!(grpc.service_name, "/x y/T|M");
    assert_eq!((grpc.authority.as_deref(), grpc.multi_mode), (Some("a.example"), true));
    let grpc = transport(&uri("serviceName=s&mode=gun"));
    assert_eq!((grpc.authority.as_deref(), grpc.multi_mode), (None, false));
    let json = format!(
        r#"{{"v":"2","add":"a","port":"1","id":"{ID}","net":"grpc","path":"svc","type":"multi","host":"auth","tls":"tls"}}"#
    );
    let grpc = transport(&parse(&format!("vmess://{}", STANDARD.encode(json))));
    assert_eq!(grpc.service_name, "svc");
    assert_eq!((grpc.authority.as_deref(), grpc.multi_mode), (Some("auth"), true));
}

#[test]
fn what_cannot_be_done_is_named() {
    for (scheme, text) in [("tuic", "tuic://a@h:1#x"), ("hysteria2", "hy2://p@h:1")] {
        assert_eq!(Link::parse(text), Err(LinkError::NotSupported { scheme }));
    }
    assert_eq!(Link::parse("https://a"), Err(LinkError::Scheme));
    assert_eq!(Link::parse(""), Err(LinkError::Scheme));
    assert_eq!(
        Link::parse(&format!("vless://{}", "a".repeat(MAX_LEN))),
        Err(LinkError::TooLong)
    );
    for (query, what) in [
        ("type=kcp&seed=x", "not supported yet: the transport mkcp"),
        ("security=reality&pbk=k", "`publicKey`"),
        (
            "security=reality&type=ws&pbk=B6N8vBQgk8i3VdwbEOhstCY3StFqqFPtC9_AsrhtHHw",
            "raw, grpc, http and xhttp only",
        ),
        (
            "encryption=mlkem768x25519plus.native.1rtt.k",
            "not supported yet: VLESS encryption",
        ),
        ("security=tls&ech=x", "not supported yet: encrypted client hello"),
        ("type=xhttp&security=tls&alpn=h3", "not supported yet: HTTP/3"),
    ] {
        let link = parse(&format!("vless://{ID}@h:1?{query}"));
        // Nothing is lost for all that.
        assert_eq!(parse(&link.to_string()), link);
        let error = link.to_outbound().unwrap_err().to_string();
        assert!(error.contains(what), "{error}");
    }
}

#[test]
fn wrong_parts_are_named() {
    for (text, wanted) in [
        ("vless://h:1", "the id"),
        ("vless://@h:1", "the id"),
        ("trojan://h:1", "the password"),
        ("trojan://@h:1", "the password"),
        ("trojan://%ff@h:1", "the password"),
        ("trojan://", "the body"),
        (&format!("vless://{ID}@h"), "the port"),
        (&format!("vless://{ID}@h:0"), "the port"),
        (&format!("vless://{ID}@h:65536"), "the port"),
        (&format!("vless://{ID}@h:+1"), "the port"),
        (&format!("vless://{ID}@::1:1"), "the host"),
        (&format!("vless://{ID}@bücher.example:1"), "the host"),
        (&format!("vless://{ID}@[::1:1"), "the host"),
        (&format!("vless://{ID}@h:1?a=%ff"), "the query"),
        (&format!("vless://{ID}@h:1#%ff"), "the name"),
        ("vmess://%%%", "the body"),
        ("vmess://e30x", "the body"),
        ("vmess://W10=", "the body"),
        ("vmess://e30=", "the id"),
        ("vmess://", "the body"),
        ("VLESS:// ", "the body"),
    ] {
        match Link::parse(text) {
            Err(LinkError::Part { part, .. }) => assert_eq!(part, wanted, "{text}"),
            other => panic!("{text}: {other:?}"),
        }
    }
}

#[test]
fn a_flow_goes_there_and_back() {
    for flow in ["xtls-rprx-vision", "xtls-rprx-vision-udp443"] {
        let link = parse(&format!(
            "vless://{ID}@h:1?security=tls&sni=a.example&fp=chrome&flow={flow}"
        ));
        let (outbound, _) = link.to_outbound().unwrap();
        let made = Link::from_outbound(&outbound).unwrap();
        assert_eq!(made.link.parameter("flow"), flow);
        assert_eq!(made.left_out, Vec::<&str>::new());
    }
    let text = format!(
        r#"{{"protocol":"vless","settings":{{"address":"a","port":1,"id":"{ID}","encryption":"none","flow":"xtls-rprx-vision",
        "testseed":[1,2,3,4],"testpre":2}},"streamSettings":{{"security":"tls"}}}}"#
    );
    let (outbound, _) = crate::config::read_outbound(&text);
    let made = Link::from_outbound(&outbound.unwrap()).unwrap();
    assert_eq!(made.left_out, ["settings.testseed", "settings.testpre"]);
    for query in ["flow=xtls-rprx-vision", "flow=xtls-rprx-vision&security=tls&type=ws"] {
        let error = parse(&format!("vless://{ID}@h:1?{query}")).to_outbound().unwrap_err();
        assert!(error.to_string().contains("the flow xtls-rprx-vision"), "{error}");
    }
}

/// Of the outbound: the transport, the path, and the name for TLS.
fn carried(text: &str) -> (&'static str, String, Option<String>) {
    let (outbound, problems) = parse(text).to_outbound().unwrap();
    assert_eq!(problems, [], "{text}");
    let (kind, path) = match outbound.stream.transport {
        Transport::Raw => ("raw", String::new()),
        Transport::WebSocket(upgrade) => ("ws", upgrade.path),
        other => panic!("{other:?}"),
    };
    (kind, path, outbound.stream.tls.and_then(|tls| tls.server_name))
}

#[test]
fn without_sni_the_name_of_the_request_is_asked_for() {
    let at = |query: &str| carried(&format!("vless://{ID}@192.0.2.1:443?type=ws&security=tls{query}")).2;
    assert_eq!(at("&host=h.example&sni=s.example").as_deref(), Some("s.example"));
    assert_eq!(at("&host=h.example").as_deref(), Some("h.example"));
    assert_eq!(at("&host=192.0.2.7"), None);
    assert_eq!(at(""), None);
    // So an outbound that dials another name than it asks for says both.
    let text = format!(
        r#"{{"protocol":"vless","settings":{{"address":"a.example","port":1,"id":"{ID}","encryption":"none"}},
            "streamSettings":{{"network":"ws","security":"tls","wsSettings":{{"host":"h.example"}}}}}}"#
    );
    let (outbound, _) = crate::config::read_outbound(&text);
    let made = Link::from_outbound(&outbound.unwrap()).unwrap().link;
    assert_eq!(
        (made.parameter("host"), made.parameter("sni")),
        ("h.example", "a.example")
    );
}

#[test]
fn whether_there_is_tls_may_be_yes_or_no() {
    for (word, wanted) in [
        ("true", "tls"),
        ("\"1\"", "tls"),
        ("false", "none"),
        ("0", "none"),
        ("\"\"", "none"),
        ("\"tls\"", "tls"),
    ] {
        let json = format!(r#"{{"add":"a","port":1,"id":"{ID}","tls":{word}}}"#);
        let link = parse(&format!("vmess://{}", STANDARD.encode(json)));
        assert_eq!(link.security, wanted, "{word}");
    }
}

#[test]
fn older_words_of_trojan_links() {
    let link = "trojan://p@192.0.2.1:443?ws=1&wspath=%2Fa&peer=s.example";
    assert_eq!(carried(link), ("ws", "/a".to_owned(), Some("s.example".to_owned())));
    assert_eq!(
        parse(link).to_string(),
        "trojan://p@192.0.2.1:443?type=ws&security=tls&path=%2Fa&sni=s.example"
    );
    // What stands there in today's words counts.
    let both = "trojan://p@a:1?type=tcp&ws=1&sni=s.example&peer=x.example";
    let (outbound, problems) = parse(both).to_outbound().unwrap();
    assert_eq!(outbound.stream.tls.unwrap().server_name.as_deref(), Some("s.example"));
    assert_eq!(problems[0].text, "the link says \"ws\", which nothing reads");
}

#[test]
fn names_to_verify_go_there_and_back() {
    let link = parse(&format!(
        "vless://{ID}@a:1?security=tls&sni=s.example&vcn=b.example,c.example"
    ));
    let (outbound, _) = link.to_outbound().unwrap();
    assert_eq!(
        outbound.stream.tls.as_ref().unwrap().verify_names,
        ["b.example", "c.example"]
    );
    let made = Link::from_outbound(&outbound).unwrap();
    assert_eq!((made.link, made.left_out), (link, vec![]));
}

#[test]
fn only_what_is_wrong_with_a_link_is_its_error() {
    let error = parse(&format!("vless://{ID}@a:1?security=tls&fp=chrome&ech=x"))
        .to_outbound()
        .unwrap_err();
    assert!(error.to_string().contains("encrypted client hello"), "{error}");
    assert!(!error.to_string().contains("fingerprint"), "{error}");
}

#[test]
fn what_no_link_can_say_is_listed() {
    let text = format!(
        r#"{{"protocol":"vmess","sendThrough":"127.0.0.1","settings":{{"address":"a","port":1,"id":"{ID}","experiments":"AuthenticatedLength"}},"streamSettings":{{"network":"ws","security":"tls","wsSettings":{{"headers":{{"a":"b"}},"maxEarlyData":9}},"tlsSettings":{{"minVersion":"1.3"}},"sockopt":{{"mark":1}}}}}}"#
    );
    let (outbound, problems) = crate::config::read_outbound(&text);
    assert_eq!(problems, []);
    assert_eq!(
        Link::from_outbound(&outbound.unwrap()).unwrap().left_out,
        [
            "settings.experiments",
            "maxEarlyData",
            "headers",
            "minVersion and maxVersion",
            "sendThrough",
            "streamSettings.sockopt"
        ]
    );
    let (freedom, _) = crate::config::read_outbound(r#"{"protocol":"freedom"}"#);
    let error = Link::from_outbound(&freedom.unwrap()).unwrap_err();
    assert_eq!(error.to_string(), "there is no share link for a freedom outbound");
}

#[test]
fn a_path_may_hold_a_space() {
    for space in [" ", "%20"] {
        for network in ["ws", "httpupgrade"] {
            let link = parse(&format!(
                "vless://{ID}@h:1?type={network}&path=/a{space}b?ed=64#my{space}name"
            ));
            assert_eq!((link.parameter("path"), link.name.as_str()), ("/a b?ed=64", "my name"));
            assert_eq!(parse(&link.to_string()), link);
            let (outbound, _) = link.to_outbound().unwrap();
            let (Transport::WebSocket(upgrade) | Transport::HttpUpgrade(upgrade)) = &outbound.stream.transport else {
                panic!()
            };
            // As it is sent.
            assert_eq!(upgrade.path, "/a%20b");
        }
    }
}
