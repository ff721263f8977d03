//! What the first bytes of a connection look like that a freedom outbound cuts or puts noise in front of: to a target that
//! records them, ours is what Xray's is.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UdpSocket};
use tokio::sync::mpsc;

use crate::common::within;
use crate::programs::{Place, Program};
use crate::ways::{config, door, placed};

/// A ClientHello as long as those with post-quantum keys are.
fn hello() -> Vec<u8> {
    let body: Vec<u8> = (0..1790_u32).map(|n| (n * 7) as u8).collect();
    [&[22, 3, 1], &(body.len() as u16).to_be_bytes()[..], &body].concat()
}

/// What goes through a door of the program to a target that records.
async fn stream(program: Program, fragment: &Value) -> Vec<u8> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let settings = json!({"fragment": fragment, "finalRules": [{"action": "allow"}]});
    let place = Place::new();
    let at = place.at(place.port());
    place.let_go();
    let doors = vec![placed(door("tcp", listener.local_addr().unwrap()), "door", at)];
    let out = json!({"protocol": "freedom", "settings": settings});
    let _program = program.run(&place, &config(doors, vec![out], vec![])).await;
    let mut near = TcpStream::connect(at).await.unwrap();
    near.write_all(&hello()).await.unwrap();
    // Whoever asks whether the door is open comes here, too, and says nothing.
    let (tell, mut told) = mpsc::channel(1);
    tokio::spawn(async move {
        while let Ok((mut far, _)) = listener.accept().await {
            let tell = tell.clone();
            tokio::spawn(async move {
                let mut all = Vec::new();
                while !all.ends_with(b"finished") {
                    if far.read_buf(&mut all).await.unwrap_or(0) == 0 {
                        return;
                    }
                }
                let _ = tell.send(all).await;
            });
        }
    });
    // The rest follows when all of it has come.
    tokio::time::sleep(Duration::from_millis(600)).await;
    near.write_all(b"finished").await.unwrap();
    within(&format!("{}, {fragment}", program.name()), told.recv())
        .await
        .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hello_is_cut_as_xray_cuts_it() {
    if !Program::Xray.there() {
        return;
    }
    for fragment in [
        json!({"packets": "tlshello", "length": "100", "interval": "0"}),
        json!({"packets": "tlshello", "length": "300", "interval": "2"}),
        json!({"packets": "tlshello", "length": "50", "interval": "0", "maxSplit": "5"}),
        json!({"packets": "1-1", "length": "100", "interval": "1"}),
    ] {
        let theirs = stream(Program::Xray, &fragment).await;
        let ours = stream(Program::Ours, &fragment).await;
        assert!(ours == theirs, "{fragment}: {} and {} bytes", ours.len(), theirs.len());
        let cut = fragment["packets"] == "tlshello";
        assert_eq!(ours.len() > hello().len() + 8, cut, "{fragment}");
    }
}

/// The datagrams that a target gets before and with the first one.
async fn datagrams(program: Program, noises: &Value) -> Vec<Vec<u8>> {
    let target = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let settings = json!({"noises": noises, "finalRules": [{"action": "allow"}]});
    let place = Place::new();
    let at = place.at(place.port());
    place.let_go();
    let doors = vec![placed(door("udp", target.local_addr().unwrap()), "door", at)];
    let out = json!({"protocol": "freedom", "settings": settings});
    let _program = program.run(&place, &config(doors, vec![out], vec![])).await;
    let near = UdpSocket::bind((at.ip(), 0)).await.unwrap();
    near.connect(at).await.unwrap();
    let mut all = Vec::new();
    let mut bytes = [0; 65_536];
    for word in [&b"first"[..], b"second"] {
        near.send(word).await.unwrap();
        while all.last().is_none_or(|last| last != word) {
            let second = Duration::from_secs(1);
            match tokio::time::timeout(second, target.recv(&mut bytes)).await {
                Ok(n) => all.push(bytes[..n.unwrap()].to_vec()),
                // A port for datagrams cannot be asked whether somebody listens there yet.
                Err(_) if all.is_empty() => drop(near.send(word).await),
                Err(_) => panic!("{} sends no more after {}", program.name(), all.len()),
            }
        }
    }
    all
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn noise_goes_ahead_as_xrays_does() {
    let noises = json!([
        {"type": "str", "packet": "a text", "delay": "5-10"},
        {"type": "hex", "packet": "00ff10", "applyTo": "ipv4"},
        {"type": "base64", "packet": "c2VjcmV0", "delay": 1},
        {"type": "str", "packet": "not for IPv4", "applyTo": "ipv6"},
        {"type": "rand", "packet": "1200-1200"},
    ]);
    for program in [Program::Ours, Program::Xray] {
        if !program.there() {
            continue;
        }
        let got = datagrams(program, &noises).await;
        let [text, hex, base64, random, first, second] = &got[..] else {
            panic!("{}: {got:?}", program.name());
        };
        assert_eq!(
            (&text[..], &hex[..], &base64[..]),
            (&b"a text"[..], &[0, 255, 16][..], &b"secret"[..])
        );
        assert_eq!(
            (random.len(), &first[..], &second[..]),
            (1200, &b"first"[..], &b"second"[..])
        );
    }
}
