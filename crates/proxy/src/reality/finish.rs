//! The end of a handshake with a client.
//!
//! Until it is there, the target is still connected, and waits for one as well. Whatever comes instead is answered by it: what
//! it says to what does not belong there, how long it waits, and how it ends.

use std::future::poll_fn;
use std::task::{Context, Poll};
use std::time::Duration;

use sealway_tls::codec::record::{self, Record};
use sealway_tls::reality::flight::MAX_FLIGHT;
use sealway_tls::server::{AwaitFinished, Connected};
use tokio::time::timeout;

use super::mirror::Mirror;
use crate::Error;
use crate::tls::handshake::{Agreed, Established};

/// Most bytes that a client may have sent before its handshake is through: its end of it, and first payload behind that.
const MAX_INPUT: usize = 64 << 10;
/// How long a client may take if its target waits for ever.
const PATIENCE: Duration = Duration::from_secs(3600);

/// What came of it.
pub(super) enum End {
    Established(Box<Established>),
    /// It was no end of this handshake. The target is to be told what came.
    Other(Box<Mirror>, String),
}

/// A flight that is on its way to the client.
pub(super) struct Finishing {
    mirror: Mirror,
    awaiting: AwaitFinished,
    /// What was received and not used, some of it opened.
    input: Vec<u8>,
    out: Vec<u8>,
    written: usize,
    /// Bytes of the target that stand in our flight already.
    shown: usize,
    /// Records that may still be sent to the client behind its flight, and those of them that were.
    room: usize,
    early: usize,
}

impl Finishing {
    /// `flight` is what the client gets in place of the target's, and behind it `room` records at most that carry nothing; of what it has
    /// said, the first `used` bytes are its hello.
    pub(super) fn new(mut mirror: Mirror, used: usize, awaiting: AwaitFinished, flight: Vec<u8>, room: usize) -> Self {
        let came = mirror.answer.len().min(flight.len());
        mirror.answer.drain(..came);
        Finishing {
            awaiting,
            input: mirror.heard.get(used..).unwrap_or_default().to_vec(),
            written: 0,
            shown: flight.len() - came,
            out: flight,
            mirror,
            room,
            early: 0,
        }
    }

    /// Writes the flight, waits for the client's end of the handshake, and sends records of these lengths that carry nothing.
    pub(super) async fn finish(mut self, after: &[usize]) -> Result<End, Error> {
        let finishing = timeout(PATIENCE, poll_fn(|cx| self.poll(cx)));
        let mut connected = match finishing.await.map_err(|_| Error::TimedOut("REALITY handshake"))?? {
            Ok(connected) => connected,
            Err(why) => {
                // What the client has not taken yet comes before what the target says.
                self.mirror.answer.splice(..0, self.out.drain(self.written..));
                return Ok(End::Other(Box::new(self.mirror), why));
            }
        };
        for length in after.iter().skip(self.early) {
            let pushed = connected.records.push_nothing(length - record::HEAD, &mut self.out);
            pushed?;
        }
        poll_fn(|cx| self.poll_write(cx)).await?;
        let name = connected.agreed.server_name.unwrap_or_default();
        Ok(End::Established(Box::new(Established {
            carrier: self.mirror.client.into(),
            records: connected.records,
            received: self.input,
            early: Vec::new(),
            closed: false,
            agreed: Agreed {
                sni: String::from_utf8_lossy(&name).to_ascii_lowercase(),
                alpn: String::new(),
            },
        })))
    }

    /// Ready with the connection, or with why there is none.
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Result<Result<Connected, String>, Error>> {
        if let Poll::Ready(Err(error)) = self.poll_write(cx) {
            return Poll::Ready(Err(error));
        }
        loop {
            let (mut owed, before) = (Vec::new(), self.input.len());
            match self.awaiting.read(&mut self.input, &mut owed) {
                Ok((used, connected)) => {
                    self.input.drain(..used);
                    if let Some(connected) = connected {
                        return Poll::Ready(Ok(Ok(connected)));
                    }
                }
                // The alert is the target's to give.
                Err(error) => return Poll::Ready(Ok(Err(error.to_string()))),
            }
            if before > MAX_INPUT {
                return Poll::Ready(Ok(Err("too much before the end of the handshake".to_owned())));
            }
            match self.mirror.poll_heard(cx)? {
                Poll::Ready(0) => return Poll::Ready(Ok(Err("the client said no more".to_owned()))),
                Poll::Ready(got) => {
                    let at = self.mirror.heard.len() - got;
                    self.input.extend_from_slice(&self.mirror.heard[at..]);
                }
                Poll::Pending => break,
            }
        }
        loop {
            match self.mirror.poll_answer(cx)? {
                Poll::Ready(0) => return Poll::Ready(Ok(Err("the target waited no longer".to_owned()))),
                Poll::Ready(_) => {
                    let shown = self.shown.min(self.mirror.answer.len());
                    self.mirror.answer.drain(..shown);
                    self.shown -= shown;
                    self.imitate();
                    if self.mirror.answer.len() > MAX_FLIGHT {
                        return Poll::Ready(Ok(Err("the target said too much before the client".to_owned())));
                    }
                }
                Poll::Pending => break,
            }
        }
        match self.poll_write(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            _ => Poll::Pending,
        }
    }

    /// Says in its length what the target says by itself and was not foretold, as tickets of a program that was replaced since it was
    /// asked. A client takes it for nothing, and whoever is none sees it when he would see it there. To leave everybody to the target
    /// would lock clients out until it is asked again, and to say it at the end only would show. What is no whole record, or one too
    /// many, waits for that end all the same.
    fn imitate(&mut self) {
        while self.early < self.room
            && let Ok(Some(record)) = Record::first(&self.mirror.answer)
            && record.kind == record::APPLICATION
            && self.awaiting.push_nothing(record.content.len(), &mut self.out).is_ok()
        {
            let len = record.len();
            self.mirror.answer.drain(..len);
            self.early += 1;
        }
    }

    /// Ready when everything is written: as the target has written its own, if it took several turns.
    fn poll_write(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        while self.written < self.out.len() {
            let cut = self.mirror.cuts.iter().copied().find(|cut| *cut > self.written);
            let end = cut.unwrap_or(usize::MAX).min(self.out.len());
            match self.mirror.client.poll_write(cx, &self.out[self.written..end])? {
                Poll::Ready(wrote) => {
                    self.mirror.traffic.sent(wrote);
                    self.written += wrote;
                }
                Poll::Pending => return Poll::Pending,
            }
        }
        (self.out, self.written) = (Vec::new(), 0);
        self.mirror.cuts.clear();
        Poll::Ready(Ok(()))
    }
}
