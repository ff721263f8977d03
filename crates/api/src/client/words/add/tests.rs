use super::*;

fn with(protocol: &str, settings: Value) -> Value {
    json!({ "tag": "t", "port": 7, "protocol": protocol, "settings": settings })
}

#[test]
fn what_is_sent_is_read_as_the_file_is() {
    let key = "BwcHBwcHBwcHBwcHBwcHBw==";
    let of_2022 = "2022-blake3-aes-128-gcm";
    for (protocol, settings) in [
        (
            "trojan",
            json!({ "clients": [{ "password": "p", "email": "a@b" }, { "password": "q", "level": 2 }] }),
        ),
        (
            "vless",
            json!({ "clients": [], "decryption": "none", "fallbacks": [{ "dest": 80, "xver": 1 }, { "path": "/x", "dest": "localhost:81" }, { "alpn": "h2", "dest": "/s" }] }),
        ),
        (
            "shadowsocks",
            json!({ "method": "aes-256-gcm", "password": "p", "network": "tcp,udp" }),
        ),
        (
            "shadowsocks",
            json!({ "clients": [{ "method": "aes-128-gcm", "password": "p", "email": "a@b" }] }),
        ),
        ("shadowsocks", json!({ "method": of_2022, "password": key })),
        (
            "shadowsocks",
            json!({ "method": of_2022, "password": key, "clients": [{ "password": key, "email": "a@b" }] }),
        ),
        (
            "socks",
            json!({ "auth": "password", "accounts": [{ "user": "u", "pass": "p" }], "udp": true }),
        ),
    ] {
        let file = with(protocol, settings);
        assert!(inbound(&file).is_ok(), "{file}: {:?}", inbound(&file).err());
    }
    for (protocol, settings) in [
        (
            "trojan",
            json!({ "servers": [{ "address": "192.0.2.1", "port": 1, "password": "p" }] }),
        ),
        ("trojan", json!({ "address": "192.0.2.1", "port": 1, "password": "p" })),
        (
            "shadowsocks",
            json!({ "servers": [{ "address": "192.0.2.1", "port": 1, "method": "aes-128-gcm", "password": "p" }] }),
        ),
        (
            "shadowsocks",
            json!({ "address": "192.0.2.1", "port": 1, "method": of_2022, "password": key }),
        ),
        (
            "socks",
            json!({ "servers": [{ "address": "x.example", "port": 1, "users": [{ "user": "u", "pass": "p" }] }] }),
        ),
        (
            "http",
            json!({ "address": "x.example", "port": 1, "user": "u", "pass": "p" }),
        ),
        ("freedom", json!({})),
        ("blackhole", json!({ "response": { "type": "http" } })),
    ] {
        let file = json!({ "tag": "t", "protocol": protocol, "settings": settings });
        assert!(outbound(&file).is_ok(), "{file}: {:?}", outbound(&file).err());
    }
}

#[test]
fn what_would_be_lost_is_refused() {
    let password = json!({ "address": "192.0.2.1", "port": 1, "password": "p" });
    let mux = json!({ "tag": "t", "protocol": "trojan", "settings": password, "mux": { "enabled": true } });
    assert!(outbound(&mux).is_err());
    let limited = with(
        "trojan",
        json!({ "clients": [{ "password": "p", "email": "a@b", "maxConnections": 3 }] }),
    );
    assert!(inbound(&limited).is_err());
    let mut sniffing = with("trojan", json!({ "clients": [{ "password": "p" }] }));
    assert!(inbound(&sniffing).is_ok());
    sniffing["sniffing"] = json!({ "enabled": true, "destOverride": ["tls"], "domainsExcluded": ["x.example"] });
    assert!(inbound(&sniffing).is_err());
    assert!(inbound(&with("nonsense", json!({}))).is_err());
}

#[test]
fn rules_are_sent_as_the_file_has_them() {
    let rules = vec![json!({
        "ruleTag": "r", "outboundTag": "o", "inboundTag": ["i"], "domain": ["regexp:^x", "domain:y.example", "full:z.example", "w"],
        "ip": ["192.0.2.0/24", "!198.51.100.7"], "source": ["2001:db8::/32"], "port": "1-5,7", "sourcePort": 9, "network": "tcp,udp",
        "user": ["a@b", "regexp:^c"], "protocol": ["tls"], "attrs": { ":method": "GET" }, "localOS": ["linux"]
    })];
    let balancers =
        vec![json!({ "tag": "b", "selector": ["o"], "strategy": { "type": "roundRobin" }, "fallbackTag": "f" })];
    let of_file = |rules, balancers| compiled::rules_of_file(rules, balancers).unwrap();
    let (read, balanced) = of_file(rules, balancers);
    let (again, balanced_again) = compiled::rules(&write::rules(&read, &balanced).unwrap()).unwrap();
    // Conditions about users know where they stood.
    let bare = |rules: Vec<sealway_proxy::settings::Rule>| format!("{rules:?}").replace(char::is_numeric, "");
    assert_eq!(bare(again), bare(read));
    assert_eq!(balanced_again[0].fallback, "f");
    assert_eq!(balanced_again[0].kind, balanced[0].kind);
    for lost in [
        json!({ "outboundTag": "o", "domain": "geosite:cn" }),
        json!({ "outboundTag": "o", "ip": "geoip:cn" }),
    ] {
        let (read, _) = of_file(vec![lost], Vec::new());
        assert!(write::rules(&read, &[]).is_err());
    }
}
