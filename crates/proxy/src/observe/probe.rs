//! One measurement: a request of HTTP/1.1, alone on its connection.

use std::sync::Arc;
use std::time::Duration;

use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use sealway_v2ray::http::head::parse_response;
use sealway_v2ray::{Address, Destination, Protocol, Step};
use tokio::time::{Instant, timeout};

use crate::carrier::Carrier;
use crate::dial;
use crate::error::Error;
use crate::resolver::Resolver;
use crate::roads::{Caller, Roads};
use crate::settings::{ClientTls, DomainStrategy, ProbeMethod, ProbeUrl, SocketOptions};
use crate::stats::Traffic;
use crate::stream::Stream;
use crate::tls::{build, handshake};

/// Longest head of an answer, bytes.
const MAX_HEAD: usize = 16 << 10;

/// What is asked for, and how long that may take.
pub(super) struct Probe {
    to: Destination,
    tls: Option<(Arc<ClientConfig>, ServerName<'static>)>,
    request: Vec<u8>,
    limit: Duration,
}

impl Probe {
    pub(super) fn new(place: &str, url: &ProbeUrl, method: ProbeMethod, limit: Duration) -> Result<Self, Error> {
        let tls = match url.tls {
            true => {
                let tls = ClientTls {
                    alpn: vec!["http/1.1".to_owned()],
                    ..ClientTls::default()
                };
                let name = build::server_name(place, &url.host.to_string())?;
                Some((build::client(place, &tls)?, name))
            }
            false => None,
        };
        let host = match &url.host {
            Address::Ipv6(ip) => format!("[{ip}]"),
            other => other.to_string(),
        };
        let host = match (url.tls, url.port) {
            (true, 443) | (false, 80) => host,
            (_, port) => format!("{host}:{port}"),
        };
        let request = format!(
            "{} {} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: curl/8.5.0\r\nAccept: */*\r\nConnection: close\r\n\r\n",
            method.as_str(),
            url.path
        );
        Ok(Probe {
            to: Destination::tcp(url.host.clone(), url.port),
            tls,
            request: request.into_bytes(),
            limit,
        })
    }

    /// How long an answer takes through an outbound.
    pub(super) async fn through(&self, roads: &Roads, outbound: &Arc<str>) -> Result<Duration, Error> {
        self.timed(async {
            let caller = Caller::default();
            let stream = roads.through(outbound, &self.to, &caller).await?;
            self.ask(stream.into_carrier()).await
        })
        .await
    }

    /// How long an answer takes without any outbound.
    pub(super) async fn straight(&self, resolver: &Resolver) -> Result<Duration, Error> {
        self.timed(async {
            let (host, port) = (&self.to.address, self.to.port);
            let found = resolver.resolve(host, port, DomainStrategy::default()).await?;
            let sock = dial::connect_any(&found, &SocketOptions::default(), None).await?;
            self.ask(Carrier::from(sock)).await
        })
        .await
    }

    async fn timed(&self, asking: impl Future<Output = Result<(), Error>>) -> Result<Duration, Error> {
        let since = Instant::now();
        timeout(self.limit, asking)
            .await
            .map_err(|_| Error::TimedOut("answer to a measurement"))??;
        Ok(since.elapsed())
    }

    /// Asks, and waits for the head of an answer, whatever it says.
    async fn ask(&self, carrier: Carrier) -> Result<(), Error> {
        let traffic = Traffic::default();
        let mut stream = match &self.tls {
            None => Stream::new(carrier, traffic),
            Some((config, name)) => {
                let established = handshake::connect(Arc::clone(config), name.clone(), carrier, &traffic).await?;
                Stream::over_tls(established, traffic)
            }
        };
        stream.send(&self.request).await?;
        stream
            .read(|bytes| match parse_response(bytes, MAX_HEAD, Protocol::Http)? {
                Step::More(n) => Ok::<_, sealway_v2ray::Error>(Step::More(n)),
                Step::Done { used, .. } => Ok(Step::Done { value: (), used }),
            })
            .await
    }
}
