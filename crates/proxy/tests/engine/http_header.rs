//! The `http` header of the transport raw: what goes over the wire, and what strangers see.

use std::time::Duration;

use sealway_proxy::Server;
use sealway_proxy::settings::*;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use crate::common::{self, *};

fn front() -> TransportKind {
    let mut front = Front::default();
    front.request.paths = vec!["/way".into()];
    front.request.headers = vec![("Host".into(), vec!["a.example".into()])];
    front.response.headers = vec![("Date".into(), vec!["today".into()])];
    TransportKind::RawHttp(front)
}

const REQUEST: &[u8] = b"GET /way HTTP/1.1\r\nHost: a.example\r\n\r\n";
const RESPONSE: &[u8] = b"HTTP/1.1 200 OK\r\nDate: today\r\n\r\n";

async fn serve(protocol: InboundProtocol) -> Server {
    let transport = server_over(front(), None);
    start(server_settings(protocol, transport)).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heads_leave_together_with_the_first_bytes() {
    // The client's.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let to = "192.0.2.1:80".parse().unwrap();
    let vless = vless_out(listener.local_addr().unwrap());
    let transport = client_over(front(), None);
    let client = start(door_settings(to, outbound(vless, transport))).await;
    let mut program = TcpStream::connect(at(&client, "door")).await.unwrap();
    program.write_all(b"hello").await.unwrap();
    let (mut far, _) = within("accept", listener.accept()).await.unwrap();
    let mut got = vec![0; 4096];
    let len = within("first read", far.read(&mut got)).await.unwrap();
    assert_eq!(got[..len], [REQUEST, &vless_request(to), b"hello"].concat());
    // Whatever the response says, and in whatever pieces it comes.
    far.set_nodelay(true).unwrap();
    for byte in b"HTTP/1.0 404 Not Found\r\nA: b\r\n\r\n\0\0welcome" {
        far.write_all(&[*byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    within("welcome", program.read_exact(&mut got[..7])).await.unwrap();
    assert_eq!(got[..7], *b"welcome");
    // The server's, to a request in pieces.
    let server = serve(common::vless()).await;
    let target = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut stream = TcpStream::connect(at(&server, "in")).await.unwrap();
    stream.set_nodelay(true).unwrap();
    for byte in [REQUEST, &vless_request(target.local_addr().unwrap())].concat() {
        stream.write_all(&[byte]).await.unwrap();
        tokio::task::yield_now().await;
    }
    let (mut far, _) = within("accept", target.accept()).await.unwrap();
    far.write_all(b"hello").await.unwrap();
    let len = within("first read", stream.read(&mut got)).await.unwrap();
    assert_eq!(got[..len], [RESPONSE, b"\0\0hello"].concat());
}

/// What an outsider sees who sends this, and whether it ends in good order.
async fn seen(server: &Server, sent: &[u8]) -> (String, bool) {
    let mut stream = TcpStream::connect(at(server, "in")).await.unwrap();
    let _ = stream.write_all(sent).await;
    tokio::time::sleep(Duration::from_millis(50)).await;
    let (said, ended) = to_the_end(&mut stream).await;
    (String::from_utf8(said).unwrap(), ended)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn strangers_see_a_web_server() {
    let junk = pattern(8, 20_000);
    for protocol in [vless(), trojan(), vmess()] {
        let server = serve(protocol).await;
        let mut long = b"GET /way HTTP/1.1\r\nX: ".to_vec();
        long.resize(9000, b'a');
        let knows_the_path = [REQUEST, &junk].concat();
        for (sent, status) in [
            (b"GET / HTTP/1.1\r\nHost: a\r\n\r\n".to_vec(), "404 Not Found"),
            ([b"GET /other HTTP/1.1\r\n\r\n", &junk[..]].concat(), "404 Not Found"),
            (b"\x16\x03\x01\x02\x00\x01".to_vec(), "400 Bad Request"),
            (junk.clone(), "400 Bad Request"),
            (long, "400 Bad Request"),
            (knows_the_path, "400 Bad Request"),
        ] {
            let (said, ended) = seen(&server, &sent).await;
            let wanted = format!(
                "HTTP/1.1 {status}\r\nConnection: close\r\nCache-Control: private\r\nContent-Length: 0\r\nDate: "
            );
            assert!(said.starts_with(&wanted) && said.ends_with(" GMT\r\n\r\n"), "{said:?}");
            assert!(ended, "{said:?}");
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_direction_ends_by_itself() {
    let (server, to) = (serve(trojan()).await, counting_target().await);
    let transport = client_over(front(), None);
    let outbound = outbound(trojan_out(at(&server, "in")), transport);
    let client = start(door_settings(to, outbound)).await;
    let mut stream = TcpStream::connect(at(&client, "door")).await.unwrap();
    stream.write_all(&pattern(1, 300_000)).await.unwrap();
    stream.shutdown().await.unwrap();
    assert_eq!(to_the_end(&mut stream).await, (b"300000 bytes".to_vec(), true));
}

/// Last words are for strangers: a user whose traffic goes nowhere sees an end in good order and nothing before it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn users_do_not_hear_what_strangers_do() {
    let between = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let to = between.local_addr().unwrap();
    let nowhere = OutboundProtocol::Blackhole { http: false };
    for (inbound, out) in [
        (trojan(), trojan_out(to)),
        (vless(), vless_out(to)),
        (vmess(), vmess_out(to)),
    ] {
        let transport = server_over(front(), None);
        let mut settings = server_settings(inbound, transport);
        settings.outbounds = vec![outbound(nowhere.clone(), ClientTransport::default())];
        let server = start(settings).await;
        let transport = client_over(front(), None);
        let name = format!("{out:?}");
        let settings = door_settings("192.0.2.1:80".parse().unwrap(), outbound(out, transport));
        let client = start(settings).await;
        let mut program = TcpStream::connect(at(&client, "door")).await.unwrap();
        program.write_all(b"hello").await.unwrap();
        // The bytes of a user's client, and what they are answered with.
        let (mut said, _) = within("accept", between.accept()).await.unwrap();
        let mut sent = vec![0; 4096];
        let len = within("request", said.read(&mut sent)).await.unwrap();
        assert_eq!(seen(&server, &sent[..len]).await, (String::new(), true), "{name}");
    }
}
