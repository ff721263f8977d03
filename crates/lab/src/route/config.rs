//! The configurations of a route: the same for every program that reads V2Ray's JSON.
//!
//! What can be forced is: TLS 1.3 with one suite, no logs, and nothing that a configuration has to ask for, such as
//! statistics or sniffing.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use sealway_aead::Suite;
use serde_json::{Value, json};

use super::stack::{Network, Protocol, Shape, Stack};
use super::tls::{AUTHORITY, CERTIFICATE, KEY, SERVER_NAME};

/// The path of WebSocket requests.
pub(super) const WS_PATH: &str = "/lab";

/// The path of XHTTP requests.
const XHTTP_PATH: &str = "/lab";

/// Who the client is to a server of SOCKS.
pub(super) const SOCKS_USER: &str = "lab";

/// The service of gRPC.
pub(super) const GRPC_SERVICE: &str = "lab";

/// What the configurations of one route have in common.
#[derive(Clone, Copy, Debug)]
pub(super) struct Facts<'a> {
    pub(super) stack: Stack,
    /// Where certificates are.
    pub(super) folder: &'a Path,
    /// The user's id, a UUID.
    pub(super) id: &'a str,
    /// Where the server listens.
    pub(super) listen: IpAddr,
    /// The one target that the server reaches, whatever it is asked for; any if absent.
    pub(super) only: Option<SocketAddr>,
}

/// A port of this machine.
pub(super) fn local(port: u16) -> SocketAddr {
    SocketAddr::V4(SocketAddrV4::new(Ipv4Addr::LOCALHOST, port))
}

impl Facts<'static> {
    /// Those of no route: a made-up folder and id.
    pub(super) fn sample(stack: Stack) -> Self {
        Facts {
            stack,
            folder: Path::new("."),
            id: "00000000-0000-4000-8000-000000000000",
            listen: Ipv4Addr::LOCALHOST.into(),
            only: None,
        }
    }
}

impl Facts<'_> {
    /// A file of the route's folder.
    pub(super) fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// What TLS calls its suite.
    fn tls_suite(&self) -> &'static str {
        match self.stack.cipher {
            Suite::Aes256Gcm => "TLS_AES_256_GCM_SHA384",
            Suite::ChaCha20Poly1305 => "TLS_CHACHA20_POLY1305_SHA256",
            _ => "TLS_AES_128_GCM_SHA256",
        }
    }

    /// What both ends say of TLS, with a certificate.
    fn tls(&self, certificate: Value) -> Value {
        json!({
            "alpn": [self.stack.alpn()],
            "minVersion": "1.3",
            "maxVersion": "1.3",
            "cipherSuites": self.tls_suite(),
            "curvePreferences": ["X25519"],
            "certificates": [certificate],
        })
    }

    /// The client: from `entry` to `sink`, by way of `server`.
    pub(super) fn client(&self, entry: u16, server: SocketAddr, sink: SocketAddr) -> Value {
        let mut user = json!({ "id": self.id });
        let (address, port) = (server.ip().to_string(), server.port());
        let (protocol, settings) = match self.stack.protocol {
            // No server: what comes in goes straight out.
            Protocol::None | Protocol::Copy => {
                return whole(vec![door(entry, sink)], freedom());
            }
            Protocol::Door => {
                let mut settings = freedom()["settings"].take();
                settings["redirect"] = json!(server.to_string());
                ("freedom", settings)
            }
            Protocol::Socks => {
                let user = json!({ "user": SOCKS_USER, "pass": self.id });
                let server = json!({ "address": address, "port": port, "users": [user] });
                ("socks", json!({ "servers": [server] }))
            }
            Protocol::Vless => {
                user["encryption"] = json!("none");
                ("vless", vnext(server, user))
            }
            Protocol::Vmess(_) | Protocol::VmessNone => {
                user["alterId"] = json!(0);
                user["security"] = json!(security(self.stack.protocol));
                ("vmess", vnext(server, user))
            }
            Protocol::Trojan => {
                let server = json!({ "address": address, "port": port, "password": self.id });
                ("trojan", json!({ "servers": [server] }))
            }
            Protocol::Shadowsocks(_) | Protocol::Shadowsocks2022(_) => {
                let (method, password) = self.shadowsocks();
                let server = json!({ "address": address, "port": port, "method": method, "password": password });
                ("shadowsocks", json!({ "servers": [server] }))
            }
        };
        let mut stream = self.network();
        if self.stack.tls {
            let mut tls = self.tls(json!({ "usage": "verify", "certificateFile": self.file(AUTHORITY) }));
            tls["serverName"] = json!(SERVER_NAME);
            tls["disableSystemRoot"] = json!(true);
            stream["security"] = json!("tls");
            stream["tlsSettings"] = tls;
        }
        let mut outbound = json!({
            "tag": "proxy",
            "protocol": protocol,
            "settings": settings,
            "streamSettings": stream,
        });
        if self.stack.network == Network::Mux {
            outbound["mux"] = json!({ "enabled": true, "concurrency": 8 });
        }
        whole(vec![door(entry, sink)], outbound)
    }

    /// The server at `port`, which leads to `sink`; `inner` is the port of a second inbound, where the stack has one.
    pub(super) fn server(&self, [port, inner]: [u16; 2], sink: SocketAddr) -> Value {
        let vless = || ("vless", json!({ "clients": [{ "id": self.id }], "decryption": "none" }));
        let (mut protocol, mut settings) = match self.stack.protocol {
            Protocol::Vmess(_) | Protocol::VmessNone => {
                ("vmess", json!({ "clients": [{ "id": self.id, "alterId": 0 }] }))
            }
            Protocol::Door => ("dokodemo-door", leads_to(sink)),
            Protocol::Socks => {
                let account = json!({ "user": SOCKS_USER, "pass": self.id });
                ("socks", json!({ "auth": "password", "accounts": [account] }))
            }
            Protocol::Trojan => ("trojan", json!({ "clients": [{ "password": self.id }] })),
            Protocol::Shadowsocks(_) | Protocol::Shadowsocks2022(_) => {
                let (method, password) = self.shadowsocks();
                (
                    "shadowsocks",
                    json!({ "method": method, "password": password, "network": "tcp" }),
                )
            }
            _ => vless(),
        };
        let inbound = |tag: &str, (listen, port): (IpAddr, u16), protocol: &str, settings: Value, stream: Value| {
            json!({
                "tag": tag,
                "listen": listen.to_string(),
                "port": port,
                "protocol": protocol,
                "settings": settings,
                "streamSettings": stream,
            })
        };
        let mut inbounds = Vec::new();
        let mut stream = self.network();
        if self.stack.shape == Shape::Fallback {
            let at = (Ipv4Addr::LOCALHOST.into(), inner);
            inbounds.push(inbound("inner", at, protocol, settings, stream));
            let inner = local(inner).to_string();
            // What falls back is VLESS, whatever the other inbound takes.
            (protocol, settings) = vless();
            // The second is for everybody else: none comes here, but a server without it is told from a web server.
            settings["fallbacks"] = json!([{ "path": WS_PATH, "dest": inner }, { "dest": inner }]);
            stream = json!({ "network": "tcp" });
        }
        if self.stack.server_needs_certificate() {
            stream["security"] = json!("tls");
            stream["tlsSettings"] =
                self.tls(json!({ "certificateFile": self.file(CERTIFICATE), "keyFile": self.file(KEY) }));
        }
        inbounds.push(inbound("server", (self.listen, port), protocol, settings, stream));
        let mut out = freedom();
        if let Some(only) = self.only {
            out["settings"]["redirect"] = json!(only.to_string());
        }
        whole(inbounds, out)
    }

    /// nginx at `port`, before the server at `server`.
    pub(super) fn nginx(&self, port: u16, server: SocketAddr, stream_module: Option<&str>) -> String {
        let head = format!(
            "{module}daemon off;\npid {pid};\nerror_log stderr crit;\nworker_processes 1;\n{user}\
             events {{ worker_connections 16384; }}\n",
            module = stream_module.map_or_else(String::new, |module| format!("load_module \"{module}\";\n")),
            pid = quoted(&self.file("nginx.pid")),
            // Its workers would be another user, who may not look into the folder.
            user = if super::is_root() { "user root root;\n" } else { "" },
        );
        if self.stack.shape == Shape::NginxSni {
            return format!(
                "{head}stream {{\n  map $ssl_preread_server_name $to {{ {SERVER_NAME} {server}; }}\n  server {{ listen \
                 127.0.0.1:{port}; ssl_preread on; proxy_pass $to; }}\n}}\n"
            );
        }
        let temporary: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
            .iter()
            .map(|kind| format!("  {kind}_temp_path {};\n", quoted(&self.file(kind))))
            .collect();
        let (ssl, tls) = if self.stack.tls {
            (" ssl", self.nginx_tls())
        } else {
            ("", String::new())
        };
        format!(
            "{head}http {{\n  access_log off;\n{temporary}  server {{\n    listen 127.0.0.1:{port}{ssl};\n    server_name \
             {SERVER_NAME};\n{tls}    location {WS_PATH} {{\n      proxy_pass \
             http://{server};\n      proxy_http_version 1.1;\n      proxy_set_header Upgrade $http_upgrade;\n      \
             proxy_set_header Connection upgrade;\n      proxy_set_header Host $host;\n      proxy_read_timeout 1h;\n    \
             }}\n  }}\n}}\n"
        )
    }

    /// What an nginx that ends TLS is told of it.
    fn nginx_tls(&self) -> String {
        format!(
            "    ssl_certificate {certificate};\n    ssl_certificate_key {key};\n    ssl_protocols TLSv1.3;\n    \
             ssl_conf_command Ciphersuites {suite};\n",
            suite = self.tls_suite(),
            certificate = quoted(&self.file(CERTIFICATE)),
            key = quoted(&self.file(KEY)),
        )
    }

    /// Method and password of Shadowsocks. The key of 2022 is made of the id, so that both ends have it.
    pub(super) fn shadowsocks(&self) -> (&'static str, String) {
        let key = || {
            let mut key = [0; 32];
            for (to, from) in key.iter_mut().zip(self.id.bytes().filter(|byte| *byte != b'-')) {
                *to = from;
            }
            STANDARD.encode(key)
        };
        match self.stack.protocol {
            Protocol::Shadowsocks2022(Suite::ChaCha20Poly1305) => ("2022-blake3-chacha20-poly1305", key()),
            Protocol::Shadowsocks2022(_) => ("2022-blake3-aes-256-gcm", key()),
            _ => ("aes-256-gcm", self.id.to_owned()),
        }
    }

    /// What the proxy protocol is carried by, without its TLS.
    fn network(&self) -> Value {
        match self.stack.network {
            Network::Tcp | Network::Mux => json!({ "network": "tcp" }),
            Network::HttpHeader => json!({ "network": "tcp", "tcpSettings": { "header": { "type": "http" } } }),
            Network::Grpc => json!({ "network": "grpc", "grpcSettings": { "serviceName": GRPC_SERVICE } }),
            Network::XhttpOne => xhttp("stream-one"),
            Network::XhttpPackets => xhttp("packet-up"),
            Network::WebSocket => json!({ "network": "ws", "wsSettings": { "path": WS_PATH } }),
        }
    }
}

/// XHTTP in a mode.
fn xhttp(mode: &str) -> Value {
    json!({ "network": "xhttp", "xhttpSettings": { "path": XHTTP_PATH, "mode": mode } })
}

/// The settings of VLESS and VMess for one server with one user.
fn vnext(server: SocketAddr, user: Value) -> Value {
    let server = json!({ "address": server.ip().to_string(), "port": server.port(), "users": [user] });
    json!({ "vnext": [server] })
}

/// A name as nginx reads it back.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('\\', "\\\\").replace('"', "\\\""))
}

/// What VMess calls what it seals with.
pub(super) fn security(protocol: Protocol) -> &'static str {
    match protocol {
        Protocol::VmessNone => "none",
        Protocol::Vmess(Suite::ChaCha20Poly1305) => "chacha20-poly1305",
        _ => "aes-128-gcm",
    }
}

fn whole(inbounds: Vec<Value>, outbound: Value) -> Value {
    json!({
        "log": { "access": "none", "error": "none", "loglevel": "none" },
        "inbounds": inbounds,
        "outbounds": [outbound],
    })
}

/// An inbound whose connections all go to one target.
fn door(port: u16, target: SocketAddr) -> Value {
    json!({
        "tag": "entry",
        "listen": "127.0.0.1",
        "port": port,
        "protocol": "dokodemo-door",
        "settings": leads_to(target),
    })
}

/// The settings of an inbound whose connections all go to one target.
fn leads_to(target: SocketAddr) -> Value {
    json!({ "address": target.ip().to_string(), "port": target.port(), "network": "tcp" })
}

/// The way to the target. It is on loopback, which programs that guard private networks must be told to allow; the others
/// do not know the key.
fn freedom() -> Value {
    json!({
        "tag": "out",
        "protocol": "freedom",
        "settings": { "finalRules": [{ "action": "allow", "ip": ["127.0.0.0/8"] }] },
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn both_ends_agree() {
        for stack in Stack::ALL.into_iter().filter(Stack::has_wire) {
            let facts = Facts::sample(stack);
            let client = facts.client(1, local(2), local(9));
            let server = facts.server([2, 4], local(9));
            let out = &client["outbounds"][0];
            let inbounds = server["inbounds"].as_array().unwrap();
            for inbound in inbounds {
                match stack.protocol {
                    _ if inbound["settings"]["fallbacks"].is_array() => assert_eq!(inbound["protocol"], "vless"),
                    Protocol::Door => {
                        assert_eq!(
                            (&inbound["protocol"], &out["protocol"]),
                            (&json!("dokodemo-door"), &json!("freedom"))
                        );
                        assert_eq!(out["settings"]["redirect"], "127.0.0.1:2");
                        assert_eq!(inbound["settings"]["port"], 9);
                    }
                    _ => assert_eq!(inbound["protocol"], out["protocol"]),
                }
                for key in ["id", "password", "pass"] {
                    let accounts = &inbound["settings"]["accounts"][0];
                    let ours = [
                        &inbound["settings"]["clients"][0][key],
                        &inbound["settings"][key],
                        &accounts[key],
                    ];
                    let theirs = [
                        &out["settings"]["vnext"][0]["users"][0][key],
                        &out["settings"]["servers"][0][key],
                        &out["settings"]["servers"][0]["users"][0][key],
                    ];
                    assert!(
                        theirs.iter().all(|it| it.is_null() || ours.contains(it)),
                        "{stack} {key}"
                    );
                }
                assert_eq!(inbound["listen"], "127.0.0.1");
            }
            let last = inbounds.last().unwrap();
            assert_eq!((&last["port"], &last["tag"]), (&json!(2), &json!("server")));
            let tls_at_server = last["streamSettings"]["security"] == "tls";
            assert_eq!(tls_at_server, stack.server_needs_certificate());
            assert_eq!(out["streamSettings"]["security"] == "tls", stack.tls);
            let websocket = inbounds.first().unwrap()["streamSettings"]["network"] == "ws";
            assert_eq!(websocket, stack.network == Network::WebSocket, "{stack}");
            assert_eq!(client["inbounds"][0]["settings"]["port"], 9);
        }
    }

    #[test]
    fn a_server_for_another_host_reaches_the_sink_only() {
        for stack in Stack::ALL.into_iter().filter(Stack::has_wire) {
            let facts = Facts {
                listen: [192, 0, 2, 1].into(),
                only: Some(local(9)),
                ..Facts::sample(stack)
            };
            let server = facts.server([2, 4], local(9));
            let outbounds = server["outbounds"].as_array().unwrap();
            assert_eq!(outbounds.len(), 1, "{stack}");
            assert_eq!(outbounds[0]["settings"]["redirect"], "127.0.0.1:9", "{stack}");
            let inbounds = server["inbounds"].as_array().unwrap();
            assert_eq!(inbounds.last().unwrap()["listen"], "192.0.2.1");
            // What the first hands on stays on the machine.
            assert!(inbounds.len() == 1 || inbounds[0]["listen"] == "127.0.0.1");
        }
    }

    #[test]
    fn names_of_files_are_quoted_for_nginx() {
        assert_eq!(quoted("/a \"b\"\\c"), "\"/a \\\"b\\\"\\\\c\"");
    }
}
