//! What comes over the wire in a handshake with the target, by lengths of records.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use sealway_net::sock::Sock;
use sealway_tls::codec::record;
use sealway_tls::reality::flight::{Flight, Look, MAX_FLIGHT};
use tokio::time::{Sleep, sleep};

use super::MAX_RECORDS;
use crate::carrier::{Carrier, Virtual};

/// How long our end of a handshake is held back. What comes until then does not wait for it.
const QUIET: Duration = Duration::from_millis(500);
/// Most records of a connection that are counted, and the longest that can be made, without its header.
const MAX_COUNTED: usize = 64;
const LONGEST: usize = (16 << 10) + 17;
/// A sealed alert, which ends a connection and is not what it goes on with.
const SEALED_ALERT: usize = record::HEAD + 2 + 1 + 16;
/// Where a hello has its random: in the message, and on the wire.
const RANDOM: std::ops::Range<usize> = 6..38;

/// Randoms of the hellos of probes that are on their way, and what to set when one of them comes back.
static PROBES: LazyLock<Mutex<HashMap<Vec<u8>, Arc<AtomicBool>>>> = LazyLock::new(Mutex::default);

/// Whether a hello, the whole message, is that of a probe of this process. Whoever made it is told.
pub(crate) fn is_one(hello: &[u8]) -> bool {
    let probes = PROBES.lock().unwrap_or_else(PoisonError::into_inner);
    let seen = hello.get(RANDOM).and_then(|random| probes.get(random));
    seen.inspect(|seen| seen.store(true, Ordering::Relaxed)).is_some()
}

#[derive(Debug, Default)]
pub(super) struct Heard {
    /// What came before our end of the handshake.
    first: Vec<u8>,
    lengths: Lengths,
    /// How many records had begun by then.
    before: usize,
}

impl Heard {
    fn push(&mut self, bytes: &[u8], answered: bool) {
        self.lengths.push(bytes);
        if !answered {
            let room = MAX_FLIGHT.saturating_sub(self.first.len()).min(bytes.len());
            self.first.extend_from_slice(&bytes[..room]);
            self.before = self.lengths.all.len();
        }
    }

    /// Records behind the flight: those that did not wait for us, and the others. An alert before an end is not what others see.
    pub(super) fn found(&mut self, ended: bool) -> [Vec<usize>; 2] {
        let mut after = self.lengths.all.split_off(self.before.min(self.lengths.all.len()));
        if ended && after.last() == Some(&SEALED_ALERT) {
            after.pop();
        }
        let mut before = match Flight::default().look(&self.first) {
            Look::Whole(shape) => shape.more,
            _ => Vec::new(),
        };
        before.truncate(MAX_RECORDS);
        after.truncate(MAX_RECORDS - before.len());
        [before, after]
    }
}

/// Lengths of records as they come, without what is in them.
#[derive(Debug, Default)]
struct Lengths {
    all: Vec<usize>,
    head: Vec<u8>,
    /// Bytes of a record that are still to come.
    left: usize,
}

impl Lengths {
    fn push(&mut self, mut bytes: &[u8]) {
        while !bytes.is_empty() && self.all.len() < MAX_COUNTED {
            let skip = self.left.min(bytes.len());
            self.left -= skip;
            bytes = &bytes[skip..];
            let take = (record::HEAD - self.head.len()).min(bytes.len());
            if self.left > 0 || take == 0 {
                return;
            }
            self.head.extend_from_slice(&bytes[..take]);
            bytes = &bytes[take..];
            if let [kind, _, _, high, low] = *self.head.as_slice() {
                self.left = usize::from(u16::from_be_bytes([high, low]));
                // Less than this cannot be sealed.
                if kind == record::APPLICATION && (17..=LONGEST).contains(&self.left) {
                    self.all.push(record::HEAD + self.left);
                }
                self.head.clear();
            }
        }
    }
}

enum Stage {
    /// Our hello is to be written.
    Hello,
    /// The target's flight is awaited.
    Flight,
    /// Our end of the handshake is held back.
    Quiet(Pin<Box<Sleep>>),
    Answered,
}

/// A connection to the target that notes what comes over it, and says before our end of the handshake that ciphers change, as
/// often as it is told.
pub(super) struct Tap {
    below: Carrier,
    stage: Stage,
    /// What came and was not read.
    came: Vec<u8>,
    heard: Arc<Mutex<Heard>>,
    changes: Vec<u8>,
    seen: Arc<AtomicBool>,
    random: Vec<u8>,
}

impl Tap {
    /// With so many records that change ciphers, of which the TLS library sends one. `seen` is set when our hello comes back.
    pub(super) fn new(sock: Sock, changes: u32, seen: Arc<AtomicBool>) -> (Self, Arc<Mutex<Heard>>) {
        let heard = Arc::<Mutex<Heard>>::default();
        let tap = Tap {
            below: sock.into(),
            stage: Stage::Hello,
            came: Vec::new(),
            heard: Arc::clone(&heard),
            changes: [20, 3, 3, 0, 1, 1].repeat(changes.saturating_sub(1) as usize),
            seen,
            random: Vec::new(),
        };
        (tap, heard)
    }

    fn note(&self, bytes: &[u8]) {
        let mut heard = self.heard.lock().unwrap_or_else(PoisonError::into_inner);
        heard.push(bytes, matches!(self.stage, Stage::Answered));
    }

    /// Ready when our end of the handshake may be written.
    fn poll_quiet(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let Stage::Quiet(sleep) = &mut self.stage else {
            return Poll::Ready(Ok(()));
        };
        let over = sleep.as_mut().poll(cx);
        let mut piece = [0; 4096];
        while self.came.len() < MAX_FLIGHT {
            match self.below.poll_read(cx, &mut piece) {
                Poll::Ready(Ok(got @ 1..)) => {
                    self.note(&piece[..got]);
                    self.came.extend_from_slice(&piece[..got]);
                }
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                _ => break,
            }
        }
        ready!(over);
        self.stage = Stage::Answered;
        Poll::Ready(Ok(()))
    }
}

impl Drop for Tap {
    fn drop(&mut self) {
        let mut probes = PROBES.lock().unwrap_or_else(PoisonError::into_inner);
        probes.remove(&self.random);
    }
}

impl Virtual for Tap {
    fn poll_read_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.came.is_empty() {
            true => self.below.poll_read_ready(cx),
            false => Poll::Ready(Ok(())),
        }
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        if !self.came.is_empty() {
            let got = self.came.len().min(into.len());
            into[..got].copy_from_slice(&self.came[..got]);
            self.came.drain(..got);
            return Poll::Ready(Ok(got));
        }
        let got = ready!(self.below.poll_read(cx, into))?;
        self.note(&into[..got]);
        if let Stage::Hello = self.stage {
            self.stage = Stage::Flight;
        }
        Poll::Ready(Ok(got))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        match &self.stage {
            Stage::Hello if self.random.is_empty() => {
                let hello = from.get(record::HEAD..).and_then(|message| message.get(RANDOM));
                self.random = hello.unwrap_or_default().to_vec();
                let mut probes = PROBES.lock().unwrap_or_else(PoisonError::into_inner);
                probes.insert(self.random.clone(), Arc::clone(&self.seen));
            }
            Stage::Flight => self.stage = Stage::Quiet(Box::pin(sleep(QUIET))),
            _ => {}
        }
        ready!(self.poll_quiet(cx))?;
        while matches!(self.stage, Stage::Answered) && !self.changes.is_empty() {
            let wrote = ready!(self.below.poll_write(cx, &self.changes))?;
            self.changes.drain(..wrote);
        }
        self.below.poll_write(cx, from)
    }

    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.below.poll_shutdown(cx)
    }

    fn reset_on_close(&mut self) {
        self.below.reset_on_close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_of_records_are_found_wherever_they_are_cut() {
        let mut bytes = Vec::new();
        for len in [250, 17, 100] {
            record::write(&mut bytes, record::APPLICATION, 3, &vec![0; len]);
        }
        record::write(&mut bytes, record::CHANGE_CIPHER_SPEC, 3, &[1]);
        record::write(&mut bytes, record::APPLICATION, 3, &[0; 19]);
        for step in 1..=bytes.len() {
            let mut lengths = Lengths::default();
            bytes.chunks(step).for_each(|piece| lengths.push(piece));
            assert_eq!(lengths.all, [255, 22, 105, 24], "{step}");
        }
        let mut heard = Heard::default();
        heard.push(&bytes, true);
        assert_eq!(
            heard.found(true),
            [vec![], vec![255, 22, 105]],
            "an alert before an end"
        );
        let mut many = Heard::default();
        many.push(&bytes.repeat(100), true);
        assert_eq!(many.found(false)[1].len(), MAX_RECORDS);
        assert_eq!(many.lengths.all.len(), 0);
    }
}
