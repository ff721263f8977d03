//! WebSocket frames on a stream.

use std::ops::Range;

use sealway_v2ray::ws::frame::{self, CLOSE_NORMAL, Decoder, Event, MAX_HEAD, Opcode, Role, head_len};

use crate::layer::{Framing, Opened};
use crate::{Error, random};

/// Bytes of answers to the pings of one read.
const REPLIES: usize = 1 << 10;

/// Both directions of a WebSocket connection. Borders of messages mean nothing.
pub(crate) struct Frames {
    role: Role,
    decoder: Decoder,
}

impl Frames {
    /// Frames after the handshake. `role` is ours.
    pub(crate) fn new(role: Role) -> Self {
        Frames {
            role,
            decoder: Decoder::new(role),
        }
    }

    fn key(&self) -> Result<[u8; 4], Error> {
        match self.role {
            Role::Client => random::bytes(),
            Role::Server => Ok([0; 4]),
        }
    }
}

impl Framing for Frames {
    fn max_header(&self) -> usize {
        MAX_HEAD
    }

    fn header(&self, payload: usize) -> usize {
        head_len(payload, self.role)
    }

    fn seal(&mut self, out: &mut Vec<u8>, at: usize, gap: usize) -> Result<(), Error> {
        let payload = out.len() - at - gap;
        let need = head_len(payload, self.role);
        if need > gap {
            out.splice(at..at, std::iter::repeat_n(0, need - gap));
        } else if need < gap {
            out.drain(at..at + gap - need);
        }
        let key = self.key()?;
        frame::seal_in_place(&mut out[at..], payload, Opcode::Binary, self.role, key)?;
        Ok(())
    }

    fn close(&mut self, out: &mut Vec<u8>) -> Result<(), Error> {
        out.extend(frame::control(Opcode::Close, &CLOSE_NORMAL, self.role, self.key()?)?);
        Ok(())
    }

    /// WebSocket has a close frame, but the peers in use take it for a failure: what they have received and not passed on
    /// yet is thrown away, and nothing can be sent after it. So the end of a WebSocket connection is said when both
    /// directions are through or the time of the other one has run out, as those peers do it too.
    fn can_half_close(&self) -> bool {
        false
    }

    /// Answers to pings are put into `reply`. Of more pings than fit there the last one is answered, as RFC 6455 section
    /// 5.5.3 allows.
    fn open(
        &mut self,
        buffer: &mut [u8],
        out: usize,
        input: Range<usize>,
        reply: &mut Vec<u8>,
    ) -> Result<Opened, Error> {
        let mut done = Opened::default();
        let mut at = input.start;
        let mut last = 0;
        while at < input.end {
            let (event, used) = self.decoder.handle(&mut buffer[at..input.end])?;
            match event {
                Event::Data(payload) => {
                    let to = out + done.produced;
                    done.produced += payload.len();
                    buffer.copy_within(at + payload.start..at + payload.end, to);
                }
                Event::Ping(payload) => {
                    let pong = frame::control(Opcode::Pong, payload.as_bytes(), self.role, self.key()?)?;
                    if reply.len() + pong.len() > REPLIES {
                        reply.truncate(last);
                    }
                    last = reply.len();
                    reply.extend(pong);
                }
                Event::Pong => {}
                Event::Close(_) => {
                    done.end = true;
                    at = input.end;
                    break;
                }
                Event::More => {
                    at += used;
                    break;
                }
            }
            at += used;
        }
        done.consumed = at - input.start;
        Ok(done)
    }
}
