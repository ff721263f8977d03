//! The configurations of a route in the form of sing-box: they say what those of [`super::config`] say.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::config::{Facts, GRPC_SERVICE, SOCKS_USER, WS_PATH, security};
use super::stack::{Network, Protocol};
use super::tls::{AUTHORITY, CERTIFICATE, KEY, SERVER_NAME};

/// The client: from `entry` to `sink`, by way of `server`.
pub(super) fn client(facts: &Facts<'_>, entry: u16, server: SocketAddr, sink: SocketAddr) -> Value {
    let door = json!({
        "type": "direct",
        "tag": "entry",
        "listen": "127.0.0.1",
        "listen_port": entry,
        "network": "tcp",
        "override_address": sink.ip().to_string(),
        "override_port": sink.port(),
    });
    let mut outbound = match facts.stack.protocol {
        // It has no `Door`.
        Protocol::None | Protocol::Copy | Protocol::Door => return whole(door, direct()),
        Protocol::Vless => json!({ "type": "vless", "uuid": facts.id }),
        Protocol::Vmess(_) | Protocol::VmessNone => {
            json!({ "type": "vmess", "uuid": facts.id, "security": security(facts.stack.protocol) })
        }
        Protocol::Trojan => json!({ "type": "trojan", "password": facts.id }),
        Protocol::Socks => json!({ "type": "socks", "username": SOCKS_USER, "password": facts.id }),
        Protocol::Shadowsocks(_) | Protocol::Shadowsocks2022(_) => shadowsocks(facts),
    };
    outbound["tag"] = json!("proxy");
    outbound["server"] = json!(server.ip().to_string());
    outbound["server_port"] = json!(server.port());
    carry(facts, &mut outbound);
    if facts.stack.tls {
        let mut tls = tls(facts);
        tls["server_name"] = json!(SERVER_NAME);
        tls["certificate_path"] = json!(facts.file(AUTHORITY));
        outbound["tls"] = tls;
    }
    whole(door, outbound)
}

/// The server at `port`, for clients of this host only: [`Facts::listen`] and [`Facts::only`] are not looked at.
pub(super) fn server(facts: &Facts<'_>, port: u16) -> Value {
    let mut inbound = match facts.stack.protocol {
        Protocol::Vmess(_) | Protocol::VmessNone => json!({ "type": "vmess", "users": [{ "uuid": facts.id }] }),
        Protocol::Trojan => json!({ "type": "trojan", "users": [{ "password": facts.id }] }),
        Protocol::Socks => json!({ "type": "socks", "users": [{ "username": SOCKS_USER, "password": facts.id }] }),
        Protocol::Shadowsocks(_) | Protocol::Shadowsocks2022(_) => {
            let mut inbound = shadowsocks(facts);
            inbound["network"] = json!("tcp");
            inbound
        }
        _ => json!({ "type": "vless", "users": [{ "uuid": facts.id }] }),
    };
    inbound["tag"] = json!("server");
    inbound["listen"] = json!("127.0.0.1");
    inbound["listen_port"] = json!(port);
    carry(facts, &mut inbound);
    if facts.stack.server_needs_certificate() {
        let mut tls = tls(facts);
        tls["certificate_path"] = json!(facts.file(CERTIFICATE));
        tls["key_path"] = json!(facts.file(KEY));
        inbound["tls"] = tls;
    }
    whole(inbound, direct())
}

fn shadowsocks(facts: &Facts<'_>) -> Value {
    let (method, password) = facts.shadowsocks();
    json!({ "type": "shadowsocks", "method": method, "password": password })
}

/// What the proxy protocol is carried by, where that is not plain TCP.
fn carry(facts: &Facts<'_>, end: &mut Value) {
    match facts.stack.network {
        Network::WebSocket => end["transport"] = json!({ "type": "ws", "path": WS_PATH }),
        Network::Grpc => end["transport"] = json!({ "type": "grpc", "service_name": GRPC_SERVICE }),
        // The others it does not have.
        Network::Tcp | Network::HttpHeader | Network::Mux | Network::XhttpOne | Network::XhttpPackets => {}
    }
}

/// What both ends say of TLS.
fn tls(facts: &Facts<'_>) -> Value {
    json!({
        "enabled": true,
        "alpn": [facts.stack.alpn()],
        "min_version": "1.3",
        "max_version": "1.3",
        "curve_preferences": ["X25519"],
    })
}

fn direct() -> Value {
    json!({ "type": "direct", "tag": "out" })
}

fn whole(inbound: Value, outbound: Value) -> Value {
    json!({ "log": { "disabled": true }, "inbounds": [inbound], "outbounds": [outbound] })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::super::config::local;
    use super::super::kind::Kind;
    use super::super::stack::{Shape, Stack};
    use super::*;

    #[test]
    fn both_ends_agree() {
        let can = |stack: &Stack| stack.has_wire() && stack.lacking(Kind::SingBox).is_none();
        for stack in Stack::ALL.into_iter().filter(can) {
            let facts = Facts::sample(stack);
            let client = client(&facts, 1, local(2), local(9));
            let server = server(&facts, 2);
            let (out, inbound) = (&client["outbounds"][0], &server["inbounds"][0]);
            assert_eq!(out["type"], inbound["type"], "{stack}");
            assert_eq!(out["server_port"], inbound["listen_port"], "{stack}");
            assert_eq!(out["transport"], inbound["transport"], "{stack}");
            let user = &inbound["users"][0];
            assert!(out["uuid"].is_string() || out["password"].is_string(), "{stack}");
            for key in ["uuid", "password", "method"] {
                assert!(out[key] == user[key] || out[key] == inbound[key], "{stack} {key}");
            }
            let tls = [&out["tls"], &inbound["tls"]];
            assert_eq!(tls[0]["enabled"] == true, stack.tls, "{stack}");
            assert_eq!(tls[1]["enabled"] == true, stack.server_needs_certificate(), "{stack}");
            if stack.server_needs_certificate() {
                for key in ["alpn", "min_version", "max_version", "curve_preferences"] {
                    assert_eq!(tls[0][key], tls[1][key], "{stack} {key}");
                }
            }
            assert_eq!(client["inbounds"][0]["override_port"], 9);
        }
    }

    #[test]
    fn a_relay_goes_straight_to_the_target() {
        let relay = client(&Facts::sample(Stack::RELAY), 1, local(2), local(9));
        assert_eq!(relay["outbounds"][0]["type"], "direct");
        assert_eq!(relay["inbounds"][0]["listen_port"], 1);
    }

    #[test]
    fn what_it_does_not_have_is_known() {
        for stack in Stack::ALL {
            let carried = matches!(stack.network, Network::Tcp | Network::WebSocket | Network::Grpc);
            let usual = stack.cipher == sealway_aead::Suite::Aes128Gcm
                && stack.shape != Shape::Fallback
                && stack.protocol != Protocol::Door;
            assert_eq!(stack.lacking(Kind::SingBox).is_none(), carried && usual, "{stack}");
        }
    }
}
