use sealway_v2ray::config::*;
use sealway_v2ray::trojan::Key;

use super::*;

fn users(list: &str) -> String {
    inbound(&format!(
        r#"{{"port":1,"protocol":"trojan","settings":{{"clients":[{list}]}}}}"#
    ))
}

#[test]
fn an_inbound() {
    for key in ["clients", "users"] {
        let text = inbound(&format!(
            r#"{{"port":1,"protocol":"Trojan","settings":{{"{key}":[{{"password":"password","email":"A@b","level":2,"flow":""}},
                {{"password":"other"}}],"fallbacks":[{{"dest":80,"xver":1}},{{"alpn":"h2","path":"/a","dest":"/s"}}]}}}}"#
        ));
        let InboundProtocol::Trojan(trojan) = good(&text).inbounds.remove(0).protocol else {
            panic!()
        };
        let [first, second] = trojan.users.as_slice() else {
            panic!()
        };
        assert_eq!(first.id, Key::of_password("password"));
        assert_eq!((first.email.as_str(), first.level), ("A@b", 2));
        assert_eq!(second.id, Key::of_password("other"));
        assert_eq!(trojan.fallbacks.len(), 2);
        assert_eq!(trojan.fallbacks[0].target.to, FallbackDial::Local(80));
    }
}

#[test]
fn wrong_users_are_told_with_their_place() {
    let place = "c.json:1:";
    for (list, wanted) in [
        (
            r#"{"password":""}"#,
            "inbounds[0].settings.clients[0].password: the password is empty",
        ),
        (
            r#"{"email":"a"}"#,
            "inbounds[0].settings.clients[0]: `password` is missing",
        ),
        (
            r#"{"password":"a"},{"password":"a"}"#,
            "inbounds[0].settings.clients[1].password: the user on line 1 has the same password",
        ),
        (
            r#"{"password":"a","email":"x"},{"password":"b","email":"X"}"#,
            "inbounds[0].settings.clients[1].email: the user on line 1 has the same e-mail \"X\"",
        ),
        (
            r#"{"password":"a","flow":"xtls-rprx-vision"}"#,
            "inbounds[0].settings.clients[0].flow: \"xtls-rprx-vision\" is obsolete (Trojan has no flows",
        ),
        (
            r#"{"password":"a","flow":"fast"}"#,
            "inbounds[0].settings.clients[0].flow: \"fast\" is not known here",
        ),
    ] {
        let told = bad(&users(list));
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].starts_with(place) && told[0].contains(wanted), "{told:?}");
        // The words for it never hold the password.
        assert!(!told[0].contains("\"a\""), "{told:?}");
    }
    let old = r#"{"port":1,"protocol":"trojan","settings":{"clients":[],"fallback":{"dest":80}}}"#;
    assert!(bad(&inbound(old))[0].contains("`fallback` is obsolete"));
}

const TLS: &str = r#""streamSettings":{"security":"tls"}"#;

#[test]
fn an_outbound_in_both_forms() {
    for settings in [
        r#"{"servers":[{"address":"a.example","port":443,"password":"p w","email":"e"}]}"#,
        r#"{"address":"a.example","port":443,"password":"p w","email":"e","flow":""}"#,
    ] {
        let text = outbound(&format!(r#"{{"protocol":"trojan","settings":{settings},{TLS}}}"#));
        let OutboundProtocol::Trojan(trojan) = good(&text).outbounds.remove(0).protocol else {
            panic!()
        };
        assert_eq!(
            (trojan.server.address.to_string().as_str(), trojan.server.port),
            ("a.example", 443)
        );
        assert_eq!((trojan.password.as_str(), trojan.email.as_str()), ("p w", "e"));
        assert!(!format!("{trojan:?}").contains("p w"));
    }
}

#[test]
fn wrong_servers_are_told_with_their_place() {
    let two = r#"{"servers":[{"address":"a","port":1,"password":"p"},{"address":"b","port":1,"password":"p"}]}"#;
    for (settings, wanted) in [
        (r#"{"servers":[]}"#, "there is no server here"),
        (two, "more than one server in an outbound"),
        (r#"{"address":"a","port":1}"#, "`password` is missing"),
        (
            r#"{"address":"a","port":1,"password":""}"#,
            "settings.servers[0].password: the password is empty",
        ),
        (
            r#"{"address":"a","port":1,"password":"p","flow":"xtls-rprx-direct"}"#,
            "servers[0].flow: \"xtls-rprx-direct\" is obsolete",
        ),
        ("{}", "`servers` is missing"),
    ] {
        let told = bad(&outbound(&format!(
            r#"{{"protocol":"trojan","settings":{settings},{TLS}}}"#
        )));
        assert!(told.len() == 1 && told[0].contains(wanted), "{told:?}");
    }
}

#[test]
fn a_server_far_away_without_tls_is_warned_about() {
    let to = |address: &str| {
        outbound(&format!(
            r#"{{"protocol":"trojan","settings":{{"address":"{address}","port":1,"password":"p"}}}}"#
        ))
    };
    for far in ["1.1.1.1", "a.example"] {
        let told = warned(&to(far));
        assert!(
            told.len() == 1 && told[0].contains("Trojan does not encrypt, and there is no TLS"),
            "{told:?}"
        );
    }
    for near in ["127.0.0.1", "10.1.2.3", "localhost"] {
        good(&to(near));
    }
}
