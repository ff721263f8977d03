//! Names that are asked for by servers whose way needs names, and by strangers.

use std::sync::Mutex;
use std::time::Instant;

use hickory_proto::op::{Message, MessageType, OpCode, Query};
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{Name, RData, Record, RecordType};
use tokio::net::UdpSocket;

use super::*;

const LIMIT: Duration = Duration::from_secs(20);

/// An engine that answers questions by the outbound `dns-out`.
fn engine(dns: &str, outbounds: &str, rules: &str) -> Engine {
    let text = format!(r#"{{"dns": {dns}, "outbounds": [{outbounds}], "routing": {rules}}}"#);
    Engine::new(&Settings::of_text(&text), &Arc::default()).unwrap()
}

fn answer(question: &[u8]) -> Vec<u8> {
    let asked = Message::from_vec(question).unwrap();
    let mut message = Message::new(asked.metadata.id, MessageType::Response, OpCode::Query);
    let owner = asked.queries[0].name().clone();
    message.queries = asked.queries;
    message.add_answer(Record::from_rdata(owner, 60, RData::A(A([192, 0, 2, 1].into()))));
    message.to_vec().unwrap()
}

/// A server of datagrams, and the types and names it was asked for.
async fn udp_server() -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let at = socket.local_addr().unwrap();
    let seen: Arc<Mutex<Vec<String>>> = Arc::default();
    let note = Arc::clone(&seen);
    tokio::spawn(async move {
        let mut bytes = [0; 2048];
        while let Ok((len, from)) = socket.recv_from(&mut bytes).await {
            let asked = Message::from_vec(&bytes[..len]).unwrap();
            let name = asked.queries[0].name().to_lowercase();
            note.lock()
                .unwrap()
                .push(format!("{} {name}", asked.queries[0].query_type()));
            let _ = socket.send_to(&answer(&bytes[..len]), from).await;
        }
    });
    (at, seen)
}

/// A server that is asked by requests in clear text.
async fn h2c_server() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            tokio::spawn(async move {
                let Ok(mut server) = h2::server::handshake(tcp).await else {
                    return;
                };
                while let Some(Ok((request, mut respond))) = server.accept().await {
                    tokio::spawn(async move {
                        let (mut body, mut question) = (request.into_body(), Vec::new());
                        while let Some(chunk) = body.data().await {
                            question.extend_from_slice(&chunk.unwrap());
                        }
                        let head = http::Response::builder().header("content-type", "application/dns-message");
                        let mut send = respond.send_response(head.body(()).unwrap(), false).unwrap();
                        send.send_data(answer(&question).into(), true).unwrap();
                    });
                }
            });
        }
    });
    port
}

/// The answer of `dns-out` to a question that is sent to this target.
async fn ask(engine: &Engine, to: SocketAddr, caller: &Caller, name: &str, kind: RecordType) -> String {
    let mut message = Message::new(7, MessageType::Query, OpCode::Query);
    message.add_query(Query::query(Name::from_ascii(name).unwrap(), kind));
    let to = super::to(to);
    let asking = async {
        let outbound = engine.roads().find("", "dns-out").unwrap();
        let mut end = engine.roads().packets_through(&outbound, &to, caller).await.unwrap();
        let bytes = message.to_vec().unwrap();
        poll_fn(|cx| end.poll_send(cx, &bytes, &to)).await.unwrap();
        let mut slot = Slot::default();
        assert!(poll_fn(|cx| end.poll_recv(cx, &mut slot)).await.unwrap());
        let answer = Message::from_vec(slot.datagram().unwrap().1).unwrap();
        let ips: Vec<String> = answer.answers.iter().map(|one| one.data.to_string()).collect();
        format!("{} {}", u16::from(answer.metadata.response_code), ips.join(" "))
    };
    timeout(LIMIT, asking).await.expect("an answer")
}

const PORT: u16 = 53;

fn anywhere() -> SocketAddr {
    ([192, 0, 2, 53], PORT).into()
}

/// The name of a server is asked of the system where the way to the server would need its own answer.
#[tokio::test]
async fn a_server_that_needs_its_own_answer_is_found_all_the_same() {
    let (one, two) = (h2c_server().await, h2c_server().await);
    let servers = [
        format!(r#""h2c://localhost:{one}/""#),
        format!(r#""h2c://localhost:{one}/", "h2c://ip6-localhost.localhost:{two}/""#),
    ];
    let useful =
        r#"{"protocol": "freedom", "settings": {"domainStrategy": "UseIP"}}, {"tag": "dns-out", "protocol": "dns"}"#;
    let straight = r#"{"protocol": "freedom"}, {"tag": "dns-out", "protocol": "dns"}"#;
    let by_address = |strategy: &str| {
        format!(r#"{{"domainStrategy": "{strategy}", "rules": [{{"ip": ["10.0.0.0/8"], "outboundTag": "dns-out"}}]}}"#)
    };
    for servers in servers {
        for (outbounds, rules) in [
            (useful, "{}".to_owned()),
            (straight, by_address("IPIfNonMatch")),
            (straight, by_address("IPOnDemand")),
            (useful, by_address("IPOnDemand")),
        ] {
            let engine = engine(&format!(r#"{{"servers": [{servers}]}}"#), outbounds, &rules);
            let began = Instant::now();
            let told = ask(&engine, anywhere(), &Caller::default(), "a.example.", RecordType::A).await;
            assert_eq!(told, "0 192.0.2.1", "{servers} {outbounds} {rules}");
            let took = began.elapsed();
            assert!(took < Duration::from_secs(2), "{took:?}: {servers} {outbounds} {rules}");
        }
    }
}

/// Rules as gateways have them: whatever goes to port 53 is led to the outbound, and so are questions of ours.
#[tokio::test]
async fn questions_of_our_own_go_through_the_dns_outbound() {
    let (two, other) = udp_server().await;
    let (one, asked, listener) = loop {
        let (one, asked) = udp_server().await;
        // Somebody may have the port.
        if let Ok(listener) = TcpListener::bind(one).await {
            break (one, asked, listener);
        }
    };
    tokio::spawn(async move {
        while let Ok((mut tcp, _)) = listener.accept().await {
            let mut question = vec![0; tcp.read_u16().await.unwrap().into()];
            tcp.read_exact(&mut question).await.unwrap();
            let answer = answer(&question);
            tcp.write_u16(answer.len() as u16).await.unwrap();
            tcp.write_all(&answer).await.unwrap();
        }
    });
    for scheme in ["", "tcp://"] {
        let dns = format!(
            r#"{{"queryStrategy": "UseIPv4", "servers": [
                {{"address": "{scheme}127.0.0.1:{}"}}, {{"address": "127.0.0.1", "port": {}}}]}}"#,
            one.port(),
            two.port()
        );
        let rules = format!(
            r#"{{"rules": [{{"port": "{},{}", "outboundTag": "dns-out"}}]}}"#,
            one.port(),
            two.port()
        );
        let outbounds = r#"{"protocol": "blackhole"}, {"tag": "dns-out", "protocol": "dns"}"#;
        let engine = engine(&dns, outbounds, &rules);
        let told = ask(&engine, anywhere(), &Caller::default(), "a.example.", RecordType::A).await;
        assert_eq!(told, "0 192.0.2.1", "{scheme}");
    }
    assert_eq!(*asked.lock().unwrap(), ["A a.example."], "once, by a datagram");
    assert!(other.lock().unwrap().is_empty());
}

/// What goes to its target goes where its client may go, and where the configuration says.
#[tokio::test]
async fn questions_of_strangers_reach_no_private_server() {
    let (inside, asked) = udp_server().await;
    let stranger = Caller {
        remote: true,
        ..Caller::default()
    };
    let out =
        |more: &str| format!(r#"{{"tag": "dns-out", "protocol": "dns", "settings": {{"nonIPQuery": "skip" {more}}}}}"#);
    for network in ["", r#", "network": "tcp""#] {
        let closed = engine("{}", &out(network), "{}");
        assert_eq!(
            ask(&closed, inside, &stranger, "a.example.", RecordType::TXT).await,
            "2 ",
            "{network}"
        );
    }
    assert!(asked.lock().unwrap().is_empty());
    let closed = engine("{}", &out(""), "{}");
    let told = ask(&closed, inside, &Caller::default(), "a.example.", RecordType::TXT).await;
    assert_eq!(told, "0 192.0.2.1", "who is of this machine may");
    let sent_there = format!(r#", "address": "127.0.0.1", "port": {}"#, inside.port());
    let open = engine("{}", &out(&sent_there), "{}");
    assert_eq!(
        ask(&open, anywhere(), &stranger, "a.example.", RecordType::TXT).await,
        "0 192.0.2.1"
    );
    assert_eq!(asked.lock().unwrap().len(), 2);
}
