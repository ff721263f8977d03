//! Strangers who would have their own answer believed.

use super::*;

#[tokio::test]
async fn what_a_liar_sends_before_the_answer_changes_nothing() {
    let (wire, streams) = udp_server(|socket| async move {
        let stranger = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut buffer = [0; 2048];
        while let Ok((len, from)) = socket.recv_from(&mut buffer).await {
            let question = &buffer[..len];
            // From another port, with everything right.
            stranger.send_to(&lie(question), from).await.unwrap();
            let mut wrong_id = lie(question);
            wrong_id[1] ^= 1;
            let other_name = reply(question, |message| {
                let name = Name::from_ascii("other.example.").unwrap();
                message.queries[0].set_name(name.clone());
                message.add_answer(Record::from_rdata(name, 60, RData::A(A([203, 0, 113, 6].into()))));
            });
            let no_answer = [question, &[0; 40]].concat();
            for bytes in [&wrong_id[..], &other_name, &no_answer, b"", &lie(question)[..20]] {
                socket.send_to(bytes, from).await.unwrap();
            }
            let out_of_bailiwick = reply(question, |message| {
                let owner = message.queries[0].name().clone();
                message.add_answer(Record::from_rdata(owner, 60, RData::A(A([192, 0, 2, 1].into()))));
                let bank = Name::from_ascii("bank.example.").unwrap();
                message.add_answer(Record::from_rdata(bank, 60, RData::A(A([203, 0, 113, 6].into()))));
            });
            socket.send_to(&out_of_bailiwick, from).await.unwrap();
        }
    })
    .await;
    for _ in 0..50 {
        assert!(is_honest(ask(&wire).await));
    }
    assert_eq!(streams.load(Ordering::SeqCst), 0);
}

/// 10,000 datagrams a second for as long as the question is open, from a stranger and with the server's own address: a
/// bounded number of them, so that the test does the same on any machine.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_guesses_changes_no_answer() {
    let (wire, streams) = udp_server(|socket| async move {
        let socket = Arc::new(socket);
        let stranger = UdpSocket::bind("127.0.0.1:0").await.unwrap();
        let mut buffer = [0; 2048];
        while let Ok((len, from)) = socket.recv_from(&mut buffer).await {
            let question = &buffer[..len];
            let bad = lie(question);
            let began = Instant::now();
            for round in 0..2000u32 {
                let mut guess = bad.clone();
                // Every id but the right one.
                let id = u16::from_be_bytes([guess[0], guess[1]]).wrapping_add(1 + (round % 65_535) as u16);
                guess[..2].copy_from_slice(&id.to_be_bytes());
                let _ = stranger.send_to(&guess, from).await;
                // The stranger knows everything and has only the wrong address.
                let _ = stranger.send_to(&bad, from).await;
                if round % 50 == 0 {
                    let _ = socket.send_to(&guess, from).await;
                }
                if round % 100 == 0 {
                    let due = began + Duration::from_micros(u64::from(round) * 200);
                    tokio::time::sleep_until(due).await;
                }
            }
            let _ = socket.send_to(&honest(question), from).await;
        }
    })
    .await;
    for _ in 0..3 {
        assert!(is_honest(ask(&wire).await));
    }
    assert_eq!(streams.load(Ordering::SeqCst), 0, "strangers made no difference");
}

/// A server whose questions are answered by somebody who guesses so often.
async fn guessed(often: u16) -> (Arc<dyn Exchange>, Arc<AtomicUsize>) {
    udp_server(|socket| async move {
        let mut buffer = [0; 2048];
        while let Ok((len, from)) = socket.recv_from(&mut buffer).await {
            for n in 1..=often {
                let mut guess = lie(&buffer[..len]);
                let id = u16::from_be_bytes([guess[0], guess[1]]).wrapping_add(n);
                guess[..2].copy_from_slice(&id.to_be_bytes());
                socket.send_to(&guess, from).await.unwrap();
            }
        }
    })
    .await
}

#[tokio::test]
async fn who_guesses_with_the_servers_address_meets_a_stream() {
    let (wire, streams) = guessed(pipe::MAX_WRONG as u16).await;
    assert!(is_honest(ask(&wire).await));
    assert_eq!(streams.load(Ordering::SeqCst), 1);
}

/// Whether a question has letters of both cases in its name.
fn is_mixed(question: &[u8]) -> bool {
    let name = &question[12..question.len().min(40)];
    name.iter().any(u8::is_ascii_uppercase)
}

#[tokio::test]
async fn one_guess_with_other_letters_ends_no_protection() {
    let plain = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&plain);
    let (wire, streams) = udp_server(|socket| async move {
        let mut buffer = [0; 2048];
        let mut seen = 0;
        while let Ok((len, from)) = socket.recv_from(&mut buffer).await {
            seen += 1;
            if !is_mixed(&buffer[..len]) {
                count.fetch_add(1, Ordering::SeqCst);
            }
            if seen == 1 {
                let mut guess = lie(&buffer[..len]);
                guess[12..40].make_ascii_lowercase();
                socket.send_to(&guess, from).await.unwrap();
            }
            socket.send_to(&honest(&buffer[..len]), from).await.unwrap();
        }
    })
    .await;
    for _ in 0..10 {
        assert!(is_honest(ask(&wire).await));
    }
    assert_eq!(plain.load(Ordering::SeqCst), 0, "questions in small letters");
    assert_eq!(streams.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_short_name_goes_to_a_stream_after_few_guesses() {
    let (wire, streams) = guessed(udp::MAX_WRONG_SHORT as u16).await;
    let short = Question {
        name: name("t.co").unwrap(),
        ..question()
    };
    assert!(is_honest(timeout(LIMIT, Arc::clone(&wire).ask(short)).await.unwrap()));
    assert_eq!(streams.load(Ordering::SeqCst), 1);
}
