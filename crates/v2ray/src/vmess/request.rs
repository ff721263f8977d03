//! The request header.
//!
//! `authID[16] | sealed length[18] | nonce[8] | sealed header[length + 16]`, where the header is `01 | IV[16] | key[16] | V |
//! options | padding length and security | 00 | command | [port u16 | type | address] | padding | FNV-1a of all before`.

use sealway_aead::{Nonce, OpeningKey, SealingKey, Suite};
use zeroize::Zeroizing;

use super::kdf::{self, Label};
use super::{CommandKey, Options, Security, Session, Users};
use crate::address::{Network, read_port_first, write_port_first};
use crate::replay::Seen;
use crate::step::{Cursor, Stop};
use crate::{Destination, Error, Protocol, Step, UserId};

/// Bytes up to the sealed header: authentication id, sealed length, nonce.
const FRONT: usize = 16 + 18 + 8;
/// Longest header there can be: the fixed part, a domain of 255 bytes, 15 bytes of padding, the checksum.
const MAX_HEADER: usize = 38 + 2 + 2 + 255 + 15 + 4;
const VERSION: u8 = 1;

/// What a client asks for.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum Command {
    /// A stream to, or datagrams for, this destination (commands 1 and 2).
    Connect(Destination),
    /// Many streams in one, by Mux.Cool (command 3).
    Mux,
}

impl Command {
    /// Whether the body is a stream or datagrams.
    pub fn network(&self) -> Network {
        match self {
            Command::Connect(to) => to.network,
            Command::Mux => Network::Tcp,
        }
    }
}

/// Random bytes that sealing a request takes.
#[derive(Clone, Copy, Debug)]
pub struct RequestRandom {
    /// For the authentication id. New for each request.
    pub auth: [u8; 4],
    /// The nonce. New for each request.
    pub nonce: [u8; 8],
    /// How much padding: the remainder by 16 counts.
    pub padding_len: u8,
    /// The padding.
    pub padding: [u8; 15],
}

/// A request to be sent.
#[derive(Clone, Debug)]
pub struct Request {
    /// Keys and options.
    pub session: Session,
    /// The command; its network is the session's.
    pub command: Command,
}

impl Request {
    /// Appends the sealed header to `out`. `time` is the Unix time in seconds. Send it in one piece.
    ///
    /// # Errors
    /// [`Error::OutOfOrder`] if command and session differ in their network, [`Error::Aead`] if memory ran out.
    pub fn seal(&self, key: &CommandKey, time: i64, random: &RequestRandom, out: &mut Vec<u8>) -> Result<(), Error> {
        if self.command.network() != self.session.network {
            return Err(Error::OutOfOrder {
                what: "the session was made for another network than its command has",
            });
        }
        let header = self.header(random);
        let auth_id = key.auth_id(time, random.auth);
        let keys = HeaderKeys {
            key,
            auth_id: &auth_id,
            nonce: &random.nonce,
        };
        out.extend_from_slice(&auth_id);
        let len = (header.len() as u16).to_be_bytes();
        keys.seal(&kdf::LENGTH_KEY, &kdf::LENGTH_IV, &len, out)?;
        out.extend_from_slice(&random.nonce);
        keys.seal(&kdf::HEADER_KEY, &kdf::HEADER_IV, &header, out)
    }

    fn header(&self, random: &RequestRandom) -> Zeroizing<Vec<u8>> {
        let session = &self.session;
        let padding = usize::from(random.padding_len % 16);
        let mut header = Zeroizing::new(Vec::with_capacity(MAX_HEADER));
        header.push(VERSION);
        header.extend_from_slice(&session.iv);
        header.extend_from_slice(&session.key);
        let lengths = (padding as u8) << 4 | session.security.to_wire();
        header.extend_from_slice(&[session.response_v, session.options.0, lengths, 0]);
        match &self.command {
            Command::Connect(to) => {
                header.push(match to.network {
                    Network::Tcp => 1,
                    Network::Udp => 2,
                });
                write_port_first(&to.address, to.port, &mut header);
            }
            Command::Mux => header.push(3),
        }
        header.extend_from_slice(&random.padding[..padding]);
        let sum = fnv1a(&header);
        header.extend_from_slice(&sum.to_be_bytes());
        header
    }
}

/// What the keys of one header are derived from.
struct HeaderKeys<'a> {
    key: &'a CommandKey,
    auth_id: &'a [u8; 16],
    nonce: &'a [u8; 8],
}

impl HeaderKeys<'_> {
    fn derive<const N: usize>(&self, label: &Label) -> [u8; N] {
        label.derive_with(self.key.as_bytes(), self.auth_id, self.nonce)
    }

    fn seal(&self, key: &Label, iv: &Label, plain: &[u8], out: &mut Vec<u8>) -> Result<(), Error> {
        let key = SealingKey::new(Suite::Aes128Gcm, &*Zeroizing::new(self.derive::<16>(key)))?;
        let nonce = Nonce::assume_unique(Suite::Aes128Gcm, &self.derive::<12>(iv))?;
        let at = out.len();
        out.resize(at + plain.len() + Suite::TAG_LEN, 0);
        Ok(key.seal_to(nonce, self.auth_id, plain, &mut out[at..])?)
    }

    fn open(&self, key: &Label, iv: &Label, sealed: &[u8], plain: &mut [u8]) -> Result<(), Error> {
        let key = OpeningKey::new(Suite::Aes128Gcm, &*Zeroizing::new(self.derive::<16>(key)))?;
        key.open_to(&self.derive::<12>(iv), self.auth_id, sealed, plain)
            .map_err(unauthentic)
    }
}

/// A failed open by the protocol's own error, anything else as it is.
pub(super) fn unauthentic(error: sealway_aead::Error) -> Error {
    match error {
        sealway_aead::Error::Unauthentic => Protocol::Vmess.unauthentic(),
        error => Error::Aead(error),
    }
}

/// FNV-1a, 32 bits.
pub(crate) fn fnv1a(bytes: &[u8]) -> u32 {
    bytes.iter().fold(0x811c_9dc5, |sum, byte| {
        (sum ^ u32::from(*byte)).wrapping_mul(0x0100_0193)
    })
}

/// A request that a server may serve.
#[derive(Clone, Debug)]
pub struct Accepted<T> {
    /// What was stored for the user.
    pub user: T,
    /// Keys and options.
    pub session: Session,
    /// The command.
    pub command: Command,
}

/// Opens the header of one connection, as the server.
///
/// The work is kept between calls: the user is looked for once, and each seal is opened once.
#[derive(Debug)]
pub struct RequestOpener<T> {
    found: Option<Found<T>>,
    /// Length of the header, once known.
    len: Option<usize>,
}

#[derive(Debug)]
struct Found<T> {
    user: T,
    id: UserId,
    /// When the authentication id was made.
    time: i64,
    key: CommandKey,
}

impl<T: Clone> RequestOpener<T> {
    /// Most bytes a header takes on the wire. A longer one is refused.
    pub const MAX_LEN: usize = FRONT + MAX_HEADER + Suite::TAG_LEN;

    /// Nothing seen yet.
    pub fn new() -> Self {
        RequestOpener { found: None, len: None }
    }

    /// Looks at all bytes that have come so far; show the same bytes again with more behind them.
    ///
    /// `now` is the Unix time in seconds. `remember` is told what must not come twice, and refuses it if it did;
    /// [`crate::replay::ReplayGuard::insert`] does that.
    ///
    /// # Errors
    /// Any error means the same to the peer, who must not be able to tell them apart: see [`super::Drain`].
    /// For the log: [`Error::ClockSkew`], [`Error::UnknownUser`], [`Error::Unauthentic`], those of `remember`, and those of a
    /// header that its user sealed but that is wrong in itself.
    pub fn handle(
        &mut self,
        bytes: &[u8],
        now: i64,
        users: &Users<T>,
        remember: &mut dyn FnMut(Seen) -> Result<(), Error>,
    ) -> Result<Step<Accepted<T>>, Error> {
        let Some((auth_id, rest)) = bytes.split_first_chunk::<16>() else {
            return Ok(Step::More(16 - bytes.len()));
        };
        let found = match &mut self.found {
            Some(found) => found,
            none => {
                let found = users.find(auth_id, now)?;
                remember(Seen::auth_id(found.id, found.time, auth_id))?;
                none.insert(Found {
                    user: found.user.clone(),
                    time: found.time,
                    id: *found.id,
                    key: found.key.clone(),
                })
            }
        };
        let Some((sealed_len, rest)) = rest.split_first_chunk::<18>() else {
            return Ok(Step::More(18 - rest.len()));
        };
        let Some((nonce, rest)) = rest.split_first_chunk::<8>() else {
            return Ok(Step::More(8 - rest.len()));
        };
        let key = &found.key;
        let keys = HeaderKeys { key, auth_id, nonce };
        let len = match self.len {
            Some(len) => len,
            None => {
                let mut len = [0; 2];
                keys.open(&kdf::LENGTH_KEY, &kdf::LENGTH_IV, sealed_len, &mut len)?;
                let len = usize::from(u16::from_be_bytes(len));
                if len > MAX_HEADER {
                    return Err(Protocol::Vmess.too_long("the request header", MAX_HEADER));
                }
                *self.len.insert(len)
            }
        };
        let Some(sealed) = rest.get(..len + Suite::TAG_LEN) else {
            return Ok(Step::More(len + Suite::TAG_LEN - rest.len()));
        };
        let mut header = Zeroizing::new([0; MAX_HEADER]);
        let header = &mut header[..len];
        keys.open(&kdf::HEADER_KEY, &kdf::HEADER_IV, sealed, header)?;
        let (session, command) = parse_header(header)?;
        remember(Seen::session(&found.id, found.time, &session.key, &session.iv))?;
        Ok(Step::Done {
            value: Accepted {
                user: found.user.clone(),
                session,
                command,
            },
            used: FRONT + len + Suite::TAG_LEN,
        })
    }
}

impl<T: Clone> Default for RequestOpener<T> {
    fn default() -> Self {
        Self::new()
    }
}

/// Reads an opened header. Nothing may be missing and nothing left over.
pub(crate) fn parse_header(header: &[u8]) -> Result<(Session, Command), Error> {
    let malformed = |problem| Protocol::Vmess.malformed(problem);
    let Some((body, sum)) = header.split_last_chunk::<4>() else {
        return Err(malformed("the request header is too short"));
    };
    if fnv1a(body).to_be_bytes() != *sum {
        return Err(malformed("the checksum of the request header is wrong"));
    }
    let mut cursor = Cursor::new(body);
    match read_header(&mut cursor) {
        Ok((_, _, padding)) if body.len() - cursor.position() != padding => {
            Err(malformed("the request header is longer or shorter than its fields"))
        }
        Ok((session, command, _)) => Ok((session, command)),
        Err(Stop::More(_)) => Err(malformed("the request header ends within a field")),
        Err(Stop::Failed(error)) => Err(error),
    }
}

fn read_header(cursor: &mut Cursor<'_>) -> Result<(Session, Command, usize), Stop> {
    let field = |field, got| Protocol::Vmess.field(field, u64::from(got));
    let version = cursor.u8()?;
    if version != VERSION {
        return Err(field("the version", version).into());
    }
    let iv = cursor.array()?;
    let key = Zeroizing::new(cursor.array()?);
    let [response_v, options, lengths, _reserved, command] = cursor.array()?;
    let options = Options(options);
    options.check()?;
    let security = Security::from_wire(lengths & 0x0f)?;
    let command = match command {
        1 | 2 => {
            let network = if command == 1 { Network::Tcp } else { Network::Udp };
            let (address, port) = read_port_first(cursor, Protocol::Vmess)?;
            Command::Connect(Destination { network, address, port })
        }
        3 => Command::Mux,
        got => return Err(field("the command", got).into()),
    };
    let session = Session {
        key: *key,
        iv,
        response_v,
        security,
        options,
        network: command.network(),
    };
    Ok((session, command, usize::from(lengths >> 4)))
}
