//! The configurations of a route in the form of shoes: they say what those of [`super::config`] say. It reads YAML, of which
//! JSON is a part.

use std::net::SocketAddr;

use serde_json::{Value, json};

use super::config::{Facts, SOCKS_USER, WS_PATH, local, security};
use super::stack::{Network, Protocol};
use super::tls::{CERTIFICATE, KEY, SERVER_NAME};

/// The client: from `entry` to `sink`, by way of `server`.
pub(super) fn client(facts: &Facts<'_>, entry: u16, server: SocketAddr, sink: SocketAddr) -> Value {
    let mut door = listener(entry, json!({ "type": "forward", "targets": sink.to_string() }));
    if facts.stack.has_wire() {
        let mut end = carried(facts, |inner| {
            json!({
                "type": "websocket",
                "matching_path": WS_PATH,
                // It names no host by itself, and nginx asks for one.
                "matching_headers": { "Host": SERVER_NAME },
                "protocol": inner,
            })
        });
        if facts.stack.tls {
            end = json!({
                "type": "tls",
                "sni_hostname": SERVER_NAME,
                "alpn_protocols": [facts.stack.alpn()],
                // It trusts the roots that it brings and no others.
                "verify": false,
                "protocol": end,
            });
        }
        door["rules"] = json!([{
            "masks": "0.0.0.0/0",
            "action": "allow",
            "client_chain": { "address": server.to_string(), "protocol": end },
        }]);
    }
    json!([door])
}

/// The server at `port`, for clients of this host only: [`Facts::listen`] and [`Facts::only`] are not looked at.
pub(super) fn server(facts: &Facts<'_>, port: u16) -> Value {
    let mut end = carried(
        facts,
        |inner| json!({ "type": "websocket", "targets": [{ "matching_path": WS_PATH, "protocol": inner }] }),
    );
    if facts.stack.server_needs_certificate() {
        let target = json!({
            "cert": facts.file(CERTIFICATE),
            "key": facts.file(KEY),
            "alpn_protocols": [facts.stack.alpn()],
            "protocol": end,
        });
        end = json!({ "type": "tls", "tls_targets": { SERVER_NAME: target } });
    }
    json!([listener(port, end)])
}

/// The proxy protocol, which both ends say in the same words, inside of WebSocket where the stack has it.
fn carried(facts: &Facts<'_>, websocket: impl Fn(Value) -> Value) -> Value {
    let protocol = match facts.stack.protocol {
        Protocol::Vmess(_) | Protocol::VmessNone => {
            json!({ "type": "vmess", "cipher": security(facts.stack.protocol), "user_id": facts.id })
        }
        Protocol::Socks => json!({ "type": "socks", "username": SOCKS_USER, "password": facts.id }),
        Protocol::Trojan => json!({ "type": "trojan", "password": facts.id }),
        Protocol::Shadowsocks(_) | Protocol::Shadowsocks2022(_) => {
            let (method, password) = facts.shadowsocks();
            json!({ "type": "shadowsocks", "cipher": method, "password": password })
        }
        _ => json!({ "type": "vless", "user_id": facts.id }),
    };
    match facts.stack.network {
        Network::WebSocket => websocket(protocol),
        // The others it does not have.
        _ => protocol,
    }
}

fn listener(port: u16, protocol: Value) -> Value {
    json!({ "address": local(port).to_string(), "protocol": protocol })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use sealway_aead::Suite;

    use super::super::kind::Kind;
    use super::super::stack::{Shape, Stack};
    use super::*;

    /// What an end is made of, outermost first, and the proxy protocol in it.
    fn layers(mut end: &Value) -> (Vec<&str>, &Value) {
        let mut layers = Vec::new();
        loop {
            let inner = match end["type"].as_str().unwrap() {
                "tls" if end["tls_targets"].is_object() => &end["tls_targets"][SERVER_NAME],
                "websocket" if end["targets"].is_array() => &end["targets"][0],
                _ => end,
            };
            if inner["protocol"].is_null() {
                return (layers, end);
            }
            layers.push(end["type"].as_str().unwrap());
            end = &inner["protocol"];
        }
    }

    #[test]
    fn both_ends_agree() {
        let can = |stack: &Stack| stack.has_wire() && stack.lacking(Kind::Shoes).is_none();
        for stack in Stack::ALL.into_iter().filter(can) {
            let facts = Facts::sample(stack);
            let client = client(&facts, 1, local(2), local(9));
            let server = server(&facts, 2);
            let door = &client[0];
            assert_eq!(door["address"], "127.0.0.1:1");
            assert_eq!(door["protocol"]["targets"], "127.0.0.1:9");
            let next = &door["rules"][0]["client_chain"];
            assert_eq!(next["address"], server[0]["address"], "{stack}");
            let (out, said) = layers(&next["protocol"]);
            let (inbound, heard) = layers(&server[0]["protocol"]);
            assert_eq!(said, heard, "{stack}");
            assert!(said["user_id"].is_string() || said["password"].is_string(), "{stack}");
            assert_eq!(out.contains(&"tls"), stack.tls, "{stack}");
            assert_eq!(inbound.contains(&"tls"), stack.server_needs_certificate(), "{stack}");
            for layers in [&out, &inbound] {
                assert_eq!(
                    layers.contains(&"websocket"),
                    stack.network == Network::WebSocket,
                    "{stack}"
                );
            }
        }
    }

    #[test]
    fn a_relay_goes_straight_to_the_target() {
        let relay = client(&Facts::sample(Stack::RELAY), 1, local(2), local(9));
        assert_eq!(relay[0]["protocol"]["targets"], "127.0.0.1:9");
        assert!(relay[0]["rules"].is_null());
    }

    #[test]
    fn what_it_does_not_have_is_known() {
        for stack in Stack::ALL {
            let carried = matches!(stack.network, Network::Tcp | Network::WebSocket);
            let usual = stack.cipher != Suite::ChaCha20Poly1305
                && stack.shape != Shape::Fallback
                && stack.protocol != Protocol::Door;
            assert_eq!(stack.lacking(Kind::Shoes).is_none(), carried && usual, "{stack}");
        }
    }
}
