use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream as Blocking};
use std::sync::atomic::Ordering;

use super::*;

fn connected() -> (Blocking, Blocking) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let near = Blocking::connect(listener.local_addr().unwrap()).unwrap();
    let far = listener.accept().unwrap().0;
    for stream in [&near, &far] {
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.set_write_timeout(Some(Duration::from_secs(60))).unwrap();
    }
    (near, far)
}

/// Carries between two connections while `work` uses the outer ends. Returns how it ended and the bytes counted.
fn carrying<T: Send>(
    copy: bool,
    idle: Duration,
    work: impl FnOnce(Blocking, Blocking) -> T + Send,
) -> (io::Result<Ended>, u64, T) {
    let ((one, inner_one), (two, inner_two)) = (connected(), connected());
    std::thread::scope(|scope| {
        let work = scope.spawn(|| work(one, two));
        let bytes = AtomicU64::new(0);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        let ended = runtime.block_on(async {
            let tokio_of = |stream: Blocking| {
                stream.set_nonblocking(true).unwrap();
                Sock::Tcp(tokio::net::TcpStream::from_std(stream).unwrap())
            };
            let mut ends = (tokio_of(inner_one), tokio_of(inner_two));
            let way = || Way { copy, ..Way::default() };
            let ended = tokio::time::timeout(
                Duration::from_secs(60),
                carry_by((way(), way()), &mut ends, idle, &bytes),
            );
            ended.await.unwrap()
        });
        (ended, bytes.load(Ordering::SeqCst), work.join().unwrap())
    })
}

const LONG: Duration = Duration::from_secs(600);

/// Bytes that differ from place to place, and from seed to seed.
fn pattern(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed;
    let mut bytes = vec![0; len];
    for chunk in bytes.chunks_mut(8) {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        chunk.copy_from_slice(&state.to_be_bytes()[..chunk.len()]);
    }
    bytes
}

#[test]
fn both_directions_at_once_by_pipe_and_by_copy() {
    for copy in [false, true] {
        let (there, back) = (pattern(1, 9_000_001), pattern(2, 7_000_003));
        let (ended, bytes, (got_there, got_back)) = carrying(copy, LONG, |one, two| {
            std::thread::scope(|scope| {
                for (stream, content) in [(&one, &there), (&two, &back)] {
                    scope.spawn(move || {
                        let mut stream = stream;
                        stream.write_all(content).unwrap();
                        stream.shutdown(Shutdown::Write).unwrap();
                    });
                }
                let read = |mut stream: &Blocking| {
                    let mut got = Vec::new();
                    stream.read_to_end(&mut got).unwrap();
                    got
                };
                let got_back = scope.spawn({
                    let one = &one;
                    move || read(one)
                });
                (read(&two), got_back.join().unwrap())
            })
        });
        assert_eq!(ended.unwrap(), Ended::Done);
        assert_eq!(bytes, 16_000_004);
        assert!(got_there == there && got_back == back, "copy: {copy}");
    }
}

#[test]
fn silence_ends_it() {
    let (ended, bytes, _) = carrying(false, Duration::from_millis(50), |mut one, mut two| {
        one.write_all(b"word").unwrap();
        let mut got = [0; 4];
        // What was sent arrives; then both hear of a break: neither has ended.
        two.read_exact(&mut got).unwrap();
        assert_eq!(&got, b"word");
        for mut end in [one, two] {
            assert_eq!(end.read(&mut [0]).unwrap_err().kind(), io::ErrorKind::ConnectionReset);
        }
    });
    assert_eq!(ended.unwrap(), Ended::Idle);
    assert_eq!(bytes, 4);
}

#[test]
fn a_reset_is_passed_on() {
    let (ended, _, error) = carrying(false, LONG, |one, mut two| {
        socket2::SockRef::from(&one).set_linger(Some(Duration::ZERO)).unwrap();
        drop(one);
        two.read(&mut [0]).unwrap_err().kind()
    });
    assert!(ended.is_err());
    assert_eq!(error, io::ErrorKind::ConnectionReset);
}
