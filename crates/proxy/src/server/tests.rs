mod changes;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::*;
use crate::settings::{Rule, Service};

/// A door that leads to nobody, but by the rules.
const DOOR: &str = r#"{"tag": "in", "listen": "127.0.0.1", "port": 0, "protocol": "dokodemo-door",
    "settings": {"address": "192.0.2.1", "port": 9}}"#;

#[tokio::test]
async fn rules_lead_to_a_service() {
    let (sender, mut came) = tokio::sync::mpsc::unbounded_channel();
    let mut settings = Settings::of_text(&format!(
        r#"{{"inbounds": [{DOOR}], "outbounds": [{{"tag": "nowhere", "protocol": "blackhole"}}]}}"#
    ));
    settings.services = vec![Service {
        tag: "api".into(),
        connect: Arc::new(move |end| drop(sender.send(end))),
    }];
    settings.rules = vec![Rule {
        inbound_tags: vec!["in".into()],
        outbound_tag: "api".into(),
        ..Rule::default()
    }];
    let server = Server::start(settings.clone()).await.unwrap();
    let mut client = TcpStream::connect(server.addresses("in")[0]).await.unwrap();
    client.write_all(b"question").await.unwrap();
    let mut service = came.recv().await.unwrap();
    let mut read = [0; 8];
    service.read_exact(&mut read).await.unwrap();
    service.write_all(b"answer").await.unwrap();
    drop(service);
    let mut answer = Vec::new();
    client.read_to_end(&mut answer).await.unwrap();
    assert_eq!((&read, &answer[..]), (b"question", &b"answer"[..]));
    // Its tag is nobody else's.
    settings.outbounds[0].tag = "api".into();
    let error = Server::start(settings).await.err().unwrap().to_string();
    assert_eq!(error, "api.tag: an outbound has the tag \"api\" already");
}
