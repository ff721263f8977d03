use std::time::Duration;

use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query, ResponseCode};
use hickory_proto::rr::rdata::A;
use hickory_proto::rr::{Name, RData, Record, RecordType};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UdpSocket;
use tokio::time::timeout;

use crate::Server;
use crate::settings::Settings;

/// A server with a door to the outbound, whose settings these are.
async fn serve(settings: &str, dns: &str, target: u16) -> Server {
    let text = format!(
        r#"{{"dns": {{{dns}}}, "inbounds": [{{"tag": "in", "listen": "127.0.0.1", "port": 0, "protocol": "dokodemo-door",
        "settings": {{"address": "127.0.0.1", "port": {target}, "network": "tcp,udp"}}}}],
        "outbounds": [{{"protocol": "dns", "settings": {{{settings}}}}}]}}"#
    );
    Server::start(Settings::of_text(&text)).await.unwrap()
}

fn question(id: u16, name: &str, kind: RecordType) -> Message {
    let mut message = Message::new(id, MessageType::Query, OpCode::Query);
    message.metadata.recursion_desired = true;
    message.add_query(Query::query(Name::from_ascii(name).unwrap(), kind));
    message
}

/// Asks by a datagram. `None`: no answer in half a second.
async fn ask(server: &Server, message: &Message) -> Option<(Message, usize)> {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    socket.connect(server.addresses("in")[0]).await.unwrap();
    socket.send(&message.to_vec().unwrap()).await.unwrap();
    let mut buffer = [0; 4096];
    let len = timeout(Duration::from_millis(700), socket.recv(&mut buffer))
        .await
        .ok()?
        .unwrap();
    Some((Message::from_vec(&buffer[..len]).unwrap(), len))
}

/// The answer in few words.
async fn said(server: &Server, name: &str, kind: RecordType) -> String {
    let Some((answer, _)) = ask(server, &question(7, name, kind)).await else {
        return "silence".into();
    };
    let records = answer.answers.iter().map(|record| record.data.to_string());
    let records: Vec<String> = records.collect();
    format!("{} {}", u16::from(answer.metadata.response_code), records.join(" "))
}

/// A server that answers everything with 192.0.2.99.
async fn target() -> u16 {
    let socket = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let port = socket.local_addr().unwrap().port();
    tokio::spawn(async move {
        let mut buffer = [0; 4096];
        while let Ok((len, from)) = socket.recv_from(&mut buffer).await {
            let asked = Message::from_vec(&buffer[..len]).unwrap();
            let mut answer = Message::new(asked.metadata.id, MessageType::Response, OpCode::Query);
            let owner = asked.queries[0].name().clone();
            answer.queries = asked.queries;
            answer.add_answer(Record::from_rdata(owner, 0, RData::A(A([192, 0, 2, 99].into()))));
            // Somebody else's answer comes first.
            let mut other = answer.clone();
            other.metadata.id ^= 1;
            for message in [other, answer] {
                socket.send_to(&message.to_vec().unwrap(), from).await.unwrap();
            }
        }
    });
    port
}

const HOSTS: &str = r##""hosts": {"a.example": ["192.0.2.1", "2001:db8::1"], "none.example": "#3"}"##;

#[tokio::test]
async fn questions_meet_the_fate_that_the_settings_say() {
    let onward = target().await;
    for (settings, a, txt, https) in [
        ("", "0 192.0.2.1", "0 ", "0 "),
        (r#""nonIPQuery": "reject""#, "0 192.0.2.1", "5 ", "5 "),
        (r#""nonIPQuery": "drop""#, "0 192.0.2.1", "silence", "silence"),
        (r#""nonIPQuery": "skip""#, "0 192.0.2.1", "0 192.0.2.99", "0 192.0.2.99"),
        (
            r#""nonIPQuery": "skip", "blockTypes": [65, 1]"#,
            "5 ",
            "0 192.0.2.99",
            "5 ",
        ),
        (r#""blockTypes": [65]"#, "0 192.0.2.1", "5 ", "5 "),
        (
            r#""rules": [{"action": "direct", "qType": 1}, {"action": "return", "qType": 65, "rCode": 3}]"#,
            "0 192.0.2.99",
            "0 ",
            "3 ",
        ),
        (
            r#""rules": [{"action": "drop", "domain": ["full:a.example"], "qType": "1,16"}, {"action": "direct"}]"#,
            "silence",
            "silence",
            "0 192.0.2.99",
        ),
        (r#""rules": [{"action": "hijack"}]"#, "0 192.0.2.1", "0 ", "0 "),
        (
            r#""rules": [{"action": "return", "domain": ["domain:other"], "rCode": 5}]"#,
            "0 192.0.2.1",
            "0 ",
            "0 ",
        ),
    ] {
        let server = serve(settings, HOSTS, onward).await;
        assert_eq!(said(&server, "A.example.", RecordType::A).await, a, "{settings}");
        assert_eq!(said(&server, "a.example.", RecordType::TXT).await, txt, "{settings}");
        assert_eq!(
            said(&server, "a.example.", RecordType::HTTPS).await,
            https,
            "{settings}"
        );
    }
    let server = serve("", HOSTS, onward).await;
    assert_eq!(said(&server, "a.example.", RecordType::AAAA).await, "0 2001:db8::1");
    assert_eq!(said(&server, "none.example.", RecordType::A).await, "3 ");
    // Elsewhere.
    let settings = format!(r#""nonIPQuery": "skip", "rewriteAddress": "127.0.0.1", "rewritePort": {onward}"#);
    let server = serve(&settings, HOSTS, 1).await;
    assert_eq!(said(&server, "a.example.", RecordType::TXT).await, "0 192.0.2.99");
}

#[tokio::test]
async fn an_answer_is_no_longer_than_its_client_takes() {
    let ips: Vec<String> = (0..60).map(|n| format!("\"192.0.2.{n}\"")).collect();
    let server = serve("", &format!(r#""hosts": {{"many.example": [{}]}}"#, ips.join(",")), 53).await;
    let mut message = question(7, "many.example.", RecordType::A);
    let (answer, len) = ask(&server, &message).await.unwrap();
    assert!(answer.metadata.truncation && answer.answers.is_empty() && len < 40);
    let mut edns = Edns::new();
    edns.set_max_payload(4096);
    message.set_edns(edns);
    let (answer, len) = ask(&server, &message).await.unwrap();
    assert!(!answer.metadata.truncation && answer.answers.len() == 60 && len <= 1232);
    // What is an answer itself gets none.
    message.metadata.message_type = MessageType::Response;
    assert!(ask(&server, &message).await.is_none());
}

#[tokio::test]
async fn a_stream_carries_many_questions() {
    let server = serve("", HOSTS, 53).await;
    let mut tcp = tokio::net::TcpStream::connect(server.addresses("in")[0]).await.unwrap();
    let mut sent = Vec::new();
    for id in 0..300u16 {
        let name = if id % 2 == 0 { "a.example." } else { "none.example." };
        let bytes = question(id, name, RecordType::A).to_vec().unwrap();
        sent.extend_from_slice(&(bytes.len() as u16).to_be_bytes());
        sent.extend_from_slice(&bytes);
    }
    let (mut read, mut write) = tcp.split();
    let writing = async {
        for piece in sent.chunks(7) {
            write.write_all(piece).await.unwrap();
        }
        write.shutdown().await.unwrap();
    };
    let reading = async {
        let mut seen = [false; 300];
        for _ in 0..300 {
            let mut bytes = vec![0; read.read_u16().await.unwrap().into()];
            read.read_exact(&mut bytes).await.unwrap();
            let answer = Message::from_vec(&bytes).unwrap();
            let id = answer.metadata.id;
            let code = if id.is_multiple_of(2) {
                ResponseCode::NoError
            } else {
                ResponseCode::NXDomain
            };
            assert_eq!(
                (answer.metadata.response_code, answer.answers.len()),
                (code, usize::from(id.is_multiple_of(2)))
            );
            assert!(!std::mem::replace(&mut seen[usize::from(id)], true), "{id} twice");
        }
        assert_eq!(read.read(&mut [0]).await.unwrap(), 0, "the end");
    };
    let both = async { tokio::join!(writing, reading) };
    timeout(Duration::from_secs(30), both).await.unwrap();
}

#[tokio::test]
async fn nonsense_in_a_stream_is_answered_and_bounded() {
    let server = serve("", HOSTS, 53).await;
    let mut tcp = tokio::net::TcpStream::connect(server.addresses("in")[0]).await.unwrap();
    // Nothing at all, too little, and a head of a question without one.
    tcp.write_all(&[0, 0, 0, 3, 1, 2, 3, 0, 12, 0, 9, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0])
        .await
        .unwrap();
    let mut answer = [0; 14];
    timeout(Duration::from_secs(10), tcp.read_exact(&mut answer))
        .await
        .unwrap()
        .unwrap();
    assert_eq!((&answer[..4], answer[5] & 15), (&[0, 12, 0, 9][..], 1));
}
