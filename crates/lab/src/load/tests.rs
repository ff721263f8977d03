#![allow(clippy::unwrap_used)]

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use super::fakes::{self, Fake};
use super::generator::{Edge, Generator, TIMEOUT};
use super::script::{LONGEST, Mismatch, Script, Talk, Turn};
use super::scripts::{FLOW, FLOW_PQ, HOLD, HTTP_CLOSE, HTTP_KEEP};
use super::sink::Sink;
use crate::run::CellError;

const SCRIPTS: [&Script; 5] = [&HTTP_KEEP, &HTTP_CLOSE, &FLOW, &FLOW_PQ, &HOLD];
const SHORT: Duration = Duration::from_millis(30);
const KEY: u64 = 0x0123_4567_89ab_cdef;

fn quiet(_: Edge) {}

/// Carries an exchange from one end to the other in pieces of `size`; gives back how many bytes went.
fn carry(script: &Script, size: usize, damage: Option<usize>) -> Result<usize, Mismatch> {
    let (mut client, mut server) = (Talk::client(KEY), Talk::server());
    let (mut out, mut check) = (vec![0; LONGEST], vec![0; LONGEST]);
    let mut moved = 0;
    loop {
        let (from, to) = match (client.turn(script), server.turn(script)) {
            (Turn::Done, Turn::Done) => return Ok(moved),
            (Turn::Send, _) => (&mut client, &mut server),
            _ => (&mut server, &mut client),
        };
        let part = from.outgoing(script, &mut out);
        let mut part = part[..size.min(part.len())].to_vec();
        assert!(!part.is_empty());
        if let Some(at) = damage
            .and_then(|at| at.checked_sub(moved))
            .filter(|at| *at < part.len())
        {
            part[at] ^= 0x10;
        }
        from.advance(script, part.len());
        to.received(script, &part, &mut check)?;
        moved += part.len();
    }
}

#[test]
fn an_exchange_survives_any_cut() {
    for script in SCRIPTS {
        for size in [1, 2, 3, 5, 7, 8, 21, 64, 1000, LONGEST] {
            assert_eq!(carry(script, size, None).map(|n| n as u64), Ok(script.bytes()));
        }
    }
}

#[test]
fn every_byte_is_looked_at() {
    for script in SCRIPTS {
        for at in 0..script.bytes() as usize {
            // A damaged key makes another exchange of it, whose answers are wrong.
            let wrong = carry(script, 700, Some(at));
            assert!(
                matches!(wrong, Err(Mismatch::Byte { .. } | Mismatch::NoKey)),
                "{at}: {wrong:?}"
            );
        }
    }
}

#[test]
fn more_than_was_asked_for_is_noticed() {
    let (mut talk, mut out, mut check) = (Talk::client(KEY), vec![0; LONGEST], vec![0; LONGEST]);
    let request = talk.outgoing(&HTTP_KEEP, &mut out).len();
    talk.advance(&HTTP_KEEP, request);
    let mut reply = HTTP_KEEP.render(1, KEY, &mut out).to_vec();
    reply.push(b'x');
    assert_eq!(
        talk.received(&HTTP_KEEP, &reply, &mut check),
        Err(Mismatch::Surplus { bytes: 1 })
    );
    let mut talk = Talk::client(KEY);
    assert_eq!(
        talk.received(&HTTP_KEEP, b"early", &mut check),
        Err(Mismatch::Surplus { bytes: 5 })
    );
}

#[test]
fn the_head_says_how_long_the_body_is() {
    for script in [&HTTP_KEEP, &HTTP_CLOSE] {
        let head = String::from_utf8_lossy(script.messages[1].head).into_owned();
        assert!(head.contains(&format!("Content-Length: {}\r\n", script.messages[1].body)));
        assert!(head.ends_with("\r\n\r\n"));
    }
}

/// Works in a closed loop until it has seen enough, on however slow a machine.
fn closed(script: &'static Script, target: SocketAddr, connections: usize, wanted: u64) -> Generator {
    let mut generator = Generator::new(script, target, connections, 1).unwrap();
    let mut done = 0;
    while done < wanted {
        done += generator.closed(SHORT, SHORT, &mut quiet).unwrap().done;
    }
    generator
}

#[test]
fn every_script_runs_between_generator_and_sink() {
    for script in SCRIPTS {
        let sink = Sink::start(script).unwrap();
        let generator = closed(script, sink.address(), 8, 100);
        assert_eq!(generator.latency.failed(), 0);
        assert_eq!(sink.check(), Ok(()));
        assert!(sink.served() >= 100);
    }
}

#[test]
fn a_window_has_its_edges_and_counts_what_is_in_it() {
    let sink = Sink::start(&HTTP_KEEP).unwrap();
    let mut generator = Generator::new(&HTTP_KEEP, sink.address(), 4, 1).unwrap();
    generator.once(4).unwrap();
    let mut edges = Vec::new();
    let window = generator.closed(SHORT, SHORT, &mut |edge| edges.push(edge)).unwrap();
    assert_eq!(edges, [Edge::Start, Edge::End]);
    assert!(window.wall_s >= SHORT.as_secs_f64());
    assert_eq!(window.bytes, window.done * HTTP_KEEP.bytes());
    assert_eq!(window.counts, None);
    // Of those that began in the window, only those under way at its end are not among those that ended in it.
    assert!(generator.latency.count() >= window.done.saturating_sub(4));
    assert_eq!(generator.latency.count(), generator.service.count());
}

#[test]
fn an_open_loop_sends_what_it_planned() {
    let sink = Sink::start(&FLOW).unwrap();
    let mut generator = Generator::new(&FLOW, sink.address(), 4, 1).unwrap();
    let window = generator.open(1000.0, SHORT, SHORT, &mut quiet).unwrap();
    let counts = window.counts.unwrap();
    assert_eq!(counts.planned, 30);
    assert_eq!(
        (counts.sent, counts.done, counts.failed, counts.dropped),
        (30, 30, 0, 0)
    );
    assert_eq!(generator.latency.count(), 30);
    assert!(!counts.overloaded());
}

#[test]
fn an_open_loop_knows_when_it_is_not_kept_up_with() {
    let fake = fakes::start(Fake::Slow);
    let mut generator = Generator::new(&HTTP_KEEP, fake, 2, 1)
        .unwrap()
        .with_timeout(Duration::from_millis(60));
    let window = generator.open(1000.0, Duration::ZERO, SHORT, &mut quiet).unwrap();
    let counts = window.counts.unwrap();
    assert!(counts.overloaded());
    assert_eq!(counts.done, 0);
    assert!(counts.failed >= 2, "{counts:?}");
    // Sent or not, each of the plan is in the distribution, without end.
    assert_eq!(generator.latency.count(), counts.planned);
    assert_eq!(generator.latency.tail().quantile(0.5), Some(f64::INFINITY));
}

#[test]
fn a_fake_that_does_nothing_wrong_passes() {
    let fake = fakes::start(Fake::Right);
    assert_eq!(closed(&HTTP_KEEP, fake, 2, 50).latency.failed(), 0);
}

#[test]
fn wrong_data_stops_the_run() {
    for fake in [
        Fake::WrongByte(0),
        Fake::WrongByte(1000),
        Fake::WrongByte(1090),
        Fake::SaysMore,
        Fake::Surplus,
        Fake::Mixes,
    ] {
        let server = fakes::start(fake);
        let mut generator = Generator::new(&HTTP_KEEP, server, 2, 1).unwrap();
        let wrong = generator.closed(TIMEOUT, TIMEOUT, &mut quiet);
        assert!(matches!(wrong, Err(CellError::Wrong { .. })), "{fake:?}: {wrong:?}");
    }
}

#[test]
fn a_server_that_always_closes_ends_the_run() {
    let server = fakes::start(Fake::Closes);
    let mut generator = Generator::new(&HTTP_KEEP, server, 2, 1).unwrap();
    let failed = generator.closed(TIMEOUT * 30, SHORT, &mut quiet).unwrap_err();
    assert!(matches!(failed, CellError::Failed { .. }), "{failed:?}");
    assert!(
        failed.to_string().contains("closed before the answer was over"),
        "{failed}"
    );
    let mut generator = Generator::new(&HTTP_KEEP, server, 2, 1).unwrap();
    assert!(matches!(generator.once(2), Err(CellError::Failed { .. })));
}

#[test]
fn nobody_there_ends_the_run() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let mut generator = Generator::new(&FLOW, address, 2, 1).unwrap();
    let failed = generator.closed(TIMEOUT * 30, SHORT, &mut quiet).unwrap_err();
    assert!(matches!(failed, CellError::Failed { .. }), "{failed:?}");
}

#[test]
fn single_failures_stay_in_the_distribution() {
    let server = fakes::start(Fake::TenthCloses);
    let mut generator = Generator::new(&HTTP_KEEP, server, 2, 1).unwrap();
    // Until a window has both: how many fit into one is the machine's affair.
    for _ in 0..1000 {
        let window = generator.closed(Duration::ZERO, SHORT, &mut quiet).unwrap();
        if generator.latency.failed() > 0 && window.done > 0 {
            assert!(generator.latency.count() > generator.latency.failed());
            assert_eq!(generator.latency.tail().quantile(1.0), Some(f64::INFINITY));
            return;
        }
    }
    panic!("no failure was seen");
}

#[test]
fn silence_is_a_failure() {
    let server = fakes::start(Fake::Slow);
    let mut generator = Generator::new(&HTTP_KEEP, server, 2, 1).unwrap().with_timeout(SHORT);
    let window = generator.closed(Duration::ZERO, SHORT, &mut quiet).unwrap();
    assert_eq!(window.done, 0);
    assert!(generator.latency.failed() >= 2);
}

#[test]
fn the_sink_checks_what_it_gets() {
    let sink = Sink::start(&FLOW).unwrap();
    let mut stream = TcpStream::connect(sink.address()).unwrap();
    let mut buffer = vec![0; LONGEST];
    let mut flight = FLOW.render(0, KEY, &mut buffer).to_vec();
    flight[516] ^= 1;
    stream.write_all(&flight).unwrap();
    assert_eq!(stream.read(&mut buffer).unwrap(), 0, "the sink closes");
    let fault = sink.check();
    assert!(
        matches!(&fault, Err(CellError::Wrong { what }) if what.contains("byte 516 of message 0")),
        "{fault:?}"
    );
    assert_eq!(sink.check(), Ok(()), "told once, to the cell that it is about");
}

#[test]
fn a_sink_with_work_is_what_limits() {
    let work = Duration::from_millis(2);
    let sink = Sink::start_with(&HTTP_KEEP, work).unwrap();
    let began = Instant::now();
    closed(&HTTP_KEEP, sink.address(), 4, 100);
    // Several times the windows in which they fit without.
    assert!(began.elapsed() >= work * 99);
}

#[test]
fn the_sink_notices_what_follows_the_end() {
    let sink = Sink::start(&FLOW).unwrap();
    let mut stream = TcpStream::connect(sink.address()).unwrap();
    let mut buffer = vec![0; LONGEST];
    for (index, message) in FLOW.messages.iter().enumerate() {
        let text = FLOW.render(index, KEY, &mut buffer).to_vec();
        if message.from == super::script::Side::Client {
            stream.write_all(&text).unwrap();
        } else {
            let mut came = vec![0; text.len()];
            stream.read_exact(&mut came).unwrap();
            assert_eq!(came, text);
        }
    }
    assert_eq!(sink.check(), Ok(()));
    stream.write_all(b"more").unwrap();
    assert_eq!(stream.read(&mut buffer).unwrap(), 0, "the sink closes");
    let surplus = CellError::wrong("to the sink: 4 bytes more came than were asked for");
    assert_eq!(sink.check(), Err(surplus));
}

#[test]
fn held_connections_stay_open() {
    let sink = Sink::start(&HOLD).unwrap();
    let mut generator = Generator::new(&HOLD, sink.address(), 200, 1).unwrap();
    generator.once(32).unwrap();
    assert_eq!(generator.opened(), 200);
    // And work still: none was closed on the way.
    generator.once(200).unwrap();
    assert_eq!(generator.opened(), 200);
}
