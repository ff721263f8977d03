#![allow(clippy::unwrap_used)]

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

use socket2::SockRef;

use super::*;

fn link(text: &str) -> Link {
    text.parse().unwrap()
}

#[test]
fn links_are_read_and_written() {
    for text in [
        "rate=100mbit,rtt=40ms,loss=0.1%",
        "rate=1.5gbit",
        "rate=1kbit,rtt=10s",
        "rate=100gbit,rtt=20us",
        "rate=1001bit",
        "rtt=250us,loss=50%",
        "rtt=12.345ms,loss=0.0001%",
        "rtt=0us",
    ] {
        let canonical = link(text).to_string();
        assert_eq!(canonical.replace("1.001kbit", "1001bit"), text);
        assert_eq!(link(&canonical), link(text));
    }
    // Other ways to write them, in any order.
    assert_eq!(
        link("loss=0.10%,rtt=0.04s,rate=0.1gbit"),
        link("rate=100mbit,rtt=40ms,loss=0.1%")
    );
    assert_eq!(link("loss=0%"), Link::default());
    assert_eq!(link("rate=100000000bit"), link("rate=100mbit"));
}

#[test]
fn a_text_that_is_no_link_is_told_what_is_wrong_with_which_part() {
    for (text, wrong) in [
        ("", "\"\" has no value: give rate="),
        ("fast", "\"fast\" has no value"),
        ("rate=1mbit,", "\"\" has no value"),
        ("delay=4ms", "\"delay\" is no part of a link: give rate=, rtt= or loss="),
        ("jitter=1ms", "\"jitter\" is no part"),
        ("Rate=1mbit", "\"Rate\" is no part"),
        ("rtt=1ms,rtt=1ms", "rtt= is there twice"),
        ("rate=100", "rate=100: give a number with bit, kbit, mbit or gbit"),
        ("rate=", "rate=: give a number"),
        ("rate=mbit", "rate=mbit: give a number"),
        ("rate=-1mbit", "rate=-1mbit: give a number"),
        ("rate=1e3mbit", "rate=1e3mbit: give"),
        ("rate=1.mbit", "rate=1.mbit: give"),
        ("rate=.5mbit", "rate=.5mbit: give"),
        ("rate=1.0000000000001gbit", "give a number"),
        ("rate=1.2345kbit", "in whole bits a second"),
        ("rate= 1mbit", "rate= 1mbit: give"),
        ("rate=999bit", "rate=999bit: it must be 1kbit to 100gbit"),
        ("rate=100.000000001gbit", "it must be 1kbit to 100gbit"),
        ("rate=99999999999999999999999gbit", "it must be 1kbit to 100gbit"),
        ("rtt=40", "rtt=40: give a number with us, ms or s"),
        ("rtt=1m", "rtt=1m: give a number"),
        ("rtt=0.5us", "in whole microseconds"),
        ("rtt=10.000001s", "rtt=10.000001s: it must be 0s to 10s"),
        ("loss=0.1", "loss=0.1: give a number with %"),
        ("rtt=1ms,loss=50.0001%", "it must be 0% to 50%"),
        ("rtt=1ms,loss=0.00001%", "at most four decimals"),
        ("loss=1%", "loss= needs rtt="),
        (
            "rate=100gbit,rtt=10s",
            "119209 MiB would be under way in each direction, and at most 256 MiB are held",
        ),
    ] {
        let error = text.parse::<Link>().unwrap_err().to_string();
        assert!(error.contains(wrong), "{text}: {error}");
    }
}

proptest::proptest! {
    #[test]
    fn any_text_is_a_link_or_an_error(text in "(rate|rtt|loss|x)?=?[0-9.]{0,14}(g?m?bit|[mu]?s|%)?(,rtt=[0-9]{1,3}ms)?") {
        let _ = text.parse::<Link>();
    }

    #[test]
    fn every_link_is_read_as_it_was_written(rate in 1_000..20_000_000_000_u64, rtt_us in 1..100_000_u64, loss_ppm in 0..=500_000_u32) {
        let link = Link { rate: Some(rate), rtt_us, loss_ppm };
        proptest::prop_assert_eq!(link.to_string().parse(), Ok(link));
        // And whatever follows from one is a time.
        let longest = [link.settling(), link.patience(1 << 40), link.transfer(1 << 30), link.opening()].into_iter().max();
        proptest::prop_assert!(longest.is_some_and(|time| time < Duration::from_secs(1 << 30)));
    }
}

#[test]
fn a_window_has_time_to_fill_the_link() {
    assert_eq!(link("rate=1mbit").settling(), Duration::ZERO);
    // 500 kB under way from 14.5 kB: six doublings, and the last of them to be seen.
    assert_eq!(link("rate=100mbit,rtt=40ms").settling(), Duration::from_millis(280));
}

/// A connection through a relay that is the link.
fn through(text: &str, seed: u64) -> (Relay, TcpStream, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let relay = Relay::open(listener.local_addr().unwrap(), link(text)).unwrap();
    relay.engage(seed);
    let near = TcpStream::connect(relay.address()).unwrap();
    let (far, _) = listener.accept().unwrap();
    for socket in [&near, &far] {
        socket.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        socket.set_write_timeout(Some(Duration::from_secs(30))).unwrap();
    }
    (relay, near, far)
}

fn bytes(count: u32, key: u32) -> Vec<u8> {
    (0..count)
        .map(|i| (i.wrapping_mul(2_654_435_761).wrapping_add(key) >> 24) as u8)
        .collect()
}

#[test]
fn bytes_keep_their_order_both_ways_while_packets_are_lost() {
    let (_relay, near, far) = through("rate=500mbit,rtt=2ms,loss=2%", 1);
    let (up, down) = (bytes(1_000_000, 1), bytes(700_000, 2));
    let both = [(near, up.clone(), down.len()), (far, down.clone(), up.len())];
    let ends = both.map(|(socket, bytes, wanted)| {
        thread::spawn(move || {
            let writer = socket.try_clone().unwrap();
            let sent = thread::spawn(move || {
                // Pieces of all sizes.
                let mut left = &bytes[..];
                for size in [1, 100, 1448, 5000, 70_000].into_iter().cycle() {
                    let (piece, rest) = left.split_at(left.len().min(size));
                    (&writer).write_all(piece).unwrap();
                    left = rest;
                    if left.is_empty() {
                        break;
                    }
                }
                writer.shutdown(Shutdown::Write).unwrap();
            });
            let mut got = Vec::with_capacity(wanted);
            (&socket).read_to_end(&mut got).unwrap();
            sent.join().unwrap();
            got
        })
    });
    let [got_down, got_up] = ends.map(|end| end.join().unwrap());
    assert!(got_up == up && got_down == down);
}

#[test]
fn an_end_of_one_direction_leaves_the_other_open() {
    let (_relay, mut near, mut far) = through("rtt=4ms", 1);
    near.write_all(b"question").unwrap();
    near.shutdown(Shutdown::Write).unwrap();
    let mut got = Vec::new();
    far.read_to_end(&mut got).unwrap();
    assert_eq!(got, b"question");
    far.write_all(b"answer").unwrap();
    drop(far);
    got.clear();
    near.read_to_end(&mut got).unwrap();
    assert_eq!(got, b"answer");
}

#[test]
fn a_reset_crosses_the_link_in_both_directions() {
    for back in [false, true] {
        let (_relay, near, far) = through("rtt=4ms", 1);
        let (from, mut to) = if back { (far, near) } else { (near, far) };
        (&from).write_all(b"a").unwrap();
        to.read_exact(&mut [0]).unwrap();
        SockRef::from(&from).set_linger(Some(Duration::ZERO)).unwrap();
        drop(from);
        let error = to.read(&mut [0; 10]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{back}");
    }
}

#[test]
fn who_writes_to_a_receiver_that_is_gone_is_told() {
    let (_relay, mut near, far) = through("rtt=4ms", 1);
    near.write_all(b"a").unwrap();
    (&far).read_exact(&mut [0]).unwrap();
    drop(far);
    let piece = bytes(100_000, 3);
    let mut error = None;
    for _ in 0..1000 {
        if let Err(found) = near.write_all(&piece) {
            error = Some(found.kind());
            break;
        }
    }
    let told = [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
    assert!(error.is_some_and(|kind| told.contains(&kind)), "{error:?}");
}

#[test]
fn who_speaks_first_waits_for_the_handshake() {
    for (server, least) in [(true, 80), (false, 60)] {
        let began = std::time::Instant::now();
        let (_relay, near, far) = through("rtt=40ms", 1);
        let (mut first, mut other) = if server { (far, near) } else { (near, far) };
        first.write_all(b"greeting").unwrap();
        other.read_exact(&mut [0; 8]).unwrap();
        let took = began.elapsed();
        assert!(took >= Duration::from_millis(least), "server {server}: {took:?}");
    }
}

#[test]
fn nobody_there_is_a_reset() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let to = listener.local_addr().unwrap();
    drop(listener);
    let relay = Relay::open(to, link("rtt=2ms")).unwrap();
    relay.engage(1);
    let mut near = TcpStream::connect(relay.address()).unwrap();
    assert_eq!(near.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert_eq!(relay.fault(), None);
}

#[test]
fn what_the_system_refuses_is_a_fault() {
    // An address of one link, without the link.
    let relay = Relay::open("[fe80::1]:9".parse().unwrap(), link("rtt=2ms")).unwrap();
    relay.engage(1);
    let mut near = TcpStream::connect(relay.address()).unwrap();
    assert_eq!(near.read(&mut [0]).unwrap_err().kind(), ErrorKind::ConnectionReset);
    assert!(relay.fault().is_some());
}

#[test]
fn a_sender_is_held_back_while_nobody_reads() {
    let (_relay, mut near, _far) = through("rate=100mbit,rtt=10ms", 1);
    near.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    let piece = bytes(64 << 10, 4);
    let mut taken = 0_usize;
    loop {
        match near.write(&piece) {
            Ok(count) => taken += count,
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::WouldBlock);
                break;
            }
        }
        assert!(taken < 64 << 20, "{taken} bytes were taken");
    }
}

#[test]
fn an_open_door_lets_all_through_that_was_under_way() {
    // At a kilobit a second this would take half an hour.
    let (relay, mut near, mut far) = through("rate=1kbit,rtt=100ms", 1);
    let sent = bytes(200_000, 5);
    let copy = sent.clone();
    let writer = thread::spawn(move || {
        near.write_all(&copy).unwrap();
        near.shutdown(Shutdown::Write).unwrap();
        near
    });
    relay.release();
    let mut got = Vec::new();
    far.read_to_end(&mut got).unwrap();
    assert!(got == sent);
    drop(writer.join().unwrap());
}

#[test]
fn a_link_that_is_engaged_again_is_empty() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let relay = Relay::open(listener.local_addr().unwrap(), link("rate=1kbit,rtt=2ms")).unwrap();
    let connect = || {
        let near = TcpStream::connect(relay.address()).unwrap();
        let (far, _) = listener.accept().unwrap();
        far.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        (near, far)
    };
    relay.engage(1);
    let (mut near, mut far) = connect();
    near.write_all(b"a").unwrap();
    far.read_exact(&mut [0]).unwrap();
    // Of this the first window enters the queue, and would leave it after two minutes.
    near.write_all(&bytes(100_000, 6)).unwrap();
    thread::sleep(Duration::from_millis(50));
    relay.release();
    far.read_exact(&mut vec![0; 100_000]).unwrap();
    relay.engage(1);
    let (mut other, mut other_far) = connect();
    for (near, far) in [(&mut near, &mut far), (&mut other, &mut other_far)] {
        near.write_all(b"a").unwrap();
        far.read_exact(&mut [0]).unwrap();
    }
}

#[test]
fn many_connections_come_and_go() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let relay = Relay::open(listener.local_addr().unwrap(), link("rate=1gbit,rtt=1ms,loss=1%")).unwrap();
    relay.engage(7);
    let echo = thread::spawn(move || {
        for stream in listener.incoming().take(60).map(Result::unwrap) {
            thread::spawn(move || {
                let mut got = Vec::new();
                (&stream).read_to_end(&mut got).unwrap();
                (&stream).write_all(&got).unwrap();
            });
        }
    });
    for round in 0..3 {
        let clients: Vec<_> = (0..20)
            .map(|n| {
                let mut near = TcpStream::connect(relay.address()).unwrap();
                thread::spawn(move || {
                    let sent = bytes(5000 + n, round);
                    near.write_all(&sent).unwrap();
                    near.shutdown(Shutdown::Write).unwrap();
                    let mut got = Vec::new();
                    near.read_to_end(&mut got).unwrap();
                    assert!(got == sent);
                })
            })
            .collect();
        for client in clients {
            client.join().unwrap();
        }
    }
    echo.join().unwrap();
    assert_eq!(relay.fault(), None);
}
