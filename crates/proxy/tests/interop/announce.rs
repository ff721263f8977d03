//! The PROXY protocol where it is required: what is told, what is not, and what is no such header.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, ReadBuf};
use tokio::net::TcpStream;

use crate::common::{pattern, target, try_exchange, vless_request, within};
use crate::programs::{PEERS, Place, Program};
use crate::ways::{Files, VLESS, Way, config, freedom, placed};

const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";

/// An inbound of this program that requires the header, and its address.
fn inbound(files: &Files, place: &Place) -> (Value, std::net::SocketAddr) {
    let at = place.at(place.port());
    let mut inbound = placed(Way::new(VLESS, "tcp", false).inbound(files), "in", at);
    inbound["streamSettings"]["tcpSettings"] = json!({"acceptProxyProtocol": true});
    (inbound, at)
}

/// A header of version 2 with this command, family and rest.
fn v2(command: u8, family: u8, rest: &[u8]) -> Vec<u8> {
    let mut header = SIGNATURE.to_vec();
    header.extend_from_slice(&[command, family, 0, rest.len() as u8]);
    header.extend_from_slice(rest);
    header
}

/// The headers that every core takes, and the address that the access log then has; none for the socket's own.
fn told() -> Vec<(&'static str, Vec<u8>, Option<&'static str>)> {
    let four = [&[203, 0, 113, 9, 203, 0, 113, 1][..], &[0x12, 0x34, 0, 80]].concat();
    let mut six = vec![0x20, 1, 0xd, 0xb8];
    six.extend_from_slice(&[0; 11]);
    six.push(9);
    six.extend_from_slice(&[0xfe; 16]);
    six.extend_from_slice(&[0x12, 0x34, 0, 80]);
    // Extensions follow the addresses and are skipped.
    let with_extensions = [&four[..], &[0x04, 0, 3, 1, 2, 3]].concat();
    vec![
        (
            "1, IPv4",
            b"PROXY TCP4 203.0.113.9 203.0.113.1 4660 80\r\n".to_vec(),
            Some("203.0.113.9:4660"),
        ),
        (
            "1, IPv6",
            b"PROXY TCP6 2001:db8::9 2001:db8::1 4660 80\r\n".to_vec(),
            Some("[2001:db8::9]:4660"),
        ),
        ("1, unknown", b"PROXY UNKNOWN\r\n".to_vec(), None),
        ("2, IPv4", v2(0x21, 0x11, &four), Some("203.0.113.9:4660")),
        ("2, IPv6", v2(0x21, 0x21, &six), Some("[2001:db8::9]:4660")),
        (
            "2, extensions",
            v2(0x21, 0x11, &with_extensions),
            Some("203.0.113.9:4660"),
        ),
        ("2, local", v2(0x20, 0, &[]), None),
    ]
}

/// A connection that begins with this header goes through; the log says who came.
async fn check(program: Program) {
    if !program.there() {
        return;
    }
    let (files, place) = (Files::new(), Place::new());
    let (inbound, at) = inbound(&files, &place);
    place.let_go();
    let mut server = config(vec![inbound], vec![freedom()], vec![]);
    server["log"]["access"] = json!(place.name("access.log"));
    let _server = program.run(&place, &server).await;
    for (name, header, address) in told() {
        let target = target().await;
        let mut stream = TcpStream::connect(at).await.unwrap();
        let own = stream.local_addr().unwrap().to_string();
        stream.set_nodelay(true).unwrap();
        // A header may come in any pieces; but both peers refuse a line of version 1 that does not come as a whole.
        let piece = if program == Program::Ours { 1 } else { header.len() };
        for piece in header.chunks(piece) {
            stream.write_all(piece).await.unwrap();
        }
        stream.write_all(&vless_request(target)).await.unwrap();
        let what = format!("{}: version {name}", program.name());
        // VLESS's own answer, two bytes, comes with the first payload.
        let stream = Skipping { stream, left: 2 };
        let done = within(&what, try_exchange(stream, &pattern(3, 5000), 5000)).await;
        assert_eq!(done, Ok(()), "{what}");
        let (address, to) = (address.unwrap_or(&own).to_owned(), format!("tcp:{target}"));
        place
            .line("access.log", |line| line.contains(&address) && line.contains(&to))
            .await;
    }
}

/// Leaves out the first bytes that are read.
struct Skipping {
    stream: TcpStream,
    left: usize,
}

impl AsyncRead for Skipping {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, out: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        while self.left > 0 {
            let mut bytes = [0; 2];
            let mut some = ReadBuf::new(&mut bytes[..self.left.min(2)]);
            ready!(Pin::new(&mut self.stream).poll_read(cx, &mut some))?;
            match some.filled().len() {
                0 => return Poll::Ready(Ok(())),
                n => self.left -= n,
            }
        }
        Pin::new(&mut self.stream).poll_read(cx, out)
    }
}

impl AsyncWrite for Skipping {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_form_is_taken() {
    check(Program::Ours).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_form_is_taken_by_the_peers_too() {
    for peer in PEERS {
        check(peer).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_header_nothing_is_said() {
    let (files, place) = (Files::new(), Place::new());
    let (inbound, at) = inbound(&files, &place);
    place.let_go();
    let _server = Program::Ours
        .run(&place, &config(vec![inbound], vec![freedom()], vec![]))
        .await;
    let target = target().await;
    let long = format!("PROXY TCP4 {} 203.0.113.1 1 2\r\n", "1".repeat(100));
    let wrong: [&[u8]; 8] = [
        b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
        b"PROXY TCP4 203.0.113.9 2001:db8::1 1 2\r\n",
        b"PROXY TCP4 203.0.113.9 203.0.113.1 1 65536\r\n",
        b"PROXY UDP4 203.0.113.9 203.0.113.1 1 2\r\n",
        long.as_bytes(),
        &v2(0x31, 0x11, &[0; 12]),
        &v2(0x22, 0x11, &[0; 12]),
        &v2(0x21, 0x11, &[0; 11]),
    ];
    let no_header: &[u8] = &[];
    for header in wrong.into_iter().chain([no_header]) {
        let mut stream = TcpStream::connect(at).await.unwrap();
        let whole = [header, &vless_request(target), &[0; 16]].concat();
        let _ = stream.write_all(&whole).await;
        let mut said = Vec::new();
        let what = format!("after {:?}", String::from_utf8_lossy(header));
        let _ = within(&what, stream.read_to_end(&mut said)).await;
        assert!(said.is_empty(), "{what}: {said:?}");
    }
}
