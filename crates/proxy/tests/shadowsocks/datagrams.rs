//! Datagrams from a client that is nothing but its wire format.

use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use sealway_proxy::Server;
use sealway_proxy::settings::*;
use sealway_v2ray::shadowsocks::edition2022::packet::ClientSession;
use sealway_v2ray::shadowsocks::{KeyChain, Method, classic};
use sealway_v2ray::{Address, Destination};
use tokio::net::UdpSocket;
use tokio::time::timeout;

use super::streams::ask;
use super::*;

/// Clients so far.
static CLIENTS: AtomicU64 = AtomicU64::new(1);

/// A client with a socket of its own.
struct Client {
    socket: UdpSocket,
    keys: KeyChain,
    session: Option<ClientSession>,
    salts: u64,
}

impl Client {
    async fn new(server: &Server, keys: KeyChain, session: u64) -> Client {
        let socket = udp_to(udp_at(server, "in")).await;
        let modern = keys.method().is_2022();
        Client {
            socket,
            session: modern.then(|| ClientSession::new(&keys, session).unwrap()),
            keys,
            // The process remembers salts, whichever server they come to.
            salts: CLIENTS.fetch_add(1, Relaxed) << 20,
        }
    }

    fn seal(&mut self, to: SocketAddr, payload: &[u8], time: i64) -> Vec<u8> {
        let mut out = Vec::new();
        let target = &Address::from(to.ip());
        self.salts += 1;
        let salt = pattern(self.salts, 32);
        match &self.session {
            Some(session) => {
                let nonce = <[u8; 24]>::try_from(&salt[..24]).unwrap();
                let sealer = session.sealer();
                sealer
                    .seal(time, &nonce, (target, to.port()), 0, payload, &mut out)
                    .unwrap();
            }
            None => {
                let salt = &salt[..self.keys.method().salt_len()];
                classic::packet::seal(self.keys.own(), salt, (target, to.port()), payload, &mut out).unwrap();
            }
        }
        out
    }

    /// The next answer: whom it comes from, and what it says. `None` after a while without one.
    async fn hear(&mut self, patience: Duration) -> Option<(Destination, Vec<u8>)> {
        let mut got = vec![0; 65_536];
        let len = timeout(patience, self.socket.recv(&mut got)).await.ok()?.unwrap();
        got.truncate(len);
        Some(match &mut self.session {
            Some(session) => {
                let (from, payload) = session.open(&mut got, now(0)).unwrap();
                (from, got[payload].to_vec())
            }
            None => {
                let mut plain = Vec::new();
                let (from, at) = classic::packet::open(self.keys.own(), &got, &mut plain).unwrap();
                (from, plain[at..].to_vec())
            }
        })
    }

    async fn round(&mut self, to: SocketAddr, payload: &[u8]) {
        let sent = self.seal(to, payload, now(0));
        self.socket.send(&sent).await.unwrap();
        let (from, mut said) = self.hear(Duration::from_secs(20)).await.unwrap();
        said.reverse();
        assert_eq!((from.socket_addr(), said), (Some(to), payload.to_vec()));
    }
}

const SHORT: Duration = Duration::from_millis(300);
const LONG: Duration = Duration::from_secs(20);

/// One association reaches every target, and hears whoever answers, under the address that they have.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn full_cone() {
    let (one, two) = (udp_target().await, udp_target().await);
    for (method, users) in cases() {
        let server = serve(shadowsocks(method, users)).await;
        let mut client = Client::new(&server, shadowsocks_chain(method, users), 7).await;
        for (to, len) in [(one, 1), (two, 1200), (one, 1472), (two, 8192), (one, 0), (two, 60_000)] {
            client.round(to, &pattern(3, len)).await;
        }
        // Somebody whom nobody has asked.
        let asked = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let stranger = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let sent = client.seal(asked.local_addr().unwrap(), b"who am I?", now(0));
        client.socket.send(&sent).await.unwrap();
        let (_, seen) = within("datagram", asked.recv_from(&mut [0; 100])).await.unwrap();
        stranger.send_to(b"hello", ("127.0.0.1", seen.port())).await.unwrap();
        let (from, said) = client.hear(LONG).await.unwrap();
        assert_eq!(
            (from.socket_addr(), said),
            (stranger.local_addr().ok(), b"hello".to_vec()),
            "{method}"
        );
    }
}

/// A datagram that was right once, one that is changed, one of another time, and noise: nothing is answered, and nothing ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn bad_datagrams_are_not_answered() {
    let target = udp_target().await;
    for (method, users) in cases() {
        let server = serve(shadowsocks(method, users)).await;
        let mut client = Client::new(&server, shadowsocks_chain(method, users), 8).await;
        let good = client.seal(target, b"hello", now(0));
        client.socket.send(&good).await.unwrap();
        assert!(client.hear(LONG).await.is_some());
        let mut bad = vec![
            good.clone(),
            vec![],
            pattern(1, 1),
            pattern(2, 40),
            pattern(3, 1400),
            vec![0; 65_000],
        ];
        for at in [0, 10, method.salt_len() + 1, good.len() - 1] {
            let mut changed = client.seal(target, b"changed", now(0));
            changed[at] ^= 1;
            bad.push(changed);
        }
        bad.push(good[..good.len() - 1].to_vec());
        if method.is_2022() {
            bad.push(client.seal(target, b"late", now(-60)));
            bad.push(client.seal(target, b"early", now(60)));
        }
        for bad in bad {
            client.socket.send(&bad).await.unwrap();
        }
        // From elsewhere a captured one is no better.
        let elsewhere = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        elsewhere
            .send_to(&good, client.socket.peer_addr().unwrap())
            .await
            .unwrap();
        assert!(
            timeout(SHORT, elsewhere.recv(&mut [0; 100])).await.is_err(),
            "{method} {users}"
        );
        assert!(client.hear(SHORT).await.is_none(), "{method} {users}");
        client.round(target, b"still here").await;
    }
}

/// A session goes on where its client has another address.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_of_2022_moves_with_its_client() {
    let target = udp_target().await;
    for method in [Method::Blake3Aes256Gcm, Method::Blake3ChaCha20Poly1305] {
        let server = serve(shadowsocks(method, false)).await;
        let mut client = Client::new(&server, shadowsocks_chain(method, false), 9).await;
        client.round(target, b"here").await;
        let moved = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        moved.connect(client.socket.peer_addr().unwrap()).await.unwrap();
        client.socket = moved;
        client.round(target, b"there").await;
    }
}

/// The memory of this process that is in use, bytes.
pub(crate) fn resident() -> usize {
    let statm = std::fs::read_to_string("/proc/self/statm").unwrap();
    let pages: usize = statm.split(' ').nth(1).unwrap().parse().unwrap();
    pages * 4096
}

/// A user who begins ten thousand sessions gets as many as a user may have, and takes nothing from others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sessions_without_end_take_no_room_from_others() {
    let (target, sink) = (udp_target().await, UdpSocket::bind("127.0.0.1:0").await.unwrap());
    let method = Method::Blake3Aes128Gcm;
    let mut settings = server_settings(shadowsocks(method, true), ServerTransport::default());
    // Its ports are none that other tests want.
    settings.outbounds[0].send_through = Some(SendThrough::Address([127, 0, 0, 2].into()));
    let server = start(settings).await;
    let mut client = Client::new(&server, shadowsocks_chain(method, true), 0).await;
    let (memory, files) = (resident(), descriptors());
    for session in 1..=10_000 {
        client.session = Some(ClientSession::new(&client.keys, session).unwrap());
        let sent = client.seal(sink.local_addr().unwrap(), &[0; 100], now(0));
        client.socket.send(&sent).await.unwrap();
        if session % 64 == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    }
    // What the socket holds is served first.
    tokio::time::sleep(Duration::from_secs(1)).await;
    let both = [0, 2].map(|seed| shadowsocks_password(method, seed)).join(":");
    let mut other = Client::new(&server, KeyChain::new(method, &both).unwrap(), 1).await;
    other.round(target, b"hello").await;
    let grown = (resident().saturating_sub(memory), descriptors().saturating_sub(files));
    // A user has 1,024 sessions, with a flow each. Other tests run meanwhile.
    assert!(grown.0 < 64 << 20 && (500..1500).contains(&grown.1), "{grown:?}");
}

/// Files and sockets that this process has open.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// Of a client that is known nothing is lost while strangers have thousands of keys tried.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_hold_up_no_client_of_2017() {
    let target = udp_target().await;
    let method = Method::Aes256Gcm;
    let InboundProtocol::Shadowsocks(mut settings) = shadowsocks(method, false) else {
        panic!()
    };
    let ShadowsocksUsers::Classic(users) = &mut settings.users else {
        panic!()
    };
    for n in 0..2000 {
        users.push(ShadowsocksUser {
            id: sealway_v2ray::shadowsocks::Key::new(method, &format!("another {n}")).unwrap(),
            email: format!("another{n}@example"),
            level: 0,
        });
    }
    let server = serve(InboundProtocol::Shadowsocks(settings)).await;
    let mut client = Client::new(&server, shadowsocks_chain(method, false), 10).await;
    client.round(target, b"hello").await;
    let to = client.socket.peer_addr().unwrap();
    let strangers = tokio::spawn(async move {
        let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let junk = pattern(5, 1400);
        loop {
            for _ in 0..10 {
                let _ = socket.send_to(&junk, to).await;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    for n in 0..200 {
        let sent = client.seal(target, &[n; 100], now(0));
        client.socket.send(&sent).await.unwrap();
        let (_, said) = client.hear(Duration::from_secs(2)).await.expect("an answer");
        assert_eq!(said, [n; 100]);
    }
    strangers.abort();
}

/// Two users at one address each keep what they have.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_at_one_address_do_not_end_each_other() {
    let asked = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let to = asked.local_addr().unwrap();
    let method = Method::Aes128Gcm;
    let server = serve(shadowsocks(method, true)).await;
    let own = shadowsocks_chain(method, true);
    let other = KeyChain::new(method, &shadowsocks_password(method, 2)).unwrap();
    let mut client = Client::new(&server, own, 11).await;
    let mut seen = Vec::new();
    for _ in 0..2 {
        for keys in [None, Some(&other)] {
            let own = client.keys.clone();
            client.keys = keys.cloned().unwrap_or(own.clone());
            let sent = client.seal(to, b"hello", now(0));
            client.socket.send(&sent).await.unwrap();
            seen.push(within("datagram", asked.recv_from(&mut [0; 100])).await.unwrap().1);
            client.keys = own;
        }
    }
    // Each has a socket of its own, and has it still.
    assert!(seen[0] != seen[1] && seen[..2] == seen[2..], "{seen:?}");
}

/// What another process may have taken before this one began is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_of_before_the_start_is_refused() {
    let target = udp_target().await;
    for (session, method) in [(12, Method::Blake3Aes128Gcm), (13, Method::Blake3ChaCha20Poly1305)] {
        let server = serve(shadowsocks(method, false)).await;
        let mut client = Client::new(&server, shadowsocks_chain(method, false), session).await;
        // Tests that run longer than 20 seconds before this one would make it good.
        let mut other = Client::new(&server, shadowsocks_chain(method, false), session + 100).await;
        let old = client.seal(target, b"captured", now(-29));
        client.socket.send(&old).await.unwrap();
        assert!(client.hear(SHORT).await.is_none(), "{method}");
        other.round(target, b"hello").await;
    }
}

/// Datagrams without end push no request out of the memory of what came.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_do_not_make_requests_forgotten() {
    use tokio::io::AsyncWriteExt;
    let (target, echo) = (counting_target().await, udp_target().await);
    let sink = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let method = Method::Aes128Gcm;
    let server = serve(shadowsocks(method, false)).await;
    let asked = ask(shadowsocks_chain(method, false), target, b"hello", 220, now(0));
    let again = async || {
        let mut stream = tokio::net::TcpStream::connect(at(&server, "in")).await.unwrap();
        stream.write_all(&asked.wire).await.unwrap();
        stream.shutdown().await.unwrap();
        to_the_end(&mut stream).await.0
    };
    assert_eq!(asked.open(&again().await), b"5 bytes");
    let mut client = Client::new(&server, shadowsocks_chain(method, false), 14).await;
    for n in 0..210_000 {
        let sent = client.seal(sink.local_addr().unwrap(), b"", now(0));
        client.socket.send(&sent).await.unwrap();
        // All of them come: none is lost in a full socket.
        if n % 50 == 0 {
            client.round(echo, b"so far").await;
        }
    }
    assert_eq!(again().await, b"");
}

/// A user's datagrams are counted, and do not reach this machine unless that is allowed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_are_counted_and_guarded() {
    let target = udp_target().await;
    for (session, method) in [(15, Method::Aes256Gcm), (16, Method::Blake3Aes256Gcm)] {
        let mut settings = server_settings(shadowsocks(method, true), ServerTransport::default());
        settings.levels = counting();
        let guarded = Settings {
            inbounds: settings.inbounds.clone(),
            outbounds: vec![outbound(
                OutboundProtocol::Freedom(Freedom::default()),
                ClientTransport::default(),
            )],
            ..Settings::default()
        };
        let server = start(settings).await;
        let mut client = Client::new(&server, shadowsocks_chain(method, true), session).await;
        client.round(target, b"hello").await;
        client.round(target, b"you").await;
        let count = |user: u8, way: &str| {
            let name = format!("user>>>user{user}@example>>>traffic>>>{way}");
            server.stats().get(&name).map_or(0, |counter| counter.get())
        };
        let counted = || [1, 2].map(|user| (count(user, "uplink"), count(user, "downlink")));
        // An answer may arrive before it is counted.
        let until = std::time::Instant::now() + Duration::from_secs(5);
        while counted() != [(8, 8), (0, 0)] && std::time::Instant::now() < until {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(counted(), [(8, 8), (0, 0)], "{method}");
        let server = start(guarded).await;
        let mut client = Client::new(&server, shadowsocks_chain(method, true), session + 100).await;
        let sent = client.seal(target, b"hello", now(0));
        client.socket.send(&sent).await.unwrap();
        assert!(client.hear(SHORT).await.is_none(), "{method}");
    }
}

/// A unix socket for datagrams alone is refused: it would serve none.
#[tokio::test]
async fn a_unix_socket_takes_no_datagrams() {
    let InboundProtocol::Shadowsocks(mut only) = shadowsocks(Method::Aes128Gcm, false) else {
        panic!()
    };
    only.tcp = false;
    let mut settings = server_settings(InboundProtocol::Shadowsocks(only), ServerTransport::default());
    let path = std::env::temp_dir().join(format!("sealway-{}-datagrams", std::process::id()));
    settings.inbounds[0].listen = vec![Listen::Unix(UnixName::Path(path.clone()), None)];
    assert!(Server::start(settings).await.is_err());
    assert!(!path.exists());
}
