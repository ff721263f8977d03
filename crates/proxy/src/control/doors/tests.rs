use std::time::Duration;

use sealway_net::Drain;
use tokio::io::AsyncReadExt;
use tokio::time::timeout;

use super::*;
use crate::reality::to_port;
use crate::settings::Settings;

#[test]
fn with_reality_the_kernel_probes_nobody_unless_that_is_asked_for() {
    let seven = Some(Duration::from_secs(7));
    let chosen = |idle, interval| SocketOptions {
        keep_alive_idle: idle,
        keep_alive_interval: interval,
        ..SocketOptions::default()
    };
    for (socket, silent) in [
        (chosen(None, None), true),
        (chosen(seven, None), false),
        (chosen(None, seven), false),
    ] {
        let mut transport = ServerTransport {
            socket,
            reality: Some(Box::new(to_port(443))),
            ..ServerTransport::default()
        };
        assert_eq!(listener_options(&transport).no_keep_alive, silent);
        transport.reality = None;
        assert!(!listener_options(&transport).no_keep_alive);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn who_came_to_sockets_beside_a_listener_is_not_lost_with_them() {
    let target = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let free = std::net::TcpListener::bind("127.0.0.1:0")
        .unwrap()
        .local_addr()
        .unwrap();
    let settings = Settings::of_text(&format!(
        r#"{{"outbounds": [{{"protocol": "freedom"}}], "inbounds": [{{"tag": "in", "listen": "127.0.0.1", "port": {},
            "protocol": "dokodemo-door", "settings": {{"address": "127.0.0.1", "port": {}}}}}]}}"#,
        free.port(),
        target.local_addr().unwrap().port()
    ));
    tokio::spawn(async move {
        while let Ok((tcp, _)) = target.accept().await {
            tcp.try_write(b"x").unwrap();
        }
    });
    let engine = Arc::new(Engine::new(&settings, &Arc::default()).unwrap());
    let (_drain, alive) = Drain::new();
    let inbound = engine.inbound("in").unwrap();
    let place = || Place::all(&settings.inbounds[0]).next().unwrap();
    let mut door = Door::new(place(), place().bind("in", &[]).unwrap(), &inbound);
    door.open(&engine, &alive);
    let doors = [door];
    let beside = place().bind("in", &doors).unwrap();
    let mut clients = Vec::new();
    for _ in 0..32 {
        clients.push(TcpStream::connect(free).await.unwrap());
    }
    assert!(doors[0].is_at(&place()));
    doors[0].relieve(place(), beside, &engine, &alive);
    for client in &mut clients {
        let got = timeout(Duration::from_secs(10), client.read_u8()).await.unwrap();
        assert_eq!(got.unwrap(), b'x');
    }
}
