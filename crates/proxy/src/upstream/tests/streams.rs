//! Many questions on few streams.

use super::*;

/// A server of streams that is handed each connection. How many there were.
async fn tcp_server<F: Future<Output = ()> + Send + 'static>(
    serve: impl Fn(tokio::net::TcpStream, usize) -> F + Send + 'static,
) -> (Arc<dyn Exchange>, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let served = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&served);
    tokio::spawn(async move {
        while let Ok((tcp, _)) = listener.accept().await {
            tokio::spawn(serve(tcp, count.fetch_add(1, Ordering::SeqCst)));
        }
    });
    let wire = to(&format!("tcp+local://127.0.0.1:{port}"), &ClientTls::default());
    (wire, served)
}

async fn read(tcp: &mut tokio::net::TcpStream) -> Option<Vec<u8>> {
    let mut question = vec![0; tcp.read_u16().await.ok()?.into()];
    tcp.read_exact(&mut question).await.ok()?;
    Some(question)
}

async fn write(tcp: &mut tokio::net::TcpStream, answer: &[u8]) {
    let _ = tcp
        .write_all(&[&(answer.len() as u16).to_be_bytes(), answer].concat())
        .await;
}

fn named(n: usize) -> Question {
    Question {
        name: name(&format!("name{n}.example")).unwrap(),
        ..question()
    }
}

/// Asks so many things at once. How many have the right answer.
async fn burst(wire: &Arc<dyn Exchange>, count: usize) -> usize {
    let asking: Vec<_> = (0..count)
        .map(|n| tokio::spawn(Arc::clone(wire).ask(named(n))))
        .collect();
    let mut right = 0;
    for task in asking {
        right += usize::from(is_honest(timeout(LIMIT, task).await.unwrap().unwrap()));
    }
    right
}

#[tokio::test]
async fn answers_come_in_any_order_on_few_streams() {
    let (wire, served) = tcp_server(|tcp, _| async move {
        let (mut reader, mut writer) = tcp.into_split();
        let (send, mut questions) = tokio::sync::mpsc::unbounded_channel();
        tokio::spawn(async move {
            while let Ok(len) = reader.read_u16().await {
                let mut question = vec![0; len.into()];
                reader.read_exact(&mut question).await.unwrap();
                send.send(question).unwrap();
            }
        });
        // Whatever comes at once is answered from its end.
        let mut held = Vec::new();
        loop {
            match timeout(Duration::from_millis(30), questions.recv()).await {
                Ok(Some(question)) => held.push(question),
                Ok(None) => return,
                Err(_) => {
                    for question in held.drain(..).rev() {
                        let answer = honest(&question);
                        writer.write_u16(answer.len() as u16).await.unwrap();
                        writer.write_all(&answer).await.unwrap();
                    }
                }
            }
        }
    })
    .await;
    assert_eq!(burst(&wire, 500).await, 500);
    let streams = served.load(Ordering::SeqCst);
    assert!((1..=pipes::MAX_STREAMS).contains(&streams), "{streams} streams");
}

#[tokio::test]
async fn a_server_that_ends_streams_early_is_asked_less_on_each() {
    for each in [1, 3] {
        let (wire, served) = tcp_server(move |mut tcp, _| async move {
            for _ in 0..each {
                let Some(question) = read(&mut tcp).await else { return };
                write(&mut tcp, &honest(&question)).await;
            }
            // Nothing else is read, and what was sent is lost with it.
        })
        .await;
        assert_eq!(burst(&wire, 40).await, 40, "{each} answers on each stream");
        assert!(served.load(Ordering::SeqCst) >= 40 / each);
    }
}

#[tokio::test]
async fn a_question_that_takes_long_holds_up_no_other() {
    let enough = Arc::new(tokio::sync::Notify::new());
    let waited = Arc::clone(&enough);
    let (wire, served) = tcp_server(move |mut tcp, _| {
        let waited = Arc::clone(&waited);
        async move {
            // One after another, as many servers do.
            while let Some(question) = read(&mut tcp).await {
                let asked = Message::from_vec(&question).unwrap();
                if asked.queries[0].name().to_ascii().starts_with("name0.") {
                    waited.notified().await;
                }
                write(&mut tcp, &honest(&question)).await;
            }
        }
    })
    .await;
    let slow = tokio::spawn(Arc::clone(&wire).ask(named(0)));
    tokio::time::sleep(Duration::from_millis(700)).await;
    let began = Instant::now();
    for n in 1..20 {
        assert!(is_honest(Arc::clone(&wire).ask(named(n)).await));
    }
    assert!(began.elapsed() < Duration::from_secs(4), "{:?}", began.elapsed());
    assert_eq!(served.load(Ordering::SeqCst), 2);
    enough.notify_one();
    assert!(is_honest(slow.await.unwrap()));
}

#[tokio::test]
async fn a_stream_to_nowhere_costs_one_question_its_time() {
    let (wire, served) = tcp_server(|mut tcp, nth| async move {
        while let Some(question) = read(&mut tcp).await {
            // The first stream is dead, and nobody says so.
            if nth > 0 {
                write(&mut tcp, &honest(&question)).await;
            }
        }
    })
    .await;
    let limit = Duration::from_millis(1500);
    assert!(timeout(limit, Arc::clone(&wire).ask(named(0))).await.is_err());
    let began = Instant::now();
    for n in 1..4 {
        let answer = timeout(LIMIT, Arc::clone(&wire).ask(named(n))).await;
        assert!(is_honest(answer.expect("an answer")));
    }
    assert!(began.elapsed() < limit, "{:?}", began.elapsed());
    assert_eq!(served.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_connection_of_requests_to_nowhere_is_given_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    tokio::spawn(async move {
        let mut nth = 0;
        while let Ok((tcp, _)) = listener.accept().await {
            nth += 1;
            tokio::spawn(async move {
                let mut server = h2::server::handshake(tcp).await.unwrap();
                let mut held = Vec::new();
                while let Some(Ok((request, mut respond))) = server.accept().await {
                    if nth == 1 {
                        held.push((request, respond));
                        continue;
                    }
                    tokio::spawn(async move {
                        let mut body = request.into_body();
                        let mut question = Vec::new();
                        while let Some(chunk) = body.data().await {
                            question.extend_from_slice(&chunk.unwrap());
                        }
                        // Some servers say more of what they send.
                        let head =
                            http::Response::builder().header("content-type", "Application/DNS-message; charset=x");
                        let mut send = respond.send_response(head.body(()).unwrap(), false).unwrap();
                        send.send_data(honest(&question).into(), true).unwrap();
                    });
                }
            });
        }
    });
    let wire = to(&format!("h2c+local://127.0.0.1:{port}/"), &ClientTls::default());
    let limit = Duration::from_millis(1200);
    for n in 0..2 {
        assert!(timeout(limit, Arc::clone(&wire).ask(named(n))).await.is_err());
    }
    assert!(is_honest(
        timeout(limit, Arc::clone(&wire).ask(named(2))).await.unwrap()
    ));
}
