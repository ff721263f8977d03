//! The chunks of VMess on a stream.

use std::ops::Range;

use sealway_v2ray::vmess::{self, CHUNK_PAYLOAD, ChunkOpener, ChunkSealer, MAX_CHUNK_PAYLOAD, Session};
use sealway_v2ray::{Network, Step};

use crate::layer::{Open, Opened, Seal};
use crate::log::Limit;
use crate::{Error, random};

/// The chunks of VMess, after the response header if there is one to come.
pub(crate) struct VmessOpen {
    /// The session, until the response header has been read.
    response: Option<Box<Session>>,
    chunks: Option<ChunkOpener>,
    datagrams: bool,
    ended: bool,
}

impl VmessOpen {
    /// The request's body, as the server. `None` if it is the payload itself.
    pub(crate) fn request(session: &Session) -> Result<Option<Self>, Error> {
        Ok(ChunkOpener::request(session)?.map(|chunks| VmessOpen {
            response: None,
            chunks: Some(chunks),
            datagrams: session.network == Network::Udp,
            ended: false,
        }))
    }

    /// The response, header first, as the client.
    pub(crate) fn response(session: Session) -> Result<Self, Error> {
        Ok(VmessOpen {
            chunks: ChunkOpener::response(&session)?,
            datagrams: session.network == Network::Udp,
            response: Some(Box::new(session)),
            ended: false,
        })
    }
}

impl Open for VmessOpen {
    fn open(&mut self, buffer: &mut [u8], out: usize, input: Range<usize>) -> Result<Opened, Error> {
        let mut done = Opened::default();
        let mut at = input.start;
        if let Some(session) = &self.response {
            match session.open_response(&buffer[input.clone()])? {
                Step::More(_) => return Ok(done),
                Step::Done { used, .. } => at += used,
            }
            self.response = None;
        }
        let Some(chunks) = &mut self.chunks else {
            buffer.copy_within(at..input.end, out);
            return Ok(Opened {
                consumed: input.len(),
                produced: input.end - at,
                end: false,
                through: true,
            });
        };
        while at < input.end && !self.ended {
            match chunks.open_next(&mut buffer[at..input.end])? {
                vmess::Opened::More(_) => break,
                vmess::Opened::End { used } => {
                    at += used;
                    self.ended = true;
                }
                vmess::Opened::Chunk { payload, used } => {
                    let len = payload.len();
                    let mut to = out + done.produced;
                    let payload = at + payload.start..at + payload.end;
                    if self.datagrams {
                        // The size field in front of the payload leaves room for a plain length.
                        buffer.copy_within(payload, to + 2);
                        buffer[to..to + 2].copy_from_slice(&(len as u16).to_be_bytes());
                        to += 2;
                    } else {
                        buffer.copy_within(payload, to);
                    }
                    done.produced = to + len - out;
                    at += used;
                }
            }
        }
        done.consumed = if self.ended { input.len() } else { at - input.start };
        done.end = self.ended;
        Ok(done)
    }

    fn may_end(&self) -> bool {
        self.response.is_none()
    }
}

/// Lines about nonces that repeat.
static REPEATS: Limit = Limit::new(1);

/// Seals payload into chunks of VMess.
pub(crate) struct VmessSeal {
    chunks: ChunkSealer,
    /// Say where the body ends.
    end: bool,
    /// Say when nonces begin to repeat: nothing else protects the chunks.
    watch: bool,
}

impl VmessSeal {
    /// The request's body, as the client. `None` if it is the payload itself.
    ///
    /// `bare`: there is no TLS around it.
    pub(crate) fn request(session: &Session, end: bool, bare: bool) -> Result<Option<Self>, Error> {
        Ok(ChunkSealer::request(session)?.map(|chunks| VmessSeal {
            chunks,
            end,
            watch: bare,
        }))
    }

    /// The response's body, as the server. `None` if it is the payload itself.
    pub(crate) fn response(session: &Session, bare: bool) -> Result<Option<Self>, Error> {
        Ok(ChunkSealer::response(session)?.map(|chunks| VmessSeal {
            chunks,
            end: true,
            watch: bare,
        }))
    }

    /// Every peer lets the number of a chunk wrap, and to end here would end every long download. So it is said.
    fn watch_nonces(&mut self) {
        if self.watch && self.chunks.repeats() > 0 {
            self.watch = false;
            if let Some(kept) = REPEATS.pass() {
                tracing::warn!(
                    "a VMess connection without TLS has sent 65,536 chunks, and its nonces repeat from here on: who records it \
                     may read and change it; put TLS around VMess for long transfers{kept}"
                );
            }
        }
    }
}

impl Seal for VmessSeal {
    fn max_payload(&self) -> usize {
        CHUNK_PAYLOAD
    }

    fn overhead(&self) -> usize {
        self.chunks.max_overhead()
    }

    fn seal(&mut self, payload: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        if payload.len() > MAX_CHUNK_PAYLOAD {
            return Err(Error::protocol("VMess", "a datagram longer than a chunk"));
        }
        let at = out.len();
        out.resize(at + payload.len() + self.chunks.max_overhead(), 0);
        let mut failed = Ok(());
        let len = self
            .chunks
            .seal_to(payload, &mut out[at..], &mut random::filler(&mut failed))?;
        failed?;
        out.truncate(at + len);
        self.watch_nonces();
        Ok(())
    }

    fn end(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        if !self.end {
            return Ok(());
        }
        let at = out.len();
        out.resize(at + self.chunks.max_overhead(), 0);
        let mut failed = Ok(());
        let len = self.chunks.seal_end(&mut out[at..], &mut random::filler(&mut failed))?;
        failed?;
        out.truncate(at + len);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use sealway_v2ray::vmess::Security;

    use super::*;

    /// Nonces of VMess repeat after 65,536 chunks, which nobody was told.
    #[test]
    fn repeated_nonces_are_noticed_where_nothing_else_protects() {
        let security = Security::Aes128Gcm;
        let session = Session::new(&[1; 33], security, security.usual_options(), Network::Tcp).unwrap();
        for bare in [true, false] {
            let mut seal = VmessSeal::response(&session, bare).unwrap().unwrap();
            let mut out = Vec::new();
            for chunk in 0..=65_536 {
                assert_eq!(seal.watch, bare, "{chunk}");
                out.clear();
                seal.seal(b"x", &mut out).unwrap();
            }
            assert!(!seal.watch);
        }
    }
}
