//! REALITY at our inbounds: Xray as the client, several programs as targets, and strangers who find the target and nothing else.

mod sites;
mod strangers;

use std::net::SocketAddr;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sealway_tls::reality::keys::mldsa65_public;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use crate::common::{ID, exchange, target, within};
use crate::nginx;
use crate::programs::{Place, Program, Running};
use crate::ways::{config, door, freedom, placed};
use sites::{LARGE, SITES, Sites, UNFIT, hybrid_site, watched};

const PRIVATE: &str = "AQIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyA";
const PUBLIC: &str = "B6N8vBQgk8i3VdwbEOhstCY3StFqqFPtC9_AsrhtHHw";
const SHORT_ID: &str = "0123456789abcdef";

fn server(target: SocketAddr, network: &str, more: &Value) -> Value {
    let mut reality = json!({
        "target": target.to_string(), "serverNames": ["a.test"], "privateKey": PRIVATE, "shortIds": [SHORT_ID]
    });
    for (key, value) in more.as_object().unwrap() {
        reality[key] = value.clone();
    }
    json!({
        "protocol": "vless",
        "settings": {"clients": [{"id": ID}], "decryption": "none"},
        "streamSettings": stream(network, reality),
    })
}

fn client(server: SocketAddr, network: &str, more: &Value) -> Value {
    let mut reality =
        json!({"serverName": "a.test", "publicKey": PUBLIC, "shortId": SHORT_ID, "fingerprint": "chrome"});
    for (key, value) in more.as_object().unwrap() {
        reality[key] = value.clone();
    }
    let user = json!({"id": ID, "encryption": "none"});
    json!({
        "protocol": "vless",
        "settings": {"vnext": [{"address": server.ip().to_string(), "port": server.port(), "users": [user]}]},
        "streamSettings": stream(network, reality),
    })
}

fn stream(network: &str, reality: Value) -> Value {
    let mut stream = json!({"network": network, "security": "reality", "realitySettings": reality});
    match network {
        "grpc" => stream["grpcSettings"] = json!({"serviceName": "way"}),
        "xhttp" => stream["xhttpSettings"] = json!({"path": "/way"}),
        _ => {}
    }
    stream
}

/// Our server with REALITY inbounds.
struct Ours {
    at: Vec<SocketAddr>,
    _running: Running,
    _place: Place,
}

impl Ours {
    async fn start(inbounds: Vec<Value>) -> Ours {
        let place = Place::new();
        let at: Vec<SocketAddr> = inbounds.iter().map(|_| place.at(place.port())).collect();
        let placed = inbounds.into_iter().zip(&at).enumerate();
        let inbounds = placed.map(|(number, (one, at))| placed_as(one, number, *at)).collect();
        place.let_go();
        let running = Program::Ours
            .run(&place, &config(inbounds, vec![freedom()], vec![]))
            .await;
        Ours {
            at,
            _running: running,
            _place: place,
        }
    }
}

fn placed_as(inbound: Value, number: usize, at: SocketAddr) -> Value {
    placed(inbound, &format!("in{number}"), at)
}

/// Xray with a door for each outbound.
struct Clients {
    doors: Vec<SocketAddr>,
    _running: Running,
    _place: Place,
}

impl Clients {
    async fn start(to: SocketAddr, outbounds: Vec<Value>) -> Clients {
        let place = Place::new();
        let (mut inbounds, mut own, mut rules, mut doors) = (vec![], vec![], vec![], vec![]);
        for (number, mut outbound) in outbounds.into_iter().enumerate() {
            let at = place.at(place.port());
            inbounds.push(placed(door("tcp", to), &format!("door{number}"), at));
            outbound["tag"] = json!(format!("way{number}"));
            own.push(outbound);
            let (from, way) = (format!("door{number}"), format!("way{number}"));
            rules.push(json!({"type": "field", "inboundTag": [from], "outboundTag": way}));
            doors.push(at);
        }
        place.let_go();
        let running = Program::Xray.run(&place, &config(inbounds, own, rules)).await;
        Clients {
            doors,
            _running: running,
            _place: place,
        }
    }
}

fn there() -> bool {
    nginx::there() && Program::Xray.there()
}

/// Whether an exchange through a door comes to a good end.
async fn works(door: SocketAddr) -> bool {
    let mut stream = TcpStream::connect(door).await.unwrap();
    let asked = async {
        stream.write_u64(1).await.ok()?;
        stream.write_u64(1).await.ok()?;
        stream.write_all(&crate::common::pattern(7, 1)).await.ok()?;
        let mut answer = [0; 33];
        stream.read_exact(&mut answer).await.ok()
    };
    within("an exchange", asked).await.is_some()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn xray_as_client_with_every_site_and_transport() {
    if !there() {
        return;
    }
    let (sites, to, hybrid) = (Sites::start(&SITES).await, target().await, hybrid_site().await);
    let (mut inbounds, mut ways) = (Vec::new(), Vec::new());
    let names = SITES.iter().map(|site| site.name).chain(["hybrid"]);
    for (site, name) in sites.at.iter().copied().chain([hybrid]).zip(names) {
        for network in ["raw", "grpc", "xhttp"] {
            inbounds.push(server(site, network, &json!({})));
            ways.push((network, format!("{name} {network}")));
        }
    }
    let ours = Ours::start(inbounds).await;
    let outbounds = ours
        .at
        .iter()
        .zip(&ways)
        .map(|(at, (network, _))| client(*at, network, &json!({})));
    let clients = Clients::start(to, outbounds.collect()).await;
    for (door, (_, name)) in clients.doors.iter().zip(&ways) {
        for (up, down) in [(1, 1), (65536, 65536), (4 << 20, 4 << 20)] {
            let stream = TcpStream::connect(door).await.unwrap();
            within(&format!("{name}: {up} up, {down} down"), exchange(stream, up, down)).await;
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whoever_is_not_let_in_gets_nowhere() {
    if !there() {
        return;
    }
    let (sites, to) = (Sites::start(&SITES[..1]).await, target().await);
    let unfit = Sites::start(&UNFIT).await;
    let down = Place::new();
    let nobody = down.at(down.port());
    down.let_go();
    let site = sites.at[0];
    let none = json!({});
    let other_key = json!({"publicKey": "8v3a3QZKmH2yS1Xl3WwNEXxO3JcXo4LJjkYFTHnV2Xo"});
    let cases = [
        ("right", server(site, "raw", &none), none.clone(), true),
        ("short id", server(site, "raw", &none), json!({"shortId": "00"}), false),
        ("key", server(site, "raw", &none), other_key, false),
        (
            "name",
            server(site, "raw", &none),
            json!({"serverName": "b.test"}),
            false,
        ),
        (
            "version",
            server(site, "raw", &json!({"minClientVer": "99.0.0"})),
            none.clone(),
            false,
        ),
        (
            "old enough",
            server(site, "raw", &json!({"minClientVer": "1.0.0"})),
            none.clone(),
            true,
        ),
        (
            "too new",
            server(site, "raw", &json!({"maxClientVer": "1.0.0"})),
            none.clone(),
            false,
        ),
        (
            "clock",
            server(site, "raw", &json!({"maxTimeDiff": 60000})),
            none.clone(),
            true,
        ),
        ("tls 1.2 only", server(unfit.at[0], "raw", &none), none.clone(), false),
        ("another hello", server(unfit.at[1], "raw", &none), none.clone(), false),
        ("down", server(nobody, "raw", &none), none.clone(), false),
    ];
    let (mut inbounds, mut clients, mut wanted) = (Vec::new(), Vec::new(), Vec::new());
    for (name, inbound, change, good) in cases {
        inbounds.push(inbound);
        clients.push(change);
        wanted.push((name, good));
    }
    let ours = Ours::start(inbounds).await;
    let outbounds = ours
        .at
        .iter()
        .zip(&clients)
        .map(|(at, change)| client(*at, "raw", change));
    let clients = Clients::start(to, outbounds.collect()).await;
    // All at once: who is not let in waits for seconds.
    let mut asked = JoinSet::new();
    for (&door, (name, good)) in clients.doors.iter().zip(wanted) {
        asked.spawn(async move { (name, good, works(door).await) });
    }
    for (name, good, works) in asked.join_all().await {
        assert_eq!(works, good, "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn xray_as_client_that_wants_mldsa65() {
    if !there() {
        return;
    }
    let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let key = |seed: [u8; 32]| json!({"mldsa65Verify": encode(&mldsa65_public(&seed).unwrap())});
    let (sites, to) = (Sites::start(&[LARGE]).await, target().await);
    let ours = Ours::start(vec![server(
        sites.at[0],
        "raw",
        &json!({"mldsa65Seed": encode(&[7; 32])}),
    )])
    .await;
    let cases = [
        ("right", key([7; 32]), true),
        ("wrong", key([8; 32]), false),
        ("none", json!({}), true),
    ];
    let outbounds = cases.iter().map(|(_, change, _)| client(ours.at[0], "raw", change));
    let clients = Clients::start(to, outbounds.collect()).await;
    let [right, wrong, none] = clients.doors[..] else {
        panic!("a door for each of {cases:?}");
    };
    let (right, wrong, none) = tokio::join!(works(right), works(wrong), works(none));
    for (works, (name, _, good)) in [right, wrong, none].into_iter().zip(&cases) {
        assert_eq!(works, *good, "{name}");
    }
}

/// A client's first flight, as it is captured: everything up to the first answer.
async fn captured(to: SocketAddr) -> Vec<u8> {
    let ear = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let heard = ear.local_addr().unwrap();
    let clients = Clients::start(to, vec![client(heard, "raw", &json!({}))]).await;
    let asking = TcpStream::connect(clients.doors[0]).await.unwrap();
    let (mut stream, _) = within("a client", ear.accept()).await.unwrap();
    let mut hello = vec![0; 5];
    within("a hello", stream.read_exact(&mut hello)).await.unwrap();
    let len = usize::from(u16::from_be_bytes([hello[3], hello[4]]));
    hello.resize(5 + len, 0);
    within("a hello", stream.read_exact(&mut hello[5..])).await.unwrap();
    drop(asking);
    hello
}

/// The records that a hello, sent in such pieces, is answered with.
async fn flight(at: SocketAddr, hello: &[u8], piece: usize) -> Vec<Vec<u8>> {
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream.set_nodelay(true).unwrap();
    for piece in hello.chunks(piece) {
        stream.write_all(piece).await.unwrap();
        stream.flush().await.unwrap();
        tokio::task::yield_now().await;
    }
    let mut records = Vec::new();
    let mut head = [0; 5];
    while let Ok(Ok(_)) = tokio::time::timeout(Duration::from_secs(2), stream.read_exact(&mut head)).await {
        let len = usize::from(u16::from_be_bytes([head[3], head[4]]));
        let mut body = vec![0; len];
        stream.read_exact(&mut body).await.unwrap();
        records.push([&head[..], &body].concat());
    }
    records
}

/// Waits until the target has been asked everything: the connections for that have left it.
async fn probed(left: &AtomicUsize) {
    let asked = async {
        // What is refused is asked again, so there may be more than twelve.
        let mut before = 0;
        while before < 12 || left.load(Ordering::SeqCst) > before {
            before = left.load(Ordering::SeqCst);
            tokio::time::sleep(Duration::from_secs(3)).await;
        }
    };
    within("the probes of the target", asked).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hello_may_come_in_pieces_and_counts_once() {
    if !there() {
        return;
    }
    let sites = Sites::start(&SITES[..1]).await;
    let (recorded, said) = recorder(sites.at[0]).await;
    let (site, left) = watched(recorded).await;
    let ours = Ours::start(vec![server(site, "raw", &json!({}))]).await;
    probed(&left).await;
    let hello = captured(target().await).await;
    let before = left.load(Ordering::SeqCst);
    let first = flight(ours.at[0], &hello, 1).await;
    assert!(first.len() >= 3, "{first:?}");
    let is_the_sites = said.lock().unwrap().iter().any(|said| said.starts_with(&first[0]));
    assert!(!is_the_sites, "a client was with the site");
    // It did not end its handshake, so the site has waited for that until now.
    within("the site", async {
        while left.load(Ordering::SeqCst) == before {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    })
    .await;
    // From now on this hello is somebody else's, however it is cut.
    let mut kept = Vec::new();
    for piece in [hello.len(), 1] {
        let before = left.load(Ordering::SeqCst);
        let mut stream = TcpStream::connect(ours.at[0]).await.unwrap();
        for piece in hello.chunks(piece) {
            stream.write_all(piece).await.unwrap();
        }
        let mut answer = [0; 64];
        within("the site's answer", stream.read_exact(&mut answer))
            .await
            .unwrap();
        tokio::time::sleep(Duration::from_secs(1)).await;
        assert_eq!(left.load(Ordering::SeqCst), before, "a hello counted twice");
        kept.push(stream);
    }
}

/// What came back on each connection.
type Said = Arc<Mutex<Vec<Vec<u8>>>>;

/// Passes connections on, and keeps what comes back.
async fn recorder(to: SocketAddr) -> (SocketAddr, Said) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (at, said) = (listener.local_addr().unwrap(), Arc::new(Mutex::new(Vec::new())));
    let kept = Arc::clone(&said);
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let kept = Arc::clone(&kept);
            let number = kept.lock().unwrap().len();
            kept.lock().unwrap().push(Vec::new());
            let (mut near_read, mut near_write) = near.into_split();
            let (mut far_read, mut far_write) = TcpStream::connect(to).await.unwrap().into_split();
            tokio::spawn(async move { tokio::io::copy(&mut near_read, &mut far_write).await });
            tokio::spawn(async move {
                let mut piece = [0; 4096];
                while let Ok(got @ 1..) = far_read.read(&mut piece).await {
                    kept.lock().unwrap()[number].extend_from_slice(&piece[..got]);
                    if near_write.write_all(&piece[..got]).await.is_err() {
                        break;
                    }
                }
            });
        }
    });
    (at, said)
}

/// Kinds and lengths of whole records.
fn records(mut bytes: &[u8]) -> Vec<(u8, usize)> {
    let mut all = Vec::new();
    while let [kind, _, _, high, low, rest @ ..] = bytes {
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        let Some(rest) = rest.get(len..) else { break };
        all.push((*kind, len));
        bytes = rest;
    }
    all
}

/// Whether records begin as others do. One of the first is a signature, and those of ECDSA are not all of one length.
fn looks_like(got: &[(u8, usize)], theirs: &[(u8, usize)]) -> bool {
    const SIGNATURE: usize = 4;
    let alike = |(at, (got, theirs)): (usize, (&(u8, usize), &(u8, usize)))| {
        let most = if at == SIGNATURE { 4 } else { 0 };
        got.0 == theirs.0 && got.1.abs_diff(theirs.1) <= most
    };
    got.len() >= theirs.len() && got.iter().zip(theirs).enumerate().all(alike)
}

/// Up to the first payload a client of ours gets records of the same lengths as somebody at the site.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_client_gets_what_the_site_would_send() {
    if !there() {
        return;
    }
    let sites = Sites::start(&SITES).await;
    let [first, second, third] = SITES.each_ref().map(|site| site.name);
    // All at once: their probes take seconds. Not as tasks: programs end with the thread that starts them.
    tokio::join!(
        gets_what_is_sent(first, sites.at[0]),
        gets_what_is_sent(second, sites.at[1]),
        gets_what_is_sent(third, sites.at[2]),
    );
}

async fn gets_what_is_sent(name: &str, site: SocketAddr) {
    let (at, left) = watched(site).await;
    let ours = Ours::start(vec![server(at, "raw", &json!({}))]).await;
    probed(&left).await;
    let (direct, theirs) = recorder(site).await;
    let mut openssl = Command::new("openssl")
        .args([
            "s_client",
            "-ciphersuites",
            "TLS_AES_128_GCM_SHA256",
            "-alpn",
            "h2,http/1.1",
            "-servername",
            "a.test",
            "-connect",
            &direct.to_string(),
        ])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    tokio::time::sleep(Duration::from_secs(2)).await;
    openssl.kill().unwrap();
    openssl.wait().unwrap();
    let theirs = records(&theirs.lock().unwrap()[0]);
    assert!(theirs.len() > 4, "{name}: {theirs:?}");
    let (through, got) = recorder(ours.at[0]).await;
    let clients = Clients::start(target().await, vec![client(through, "raw", &json!({}))]).await;
    assert!(works(clients.doors[0]).await, "{name}");
    let got: Vec<_> = got.lock().unwrap().iter().map(|said| records(said)).collect();
    // One more connection came when it was found out whether Xray listens.
    assert!(
        got.iter().any(|got| looks_like(got, &theirs)),
        "{name}: {theirs:?}, and we sent {got:?}"
    );
}
