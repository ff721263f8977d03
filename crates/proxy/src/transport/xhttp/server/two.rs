//! A server's connection of HTTP/2.

use std::io;
use std::sync::Arc;

use sealway_v2ray::xhttp::serve::{Answered, client_address};
use sealway_v2ray::xhttp::{Ask, Incoming, judge};
use tokio::task::JoinSet;

use super::super::half::{Half, Whole};
use super::down::Down;
use super::{Like, Shared};
use crate::error::{Error, Pending};
use crate::stats::Traffic;
use crate::stream::Stream;
use crate::transport::http2::{self, Exchange};
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
        let parts = &exchange.request;
        let host = parts.uri.authority().map(|authority| authority.as_str());
        let headers: Vec<(&str, &str)> = parts
            .headers
            .iter()
            .filter_map(|(name, value)| Some((name.as_str(), value.to_str().ok()?)))
            .collect();
        let request = Incoming {
            method: parts.method.as_str(),
            target: parts.uri.path_and_query().map_or("/", |target| target.as_str()),
            host: host
                .or_else(|| {
                    headers
                        .iter()
                        .find(|(name, _)| *name == "host")
                        .map(|(_, value)| *value)
                })
                .unwrap_or_default(),
            headers,
        };
        let shared = &self.shared;
        let client = client_address(&request, &shared.settings.trusted_forwarded_for);
        let asked = judge(&shared.settings.http, &request);
        let answer = |status, to| shared.answer(Some(&request), status, to);
        let refuse = |status| answer(status, Answered::Other).map(|answer| answer.response());
        match asked {
            Err(refusal) => {
                let head = refuse(refusal.status)?;
                exchange.refuse(head);
            }
            Ok(Ask::Options) => {
                let head = refuse(200)?;
                exchange.refuse(head);
            }
            Ok(Ask::One) => {
                let head = answer(200, Answered::Down)?.response();
                let mut body = exchange.accept(head, None);
                if body.begin().is_err() {
                    // The client has taken it back: the other streams go on.
                    return Ok(None);
                }
                let whole = Whole::new(Half::Two(Box::new(body)));
                let stream = Stream::new(Box::new(whole), Traffic::default());
                return Ok(Some((self.like)(stream, client)));
            }
            Ok(Ask::Down { session }) => match shared.table.down(&session) {
                Ok(session) => {
                    let head = answer(200, Answered::Down)?.response();
                    let mut body = exchange.accept(head, None);
                    // As many wait for what comes up as there may be sessions. If they took the places of strangers, those who
                    // bring it up would not be heard.
                    body.excuse();
                    // The client, or who stands between, may wait for the head before it sends anything up.
                    if body.begin().is_err() {
                        return Ok(None);
                    }
                    return Ok(Some((self.like)(
                        Down::stream(session, Half::Two(Box::new(body))),
                        client,
                    )));
                }
                Err(failure) => {
                    let head = refuse(failure.status())?;
                    exchange.refuse(head);
                }
            },
            Ok(Ask::Up { session, padded }) => {
                let begun = shared
                    .table
                    .find(&session)
                    .and_then(|session| session.begin_up().map(|()| session));
                match begun {
                    Ok(session) => {
                        let head = answer(200, Answered::Up)?.response();
                        let mut body = exchange.accept(head, None);
                        if body.begin().is_err() {
                            session.end(io::ErrorKind::ConnectionReset);
                            return Ok(None);
                        }
                        let shared = Arc::clone(shared);
                        self.tasks
                            .spawn(async move { shared.up(&session, Half::Two(Box::new(body)), padded).await });
                    }
                    Err(failure) => {
                        let head = refuse(failure.status())?;
                        exchange.refuse(head);
                    }
                }
            }
            Ok(Ask::Post {
                session,
                seq,
                in_head,
                no_body,
            }) => {
                let head = refuse(200)?;
                let body = exchange.accept(head, None);
                let shared = Arc::clone(shared);
                self.tasks.spawn(async move {
                    let mut half = Half::Two(Box::new(body));
                    let posted = shared.post(&session, seq, in_head, no_body, &mut half).await;
                    if let (Err(failure), Half::Two(body)) = (posted, &mut half)
                        && let Some(head) = body.head_mut()
                    {
                        let status = http::StatusCode::from_u16(failure.status());
                        *head.status_mut() = status.unwrap_or(http::StatusCode::INTERNAL_SERVER_ERROR);
                    }
                    half.leave();
                });
            }
        }
        Ok(None)
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
