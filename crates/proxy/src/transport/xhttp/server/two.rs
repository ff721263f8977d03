//! A server's connection of HTTP/2.

use std::io;
use std::sync::Arc;

use sealway_v2ray::xhttp::serve::{Answered, client_address};
use sealway_v2ray::xhttp::{Ask, Incoming, Post, Refusal, judge};
use tokio::task::JoinSet;

use super::super::half::{Half, Whole};
use super::super::session::{Failure, Held, Session, Table};
use super::down::Down;
use super::{Like, Shared};
use crate::error::{Error, Pending};
use crate::stats::Traffic;
use crate::stream::Stream;
use crate::transport::http2::{self, Body, Exchange};
use crate::transport::{Accepted, Many};

/// A connection of HTTP/2.
pub(super) struct Two {
    shared: Arc<Shared>,
    server: http2::Server,
    like: Like,
    /// Requests that bring something up.
    tasks: JoinSet<()>,
}

impl Two {
    pub(super) fn new(shared: Arc<Shared>, server: http2::Server, like: Like) -> Self {
        Two {
            shared,
            server,
            like,
            tasks: JoinSet::new(),
        }
    }

    fn serve(&mut self, exchange: Exchange) -> Result<Option<Accepted>, Error> {
        let shared = &self.shared;
        let request = incoming(&exchange.request);
        let client = client_address(&request, &shared.settings.trusted_forwarded_for);
        let act = Act::of(judge(&shared.settings.http, &request), &shared.table);
        let (status, to) = act.answer();
        let head = shared.answer(Some(&request), status, to)?.response();
        // Where a body cannot begin, the client has taken the request back: the other streams go on.
        let stream = match act {
            Act::Refuse(_) => {
                exchange.refuse(head);
                None
            }
            Act::One => {
                let mut body = exchange.accept(head, None);
                body.begin().is_ok().then(|| {
                    let whole = Whole::new(Half::Two(Box::new(body)), ());
                    Stream::new(Box::new(whole), Traffic::default())
                })
            }
            Act::Down(session) => {
                let mut body = exchange.accept(head, None);
                // As many wait for what comes up as there may be sessions. If they took the places of strangers, those who
                // bring it up would not be heard.
                body.excuse();
                // The client, or who stands between, may wait for the head before it sends anything up.
                body.begin()
                    .is_ok()
                    .then(|| Down::stream(session, Half::Two(Box::new(body))))
            }
            Act::Up(session, padded) => {
                let mut body = exchange.accept(head, None);
                if body.begin().is_err() {
                    session.end(io::ErrorKind::ConnectionReset);
                    return Ok(None);
                }
                let shared = Arc::clone(shared);
                self.tasks
                    .spawn(async move { shared.up(&session, Half::Two(Box::new(body)), padded).await });
                None
            }
            Act::Post(post) => {
                let body = exchange.accept(head, None);
                self.tasks.spawn(take(Arc::clone(shared), post, body));
                None
            }
        };
        Ok(stream.map(|stream| (self.like)(stream, client)))
    }

    async fn drive(&mut self) -> Result<Option<Accepted>, Error> {
        loop {
            while self.tasks.try_join_next().is_some() {}
            match self.server.next().await {
                Ok(Some(exchange)) => {
                    if let Some(accepted) = self.serve(exchange)? {
                        return Ok(Some(accepted));
                    }
                }
                ended => {
                    // What has arrived is still passed on.
                    while self.tasks.join_next().await.is_some() {}
                    return ended.map(|_| None);
                }
            }
        }
    }
}

impl Many for Two {
    fn next(&mut self) -> Pending<'_, Option<Accepted>> {
        Box::pin(self.drive())
    }
}

/// What becomes of a request.
enum Act {
    Refuse(u16),
    One,
    Down(Held),
    Up(Arc<Session>, bool),
    Post(Post),
}

impl Act {
    fn of(asked: Result<Ask, Refusal>, table: &Arc<Table>) -> Act {
        let failed = |failure: Failure| Act::Refuse(failure.status());
        match asked {
            Err(refusal) => Act::Refuse(refusal.status),
            Ok(Ask::Options) => Act::Refuse(200),
            Ok(Ask::One) => Act::One,
            Ok(Ask::Down { session }) => table.down(&session).map_or_else(failed, Act::Down),
            Ok(Ask::Up { session, padded }) => table.up(&session).map_or_else(failed, |up| Act::Up(up, padded)),
            Ok(Ask::Post(post)) => Act::Post(post),
        }
    }

    /// The status it is answered with, and as what.
    fn answer(&self) -> (u16, Answered) {
        match self {
            Act::Refuse(status) => (*status, Answered::Other),
            Act::One | Act::Down(_) => (200, Answered::Down),
            Act::Up(..) => (200, Answered::Up),
            Act::Post(_) => (200, Answered::Other),
        }
    }
}

fn incoming(request: &http::request::Parts) -> Incoming<'_> {
    let headers = request.headers.iter();
    let headers: Vec<(&str, &str)> = headers
        .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
        .collect();
    let named = || {
        headers
            .iter()
            .find(|(name, _)| *name == "host")
            .map(|(_, value)| *value)
    };
    let authority = request.uri.authority().map(|authority| authority.as_str());
    let host = authority.or_else(named).unwrap_or_default();
    Incoming {
        method: request.method.as_str(),
        target: request.uri.path_and_query().map_or("/", |target| target.as_str()),
        host,
        headers,
    }
}

/// Takes a numbered request, whose answer waits for it.
async fn take(shared: Arc<Shared>, post: Post, body: Body) {
    let mut half = Half::Two(Box::new(body));
    let posted = shared.post(post, &mut half).await;
    if let (Err(failure), Half::Two(body)) = (posted, &mut half)
        && let Some(head) = body.head_mut()
    {
        let status = http::StatusCode::from_u16(failure.status());
        *head.status_mut() = status.unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
    }
    half.leave();
}
