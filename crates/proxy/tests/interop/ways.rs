//! What may lie between two programs, and pairs of configurations for all of it: the same text for whoever runs it.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::common::{ID, PASSWORD, certificate};
use crate::programs::{Place, Program, Running};

/// One way from a client to a server: what is spoken, over what.
#[derive(Clone, Debug)]
pub(crate) struct Way {
    pub(crate) protocol: &'static str,
    /// Cipher word of VMess, flow of VLESS.
    pub(crate) security: &'static str,
    pub(crate) network: &'static str,
    pub(crate) tls: bool,
    /// More keys of the transport's settings: the server's, the client's.
    pub(crate) extra: [Value; 2],
    /// Hears what the client says first, if anyone is to.
    pub(crate) ear: Option<Ear>,
}

pub(crate) const TROJAN: (&str, &str) = ("trojan", "");
pub(crate) const VLESS: (&str, &str) = ("vless", "");
/// VLESS with the flow.
pub(crate) const VISION: (&str, &str) = ("vless", "xtls-rprx-vision");

/// Every protocol and cipher word.
pub(crate) const PROTOCOLS: [(&str, &str); 7] = [
    VLESS,
    ("vmess", "aes-128-gcm"),
    ("vmess", "chacha20-poly1305"),
    ("vmess", "auto"),
    ("vmess", "none"),
    ("vmess", "zero"),
    TROJAN,
];

/// A raw connection behind a made-up HTTP request and response.
const FRONT: &str = "tcp http";

pub(crate) const NETWORKS: [&str; 4] = ["tcp", FRONT, "ws", "httpupgrade"];

impl Way {
    pub(crate) fn new((protocol, security): (&'static str, &'static str), network: &'static str, tls: bool) -> Way {
        Way {
            protocol,
            security,
            network,
            tls,
            extra: [json!({}), json!({})],
            ear: None,
        }
    }

    pub(crate) fn name(&self) -> String {
        let tls = if self.tls { " tls" } else { "" };
        format!("{} {} {}{tls}", self.protocol, self.security, self.network)
    }

    /// `streamSettings` of the server (0) or the client (1).
    pub(crate) fn stream(&self, side: usize, files: &Files) -> Value {
        let mut stream = json!({"network": self.network});
        if self.network == FRONT {
            let request =
                json!({"path": ["/a", "/b"], "headers": {"Host": ["a.example", "b.example"], "Accept": ["*/*"]}});
            let response = json!({"status": "206", "reason": "Partial Content", "headers": {"Server": ["nginx"]}});
            let header = json!({"type": "http", "request": request, "response": response});
            stream = json!({"network": "tcp", "tcpSettings": {"header": header}});
        } else if self.network != "tcp" {
            let mut http = match self.network {
                "grpc" => json!({"serviceName": "way"}),
                _ => json!({"path": "/way"}),
            };
            for (key, value) in self.extra[side].as_object().unwrap() {
                http[key] = value.clone();
            }
            stream[format!("{}Settings", self.network)] = http;
        }
        if self.tls {
            stream["security"] = json!("tls");
            stream["tlsSettings"] = [files.server_tls(), files.client_tls()][side].clone();
        }
        stream
    }

    /// An inbound, to be given its `listen`, `port` and `tag`.
    pub(crate) fn inbound(&self, files: &Files) -> Value {
        let mut settings = json!({"clients": [{"id": ID, "email": "user@example"}]});
        if self.protocol == "trojan" {
            settings = json!({"clients": [{"password": PASSWORD, "email": "user@example"}]});
        }
        if self.protocol == "vless" {
            settings["decryption"] = json!("none");
            if !self.security.is_empty() {
                settings["clients"][0]["flow"] = json!(self.security);
            }
        }
        json!({"protocol": self.protocol, "settings": settings, "streamSettings": self.stream(0, files)})
    }

    /// An outbound, to be given its `tag`.
    pub(crate) fn outbound(&self, server: SocketAddr, files: &Files) -> Value {
        let user = match self.protocol {
            "trojan" => {
                let far = json!({"address": server.ip(), "port": server.port(), "password": PASSWORD});
                return json!({
                    "protocol": self.protocol,
                    "settings": {"servers": [far]},
                    "streamSettings": self.stream(1, files),
                });
            }
            "vless" => json!({"id": ID, "encryption": "none", "flow": self.security}),
            _ => json!({"id": ID, "alterId": 0, "security": self.security}),
        };
        let far = json!({"address": server.ip(), "port": server.port(), "users": [user]});
        json!({"protocol": self.protocol, "settings": {"vnext": [far]}, "streamSettings": self.stream(1, files)})
    }
}

/// Keeps the first bytes of each connection that goes by, up to the end of an HTTP head.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ear(Arc<Mutex<Vec<String>>>);

impl Ear {
    pub(crate) fn heads(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }

    /// Listens, and passes everything on.
    async fn in_front_of(&self, server: SocketAddr) -> SocketAddr {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let at = listener.local_addr().unwrap();
        let heads = Arc::clone(&self.0);
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let heads = Arc::clone(&heads);
                tokio::spawn(async move {
                    let mut head = Vec::new();
                    while !head.windows(4).any(|four| four == b"\r\n\r\n") {
                        if near.read_buf(&mut head).await.unwrap_or(0) == 0 {
                            return;
                        }
                    }
                    heads.lock().unwrap().push(String::from_utf8_lossy(&head).into_owned());
                    let mut far = TcpStream::connect(server).await.unwrap();
                    if far.write_all(&head).await.is_ok() {
                        let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
                    }
                });
            }
        });
        at
    }
}

/// A certificate of `server.example`, `other.example` and `localhost` and its key, in files.
pub(crate) struct Files {
    place: Place,
}

impl Files {
    pub(crate) fn new() -> Files {
        let place = Place::new();
        let (certificate, key) = certificate(&["server.example", "other.example", "localhost"]);
        place.write("c.pem", &certificate);
        place.write("k.pem", &key);
        Files { place }
    }

    pub(crate) fn certificate(&self) -> String {
        self.place.name("c.pem")
    }

    pub(crate) fn key(&self) -> String {
        self.place.name("k.pem")
    }

    pub(crate) fn server_tls(&self) -> Value {
        json!({"certificates": [{"certificateFile": self.certificate(), "keyFile": self.key()}]})
    }

    /// Trusts that certificate and no other.
    pub(crate) fn client_tls(&self) -> Value {
        let own = json!({"usage": "verify", "certificateFile": self.certificate()});
        json!({"serverName": "server.example", "disableSystemRoot": true, "certificates": [own]})
    }
}

/// Straight out, also to this machine.
pub(crate) fn freedom() -> Value {
    json!({"tag": "direct", "protocol": "freedom", "settings": {"finalRules": [{"action": "allow"}]}})
}

/// Half-closed and idle connections live long: nothing here is to depend on a machine's speed.
pub(crate) fn patient() -> Value {
    json!({"levels": {"0": {"handshake": 60, "connIdle": 300, "uplinkOnly": 60, "downlinkOnly": 60}}})
}

/// A whole configuration.
pub(crate) fn config(inbounds: Vec<Value>, outbounds: Vec<Value>, rules: Vec<Value>) -> Value {
    json!({
        "log": {"loglevel": "warning", "access": "none"},
        "policy": patient(),
        "inbounds": inbounds,
        "outbounds": outbounds,
        "routing": {"rules": rules},
    })
}

/// An inbound with its name and address.
pub(crate) fn placed(mut inbound: Value, tag: &str, at: SocketAddr) -> Value {
    inbound["tag"] = json!(tag);
    inbound["listen"] = json!(at.ip());
    inbound["port"] = json!(at.port());
    inbound
}

/// A dokodemo-door for streams or datagrams to a target.
pub(crate) fn door(network: &str, target: SocketAddr) -> Value {
    let settings = json!({"address": target.ip(), "port": target.port(), "network": network});
    json!({"protocol": "dokodemo-door", "settings": settings})
}

/// Two programs with many ways between them, and for each way doors at the client that lead to the targets.
pub(crate) struct Pair {
    /// Doors for streams and datagrams, in the order of the ways.
    pub(crate) doors: Vec<(SocketAddr, SocketAddr)>,
    programs: [Option<Running>; 2],
    _places: [Place; 2],
    _files: Files,
}

impl Pair {
    /// Ends the client (0) or the server (1); a peer is killed.
    pub(crate) fn end(&mut self, side: usize) {
        self.programs[side] = None;
    }

    /// Starts a server and a client with one inbound and one outbound a way.
    pub(crate) async fn start(
        [client, server]: [Program; 2],
        ways: &[Way],
        (target, udp_target): (SocketAddr, SocketAddr),
    ) -> Pair {
        let files = Files::new();
        let (far, near) = (Place::new(), Place::new());
        let (mut inbounds, mut doors, mut outbounds, mut rules) = (vec![], vec![], vec![], vec![]);
        let mut at = Vec::new();
        for (number, way) in ways.iter().enumerate() {
            let port = far.port();
            inbounds.push(placed(way.inbound(&files), &format!("in{number}"), far.at(port)));
            let server = match &way.ear {
                Some(ear) => ear.in_front_of(far.at(port)).await,
                None => far.at(port),
            };
            let mut outbound = way.outbound(server, &files);
            outbound["tag"] = json!(format!("way{number}"));
            outbounds.push(outbound);
            let [tcp, udp] = [near.port(), near.port()];
            doors.push(placed(door("tcp", target), &format!("tcp{number}"), near.at(tcp)));
            doors.push(placed(door("udp", udp_target), &format!("udp{number}"), near.at(udp)));
            rules.push(json!({
                "type": "field",
                "inboundTag": [format!("tcp{number}"), format!("udp{number}")],
                "outboundTag": format!("way{number}"),
            }));
            at.push((near.at(tcp), near.at(udp)));
        }
        far.let_go();
        let server = server.run(&far, &config(inbounds, vec![freedom()], vec![])).await;
        near.let_go();
        let client = client.run(&near, &config(doors, outbounds, rules)).await;
        Pair {
            doors: at,
            programs: [Some(client), Some(server)],
            _places: [near, far],
            _files: files,
        }
    }
}
