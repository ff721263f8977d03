//! A wire between two programs that counts what crosses it and can be damaged on purpose: what is verified must notice.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::traffic::Direction;
use crate::run::CellError;

/// Bytes of a read.
const PIECE: usize = 16 * 1024;

/// What happens to the bytes of one direction, once, on the first connection that gets so far.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Damage {
    /// One bit is flipped.
    Flip,
    /// Some bytes are left out.
    #[cfg(test)]
    Drop,
    /// Two pieces change places.
    #[cfg(test)]
    Swap,
    /// A piece comes twice.
    #[cfg(test)]
    Repeat,
}

/// A relay in threads of its own. It stops listening when dropped.
#[derive(Debug)]
pub(crate) struct Wire {
    address: SocketAddr,
    closing: Arc<AtomicBool>,
    seen: Arc<Seen>,
}

/// What a wire knows of its connections.
#[derive(Debug, Default)]
struct Seen {
    damaged: AtomicBool,
    /// Bytes of both directions, counted before they are handed on.
    passed: AtomicU64,
}

/// What is done to which bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plan {
    pub(super) damage: Damage,
    pub(super) direction: Direction,
    /// Bytes of that direction that pass before.
    pub(super) after: u64,
}

impl Plan {
    /// One bit of a direction is flipped after so many bytes.
    pub(super) const fn flip(direction: Direction, after: u64) -> Plan {
        Plan {
            damage: Damage::Flip,
            direction,
            after,
        }
    }
}

impl Wire {
    /// A wire to `to`.
    pub(super) fn open(to: SocketAddr, plan: Plan) -> io::Result<Wire> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let wire = Wire {
            address: listener.local_addr()?,
            closing: Arc::default(),
            seen: Arc::default(),
        };
        let (closing, seen) = (Arc::clone(&wire.closing), Arc::clone(&wire.seen));
        std::thread::Builder::new().name("wire".to_owned()).spawn(move || {
            for near in listener.incoming().map_while(Result::ok) {
                if closing.load(Ordering::Acquire) {
                    break;
                }
                // A connection that cannot be made ends, as its own end will see.
                let _ = join(near, to, plan, &seen);
            }
        })?;
        Ok(wire)
    }

    /// A wire to `to` that does no damage.
    pub(crate) fn sound(to: SocketAddr) -> io::Result<Wire> {
        Wire::open(to, Plan::flip(Direction::Down, u64::MAX))
    }

    /// Where it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// True once the damage was done.
    pub(super) fn damaged(&self) -> bool {
        self.seen.damaged.load(Ordering::Acquire)
    }

    /// Fails if fewer bytes crossed it than `payload`, which has arrived: it went another way.
    ///
    /// # Errors
    /// [`CellError::Failed`].
    pub(crate) fn carried(&self, payload: u64) -> Result<(), CellError> {
        let passed = self.seen.passed.load(Ordering::Acquire);
        if passed >= payload {
            return Ok(());
        }
        Err(CellError::failed(format_args!(
            "the client bypasses the server: {payload} bytes arrived, and {passed} crossed the wire between the two"
        )))
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.closing.store(true, Ordering::Release);
        let _ = TcpStream::connect(self.address);
    }
}

/// Copies both ways between a connection and a new one.
fn join(near: TcpStream, to: SocketAddr, plan: Plan, seen: &Arc<Seen>) -> io::Result<()> {
    let far = TcpStream::connect(to)?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    let ends = [
        (Direction::Up, near.try_clone()?, far.try_clone()?),
        (Direction::Down, far, near),
    ];
    for (direction, from, to) in ends {
        let (seen, damages) = (Arc::clone(seen), direction == plan.direction);
        std::thread::Builder::new().name("wire".to_owned()).spawn(move || {
            if copy(&from, &to, plan, &seen, damages).is_err() {
                // Both ends are told by their own connection.
                let _ = from.shutdown(Shutdown::Both);
                let _ = to.shutdown(Shutdown::Both);
            }
        })?;
    }
    Ok(())
}

/// Copies one way to the end.
fn copy(mut from: &TcpStream, mut to: &TcpStream, plan: Plan, seen: &Seen, damages: bool) -> io::Result<()> {
    let mut piece = vec![0; PIECE];
    #[cfg(test)]
    let mut held: Option<Vec<u8>> = None;
    let mut offset = 0;
    loop {
        let n = from.read(&mut piece)?;
        if n == 0 {
            return to.shutdown(Shutdown::Write);
        }
        let here = damages && offset >= plan.after && !seen.damaged.swap(true, Ordering::AcqRel);
        offset += n as u64;
        seen.passed.fetch_add(n as u64, Ordering::AcqRel);
        let piece = &mut piece[..n];
        if here {
            match plan.damage {
                // In the middle: framing stands at the ends as a rule.
                Damage::Flip => piece[n / 2] ^= 0x04,
                #[cfg(test)]
                Damage::Drop => {
                    to.write_all(&piece[..n / 2])?;
                    continue;
                }
                #[cfg(test)]
                Damage::Swap => {
                    held = Some(piece.to_vec());
                    continue;
                }
                #[cfg(test)]
                Damage::Repeat => to.write_all(piece)?,
            }
        }
        to.write_all(piece)?;
        #[cfg(test)]
        if let Some(held) = held.take() {
            to.write_all(&held)?;
        }
    }
}
