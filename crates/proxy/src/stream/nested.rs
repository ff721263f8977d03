//! A stream as what another one lies on: one outbound dials through another.

use std::io;
use std::task::{Context, Poll, Waker, ready};

use super::Stream;
use super::adapter::io_error;
use crate::carrier::{Carrier, Virtual};

/// A stream under another one.
struct Nested {
    inner: Stream,
    /// Its end has been sealed.
    ended: bool,
    broken: bool,
}

impl Stream {
    /// What another stream lies on: this one, or what it lies on itself where nothing is between.
    pub(crate) fn into_carrier(self) -> Carrier {
        let bare =
            self.is_raw_rx() && self.is_raw_tx() && self.is_drained() && !self.wants_flush() && !self.has_ended();
        if bare && self.traffic.is_silent() {
            return self.carrier;
        }
        Carrier::from(Box::new(Nested {
            inner: self,
            ended: false,
            broken: false,
        }))
    }
}

impl Nested {
    /// Ready with what has come, and at the end.
    fn poll_payload(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            if !self.inner.payload().is_empty() {
                return Poll::Ready(Ok(()));
            }
            if self.inner.wants_open() {
                self.inner.open().map_err(io_error)?;
                continue;
            }
            if self.inner.has_ended() {
                return Poll::Ready(Ok(()));
            }
            ready!(self.inner.poll_fill(cx)).map_err(io_error)?;
        }
    }

    fn end(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.ended, true) {
            return Ok(());
        }
        self.inner
            .seal_end()
            .and_then(|()| match self.inner.can_half_close() {
                true => self.inner.seal_close(),
                false => Ok(()),
            })
            .map_err(io_error)
    }
}

impl Virtual for Nested {
    fn poll_read_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_payload(cx)
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_payload(cx))?;
        let payload = self.inner.payload();
        let len = payload.len().min(into.len());
        into[..len].copy_from_slice(&payload[..len]);
        self.inner.consume(len);
        Poll::Ready(Ok(len))
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        // What is still being written goes first.
        ready!(self.inner.poll_flush(cx)).map_err(io_error)?;
        if self.inner.is_raw_tx() {
            return self.inner.poll_write_raw(cx, from).map_err(io_error);
        }
        let len = from.len().min(MOST);
        self.inner.seal(&from[..len]).map_err(io_error)?;
        match self.inner.poll_flush(cx) {
            Poll::Ready(Err(error)) => Poll::Ready(Err(io_error(error))),
            _ => Poll::Ready(Ok(len)),
        }
    }

    fn wants_flush(&self) -> bool {
        self.inner.wants_flush()
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner.poll_flush(cx).map_err(io_error)
    }

    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.end()?;
        ready!(self.inner.poll_flush(cx)).map_err(io_error)?;
        match self.inner.can_half_close() {
            true => self.inner.carrier.poll_shutdown(cx),
            false => Poll::Ready(Ok(())),
        }
    }

    fn reset_on_close(&mut self) {
        self.broken = true;
        self.inner.carrier.reset_on_close();
    }

    fn trust(&mut self) {
        self.inner.trust();
    }

    fn can_half_close(&self) -> bool {
        self.inner.can_half_close()
    }
}

/// Says that nothing follows as far as that can be written at once; what waits for room below is lost, as with a socket that is
/// reset.
impl Drop for Nested {
    fn drop(&mut self) {
        if !self.broken {
            self.inner.finish(&mut Context::from_waker(Waker::noop()));
        }
    }
}

/// Most bytes that are sealed at once.
const MOST: usize = 64 << 10;

#[cfg(test)]
mod tests {
    use std::pin::Pin;
    use std::sync::{Arc, Mutex};

    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::super::adapter::Io;
    use super::*;
    use crate::stats::Traffic;
    use crate::tls;

    /// A stream over TLS, and another one on each end of it.
    async fn ends() -> (Io, Io) {
        let (near, far) = tls::tests::ends(tls::tests::suites()[0]).await;
        let on = |inner: Stream| Io(Stream::new(inner.into_carrier(), Traffic::default()));
        (on(near), on(far))
    }

    #[tokio::test]
    async fn what_goes_in_above_comes_out_above() {
        let (mut near, mut far) = ends().await;
        let whole: Vec<u8> = (0..3_000_000_u32).map(|n| (n / 7) as u8).collect();
        let sent = whole.clone();
        let writing = tokio::spawn(async move {
            near.write_all(&sent).await.unwrap();
            near.shutdown().await.unwrap();
            let mut back = Vec::new();
            near.read_to_end(&mut back).await.unwrap();
            back
        });
        let mut got = Vec::new();
        far.read_to_end(&mut got).await.unwrap();
        assert!(got == whole);
        far.write_all(b"heard").await.unwrap();
        far.flush().await.unwrap();
        far.shutdown().await.unwrap();
        assert_eq!(writing.await.unwrap(), b"heard");
    }

    #[tokio::test]
    async fn dropped_it_says_what_was_held_back_and_broken_it_does_not() {
        for broken in [false, true] {
            let (mut near, mut far) = tls::tests::ends(tls::tests::suites()[0]).await;
            near.set_prefix(b"header".to_vec());
            let mut carrier = near.into_carrier();
            if broken {
                carrier.reset_on_close();
            }
            drop(carrier);
            let said = far.more().await.is_ok_and(|more| more && far.payload() == b"header");
            assert_eq!(said, !broken);
        }
    }

    #[tokio::test]
    async fn where_nothing_is_between_there_is_nothing_of_it() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let tcp = tokio::net::TcpStream::connect(listener.local_addr().unwrap())
            .await
            .unwrap();
        let bare = Stream::new(sealway_net::sock::Sock::Tcp(tcp), Traffic::default());
        assert!(bare.into_carrier().is_sock());
        let (near, _far) = tls::tests::ends(tls::tests::suites()[0]).await;
        assert!(!near.into_carrier().is_sock());
    }

    /// A carrier that takes a little, then nothing for once.
    struct Slow {
        got: Arc<Mutex<Vec<u8>>>,
        full: bool,
    }

    impl Virtual for Slow {
        fn poll_read_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Pending
        }

        fn poll_read(&mut self, _: &mut Context<'_>, _: &mut [u8]) -> Poll<io::Result<usize>> {
            Poll::Pending
        }

        fn poll_write(&mut self, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
            if std::mem::replace(&mut self.full, false) {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            self.full = true;
            let len = from.len().min(1024);
            self.got.lock().unwrap().extend_from_slice(&from[..len]);
            Poll::Ready(Ok(len))
        }

        fn poll_shutdown(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
            Poll::Ready(Ok(()))
        }

        fn reset_on_close(&mut self) {}
    }

    /// A head that leaves with the first payload, and nothing sealed after it.
    #[tokio::test]
    async fn nothing_overtakes_what_waits_below() {
        let got = Arc::default();
        let slow = Slow {
            got: Arc::clone(&got),
            full: false,
        };
        let mut inner = Stream::new(Carrier::from(Box::new(slow)), Traffic::default());
        inner.set_prefix(b"header".to_vec());
        let mut above = Stream::new(inner.into_carrier(), Traffic::default());
        let whole: Vec<u8> = (0..300_000_u32).map(|n| (n / 7) as u8).collect();
        above.send(&whole).await.unwrap();
        let got = got.lock().unwrap();
        assert!(got[..6] == *b"header" && got[6..] == whole);
    }

    /// What waits to be written under it leaves without another write above.
    #[tokio::test]
    async fn what_waits_below_is_flushed_from_above() {
        let (mut near, mut far) = ends().await;
        let whole = vec![7; 8 << 20];
        let sent = whole.len();
        let writing = tokio::spawn(async move {
            near.write_all(&whole).await.unwrap();
            near.flush().await.unwrap();
            assert!(!near.0.wants_flush());
            near
        });
        let mut got = vec![0; sent];
        Pin::new(&mut far).read_exact(&mut got).await.unwrap();
        writing.await.unwrap();
    }
}
