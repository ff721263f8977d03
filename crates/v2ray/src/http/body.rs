//! Where a message ends (RFC 9112 sections 6 and 7). The bytes themselves pass unchanged.

use std::ops::Range;

use super::head::{Headers, RequestHead, ResponseHead};
use crate::{Error, Protocol};

/// Longest line between chunks: a size with extensions, or a trailer.
const MAX_LINE: usize = 8 * 1024;
/// Most bytes of trailers.
const MAX_TRAILERS: usize = 16 * 1024;

/// Follows a body to its end.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Body(State);

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
enum State {
    /// This many bytes are left.
    Length(u64),
    /// Until the connection ends.
    UntilClose,
    /// Within the line of a chunk's size; `seen` bytes of it, `digits` of the number.
    Size {
        size: u64,
        digits: u8,
        seen: usize,
        extension: bool,
        cr: bool,
    },
    /// Within a chunk.
    Data(u64),
    /// The CR LF behind a chunk: how many of the two have come.
    DataEnd(u8),
    /// Within the trailers: bytes of this line, of all, and whether the last byte was CR.
    Trailer { line: usize, all: usize, cr: bool },
}

const SIZE: State = State::Size {
    size: 0,
    digits: 0,
    seen: 0,
    extension: false,
    cr: false,
};

fn wrong(problem: &'static str) -> Error {
    Protocol::Http.malformed(problem)
}

impl Body {
    /// A body without bytes.
    pub const EMPTY: Body = Body(State::Length(0));

    /// The body of a request.
    ///
    /// # Errors
    /// [`Error::Malformed`] for lengths that contradict each other or a coding we do not know: answer 400.
    pub fn of_request(head: &RequestHead<'_>) -> Result<Self, Error> {
        Ok(Body(of_headers(&head.headers, head.minor)?.unwrap_or(State::Length(0))))
    }

    /// The body of a response to a request with this method.
    ///
    /// # Errors
    /// As [`Body::of_request`].
    pub fn of_response(head: &ResponseHead<'_>, method: &str) -> Result<Self, Error> {
        let state = of_headers(&head.headers, head.minor)?;
        let none = method == "HEAD" || matches!(head.status, 100..=199 | 204 | 304);
        Ok(Body(if none {
            State::Length(0)
        } else {
            state.unwrap_or(State::UntilClose)
        }))
    }

    /// Whether it has ended.
    pub fn is_over(&self) -> bool {
        self.0 == State::Length(0)
    }

    /// Whether it lasts until the connection ends.
    pub fn is_until_close(&self) -> bool {
        self.0 == State::UntilClose
    }

    /// Whether it comes in chunks.
    pub fn is_chunked(&self) -> bool {
        !matches!(self.0, State::Length(_) | State::UntilClose)
    }

    /// The next piece of what is carried: how many bytes have been looked at, and where among them it stands. All bytes have
    /// been looked at, or the body is over, if the piece is empty.
    ///
    /// # Errors
    /// As [`Body::advance`].
    pub fn next(&mut self, bytes: &[u8]) -> Result<(usize, Range<usize>), Error> {
        let mut at = 0;
        while at < bytes.len() && !self.is_over() {
            let carries = matches!(self.0, State::Length(_) | State::UntilClose | State::Data(_));
            let until = if carries { bytes.len() } else { at + 1 };
            let used = self.step(&bytes[at..until])?;
            if carries {
                return Ok((at + used, at..at + used));
            }
            at += used;
        }
        Ok((at, at..at))
    }

    /// How many of the bytes that have come belong to the body.
    ///
    /// # Errors
    /// [`Error::Malformed`] and [`Error::TooLong`] for wrong chunks.
    pub fn advance(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        let mut at = 0;
        while at < bytes.len() && !self.is_over() {
            at += self.step(&bytes[at..])?;
        }
        Ok(at)
    }

    /// Goes on as far as one state reaches. There are bytes, and the body is not over.
    fn step(&mut self, bytes: &[u8]) -> Result<usize, Error> {
        let left = bytes.len() as u64;
        Ok(match &mut self.0 {
            State::UntilClose => bytes.len(),
            State::Length(n) => {
                let take = left.min(*n);
                *n -= take;
                take as usize
            }
            State::Data(n) => {
                let take = left.min(*n);
                *n -= take;
                if *n == 0 {
                    self.0 = State::DataEnd(0);
                }
                take as usize
            }
            _ => {
                self.0 = self.0.after(bytes[0])?;
                1
            }
        })
    }
}

impl State {
    /// One byte between chunks.
    fn after(self, byte: u8) -> Result<State, Error> {
        match self {
            State::Size {
                size,
                digits,
                seen,
                extension,
                cr,
            } => {
                if seen == MAX_LINE {
                    return Err(Protocol::Http.too_long("the line of a chunk's size", MAX_LINE));
                }
                let seen = seen + 1;
                match byte {
                    b'\n' if cr && size == 0 => Ok(State::Trailer {
                        line: 0,
                        all: 0,
                        cr: false,
                    }),
                    b'\n' if cr => Ok(State::Data(size)),
                    _ if cr => Err(wrong("a chunk's size has a stray CR")),
                    b'\r' if digits > 0 => Ok(State::Size {
                        size,
                        digits,
                        seen,
                        extension,
                        cr: true,
                    }),
                    b'\n' | b'\r' => Err(wrong("a chunk's size is missing")),
                    _ if extension => Ok(State::Size {
                        size,
                        digits,
                        seen,
                        extension,
                        cr,
                    }),
                    b';' | b' ' | b'\t' if digits > 0 => Ok(State::Size {
                        size,
                        digits,
                        seen,
                        extension: true,
                        cr,
                    }),
                    _ => match (char::from(byte).to_digit(16), digits) {
                        (Some(digit), 0..16) => Ok(State::Size {
                            size: size << 4 | u64::from(digit),
                            digits: digits + 1,
                            seen,
                            extension,
                            cr,
                        }),
                        _ => Err(wrong("a chunk's size is not a hexadecimal number of at most 16 digits")),
                    },
                }
            }
            State::DataEnd(0) if byte == b'\r' => Ok(State::DataEnd(1)),
            State::DataEnd(1) if byte == b'\n' => Ok(SIZE),
            State::DataEnd(_) => Err(wrong("a chunk is longer than its size says")),
            State::Trailer { line, all, cr } => {
                if all == MAX_TRAILERS {
                    return Err(Protocol::Http.too_long("the trailer", MAX_TRAILERS));
                }
                let all = all + 1;
                match byte {
                    b'\n' if cr && line == 0 => Ok(State::Length(0)),
                    b'\n' if cr => Ok(State::Trailer {
                        line: 0,
                        all,
                        cr: false,
                    }),
                    _ if cr => Err(wrong("the trailer has a stray CR")),
                    b'\n' => Err(wrong("a line of the trailer ends without CR")),
                    b'\r' => Ok(State::Trailer { line, all, cr: true }),
                    _ => Ok(State::Trailer {
                        line: line + 1,
                        all,
                        cr,
                    }),
                }
            }
            state => Ok(state),
        }
    }
}

/// What the headers say, or `None` if they say nothing.
fn of_headers(headers: &Headers<'_>, minor: u8) -> Result<Option<State>, Error> {
    let mut lengths = headers
        .words("content-length")
        .map(|word| match word.bytes().all(|b| b.is_ascii_digit()) {
            true => word
                .parse::<u64>()
                .map_err(|_| wrong("the content length is too large")),
            false => Err(wrong("the content length is not a number")),
        });
    let length = lengths.next().transpose()?;
    for other in lengths {
        if Some(other?) != length {
            return Err(wrong("two content lengths contradict each other"));
        }
    }
    if headers.get("transfer-encoding").is_none() {
        return Ok(length.map(State::Length));
    }
    let mut codings = headers.words("transfer-encoding");
    let only_chunked = codings.next().is_some_and(|c| c.eq_ignore_ascii_case("chunked")) && codings.next().is_none();
    // Either both at once, or on HTTP/1.0, is how requests are smuggled.
    if !only_chunked || length.is_some() || minor == 0 {
        return Err(wrong(
            "the transfer coding is not \"chunked\" alone, or stands beside a length",
        ));
    }
    Ok(Some(SIZE))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::head::{parse_request, parse_response};

    fn of(headers: &str) -> Result<Body, Error> {
        let head = format!("POST / HTTP/1.1\r\n{headers}\r\n");
        let head = parse_request(head.as_bytes(), 9999, Protocol::Http)
            .unwrap()
            .done()
            .unwrap();
        Body::of_request(&head)
    }

    #[test]
    fn lengths() {
        assert!(of("").unwrap().is_over());
        assert_eq!(of("Content-Length: 5\r\n"), Ok(Body(State::Length(5))));
        assert_eq!(
            of("Content-Length: 5, 5\r\nContent-Length: 5\r\n"),
            Ok(Body(State::Length(5)))
        );
        assert_eq!(of("Transfer-Encoding: Chunked\r\n"), Ok(Body(SIZE)));
        for wrong in [
            "Content-Length: 5\r\nContent-Length: 6\r\n",
            "Content-Length: -5\r\n",
            "Content-Length: +5\r\n",
            "Content-Length: 5x\r\n",
            "Content-Length: 99999999999999999999\r\n",
            "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
            "Transfer-Encoding: gzip, chunked\r\n",
            "Transfer-Encoding: chunked, chunked\r\n",
            "Transfer-Encoding: \r\n",
            "Transfer-Encoding: xchunked\r\n",
        ] {
            assert!(of(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn bodies_of_responses() {
        let body = |head: &str, method: &str| {
            let head = parse_response(head.as_bytes(), 999, Protocol::Http)
                .unwrap()
                .done()
                .unwrap();
            Body::of_response(&head, method).unwrap()
        };
        assert!(body("HTTP/1.1 200 OK\r\n\r\n", "GET").is_until_close());
        assert!(body("HTTP/1.1 204 x\r\n\r\n", "GET").is_over());
        assert!(body("HTTP/1.1 304 x\r\nContent-Length: 9\r\n\r\n", "GET").is_over());
        assert!(body("HTTP/1.1 200 x\r\nContent-Length: 9\r\n\r\n", "HEAD").is_over());
        assert!(body("HTTP/1.1 100 x\r\n\r\n", "GET").is_over());
    }

    #[test]
    fn chunks_at_every_boundary() {
        let bytes = b"5\r\nhello\r\n1A ; x=\"y\"\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\nTrailer: x\r\n\r\n";
        let with_more = [&bytes[..], b"NEXT"].concat();
        for step in 1..with_more.len() {
            let mut body = Body(SIZE);
            let mut used = 0;
            for piece in with_more.chunks(step) {
                let n = body.advance(piece).unwrap();
                used += n;
                if body.is_over() {
                    break;
                }
                assert_eq!(n, piece.len());
            }
            assert!(body.is_over());
            assert_eq!(used, bytes.len());
        }
    }

    #[test]
    fn what_is_carried() {
        let bytes = b"5\r\nhello\r\n1A ; x=\"y\"\r\nabcdefghijklmnopqrstuvwxyz\r\n0\r\nTrailer: x\r\n\r\nNEXT";
        for step in 1..bytes.len() {
            let (mut body, mut carried, mut used) = (Body(SIZE), Vec::new(), 0);
            'all: for mut piece in bytes.chunks(step) {
                while !piece.is_empty() {
                    let (n, range) = body.next(piece).unwrap();
                    carried.extend_from_slice(&piece[range]);
                    used += n;
                    piece = &piece[n..];
                    if body.is_over() {
                        break 'all;
                    }
                }
            }
            assert_eq!(carried, b"helloabcdefghijklmnopqrstuvwxyz", "{step}");
            assert_eq!(used, bytes.len() - 4);
        }
        let mut body = Body(State::Length(3));
        assert_eq!(body.next(b"abcdef"), Ok((3, 0..3)));
        assert!(body.is_over() && body.next(b"def") == Ok((0, 0..0)));
        assert_eq!(Body(State::UntilClose).next(b"ab"), Ok((2, 0..2)));
    }

    #[test]
    fn wrong_chunks() {
        for bytes in [
            &b"\r\n"[..],
            b"g\r\n",
            b"5\nhello",
            b"5\r\nhelloo\r\n",
            b"5\r\nhello\n",
            b"5\rx",
            b"-5\r\n",
            b"0\r\nTrailer: x\n\r\n",
            b"00000000000000001\r\n",
        ] {
            assert!(Body(SIZE).advance(bytes).is_err(), "{bytes:?}");
        }
        let endless = [b"5;".as_slice(), &[b'x'; 9000]].concat();
        assert!(matches!(Body(SIZE).advance(&endless), Err(Error::TooLong { .. })));
        let trailers = [b"0\r\n".as_slice(), &b"a: b\r\n".repeat(4000)].concat();
        assert!(matches!(Body(SIZE).advance(&trailers), Err(Error::TooLong { .. })));
    }
}
