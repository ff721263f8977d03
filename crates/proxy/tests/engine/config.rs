//! From the text of two `config.json` to bytes that arrive.

use std::time::Duration;

use crate::common::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_written_is_what_runs() {
    let target = target().await;
    let dir = tempfile::tempdir().unwrap();
    let (certificate, key) = certificate(&["server.example"]);
    std::fs::write(dir.path().join("c.pem"), certificate).unwrap();
    std::fs::write(dir.path().join("k.pem"), key).unwrap();
    let at_dir = dir.path().display();
    let (port, door_port) = (free_port(), free_port());
    let server = format!(
        r#"{{ // a comment
        "log": {{"access": "{at_dir}/access.log"}},
        "stats": {{}},
        "policy": {{"levels": {{"0": {{"statsUserUplink": true, "connIdle": 60}}}}}},
        "inbounds": [{{"tag": "in", "listen": "127.0.0.1", "port": {port}, "protocol": "vless",
            "settings": {{"decryption": "none", "clients": [{{"id": "{ID}", "email": "user@example"}}]}},
            "streamSettings": {{"network": "ws", "security": "tls", "wsSettings": {{"path": "/way"}},
                "tlsSettings": {{"certificates": [{{"certificateFile": "{at_dir}/c.pem", "keyFile": "{at_dir}/k.pem"}}]}}}}}}],
        "outbounds": [{{"tag": "hole", "protocol": "blackhole"}},
            {{"tag": "direct", "protocol": "freedom", "settings": {{"finalRules": [{{"action": "allow"}}]}}}}],
        "routing": {{"rules": [{{"user": "user@example", "ip": ["127.0.0.0/8"], "outboundTag": "direct"}}]}}}}"#
    );
    let client = format!(
        r#"{{"inbounds": [{{"tag": "door", "listen": "127.0.0.1", "port": {door_port}, "protocol": "dokodemo-door",
            "settings": {{"address": "127.0.0.1", "port": {}}}}}],
        "outbounds": [{{"protocol": "vless", "settings": {{"vnext": [{{"address": "127.0.0.1", "port": {port},
                "users": [{{"id": "{ID}", "encryption": "none"}}]}}]}},
            "streamSettings": {{"network": "ws", "security": "tls", "wsSettings": {{"path": "/way?ed=2048"}},
                "tlsSettings": {{"serverName": "server.example", "disableSystemRoot": true,
                    "certificates": [{{"usage": "verify", "certificateFile": "{at_dir}/c.pem"}}]}}}}}}]}}"#,
        target.port()
    );
    let server = start(settings_of(server)).await;
    let client = start(settings_of(client)).await;
    let door = at(&client, "door");
    assert_eq!(door.port(), door_port);
    exchange_all("from text", door).await;
    let stats = server.stats().clone();
    client.shutdown(Duration::from_secs(10)).await;
    assert!(server.shutdown(Duration::from_secs(10)).await);
    let sent: usize = SIZES.iter().map(|(up, _)| up + 16).sum();
    assert_eq!(
        stats.get("user>>>user@example>>>traffic>>>uplink").unwrap().get(),
        sent as u64
    );
    for _ in 0..100 {
        let log = std::fs::read_to_string(dir.path().join("access.log")).unwrap();
        if log.lines().count() == SIZES.len() {
            let want = format!(" accepted tcp:{target} [in -> direct] email: user@example");
            assert!(log.lines().all(|line| line.ends_with(&want)), "{log}");
            return;
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("the access log lacks lines");
}
