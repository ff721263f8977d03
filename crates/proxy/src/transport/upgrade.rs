//! The HTTP request that begins a WebSocket or HTTPUpgrade connection, on either side.

use std::net::IpAddr;

use sealway_v2ray::ws::frame::Role;
use sealway_v2ray::ws::handshake::{self, Answer, Client, Early, Server};
use sealway_v2ray::{Step, httpupgrade};

use crate::settings::HttpNetwork;
use crate::stream::Stream;
use crate::ws::Frames;
use crate::{Error, random};

/// What comes behind the request.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(crate) enum Upgrade {
    /// Frames.
    WebSocket,
    /// Bytes as they are.
    Plain,
}

fn early(settings: &HttpNetwork) -> Early {
    match settings.early_data_header.as_str() {
        "" => Early::Path,
        name if name.eq_ignore_ascii_case(sealway_v2ray::ws::early::PROTOCOL_HEADER) => Early::Protocol,
        name => Early::Header(name.to_owned()),
    }
}

/// Reads the request and answers it. Returns the client's address if a trusted server in front has told it.
pub(crate) async fn accept(
    stream: &mut Stream,
    settings: &HttpNetwork,
    kind: Upgrade,
) -> Result<Option<IpAddr>, Error> {
    let server = Server {
        path: settings.path.clone(),
        host: Some(settings.host.clone()).filter(|host| !host.is_empty()),
        early: early(settings),
        trusted: settings.trusted_forwarded_for.clone(),
    };
    loop {
        if !stream.more().await? {
            return Err(Error::Closed);
        }
        let step = match kind {
            Upgrade::WebSocket => handshake::accept(stream.payload(), &server),
            Upgrade::Plain => httpupgrade::accept(stream.payload(), &server),
        };
        let Step::Done { value, used } = step else { continue };
        stream.consume(used);
        match value {
            Answer::Upgrade { reply, early, client } => {
                stream.send(&reply).await?;
                if kind == Upgrade::WebSocket {
                    stream.set_ws(Frames::new(Role::Server));
                }
                // What came behind the head is read as if it arrived now: the protocol may be waiting there as a whole.
                if !early.is_empty() || !stream.payload().is_empty() {
                    stream.unread(&early)?;
                }
                return Ok(client);
            }
            Answer::Refuse { reply, error } => {
                stream.leave(reply).await;
                return Err(error.into());
            }
        }
    }
}

/// Sends the request and reads the answer. Returns how many of the bytes of `first` went along with it.
pub(crate) async fn connect(
    stream: &mut Stream,
    settings: &HttpNetwork,
    host: &str,
    kind: Upgrade,
    first: &[u8],
) -> Result<usize, Error> {
    let headers: Vec<(&str, &str)> = settings
        .headers
        .iter()
        .map(|(name, value)| (name.as_str(), value.as_str()))
        .collect();
    let place = early(settings);
    // In xray's style the header holds the whole of the first payload or nothing; in v2ray's, as much as fits.
    let along = match place {
        // HTTPUpgrade in xray's style would write them behind the request. Its server loses what it reads together with the
        // request, which is up to the network; so they wait for the answer.
        Early::Protocol if kind == Upgrade::Plain => &[],
        Early::Protocol if first.len() > settings.early_data => &[],
        _ => &first[..first.len().min(settings.early_data)],
    };
    let client = Client {
        host,
        path: &settings.path,
        headers: &headers,
        early: place,
        early_data: along,
    };
    let key = random::bytes()?;
    let request = match kind {
        Upgrade::WebSocket => handshake::request(&client, &key)?,
        Upgrade::Plain => httpupgrade::request(&client)?,
    };
    stream.send(&request).await?;
    loop {
        if !stream.more().await? {
            return Err(Error::Closed);
        }
        let step = match kind {
            Upgrade::WebSocket => handshake::parse_answer(stream.payload(), &key)?,
            Upgrade::Plain => httpupgrade::parse_answer(stream.payload())?,
        };
        if let Step::Done { used, .. } = step {
            stream.consume(used);
            break;
        }
    }
    if kind == Upgrade::WebSocket {
        stream.set_ws(Frames::new(Role::Client));
    }
    Ok(along.len())
}
