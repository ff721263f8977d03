//! Handshakes that do not come to a good end, and such that do so late.

use tokio_rustls::TlsAcceptor;

use super::*;

const PUBLIC: [u8; 32] = [
    0x07, 0xa3, 0x7c, 0xbc, 0x14, 0x20, 0x93, 0xc8, 0xb7, 0x55, 0xdc, 0x1b, 0x10, 0xe8, 0x6c, 0xb4, 0x26, 0x37, 0x4a,
    0xd1, 0x6a, 0xa8, 0x53, 0xed, 0x0b, 0xdf, 0xc0, 0xb2, 0xb8, 0x6d, 0x1c, 0x7c,
];

/// How long the site waits for the end of a handshake: longer than the server does for a hello.
const PATIENCE: Duration = Duration::from_secs(4);

/// What a site has said on each connection.
type Said = Arc<Mutex<Vec<Vec<u8>>>>;

/// A site of TLS 1.3, and what it says.
async fn site() -> (SocketAddr, Said) {
    // A flight in one record of at most 512 bytes is taken for the first of four.
    let names: Vec<String> = (0..20).map(|number| format!("{number}.a.test")).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).chain(["a.test"]).collect();
    let (certificate, key) = certificate(&names);
    let acceptor = {
        use rustls::pki_types::pem::PemObject;
        use rustls::pki_types::{CertificateDer, PrivateKeyDer};
        let certificate = CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap();
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let tls = rustls::ServerConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate], key)
            .unwrap();
        TlsAcceptor::from(Arc::new(tls))
    };
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let to = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            tokio::spawn(async move {
                if let Ok(Ok(mut tls)) = tokio::time::timeout(PATIENCE, acceptor.accept(tcp)).await {
                    let _ = tls.read_to_end(&mut Vec::new()).await;
                }
            });
        }
    });
    let said = Said::default();
    (relay(to, Arc::clone(&said), Duration::ZERO).await, said)
}

/// Passes connections on, keeps what comes back, and lets what is said behind the first piece wait.
async fn relay(to: SocketAddr, said: Said, wait: Duration) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((near, _)) = listener.accept().await {
            let said = Arc::clone(&said);
            let number = {
                let mut said = said.lock().unwrap();
                said.push(Vec::new());
                said.len() - 1
            };
            tokio::spawn(async move {
                let (mut near_read, mut near_write) = near.into_split();
                let (mut far_read, mut far_write) = TcpStream::connect(to).await?.into_split();
                let up = tokio::spawn(async move {
                    let mut piece = vec![0; 16 << 10];
                    let mut first = true;
                    while let got @ 1.. = near_read.read(&mut piece).await? {
                        if !std::mem::take(&mut first) {
                            tokio::time::sleep(wait).await;
                        }
                        far_write.write_all(&piece[..got]).await?;
                    }
                    far_write.shutdown().await
                });
                let mut piece = [0; 4096];
                while let got @ 1.. = far_read.read(&mut piece).await? {
                    said.lock().unwrap()[number].extend_from_slice(&piece[..got]);
                    near_write.write_all(&piece[..got]).await?;
                }
                drop(near_write);
                let _ = up.await;
                std::io::Result::Ok(())
            });
        }
    });
    at
}

pub(super) fn of_a_client(name: &str) -> ClientReality {
    ClientReality {
        server_name: name.to_owned(),
        fingerprint: "chrome".to_owned(),
        public_key: PUBLIC,
        short_id: [1; 8],
        short_id_len: 8,
        mldsa65_verify: None,
        spider_x: "/".to_owned(),
        key_log: None,
    }
}

async fn client(server: SocketAddr, target: SocketAddr, name: &str) -> Server {
    let transport = ClientTransport {
        reality: Some(Box::new(of_a_client(name))),
        ..ClientTransport::default()
    };
    crate::behaviour::client(target, vless_out(server), transport).await
}

/// The hello of a client that has the key. Each is good once.
async fn hello() -> Vec<u8> {
    let ear = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let client = client(ear.local_addr().unwrap(), ear.local_addr().unwrap(), "a.test").await;
    let asking = TcpStream::connect(at(&client, "door")).await.unwrap();
    let (mut stream, _) = within("a client", ear.accept()).await.unwrap();
    let mut hello = vec![0; 5];
    within("a hello", stream.read_exact(&mut hello)).await.unwrap();
    hello.resize(5 + usize::from(u16::from_be_bytes([hello[3], hello[4]])), 0);
    within("a hello", stream.read_exact(&mut hello[5..])).await.unwrap();
    drop(asking);
    hello
}

/// Kinds and lengths of records.
fn records(mut bytes: &[u8]) -> Vec<(u8, usize)> {
    let mut all = Vec::new();
    while let [kind, _, _, high, low, rest @ ..] = bytes {
        let len = usize::from(u16::from_be_bytes([*high, *low]));
        all.push((*kind, len));
        bytes = rest.get(len..).unwrap_or_default();
    }
    all
}

/// Compares kinds and lengths. In the third record is a signature, and those of ECDSA are not all of one length.
fn assert_alike(one: &[u8], two: &[u8], what: &str) {
    let (mut one, mut two) = (records(one), records(two));
    assert!(one[2].1.abs_diff(two[2].1) <= 4, "{what}: {one:?}, {two:?}");
    (one[2].1, two[2].1) = (0, 0);
    assert_eq!(one, two, "{what}");
}

/// The first record.
fn first(bytes: &[u8]) -> &[u8] {
    let len = 5 + usize::from(u16::from_be_bytes([bytes[3], bytes[4]]));
    &bytes[..len]
}

/// What comes in place of the end of a handshake.
#[derive(Clone, Copy, Debug)]
enum Wrong {
    Nothing,
    /// The client ends its direction.
    End,
    /// These bytes.
    Bytes(&'static [u8]),
    /// The same, and the end.
    BytesAndEnd(&'static [u8]),
}

/// Sends a hello and what is wrong behind the flight: all that comes, whether it ends in good order, and when.
async fn tries(at: SocketAddr, hello: &[u8], wrong: Wrong) -> (Vec<u8>, bool, Duration) {
    let since = tokio::time::Instant::now();
    let mut stream = TcpStream::connect(at).await.unwrap();
    stream.write_all(hello).await.unwrap();
    let mut flight = vec![0; 1024];
    within("a flight", stream.read_exact(&mut flight)).await.unwrap();
    match wrong {
        Wrong::Nothing => {}
        Wrong::End => stream.shutdown().await.unwrap(),
        Wrong::Bytes(bytes) => stream.write_all(bytes).await.unwrap(),
        Wrong::BytesAndEnd(bytes) => {
            stream.write_all(bytes).await.unwrap();
            stream.shutdown().await.unwrap();
        }
    }
    let (rest, good) = to_the_end(&mut stream).await;
    ([flight, rest].concat(), good, since.elapsed())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handshake_that_breaks_off_ends_as_the_site_ends_it() {
    const SEALED: &[u8] = &[
        0x17, 3, 3, 0, 20, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20,
    ];
    let (site, said) = site().await;
    let ours = server(settings(site)).await;
    let cases = [
        Wrong::Nothing,
        Wrong::End,
        Wrong::Bytes(SEALED),
        // Not a whole record.
        Wrong::Bytes(&[0x17, 3, 3, 0, 53, 1, 2, 3]),
        Wrong::BytesAndEnd(&[0x17, 3, 3, 0, 53, 1, 2, 3]),
        // In the clear: an alert, a message, a request.
        Wrong::Bytes(&[0x15, 3, 3, 0, 2, 2, 48]),
        Wrong::Bytes(&[0x16, 3, 3, 0, 4, 20, 0, 0, 0]),
        Wrong::Bytes(b"GET / HTTP/1.1\r\n\r\n"),
        Wrong::Bytes(&[0x14, 3, 3, 0, 1, 2]),
    ];
    let tried = cases.map(|wrong| {
        let (to, said) = (at(&ours, "in"), Arc::clone(&said));
        tokio::spawn(async move {
            let hello = hello().await;
            let client = tries(to, &hello, wrong).await;
            // The same hello is a stranger's now.
            let stranger = tries(to, &hello, wrong).await;
            assert_alike(&client.0, &stranger.0, &format!("{wrong:?}"));
            assert_eq!(client.1, stranger.1, "{wrong:?}: the end");
            let is_the_sites = |bytes: &[u8]| said.lock().unwrap().iter().any(|said| said.starts_with(first(bytes)));
            assert!(!is_the_sites(&client.0), "{wrong:?}: the client was at the site");
            assert!(is_the_sites(&stranger.0), "{wrong:?}: the stranger was not at the site");
            // Not our patience, but the site's.
            for (_, _, took) in [&client, &stranger] {
                let late = *took >= PATIENCE - Duration::from_millis(100);
                let waits = matches!(wrong, Wrong::Nothing) || matches!(wrong, Wrong::Bytes([0x17, 3, 3, 0, 53, ..]));
                assert_eq!(late, waits, "{wrong:?}: {took:?}");
            }
        })
    });
    for tried in tried {
        within("a handshake that breaks off", tried).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_end_of_a_handshake_may_come_late() {
    let (site, _) = site().await;
    let ours = server(settings(site)).await;
    let slow = relay(at(&ours, "in"), Said::default(), Duration::from_millis(2500)).await;
    let client = client(slow, target().await, "a.test").await;
    let stream = TcpStream::connect(at(&client, "door")).await.unwrap();
    // Two pieces behind the hello: its end of the handshake, and what is carried.
    within("an exchange", exchange(stream, 1, 1)).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_two_with_one_hello_one_is_a_stranger() {
    let (site, said) = site().await;
    let ours = server(settings(site)).await;
    let hello = hello().await;
    let (to, wrong) = (at(&ours, "in"), Wrong::End);
    let (one, two) = tokio::join!(tries(to, &hello, wrong), tries(to, &hello, wrong));
    let at_the_site = [&one.0, &two.0].map(|got| said.lock().unwrap().iter().any(|said| said.starts_with(first(got))));
    assert_ne!(at_the_site[0], at_the_site[1], "one of them");
    assert_alike(&one.0, &two.0, "two with one hello");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_site_that_breaks_its_flight_off_is_seen_to_do_so() {
    for flight in [
        &b""[..],
        b"\x16\x03\x03\x00\x7a\x02\x00",
        b"\x15\x03\x03\x00\x02\x02\x28",
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target = listener.local_addr().unwrap();
        tokio::spawn(async move {
            while let Ok((mut tcp, _)) = listener.accept().await {
                tokio::spawn(async move {
                    let mut hello = vec![0; 16 << 10];
                    let _ = tcp.read(&mut hello).await;
                    tcp.write_all(flight).await
                });
            }
        });
        let ours = server(settings(target)).await;
        let mut views = Vec::new();
        for to in [target, at(&ours, "in")] {
            let mut stream = TcpStream::connect(to).await.unwrap();
            stream.write_all(&hello().await).await.unwrap();
            views.push(to_the_end(&mut stream).await);
        }
        assert_eq!(views[0], (flight.to_vec(), true));
        assert_eq!(views[1], views[0]);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hello_may_name_nobody() {
    let (site, _) = site().await;
    let ours = server(ServerReality {
        server_names: vec![String::new()],
        ..settings(site)
    })
    .await;
    // The address is dialled, and no name is asked for.
    let client = client(at(&ours, "in"), target().await, "").await;
    let stream = TcpStream::connect(at(&client, "door")).await.unwrap();
    within("an exchange", exchange(stream, 1000, 1000)).await;
}

/// Passes connections on, and says a record more in the name of who answers, once that one has said his first piece and is silent.
async fn says_more(to: SocketAddr) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let at = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut near, _)) = listener.accept().await {
            tokio::spawn(async move {
                let mut far = TcpStream::connect(to).await?;
                let mut hello = vec![0; 16 << 10];
                let got = near.read(&mut hello).await?;
                far.write_all(&hello[..got]).await?;
                let mut flight = vec![0; 16 << 10];
                while let Ok(got) = tokio::time::timeout(Duration::from_millis(300), far.read(&mut flight)).await {
                    near.write_all(&flight[..got?]).await?;
                }
                near.write_all(&[&[0x17, 3, 3, 0, 100][..], &[7; 100]].concat()).await?;
                tokio::io::copy_bidirectional(&mut near, &mut far).await
            });
        }
    });
    at
}

/// A site may have another ticket today than when it was asked.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_a_site_says_early_locks_nobody_out_and_is_seen() {
    let (site, said) = site().await;
    let site = says_more(site).await;
    let ours = server(settings(site)).await;
    let slow = relay(at(&ours, "in"), Said::default(), Duration::from_millis(1500)).await;
    let client = client(slow, target().await, "a.test").await;
    let let_in = async {
        let stream = TcpStream::connect(at(&client, "door")).await.unwrap();
        within("an exchange", exchange(stream, 1, 1)).await;
    };
    // Whoever sends on a client's hello, and no end of the handshake.
    let seen = async {
        let hello = hello().await;
        let (to, wrong) = (at(&ours, "in"), Wrong::Nothing);
        let (one, two) = tokio::join!(tries(to, &hello, wrong), tries(to, &hello, wrong));
        let at_the_site =
            [&one.0, &two.0].map(|got| said.lock().unwrap().iter().any(|said| said.starts_with(first(got))));
        assert_ne!(at_the_site[0], at_the_site[1], "one of them");
        assert_alike(&one.0, &two.0, "what was said early");
        assert_eq!(records(&one.0).last(), Some(&(0x17, 100)));
    };
    tokio::join!(let_in, seen);
}
