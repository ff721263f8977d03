//! Messages from one side to the other, both ways.

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use sealway_bip324::message::v1::PAYLOAD_MAX;
use sealway_bip324::message::{Message, MessageTypes};
use sealway_bip324_tokio::{Sender, TransportError};
use tokio::net::tcp::OwnedWriteHalf;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout, timeout_at};

use crate::dial::NODE;
use crate::stats::{Stats, add};
use crate::wire::{Reader, Side, Writer};
use crate::{Error, Settings};

/// What errors call the side that connected to us.
pub(crate) const CLIENT: &str = "the client";

/// How long good messages are still written after what follows them has turned out to be wrong.
const LAST_WRITE: Duration = Duration::from_secs(5);

/// When a message was last carried, either way.
struct LastMessage {
    began: Instant,
    /// Nanoseconds since then.
    after: AtomicU64,
}

impl LastMessage {
    fn new() -> Self {
        LastMessage {
            began: Instant::now(),
            after: AtomicU64::new(0),
        }
    }

    fn is_now(&self) {
        let after = u64::try_from(self.began.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.after.fetch_max(after, Ordering::Relaxed);
    }

    fn at(&self) -> Instant {
        later(self.began, Duration::from_nanos(self.after.load(Ordering::Relaxed)))
    }
}

/// A time after another; years after it for a duration that no clock can hold.
fn later(from: Instant, after: Duration) -> Instant {
    const LONG: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);
    from.checked_add(after).unwrap_or_else(|| from + LONG)
}

/// Where messages of one direction are counted.
struct Way {
    settings: Arc<Settings>,
    stats: Arc<Stats>,
    last: Arc<LastMessage>,
    outward: bool,
}

impl Way {
    /// What went wrong while reading.
    fn reading(&self, source: TransportError) -> Error {
        let with = if self.outward { CLIENT } else { NODE };
        Error::Transport { with, source }
    }

    /// What went wrong while writing.
    fn writing(&self, source: TransportError) -> Error {
        let with = if self.outward { NODE } else { CLIENT };
        Error::Transport { with, source }
    }

    fn carried(&self, payload: usize) {
        let (messages, bytes) = if self.outward {
            (&self.stats.messages_out, &self.stats.bytes_out)
        } else {
            (&self.stats.messages_in, &self.stats.bytes_in)
        };
        add(messages, 1);
        add(bytes, payload as u64);
        self.last.is_now();
    }
}

/// The two ends of a direction, and how much of what goes on within them has been counted.
struct Ends {
    from: Reader,
    to: Writer,
    /// Cover could not be written: whom it was for is gone.
    gone: bool,
    stats: Arc<Stats>,
    dropped: u64,
    decoys: u64,
}

impl Ends {
    fn new(from: Reader, to: Writer, stats: &Arc<Stats>) -> Self {
        Ends {
            from,
            to,
            gone: false,
            stats: Arc::clone(stats),
            dropped: 0,
            decoys: 0,
        }
    }

    /// Counts what has happened since the last time.
    fn count(&mut self) {
        let (dropped, decoys) = (self.from.dropped(), self.to.decoys());
        add(&self.stats.dropped, dropped - self.dropped);
        add(&self.stats.decoys, decoys - self.decoys);
        (self.dropped, self.decoys) = (dropped, decoys);
    }
}

impl Drop for Ends {
    fn drop(&mut self) {
        self.count();
    }
}

/// Carries until both directions have ended, something is wrong, or time is up. Dropped, it closes both sides.
pub(crate) async fn carry(client: Side, node: Side, settings: &Arc<Settings>, stats: &Arc<Stats>) -> Result<(), Error> {
    let last = Arc::new(LastMessage::new());
    let way = |outward| Way {
        settings: Arc::clone(settings),
        stats: Arc::clone(stats),
        last: Arc::clone(&last),
        outward,
    };
    // A task a direction; both end with this set.
    let mut ways = JoinSet::new();
    ways.spawn(one_way(Ends::new(client.reader, node.writer, stats), way(true)));
    ways.spawn(one_way(Ends::new(node.reader, client.writer, stats), way(false)));
    // Once one direction has ended the other has a time that no message prolongs.
    let mut half_closed = None;
    loop {
        let end = half_closed.unwrap_or_else(|| later(last.at(), settings.idle));
        match timeout_at(end, ways.join_next()).await {
            Ok(None) => return Ok(()),
            Ok(Some(Ok(ended))) => {
                ended?;
                half_closed = Some(later(Instant::now(), settings.half_closed));
            }
            Ok(Some(Err(failed))) => match failed.try_into_panic() {
                Ok(panic) => std::panic::resume_unwind(panic),
                Err(_) => return Ok(()),
            },
            Err(_) if half_closed.is_some() => {
                return Err(Error::Time {
                    what: "the end of the other direction",
                    limit: settings.half_closed,
                });
            }
            Err(_) if later(last.at(), settings.idle) <= Instant::now() => {
                return Err(Error::Idle { after: settings.idle });
            }
            // Something was carried meanwhile.
            Err(_) => {}
        }
    }
}

async fn one_way(mut ends: Ends, way: Way) -> Result<(), Error> {
    let carried = every_message(&mut ends, &way).await;
    if carried.is_err() {
        // Good messages may have come together with what is wrong: they were taken, so they leave. A writer that has
        // failed says so at once.
        let _ = timeout(LAST_WRITE, ends.to.flush()).await;
    }
    carried
}

async fn every_message(ends: &mut Ends, way: &Way) -> Result<(), Error> {
    let reading = |error| way.reading(error);
    let writing = |error| way.writing(error);
    loop {
        // Messages that came together leave together.
        if !ends.from.has_message().map_err(reading)? {
            ends.to.flush().await.map_err(writing)?;
        }
        ends.count();
        let carried = match (&mut ends.from, &mut ends.to) {
            (Reader::V1(from), Writer::V1(to)) => match from.recv().await.map_err(reading)? {
                Some(message) => {
                    to.feed(&message).await.map_err(writing)?;
                    Some(message.payload.len())
                }
                None => break,
            },
            (Reader::V1(from), Writer::V2(to)) => match covered(from.recv(), to, &mut ends.gone, way).await? {
                Some(message) => {
                    let mut head = [0; 13];
                    let head = type_of(&message, &way.settings.types, &mut head);
                    to.feed_parts(&[head, message.payload]).await.map_err(writing)?;
                    Some(message.payload.len())
                }
                None => break,
            },
            (Reader::V2(from), Writer::V1(to)) => match from.recv().await.map_err(reading)? {
                Some(contents) => match readable(contents, &way.settings.types)? {
                    Some(message) => {
                        to.feed(&message).await.map_err(writing)?;
                        Some(message.payload.len())
                    }
                    None => None,
                },
                None => break,
            },
            // Whatever it means, it means the same there.
            (Reader::V2(from), Writer::V2(to)) => match covered(from.recv(), to, &mut ends.gone, way).await? {
                Some(contents) => {
                    to.feed(contents).await.map_err(writing)?;
                    Some(contents.len())
                }
                None => break,
            },
        };
        match carried {
            Some(payload) => way.carried(payload),
            None => add(&way.stats.dropped, 1),
        }
    }
    if ends.gone {
        // All that came was carried, and there is nobody to tell of the end.
        return Ok(());
    }
    ends.to.shutdown().await.map_err(writing)
}

/// Waits for a message, with decoys to the other side meanwhile if the settings say so.
///
/// A side that takes no more decoys may have closed in good order, and what it said before may still be on its way: that is
/// an error only once there is a message for it.
async fn covered<T>(
    recv: impl Future<Output = Result<Option<T>, TransportError>>,
    to: &mut Sender<OwnedWriteHalf>,
    gone: &mut bool,
    way: &Way,
) -> Result<Option<T>, Error> {
    let reading = |error| way.reading(error);
    let Some(mean) = way.settings.decoys.and_then(|decoys| decoys.cover) else {
        return recv.await.map_err(reading);
    };
    let mut recv = pin!(recv);
    let failed = tokio::select! {
        biased;
        came = recv.as_mut() => return came.map_err(reading),
        Err(error) = to.cover(mean) => error,
    };
    *gone = true;
    match recv.await.map_err(reading)? {
        Some(_) => Err(way.writing(failed)),
        None => Ok(None),
    }
}

/// The start of contents: the short id, or the long type.
fn type_of<'a>(message: &Message<'_>, types: &MessageTypes, head: &'a mut [u8; 13]) -> &'a [u8] {
    match types.id(message.command) {
        Some(id) => {
            head[0] = id;
            &head[..1]
        }
        None => {
            head[1..].copy_from_slice(message.command.as_bytes());
            head
        }
    }
}

/// A v2 message as v1 can say it. `None` for one that is to be dropped: without a type, or with one that v1 does not allow.
fn readable<'a>(contents: &'a [u8], types: &MessageTypes) -> Result<Option<Message<'a>>, Error> {
    let Ok(message) = Message::decode(types, contents) else {
        return Ok(None);
    };
    // v2 allows this byte in a type, v1 does not.
    if message.command.as_bytes().contains(&0x7f) {
        return Ok(None);
    }
    if message.payload.len() > PAYLOAD_MAX as usize {
        // Its type is short enough to let more payload through than v1 takes.
        let what = "a v2 message is longer than a v1 message may be";
        return Err(Error::Message { what });
    }
    Ok(Some(message))
}
