//! Numbers that are written as strings, and strings as numbers: every form that Xray reads, we read, key by key.

use sealway_v2ray::config::{File, Options, load};
use serde_json::{Value, json};

use crate::programs::{Place, Program};

/// What forms and people write for a number.
const FORMS: [&str; 12] = [
    "1", "0", "7", "\"1\"", "\" 1 \"", "\"007\"", "1.0", "1.5", "1e3", "true", "null", "\"\"",
];

fn vless(client: Value) -> Value {
    json!({"port": 1080, "protocol": "vless", "settings": {"decryption": "none", "clients": [client]}})
}

/// Configurations in which one key holds `$`.
fn keys() -> Vec<(&'static str, Value)> {
    let id = "27848739-7e62-4138-9fd3-098a63964b6b";
    let inbound = |inbound: Value| json!({"inbounds": [inbound], "outbounds": [{"protocol": "freedom", "tag": "d"}]});
    let outbound = |outbound: Value| json!({"outbounds": [outbound]});
    let socks = |settings: Value| json!({"port": 1080, "protocol": "socks", "settings": settings});
    let server = |port: Value, user: Value| json!({"vnext": [{"address": "192.0.2.1", "port": port, "users": [user]}]});
    let user = json!({"id": id, "encryption": "none"});
    let stream = |stream: Value| json!({"protocol": "freedom", "streamSettings": stream});
    let rule = |key: &str| {
        let rule = json!({"network": "tcp", key: "$", "outboundTag": "d"});
        json!({"routing": {"rules": [rule]}, "outbounds": [{"protocol": "freedom", "tag": "d"}]})
    };
    let free = |key: &str, value: Value| {
        let mut all = json!({"outbounds": [{"protocol": "freedom"}]});
        all[key] = value;
        all
    };
    vec![
        ("inbound port", inbound(json!({"port": "$", "protocol": "socks"}))),
        ("level", inbound(vless(json!({"id": id, "level": "$"})))),
        ("id", inbound(vless(json!({"id": "$"})))),
        ("e-mail", inbound(vless(json!({"id": id, "email": "$"})))),
        ("userLevel", inbound(socks(json!({"userLevel": "$"})))),
        (
            "password",
            inbound(socks(
                json!({"auth": "password", "accounts": [{"user": "u", "pass": "$"}]}),
            )),
        ),
        (
            "server port",
            outbound(json!({"protocol": "vless", "settings": server(json!("$"), user.clone())})),
        ),
        (
            "user's level",
            outbound(
                json!({"protocol": "vless", "settings": server(json!(1), json!({"id": id, "encryption": "none", "level": "$"}))}),
            ),
        ),
        (
            "alterId",
            outbound(json!({"protocol": "vmess", "settings": server(json!(1), json!({"id": id, "alterId": "$"}))})),
        ),
        (
            "mux",
            outbound(
                json!({"protocol": "vless", "settings": server(json!(1), user), "mux": {"enabled": true, "concurrency": "$"}}),
            ),
        ),
        ("mark", outbound(stream(json!({"sockopt": {"mark": "$"}})))),
        (
            "tcpFastOpen",
            outbound(stream(json!({"sockopt": {"tcpFastOpen": "$"}}))),
        ),
        (
            "fragment",
            outbound(json!({"protocol": "freedom", "settings": {"fragment": {"length": "$", "interval": 1}}})),
        ),
        (
            "handshake",
            free("policy", json!({"levels": {"0": {"handshake": "$"}}})),
        ),
        ("connIdle", free("policy", json!({"levels": {"0": {"connIdle": "$"}}}))),
        (
            "timeoutMs",
            free("dns", json!({"servers": [{"address": "192.0.2.1", "timeoutMs": "$"}]})),
        ),
        (
            "DNS port",
            free("dns", json!({"servers": [{"address": "192.0.2.1", "port": "$"}]})),
        ),
        (
            "probeInterval",
            free("observatory", json!({"subjectSelector": ["a"], "probeInterval": "$"})),
        ),
        ("rule's port", rule("port")),
        ("sourcePort", rule("sourcePort")),
        ("ruleTag", rule("ruleTag")),
    ]
}

/// What Xray takes and we do not, which can only be a slip.
const SLIPS: [(&str, &str); 4] = [
    // A listener without a port, and servers and passwords that are none.
    ("inbound port", "\"\""),
    ("server port", "null"),
    ("password", "null"),
    ("alterId", "true"),
];

#[test]
fn every_form_of_a_number_that_xray_reads_is_read() {
    if !Program::Xray.there() {
        return;
    }
    let place = Place::new();
    let mut agreed = 0;
    for (name, template) in keys() {
        let mut both = false;
        for form in FORMS {
            let text = template.to_string().replace("\"$\"", form);
            let file = File {
                name: "config.json",
                text: text.as_bytes(),
            };
            let loaded = load(&[file], &Options::default());
            let ours = loaded.config.is_some();
            // What is taken here is no question any more, once Xray has shown that the rest of the configuration is not what it refuses.
            if (ours && both) || SLIPS.contains(&(name, form)) {
                continue;
            }
            let (xray, said) = Program::Xray.reads_text(&place, &text);
            both |= ours && xray;
            assert!(ours || !xray, "{name} {form}: {:?}; {said}", loaded.problems);
        }
        agreed += usize::from(both);
    }
    assert!(agreed > 16, "of {agreed} keys only is there a form that both take");
}
