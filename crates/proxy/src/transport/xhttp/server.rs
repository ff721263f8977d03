//! A server's connections: requests are read, judged, and become streams or parts of them.

mod down;
mod one;
mod two;

use std::future::poll_fn;
use std::net::IpAddr;
use std::sync::Arc;
use std::task::Context;

use sealway_v2ray::xhttp::serve::Answered;
use sealway_v2ray::xhttp::{Incoming, Post};

use super::answer::{Answer, Pads};
use super::half::Half;
use super::session::{Failure, Session, Table};
use crate::error::Error;
use crate::settings;
use crate::stream::Stream;
use crate::transport::http2::{self, Options};
use crate::transport::{Accepted, Arrival};

use one::One;
use two::Two;

/// What connections of an inbound share.
pub(super) struct Shared {
    settings: settings::Xhttp,
    table: Arc<Table>,
}

/// An arrival like that of the connection, over another stream, from the client that a server in front names.
type Like = Box<dyn Fn(Stream, Option<IpAddr>) -> Accepted + Send>;

impl Shared {
    pub(super) fn new(settings: settings::Xhttp) -> Self {
        let http = &settings.http;
        let table = Table::new(http.each_post_bytes.to as usize, http.max_buffered_posts as usize);
        Shared { settings, table }
    }

    /// Begins as the server of a connection, in whichever version of HTTP the client speaks.
    pub(super) async fn accept(self: Arc<Self>, accepted: Accepted) -> Result<Arrival, Error> {
        let Accepted {
            mut stream,
            source,
            local,
            forwarded,
            agreed,
        } = accepted;
        let two = agreed.alpn == "h2" || is_http2(&mut stream).await?;
        let like: Like = Box::new(move |stream, client| {
            let mut accepted = Accepted {
                stream,
                source,
                local,
                forwarded,
                agreed: agreed.clone(),
            };
            accepted.forwarded_for(client);
            accepted
        });
        if two {
            let options = Options {
                max_headers: self.settings.http.max_header_bytes.saturating_add(4096),
                ..Options::default()
            };
            let server = http2::Server::begin(stream, options).await?;
            return Ok(Arrival::Many(Box::new(Two::new(self, server, like))));
        }
        Ok(Arrival::Many(Box::new(One::new(self, stream, like))))
    }

    fn answer(&self, request: Option<&Incoming<'_>>, status: u16, to: Answered) -> Result<Answer, Error> {
        Answer::new(&self.settings.http, request, status, to)
    }

    /// Passes on a request without an end.
    async fn up(&self, session: &Session, mut half: Half, padded: bool) {
        let http = &self.settings.http;
        let every = http.stream_up_server_secs.filter(|_| padded);
        let mut pads = every.and_then(|every| Pads::new(http, every).ok());
        let beside = |half: &mut Half, cx: &mut Context<'_>| {
            if let Some(pads) = &mut pads {
                pads.poll(half, cx);
            }
        };
        match session.up(&mut half, beside).await {
            Ok(()) => half.leave(),
            Err(_) => half.reset_on_close(),
        }
    }
}

/// Whether a client begins with HTTP/2: its preface, `PRI * HTTP/2.0`, is no request of HTTP/1.1.
async fn is_http2(stream: &mut Stream) -> Result<bool, Error> {
    loop {
        let seen = stream.payload().len().min(3);
        if stream.payload()[..seen] != b"PRI"[..seen] {
            return Ok(false);
        }
        if seen == 3 {
            return Ok(true);
        }
        if !stream.more().await? {
            return Err(Error::Closed);
        }
    }
}

impl Shared {
    /// Takes a numbered request.
    async fn post(&self, post: Post, half: &mut Half) -> Result<(), Failure> {
        let session = self.table.find(&post.session)?;
        if session.is_trusted() {
            half.trust();
        }
        if post.no_body {
            // What is no part of it is read all the same, so that the next request is found.
            let mut nothing = 0;
            while let Some(n) = poll_fn(|cx| half.poll_take(cx, 4096, <[u8]>::len))
                .await
                .map_err(|_| Failure::Gone)?
            {
                nothing += n;
                if nothing > 4096 {
                    return Err(Failure::TooLarge);
                }
            }
        }
        session.post(post.seq, post.in_head, half).await
    }
}

#[cfg(test)]
mod tests;
