//! Looks for a TLS handshake in the payload.

use super::MAX_BLOCK;
use super::records::Records;

/// Pieces of payload that are looked at, of both directions together.
const BUDGET: u8 = 8;
/// Where the length of the session id stands in a record with a ServerHello.
const SESSION_ID: usize = 43;
/// The extension by which a ServerHello says that it means TLS 1.3 (RFC 8446 section 4.2.1).
const TLS13: [u8; 6] = [0, 0x2b, 0, 2, 3, 4];
/// Cipher suites of TLS 1.3 whose records may go without the outer layer. The suite 1305 is not among them, nor is any other.
const DIRECT: [u16; 4] = [0x1301, 0x1302, 0x1303, 0x1304];

/// What the payload of a connection shows of a TLS handshake within it. Both directions share one.
#[derive(Clone, Debug)]
pub struct Filter {
    left: u8,
    is_tls: bool,
    is_tls12: bool,
    suite: Option<u16>,
    /// Bytes of the ServerHello's record that have not come.
    hello: usize,
    /// The last of its bytes that have.
    tail: [u8; TLS13.len() - 1],
    is_tls13: bool,
    direct: bool,
    /// The records of the other side, up to its first with application data.
    theirs: Records,
}

impl Default for Filter {
    fn default() -> Self {
        Filter {
            left: BUDGET,
            is_tls: false,
            is_tls12: false,
            suite: None,
            hello: 0,
            tail: [0xff; TLS13.len() - 1],
            is_tls13: false,
            direct: false,
            theirs: Records::default(),
        }
    }
}

impl Filter {
    /// Looks at payload that was received.
    pub fn hear(&mut self, payload: &[u8]) {
        self.look(payload);
        if !self.theirs.has_sealed() {
            self.theirs.walk(payload);
        }
    }

    /// Looks at payload as it moves. More than a block is looked at as several pieces.
    pub fn look(&mut self, payload: &[u8]) {
        for piece in payload.chunks(MAX_BLOCK) {
            if self.left == 0 {
                return;
            }
            self.left -= 1;
            self.look_at_one(piece);
        }
    }

    fn look_at_one(&mut self, piece: &[u8]) {
        match piece {
            [0x16, 3, 3, high, low, 2, ..] => {
                (self.is_tls, self.is_tls12) = (true, true);
                self.hello = usize::from(u16::from_be_bytes([*high, *low])) + 5;
                self.suite = suite(&piece[..piece.len().min(self.hello)]);
                self.tail = [0xff; TLS13.len() - 1];
            }
            [0x16, 3, _, _, _, 1, ..] => self.is_tls = true,
            _ => {}
        }
        if self.hello == 0 {
            return;
        }
        let hello = &piece[..piece.len().min(self.hello)];
        self.hello -= hello.len();
        if self.holds_tls13(hello) {
            self.is_tls13 = true;
            self.direct = self.suite.is_some_and(|suite| DIRECT.contains(&suite));
            self.left = 0;
        } else if self.hello == 0 {
            // It means TLS 1.2.
            self.left = 0;
        }
    }

    /// Whether the extension ends in these bytes of the ServerHello, which follow others.
    fn holds_tls13(&mut self, hello: &[u8]) -> bool {
        let known = self.tail.len();
        let begin = hello.len().min(known);
        let mut border = [0xff; 2 * (TLS13.len() - 1)];
        border[..known].copy_from_slice(&self.tail);
        border[known..known + begin].copy_from_slice(&hello[..begin]);
        let border = &border[..known + begin];
        let found = |bytes: &[u8]| bytes.windows(TLS13.len()).any(|window| window == TLS13);
        let holds = found(border) || found(hello);
        let end = if hello.len() >= known { hello } else { border };
        self.tail.copy_from_slice(&end[end.len() - known..]);
        holds
    }

    /// A ClientHello or a ServerHello has gone by.
    pub fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// A ServerHello of TLS 1.2 or above has gone by.
    pub fn is_tls12(&self) -> bool {
        self.is_tls12
    }

    /// The inner TLS is of version 1.3, with a cipher suite that needs no outer layer.
    pub fn may_go_direct(&self) -> bool {
        self.direct
    }

    /// What is sent may still be the handshake: nothing of the other side is sealed yet. In TLS 1.3 a client seals the end of its
    /// handshake, which comes behind the server's certificate.
    pub(super) fn is_within_handshake(&self) -> bool {
        self.is_tls13 && !self.theirs.has_sealed()
    }

    /// There is little left to look at: whoever has found no TLS by now need not go on.
    pub(super) fn is_nearly_spent(&self) -> bool {
        self.left <= 1
    }

    /// Whether what moves is still to be looked at.
    pub fn is_looking(&self) -> bool {
        self.left > 0
    }
}

/// The cipher suite of a ServerHello, if its beginning holds it.
fn suite(record: &[u8]) -> Option<u16> {
    let id = usize::from(*record.get(SESSION_ID)?);
    let at = SESSION_ID + 1 + id;
    let suite = record.get(at..at + 2).filter(|_| id <= 32)?;
    Some(u16::from_be_bytes([suite[0], suite[1]]))
}
