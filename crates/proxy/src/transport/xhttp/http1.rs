//! A connection of HTTP/1.1, on either side: bodies that come in, and a body that goes out.

use std::future::poll_fn;
use std::io::{self, IoSlice};
use std::task::{Context, Poll, ready};

use sealway_v2ray::http::body::Body;
use sealway_v2ray::http::head::parse_response;
use sealway_v2ray::{Protocol, Step};

use crate::Error;
use crate::stream::Stream;

/// Longest head of a response, bytes.
const MAX_RESPONSE_HEAD: usize = 16 << 10;
/// Most bytes of a body that are sealed at once.
const MAX_PIECE: usize = 128 << 10;
/// Answers that a client has not read, bytes, up to which it is read on.
const MAX_ANSWERS: usize = 64 << 10;

/// What comes in.
enum From {
    /// The head of a response to a request of this method.
    Head(&'static str),
    Body(Body),
}

/// How what goes out ends.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum To {
    /// With an empty chunk.
    Chunks,
    /// With the connection.
    Close,
    /// It has ended.
    Done,
}

/// A connection of HTTP/1.1.
pub(super) struct Http1 {
    pub(super) stream: Stream,
    from: From,
    to: To,
    /// The server will close the connection behind its answer.
    last: bool,
    /// Bytes of a write that have been sealed and are not all written.
    taken: usize,
}

fn io_error(error: impl Into<Error>) -> io::Error {
    match error.into() {
        Error::Io(error) => error,
        other => io::Error::new(io::ErrorKind::InvalidData, other),
    }
}

impl Http1 {
    /// The server's side, with the body of a request.
    pub(super) fn server(stream: Stream) -> Self {
        Http1 {
            stream,
            from: From::Body(Body::EMPTY),
            to: To::Done,
            last: false,
            taken: 0,
        }
    }

    /// The client's side, after a request of this method, whose body goes out as `to` says.
    pub(super) fn client(stream: Stream, method: &'static str, to: To) -> Self {
        Http1 {
            stream,
            from: From::Head(method),
            to,
            last: false,
            taken: 0,
        }
    }

    /// A request of this method, and a body of known length, is sent by the caller.
    pub(super) fn ask(&mut self, method: &'static str) {
        self.from = From::Head(method);
    }

    /// Whether another request may follow the one that is through.
    pub(super) fn is_reusable(&self) -> bool {
        self.is_over() && !self.last && !self.stream.has_ended() && self.stream.payload().is_empty()
    }

    /// The body of the request that is next.
    pub(super) fn expect(&mut self, body: Body) {
        self.from = From::Body(body);
    }

    /// From here on the body of an answer goes out.
    pub(super) fn begin(&mut self, to: To) {
        self.to = to;
    }

    /// Whether all of what comes in has come.
    pub(super) fn is_over(&self) -> bool {
        matches!(&self.from, From::Body(body) if body.is_over())
    }

    /// Appends an answer. It is written as far as the client takes it; one that takes nothing has to be waited for.
    pub(super) async fn answer(&mut self, head: &[u8]) -> Result<(), Error> {
        self.stream.seal(head)?;
        poll_fn(|cx| match self.stream.poll_flush(cx) {
            Poll::Pending if self.stream.collected() < MAX_ANSWERS => Poll::Ready(Ok(())),
            polled => polled,
        })
        .await
    }

    /// Takes a piece of what comes in, of at most `most` bytes. `None`: the end.
    pub(super) fn poll_take<T>(
        &mut self,
        cx: &mut Context<'_>,
        most: usize,
        take: impl FnOnce(&[u8]) -> T,
    ) -> Poll<io::Result<Option<T>>> {
        loop {
            let payload = self.stream.payload();
            if !payload.is_empty() {
                match &mut self.from {
                    From::Head(method) => {
                        match parse_response(payload, MAX_RESPONSE_HEAD, Protocol::Xhttp).map_err(io_error)? {
                            Step::Done { value, used } => {
                                self.last = value.minor == 0 || value.headers.has_word("connection", "close");
                                match value.status {
                                    100..=199 => {}
                                    200 => self.from = From::Body(Body::of_response(&value, method).map_err(io_error)?),
                                    code => {
                                        let protocol = Protocol::Xhttp;
                                        let refused = sealway_v2ray::Error::Refused { protocol, code };
                                        return Poll::Ready(Err(io_error(refused)));
                                    }
                                }
                                self.stream.consume(used);
                                continue;
                            }
                            Step::More(_) if self.stream.has_ended() => {
                                return Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into()));
                            }
                            Step::More(_) => {}
                        }
                    }
                    From::Body(body) if body.is_over() => return Poll::Ready(Ok(None)),
                    From::Body(body) => {
                        let window = &payload[..payload.len().min(most)];
                        let (used, piece) = body.next(window).map_err(io_error)?;
                        if piece.is_empty() {
                            self.stream.consume(used);
                            continue;
                        }
                        let taken = take(&window[piece]);
                        self.stream.consume(used);
                        return Poll::Ready(Ok(Some(taken)));
                    }
                }
            } else if self.is_over() {
                return Poll::Ready(Ok(None));
            }
            ready!(self.poll_more(cx))?;
            if self.stream.is_ended() {
                return match &self.from {
                    From::Body(body) if body.is_until_close() => Poll::Ready(Ok(None)),
                    _ => Poll::Ready(Err(io::ErrorKind::UnexpectedEof.into())),
                };
            }
        }
    }

    /// Waits for more bytes than there are, or for their end.
    fn poll_more(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let had = self.stream.payload().len();
        loop {
            self.stream.open().map_err(io_error)?;
            if self.stream.payload().len() > had || self.stream.has_ended() {
                return Poll::Ready(Ok(()));
            }
            ready!(self.stream.poll_fill(cx)).map_err(io_error)?;
        }
    }

    /// Ready with an error when the other end has gone, while nothing is expected from it.
    pub(super) fn poll_gone(&mut self, cx: &mut Context<'_>) -> Poll<io::Error> {
        // What it says behind its request is not read before this one is through.
        if !self.stream.payload().is_empty() {
            return Poll::Pending;
        }
        match self.poll_more(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(error),
            Poll::Ready(Ok(())) if self.stream.is_ended() => Poll::Ready(io::ErrorKind::ConnectionReset.into()),
            _ => Poll::Pending,
        }
    }

    /// Sends some of a body, all of it written once this is ready. Until then it has to be called with the same bytes.
    pub(super) fn poll_write(&mut self, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        if self.taken == 0 {
            let piece = &from[..from.len().min(MAX_PIECE)];
            let head = format!("{:x}\r\n", piece.len());
            let chunk = [
                IoSlice::new(head.as_bytes()),
                IoSlice::new(piece),
                IoSlice::new(b"\r\n"),
            ];
            let sealed = match self.to {
                To::Chunks => self.stream.seal_parts(&chunk, usize::MAX),
                To::Close => self.stream.seal_parts(&chunk[1..2], usize::MAX),
                To::Done => return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into())),
            };
            sealed.map_err(io_error)?;
            self.taken = piece.len();
        }
        ready!(self.stream.poll_flush(cx)).map_err(io_error)?;
        Poll::Ready(Ok(std::mem::take(&mut self.taken).min(from.len())))
    }

    /// Writes what has been sealed.
    pub(super) fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.stream.poll_flush(cx).map_err(io_error)
    }

    /// Ends what goes out.
    pub(super) fn poll_end(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let to = std::mem::replace(&mut self.to, To::Done);
        match to {
            To::Chunks => self.stream.seal(b"0\r\n\r\n").map_err(io_error)?,
            To::Close => self.stream.seal_close().map_err(io_error)?,
            To::Done => {}
        }
        ready!(self.stream.poll_flush(cx)).map_err(io_error)?;
        match to {
            To::Close => self.stream.carrier.poll_shutdown(cx),
            _ => Poll::Ready(Ok(())),
        }
    }
}

#[cfg(test)]
mod tests;
