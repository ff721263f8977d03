//! Frames (RFC 6455 section 5).

use std::ops::Range;

use super::mask;
use crate::{Error, Protocol};

/// Longest head of a frame, bytes.
pub const MAX_HEAD: usize = 14;
/// Longest payload of a control frame, bytes.
pub const MAX_CONTROL: usize = 125;

/// Which end this is. Clients mask what they send.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Role {
    /// The one that asked for the upgrade.
    Client,
    /// The one that granted it.
    Server,
}

/// Kinds of frames we write.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Opcode {
    /// Payload.
    Binary,
    /// The end, with a status.
    Close,
    /// A question whether the other end is there.
    Ping,
    /// The answer, with the payload of the ping.
    Pong,
}

impl Opcode {
    const fn bits(self) -> u8 {
        match self {
            Opcode::Binary => 2,
            Opcode::Close => 8,
            Opcode::Ping => 9,
            Opcode::Pong => 10,
        }
    }
}

/// Bytes the head of a frame takes.
pub const fn head_len(payload: usize, role: Role) -> usize {
    let size = match payload {
        0..=125 => 2,
        126..=65_535 => 4,
        _ => 10,
    };
    match role {
        Role::Client => size + 4,
        Role::Server => size,
    }
}

/// Writes a frame around a payload in place: the payload stands at the end of `frame`, behind [`head_len`] bytes for the
/// head. A client masks it with `key`, which must be random and new for each frame; a server ignores `key`.
///
/// # Errors
/// [`Error::Buffer`] if the head does not fit exactly; [`Error::DoesNotFit`] for a control frame above 125 bytes.
pub fn seal_in_place(frame: &mut [u8], payload: usize, opcode: Opcode, role: Role, key: [u8; 4]) -> Result<(), Error> {
    let need = head_len(payload, role).saturating_add(payload);
    if frame.len() != need {
        return Err(Error::Buffer { need, got: frame.len() });
    }
    if opcode != Opcode::Binary && payload > MAX_CONTROL {
        return Err(Protocol::WebSocket.does_not_fit("the payload of a control frame", MAX_CONTROL, payload));
    }
    let (head, body) = frame.split_at_mut(need - payload);
    head[0] = 0x80 | opcode.bits();
    let masked = if role == Role::Client { 0x80 } else { 0 };
    match payload {
        0..=125 => head[1] = masked | payload as u8,
        126..=65_535 => {
            head[1] = masked | 126;
            head[2..4].copy_from_slice(&(payload as u16).to_be_bytes());
        }
        _ => {
            head[1] = masked | 127;
            head[2..10].copy_from_slice(&(payload as u64).to_be_bytes());
        }
    }
    if role == Role::Client {
        let at = head.len() - 4;
        head[at..].copy_from_slice(&key);
        mask(body, key, 0);
    }
    Ok(())
}

/// A control frame, whole.
///
/// # Errors
/// As [`seal_in_place`].
pub fn control(opcode: Opcode, payload: &[u8], role: Role, key: [u8; 4]) -> Result<Vec<u8>, Error> {
    let mut frame = vec![0; head_len(payload.len(), role)];
    frame.extend_from_slice(payload);
    seal_in_place(&mut frame, payload.len(), opcode, role, key)?;
    Ok(frame)
}

/// The payload of a close frame that says all is well (1000).
pub const CLOSE_NORMAL: [u8; 2] = 1000u16.to_be_bytes();

/// The payload of a control frame.
#[derive(Clone, Copy, Eq, PartialEq)]
pub struct ControlPayload {
    bytes: [u8; MAX_CONTROL],
    len: u8,
}

impl ControlPayload {
    const EMPTY: ControlPayload = ControlPayload {
        bytes: [0; MAX_CONTROL],
        len: 0,
    };

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }

    /// Appends bytes; the frame's length has been checked to be at most 125.
    fn extend(&mut self, bytes: &[u8]) {
        let start = usize::from(self.len);
        let len = bytes.len().min(MAX_CONTROL - start);
        self.bytes[start..start + len].copy_from_slice(&bytes[..len]);
        self.len += len as u8;
    }
}

impl std::fmt::Debug for ControlPayload {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.as_bytes().fmt(f)
    }
}

/// What was read.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Event {
    /// Payload, now unmasked in place.
    Data(Range<usize>),
    /// A ping: answer with a pong of the same payload.
    Ping(ControlPayload),
    /// A pong.
    Pong,
    /// The end: answer with a close frame if none was sent. Its status, if it has one.
    Close(Option<u16>),
    /// Nothing to do yet: all bytes were taken and more are needed.
    More,
}

/// Reads frames out of a stream, in the buffer it was read into, passing payload on as it comes.
#[derive(Debug)]
pub struct Decoder {
    role: Role,
    head: [u8; MAX_HEAD],
    head_len: usize,
    frame: Option<Frame>,
    control: ControlPayload,
    /// Whether a message has begun and not ended.
    in_message: bool,
    closed: bool,
}

#[derive(Clone, Copy, Debug)]
struct Frame {
    opcode: u8,
    left: u64,
    key: Option<[u8; 4]>,
    /// Bytes of its payload that have passed, by 4.
    offset: usize,
}

impl Decoder {
    /// Reads what is sent to this end.
    pub fn new(role: Role) -> Self {
        Decoder {
            role,
            head: [0; MAX_HEAD],
            head_len: 0,
            frame: None,
            control: ControlPayload::EMPTY,
            in_message: false,
            closed: false,
        }
    }

    /// Reads on. Returns one event and how many bytes it took; go on with what is left until [`Event::More`].
    ///
    /// # Errors
    /// [`Error::Field`] and [`Error::Malformed`]: close with status 1002. [`Error::OutOfOrder`] after [`Event::Close`].
    pub fn handle(&mut self, bytes: &mut [u8]) -> Result<(Event, usize), Error> {
        if self.closed {
            return Err(Error::OutOfOrder {
                what: "the WebSocket was closed; what follows is not part of it",
            });
        }
        let mut used = 0;
        loop {
            let frame = match self.frame {
                Some(frame) => frame,
                None => {
                    let Some(byte) = bytes.get(used) else {
                        return Ok((Event::More, used));
                    };
                    // At most 14 bytes a frame come this way, so there is nothing to gain by taking more at a time.
                    self.head[self.head_len] = *byte;
                    self.head_len += 1;
                    used += 1;
                    match self.parse_head()? {
                        None => continue,
                        Some(frame) => {
                            self.head_len = 0;
                            self.control = ControlPayload::EMPTY;
                            *self.frame.insert(frame)
                        }
                    }
                }
            };
            let rest = &mut bytes[used..];
            let len = usize::try_from(frame.left).unwrap_or(usize::MAX).min(rest.len());
            let payload = &mut rest[..len];
            if let Some(key) = frame.key {
                mask(payload, key, frame.offset);
            }
            let after = Frame {
                left: frame.left - len as u64,
                offset: (frame.offset + len) % 4,
                ..frame
            };
            let over = after.left == 0;
            self.frame = (!over).then_some(after);
            let range = used..used + len;
            used += len;
            if frame.opcode < 8 {
                if len > 0 {
                    return Ok((Event::Data(range), used));
                }
                if over {
                    continue;
                }
                return Ok((Event::More, used));
            }
            self.control.extend(payload);
            if !over {
                return Ok((Event::More, used));
            }
            return Ok((self.control_event(frame.opcode)?, used));
        }
    }

    fn control_event(&mut self, opcode: u8) -> Result<Event, Error> {
        match opcode {
            9 => Ok(Event::Ping(self.control)),
            10 => Ok(Event::Pong),
            _ => {
                self.closed = true;
                match self.control.as_bytes() {
                    [] => Ok(Event::Close(None)),
                    [a, b, ..] => Ok(Event::Close(Some(u16::from_be_bytes([*a, *b])))),
                    [_] => Err(malformed("a close frame has one byte of status instead of two")),
                }
            }
        }
    }

    /// The frame whose head has been gathered, or `None` if it is not complete.
    fn parse_head(&mut self) -> Result<Option<Frame>, Error> {
        let head = &self.head[..self.head_len];
        let [first, rest @ ..] = head else {
            return Ok(None);
        };
        let opcode = first & 0x0f;
        let last = first & 0x80 != 0;
        if first & 0x70 != 0 {
            return Err(field("the reserved bits", first & 0x70));
        }
        if !matches!(opcode, 0..=2 | 8..=10) {
            return Err(field("the opcode", opcode));
        }
        let [second, rest @ ..] = rest else {
            return Ok(None);
        };
        let masked = second & 0x80 != 0;
        let short = second & 0x7f;
        if masked != (self.role == Role::Server) {
            return Err(malformed(match masked {
                true => "the server masks its frames",
                false => "the client does not mask its frames",
            }));
        }
        if opcode >= 8 && (!last || usize::from(short) > MAX_CONTROL) {
            return Err(malformed("a control frame is fragmented or longer than 125 bytes"));
        }
        if opcode < 8 && (opcode == 0) != self.in_message {
            return Err(malformed(match self.in_message {
                true => "a message begins within another",
                false => "a message goes on that has not begun",
            }));
        }
        let (left, rest) = match short {
            126 => match rest.split_first_chunk::<2>() {
                Some((len, rest)) => (u64::from(u16::from_be_bytes(*len)), rest),
                None => return Ok(None),
            },
            127 => match rest.split_first_chunk::<8>() {
                Some((len, rest)) => (u64::from_be_bytes(*len), rest),
                None => return Ok(None),
            },
            short => (u64::from(short), rest),
        };
        if left > i64::MAX as u64 {
            return Err(malformed("the length of a frame has its highest bit set"));
        }
        let key = match masked {
            true => match rest.first_chunk::<4>() {
                Some(key) => Some(*key),
                None => return Ok(None),
            },
            false => None,
        };
        if opcode < 8 {
            self.in_message = !last;
        }
        Ok(Some(Frame {
            opcode,
            left,
            key,
            offset: 0,
        }))
    }
}

fn malformed(problem: &'static str) -> Error {
    Protocol::WebSocket.malformed(problem)
}

fn field(field: &'static str, got: u8) -> Error {
    Protocol::WebSocket.field(field, u64::from(got))
}

#[cfg(test)]
mod tests;
