//! What strangers see: whatever they send, the same.

use std::time::Duration;

use sealway_proxy::Server;
use sealway_proxy::settings::*;
use sealway_v2ray::Destination;
use sealway_v2ray::trojan::Key;
use sealway_v2ray::vmess::{self, CommandKey, Request, RequestRandom, Security, Session};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::common::*;

async fn start(protocol: InboundProtocol, transport: ServerTransport) -> Server {
    Server::start(server_settings(protocol, transport)).await.unwrap()
}

/// What an outsider sees who sends this: what is said, and whether it ends in good order.
async fn seen(server: &Server, sent: &[u8]) -> (Vec<u8>, bool) {
    let mut stream = TcpStream::connect(at(server, "in")).await.unwrap();
    // The server may have ended while this is being written; what it said is still there to be read.
    let _ = stream.write_all(sent).await;
    // A reset behind the end shows only to who does not look at once.
    tokio::time::sleep(Duration::from_millis(50)).await;
    to_the_end(&mut stream).await
}

/// A VMess header of the user with this id, made at a time that differs from now by so many seconds.
fn vmess_header(id: &sealway_v2ray::UserId, port: u16, late: i64, seed: u8) -> Vec<u8> {
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap();
    let to = Destination::tcp(loopback(), port);
    let options = Security::Aes128Gcm.usual_options();
    let session = Session::new(&[seed; 33], Security::Aes128Gcm, options, to.network).unwrap();
    let request = Request {
        session,
        command: vmess::Command::Connect(to),
    };
    let random = RequestRandom {
        auth: [seed; 4],
        nonce: [seed; 8],
        padding_len: 3,
        padding: [seed; 15],
    };
    let mut out = Vec::new();
    let time = now.as_secs() as i64 + late;
    request.seal(&CommandKey::new(id), time, &random, &mut out).unwrap();
    out
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_all_see_the_same() {
    let junk = pattern(8, 20_000);
    let then = |first: Vec<u8>| [first, junk.clone()].concat();
    // VLESS without fallbacks.
    let server = start(vless(), ServerTransport::default()).await;
    let known = |rest: &[u8]| [&[0][..], id().as_bytes(), rest].concat();
    let mut wrong_id = *id().as_bytes();
    wrong_id[15] ^= 1;
    for sent in [
        pattern(1, 18),
        pattern(2, 100),
        junk.clone(),
        b"GET / HTTP/1.1\r\nHost: server.example\r\n\r\n".to_vec(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03 and what follows in a ClientHello".to_vec(),
        [&[0][..], &wrong_id, &[0, 1, 0, 80, 1, 127, 0, 0, 1]].concat(),
        [&[1][..], id().as_bytes(), &[0, 1, 0, 80, 1, 127, 0, 0, 1]].concat(),
        known(&[0, 9]),
        known(&[0, 1, 0, 80, 9]),
        known(&[0, 1, 0, 80, 2, 0]),
        known(&[0, 4]),
        known(&[1, 0xff, 1]),
        then(known(&[0, 9])),
        then(known(&[0, 3])),
        then(known(&[0, 4])),
    ] {
        assert_eq!(
            seen(&server, &sent).await,
            (vec![], true),
            "vless, {} bytes: {:02x?}",
            sent.len(),
            &sent[..17]
        );
    }
    // Trojan without fallbacks: the same.
    let server = start(trojan(), ServerTransport::default()).await;
    let key = |password: &str| Key::of_password(password).as_bytes().to_vec();
    let known = |rest: &[u8]| [&key(PASSWORD)[..], b"\r\n", rest].concat();
    for sent in [
        pattern(1, 58),
        junk.clone(),
        b"GET / HTTP/1.1\r\nHost: server.example\r\nUser-Agent: as long as a key is\r\n\r\n".to_vec(),
        [&key("wrong")[..], b"\r\n\x01\x01\x7f\0\0\x01\0\x50\r\n"].concat(),
        [
            &key(PASSWORD).to_ascii_uppercase()[..],
            b"\r\n\x01\x01\x7f\0\0\x01\0\x50\r\n",
        ]
        .concat(),
        [&key(PASSWORD)[..], b"\n\n\x01\x01\x7f\0\0\x01\0\x50\r\n"].concat(),
        known(b"\x01\x02"),
        known(b"\x01\x03\0"),
        known(b"\x01\x01\x7f\0\0\x01\0\x50  "),
        then([&key("wrong")[..], b"\r\n"].concat()),
        then(known(b"\x01\x02")),
        // Datagrams that are none.
        known(b"\x03\x01\x7f\0\0\x01\0\x50\r\n\x02"),
    ] {
        assert_eq!(
            seen(&server, &sent).await,
            (vec![], true),
            "trojan, {} bytes: {}",
            sent.len(),
            sent[..58].escape_ascii()
        );
    }
    // VMess: more than it listens to, whatever is wrong.
    let server = start(vmess(), ServerTransport::default()).await;
    let other = sealway_v2ray::UserId::parse("somebody else").unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let valid = vmess_header(&id(), listener.local_addr().unwrap().port(), 0, 1);
    let changed = |at: usize| {
        let mut header = vmess_header(&id(), 9, 0, at as u8);
        header[at] ^= 1;
        header
    };
    for (name, sent) in [
        ("junk", junk.clone()),
        ("an unknown user", then(vmess_header(&other, 9, 0, 2))),
        ("a clock that is wrong", then(vmess_header(&id(), 9, 600, 3))),
        ("a changed id", then(changed(5))),
        ("a changed length", then(changed(20))),
        ("a changed nonce", then(changed(36))),
        ("a changed header", then(changed(60))),
        ("a web browser", then(b"GET / HTTP/1.1\r\n\r\n".to_vec())),
    ] {
        assert_eq!(seen(&server, &sent).await, (vec![], true), "vmess, {name}");
    }
    // A header that is used again, after it was right once.
    let mut first = TcpStream::connect(at(&server, "in")).await.unwrap();
    first.write_all(&valid).await.unwrap();
    let _far = within("accept", listener.accept()).await.unwrap();
    let again = seen(&server, &then(valid)).await;
    assert_eq!(again, (vec![], true), "vmess, a header used twice");
    // WebSocket: a path that is not ours, and a host that is not.
    let http = Upgrade {
        path: "/way".into(),
        host: "front.example".into(),
        ..Upgrade::default()
    };
    let key = "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AQIDBAUGBwgJCgsMDQ4PEA==";
    for network in [TransportKind::WebSocket(http.clone()), TransportKind::HttpUpgrade(http)] {
        let transport = server_over(network, None);
        let server = start(vless(), transport).await;
        for (path, host) in [
            ("/", "front.example"),
            ("/way2", "front.example"),
            ("/way", "other.example"),
        ] {
            for rest in [&b""[..], &junk] {
                let request = format!("GET {path} HTTP/1.1\r\nHost: {host}\r\n{key}\r\n\r\n").into_bytes();
                let (said, ended) = seen(&server, &[request, rest.to_vec()].concat()).await;
                let said = String::from_utf8(said).unwrap();
                assert_eq!(
                    said, "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                    "{path} {host}"
                );
                assert!(ended, "{path} {host}");
            }
        }
    }
    // TLS: at most an alert, as any TLS server would say it, and an end in good order.
    let (tls, _) = server_tls(&["server.example"]);
    let transport = server_over(TransportKind::Raw, Some(tls));
    let server = start(vless(), transport).await;
    for sent in [
        b"GET / HTTP/1.1\r\nHost: server.example\r\n\r\n".to_vec(),
        junk.clone(),
        then(vec![0x16, 3, 1, 0, 4, 1, 0, 0, 0]),
        then(vec![0x17, 3, 3, 0, 4]),
    ] {
        let (said, ended) = seen(&server, &sent).await;
        assert!(
            said.is_empty() || said.len() == 7 && said[..5] == [0x15, 3, 3, 0, 2],
            "{said:02x?}"
        );
        assert!(ended);
    }
}

/// Strangers inside TLS, whom only the protocol refuses, hear the end of TLS and nothing else.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_within_tls_hear_its_end() {
    let (tls, certificate) = server_tls(&["server.example"]);
    for protocol in [trojan(), vless(), vmess()] {
        let transport = server_over(TransportKind::Raw, Some(tls.clone()));
        let server = start(protocol, transport).await;
        let to = at(&server, "in");
        let mut stream = tls_to(to, &certificate, "server.example", &[], rustls::DEFAULT_VERSIONS).await;
        stream.write_all(&pattern(1, 20_000)).await.unwrap();
        stream.flush().await.unwrap();
        let mut said = Vec::new();
        // Without close_notify this would be an error.
        within("end", stream.read_to_end(&mut said)).await.unwrap();
        assert_eq!(said, b"");
    }
}

/// A memory for each inbound of each configuration forgot what another had seen: what was used at one inbound was good at
/// another, and at the same one when its configuration had been replaced.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_used_vmess_header_is_known_to_the_whole_process() {
    let target = TcpListener::bind("127.0.0.1:0").await.unwrap();
    // Ids that are older than the memory are refused, and this begins it.
    let _begun = start(vmess(), ServerTransport::default()).await;
    let header = vmess_header(&id(), target.local_addr().unwrap().port(), 0, 0xa7);
    let folder = tempfile::tempdir().unwrap();
    let log = |name: &str| {
        let path = folder.path().join(name);
        (path.clone(), LogTarget::File(path))
    };
    let mut held = Vec::new();
    for (name, wanted) in [
        ("first", " accepted tcp:"),
        ("second", " rejected  VMess: this request was seen before"),
    ] {
        let (path, access_log) = log(name);
        let mut settings = server_settings(vmess(), ServerTransport::default());
        settings.access_log = access_log;
        let server = Server::start(settings).await.unwrap();
        let mut stream = TcpStream::connect(at(&server, "in")).await.unwrap();
        stream.write_all(&header).await.unwrap();
        if name == "second" {
            stream.shutdown().await.unwrap();
        }
        let found = async {
            while !std::fs::read_to_string(&path).unwrap_or_default().contains(wanted) {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        within(wanted, found).await;
        // The first goes on beside the second, as one does whose configuration is replaced.
        held.push((server, stream));
    }
}
