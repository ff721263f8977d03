//! The handshake, driven over a carrier without a buffer of its own inside `rustls`.

use std::future::poll_fn;
use std::sync::Arc;

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, ServerConfig};
use sealway_tls::records::Records;
use sealway_tls_tokio::handshake::{Handshake, Next, Through};
use sealway_v2ray::sniff;

use crate::Error;
use crate::carrier::Carrier;
use crate::closing::LINGER;
use crate::pool::{Buf, Class};
use crate::stats::Traffic;

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

/// Runs a handshake of either side to its end. `look` sees what was received before it is taken.
async fn drive(handshake: &mut Handshake, wire: &mut Wire<'_>, mut look: impl FnMut(&[u8])) -> Result<(), Error> {
    loop {
        let input = &mut wire.input[..wire.filled];
        look(input);
        let (used, next) = handshake.advance(input);
        wire.discard(used);
        wire.out.append(&mut handshake.take_output());
        match next {
            Ok(Next::Write) => wire.write().await?,
            Ok(Next::Read) => wire.read().await?,
            Ok(Next::Done) => return wire.write().await,
            Err(error) => {
                // The peer is owed the alert.
                let leaving = async {
                    wire.write().await?;
                    wire.carrier.leave().await;
                    Ok::<(), Error>(())
                };
                let _ = tokio::time::timeout(LINGER, leaving).await;
                return Err(Error::Tls(error));
            }
        }
    }
}

/// What there is after a handshake, behind which `received` came.
fn established(handshake: Handshake, received: Vec<u8>, carrier: Carrier, sni: String) -> Result<Established, Error> {
    let alpn = String::from_utf8_lossy(handshake.alpn_protocol().unwrap_or_default()).to_ascii_lowercase();
    let Through { records, early, closed } = handshake.finish()?;
    Ok(Established {
        carrier,
        records,
        received,
        early,
        closed,
        agreed: Agreed { sni, alpn },
    })
}

/// Accepts TLS on a fresh connection, of which `read` was received already.
pub(crate) async fn accept(
    config: Arc<ServerConfig>,
    carrier: impl Into<Carrier>,
    traffic: &Traffic,
    read: &[u8],
) -> Result<Established, Error> {
    let mut handshake = Handshake::server(config)?;
    let mut carrier = carrier.into();
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
    drive(&mut handshake, &mut wire, |seen| {
        if sni.is_none() {
            sni = sniff::server_name(seen).map(|name| name.as_str().to_owned());
        }
    })
    .await?;
    let received = wire.input[..wire.filled].to_vec();
    established(handshake, received, carrier, sni.unwrap_or_default())
}

/// Starts TLS on a connection that we dialled.
pub(crate) async fn connect(
    config: Arc<ClientConfig>,
    name: ServerName<'static>,
    carrier: impl Into<Carrier>,
    traffic: &Traffic,
) -> Result<Established, Error> {
    let mut handshake = Handshake::client(config, name)?;
    let mut carrier = carrier.into();
    let mut wire = Wire::new(&mut carrier, traffic);
    drive(&mut handshake, &mut wire, |_| {}).await?;
    let received = wire.input[..wire.filled].to_vec();
    established(handshake, received, carrier, String::new())
}
