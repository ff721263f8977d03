use sealway_tls::codec::{MAX_HELLO, Message, ServerHello, record, write_server_hello};
use sealway_tls::reality::certificate::ServerKey;
use sealway_tls::server::{Lengths, Shape, answer_in_shape};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;
use crate::reality::to_port;
use crate::settings::SocketOptions;

/// The records that servers send behind their flight at once, as those in Go do, and after the client's end of the handshake.
#[derive(Clone, Copy)]
struct Sends {
    flight: Lengths,
    before: &'static [usize],
    after: &'static [usize],
    /// How the flight is cut on its way.
    piece: usize,
    /// How many records that change ciphers it takes.
    changes: u32,
}

async fn serve(mut tcp: TcpStream, sends: Sends) -> Option<()> {
    let mut random = |out: &mut [u8]| random::fill(out).unwrap();
    let mut hello = vec![0; 5];
    tcp.read_exact(&mut hello).await.ok()?;
    hello.resize(5 + usize::from(u16::from_be_bytes([hello[3], hello[4]])), 0);
    tcp.read_exact(&mut hello[5..]).await.ok()?;
    let client = ClientHello::read(Message::first(&hello[5..], MAX_HELLO).unwrap().unwrap()).unwrap();
    let share = [&[0, 0x1d, 0, 32][..], &[9; 32]].concat();
    let mut server = Vec::new();
    write_server_hello(
        &mut server,
        &[1; 32],
        client.session_id,
        0x1301,
        &[(43, &[3, 4]), (51, &share)],
    )
    .unwrap();
    let shape = Shape {
        hello: ServerHello::read(Message::first(&server, MAX_HELLO).unwrap().unwrap()).unwrap(),
        flight: sends.flight,
        next: sends.before,
        changes: sends.changes,
    };
    let key = ServerKey::new(&[3; 32], None).unwrap();
    let mut out = Vec::new();
    let identity = key.for_client(&[7; 32]);
    let mut state = answer_in_shape(&client, &shape, &identity, None, &mut random, &mut out).unwrap();
    for piece in out.chunks(sends.piece) {
        tcp.write_all(piece).await.ok()?;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
    let (mut input, mut out) = (Vec::new(), Vec::new());
    let mut connected = loop {
        let read = state.read(&mut input, &mut out);
        let Ok((used, connected)) = read else {
            let _ = tcp.write_all(&out).await;
            return None;
        };
        input.drain(..used);
        match connected {
            Some(connected) => break connected,
            None => assert!(tcp.read_buf(&mut input).await.ok()? > 0),
        }
    };
    for length in sends.after {
        connected.records.push_nothing(*length, &mut out).unwrap();
    }
    tcp.write_all(&out).await.ok()?;
    while tcp.read_buf(&mut input).await.ok()? > 0 {}
    Some(())
}

/// What is found of a target that fails so many connections behind its first.
async fn found(sends: Sends, fails: usize) -> Result<After, Error> {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let settings = to_port(listener.local_addr().unwrap().port());
    tokio::spawn(async move {
        for number in 0.. {
            let (tcp, _) = listener.accept().await.unwrap();
            if !(1..=fails).contains(&number) {
                tokio::spawn(serve(tcp, sends));
            }
        }
    });
    let target = Target::new(settings.target.clone(), SocketOptions::default());
    let probes = Probes::new("", &settings).unwrap();
    let question = probes.questions.lock().unwrap().pop().unwrap();
    let asking = Asking {
        xver: 0,
        seen: Arc::default(),
    };
    let found = ask(&target, &question, &asking).await;
    assert!(!asking.seen.load(Ordering::Relaxed));
    found
}

const EACH: Lengths = Lengths::Each([40, 500, 150, 69]);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn records_count_where_the_target_sends_them_however_they_are_cut() {
    let many = &[30; 40];
    let cases = [
        (EACH, &[250][..], &[][..]),
        (EACH, &[250, 251], &[100, 40]),
        (Lengths::Together(3000), &[130], &[17]),
        (Lengths::Together(6000), &[], &[250, 250]),
        (EACH, &[30], many),
    ];
    let mut tasks = Vec::new();
    for (flight, before, after) in cases {
        for piece in [100, 1000, usize::MAX] {
            tasks.push(tokio::spawn(async move {
                let sends = Sends {
                    flight,
                    before,
                    after,
                    piece,
                    changes: 32,
                };
                let with_heads = |lengths: &[usize]| lengths.iter().map(|len| len + record::HEAD).collect::<Vec<_>>();
                let after = &after[..after.len().min(MAX_RECORDS - before.len())];
                let expected = After {
                    before: with_heads(before),
                    records: with_heads(after),
                    changes: 32,
                };
                assert_eq!(found(sends, 0).await.unwrap(), expected, "{flight:?}, {piece}");
            }));
        }
    }
    for task in tasks {
        task.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_refusal_counts_only_if_it_is_one() {
    // All at once: each target is listened to for seconds.
    let mut asked = JoinSet::new();
    for changes in [1, 16, u32::MAX] {
        let sends = Sends {
            flight: EACH,
            before: &[],
            after: &[100],
            piece: usize::MAX,
            changes,
        };
        // A connection that breaks says nothing of that.
        for fails in [0, 1] {
            asked.spawn(async move { (changes, fails, found(sends, fails).await.unwrap().changes) });
        }
    }
    for (changes, fails, found) in asked.join_all().await {
        assert_eq!(found, changes, "{fails} fail");
    }
}

/// A target that is this server is found by the first hello that comes back.
#[tokio::test]
async fn a_hello_that_comes_back_is_known() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let settings = to_port(listener.local_addr().unwrap().port());
    let target = Arc::new(Target::new(settings.target.clone(), SocketOptions::default()));
    let probes = Probes::new("", &settings).unwrap();
    probes.begin(&target);
    let (mut tcp, _) = listener.accept().await.unwrap();
    let mut hello = vec![0; 5];
    tcp.read_exact(&mut hello).await.unwrap();
    hello.resize(5 + usize::from(u16::from_be_bytes([hello[3], hello[4]])), 0);
    tcp.read_exact(&mut hello[5..]).await.unwrap();
    assert!(!probes.loops());
    let mut other = hello[5..].to_vec();
    other[20] ^= 1;
    assert!(!is_one(&other));
    assert!(is_one(&hello[5..]));
    drop((tcp, listener));
    let looped = async {
        while !probes.loops() {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    timeout(Duration::from_secs(20), looped).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(!is_one(&hello[5..]), "a probe that is over is forgotten");
}
