//! What an emulated link does by itself, before anything is measured over it.

use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Link, Relay, SEGMENT};

/// Single bytes there and back, after a first one, as long as there is time.
const ECHOES: usize = 5;

/// How long a rate is measured, in which no fewer packets than these arrive, and how long at most.
const LEAST: Duration = Duration::from_secs(1);
const PACKETS: u64 = 20;
const MOST: Duration = Duration::from_secs(5);

/// How far from what was asked a link may be: a share, and of the round trip no less than this.
const TOLERANCE: f64 = 0.05;
const TOLERANCE_RTT: Duration = Duration::from_millis(1);

/// Bytes of a read or a write.
const PIECE: usize = 128 << 10;

/// Seed of the losses, the same for every link.
const SEED: u64 = 1;

/// What bare bytes through the relay were seen to do.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Median of single bytes there and back.
    pub round_trip: Duration,
    /// Bytes a second of one stream while nothing is lost; `None` where too few packets arrive in a few seconds.
    pub rate: Option<f64>,
    /// Bytes a second of one stream with the losses of the link; `None` of a link without, or as above.
    pub stream: Option<f64>,
}

impl Measured {
    /// Whether this is the link that was asked for.
    pub fn keeps(&self, asked: &Link) -> bool {
        let wanted = asked.round_trip().as_secs_f64();
        let allowed = (wanted * TOLERANCE).max(TOLERANCE_RTT.as_secs_f64());
        let rate = match (asked.rate(), self.rate) {
            (Some(bits), Some(rate)) => (rate * 8.0 / bits as f64 - 1.0).abs() <= TOLERANCE,
            // No limit, or one so low that the relay is never what limits.
            _ => true,
        };
        rate && (self.round_trip.as_secs_f64() - wanted).abs() <= allowed
    }
}

/// Sends single bytes there and back, then a stream one way, over a link of its own; then one more with its losses. Takes
/// some seconds.
///
/// # Errors
/// What the system says.
pub fn measure(link: &Link) -> io::Result<Measured> {
    let mut lossless = Stream::open(link.lossless())?;
    let round_trip = lossless.echo()?;
    let rate = lossless.rate()?;
    let stream = match link.loss_ppm {
        0 => None,
        _ => Stream::open(*link)?.rate()?,
    };
    Ok(Measured {
        round_trip,
        rate,
        stream,
    })
}

/// A connection through a relay.
struct Stream {
    near: TcpStream,
    far: TcpStream,
    link: Link,
    /// Lives as long as its connection.
    _relay: Relay,
}

impl Stream {
    fn open(link: Link) -> io::Result<Stream> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let relay = Relay::open(listener.local_addr()?, link)?;
        relay.engage(SEED);
        let near = TcpStream::connect(relay.address())?;
        let far = accept(&listener, MOST + link.round_trip())?;
        for socket in [&near, &far] {
            socket.set_nodelay(true)?;
            let patience = MOST + 8 * link.round_trip();
            socket.set_read_timeout(Some(patience))?;
            socket.set_write_timeout(Some(patience))?;
        }
        Ok(Stream {
            near,
            far,
            link,
            _relay: relay,
        })
    }

    /// The median of some bytes there and back.
    fn echo(&mut self) -> io::Result<Duration> {
        let mut trips = Vec::with_capacity(ECHOES);
        let began = Instant::now();
        // The first one waits for the handshake too.
        for turn in 0..=ECHOES {
            let sent = Instant::now();
            self.near.write_all(&[0])?;
            self.far.read_exact(&mut [0])?;
            self.far.write_all(&[0])?;
            self.near.read_exact(&mut [0])?;
            if turn > 0 {
                trips.push(sent.elapsed());
                if began.elapsed() > MOST {
                    break;
                }
            }
        }
        trips.sort_unstable();
        Ok(trips.get(trips.len() / 2).copied().unwrap_or_default())
    }

    /// Bytes a second that arrive once the window has grown.
    fn rate(self) -> io::Result<Option<f64>> {
        let Some(length) = length(&self.link) else {
            return Ok(None);
        };
        let Stream {
            mut near,
            mut far,
            link,
            _relay: relay,
        } = self;
        let sender = std::thread::Builder::new()
            .name("link test".to_owned())
            .spawn(move || {
                let piece = vec![0; PIECE];
                // Ends when the receiver does.
                while near.write_all(&piece).is_ok() {}
            })?;
        let received = receive(&mut far, link.settling(), length);
        drop((far, relay));
        sender
            .join()
            .map_err(|_| io::Error::other("the sender of the test has panicked"))?;
        received.map(Some)
    }
}

/// Accepts a connection, if one comes in time.
///
/// # Errors
/// `TimedOut` if none does, and what the system says.
pub(crate) fn accept(listener: &TcpListener, patience: Duration) -> io::Result<TcpStream> {
    let timeout = Timespec {
        tv_sec: i64::try_from(patience.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: patience.subsec_nanos().into(),
    };
    match poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&timeout))? {
        0 => Err(io::ErrorKind::TimedOut.into()),
        _ => listener.accept().map(|(socket, _)| socket),
    }
}

/// How long the rate of a link is measured; `None` if that is too long for anybody to wait.
fn length(link: &Link) -> Option<Duration> {
    let packets = |bits: u64| Duration::from_secs_f64((PACKETS * SEGMENT * 8) as f64 / bits as f64);
    let needed = link.rate().map_or(Duration::ZERO, packets);
    // Losses come in seasons of some round trips.
    let seasons = if link.loss_ppm > 0 {
        60 * link.round_trip()
    } else {
        LEAST
    };
    (needed <= MOST).then(|| needed.max(LEAST).max(seasons).min(MOST))
}

/// Receives for `settling` and then for `length`; bytes a second of the latter, from its first arrival to its last.
fn receive(from: &mut TcpStream, settling: Duration, length: Duration) -> io::Result<f64> {
    let mut piece = vec![0; PIECE];
    let start = Instant::now() + settling;
    let mut first = None;
    let mut bytes = 0;
    loop {
        let count = from.read(&mut piece)?;
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let now = Instant::now();
        match first {
            None if now >= start => first = Some(now),
            None => {}
            Some(first) => {
                bytes += count;
                if now >= first + length {
                    return Ok(bytes as f64 / (now - first).as_secs_f64());
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    fn link(text: &str) -> Link {
        text.parse().unwrap()
    }

    #[test]
    fn a_link_is_kept_within_five_per_cent_or_a_millisecond() {
        let measured = |rate: f64, ms: f64| Measured {
            round_trip: Duration::from_secs_f64(ms / 1e3),
            rate: Some(rate / 8.0),
            stream: None,
        };
        let asked = link("rate=100mbit,rtt=40ms");
        assert!(measured(96e6, 41.9).keeps(&asked));
        assert!(!measured(94e6, 40.0).keeps(&asked), "too slow");
        assert!(!measured(100e6, 42.1).keeps(&asked), "too far");
        assert!(!measured(106e6, 40.0).keeps(&asked), "too fast");
        assert!(!measured(100e6, 37.0).keeps(&asked), "too near");
        assert!(measured(1e9, 1.9).keeps(&link("rtt=1ms")));
        let slow = Measured {
            rate: None,
            ..measured(0.0, 0.1)
        };
        assert!(slow.keeps(&link("rate=1kbit")));
    }

    #[test]
    fn a_rate_is_measured_over_packets_enough_or_not_at_all() {
        assert_eq!(length(&link("rate=1kbit")), None);
        assert_eq!(length(&link("rate=100mbit")), Some(LEAST));
        assert!(length(&link("rate=100kbit")).unwrap() > Duration::from_secs(2));
        assert_eq!(length(&link("rtt=40ms,loss=1%")), Some(Duration::from_millis(2400)));
        assert_eq!(length(&link("rtt=10s,loss=1%")), Some(MOST));
    }

    #[test]
    fn bare_bytes_are_measured() {
        // Only that there are figures: what they are depends on the machine.
        let found = measure(&link("rate=1gbit,rtt=2ms,loss=0.01%")).unwrap();
        assert!(found.round_trip >= Duration::from_millis(2));
        assert!(found.rate.unwrap() > 0.0 && found.stream.unwrap() > 0.0);
    }
}
