//! The `dns` outbound in front of dnsmasq, beside Xray with the same file.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::time::Duration;

use hickory_proto::op::{Edns, Message, MessageType, OpCode, Query};
use hickory_proto::rr::{Name, RecordType};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpStream, UdpSocket};
use tokio::time::timeout;

use crate::programs::{Endpoint, Place, Process, Program, have};

/// What an answer says, in an order of its own.
async fn ask(door: SocketAddr, stream: bool, name: &str, kind: RecordType, payload: Option<u16>) -> String {
    let mut message = Message::new(77, MessageType::Query, OpCode::Query);
    message.metadata.recursion_desired = true;
    message.add_query(Query::query(Name::from_ascii(name).unwrap(), kind));
    if let Some(payload) = payload {
        let mut edns = Edns::new();
        edns.set_max_payload(payload);
        message.set_edns(edns);
    }
    let bytes = message.to_vec().unwrap();
    let asking = async {
        if stream {
            let mut tcp = TcpStream::connect(door).await.unwrap();
            tcp.write_all(&[&(bytes.len() as u16).to_be_bytes()[..], &bytes].concat())
                .await
                .unwrap();
            let mut answer = vec![0; tcp.read_u16().await.unwrap().into()];
            tcp.read_exact(&mut answer).await.unwrap();
            return answer;
        }
        let socket = UdpSocket::bind((door.ip(), 0)).await.unwrap();
        socket.connect(door).await.unwrap();
        let mut answer = vec![0; 4096];
        loop {
            socket.send(&bytes).await.unwrap();
            if let Ok(Ok(len)) = timeout(Duration::from_secs(3), socket.recv(&mut answer)).await {
                answer.truncate(len);
                return answer;
            }
        }
    };
    let answer = timeout(Duration::from_secs(20), asking).await;
    let Ok(answer) = answer else { return "silence".into() };
    let answer = Message::from_vec(&answer).unwrap();
    assert_eq!(answer.metadata.id, 77);
    let mut records: Vec<String> = answer.answers.iter().map(|record| record.data.to_string()).collect();
    records.sort();
    let code = u16::from(answer.metadata.response_code);
    format!("{code} {} {}", answer.metadata.truncation, records.join(" "))
}

/// A door to the outbound, whose questions go to the server by a freedom outbound.
fn config(place: &Place, door: u16, server: u16, settings: &Value) -> Value {
    let host = place.host.to_string();
    json!({
        "log": {"loglevel": "warning"},
        "dns": {
            "tag": "dns-in",
            "hosts": {"fixed.test": ["192.0.2.44", "2001:db8::44"]},
            "servers": [{"address": host, "port": server, "domains": ["domain:test"]}],
        },
        "inbounds": [{"tag": "in", "listen": host, "port": door, "protocol": "dokodemo-door",
            "settings": {"address": host, "port": server, "network": "tcp,udp"}}],
        "outbounds": [{"tag": "direct", "protocol": "freedom"}, {"tag": "answers", "protocol": "dns", "settings": settings}],
        "routing": {"rules": [
            {"type": "field", "inboundTag": ["in"], "outboundTag": "answers"},
            {"type": "field", "inboundTag": ["dns-in"], "outboundTag": "direct"},
        ]},
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_of_a_real_server_are_those_of_xray() {
    if !have("dnsmasq", &["--version"]) {
        return;
    }
    let place = Place::new();
    let ports: Vec<u16> = (0..3).map(|_| place.port()).collect();
    let mut records = vec![
        "--address=/a.test/192.0.2.1".to_owned(),
        "--address=/a.test/2001:db8::1".to_owned(),
        "--address=/four.test/192.0.2.4".to_owned(),
        "--address=/none.test/".to_owned(),
        "--txt-record=text.test,hello".to_owned(),
        "--host-record=target.test,192.0.2.9,60".to_owned(),
        "--cname=alias.test,target.test,60".to_owned(),
        "--host-record=zero.test,192.0.2.10,0".to_owned(),
    ];
    records.extend((1..=60).map(|n| format!("--host-record=many.test,192.0.2.{n},60")));
    let fixed = [
        "--keep-in-foreground",
        "--user=root",
        "--no-resolv",
        "--no-hosts",
        "--no-daemon",
        "--conf-file=/dev/null",
        "--bind-interfaces",
        "--local-ttl=30",
    ];
    let mut arguments: Vec<String> = fixed.iter().map(|&one| one.to_owned()).collect();
    arguments.push(format!("--listen-address={}", place.host));
    arguments.push(format!("--port={}", ports[0]));
    arguments.extend(records);
    let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
    place.let_go();
    let mut server = Process::start("dnsmasq", &arguments, &[], &place);
    server.listens(&[Endpoint::Tcp(place.at(ports[0]))]).await;
    let questions = [
        ("a.test.", RecordType::A, "0 false 192.0.2.1"),
        ("a.test.", RecordType::AAAA, "0 false 2001:db8::1"),
        ("fixed.test.", RecordType::A, "0 false 192.0.2.44"),
        ("fixed.test.", RecordType::AAAA, "0 false 2001:db8::44"),
        ("alias.test.", RecordType::A, "0 false 192.0.2.9"),
        ("zero.test.", RecordType::A, "0 false 192.0.2.10"),
        ("none.test.", RecordType::A, "3 false "),
        ("text.test.", RecordType::TXT, "0 false hello"),
    ];
    for program in [Program::Ours, Program::Xray] {
        if !program.there() {
            continue;
        }
        let own = Place::new();
        let config = config(&place, ports[1], ports[0], &json!({"nonIPQuery": "skip"}));
        let running = program.run(&own, &config).await;
        let door = place.at(ports[1]);
        for stream in [false, true] {
            for (name, kind, wanted) in questions {
                let said = ask(door, stream, name, kind, None).await;
                assert_eq!(said, wanted, "{} {name} {kind} stream {stream}", program.name());
            }
            let many = ask(door, stream, "many.test.", RecordType::A, Some(1232)).await;
            assert_eq!(
                many.split(' ').count(),
                62,
                "{} stream {stream}: {many}",
                program.name()
            );
        }
        if program == Program::Ours {
            // Without a word of the client an answer has 512 bytes at most.
            let cut = ask(door, false, "many.test.", RecordType::A, None).await;
            assert_eq!(cut, "0 true ");
            // What the server refuses, it refuses.
            let https = ask(door, false, "text.test.", RecordType::HTTPS, None).await;
            assert_eq!(https, "5 false ");
        }
        drop(running);
    }
}
