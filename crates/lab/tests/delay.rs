//! The forwarder with distance, as others use it.

#![allow(clippy::unwrap_used)]

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use sealway_lab::delay::{Delay, Forwarder};

const ONE_WAY: Duration = Duration::from_millis(20);

fn through(line: &Forwarder, listener: &TcpListener) -> (TcpStream, TcpStream) {
    let near = TcpStream::connect(line.address()).unwrap();
    let far = listener.accept().unwrap().0;
    for stream in [&near, &far] {
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        stream.set_nodelay(true).unwrap();
    }
    (near, far)
}

#[test]
fn nothing_arrives_sooner_and_both_ways_take_both_times() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let line = Forwarder::open(listener.local_addr().unwrap(), Delay::buffer_for(ONE_WAY, 1 << 30)).unwrap();
    let (mut near, mut far) = through(&line, &listener);
    for _ in 0..3 {
        // A lower bound only: a busy machine is later, never earlier.
        let begun = Instant::now();
        near.write_all(b"there").unwrap();
        far.read_exact(&mut [0; 5]).unwrap();
        assert!(begun.elapsed() >= ONE_WAY);
        far.write_all(b"back").unwrap();
        near.read_exact(&mut [0; 4]).unwrap();
        assert!(begun.elapsed() >= 2 * ONE_WAY);
    }
}

#[test]
fn many_bytes_keep_their_order_and_an_end_comes_after_them() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let line = Forwarder::open(listener.local_addr().unwrap(), Delay::buffer_for(ONE_WAY, 1 << 30)).unwrap();
    let (near, far) = through(&line, &listener);
    let content: Vec<u8> = (0..40_000_000u32)
        .flat_map(|n| [(n % 251) as u8, (n >> 16) as u8])
        .collect();
    let begun = Instant::now();
    std::thread::scope(|scope| {
        for (from, to) in [(&near, &far), (&far, &near)] {
            let content = &content;
            scope.spawn(move || {
                let mut from = from;
                from.write_all(content).unwrap();
                from.shutdown(Shutdown::Write).unwrap();
            });
            scope.spawn(move || {
                let mut to = to;
                let mut got = Vec::new();
                to.read_to_end(&mut got).unwrap();
                assert!(got == *content);
            });
        }
    });
    let rate = 2.0 * content.len() as f64 / begun.elapsed().as_secs_f64();
    println!("{:.0} MB/s, both directions together", rate / 1e6);
}

#[test]
fn what_is_on_its_way_is_bounded() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let line = Forwarder::open(listener.local_addr().unwrap(), Delay::buffer_for(ONE_WAY, 1)).unwrap();
    let (near, mut far) = through(&line, &listener);
    // Nobody reads: the sender is stopped after what line and sockets hold.
    near.set_write_timeout(Some(Duration::from_millis(500))).unwrap();
    let piece = vec![7; 1 << 20];
    let mut sent = 0;
    while let Ok(written) = (&near).write(&piece) {
        sent += written;
        assert!(sent < 256 << 20, "it never stops");
    }
    near.shutdown(Shutdown::Write).unwrap();
    let mut got = 0;
    let mut room = vec![0; 1 << 20];
    loop {
        match far.read(&mut room).unwrap() {
            0 => break,
            read => got += read,
        }
    }
    assert_eq!(got, sent);
}
