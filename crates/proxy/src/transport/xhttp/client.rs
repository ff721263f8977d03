//! Streams of a client.

use std::io;
use std::sync::Arc;
use std::task::{Context, Poll};

use sealway_v2ray::Address;
use sealway_v2ray::xhttp::Asked;
use sealway_v2ray::xhttp::ids;
use sealway_v2ray::xhttp::settings::Mode;

use super::half::{Half, Whole};
use super::upload::Packets;
use super::way::{Share, Toward, Way};
use crate::carrier::Virtual;
use crate::error::Error;
use crate::stats::Traffic;
use crate::stream::Stream;
use crate::transport::{Line, Remote};
use crate::{random, settings};

/// Where a client asks for what comes down, if not where it sends what goes up.
pub(super) struct Download {
    pub(super) line: Arc<Line>,
    pub(super) server: (Address, u16),
    pub(super) way: Arc<Way>,
}

/// What streams of an outbound share.
pub(super) struct Client {
    way: Arc<Way>,
    download: Option<Download>,
}

impl Client {
    pub(super) fn new(settings: &settings::Xhttp, download: Option<Download>) -> Self {
        Client {
            way: Way::new(&settings.http, settings.http2),
            download,
        }
    }

    /// A stream to a server.
    pub(super) async fn connect(&self, line: &Arc<Line>, remote: &Remote, traffic: Traffic) -> Result<Stream, Error> {
        let up = Toward {
            way: Arc::clone(&self.way),
            line: Arc::clone(line),
            remote: remote.clone(),
            traffic: traffic.clone(),
        };
        let settings = &self.way.settings;
        let share = up.share().await?;
        if settings.mode == Mode::StreamOne {
            let half = up.open(share.as_ref(), &Asked::One).await?;
            return Ok(Stream::new(Box::new(Whole::new(half, share)), Traffic::default()));
        }
        let session = ids::make(settings.table.as_ref(), &random::bytes()?);
        let (down, down_share) = match &self.download {
            None => (up.clone(), share.clone()),
            Some(download) => {
                let down = Toward {
                    way: Arc::clone(&download.way),
                    line: Arc::clone(&download.line),
                    remote: Remote::server(&download.server),
                    traffic,
                };
                let share = down.share().await?;
                (down, share)
            }
        };
        let asked = Asked::Down { session: &session };
        if settings.mode == Mode::StreamUp {
            let uploads = Asked::Up { session: &session };
            let (down, up) = tokio::try_join!(
                down.open(down_share.as_ref(), &asked),
                up.open(share.as_ref(), &uploads)
            )?;
            let stream = Split {
                down,
                up,
                answered: false,
                reset: false,
                _shares: [share, down_share],
            };
            return Ok(Stream::new(Box::new(stream), Traffic::default()));
        }
        let down = down.open(down_share.as_ref(), &asked).await?;
        let packets = Packets::new(up, share, session, (down, down_share))?;
        Ok(Stream::new(Box::new(packets), Traffic::default()))
    }
}

/// A stream whose directions are two requests.
struct Split {
    down: Half,
    up: Half,
    /// The answer to what goes up has ended.
    answered: bool,
    reset: bool,
    _shares: [Option<Share>; 2],
}

impl Split {
    /// Throws away what the server says to what goes up: padding. That it refuses is an error.
    fn look(&mut self, cx: &mut Context<'_>) -> io::Result<()> {
        while !self.answered {
            match self.up.poll_take(cx, 4096, |_| ()) {
                Poll::Ready(Ok(Some(()))) => {}
                Poll::Ready(Ok(None)) => self.answered = true,
                Poll::Ready(Err(error)) => return Err(error),
                Poll::Pending => break,
            }
        }
        Ok(())
    }
}

impl Virtual for Split {
    fn poll_read_ready(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(self.look(cx))
    }

    fn poll_read(&mut self, cx: &mut Context<'_>, into: &mut [u8]) -> Poll<io::Result<usize>> {
        self.down.poll_read(cx, into)
    }

    fn poll_write(&mut self, cx: &mut Context<'_>, from: &[u8]) -> Poll<io::Result<usize>> {
        self.up.poll_write(cx, from)
    }

    fn poll_shutdown(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.up.poll_end(cx)
    }

    fn reset_on_close(&mut self) {
        self.reset = true;
        self.down.reset_on_close();
        self.up.reset_on_close();
    }

    fn trust(&mut self) {
        self.down.trust();
        self.up.trust();
    }
}

impl Drop for Split {
    fn drop(&mut self) {
        if !self.reset {
            self.up.leave();
            self.down.leave();
        }
    }
}
