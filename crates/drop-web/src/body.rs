//! What is answered with: nothing, bytes, a part of a file, or what a thread makes.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use hyper::body::{Frame, SizeHint};
use tokio::sync::mpsc;

use crate::telling::Report;
use crate::wire::{Piece, Pieces, stretch};

/// A body.
pub(crate) enum Body {
    Empty,
    Bytes(Bytes),
    File(FileBody),
    Made(MadeBody),
}

/// A part of a file, sent by [`Wire`](crate::wire::Wire).
pub(crate) struct FileBody {
    file: Arc<File>,
    range: Range<u64>,
    pieces: Pieces,
    report: Arc<Report>,
}

/// What a thread makes, of a length that is known.
pub(crate) struct MadeBody {
    made: mpsc::Receiver<io::Result<Bytes>>,
    left: u64,
    report: Arc<Report>,
}

impl Body {
    pub(crate) fn text(text: impl Into<Bytes>) -> Body {
        Body::Bytes(text.into())
    }

    pub(crate) fn file(file: Arc<File>, range: Range<u64>, pieces: Pieces, report: Arc<Report>) -> Body {
        Body::File(FileBody {
            file,
            range,
            pieces,
            report,
        })
    }

    pub(crate) fn made(made: mpsc::Receiver<io::Result<Bytes>>, length: u64, report: Arc<Report>) -> Body {
        Body::Made(MadeBody {
            made,
            left: length,
            report,
        })
    }

    fn left(&self) -> u64 {
        match self {
            Body::Empty => 0,
            Body::Bytes(bytes) => bytes.len() as u64,
            Body::File(body) => body.range.end - body.range.start,
            Body::Made(body) => body.left,
        }
    }
}

impl hyper::body::Body for Body {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        if self.left() == 0 {
            return Poll::Ready(None);
        }
        match &mut *self {
            Body::Empty => Poll::Ready(None),
            Body::Bytes(bytes) => Poll::Ready(Some(Ok(Frame::data(std::mem::take(bytes))))),
            Body::File(body) => {
                let stretch = stretch(body.range.end - body.range.start);
                body.pieces.push(Piece {
                    file: Arc::clone(&body.file),
                    at: body.range.start,
                    left: stretch.len() as u64,
                    report: Arc::clone(&body.report),
                });
                body.range.start += stretch.len() as u64;
                Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(stretch)))))
            }
            Body::Made(body) => body.made.poll_recv(cx).map(|made| {
                Some(match made {
                    Some(Ok(bytes)) => {
                        body.left = body.left.saturating_sub(bytes.len() as u64);
                        body.report.sent(bytes.len() as u64);
                        Ok(Frame::data(bytes))
                    }
                    Some(Err(error)) => Err(error),
                    // Its thread is gone before the end: the connection must break.
                    None => Err(io::ErrorKind::UnexpectedEof.into()),
                })
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.left() == 0
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.left())
    }
}
