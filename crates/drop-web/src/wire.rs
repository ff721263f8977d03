//! Connections: TLS or not, and files that go out without passing through this program where the kernel can do that.
//!
//! Between the server and a connection stands the HTTP library, which hands on bytes. A piece of a file is handed through it as a
//! stretch of [`MARK`], of the same length, and noted in [`Pieces`] in the same order. Where such a stretch comes out, the file's
//! bytes are written in its place: by `sendfile`, or read right into what TLS seals.

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use rustix::io::Errno;
use sealway_drop::lock;
use sealway_tls_tokio::TlsStream;
use tokio::io::{AsyncRead, AsyncWrite, Interest, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Sleep, sleep};

use crate::shared::read_at;
use crate::telling::Report;

/// The longest stretch, and the most that one call sends.
pub(crate) const STRETCH: usize = 1 << 20;
/// Stands for bytes of files; nothing reads it.
static MARK: [u8; STRETCH] = [0; STRETCH];
/// What is read at once to be sealed.
const BUFFER: usize = 256 << 10;
/// How long a client may take nothing of what is written.
const SILENCE: Duration = Duration::from_secs(60);

/// So much of a file as a stretch of bytes that stands for it.
pub(crate) fn stretch(len: u64) -> &'static [u8] {
    let len = usize::try_from(len).unwrap_or(STRETCH).min(STRETCH);
    MARK.get(..len).unwrap_or(&MARK)
}

fn is_stretch(bytes: &[u8]) -> bool {
    MARK.as_ptr_range().contains(&bytes.as_ptr())
}

/// A piece of a file that is to go out.
pub(crate) struct Piece {
    pub(crate) file: Arc<File>,
    pub(crate) at: u64,
    pub(crate) left: u64,
    /// Told how much went out.
    pub(crate) report: Arc<Report>,
}

/// Pieces whose stretches have been handed to the HTTP library, in order.
#[derive(Clone, Default)]
pub(crate) struct Pieces(Arc<Mutex<VecDeque<Piece>>>);

impl Pieces {
    pub(crate) fn push(&self, piece: Piece) {
        lock(&self.0).push_back(piece);
    }

    /// The file and the place from which the next bytes come.
    fn next(&self) -> io::Result<(Arc<File>, u64, u64)> {
        let pieces = lock(&self.0);
        let piece = pieces
            .front()
            .ok_or_else(|| io::Error::other("a stretch without a piece"))?;
        Ok((Arc::clone(&piece.file), piece.at, piece.left))
    }

    fn sent(&self, count: usize) {
        let mut pieces = lock(&self.0);
        if let Some(piece) = pieces.front_mut() {
            let count = (count as u64).min(piece.left);
            piece.at += count;
            piece.left -= count;
            piece.report.sent(count);
            if piece.left == 0 {
                pieces.pop_front();
            }
        }
    }
}

/// A socket that ends a client which takes nothing for [`SILENCE`].
pub(crate) struct Patient {
    tcp: TcpStream,
    until: Option<Pin<Box<Sleep>>>,
}

impl Patient {
    pub(crate) fn new(tcp: TcpStream) -> Patient {
        Patient { tcp, until: None }
    }

    fn within<T>(&mut self, cx: &mut Context<'_>, done: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        match done {
            Poll::Ready(done) => {
                self.until = None;
                Poll::Ready(done)
            }
            Poll::Pending => {
                let until = self.until.get_or_insert_with(|| Box::pin(sleep(SILENCE)));
                ready!(until.as_mut().poll(cx));
                Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
            }
        }
    }

    /// Sends bytes of a file without looking at them.
    fn poll_send_file(&mut self, cx: &mut Context<'_>, file: &File, at: u64, len: usize) -> Poll<io::Result<usize>> {
        loop {
            let ready = self.tcp.poll_write_ready(cx);
            ready!(self.within(cx, ready))?;
            let mut offset = at;
            let tcp = &self.tcp;
            let send = || Ok(rustix::fs::sendfile(tcp, file, Some(&mut offset), len)?);
            match tcp.try_io(Interest::WRITABLE, send) {
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                sent => return Poll::Ready(sent),
            }
        }
    }
}

impl AsyncRead for Patient {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_read(cx, into)
    }
}

impl AsyncWrite for Patient {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.tcp).poll_write(cx, bytes);
        self.within(cx, done)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let done = Pin::new(&mut self.tcp).poll_write_vectored(cx, bytes);
        self.within(cx, done)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.tcp).poll_shutdown(cx)
    }
}

/// What lies between HTTP and the socket.
pub(crate) enum Layer {
    Plain(Patient),
    Tls(Box<TlsStream<Patient>>),
}

trait Duplex: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

impl Layer {
    fn inner(&mut self) -> Pin<&mut dyn Duplex> {
        match self {
            Layer::Plain(socket) => Pin::new(socket),
            Layer::Tls(tls) => Pin::new(&mut **tls),
        }
    }
}

/// A connection on which stretches become what they stand for.
pub(crate) struct Wire {
    layer: Layer,
    pieces: Pieces,
    /// What was read of the front piece and not yet written.
    buffer: Vec<u8>,
    filled: usize,
    written: usize,
    /// Whether the kernel cannot send this file by itself.
    copies: bool,
}

impl Wire {
    pub(crate) fn new(layer: Layer, pieces: Pieces) -> Wire {
        Wire {
            layer,
            pieces,
            buffer: Vec::new(),
            filled: 0,
            written: 0,
            copies: false,
        }
    }

    fn poll_piece(&mut self, cx: &mut Context<'_>, len: usize) -> Poll<io::Result<usize>> {
        let (file, at, left) = self.pieces.next()?;
        let len = len.min(usize::try_from(left).unwrap_or(usize::MAX));
        if let (Layer::Plain(socket), false) = (&mut self.layer, self.copies) {
            match ready!(socket.poll_send_file(cx, &file, at, len)) {
                Ok(0) => return Poll::Ready(Err(cut_short())),
                Ok(count) => {
                    self.pieces.sent(count);
                    return Poll::Ready(Ok(count));
                }
                // A file system whose files it cannot map.
                Err(error)
                    if [Errno::INVAL, Errno::NOSYS]
                        .iter()
                        .any(|errno| error.raw_os_error() == Some(errno.raw_os_error())) =>
                {
                    self.copies = true;
                }
                Err(error) => return Poll::Ready(Err(error)),
            }
        }
        if self.written == self.filled {
            // Kept for as long as files go out one stretch after the other, and cleared once.
            self.buffer.resize(BUFFER, 0);
            (self.written, self.filled) = (0, 0);
            let room = self.buffer.get_mut(..BUFFER.min(len)).unwrap_or_default();
            self.filled = read_at(&*file, room, at)?;
            if self.filled == 0 {
                return Poll::Ready(Err(cut_short()));
            }
        }
        let bytes = self.buffer.get(self.written..self.filled).unwrap_or_default();
        let count = ready!(self.layer.inner().poll_write(cx, bytes))?;
        self.written += count;
        self.pieces.sent(count);
        Poll::Ready(Ok(count))
    }
}

/// The connection must break: an end in good order would pass a part for the whole.
fn cut_short() -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        "the file became shorter while it was sent",
    )
}

impl AsyncRead for Wire {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, into: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.layer.inner().poll_read(cx, into)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_write_vectored(cx, &[IoSlice::new(bytes)])
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let begin = bytes.iter().position(|bytes| !bytes.is_empty()).unwrap_or(bytes.len());
        let bytes = bytes.get(begin..).unwrap_or_default();
        match bytes.first() {
            Some(first) if is_stretch(first) => self.poll_piece(cx, first.len()),
            _ => {
                // The head of an answer: what files went through is not needed for most of them.
                if self.written == self.filled {
                    self.buffer = Vec::new();
                }
                let end = bytes.iter().position(|bytes| is_stretch(bytes)).unwrap_or(bytes.len());
                let bytes = bytes.get(..end).unwrap_or_default();
                self.layer.inner().poll_write_vectored(cx, bytes)
            }
        }
    }

    /// The HTTP library must hand on what it was given, not a copy.
    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.layer.inner().poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.layer.inner().poll_shutdown(cx)
    }
}
