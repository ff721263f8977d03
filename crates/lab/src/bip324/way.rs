//! The way between both ends of a case over sockets: loopback, with an emulated link in it or without.
//!
//! Connections are opened through the link as through an open door: what is measured is packets on connections that are there.

use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::Duration;

use super::links::failed;
use crate::link::{Over, Relay, accept};
use crate::measure::clock::process_cpu;
use crate::run::{CellError, seed};

/// How long a connection may take to come out of the relay, and to show that it is ours.
const PATIENCE: Duration = Duration::from_secs(5);

/// The way of one window.
pub(super) struct Way {
    listener: TcpListener,
    link: Option<Emulated>,
}

/// The link of a window.
struct Emulated {
    relay: Relay,
    seed: u64,
    /// What a connection of ours begins with.
    mark: [u8; 8],
}

impl Way {
    /// The way of window number `turn`, over a link if there is one, which is an open door until [`Way::engage`].
    pub(super) fn open(over: Option<Over>, turn: u64) -> io::Result<Way> {
        let listener = TcpListener::bind(("127.0.0.1", 0))?;
        let to = listener.local_addr()?;
        let link = over.map(|over| Emulated::open(over, turn, to)).transpose()?;
        Ok(Way { listener, link })
    }

    /// Both ends of a new connection.
    pub(super) fn connect(&self) -> io::Result<[TcpStream; 2]> {
        let ends = match &self.link {
            Some(link) => link.connect(&self.listener)?,
            None => direct(&self.listener)?,
        };
        for end in &ends {
            end.set_nodelay(true)?;
        }
        Ok(ends)
    }

    /// From now on the link is one.
    pub(super) fn engage(&self) {
        if let Some(link) = &self.link {
            link.relay.engage(link.seed);
        }
    }

    /// From now on the link is an open door, and what is under way arrives at once; the figure of a window in which the machine
    /// could not keep it.
    pub(super) fn release(&self) -> Option<(&'static str, f64)> {
        let relay = &self.link.as_ref()?.relay;
        let late = relay.mark();
        relay.release();
        late
    }

    /// Fails if the link carries nothing any more.
    pub(super) fn check(&self) -> Result<(), CellError> {
        match self.link.as_ref().and_then(|link| link.relay.fault()) {
            None => Ok(()),
            Some(what) => Err(failed(format_args!("the link carries nothing any more: {what}"))),
        }
    }

    /// CPU time of this process so far without that of the link, where the system tells.
    pub(super) fn cpu(&self) -> Option<Duration> {
        let all = process_cpu()?;
        match &self.link {
            Some(link) => all.checked_sub(link.relay.cpu()?),
            None => Some(all),
        }
    }

    /// CPU seconds since `before`.
    pub(super) fn spent(&self, before: Option<Duration>) -> Option<f64> {
        before
            .zip(self.cpu())
            .map(|(before, after)| after.saturating_sub(before).as_secs_f64())
    }
}

impl Emulated {
    fn open(over: Over, turn: u64, to: SocketAddr) -> io::Result<Emulated> {
        let relay = Relay::open(to, over.link)?;
        let (own, mark) = (over.turn(turn), seed().map_err(io::Error::other)?);
        relay.seed(own);
        Ok(Emulated {
            relay,
            seed: own,
            mark: mark.to_ne_bytes(),
        })
    }

    /// Both ends of a new connection through the relay. Whoever else may have found a port does not know the mark.
    fn connect(&self, listener: &TcpListener) -> io::Result<[TcpStream; 2]> {
        let mut to = TcpStream::connect(self.relay.address())?;
        to.write_all(&self.mark)?;
        loop {
            let mut from = accept(listener, PATIENCE)?;
            from.set_read_timeout(Some(PATIENCE))?;
            let mut mark = [0; 8];
            if from.read_exact(&mut mark).is_ok() && mark == self.mark {
                from.set_read_timeout(None)?;
                return Ok([to, from]);
            }
        }
    }
}

/// Both ends of a new connection to a listener of this process.
fn direct(listener: &TcpListener) -> io::Result<[TcpStream; 2]> {
    let to = TcpStream::connect(listener.local_addr()?)?;
    // Whoever else may have found the port: it is our own end that is taken.
    loop {
        let (from, peer) = listener.accept()?;
        if peer == to.local_addr()? {
            return Ok([to, from]);
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::time::Instant;

    use super::*;

    fn over(link: &str) -> Option<Over> {
        let link = link.parse().unwrap();
        Some(Over { link, seed: 1 })
    }

    /// Sends bytes one way, then as many back; how long that took.
    fn there_and_back([to, from]: &mut [TcpStream; 2], bytes: usize) -> Duration {
        let (began, mut got) = (Instant::now(), vec![0; bytes]);
        to.write_all(&vec![7; bytes]).unwrap();
        from.read_exact(&mut got).unwrap();
        from.write_all(&got).unwrap();
        to.read_exact(&mut got).unwrap();
        assert_eq!(got, vec![7; bytes]);
        began.elapsed()
    }

    #[test]
    fn every_connection_goes_over_the_link_from_when_it_is_engaged() {
        let way = Way::open(over("rtt=20ms"), 0).unwrap();
        let mut connections: Vec<_> = (0..5).map(|_| way.connect().unwrap()).collect();
        for ends in &mut connections {
            there_and_back(ends, 3);
        }
        way.engage();
        for ends in &mut connections {
            assert!(there_and_back(ends, 3) >= Duration::from_millis(20));
        }
        way.release();
        way.check().unwrap();
        for ends in &mut connections {
            there_and_back(ends, 3);
        }
    }

    #[test]
    fn others_at_the_doors_are_nobodys_end() {
        let way = Way::open(over("rtt=1ms"), 0).unwrap();
        let link = way.link.as_ref().unwrap();
        let doors = [way.listener.local_addr().unwrap(), link.relay.address()];
        let strangers = doors.map(|door| {
            let mut stranger = TcpStream::connect(door).unwrap();
            stranger.write_all(&[0; 8]).unwrap();
            stranger
        });
        let mut ends = way.connect().unwrap();
        there_and_back(&mut ends, 1);
        drop(strangers);
        // Without a link it is known by its address.
        let way = Way::open(None, 0).unwrap();
        let _stranger = TcpStream::connect(way.listener.local_addr().unwrap()).unwrap();
        let [to, from] = way.connect().unwrap();
        assert_eq!(from.peer_addr().unwrap(), to.local_addr().unwrap());
    }

    #[test]
    fn what_the_link_costs_is_not_counted() {
        let way = Way::open(over("rtt=0s"), 0).unwrap();
        let relay = || way.link.as_ref().unwrap().relay.cpu().unwrap();
        let mut ends = way.connect().unwrap();
        let before = (process_cpu().unwrap(), relay(), way.cpu().unwrap());
        for _ in 0..500 {
            there_and_back(&mut ends, 1);
        }
        let own = way.cpu().unwrap() - before.2;
        let (relay, all) = (relay() - before.1, process_cpu().unwrap() - before.0);
        // The clocks are read one after the other.
        assert!(
            !relay.is_zero() && own + relay <= all + Duration::from_millis(1),
            "{own:?}, {relay:?} of {all:?}"
        );
    }
}
