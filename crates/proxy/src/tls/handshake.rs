//! The handshake, driven over a socket without a buffer of its own inside `rustls`.

use std::future::poll_fn;
use std::sync::Arc;

use rustls::client::UnbufferedClientConnection;
use rustls::pki_types::ServerName;
use rustls::server::UnbufferedServerConnection;
use rustls::unbuffered::{ConnectionState, EncodeError, UnbufferedStatus};
use rustls::{ClientConfig, ServerConfig};
use sealway_tls::records::Records;
use sealway_v2ray::sniff;

use crate::Error;
use crate::carrier::Carrier;
use crate::closing::LINGER;
use crate::pool::{Buf, Class};
use crate::stats::Traffic;
use crate::tls::records::{self, Kernel};

/// What was agreed on, for routing and fallbacks.
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub(crate) struct Agreed {
    /// Name the client asked for, lower case.
    pub(crate) sni: String,
    /// Application protocol, or empty.
    pub(crate) alpn: String,
}

/// A connection whose handshake is through.
pub(crate) struct Established {
    pub(crate) carrier: Carrier,
    pub(crate) records: Records,
    /// Received and not opened yet.
    pub(crate) received: Vec<u8>,
    /// Payload that the handshake has opened already.
    pub(crate) early: Vec<u8>,
    /// The peer has said that nothing follows.
    pub(crate) closed: bool,
    pub(crate) agreed: Agreed,
}

/// What to do after one look at the connection.
pub(super) enum Next {
    /// Look again.
    Again,
    /// Write out what has been encoded, then look again.
    Write,
    /// Read, then look again.
    Read,
    /// The handshake is through.
    Through,
}

/// Largest flight that is held while it is written, bytes.
const MAX_FLIGHT: usize = 128 << 10;

pub(super) fn step<Data>(
    state: ConnectionState<'_, '_, Data>,
    out: &mut Vec<u8>,
    early: &mut Vec<u8>,
    closed: &mut bool,
) -> Result<Next, Error> {
    match state {
        ConnectionState::EncodeTlsData(mut encode) => {
            let at = out.len();
            let mut room = 1024;
            loop {
                out.resize(at + room, 0);
                match encode.encode(&mut out[at..]) {
                    Ok(wrote) => {
                        out.truncate(at + wrote);
                        return Ok(Next::Again);
                    }
                    Err(EncodeError::InsufficientSize(need)) if need.required_size <= MAX_FLIGHT => {
                        room = need.required_size;
                    }
                    Err(_) => return Err(Error::protocol("TLS", "handshake flight could not be encoded")),
                }
            }
        }
        ConnectionState::TransmitTlsData(transmit) => {
            transmit.done();
            Ok(Next::Write)
        }
        ConnectionState::BlockedHandshake => Ok(Next::Read),
        ConnectionState::ReadTraffic(mut traffic) => {
            while let Some(record) = traffic.next_record() {
                early.extend_from_slice(record?.payload);
            }
            Ok(Next::Again)
        }
        ConnectionState::WriteTraffic(_) => Ok(Next::Through),
        ConnectionState::PeerClosed => {
            *closed = true;
            Ok(Next::Again)
        }
        ConnectionState::Closed => Err(Error::Closed),
        _ => Err(Error::protocol("TLS", "early data that was not offered")),
    }
}

/// Bytes on their way during the handshake.
pub(super) struct Wire<'a> {
    pub(super) carrier: &'a mut Carrier,
    traffic: &'a Traffic,
    pub(super) input: Buf,
    pub(super) filled: usize,
    pub(super) out: Vec<u8>,
}

impl Wire<'_> {
    pub(super) fn discard(&mut self, n: usize) {
        self.input.copy_within(n..self.filled, 0);
        self.filled -= n;
    }

    pub(super) async fn write(&mut self) -> Result<(), Error> {
        let mut at = 0;
        while at < self.out.len() {
            let wrote = poll_fn(|cx| self.carrier.poll_write(cx, &self.out[at..])).await?;
            self.traffic.sent(wrote);
            at += wrote;
        }
        self.out.clear();
        Ok(poll_fn(|cx| self.carrier.poll_flush(cx)).await?)
    }

    pub(super) async fn read(&mut self) -> Result<(), Error> {
        if self.filled == self.input.len() {
            let larger = self.input.class().larger();
            // A flight of one record fits in 20 KiB; whatever needs more than that is not a handshake.
            if larger > Class::holding(17 << 10).unwrap_or(Class::SMALL) {
                return Err(Error::protocol("TLS", "handshake record too long"));
            }
            let mut input = Buf::take(larger);
            input[..self.filled].copy_from_slice(&self.input[..self.filled]);
            self.input = input;
        }
        let room = &mut self.input[self.filled..];
        let got = poll_fn(|cx| self.carrier.poll_read(cx, room)).await?;
        if got == 0 {
            return Err(Error::Closed);
        }
        self.traffic.received(got);
        self.filled += got;
        Ok(())
    }
}

/// Runs the handshake of either side: the two types of connection share no trait.
macro_rules! drive {
    ($connection:ident, $wire:ident, $early:ident, $closed:ident, $look:expr) => {
        loop {
            let filled = $wire.filled;
            $look(&$wire.input[..filled]);
            let UnbufferedStatus { discard, state } = $connection.process_tls_records(&mut $wire.input[..filled]);
            let next = match state {
                Ok(state) => step(state, &mut $wire.out, &mut $early, &mut $closed),
                Err(error) => {
                    // The peer is owed the alert, which `rustls` has queued. Once that is out `rustls` must not be asked again:
                    // it would go on with what follows in the input, and panic over it.
                    let mut nothing = [];
                    while $connection.wants_write() {
                        let UnbufferedStatus {
                            state: Ok(ConnectionState::EncodeTlsData(mut alert)),
                            ..
                        } = $connection.process_tls_records(&mut nothing)
                        else {
                            break;
                        };
                        let at = $wire.out.len();
                        $wire.out.resize(at + 512, 0);
                        let wrote = alert.encode(&mut $wire.out[at..]).unwrap_or(0);
                        $wire.out.truncate(at + wrote);
                        if wrote == 0 {
                            break;
                        }
                    }
                    let leaving = async {
                        $wire.write().await?;
                        $wire.carrier.leave().await;
                        Ok::<(), Error>(())
                    };
                    let _ = tokio::time::timeout(LINGER, leaving).await;
                    return Err(Error::Tls(error));
                }
            };
            $wire.discard(discard);
            match next? {
                Next::Again => {}
                Next::Write => $wire.write().await?,
                Next::Read => $wire.read().await?,
                Next::Through if $connection.is_handshaking() => $wire.read().await?,
                Next::Through => break,
            }
        }
    };
}

impl<'a> Wire<'a> {
    pub(super) fn new(carrier: &'a mut Carrier, traffic: &'a Traffic) -> Self {
        Wire {
            carrier,
            traffic,
            input: Buf::take(Class::SMALL),
            filled: 0,
            out: Vec::new(),
        }
    }
}

/// Accepts TLS on a fresh connection, of which `read` was received already.
pub(crate) async fn accept(
    config: Arc<ServerConfig>,
    carrier: impl Into<Carrier>,
    traffic: &Traffic,
    read: &[u8],
) -> Result<Established, Error> {
    let mut connection = UnbufferedServerConnection::new(config)?;
    let mut carrier = carrier.into();
    let (mut early, mut closed) = (Vec::new(), false);
    // The buffer is taken only when the client has said something.
    if read.is_empty() {
        poll_fn(|cx| carrier.poll_read_ready(cx)).await?;
    }
    let mut wire = Wire::new(&mut carrier, traffic);
    wire.input
        .get_mut(..read.len())
        .ok_or(Error::protocol("TLS", "too much read ahead of the handshake"))?
        .copy_from_slice(read);
    wire.filled = read.len();
    let mut sni = None;
    drive!(connection, wire, early, closed, |seen: &[u8]| if sni.is_none() {
        sni = sniff::server_name(seen).map(|name| name.as_str().to_owned());
    });
    wire.write().await?;
    let agreed = Agreed {
        sni: sni.unwrap_or_default(),
        alpn: alpn(connection.alpn_protocol()),
    };
    let (secrets, kernel) = connection.dangerous_into_kernel_connection()?;
    let records = records::after(&secrets, Kernel::Server(kernel))?;
    let received = wire.input[..wire.filled].to_vec();
    Ok(Established {
        carrier,
        records,
        received,
        early,
        closed,
        agreed,
    })
}

/// Starts TLS on a connection that we dialled.
pub(crate) async fn connect(
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    carrier: impl Into<Carrier>,
    traffic: &Traffic,
) -> Result<Established, Error> {
    let mut connection = UnbufferedClientConnection::new(config, name)?;
    let mut carrier = carrier.into();
    let (mut early, mut closed) = (Vec::new(), false);
    let mut wire = Wire::new(&mut carrier, traffic);
    drive!(connection, wire, early, closed, |_: &[u8]| {});
    wire.write().await?;
    let agreed = Agreed {
        sni: String::new(),
        alpn: alpn(connection.alpn_protocol()),
    };
    let (secrets, kernel) = connection.dangerous_into_kernel_connection()?;
    let records = records::after(&secrets, Kernel::Client(kernel))?;
    let received = wire.input[..wire.filled].to_vec();
    Ok(Established {
        carrier,
        records,
        received,
        early,
        closed,
        agreed,
    })
}

fn alpn(protocol: Option<&[u8]>) -> String {
    String::from_utf8_lossy(protocol.unwrap_or_default()).to_ascii_lowercase()
}
