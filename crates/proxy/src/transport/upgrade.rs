//! WebSocket and HTTPUpgrade: transports that begin with an HTTP/1.1 request, on either side.

use std::net::IpAddr;

use sealway_v2ray::httpupgrade;
use sealway_v2ray::ws::frame::Role;
use sealway_v2ray::ws::handshake::{self, Answer, Client, Early, Server};

use super::ws::Frames;
use super::{Accepted, Arrival, Dial, Transport};
use crate::error::{Error, Pending};
use crate::stream::Stream;
use crate::{random, settings};

/// What comes behind the request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    /// Frames.
    WebSocket,
    /// Bytes as they are.
    Plain,
}

/// A transport that begins with an upgrade.
pub(super) struct Upgrade {
    settings: settings::Upgrade,
    kind: Kind,
}

impl Upgrade {
    pub(super) fn new(settings: settings::Upgrade, kind: Kind) -> Self {
        Upgrade { settings, kind }
    }

    fn early(&self) -> Early {
        match self.settings.early_data_header.as_str() {
            "" => Early::Path,
            name if name.eq_ignore_ascii_case(sealway_v2ray::ws::early::PROTOCOL_HEADER) => Early::Protocol,
            name => Early::Header(name.to_owned()),
        }
    }

    fn frame(&self, stream: &mut Stream, role: Role) {
        if self.kind == Kind::WebSocket {
            stream.set_framing(Box::new(Frames::new(role)));
        }
    }

    /// Reads the request and answers it.
    async fn answer(&self, stream: &mut Stream) -> Result<Option<IpAddr>, Error> {
        let server = Server {
            path: self.settings.path.clone(),
            host: Some(self.settings.host.clone()).filter(|host| !host.is_empty()),
            early: self.early(),
            trusted: self.settings.trusted_forwarded_for.clone(),
        };
        let accept = match self.kind {
            Kind::WebSocket => handshake::accept,
            Kind::Plain => httpupgrade::accept,
        };
        match stream.read(|bytes| Ok::<_, Error>(accept(bytes, &server))).await? {
            Answer::Upgrade { reply, early, client } => {
                stream.send(&reply).await?;
                self.frame(stream, Role::Server);
                // What came behind the head is read as if it arrived now: the protocol may be waiting there as a whole.
                if !early.is_empty() || !stream.payload().is_empty() {
                    stream.unread(&early)?;
                }
                Ok(client)
            }
            Answer::Refuse { reply, error } => {
                stream.leave(reply).await;
                Err(error.into())
            }
        }
    }

    /// Sends the request and reads the answer.
    async fn ask(&self, stream: &mut Stream, host: &str, first: &[u8]) -> Result<usize, Error> {
        let settings = &self.settings;
        let headers = settings.headers.iter();
        let headers: Vec<(&str, &str)> = headers.map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let place = self.early();
        // In xray's style the header holds the whole of the first payload or nothing; in v2ray's, as much as fits.
        let along = match place {
            // HTTPUpgrade in xray's style would write them behind the request. Its server loses what it reads together with
            // the request, which is up to the network; so they wait for the answer.
            Early::Protocol if self.kind == Kind::Plain => &[],
            Early::Protocol if first.len() > settings.early_data => &[],
            _ => &first[..first.len().min(settings.early_data)],
        };
        let client = Client {
            host: if settings.host.is_empty() { host } else { &settings.host },
            path: &settings.path,
            headers: &headers,
            early: place,
            early_data: along,
        };
        let key = random::bytes()?;
        let request = match self.kind {
            Kind::WebSocket => handshake::request(&client, &key)?,
            Kind::Plain => httpupgrade::request(&client)?,
        };
        stream.send(&request).await?;
        match self.kind {
            Kind::WebSocket => stream.read(|bytes| handshake::parse_answer(bytes, &key)).await?,
            Kind::Plain => stream.read(httpupgrade::parse_answer).await?,
        }
        self.frame(stream, Role::Client);
        Ok(along.len())
    }
}

impl Transport for Upgrade {
    fn alpn(&self) -> &'static str {
        "http/1.1"
    }

    fn accept<'a>(&'a self, mut accepted: Accepted) -> Pending<'a, Arrival> {
        Box::pin(async move {
            let client = self.answer(&mut accepted.stream).await?;
            accepted.forwarded_for(client);
            Ok(Arrival::One(Box::new(accepted)))
        })
    }

    fn connect<'a>(&'a self, dial: Dial<'a>) -> Pending<'a, (Stream, usize)> {
        Box::pin(async move {
            let (host, first) = (dial.line.host(&dial.remote.name), dial.first);
            let mut stream = dial.alone().await?;
            let sent = self.ask(&mut stream, &host, first).await?;
            Ok((stream, sent))
        })
    }
}
