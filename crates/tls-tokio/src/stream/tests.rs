//! Ends of ours against ends of tokio-rustls, over pipes that hand on bytes in odd pieces.

mod writing;

use std::future::poll_fn;
use std::io::{ErrorKind, IoSlice};
use std::pin::Pin;
use std::sync::Arc;

use rustls::crypto::aws_lc_rs;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{AlertDescription, ClientConfig, RootCertStore, ServerConfig, SupportedCipherSuite};
use sealway_tls::records::MAX_PLAIN;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, duplex};
use tokio_rustls::{TlsAcceptor, TlsConnector};

use super::*;

const NAME: &str = "server.example";

/// A server that demands a certificate, a client that has one, and one that has none.
struct Configs {
    server: Arc<ServerConfig>,
    client: Arc<ClientConfig>,
    bare: Arc<ClientConfig>,
    certificate: CertificateDer<'static>,
}

/// `tickets`: how many the server sends behind the handshake of TLS 1.3, which a narrow pipe does not hold.
fn configs(suite: SupportedCipherSuite, tickets: usize) -> Configs {
    let made = rcgen::generate_simple_self_signed([NAME.to_owned()]).unwrap();
    let certificate = made.cert.der().clone();
    let key = || PrivateKeyDer::try_from(made.signing_key.serialize_der()).unwrap();
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone()).unwrap();
    let roots = Arc::new(roots);
    let mut provider = aws_lc_rs::default_provider();
    provider.cipher_suites = vec![suite];
    let provider = Arc::new(provider);
    let versions = [suite.version()];
    let judge = WebPkiClientVerifier::builder_with_provider(roots.clone(), provider.clone());
    let mut server = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(&versions)
        .unwrap()
        .with_client_cert_verifier(judge.build().unwrap())
        .with_single_cert(vec![certificate.clone()], key())
        .unwrap();
    server.alpn_protocols = vec![b"http/1.1".to_vec()];
    server.enable_secret_extraction = true;
    server.send_tls13_tickets = tickets;
    let client = || {
        ClientConfig::builder_with_provider(provider.clone())
            .with_protocol_versions(&versions)
            .unwrap()
            .with_root_certificates(roots.clone())
    };
    let finish = |mut config: ClientConfig| {
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        config.enable_secret_extraction = true;
        Arc::new(config)
    };
    let shows = client().with_client_auth_cert(vec![certificate.clone()], key());
    Configs {
        server: Arc::new(server),
        client: finish(shows.unwrap()),
        bare: finish(client().with_no_client_auth()),
        certificate,
    }
}

/// AES-128-GCM and ChaCha20-Poly1305 of both versions.
fn suites() -> [SupportedCipherSuite; 4] {
    use aws_lc_rs::cipher_suite::*;
    [
        TLS13_AES_128_GCM_SHA256,
        TLS13_CHACHA20_POLY1305_SHA256,
        TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256,
        TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256,
    ]
}

fn tls13() -> Configs {
    configs(suites()[0], 0)
}

type Ours = TlsStream<DuplexStream>;
type Theirs = tokio_rustls::TlsStream<DuplexStream>;

/// Ours and theirs; `serving` says whether ours is the server.
async fn ends(configs: &Configs, serving: bool, pipe: usize) -> (Ours, Theirs) {
    let (near, far) = duplex(pipe);
    let name = NAME.try_into().unwrap();
    if serving {
        let connector = TlsConnector::from(configs.client.clone());
        let (near, far) = tokio::join!(
            crate::accept(configs.server.clone(), near),
            connector.connect(name, far)
        );
        (near.unwrap(), far.unwrap().into())
    } else {
        let acceptor = TlsAcceptor::from(configs.server.clone());
        let (near, far) = tokio::join!(crate::connect(configs.client.clone(), name, near), acceptor.accept(far));
        (near.unwrap(), far.unwrap().into())
    }
}

fn payload(len: usize) -> Vec<u8> {
    (0..len).map(|at| (at * 7 % 251) as u8).collect()
}

/// Sends `bytes` and reads them at the other end, `piece` at a time.
async fn pass(from: &mut (impl AsyncWrite + Unpin), to: &mut (impl AsyncRead + Unpin), bytes: &[u8], piece: usize) {
    let sending = async {
        from.write_all(bytes).await.unwrap();
        from.flush().await.unwrap();
    };
    let taking = async {
        let (mut got, mut room) = (Vec::new(), vec![0; piece]);
        while got.len() < bytes.len() {
            let len = to.read(&mut room).await.unwrap();
            assert_ne!(len, 0, "ended early");
            got.extend_from_slice(&room[..len]);
        }
        got
    };
    let ((), got) = tokio::join!(sending, taking);
    assert!(got == bytes, "{} bytes garbled", bytes.len());
}

#[tokio::test]
async fn bytes_pass_both_ways_in_every_suite_role_and_chunking() {
    for suite in suites() {
        let configs = configs(suite, 0);
        for (serving, pipe) in [
            (true, 61),
            (false, 997),
            (true, 16_406),
            (false, 1 << 20),
            (true, 1 << 20),
        ] {
            let (mut near, mut far) = ends(&configs, serving, pipe).await;
            assert_eq!(near.peer_certificate(), Some(&configs.certificate));
            assert_eq!(near.alpn_protocol(), Some(&b"http/1.1"[..]));
            for len in [1, 2, 16_383, 16_384, 16_385, 300_000] {
                for piece in [1000, 20_000, 70_000, 1 << 20] {
                    let bytes = payload(len);
                    pass(&mut near, &mut far, &bytes, piece).await;
                    pass(&mut far, &mut near, &bytes, piece).await;
                }
            }
            let farewell = async { near.shutdown().await.unwrap() };
            let heard = async { far.read(&mut [0; 8]).await.unwrap() };
            let ((), heard) = tokio::join!(farewell, heard);
            assert_eq!(heard, 0);
            assert_eq!(near.write(b"more").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
            // The other direction goes on until it ends too.
            pass(&mut far, &mut near, b"last words", 100_000).await;
            let mut rest = Vec::new();
            let (ended, end) = tokio::join!(far.shutdown(), near.read_to_end(&mut rest));
            ended.unwrap();
            assert_eq!(end.unwrap(), 0);
        }
    }
}

async fn say(mut to: impl AsyncWrite + Unpin, bytes: Vec<u8>) {
    to.write_all(&bytes).await.unwrap();
    to.shutdown().await.unwrap();
}

#[tokio::test]
async fn both_directions_are_full_at_once() {
    let (near, far) = ends(&tls13(), true, 4093).await;
    let bytes = payload(1_000_000);
    let ((mut near, near_out), (mut far, far_out)) = (tokio::io::split(near), tokio::io::split(far));
    let sent = tokio::spawn(say(near_out, bytes.clone()));
    let answered = tokio::spawn(say(far_out, bytes.clone()));
    let (mut ours, mut others) = (Vec::new(), Vec::new());
    let (one, other) = tokio::join!(near.read_to_end(&mut ours), far.read_to_end(&mut others));
    one.unwrap();
    other.unwrap();
    sent.await.unwrap();
    answered.await.unwrap();
    assert!(ours == bytes && others == bytes);
}

#[tokio::test]
async fn keys_change_both_ways_and_bytes_go_on() {
    for suite in &suites()[..2] {
        let configs = configs(*suite, 2);
        for serving in [true, false] {
            let (mut near, mut far) = ends(&configs, serving, 1 << 20).await;
            for (round, piece) in [500, 100_000, 500, 100_000].into_iter().enumerate() {
                let bytes = payload(40_000 + round);
                // rustls announces its new key and asks for ours, which precedes what we write next.
                match &mut far {
                    Theirs::Client(far) => far.get_mut().1.refresh_traffic_keys().unwrap(),
                    Theirs::Server(far) => far.get_mut().1.refresh_traffic_keys().unwrap(),
                }
                pass(&mut far, &mut near, &bytes, piece).await;
                assert!(!near.records.reply.is_empty(), "nothing answers the request");
                pass(&mut near, &mut far, &bytes, piece).await;
                assert!(near.records.reply.is_empty());
                near.update_keys();
                pass(&mut near, &mut far, &bytes, piece).await;
                pass(&mut far, &mut near, &bytes, piece).await;
            }
        }
    }
}

#[tokio::test]
async fn what_comes_with_the_last_flight_is_not_lost() {
    for (closes, extra) in [(false, 3), (true, 3), (true, 30_000)] {
        let configs = tls13();
        let (near, far) = duplex(1 << 20);
        // The client is through before the server reads again: its last flight, its payload and its end come in one piece.
        let talking = async {
            let connector = TlsConnector::from(configs.client.clone());
            let mut far = connector.connect(NAME.try_into().unwrap(), far).await.unwrap();
            far.write_all(&payload(extra)).await.unwrap();
            far.flush().await.unwrap();
            if closes {
                far.shutdown().await.unwrap();
            }
            far
        };
        let (near, _far) = tokio::join!(crate::accept(configs.server.clone(), near), talking);
        let mut near = near.unwrap();
        let mut got = vec![0; extra];
        near.read_exact(&mut got).await.unwrap();
        assert!(got == payload(extra));
        if closes {
            assert_eq!(near.read(&mut [0; 8]).await.unwrap(), 0);
        }
    }
}

#[tokio::test]
async fn a_request_for_new_keys_may_come_with_the_last_flight() {
    for suite in &suites()[..2] {
        let configs = configs(*suite, 2);
        let (near, far) = duplex(1 << 20);
        // Before the server reads again: the last flight, payload, the request and more payload come in one piece.
        let talking = async {
            let connector = TlsConnector::from(configs.client.clone());
            let mut far = connector.connect(NAME.try_into().unwrap(), far).await.unwrap();
            far.write_all(&payload(7)).await.unwrap();
            far.get_mut().1.refresh_traffic_keys().unwrap();
            far.write_all(&payload(9)).await.unwrap();
            far.flush().await.unwrap();
            far
        };
        let (near, mut far) = tokio::join!(crate::accept(configs.server.clone(), near), talking);
        let mut near = near.unwrap();
        let mut got = [0; 16];
        near.read_exact(&mut got).await.unwrap();
        assert!(got[..] == [payload(7), payload(9)].concat());
        assert!(near.records.reply.is_empty(), "the handshake has not seen the request");
        pass(&mut near, &mut far, &payload(50_000), 1000).await;
        near.update_keys();
        pass(&mut near, &mut far, &payload(50_000), 1000).await;
        pass(&mut far, &mut near, &payload(50_000), 1000).await;
    }
}

/// A room that grows with what came, as hyper's does, is filled.
#[tokio::test]
async fn a_room_of_any_size_is_filled_if_there_is_as_much() {
    let (mut near, mut far) = ends(&tls13(), true, 1 << 20).await;
    far.write_all(&payload(500_000)).await.unwrap();
    far.flush().await.unwrap();
    let (mut at, mut size) = (0, 8 << 10);
    while at + size <= 500_000 {
        let mut room = vec![0; size];
        assert_eq!(near.read(&mut room).await.unwrap(), size);
        assert!(room == payload(500_000)[at..at + size]);
        (at, size) = (at + size, 2 * size);
    }
    assert!(size > 2 * (64 << 10));
}

#[tokio::test]
async fn what_came_before_an_error_is_handed_out_first() {
    for room in [100_000, 1 << 20] {
        let (mut near, far) = ends(&tls13(), true, 1 << 20).await;
        let Theirs::Client(far) = far else { unreachable!() };
        let (mut pipe, mut far) = far.into_inner();
        io::Write::write_all(&mut far.writer(), &payload(50_000)).unwrap();
        let mut wire = Vec::new();
        while far.wants_write() {
            far.write_tls(&mut wire).unwrap();
        }
        pipe.write_all(&wire).await.unwrap();
        drop(pipe);
        let mut room = vec![0; room];
        assert_eq!(near.read(&mut room).await.unwrap(), 50_000);
        assert_eq!(near.read(&mut room).await.unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }
}

#[tokio::test]
async fn an_end_in_good_order_is_heard_in_a_room_of_any_size() {
    for room in [100, 1 << 20] {
        let (mut near, mut far) = ends(&tls13(), false, 1 << 20).await;
        far.write_all(b"all").await.unwrap();
        far.shutdown().await.unwrap();
        drop(far);
        let mut room = vec![0; room];
        for wanted in [3, 0, 0] {
            assert_eq!(near.read(&mut room).await.unwrap(), wanted);
        }
    }
}

#[tokio::test]
async fn an_end_without_a_farewell_is_an_error() {
    for room in [100, 1 << 20] {
        for cut in [0, 10] {
            let (mut near, far) = ends(&tls13(), true, 1 << 20).await;
            let Theirs::Client(far) = far else { unreachable!() };
            let (mut pipe, mut far) = far.into_inner();
            io::Write::write_all(&mut far.writer(), b"the whole").unwrap();
            let mut wire = Vec::new();
            far.write_tls(&mut wire).unwrap();
            pipe.write_all(&wire[..wire.len() - cut]).await.unwrap();
            drop(pipe);
            let mut room = vec![0; room];
            if cut == 0 {
                assert_eq!(near.read(&mut room).await.unwrap(), 9);
            }
            assert_eq!(near.read(&mut room).await.unwrap_err().kind(), ErrorKind::UnexpectedEof);
        }
    }
}

#[tokio::test]
async fn what_is_not_authentic_ends_it_and_the_peer_hears_why() {
    for room in [100, 1 << 20] {
        let (mut near, far) = ends(&tls13(), true, 1 << 20).await;
        let Theirs::Client(far) = far else { unreachable!() };
        let (mut pipe, mut far) = far.into_inner();
        io::Write::write_all(&mut far.writer(), b"the whole").unwrap();
        let mut wire = Vec::new();
        far.write_tls(&mut wire).unwrap();
        *wire.last_mut().unwrap() ^= 1;
        pipe.write_all(&wire).await.unwrap();
        let error = near.read(&mut vec![0; room]).await.unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
        let inner = error
            .get_ref()
            .and_then(|inner| inner.downcast_ref::<sealway_tls::Error>());
        assert_eq!(inner, Some(&sealway_tls::Error::Unauthentic));
        assert_eq!(near.write(b"more").await.unwrap_err().kind(), ErrorKind::BrokenPipe);
        drop(near);
        let mut answer = Vec::new();
        pipe.read_to_end(&mut answer).await.unwrap();
        far.read_tls(&mut &answer[..]).unwrap();
        let heard = far.process_new_packets().unwrap_err();
        assert_eq!(heard, rustls::Error::AlertReceived(AlertDescription::BadRecordMac));
    }
}

#[tokio::test]
async fn alerts_are_errors_of_rustls_when_they_come_after_the_handshake() {
    let configs = tls13();
    let (near, far) = duplex(1 << 20);
    let acceptor = TlsAcceptor::from(configs.server.clone());
    let connecting = crate::connect(configs.bare.clone(), NAME.try_into().unwrap(), near);
    let (near, far) = tokio::join!(connecting, acceptor.accept(far));
    assert!(far.is_err(), "a client without a certificate was let in");
    let error = near.unwrap().read(&mut [0; 8]).await.unwrap_err();
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let wanted = rustls::Error::AlertReceived(AlertDescription::CertificateRequired);
    assert_eq!(inner, Some(&wanted));
}

#[tokio::test]
async fn a_handshake_that_fails_says_why_at_both_ends() {
    let (one, other) = (tls13(), tls13());
    let (near, far) = duplex(1 << 20);
    let acceptor = TlsAcceptor::from(one.server.clone());
    let connecting = crate::connect(other.client.clone(), NAME.try_into().unwrap(), near);
    let (near, far) = tokio::join!(connecting, acceptor.accept(far));
    let of = |error: io::Error| *error.into_inner().unwrap().downcast::<rustls::Error>().unwrap();
    assert!(matches!(of(near.unwrap_err()), rustls::Error::InvalidCertificate(_)));
    assert!(matches!(of(far.err().unwrap()), rustls::Error::AlertReceived(_)));
    // One that is no TLS at all, and one that ends.
    for (said, kind) in [
        (&b"HTTP/1.1 400 Bad Request\r\n\r\n"[..], ErrorKind::InvalidData),
        (b"", ErrorKind::UnexpectedEof),
    ] {
        let (near, mut far) = duplex(1 << 20);
        far.write_all(said).await.unwrap();
        far.shutdown().await.unwrap();
        let error = crate::connect(one.client.clone(), NAME.try_into().unwrap(), near)
            .await
            .unwrap_err();
        assert_eq!(error.kind(), kind);
    }
}

#[tokio::test]
async fn secrets_that_may_not_be_taken_out_are_an_error_before_anything_is_sent() {
    let configs = tls13();
    let mut server = ServerConfig::clone(&configs.server);
    server.enable_secret_extraction = false;
    let mut client = ClientConfig::clone(&configs.client);
    client.enable_secret_extraction = false;
    // Nobody is at the other end.
    let (near, mut far) = duplex(1 << 20);
    let accepted = crate::accept(Arc::new(server), near).await;
    assert_eq!(accepted.unwrap_err().kind(), ErrorKind::InvalidData);
    assert_eq!(far.read(&mut [0; 8]).await.unwrap(), 0);
    let (near, mut far) = duplex(1 << 20);
    let dialled = crate::connect(Arc::new(client), NAME.try_into().unwrap(), near).await;
    assert_eq!(dialled.unwrap_err().kind(), ErrorKind::InvalidData);
    assert_eq!(far.read(&mut [0; 8]).await.unwrap(), 0);
}

#[tokio::test]
async fn a_message_without_an_end_is_an_error_of_the_handshake() {
    let (near, mut far) = duplex(1 << 20);
    // A message of 60,000 bytes in records of one byte each: they are more than is held of it.
    far.write_all(&[22, 3, 1, 0, 1, 1, 22, 3, 1, 0, 3, 0, 234, 96])
        .await
        .unwrap();
    far.write_all(&[22, 3, 1, 0, 1, 0].repeat(40_000)).await.unwrap();
    let error = crate::accept(tls13().server, near).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::InvalidData);
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
    let wanted = rustls::Error::General("TLS handshake message too long".into());
    assert_eq!(inner, Some(&wanted));
}

#[tokio::test]
async fn slices_are_joined_to_as_few_records_as_hold_them() {
    for lengths in [
        &[9, 16_375][..],
        &[9, 16_376],
        &[0, 1, 0, 40_000],
        &[16_384, 16_384],
        &[300_000],
    ] {
        // Too narrow for any of it: what was sealed can be looked at.
        let (mut near, mut far) = ends(&tls13(), false, 61).await;
        let parts: Vec<Vec<u8>> = lengths.iter().map(|len| payload(*len)).collect();
        let slices: Vec<IoSlice<'_>> = parts.iter().map(|part| IoSlice::new(part)).collect();
        let whole = parts.concat();
        let took = poll_fn(|cx| Pin::new(&mut near).poll_write_vectored(cx, &slices))
            .await
            .unwrap();
        assert_eq!(took, whole.len().min(16 * MAX_PLAIN), "{lengths:?}");
        // A header, the kind and a tag.
        assert_eq!(near.tx.out.len(), took + 22 * took.div_ceil(MAX_PLAIN), "{lengths:?}");
        let mut got = vec![0; took];
        let (flushed, read) = tokio::join!(near.flush(), far.read_exact(&mut got));
        flushed.unwrap();
        read.unwrap();
        assert!(got == whole[..took], "{lengths:?}");
    }
}
