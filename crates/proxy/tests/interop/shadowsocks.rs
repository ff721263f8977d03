//! Shadowsocks with other programs, in both roles: every method they have, one user and two.
//!
//! | | V2Ray 4.34 | Xray 26.3.27 |
//! |---|---|---|
//! | AES-128-GCM, AES-256-GCM, ChaCha20-Poly1305 of 2017 | yes | yes |
//! | XChaCha20-Poly1305 of 2017 | no | yes |
//! | the methods of 2022 | no | yes |
//! | several users | no | yes |
//! | the longest datagram | 2048 bytes with all that stands around it | 8192 |
//! | a request of 2022 in pieces | | refused |

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sealway_v2ray::shadowsocks::Method;
use serde_json::{Value, json};
use tokio::net::{TcpStream, UdpSocket};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::common::{
    associate, counting_target, shadowsocks_password as password, socks_packet, target, to_the_end, try_exchange,
    udp_target, within,
};
use crate::lacks::Largest;
use crate::matrix::{datagrams, stream};
use crate::programs::{Place, Program, Running};
use crate::ways::{config, door, freedom, placed};

/// A method, and whether there are two users.
type Way = (Method, bool);

fn has(program: Program, (method, two): Way) -> bool {
    program != Program::V2ray || !two && !method.is_2022() && method != Method::XChaCha20Poly1305
}

/// What all of the programs can do.
fn ways(programs: [Program; 2]) -> Vec<Way> {
    let all = Method::ALL
        .into_iter()
        .flat_map(|method| [(method, false), (method, true)]);
    let all = all.filter(|(method, two)| !two || !method.is_2022() || method.has_identities());
    all.filter(|way| programs.iter().all(|program| has(*program, *way)))
        .collect()
}

/// A server's settings. The client is the second user, where there are two.
fn server((method, two): Way) -> Value {
    let mut settings = json!({"method": method.name(), "network": "tcp,udp"});
    let user = |seed: u8| {
        let mut user = json!({"password": password(method, seed), "email": format!("user{seed}@example")});
        if !method.is_2022() {
            user["method"] = json!(method.name());
        }
        user
    };
    if two {
        settings["clients"] = json!([user(2), user(1)]);
    }
    settings["password"] = json!(password(method, if two { 0 } else { 1 }));
    settings
}

fn client((method, two): Way, at: SocketAddr) -> Value {
    let own = password(method, 1);
    let password = match two && method.is_2022() {
        true => format!("{}:{own}", password(method, 0)),
        false => own,
    };
    json!({"servers": [{
        "address": at.ip(), "port": at.port(), "method": method.name(), "password": password,
    }]})
}

/// Two programs with every way between them, and for each way doors to the targets: one for streams, two for datagrams.
struct Pair {
    ways: Vec<(Way, SocketAddr, SocketAddr)>,
    servers: Vec<SocketAddr>,
    _programs: [Running; 2],
    _places: [Place; 2],
}

impl Pair {
    async fn start([near, far]: [Program; 2], target: SocketAddr, udp: SocketAddr) -> Pair {
        let (there, here) = (Place::new(), Place::new());
        let (mut inbounds, mut doors, mut outbounds, mut rules, mut at) = (vec![], vec![], vec![], vec![], vec![]);
        let mut servers = vec![];
        for (number, way) in ways([near, far]).into_iter().enumerate() {
            let tag = format!("way{number}");
            let address = there.at(there.port());
            let inbound = json!({"protocol": "shadowsocks", "settings": server(way)});
            inbounds.push(placed(inbound, &tag, address));
            servers.push(address);
            outbounds.push(json!({"tag": tag, "protocol": "shadowsocks", "settings": client(way, address)}));
            let [tcp, datagrams] = [here.at(here.port()), here.at(here.port())];
            doors.push(placed(door("tcp", target), &format!("tcp{number}"), tcp));
            doors.push(placed(door("udp", udp), &format!("udp{number}"), datagrams));
            let tags = [format!("tcp{number}"), format!("udp{number}")];
            rules.push(json!({"type": "field", "inboundTag": tags, "outboundTag": tag}));
            at.push((way, tcp, datagrams));
        }
        there.let_go();
        let server = far.run(&there, &config(inbounds, vec![freedom()], vec![])).await;
        here.let_go();
        let client = near.run(&here, &config(doors, outbounds, rules)).await;
        Pair {
            ways: at,
            servers,
            _programs: [client, server],
            _places: [here, there],
        }
    }
}

async fn check(programs: [Program; 2]) {
    if !programs.iter().all(|program| program.there()) {
        return;
    }
    let pair = Pair::start(programs, target().await, udp_target().await).await;
    let longest = if programs.contains(&Program::V2ray) { 1900 } else { 8000 };
    let few = Arc::new(tokio::sync::Semaphore::new(6));
    let mut running = JoinSet::new();
    for &((method, two), tcp, udp) in &pair.ways {
        let name = format!("{method} {two}");
        for sizes in [(1, 1), (65_536, 65_536), (0, 65_536), (6 << 20, 5 << 20)] {
            let (name, few) = (name.clone(), Arc::clone(&few));
            running.spawn(async move {
                let _turn = few.acquire().await.unwrap();
                (name, stream(tcp, sizes, 1).await)
            });
        }
        let few = Arc::clone(&few);
        running.spawn(async move {
            let _turn = few.acquire().await.unwrap();
            let largest = Largest {
                len: longest,
                exact: false,
            };
            (name, datagrams(udp, largest).await)
        });
    }
    let done = running.join_all().await;
    let wrong = done
        .into_iter()
        .filter_map(|(name, done)| Some(format!("{name}: {}", done.err()?)));
    let wrong: Vec<String> = wrong.collect();
    assert!(wrong.is_empty(), "{programs:?}:\n{}", wrong.join("\n"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn xray_is_the_client() {
    check([Program::Xray, Program::Ours]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn xray_is_the_server() {
    check([Program::Ours, Program::Xray]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v2ray_is_the_client() {
    check([Program::V2ray, Program::Ours]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn v2ray_is_the_server() {
    check([Program::Ours, Program::V2ray]).await;
}

/// 200 streams at once, in both roles.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn two_hundred_at_once() {
    if !Program::Xray.there() {
        return;
    }
    for programs in [[Program::Xray, Program::Ours], [Program::Ours, Program::Xray]] {
        let pair = Pair::start(programs, target().await, udp_target().await).await;
        let way = |wanted: Way| pair.ways.iter().find(|(way, ..)| *way == wanted).unwrap().1;
        let doors = [(Method::Aes256Gcm, true), (Method::Blake3Aes256Gcm, true)].map(way);
        let mut all = JoinSet::new();
        for n in 0..200 {
            let door = doors[n % 2];
            all.spawn(async move {
                let stream = TcpStream::connect(door).await.unwrap();
                within("exchange", try_exchange(stream, &[7; 3000], 50_000)).await
            });
        }
        let wrong = all.join_all().await.into_iter().filter(Result::is_err).count();
        assert_eq!(wrong, 0, "{programs:?}");
    }
}

/// One association reaches two targets, and hears each under its own address: a full cone.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn datagrams_to_two_targets_of_one_client() {
    if !Program::Xray.there() {
        return;
    }
    for programs in [[Program::Xray, Program::Ours], [Program::Ours, Program::Xray]] {
        for way in [
            (Method::Aes128Gcm, true),
            (Method::Blake3Aes128Gcm, true),
            (Method::Blake3ChaCha20Poly1305, false),
        ] {
            let (there, here) = (Place::new(), Place::new());
            let (far, near) = (there.at(there.port()), here.at(here.port()));
            let inbound = placed(json!({"protocol": "shadowsocks", "settings": server(way)}), "in", far);
            let socks = json!({"protocol": "socks", "settings": {"udp": true, "ip": here.host}});
            let outbound = json!({"tag": "out", "protocol": "shadowsocks", "settings": client(way, far)});
            there.let_go();
            here.let_go();
            let _server = programs[1]
                .run_in(&there, &config(vec![inbound], vec![freedom()], vec![]), &[])
                .await;
            let config = config(vec![placed(socks, "socks", near)], vec![outbound], vec![]);
            let _client = programs[0].run_in(&here, &config, &[]).await;
            full_cone(near, &format!("{programs:?} {way:?}")).await;
        }
    }
}

/// Asks a SOCKS server for an association, and sends from one port to two targets, one of which has somebody else answer.
async fn full_cone(socks: SocketAddr, name: &str) {
    let (control, relay) = associate(socks).await;
    // Datagrams are taken from whoever has the connection.
    let own = UdpSocket::bind((control.local_addr().unwrap().ip(), 0)).await.unwrap();
    let targets = [udp_target().await, udp_target().await];
    let (asked, stranger) = (
        UdpSocket::bind("127.0.0.1:0").await.unwrap(),
        UdpSocket::bind("127.0.0.1:0").await.unwrap(),
    );
    let send = async |to: SocketAddr| {
        own.send_to(&socks_packet(to, b"abc"), relay).await.unwrap();
    };
    let hear = async |from: SocketAddr, wanted: &[u8]| {
        let mut got = vec![0; 2000];
        loop {
            let len = within(name, own.recv(&mut got)).await.unwrap();
            let (peer, payload) = sealway_v2ray::socks::udp::decode(&got[..len]).unwrap();
            // The answer to one that was sent twice may still come.
            if peer.socket_addr() == Some(from) {
                assert_eq!(&got[payload], wanted, "{name}");
                return;
            }
        }
    };
    for target in [targets[0], targets[1], targets[0]] {
        // Ports for datagrams open a little after those for streams.
        while timeout(Duration::from_secs(2), async {
            send(target).await;
            hear(target, b"cba").await;
        })
        .await
        .is_err()
        {}
    }
    send(asked.local_addr().unwrap()).await;
    let (_, seen) = within(name, asked.recv_from(&mut [0; 100])).await.unwrap();
    stranger.send_to(b"hello", ("127.0.0.1", seen.port())).await.unwrap();
    hear(stranger.local_addr().unwrap(), b"hello").await;
}

/// What a stranger sees of a server of 2022 is what Xray shows: a reset, and nothing said.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_see_what_xray_shows() {
    use tokio::io::AsyncWriteExt;
    for server in [Program::Xray, Program::Ours] {
        if !server.there() {
            continue;
        }
        let pair = Pair::start([Program::Ours, server], counting_target().await, udp_target().await).await;
        for (&((method, two), ..), &at) in pair.ways.iter().zip(&pair.servers) {
            if !method.is_2022() {
                continue;
            }
            let mut stream = TcpStream::connect(at).await.unwrap();
            stream.write_all(&crate::common::pattern(5, 2000)).await.unwrap();
            tokio::time::sleep(Duration::from_millis(100)).await;
            assert_eq!(
                to_the_end(&mut stream).await,
                (vec![], false),
                "{server:?} {method} {two}"
            );
        }
    }
}
