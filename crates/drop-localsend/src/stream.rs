//! Connections to and from devices: TCP, with TLS on it or in clear.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use sealway_tls_tokio::TlsStream;
use socket2::{SockRef, TcpKeepalive};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

use crate::error::Error;
use crate::fingerprint::Fingerprint;
use crate::message::Protocol;
use crate::tls::Tls;

/// How long a connection, and its handshake, may take.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// What an end that is gone is noticed by while a person decides at the other one.
const KEEPALIVE: Duration = Duration::from_secs(15);

/// Either.
#[derive(Debug)]
pub(crate) enum Stream {
    Clear(TcpStream),
    Tls(Box<TlsStream<TcpStream>>),
}

/// Where a device is, and what it is to prove.
#[derive(Clone, Debug)]
pub struct Place {
    /// Where.
    pub address: SocketAddr,
    /// How it is spoken to.
    pub protocol: Protocol,
    /// The certificate that it must have; any, without.
    pub pin: Option<Fingerprint>,
}

fn tune(tcp: &TcpStream) -> io::Result<()> {
    tcp.set_nodelay(true)?;
    let keepalive = TcpKeepalive::new().with_time(KEEPALIVE).with_interval(KEEPALIVE);
    SockRef::from(tcp).set_tcp_keepalive(&keepalive)
}

/// Takes a connection that came; says which certificate the client showed.
pub(crate) async fn accept(tcp: TcpStream, tls: Option<&Tls>) -> io::Result<(Stream, Option<Fingerprint>)> {
    tune(&tcp)?;
    let Some(tls) = tls else {
        return Ok((Stream::Clear(tcp), None));
    };
    let accepting = sealway_tls_tokio::accept(tls.server(), tcp);
    let stream = tokio::time::timeout(PATIENCE, accepting).await??;
    let certificate = stream.peer_certificate().map(|der| Fingerprint::of(der));
    Ok((Stream::Tls(Box::new(stream)), certificate))
}

/// Connects; says which certificate the server showed.
pub(crate) async fn connect(
    place: &Place,
    tls: &Tls,
    name: &str,
    patience: Duration,
) -> Result<(Stream, Option<Fingerprint>), Error> {
    let address = place.address;
    let failed = |source| Error::Network {
        doing: format!("connecting to {address}"),
        source,
    };
    let connecting = async {
        let tcp = TcpStream::connect(address).await.map_err(failed)?;
        tune(&tcp).map_err(failed)?;
        if place.protocol == Protocol::Http {
            return Ok((Stream::Clear(tcp), None));
        }
        let (config, seen) = tls.client(place.pin)?;
        match sealway_tls_tokio::connect(config, address.ip().into(), tcp).await {
            Ok(stream) => Ok((Stream::Tls(Box::new(stream)), seen.seen())),
            Err(_) if let (true, Some(expected)) = (seen.is_other(), place.pin) => Err(Error::OtherCertificate {
                name: name.to_owned(),
                expected,
                found: seen.seen(),
            }),
            Err(error) => Err(of_tls(error, format!("connecting to {address}"))),
        }
    };
    let late = || failed(io::ErrorKind::TimedOut.into());
    tokio::time::timeout(patience, connecting)
        .await
        .unwrap_or_else(|_| Err(late()))
}

/// What an error of a connection means: that a certificate was wanted comes as an alert, with the first byte that is read.
pub(crate) fn of_tls(error: io::Error, doing: String) -> Error {
    use rustls::{AlertDescription, Error as Tls, InvalidMessage};
    let inner = error.get_ref().and_then(|inner| inner.downcast_ref::<Tls>());
    match inner {
        Some(Tls::AlertReceived(
            AlertDescription::CertificateRequired
            | AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateUnknown,
        )) => Error::WantsCertificate,
        Some(Tls::InvalidMessage(InvalidMessage::InvalidContentType)) => Error::Clear,
        _ => Error::Network { doing, source: error },
    }
}

impl Stream {
    fn inner(self: Pin<&mut Self>) -> Pin<&mut dyn Duplex> {
        match self.get_mut() {
            Stream::Clear(stream) => Pin::new(stream),
            Stream::Tls(stream) => Pin::new(&mut **stream),
        }
    }
}

trait Duplex: AsyncRead + AsyncWrite + Unpin {}
impl<T: AsyncRead + AsyncWrite + Unpin> Duplex for T {}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        self.inner().poll_read(cx, buf)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.inner().poll_write(cx, buf)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.inner().poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner().poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.inner().poll_shutdown(cx)
    }
}
