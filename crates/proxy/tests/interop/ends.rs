//! The end of one direction before the other, in both roles.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::common::{counting_target, pattern, udp_target, within};
use crate::lacks::tries;
use crate::programs::{PEERS, Program};
use crate::ways::{PROTOCOLS, Pair, VISION, VLESS, Way};

const SAID: &[u8] = b"all there is";

/// Says its piece and ends, then takes everything to the end and says how much it was.
async fn ending_target() -> (SocketAddr, tokio::sync::mpsc::Receiver<usize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (said, heard) = tokio::sync::mpsc::channel(16);
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            let said = said.clone();
            tokio::spawn(async move {
                let mut all = vec![0; 1];
                tcp.read_exact(&mut all).await.unwrap();
                tcp.write_all(SAID).await.unwrap();
                tcp.shutdown().await.unwrap();
                let _ = tcp.read_to_end(&mut all).await;
                let _ = said.send(all.len()).await;
            });
        }
    });
    (address, heard)
}

fn ways(programs: [Program; 2]) -> Vec<Way> {
    let mut ways = Vec::new();
    for protocol in [VLESS, PROTOCOLS[1]] {
        for tls in [false, true] {
            ways.push(Way::new(protocol, "tcp", tls));
        }
    }
    // V2Ray knows no flow.
    if !programs.contains(&Program::V2ray) {
        ways.push(Way::new(VISION, "tcp", true));
    }
    ways
}

/// What a program does with the end of one direction, where it matters which. Ours passes on both, always.
fn passes(program: Program, is_client: bool, way: &Way) -> [bool; 2] {
    match (program, is_client) {
        (Program::Ours, _) => [true, true],
        // With VLESS, neither core says the end of what it sends; with VMess there is a chunk for it. What the target
        // has ended they do not end towards the program.
        (_, true) => [way.protocol == "vmess", false],
        // Neither ends its direction to the target. What the target has ended they say with VMess only.
        (_, false) => [false, way.protocol == "vmess"],
    }
}

async fn check(programs: [Program; 2]) {
    if !programs.iter().all(|program| program.there()) {
        return;
    }
    let (ways, udp) = (ways(programs), udp_target().await);
    let (ending, mut heard) = ending_target().await;
    let client_ends = Pair::start(programs, &ways, (counting_target().await, udp)).await;
    let target_ends = Pair::start(programs, &ways, (ending, udp)).await;
    let payload = pattern(1, 300_000);
    for (number, way) in ways.iter().enumerate() {
        let name = format!("{programs:?} {}", way.name());
        let both = [passes(programs[0], true, way), passes(programs[1], false, way)];
        if both.iter().all(|passes| passes[0]) {
            let mut said = String::new();
            for _ in 0..tries(programs[0], way) {
                let mut stream = TcpStream::connect(client_ends.doors[number].0).await.unwrap();
                let sent = stream.write_all(&payload).await;
                said.clear();
                if sent.is_ok() && stream.shutdown().await.is_ok() {
                    let _ = within(&name, stream.read_to_string(&mut said)).await;
                }
                if said == "300000 bytes" {
                    break;
                }
            }
            assert_eq!(said, "300000 bytes", "{name}");
        }
        let mut stream = TcpStream::connect(target_ends.doors[number].0).await.unwrap();
        stream.write_all(b"x").await.unwrap();
        let mut said = vec![0; SAID.len()];
        within(&name, stream.read_exact(&mut said)).await.unwrap();
        assert_eq!(said, SAID, "{name}");
        if both.iter().all(|passes| passes[1]) {
            let end = within(&name, stream.read(&mut [0])).await.unwrap();
            assert_eq!(end, 0, "{name}");
            // A peer as the server closes the connection soon after that.
            if programs == [Program::Ours; 2] {
                stream.write_all(&payload).await.unwrap();
                stream.shutdown().await.unwrap();
                assert_eq!(within(&name, heard.recv()).await, Some(300_001), "{name}");
                continue;
            }
        }
        // At least the end of the whole connection gets there.
        drop(stream);
        assert_eq!(within(&name, heard.recv()).await, Some(1), "{name}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_is_the_client() {
    for peer in PEERS {
        check([peer, Program::Ours]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_peer_is_the_server() {
    for peer in PEERS {
        check([Program::Ours, peer]).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ours_is_both() {
    check([Program::Ours, Program::Ours]).await;
}
