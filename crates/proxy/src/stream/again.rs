//! A stream over a connection that was made ahead of its use, and another that takes its place if the server ended it meanwhile.
//!
//! Whoever sends a request on a connection that has waited cannot know whether its end is on the way already. If it ends before the
//! server has answered anything, the same is said once more, on a connection that is made for it.

use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::time::Instant;

use super::Stream;
use crate::error::{Error, Pending};

/// Most payload that is kept to be said again. Whoever has said more is not helped.
pub(crate) const MAX_SAID: usize = 16 << 10;
/// How soon an end comes that was on the way. A later one has other reasons, and what was asked may have been done.
const SOON: Duration = Duration::from_secs(5);

/// What takes the place of a stream.
pub(super) struct Again {
    dial: Pending<'static, Stream>,
    /// Payload that was sent.
    said: Vec<u8>,
    since: Instant,
    /// It is needed.
    lost: bool,
}

impl Stream {
    /// If this stream ends soon and without any answer, what `dial` makes takes its place, which is to begin with the same header.
    pub(crate) fn set_again(&mut self, dial: Pending<'static, Stream>) {
        self.again = Some(Box::new(Again {
            dial,
            said: Vec::new(),
            since: Instant::now(),
            lost: false,
        }));
    }

    /// Keeps payload that is sent.
    pub(super) fn keep(&mut self, payload: &[u8]) {
        self.again.take_if(|again| again.said.len() + payload.len() > MAX_SAID);
        if let Some(again) = &mut self.again {
            again.said.extend_from_slice(payload);
        }
    }

    /// The connection has ended.
    pub(super) fn lose(&mut self) {
        self.again.take_if(|again| again.since.elapsed() > SOON);
        if let Some(again) = &mut self.again {
            again.lost = true;
        }
    }

    /// True if another stream is to take its place.
    pub(crate) fn is_lost(&self) -> bool {
        self.again.as_ref().is_some_and(|again| again.lost)
    }

    /// Puts the other stream in its place, with all that was said.
    pub(crate) fn poll_again(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Error>> {
        if let Some(again) = &mut self.again {
            let mut stream = ready!(again.dial.as_mut().poll(cx))?;
            let said = std::mem::take(&mut again.said);
            match said.is_empty() {
                true => stream.seal_prefix()?,
                false => stream.seal(&said)?,
            }
            tracing::debug!("a connection that was kept ready had ended: another takes its place");
            // It goes on to be counted as it was.
            stream.open = self.open.take();
            *self = stream;
        }
        Poll::Ready(Ok(()))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::task::Waker;

    use sealway_net::sock::Sock;
    use tokio::net::UnixStream;

    use super::*;
    use crate::meters::OutMeter;
    use crate::stats::Traffic;

    /// A stream that another takes the place of, and the peers of both.
    fn kept_ready() -> (Stream, [UnixStream; 2]) {
        let stream = |unix| Stream::new(Sock::Unix(unix), Traffic::default());
        let [(one, peer), (other, next)] = [(); 2].map(|()| UnixStream::pair().unwrap());
        let (mut kept, other) = (stream(one), stream(other));
        kept.set_again(Box::pin(async { Ok(other) }));
        (kept, [peer, next])
    }

    #[tokio::test]
    async fn a_stream_that_another_takes_the_place_of_stays_open() {
        let meter = Arc::new(OutMeter::default());
        let (mut stream, _peers) = kept_ready();
        stream.count(meter.reached(Duration::ZERO));
        stream.seal(b"request").unwrap();
        stream.lose();
        let again = stream.poll_again(&mut Context::from_waker(Waker::noop()));
        assert!(matches!(again, Poll::Ready(Ok(()))));
        assert_eq!(meter.now_open(), 1);
        drop(stream);
        assert_eq!(meter.now_open(), 0);
    }

    /// The server may end it for no other reason than that it has heard everything.
    #[tokio::test]
    async fn a_message_that_was_said_to_its_end_is_not_said_again() {
        let (mut stream, _peers) = kept_ready();
        stream.seal(b"message").unwrap();
        stream.seal_end().unwrap();
        stream.lose();
        assert!(!stream.is_lost());
    }
}
