//! What goes both ways on one stream.

use std::io;
use std::task::{Context, Poll, Waker, ready};

use bytes::{Buf, Bytes};
use h2::client::ResponseFuture;
use h2::server::SendResponse;
use h2::{Reason, RecvStream, SendStream};
use http::{HeaderMap, Response};

use super::tally::Lease;
use super::{PIECE, io_error};
use crate::carrier::Virtual;

/// Looks at the head of a response. An error ends the stream.
pub(crate) type Head = Box<dyn FnOnce(&Response<()>) -> io::Result<()> + Send>;

/// Looks at what stands behind the body.
pub(crate) type Trailers = fn(&HeaderMap) -> io::Result<()>;

/// What is received.
enum From {
    /// The head of the response has not come.
    Asked(ResponseFuture, Option<Head>),
    Open(RecvStream),
    /// Its end has been read. What was received last may still count against the window.
    Done(RecvStream),
    /// It broke; every later look gives the same failure.
    Failed(io::ErrorKind, String),
}

/// What is sent.
enum To {
    /// The head of the response has not been sent.
    Held(SendResponse<Bytes>, Response<()>),
    Open(SendStream<Bytes>),
    /// The server has answered and does not want the rest, which is thrown away.
    Unwanted,
    /// Its end has been sent.
    Done,
}

/// One stream: a carrier of raw bytes. Dropped, it sends its end.
pub(crate) struct Body {
    from: From,
    to: To,
    /// What has been received and not taken. Its bytes count against the window.
    chunk: Bytes,
    /// What is sent behind the last bytes. `None`: the last DATA frame says that it is the last.
    trailers: Option<HeaderMap>,
    /// What the trailers that are received must be.
    check: Option<Trailers>,
    reset: bool,
    /// We are the client.
    asks: bool,
    lease: Lease,
}

fn broken() -> io::Error {
    io::ErrorKind::ConnectionReset.into()
}

impl Body {
    /// The server's side.
    pub(super) fn answer(
        from: RecvStream,
        to: SendResponse<Bytes>,
        head: Response<()>,
        trailers: Option<HeaderMap>,
        lease: Lease,
    ) -> Self {
        Body {
            from: From::Open(from),
            to: To::Held(to, head),
            chunk: Bytes::new(),
            trailers,
            check: None,
            reset: false,
            asks: false,
            lease,
        }
    }

    /// The client's side.
    pub(super) fn ask(
        from: ResponseFuture,
        to: SendStream<Bytes>,
        head: Head,
        check: Option<Trailers>,
        lease: Lease,
    ) -> Self {
        Body {
            from: From::Asked(from, Some(head)),
            to: To::Open(to),
            chunk: Bytes::new(),
            trailers: None,
            check,
            reset: false,
            asks: true,
            lease,
        }
    }

    /// What has arrived and not been taken: waits until there is something. Empty: the end. A failure stays.
    pub(crate) fn poll_chunk(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<&[u8]>> {
        match ready!(self.poll_more(cx)) {
            Ok(()) => Poll::Ready(Ok(&self.chunk)),
            Err(error) => Poll::Ready(Err(self.fail(error))),
        }
    }

    /// Makes every later look at what is received give this failure.
    pub(crate) fn fail(&mut self, error: io::Error) -> io::Error {
        if !matches!(self.from, From::Failed(..)) {
            self.from = From::Failed(error.kind(), error.to_string());
            self.chunk = Bytes::new();
        }
        error
    }

    /// Whether we are the server, and have said the end of the answer.
    pub(crate) fn is_answered(&self) -> bool {
        !self.asks && matches!(self.to, To::Done)
    }

    fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let answered = self.is_answered();
        while self.chunk.is_empty() {
            match &mut self.from {
                From::Asked(future, head) => {
                    let response = ready!(std::pin::Pin::new(future).poll(cx)).map_err(io_error)?;
                    let (parts, body) = response.into_parts();
                    if let Some(head) = head.take() {
                        head(&Response::from_parts(parts, ()))?;
                    }
                    self.from = From::Open(body);
                }
                From::Open(body) => match ready!(body.poll_data(cx)) {
                    Some(Ok(chunk)) => self.chunk = chunk,
                    // Many clients take the exchange for over once it is answered, and take back what they have not sent.
                    Some(Err(error)) if answered && error.is_reset() => self.finish(),
                    Some(Err(error)) => return Poll::Ready(Err(io_error(error))),
                    None => {
                        if let Some(check) = self.check
                            && let Some(trailers) = ready!(body.poll_trailers(cx)).map_err(io_error)?
                        {
                            check(&trailers)?;
                        }
                        self.finish();
                    }
                },
                From::Done(_) => break,
                From::Failed(kind, what) => return Poll::Ready(Err(io::Error::new(*kind, what.clone()))),
            }
        }
        Poll::Ready(Ok(()))
    }

    /// All has been received that there will be.
    fn finish(&mut self) {
        if let From::Open(body) = std::mem::replace(&mut self.from, From::Failed(broken().kind(), String::new())) {
            self.from = From::Done(body);
        }
    }

    /// What is there already of what [`Body::poll_chunk`] waits for.
    pub(crate) fn chunk(&self) -> &[u8] {
        &self.chunk
    }

    /// Takes `n` bytes of the chunk away. Their place in the window is free once [`Body::release`] has been told of them.
    pub(crate) fn consume(&mut self, n: usize) {
        self.chunk.advance(n.min(self.chunk.len()));
    }

    /// Lets the peer send as many bytes as were consumed.
    pub(crate) fn release(&mut self, n: usize) {
        if let From::Open(body) | From::Done(body) = &mut self.from
            && n > 0
        {
            // It fails where the stream has ended: nobody needs the window then.
            let _ = body.flow_control().release_capacity(n);
        }
    }

    /// Sends the head of the response if that has not been done.
    pub(crate) fn begin(&mut self) -> io::Result<()> {
        let To::Held(respond, head) = &mut self.to else {
            return Ok(());
        };
        let head = std::mem::take(head);
        let to = respond.send_response(head, false).map_err(io_error)?;
        self.to = To::Open(to);
        Ok(())
    }

    /// Waits until the peer, and our own queue, take some of `want` bytes. Returns how many.
    pub(crate) fn poll_room(&mut self, cx: &mut Context<'_>, want: usize) -> Poll<io::Result<usize>> {
        self.begin()?;
        let want = want.clamp(1, PIECE);
        let to = match &mut self.to {
            To::Open(to) => to,
            To::Unwanted => return Poll::Ready(Ok(want)),
            _ => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
        };
        let room = to.capacity();
        if room >= want {
            return Poll::Ready(Ok(want));
        }
        to.reserve_capacity(want);
        loop {
            let room = to.capacity();
            if room > 0 {
                return Poll::Ready(Ok(room.min(want)));
            }
            match ready!(to.poll_capacity(cx)) {
                Some(Ok(_)) => {}
                Some(Err(error)) => return Poll::Ready(Err(io_error(error))),
                None if self.is_unwanted() => return Poll::Ready(Ok(want)),
                None => return Poll::Ready(Err(broken())),
            }
        }
    }

    /// Whether the server has taken the stream back without an error: the answer is whole, and the rest of what we send is not
    /// wanted (RFC 9113, 8.1).
    fn is_unwanted(&mut self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        let unwanted = match &mut self.to {
            To::Open(to) if self.asks => matches!(to.poll_reset(&mut cx), Poll::Ready(Ok(Reason::NO_ERROR))),
            To::Unwanted => true,
            _ => false,
        };
        if unwanted {
            self.to = To::Unwanted;
        }
        unwanted
    }

    /// Sends bytes for which there is room.
    pub(crate) fn send(&mut self, bytes: Bytes) -> io::Result<()> {
        let sent = match &mut self.to {
            To::Open(to) => to.send_data(bytes, false).map_err(io_error),
            To::Unwanted => Ok(()),
            _ => Err(io::ErrorKind::BrokenPipe.into()),
        };
        match sent {
            // It was taken back between the look for room and now.
            Err(_) if self.is_unwanted() => Ok(()),
            sent => sent,
        }
    }

    /// Sends the end of what we send.
    fn end(&mut self) -> io::Result<()> {
        self.begin()?;
        if self.is_unwanted() {
            self.to = To::Done;
        }
        let To::Open(mut to) = std::mem::replace(&mut self.to, To::Done) else {
            return Ok(());
        };
        let ended = match self.trailers.take() {
            Some(trailers) => to.send_trailers(trailers),
            None => to.send_data(Bytes::new(), true),
        };
        ended.map_err(io_error)
    }

    /// What the stream may hold is counted by the caller: it takes no place of a stranger.
    pub(crate) fn excuse(&mut self) {
        self.lease.excuse();
    }

    /// The head of the response, while it has not been sent.
    pub(crate) fn head_mut(&mut self) -> Option<&mut Response<()>> {
        match &mut self.to {
            To::Held(_, head) => Some(head),
            _ => None,
        }
    }

    /// Ready when the peer has taken the stream back, or the connection broke. `None`: nobody can tell any more.
    pub(crate) fn poll_taken_back(&mut self, cx: &mut Context<'_>) -> Poll<Option<io::Error>> {
        let reset = match &mut self.to {
            To::Held(to, _) => ready!(to.poll_reset(cx)),
            To::Open(to) => ready!(to.poll_reset(cx)),
            To::Unwanted | To::Done => return Poll::Ready(None),
        };
        Poll::Ready(Some(reset.map_or_else(io_error, |_| broken())))
    }

    /// Whether the peer has taken the stream back.
    fn is_taken_back(&mut self) -> bool {
        let mut cx = Context::from_waker(Waker::noop());
        let reset = match &mut self.to {
            To::Held(to, _) => to.poll_reset(&mut cx),
            To::Open(to) => to.poll_reset(&mut cx),
            To::Unwanted | To::Done => return false,
        };
        matches!(reset, Poll::Ready(Ok(_)))
    }

    fn reset(&mut self, reason: Reason) {
        match &mut self.to {
            To::Held(to, _) => to.send_reset(reason),
            To::Open(to) => to.send_reset(reason),
            To::Unwanted | To::Done => {}
        }
    }
}

impl Virtual for Body {
    fn poll_read_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_chunk(cx).map_ok(|_| ())
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        let mut read = 0;
        while read < into.len() {
            let chunk = match self.poll_chunk(cx) {
                Poll::Ready(Ok(chunk)) => chunk,
                Poll::Ready(Err(error)) if read == 0 => return Poll::Ready(Err(error)),
                Poll::Pending if read == 0 => return Poll::Pending,
                // The next call meets it again.
                _ => break,
            };
            let n = chunk.len().min(into.len() - read);
            into[read..read + n].copy_from_slice(&chunk[..n]);
            if n == 0 {
                break;
            }
            self.consume(n);
            read += n;
        }
        self.release(read);
        Poll::Ready(Ok(read))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        let n = ready!(self.poll_room(cx, from.len()))?.min(from.len());
        self.send(Bytes::copy_from_slice(&from[..n]))?;
        Poll::Ready(Ok(n))
    }

    fn poll_shutdown(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.end())
    }

    fn reset_on_close(&mut self) {
        self.reset = true;
    }

    fn trust(&mut self) {
        self.lease.trust();
    }
}

impl Drop for Body {
    fn drop(&mut self) {
        if self.lease.is_known() && !self.lease.is_trusted() && self.is_taken_back() {
            self.lease.strike();
        }
        match self.reset {
            true => self.reset(Reason::CANCEL),
            // If the stream is broken already, there is nothing left to say.
            false => drop(self.end()),
        }
    }
}
