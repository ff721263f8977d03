//! A handshake of rustls as bytes that come and bytes that go, without I/O.

use std::sync::Arc;

use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, UnbufferedStatus};
use rustls::{ClientConfig, CommonState, ServerConfig};
use sealway_tls::records::Records;

use crate::Error;
use crate::kernel::{self, Kernel};

/// Largest flight that is held while it is written, bytes.
const MAX_FLIGHT: usize = 128 << 10;
/// Room for an alert, bytes.
const ALERT: usize = 512;

/// What is to be done before a handshake goes on.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Next {
    /// Send what [`Handshake::take_output`] has.
    Write,
    /// Receive more, behind what is left of the input.
    Read,
    /// Nothing: it is through.
    Done,
}

/// A handshake, in either role.
pub struct Handshake {
    side: Side,
    out: Vec<u8>,
    early: Vec<u8>,
    closed: bool,
}

enum Side {
    Client(UnbufferedClientConnection),
    Server(UnbufferedServerConnection),
}

/// What there is after a handshake.
pub struct Through {
    /// The record layer.
    pub records: Records,
    /// Payload that the handshake has opened already.
    pub early: Vec<u8>,
    /// The peer has said that nothing follows.
    pub closed: bool,
}

impl Handshake {
    /// Of a client, with a server of this name.
    ///
    /// # Errors
    /// If the configuration allows none, or not that secrets are taken out.
    pub fn client(config: Arc<ClientConfig>, name: ServerName<'static>) -> Result<Handshake, rustls::Error> {
        may_extract(config.enable_secret_extraction)?;
        Ok(Handshake::new(Side::Client(UnbufferedClientConnection::new(
            config, name,
        )?)))
    }

    /// Of a server.
    ///
    /// # Errors
    /// If the configuration allows none, or not that secrets are taken out.
    pub fn server(config: Arc<ServerConfig>) -> Result<Handshake, rustls::Error> {
        may_extract(config.enable_secret_extraction)?;
        Ok(Handshake::new(Side::Server(UnbufferedServerConnection::new(config)?)))
    }

    fn new(side: Side) -> Handshake {
        Handshake {
            side,
            out: Vec::new(),
            early: Vec::new(),
            closed: false,
        }
    }

    /// Goes as far as what was received allows. Returns how many bytes at the front of `input` are done with, and what is next.
    ///
    /// # Errors
    /// Those of rustls. The alert that the peer is owed is then the output. Afterwards this must not be called again.
    pub fn advance(&mut self, input: &mut [u8]) -> (usize, Result<Next, rustls::Error>) {
        let (mut used, mut announced) = (0, false);
        loop {
            let rest = input.get_mut(used..).unwrap_or_default();
            let (out, early, closed) = (&mut self.out, &mut self.early, &mut self.closed);
            let (discard, next) = match &mut self.side {
                Side::Client(connection) => step(connection.process_tls_records(rest), out, early, closed),
                Side::Server(connection) => step(connection.process_tls_records(rest), out, early, closed),
            };
            used += discard;
            match next {
                Ok(None) => {}
                // A server may write before the client's last flight has come.
                Ok(Some(Next::Done)) if self.common().is_handshaking() => return (used, Ok(Next::Read)),
                // There may be an announcement to encode now.
                Ok(Some(Next::Done)) if !announced => announced = true,
                Ok(Some(next)) => return (used, Ok(next)),
                Err(error) => {
                    self.encode_alert();
                    return (used, Err(error));
                }
            }
        }
    }

    /// Encodes the alert that rustls has queued. Once that is out rustls must not be asked again: it would go on with what follows in
    /// the input, and panic over it.
    fn encode_alert(&mut self) {
        let out = &mut self.out;
        match &mut self.side {
            Side::Client(connection) => {
                while connection.wants_write() && encode_one(connection.process_tls_records(&mut []), out) {}
            }
            Side::Server(connection) => {
                while connection.wants_write() && encode_one(connection.process_tls_records(&mut []), out) {}
            }
        }
    }

    /// Takes what is to be sent; it may be nothing.
    pub fn take_output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.out)
    }

    /// The protocol that both ends agreed on by ALPN.
    pub fn alpn_protocol(&self) -> Option<&[u8]> {
        self.common().alpn_protocol()
    }

    /// What the peer showed: its own certificate comes first.
    pub fn peer_certificates(&self) -> &[CertificateDer<'static>] {
        self.common().peer_certificates().unwrap_or_default()
    }

    fn common(&self) -> &CommonState {
        match &self.side {
            Side::Client(connection) => connection,
            Side::Server(connection) => connection,
        }
    }

    /// The records that follow, after [`Next::Done`].
    ///
    /// # Errors
    /// [`Error::Handshake`] if it is not through; [`Error::Records`] as [`kernel::after`].
    pub fn finish(self) -> Result<Through, Error> {
        let (secrets, kernel) = match self.side {
            Side::Client(connection) => {
                let (secrets, kernel) = connection.dangerous_into_kernel_connection()?;
                (secrets, Kernel::Client(kernel))
            }
            Side::Server(connection) => {
                let (secrets, kernel) = connection.dangerous_into_kernel_connection()?;
                (secrets, Kernel::Server(kernel))
            }
        };
        Ok(Through {
            records: kernel::after(&secrets, kernel)?,
            early: self.early,
            closed: self.closed,
        })
    }
}

/// Without this a handshake would be of no use once it is through.
fn may_extract(enabled: bool) -> Result<(), rustls::Error> {
    match enabled {
        true => Ok(()),
        false => {
            let what = "the configuration must allow that secrets are taken out (enable_secret_extraction)";
            Err(rustls::Error::General(what.into()))
        }
    }
}

/// One look at the connection: how many bytes are done with, and what is next; `None` if that is another look.
fn step<Data>(
    status: UnbufferedStatus<'_, '_, Data>,
    out: &mut Vec<u8>,
    early: &mut Vec<u8>,
    closed: &mut bool,
) -> (usize, Result<Option<Next>, rustls::Error>) {
    let UnbufferedStatus { mut discard, state } = status;
    let next = match state {
        Err(error) => Err(error),
        Ok(ConnectionState::EncodeTlsData(mut encode)) => encode_flight(out, |room| encode.encode(room)).map(|()| None),
        Ok(ConnectionState::TransmitTlsData(transmit)) => {
            transmit.done();
            Ok(Some(Next::Write))
        }
        Ok(ConnectionState::BlockedHandshake) => Ok(Some(Next::Read)),
        Ok(ConnectionState::ReadTraffic(mut traffic)) => loop {
            match traffic.next_record() {
                Some(Ok(record)) => {
                    early.extend_from_slice(record.payload);
                    discard += record.discard;
                }
                Some(Err(error)) => break Err(error),
                None => break Ok(None),
            }
        },
        Ok(ConnectionState::WriteTraffic(mut traffic)) => {
            // The peer may have asked for a new key behind its last flight. Then rustls seals by that key already, and queues what
            // announces it only once there is payload to seal. There is no room for this payload: nothing of it is sealed.
            let _ = traffic.encrypt(&[0], &mut []);
            Ok(Some(Next::Done))
        }
        Ok(ConnectionState::PeerClosed) => {
            *closed = true;
            Ok(None)
        }
        Ok(ConnectionState::Closed) => Err(rustls::Error::General("TLS that both ends have closed already".into())),
        Ok(_) => Err(rustls::Error::General("early data that was not offered".into())),
    };
    (discard, next)
}

/// Appends what `encode` writes, into as much room as it wants.
fn encode_flight(
    out: &mut Vec<u8>,
    mut encode: impl FnMut(&mut [u8]) -> Result<usize, EncodeError>,
) -> Result<(), rustls::Error> {
    let at = out.len();
    let mut room = 1024;
    loop {
        out.resize(at + room, 0);
        match encode(&mut out[at..]) {
            Ok(wrote) => {
                out.truncate(at + wrote);
                return Ok(());
            }
            Err(EncodeError::InsufficientSize(need)) if need.required_size <= MAX_FLIGHT => {
                room = need.required_size;
            }
            Err(_) => {
                out.truncate(at);
                let what = "handshake flight that could not be encoded";
                return Err(rustls::Error::General(what.into()));
            }
        }
    }
}

/// Whether something was encoded.
fn encode_one<Data>(status: UnbufferedStatus<'_, '_, Data>, out: &mut Vec<u8>) -> bool {
    let Ok(ConnectionState::EncodeTlsData(mut alert)) = status.state else {
        return false;
    };
    let at = out.len();
    out.resize(at + ALERT, 0);
    let wrote = alert.encode(&mut out[at..]).unwrap_or(0);
    out.truncate(at + wrote);
    wrote > 0
}
