//! XHTTP: a stream carried by ordinary HTTP requests, in HTTP/1.1 or HTTP/2.
//!
//! ```text
//!  server   a connection's server: requests become streams, or parts of a session
//!  session  what goes up, in its order, by whichever requests it comes
//!  client   streams of a client; upload sends numbered requests
//!  way      a client's connections, and single requests on them
//!  half     one request and its answer, in either version; http1 is that of HTTP/1.1
//! ```
//!
//! What requests look like and what they mean is in [`sealway_v2ray::xhttp`].

mod answer;
mod client;
mod half;
mod http1;
mod server;
mod session;
mod upload;
mod way;

use std::sync::Arc;

use super::{Accepted, Arrival, Dial, Line, Transport};
use crate::error::Pending;
use crate::settings;
use crate::stream::Stream;

use client::{Client, Download};
use server::Shared;
use way::Way;

/// The transport, for either side.
pub(super) struct Xhttp {
    http2: bool,
    server: Arc<Shared>,
    client: Client,
}

impl Xhttp {
    /// `download` dials where a client asks for what comes down, if the settings name such a place.
    pub(super) fn new(settings: settings::Xhttp, download: Option<Arc<Line>>) -> Self {
        let download = settings.download.as_ref().zip(download).map(|(place, line)| {
            let way = match &place.transport.kind {
                settings::TransportKind::Xhttp(own) => Way::new(&own.http, own.http2),
                _ => Way::new(&settings.http, settings.http2),
            };
            Download {
                line,
                server: place.server.clone(),
                way,
            }
        });
        Xhttp {
            http2: settings.http2,
            client: Client::new(&settings, download),
            server: Arc::new(Shared::new(settings)),
        }
    }
}

impl Transport for Xhttp {
    fn alpn(&self) -> &'static str {
        if self.http2 { "h2" } else { "http/1.1" }
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn accept<'a>(&'a self, accepted: Accepted) -> Pending<'a, Arrival> {
        Box::pin(Arc::clone(&self.server).accept(accepted))
    }

    fn connect<'a>(&'a self, dial: Dial<'a>) -> Pending<'a, (Stream, usize)> {
        Box::pin(async move {
            let stream = self.client.connect(dial.line, dial.remote, dial.traffic).await?;
            Ok((stream, 0))
        })
    }
}
