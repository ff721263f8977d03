use prost::Message;
use sealway_proxy::settings::{Listen, Settings};
use serde_json::json;

use super::*;
use crate::describe;
use crate::proto::net::{PortList, PortRange};
use crate::proto::xray::app::proxyman::ReceiverConfig;
use crate::proto::xray::app::router::{Cidr, CidrRule, Config, GeoIp, IpRule, RoutingRule, ip_rule};
use crate::proto::xray::proxy::{dokodemo, shadowsocks, trojan};
use crate::proto::{User, ip_bytes};

const ID: &str = "b831381d-6324-4d53-ad4f-8cda48b30811";
/// 32 bytes, each 7.
const KEY: &str = "BwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwcHBwc";

fn cidr(text: &str) -> Cidr {
    let (ip, prefix) = text.split_once('/').unwrap();
    Cidr {
        ip: ip_bytes(ip.parse().unwrap()),
        prefix: prefix.parse().unwrap(),
    }
}

#[test]
fn networks_are_read_in_both_forms() {
    // The bytes of the first three are messages themselves.
    let texts = [
        "10.2.3.4/32",
        "10.0.16.0/20",
        "10.2.0.0/16",
        "192.0.2.0/24",
        "2001:db8::/32",
    ];
    for text in texts {
        let earlier = GeoIp {
            cidr: vec![cidr(text)],
            ..Default::default()
        };
        assert_eq!(routing::ips(&earlier.encode_to_vec()).unwrap(), [text]);
        let later = IpRule {
            value: Some(ip_rule::Value::Custom(CidrRule {
                cidr: Some(cidr(text)),
                reverse_match: true,
            })),
        };
        assert_eq!(routing::ips(&later.encode_to_vec()).unwrap(), [format!("!{text}")]);
    }
    let all = GeoIp {
        cidr: texts.map(cidr).to_vec(),
        ..Default::default()
    };
    assert_eq!(routing::ips(&all.encode_to_vec()).unwrap(), texts);
    let not = GeoIp {
        reverse_match: true,
        ..all
    };
    assert!(matches!(
        routing::ips(&not.encode_to_vec()),
        Err(Refused::Unsupported(_))
    ));
}

#[test]
fn e_mails_forge_no_lines_and_have_an_end() {
    let user = |email: &str| User {
        email: email.to_owned(),
        account: Some(typed(
            "xray.proxy.trojan.Account",
            &trojan::Account {
                password: "p".to_owned(),
            },
        )),
        ..Default::default()
    };
    let config = |email: &str| {
        let config = trojan::ServerConfig {
            users: vec![user(email)],
            ..Default::default()
        };
        inbound(&on(&[(1, 1)], typed("xray.proxy.trojan.ServerConfig", &config)))
    };
    for good in ["", "a@b", &"x".repeat(user::MAX_EMAIL)] {
        assert_eq!(new_user(user(good)).unwrap().email, good);
        assert!(config(good).is_ok());
    }
    for bad in ["a\nb", "a\u{202e}b", "\0", &"x".repeat(user::MAX_EMAIL + 1)] {
        assert!(matches!(new_user(user(bad)), Err(Refused::Wrong(_))), "{bad:?}");
        assert!(matches!(config(bad), Err(Refused::Wrong(_))), "{bad:?}");
    }
}

/// An inbound on these ports.
fn on(ports: &[(u32, u32)], proxy: TypedMessage) -> InboundHandlerConfig {
    let range = ports.iter().map(|&(from, to)| PortRange { from, to });
    let receiver = ReceiverConfig {
        port_list: Some(PortList { range: range.collect() }),
        ..Default::default()
    };
    InboundHandlerConfig {
        tag: "in".to_owned(),
        receiver_settings: Some(typed("xray.app.proxyman.ReceiverConfig", &receiver)),
        proxy_settings: Some(proxy),
    }
}

#[test]
fn an_inbound_has_no_more_ports_than_there_are() {
    let door = |config: &dokodemo::Config| typed("xray.proxy.dokodemo.Config", config);
    let read = |ports: &[(u32, u32)]| inbound(&on(ports, door(&dokodemo::Config::default())));
    assert_eq!(read(&[(1, 65_535)]).unwrap().listen.len(), 65_535);
    assert_eq!(
        read(&[(7, 8), (80, 80)]).unwrap().listen,
        [7, 8, 80].map(Listen::EveryAddress)
    );
    for many in [&[(1, 65_535); 2][..], &[(0, u32::MAX)], &[(1, 2); 40_000]] {
        let refused = read(many).unwrap_err();
        assert!(
            refused.to_string().contains("at most 65536 are listened on"),
            "{refused}"
        );
    }
}

#[test]
fn what_would_mean_something_else_is_not_supported() {
    let mut door = on(
        &[(1, 1)],
        typed("xray.proxy.dokodemo.Config", &dokodemo::Config::default()),
    );
    let receiver = ReceiverConfig {
        receive_original_destination: true,
        ..Default::default()
    };
    door.receiver_settings = Some(typed("xray.app.proxyman.ReceiverConfig", &receiver));
    assert!(matches!(inbound(&door), Err(Refused::Unsupported(_))));
    let network = shadowsocks::ServerConfig {
        network: vec![9],
        ..Default::default()
    };
    let network = on(&[(1, 1)], typed("xray.proxy.shadowsocks.ServerConfig", &network));
    let refused = inbound(&network).unwrap_err();
    assert_eq!(refused, Refused::Unsupported("the network 9".to_owned()));
    let rule = Config {
        rule: vec![RoutingRule {
            networks: vec![9],
            ..Default::default()
        }],
        ..Default::default()
    };
    assert_eq!(rules(&typed("xray.app.router.Config", &rule)).unwrap_err(), refused);
}

/// Inbounds and outbounds with something secret in each, as files have them.
pub(crate) fn with_secrets() -> Settings {
    let headers = json!({ "X-Token": "sesame" });
    let inbound = |port: u16, protocol: &str, settings: Value, stream: Value| {
        json!({ "tag": protocol, "listen": "127.0.0.1", "port": port, "protocol": protocol, "settings": settings,
            "streamSettings": stream })
    };
    let reality = json!({ "security": "reality", "realitySettings": {
        "target": "www.example.com:443", "serverNames": ["www.example.com"], "privateKey": KEY, "shortIds": ["0123456789abcdef"] } });
    let accounts = json!({ "auth": "password", "accounts": [{ "user": "somebody", "pass": "open" }] });
    let server = json!({ "address": "192.0.2.1", "port": 443, "id": ID, "encryption": "none" });
    let dialled = json!({ "security": "reality", "realitySettings": {
        "fingerprint": "chrome", "serverName": "www.example.com", "publicKey": KEY, "shortId": "0123456789abcdef" } });
    load(json!({
        "inbounds": [
            inbound(1, "vless", json!({ "clients": [{ "id": ID, "email": "v@v" }], "decryption": "none" }), reality),
            inbound(2, "vmess", json!({ "clients": [{ "id": ID, "level": 3 }] }),
                json!({ "network": "ws", "wsSettings": { "path": "/x", "headers": headers } })),
            inbound(3, "socks", accounts.clone(), json!({ "network": "httpupgrade", "httpupgradeSettings": { "headers": headers } })),
            inbound(4, "http", accounts, json!({ "network": "xhttp", "xhttpSettings": { "headers": headers } })),
        ],
        "outbounds": [
            { "tag": "a", "protocol": "vless", "settings": server, "streamSettings": dialled },
            { "tag": "b", "protocol": "vmess", "settings": server,
              "streamSettings": { "network": "ws", "wsSettings": { "headers": headers } } },
        ],
    }))
    .unwrap()
}

#[test]
fn secrets_are_shown_only_where_they_are_asked_for() {
    let settings = with_secrets();
    let told = |secrets: bool| {
        let inbounds = settings
            .inbounds
            .iter()
            .map(|one| write::inbound(one, secrets).encode_to_vec());
        let outbounds = settings
            .outbounds
            .iter()
            .map(|one| write::outbound(one, secrets).encode_to_vec());
        inbounds.chain(outbounds).collect::<Vec<_>>()
    };
    let short = [0x01, 0x23, 0x45, 0x67, 0x89, 0xab, 0xcd, 0xef];
    let secret: [&[&[u8]]; 6] = [
        &[ID.as_bytes(), &[7; 32], &short],
        &[ID.as_bytes(), b"sesame"],
        &[b"open", b"sesame"],
        &[b"open", b"sesame"],
        &[ID.as_bytes(), &short],
        &[ID.as_bytes(), b"sesame"],
    ];
    let has = |told: &[u8], what: &[u8]| told.windows(what.len()).any(|part| part == what);
    for ((hidden, shown), secret) in told(false).iter().zip(told(true)).zip(secret) {
        for what in secret {
            assert!(!has(hidden, what), "{what:?} is told");
            assert!(has(&shown, what), "{what:?} is not");
        }
    }
}

#[test]
fn what_is_written_is_read_as_the_same() {
    let settings = with_secrets();
    for one in &settings.inbounds {
        let written = write::inbound(one, true);
        let kind = "xray.core.InboundHandlerConfig";
        assert_eq!(describe::check(kind, &written.encode_to_vec()), Ok(()));
        assert_eq!(inbound(&written).as_ref(), Ok(one));
    }
    for one in &settings.outbounds {
        let written = write::outbound(one, true);
        let kind = "xray.core.OutboundHandlerConfig";
        assert_eq!(describe::check(kind, &written.encode_to_vec()), Ok(()));
        assert_eq!(outbound(&written).as_ref(), Ok(one));
    }
}
