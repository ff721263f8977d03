//! Our client of REALITY and Xray's server: every transport, targets of every kind, and everything that can be wrong.

use std::fmt::Debug;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{NamedGroup, ServerConfig};
use sealway_tls::group::X25519Secret;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Metadata, Subscriber};

use crate::common::{ID, certificate, target};
use crate::inner::Tap;
use crate::matrix::stream;
use crate::programs::{Place, Program, Running};
use crate::ways::{VISION, config, door, freedom, placed};

const SECRET: [u8; 32] = [0x68; 32];
const SHORT: &str = "0123456789abcdef";
const NAME: &str = "a.test";

fn public() -> String {
    URL_SAFE_NO_PAD.encode(X25519Secret::new(&SECRET).public())
}

/// What a target of the server is like.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Target {
    groups: &'static [NamedGroup],
    tls12: bool,
    rsa: bool,
    /// Its certificate takes 6 KiB.
    large: bool,
}

pub(crate) const HYBRID: Target = Target {
    groups: &[NamedGroup::X25519MLKEM768, NamedGroup::X25519],
    tls12: false,
    rsa: false,
    large: false,
};
const X25519: Target = Target {
    groups: &[NamedGroup::X25519],
    ..HYBRID
};
const LARGE: Target = Target { large: true, ..HYBRID };
const RSA: Target = Target { rsa: true, ..HYBRID };
/// Asks every browser for another hello.
const P256: Target = Target {
    groups: &[NamedGroup::secp256r1],
    ..HYBRID
};
const TLS12: Target = Target { tls12: true, ..HYBRID };

/// A site: it says hello, whatever it is asked.
pub(crate) async fn site(kind: Target) -> SocketAddr {
    let (certificate, key) = if kind.rsa {
        let key = rcgen::KeyPair::generate_for(&rcgen::PKCS_RSA_SHA256).unwrap();
        let made = rcgen::CertificateParams::new(vec![NAME.into()])
            .unwrap()
            .self_signed(&key)
            .unwrap();
        (made.pem(), key.serialize_pem())
    } else {
        let more: Vec<String> = (0..100).map(|n| format!("{n:03}.{}.example", "a".repeat(50))).collect();
        let names = [NAME]
            .into_iter()
            .chain(more.iter().map(String::as_str).filter(|_| kind.large));
        certificate(&names.collect::<Vec<_>>())
    };
    let usual = aws_lc_rs::default_provider();
    let groups = kind.groups.iter().map(|group| {
        let mut all = aws_lc_rs::ALL_KX_GROUPS.iter();
        *all.find(|known| known.name() == *group).unwrap()
    });
    let provider = CryptoProvider {
        kx_groups: groups.collect(),
        ..usual
    };
    let versions: &[_] = if kind.tls12 {
        &[&rustls::version::TLS12]
    } else {
        rustls::DEFAULT_VERSIONS
    };
    let mut server = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_protocol_versions(versions)
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(
            vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
            PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
        )
        .unwrap();
    server.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(server));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                let mut tls = acceptor.accept(tcp).await?;
                let _ = tls.read(&mut [0; 4096]).await?;
                tls.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").await
            });
        }
    });
    at
}

fn merged(mut one: Value, other: &Value) -> Value {
    for (key, value) in other.as_object().unwrap() {
        one[key] = value.clone();
    }
    one
}

fn network(name: &str) -> Value {
    match name {
        "grpc" => json!({"network": "grpc", "grpcSettings": {"serviceName": "way"}}),
        "xhttp" => json!({"network": "xhttp", "xhttpSettings": {"path": "/way"}}),
        _ => json!({"network": "raw"}),
    }
}

fn server_settings(target: SocketAddr) -> Value {
    json!({
        "target": target.to_string(), "serverNames": [NAME], "privateKey": URL_SAFE_NO_PAD.encode(SECRET),
        "shortIds": [SHORT, ""], "minClientVer": "1.0.0", "show": false,
    })
}

/// One way: the server's settings and the client's.
pub(crate) struct Way {
    pub(crate) name: String,
    network: &'static str,
    flow: &'static str,
    /// Hears what goes between the two.
    tap: Option<Tap>,
    /// Where it leads, if not where the others do.
    to: Option<SocketAddr>,
    server: Value,
    client: Value,
}

impl Way {
    pub(crate) fn new(name: &str, network: &'static str, target: SocketAddr) -> Way {
        Way {
            name: name.into(),
            network,
            flow: "",
            tap: None,
            to: None,
            server: server_settings(target),
            client: json!({"serverName": NAME, "publicKey": public(), "shortId": SHORT, "fingerprint": "chrome"}),
        }
    }

    /// With the flow of Vision, and a tap.
    pub(crate) fn with_flow(self, tap: &Tap) -> Way {
        Way {
            flow: VISION.1,
            tap: Some(tap.clone()),
            ..self
        }
    }

    /// To a target of its own.
    pub(crate) fn to(self, target: SocketAddr) -> Way {
        Way {
            to: Some(target),
            ..self
        }
    }

    fn with(mut self, server: Value, client: Value) -> Way {
        self.server = merged(self.server, &server);
        self.client = merged(self.client, &client);
        self
    }
}

pub(crate) struct Pair {
    pub(crate) doors: Vec<SocketAddr>,
    _running: [Running; 2],
    _places: [Place; 2],
}

/// A client and a server with all these ways.
pub(crate) async fn start(ways: &[Way], [client, server]: [Program; 2], target: SocketAddr) -> Pair {
    let (far, near) = (Place::new(), Place::new());
    let (mut inbounds, mut doors, mut outbounds, mut rules, mut at) = (vec![], vec![], vec![], vec![], vec![]);
    for (number, way) in ways.iter().enumerate() {
        let behind = far.at(far.port());
        let mut settings = network(way.network);
        settings["security"] = json!("reality");
        settings["realitySettings"] = way.server.clone();
        let inbound = json!({
            "protocol": "vless", "settings": {"clients": [{"id": ID, "flow": way.flow}], "decryption": "none"}, "streamSettings": settings,
        });
        inbounds.push(placed(inbound, &format!("in{number}"), behind));
        let mut settings = network(way.network);
        settings["security"] = json!("reality");
        settings["realitySettings"] = way.client.clone();
        let user = json!({"id": ID, "encryption": "none", "flow": way.flow});
        let met = match &way.tap {
            Some(tap) => tap.in_front_of(behind).await,
            None => behind,
        };
        let to = json!({"address": met.ip(), "port": met.port(), "users": [user]});
        outbounds.push(json!({
            "tag": format!("way{number}"), "protocol": "vless", "settings": {"vnext": [to]}, "streamSettings": settings,
        }));
        let door_at = near.at(near.port());
        doors.push(placed(
            door("tcp", way.to.unwrap_or(target)),
            &format!("reality{number}"),
            door_at,
        ));
        rules.push(json!({
            "type": "field", "inboundTag": [format!("reality{number}")], "outboundTag": format!("way{number}"),
        }));
        at.push(door_at);
    }
    far.let_go();
    let server = server.run(&far, &config(inbounds, vec![freedom()], vec![])).await;
    near.let_go();
    let client = client.run(&near, &config(doors, outbounds, rules)).await;
    Pair {
        doors: at,
        _running: [client, server],
        _places: [near, far],
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_transport_and_kind_of_target() {
    if !Program::Xray.there() {
        return;
    }
    let seed = [0x53; 32];
    let mldsa = sealway_tls::reality::keys::mldsa65_public(&seed).unwrap();
    let (hybrid, x25519, rsa) = (site(HYBRID).await, site(X25519).await, site(RSA).await);
    let mut ways = Vec::new();
    for network in ["raw", "grpc", "xhttp"] {
        for (name, target) in [("hybrid", hybrid), ("x25519", x25519)] {
            ways.push(Way::new(name, network, target));
        }
    }
    let signed = [
        json!({"mldsa65Seed": URL_SAFE_NO_PAD.encode(seed)}),
        json!({"mldsa65Verify": URL_SAFE_NO_PAD.encode(mldsa)}),
    ];
    // The certificate with ML-DSA-65 needs a target whose flight has room for it.
    let [server, client] = signed;
    ways.push(Way::new("signed", "raw", site(LARGE).await).with(server, client));
    ways.push(Way::new("empty short id", "raw", rsa).with(json!({}), json!({"shortId": ""})));
    ways.push(Way::new("clock", "raw", rsa).with(json!({"maxTimeDiff": 60_000}), json!({})));
    ways.push(Way::new("other hello", "raw", rsa).with(json!({}), json!({"fingerprint": "randomizednoalpn"})));
    ways.push(Way::new("xhttp mode", "xhttp", hybrid));
    let pair = start(&ways, [Program::Ours, Program::Xray], target().await).await;
    for (way, door) in ways.iter().zip(&pair.doors) {
        for sizes in [(1, 1), (65536, 65536), (0, 65536), (3 << 20, 3 << 20)] {
            let done = stream(*door, sizes, 1).await;
            assert_eq!(done, Ok(()), "{} over {}, {sizes:?}", way.name, way.network);
        }
    }
    let mut many = tokio::task::JoinSet::new();
    for number in 0..100 {
        let door = pair.doors[number % 6];
        many.spawn(async move { stream(door, (20_000, 20_000), 1).await });
    }
    for done in many.join_all().await {
        assert_eq!(done, Ok(()), "one of 100");
    }
}

/// Keeps what is said in the log.
struct Ear;

static HEARD: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

impl Subscriber for Ear {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= tracing::Level::INFO
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        HEARD.lock().unwrap().push(text.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// What is said of a connection through the door, which must not come about.
async fn fails(pair: &Pair, number: usize) -> String {
    let tag = format!("[reality{number}]");
    let mut stream = TcpStream::connect(pair.doors[number]).await.unwrap();
    stream.write_all(b"hello").await.unwrap();
    let end = tokio::time::timeout(Duration::from_secs(30), stream.read(&mut [0; 100])).await;
    assert!(!matches!(end.expect("it ends"), Ok(1..)), "somebody has answered");
    for _ in 0..100 {
        let heard = HEARD
            .lock()
            .unwrap()
            .iter()
            .rev()
            .find(|line| line.contains(&tag))
            .cloned();
        if let Some(line) = heard {
            return line;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("nothing was said of {tag}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_is_said() {
    if !Program::Xray.there() {
        return;
    }
    // Other tests are heard too: their doors have other names.
    let _ = tracing::subscriber::set_global_default(Ear);
    let good = site(HYBRID).await;
    let closed = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap()
    };
    let other_key = URL_SAFE_NO_PAD.encode(X25519Secret::new(&[1; 32]).public());
    let wrong_mldsa = URL_SAFE_NO_PAD.encode(sealway_tls::reality::keys::mldsa65_public(&[7; 32]).unwrap());
    let none = || json!({});
    let cases = [
        (
            Way::new("key", "raw", good).with(none(), json!({"publicKey": other_key})),
            "publicKey",
        ),
        (
            Way::new("short id", "raw", good).with(none(), json!({"shortId": "ff"})),
            "shortId",
        ),
        (
            Way::new("name", "raw", good).with(none(), json!({"serverName": "b.test"})),
            "serverName",
        ),
        (
            Way::new("clock", "raw", good).with(json!({"maxTimeDiff": 1}), none()),
            "clock",
        ),
        (
            Way::new("version", "raw", good).with(json!({"minClientVer": "99.0.0"}), none()),
            "minClientVer",
        ),
        (
            Way::new("signature", "raw", good).with(none(), json!({"mldsa65Verify": wrong_mldsa})),
            "mldsa65Verify",
        ),
        (Way::new("no target", "raw", closed), "may not reach its `target`"),
        (Way::new("old target", "raw", site(TLS12).await), "no TLS 1.3"),
        (
            Way::new("other group", "raw", site(P256).await),
            "X25519 or X25519MLKEM768",
        ),
        (
            Way::new("key", "grpc", good).with(none(), json!({"publicKey": other_key})),
            "publicKey",
        ),
        (
            Way::new("key", "xhttp", good).with(none(), json!({"publicKey": other_key})),
            "publicKey",
        ),
    ];
    for (way, said) in cases {
        let name = way.name.clone();
        // What our server says of it, if it can know. Xray waits for what it does not find out.
        let told = match (way.name.as_str(), way.network) {
            ("key", _) => "authentication failed or validation criteria not met",
            ("short id", _) => "the client has no short id of this server (version 26.",
            ("name", _) => "server name mismatch: b.test",
            ("clock", _) => "the client's clock differs by",
            ("version", _) => "the client's version 26.",
            ("old target" | "other group", _) => "target sent incorrect server hello",
            _ => "",
        };
        for server in [Program::Xray, Program::Ours] {
            HEARD.lock().unwrap().clear();
            let pair = start(std::slice::from_ref(&way), [Program::Ours, server], target().await).await;
            let line = fails(&pair, 0).await;
            assert!(line.contains(said), "{name}, {server:?}: {line}");
            let heard = HEARD.lock().unwrap().join("\n");
            let is_told = server == Program::Xray || heard.lines().any(|line| line.contains(told));
            assert!(is_told, "{name}: {heard}");
        }
    }
}
