//! One side of a connection, whichever version it speaks.

use std::fmt;
use std::io;

use sealway_bip324::message::v1::PAYLOAD_MAX;
use sealway_bip324::{LocalKey, Options, decoy};
use sealway_bip324_tokio::v1::{V1Receiver, V1Sender};
use sealway_bip324_tokio::{Messages, Receiver, Sender, TransportError, draw_garbage, draw_key};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use zeroize::Zeroizing;

use crate::{Error, Settings};

/// Bytes that wait to be written, from which on nothing more is taken: what one write carries.
const OUTPUT: usize = 64 * 1024;

/// What comes.
pub(crate) enum Reader {
    V1(V1Receiver<OwnedReadHalf>),
    V2(Receiver<OwnedReadHalf>),
}

/// What goes.
pub(crate) enum Writer {
    V1(V1Sender<OwnedWriteHalf>),
    V2(Sender<OwnedWriteHalf>),
}

/// Both directions of a connection.
pub(crate) struct Side {
    pub(crate) reader: Reader,
    pub(crate) writer: Writer,
}

impl Side {
    /// A v1 connection of which `received` has been read.
    pub(crate) fn v1(tcp: TcpStream, received: Vec<u8>, settings: &Settings) -> Self {
        let (read, write) = tcp.into_split();
        let mut reader = V1Receiver::new(read, settings.network, PAYLOAD_MAX, received);
        reader.set_patience(settings.patience);
        Side {
            reader: Reader::V1(reader),
            writer: Writer::V1(V1Sender::new(write, settings.network, OUTPUT)),
        }
    }

    /// A v2 connection after its handshake.
    pub(crate) fn v2(mut messages: Messages<TcpStream>, settings: &Settings) -> Result<Self, Error> {
        messages.set_patience(settings.patience);
        if let Some(decoys) = settings.decoys {
            let mut seed = Zeroizing::new([0; 32]);
            random(&mut seed[..]).map_err(Error::Random)?;
            messages.set_decoys(Some(decoy::Decoys::new(decoys.policy, &seed)));
        }
        let (reader, writer) = messages.split_with(TcpStream::into_split);
        Ok(Side {
            reader: Reader::V2(reader),
            writer: Writer::V2(writer),
        })
    }
}

impl Reader {
    pub(crate) fn has_message(&mut self) -> Result<bool, TransportError> {
        match self {
            Reader::V1(reader) => reader.has_message(),
            Reader::V2(reader) => reader.has_message(),
        }
    }

    /// Messages that were dropped for a wrong checksum or type.
    pub(crate) fn dropped(&self) -> u64 {
        match self {
            Reader::V1(reader) => reader.received().dropped,
            Reader::V2(reader) => reader.received().dropped,
        }
    }
}

impl Writer {
    /// Decoys that were sent.
    pub(crate) fn decoys(&self) -> u64 {
        match self {
            Writer::V1(writer) => writer.sent().decoys,
            Writer::V2(writer) => writer.sent().decoys,
        }
    }

    pub(crate) async fn flush(&mut self) -> Result<(), TransportError> {
        match self {
            Writer::V1(writer) => writer.flush().await,
            Writer::V2(writer) => writer.flush().await,
        }
    }

    pub(crate) async fn shutdown(&mut self) -> Result<(), TransportError> {
        match self {
            Writer::V1(writer) => writer.shutdown().await,
            Writer::V2(writer) => writer.shutdown().await,
        }
    }
}

/// What both ends of a v2 connection show if nobody stands between them. No secret.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct SessionId(pub [u8; 32]);

impl fmt::Display for SessionId {
    /// As Bitcoin Core shows it: 64 hexadecimal digits.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// Random bytes of the system.
pub(crate) fn random(out: &mut [u8]) -> io::Result<()> {
    getrandom::fill(out).map_err(io::Error::other)
}

/// What a handshake takes: a new key, and garbage of random length.
pub(crate) fn fresh() -> Result<(LocalKey, Options), Error> {
    let key = draw_key(&mut random).map_err(Error::Random)?;
    let mut options = Options::default();
    options.garbage = draw_garbage(&mut random).map_err(Error::Random)?;
    options.output_limit = OUTPUT;
    Ok((key, options))
}
