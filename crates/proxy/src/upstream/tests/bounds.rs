//! What servers that refuse or say nothing cost.

use super::*;

#[tokio::test]
async fn a_refusal_costs_no_connection() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let counts: Arc<[AtomicUsize; 2]> = Arc::default();
    let counted = Arc::clone(&counts);
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            counted[0].fetch_add(1, Ordering::SeqCst);
            let counted = Arc::clone(&counted);
            tokio::spawn(async move {
                let mut server = h2::server::handshake(tcp).await.unwrap();
                while let Some(Ok((_, mut respond))) = server.accept().await {
                    counted[1].fetch_add(1, Ordering::SeqCst);
                    let head = http::Response::builder().status(429).body(()).unwrap();
                    let _ = respond.send_response(head, true);
                }
            });
        }
    });
    let wire = to(&format!("h2c+local://127.0.0.1:{port}/"), &ClientTls::default());
    let asking = (0..50).map(|_| {
        let wire = Arc::clone(&wire);
        tokio::spawn(async move { ask(&wire).await })
    });
    for task in asking.collect::<Vec<_>>() {
        assert!(task.await.unwrap().is_err());
    }
    let counts = [0, 1].map(|at| counts[at].load(Ordering::SeqCst));
    assert_eq!(counts, [1, 50], "connections and requests");
}

#[tokio::test]
async fn streams_to_a_silent_server_are_bounded() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let wire = to(&format!("tcp+local://127.0.0.1:{port}"), &ClientTls::default());
    let asking = (0..2000).map(|_| tokio::spawn(Arc::clone(&wire).ask(question())));
    let asking: Vec<_> = asking.collect();
    let mut open = Vec::new();
    while let Ok(Ok(one)) = timeout(Duration::from_secs(1), listener.accept()).await {
        open.push(one);
    }
    assert_eq!(open.len(), pipes::MAX_STREAMS);
    asking.iter().for_each(|task| task.abort());
}

#[tokio::test]
async fn ports_to_a_silent_server_are_bounded() {
    let (socket, _listener) = sockets().await;
    let wire = to(
        &format!("udp+local://{}", socket.local_addr().unwrap()),
        &ClientTls::default(),
    );
    let asking = (0..udp::MAX_OPEN + 100).map(|_| tokio::spawn(Arc::clone(&wire).ask(question())));
    let asking: Vec<_> = asking.collect();
    let mut ports = std::collections::HashSet::new();
    let mut buffer = [0; 2048];
    let until = Instant::now() + Duration::from_secs(2);
    while let Ok(Ok((_, from))) = tokio::time::timeout_at(until, socket.recv_from(&mut buffer)).await {
        ports.insert(from.port());
    }
    assert!(
        ports.len() <= udp::MAX_OPEN && ports.len() > udp::MAX_OPEN / 2,
        "{} ports",
        ports.len()
    );
    asking.iter().for_each(|task| task.abort());
}

#[tokio::test]
async fn a_port_is_given_up_after_its_uses() {
    let seen: Arc<std::sync::Mutex<std::collections::HashMap<u16, u32>>> = Arc::default();
    let note = Arc::clone(&seen);
    let (wire, _) = udp_server(|socket| async move {
        let mut buffer = [0; 2048];
        while let Ok((len, from)) = socket.recv_from(&mut buffer).await {
            *note.lock().unwrap().entry(from.port()).or_default() += 1;
            socket.send_to(&honest(&buffer[..len]), from).await.unwrap();
        }
    })
    .await;
    for _ in 0..600 {
        assert!(is_honest(ask(&wire).await));
    }
    let seen = seen.lock().unwrap();
    let most = seen.values().copied().max().unwrap();
    // The system may give the same port again.
    assert!(most <= 2 * u32::from(udp::MAX_USES), "{most} questions from one port");
    assert!(seen.len() >= 600 / usize::from(udp::MAX_USES), "{} ports", seen.len());
}
