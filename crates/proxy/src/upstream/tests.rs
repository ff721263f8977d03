//! Servers that answer late, wrongly, or only by streams.

mod bounds;
mod guesses;
mod routed;
mod streams;

use std::future::Future;
use std::net::IpAddr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use hickory_proto::op::{Message, MessageType, OpCode, ResponseCode};
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{Name, RData, Record};
use rcgen::{CertificateParams, KeyPair};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, UdpSocket};
use tokio::time::{Instant, timeout};

use super::*;
use crate::dns::message::{Answer, Family, Question, name};
use crate::settings::Pem;

const LIMIT: Duration = Duration::from_secs(20);

/// What an honest server says to a question.
fn honest(bytes: &[u8]) -> Vec<u8> {
    reply(bytes, |message| {
        let owner = message.queries[0].name().clone();
        message.add_answer(Record::from_rdata(owner, 60, RData::A(A([192, 0, 2, 1].into()))));
    })
}

fn reply(bytes: &[u8], change: impl FnOnce(&mut Message)) -> Vec<u8> {
    let asked = Message::from_vec(bytes).unwrap();
    let mut message = Message::new(asked.metadata.id, MessageType::Response, OpCode::Query);
    message.queries = asked.queries;
    change(&mut message);
    message.to_vec().unwrap()
}

/// The answer of a liar, which must never be believed.
fn lie(bytes: &[u8]) -> Vec<u8> {
    reply(bytes, |message| {
        let owner = message.queries[0].name().clone();
        message.add_answer(Record::from_rdata(owner, 60, RData::A(A([203, 0, 113, 6].into()))));
    })
}

fn question() -> Question {
    Question {
        name: name("a-rather-long-name.example").unwrap(),
        family: Family::V4,
        client: None,
    }
}

fn server_of(server: &str) -> DnsServer {
    let text = format!(r#"{{"dns": {{"servers": ["{server}"]}}, "outbounds": [{{"protocol": "freedom"}}]}}"#);
    settings::Settings::of_text(&text).dns.servers.remove(0)
}

/// A wire to a server as a configuration names it.
fn to(server: &str, trusted: &ClientTls) -> Arc<dyn Exchange> {
    to_by(server, trusted, Roads::new(vec![]))
}

fn to_by(server: &str, trusted: &ClientTls, roads: Arc<Roads>) -> Arc<dyn Exchange> {
    wire("dns.servers[0]", &server_of(server), &around(trusted, roads))
        .unwrap()
        .unwrap()
}

fn around(trusted: &ClientTls, roads: Arc<Roads>) -> Around {
    Around {
        trusted: trusted.clone(),
        socket: SocketOptions::default(),
        dns: Weak::new(),
        roads,
        loops: Arc::new(LoopGuard::default()),
    }
}

async fn ask(wire: &Arc<dyn Exchange>) -> Result<Answer, Error> {
    timeout(LIMIT, Arc::clone(wire).ask(question()))
        .await
        .expect("an answer, or an error")
}

fn is_honest(answer: Result<Answer, Error>) -> bool {
    answer.is_ok_and(|answer| answer.ips == ["192.0.2.1".parse::<IpAddr>().unwrap()])
}

async fn sockets() -> (UdpSocket, TcpListener) {
    loop {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        if let Ok(socket) = UdpSocket::bind(listener.local_addr().unwrap()).await {
            return (socket, listener);
        }
    }
}

/// Serves streams of questions.
async fn serve_streams(listener: TcpListener, served: Arc<AtomicUsize>) {
    while let Ok((mut tcp, _)) = listener.accept().await {
        served.fetch_add(1, Ordering::SeqCst);
        tokio::spawn(async move {
            while let Ok(len) = tcp.read_u16().await {
                let mut question = vec![0; len.into()];
                tcp.read_exact(&mut question).await.unwrap();
                let answer = honest(&question);
                tcp.write_u16(answer.len() as u16).await.unwrap();
                tcp.write_all(&answer).await.unwrap();
            }
        });
    }
}

/// A server of datagrams that does as `serve` says, and one of streams; how many connections the latter had.
async fn udp_server<F: Future<Output = ()> + Send + 'static>(
    serve: impl FnOnce(UdpSocket) -> F,
) -> (Arc<dyn Exchange>, Arc<AtomicUsize>) {
    let (socket, listener) = sockets().await;
    let port = socket.local_addr().unwrap().port();
    let served = Arc::new(AtomicUsize::new(0));
    tokio::spawn(serve(socket));
    tokio::spawn(serve_streams(listener, Arc::clone(&served)));
    (
        to(&format!("udp+local://127.0.0.1:{port}"), &ClientTls::default()),
        served,
    )
}

#[tokio::test]
async fn a_truncated_answer_is_asked_for_by_a_stream() {
    let (wire, streams) = udp_server(|socket| async move {
        let mut buffer = [0; 2048];
        while let Ok((len, from)) = socket.recv_from(&mut buffer).await {
            let cut = reply(&buffer[..len], |message| message.metadata.truncation = true);
            socket.send_to(&cut, from).await.unwrap();
        }
    })
    .await;
    assert!(is_honest(ask(&wire).await) && is_honest(ask(&wire).await));
    assert_eq!(streams.load(Ordering::SeqCst), 1, "the stream is kept");
}

#[tokio::test]
async fn servers_of_every_age_are_understood() {
    for age in 0..4 {
        let (wire, _) = udp_server(move |socket| async move {
            let mut buffer = [0; 2048];
            let mut seen = 0;
            while let Ok((len, from)) = socket.recv_from(&mut buffer).await {
                seen += 1;
                let question = &buffer[..len];
                let asked = Message::from_vec(question).unwrap();
                let answer = match age {
                    // It writes all letters small.
                    0 => reply(question, |message| {
                        let small = message.queries[0].name().to_lowercase();
                        message.queries[0].set_name(small.clone());
                        message.add_answer(Record::from_rdata(small, 60, RData::A(A([192, 0, 2, 1].into()))));
                    }),
                    // It does not know the extensions, and says so with the question or without.
                    1 | 2 if asked.edns.is_some() => reply(question, |message| {
                        message.metadata.response_code = ResponseCode::FormErr;
                        if age == 2 {
                            message.queries.clear();
                        }
                    }),
                    // What is lost is sent again.
                    3 if seen == 1 => continue,
                    _ => honest(question),
                };
                socket.send_to(&answer, from).await.unwrap();
            }
        })
        .await;
        assert!(is_honest(ask(&wire).await), "{age}");
        assert!(is_honest(ask(&wire).await), "{age}, again");
    }
}

#[tokio::test]
async fn each_question_has_a_port_to_itself_and_ports_change() {
    use std::collections::HashMap;
    use std::sync::Mutex;
    let seen: Arc<Mutex<Vec<(u16, u16)>>> = Arc::default();
    let note = Arc::clone(&seen);
    let (wire, _) = udp_server(|socket| async move {
        let mut buffer = [0; 2048];
        let mut held = Vec::new();
        while let Ok((len, from)) = socket.recv_from(&mut buffer).await {
            let id = u16::from_be_bytes([buffer[0], buffer[1]]);
            note.lock().unwrap().push((from.port(), id));
            held.push((buffer[..len].to_vec(), from));
            // Twenty at once.
            if held.len() == 20 {
                for (question, from) in held.drain(..) {
                    socket.send_to(&honest(&question), from).await.unwrap();
                }
            }
        }
    })
    .await;
    for _ in 0..20 {
        let asking: Vec<_> = (0..20)
            .map(|_| {
                let wire = Arc::clone(&wire);
                tokio::spawn(async move { ask(&wire).await })
            })
            .collect();
        for task in asking {
            assert!(is_honest(task.await.unwrap()));
        }
    }
    let seen = seen.lock().unwrap();
    assert_eq!(seen.len(), 400);
    for round in seen.chunks(20) {
        let mut ports: Vec<u16> = round.iter().map(|(port, _)| *port).collect();
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 20, "two questions had one port");
    }
    let mut uses: HashMap<u16, usize> = HashMap::new();
    seen.iter().for_each(|(port, _)| *uses.entry(*port).or_default() += 1);
    assert!(uses.len() >= 60, "{} ports for 400 questions", uses.len());
    let mut ids: Vec<u16> = seen.iter().map(|(_, id)| *id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert!(ids.len() > 380, "{} ids for 400 questions", ids.len());
}

#[tokio::test]
async fn a_closed_port_is_an_error_at_once() {
    // No test is given this one: the kernel draws free ports far above it.
    let port = 1;
    for server in ["udp+local", "tcp+local", "https+local"] {
        let began = Instant::now();
        let wire = to(&format!("{server}://127.0.0.1:{port}"), &ClientTls::default());
        assert!(ask(&wire).await.is_err(), "{server}");
        assert!(began.elapsed() < Duration::from_secs(4), "{server}");
    }
}

#[tokio::test]
async fn streams_are_kept_and_made_anew() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let served = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&served);
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            // Two answers on each stream, the second behind one to something else.
            for n in 0..2 {
                let Ok(len) = tcp.read_u16().await else { break };
                let mut question = vec![0; len.into()];
                tcp.read_exact(&mut question).await.unwrap();
                let mut other = lie(&question);
                other[0] ^= 1;
                for answer in [other, honest(&question)].iter().skip(1 - n) {
                    tcp.write_u16(answer.len() as u16).await.unwrap();
                    tcp.write_all(answer).await.unwrap();
                }
            }
        }
    });
    let wire = to(&format!("tcp+local://127.0.0.1:{port}"), &ClientTls::default());
    for _ in 0..6 {
        assert!(is_honest(ask(&wire).await));
    }
    assert_eq!(served.load(Ordering::SeqCst), 3);
}

/// A certificate for 127.0.0.1, and what believes it.
fn certificate(alpn: &[&[u8]]) -> (Arc<rustls::ServerConfig>, ClientTls) {
    let key = KeyPair::generate().unwrap();
    let params = CertificateParams::new(vec!["127.0.0.1".into(), "dns.example".into()]).unwrap();
    let certificate = params.self_signed(&key).unwrap();
    let private = rustls::pki_types::PrivatePkcs8KeyDer::from(key.serialize_der());
    let mut config = rustls::ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![certificate.der().clone()], private.into())
        .unwrap();
    config.alpn_protocols = alpn.iter().map(|one| one.to_vec()).collect();
    let trusted = ClientTls {
        authorities: vec![Pem::Inline(certificate.pem())],
        no_system_roots: true,
        ..ClientTls::default()
    };
    (Arc::new(config), trusted)
}

#[tokio::test]
async fn questions_go_through_tls() {
    let (config, trusted) = certificate(&[]);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            let acceptor = tokio_rustls::TlsAcceptor::from(Arc::clone(&config));
            tokio::spawn(async move {
                let Ok(mut tls) = acceptor.accept(tcp).await else {
                    return;
                };
                while let Ok(len) = tls.read_u16().await {
                    let mut question = vec![0; len.into()];
                    tls.read_exact(&mut question).await.unwrap();
                    assert_eq!(question.len() % 128, 0, "its length tells of the name");
                    let answer = honest(&question);
                    tls.write_all(&[&(answer.len() as u16).to_be_bytes()[..], &answer].concat())
                        .await
                        .unwrap();
                    tls.flush().await.unwrap();
                }
            });
        }
    });
    let wire = to(&format!("tls+local://127.0.0.1:{port}"), &trusted);
    assert!(is_honest(ask(&wire).await) && is_honest(ask(&wire).await));
    let nobody = ClientTls {
        authorities: certificate(&[]).1.authorities,
        ..trusted
    };
    assert!(
        ask(&to(&format!("tls+local://127.0.0.1:{port}"), &nobody))
            .await
            .is_err(),
        "a stranger was believed"
    );
}

/// A server of DNS over HTTPS whose connections end after `each` requests.
async fn https_server(each: usize, config: Arc<rustls::ServerConfig>, connections: Arc<AtomicUsize>) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            connections.fetch_add(1, Ordering::SeqCst);
            let acceptor = tokio_rustls::TlsAcceptor::from(Arc::clone(&config));
            tokio::spawn(async move {
                let Ok(tls) = acceptor.accept(tcp).await else { return };
                let mut server = h2::server::handshake(tls).await.unwrap();
                let mut served = 0;
                while let Some(Ok((request, mut respond))) = server.accept().await {
                    served += 1;
                    if served == each {
                        server.graceful_shutdown();
                    }
                    tokio::spawn(async move {
                        assert_eq!(
                            (request.method().as_str(), request.uri().path()),
                            ("POST", "/dns-query")
                        );
                        assert_eq!(request.headers()["content-type"], "application/dns-message");
                        let mut body = request.into_body();
                        let mut question = Vec::new();
                        while let Some(chunk) = body.data().await {
                            question.extend_from_slice(&chunk.unwrap());
                        }
                        assert_eq!(question[..2], [0, 0]);
                        let head = http::Response::builder().header("content-type", "application/dns-message");
                        let mut send = respond.send_response(head.body(()).unwrap(), false).unwrap();
                        send.send_data(honest(&question).into(), true).unwrap();
                    });
                }
            });
        }
    });
    port
}

#[tokio::test]
async fn questions_go_in_requests() {
    let connections = Arc::new(AtomicUsize::new(0));
    let (config, trusted) = certificate(&[b"h2"]);
    let port = https_server(5, config, Arc::clone(&connections)).await;
    let wire = to(&format!("https+local://127.0.0.1:{port}/dns-query"), &trusted);
    for _ in 0..12 {
        assert!(is_honest(ask(&wire).await));
    }
    let made = connections.load(Ordering::SeqCst);
    assert!((3..=4).contains(&made), "{made} connections");
}
