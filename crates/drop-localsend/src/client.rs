//! Requests to a device, over a connection that is kept.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Frame, Incoming, SizeHint};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Method, Request, Response, StatusCode, header};
use hyper_util::rt::TokioIo;
use sealway_drop_transfer::progress::{Progress, UnderWay};
use sealway_drop_transfer::source::SourceFile;

use crate::calls::CANCEL;
use crate::error::Error;
use crate::fingerprint::Fingerprint;
use crate::message::{MAX_MESSAGE, reason};
use crate::query::target;
use crate::stream::{Place, connect, of_tls};
use crate::tls::Tls;

/// Bytes of a file that are read at once.
const PIECE: usize = 256 << 10;
/// How long the last word may take.
const FAREWELL: Duration = Duration::from_secs(2);

/// A connection to a device.
pub(crate) struct Client {
    requests: SendRequest<Outgoing>,
    host: String,
    /// The certificate that the device showed.
    pub(crate) certificate: Option<Fingerprint>,
}

impl Client {
    /// Connects; `name` is what the device is called in errors.
    pub(crate) async fn connect(place: &Place, tls: &Tls, name: &str, patience: Duration) -> Result<Client, Error> {
        let (stream, certificate) = connect(place, tls, name, patience).await?;
        let host = place.address.to_string();
        let handshake = http1::Builder::new().handshake(TokioIo::new(stream)).await;
        let (requests, connection) = handshake.map_err(|error| of_http(error, &host))?;
        tokio::spawn(async move {
            // What goes wrong with it the request says.
            let _ = connection.await;
        });
        Ok(Client {
            requests,
            host,
            certificate,
        })
    }

    pub(crate) fn is_closed(&self) -> bool {
        self.requests.is_closed()
    }

    /// A request, and the head of its answer. Redirects are not followed: an answer is the device's own.
    pub(crate) async fn ask(
        &mut self,
        method: Method,
        target: &str,
        kind: &str,
        body: Outgoing,
    ) -> Result<Response<Incoming>, Error> {
        let mut request = Request::builder()
            .method(method)
            .uri(target)
            .header(header::HOST, &self.host);
        if !kind.is_empty() {
            request = request.header(header::CONTENT_TYPE, kind);
        }
        let request = request
            .body(body)
            .map_err(|error| Error::Usage(format!("a request that cannot be made: {error}")))?;
        let host = &self.host;
        self.requests.ready().await.map_err(|error| of_http(error, host))?;
        self.requests
            .send_request(request)
            .await
            .map_err(|error| of_http(error, host))
    }

    /// A request with JSON.
    pub(crate) async fn post(&mut self, target: &str, json: Vec<u8>) -> Result<Response<Incoming>, Error> {
        let kind = if json.is_empty() { "" } else { "application/json" };
        self.ask(Method::POST, target, kind, Outgoing::of(json)).await
    }
}

/// Tells a device, which would wait for a person to notice, that nothing more comes of a session.
pub(crate) async fn farewell(place: &Place, tls: &Tls, session: Option<&str>) {
    let telling = async {
        let mut client = Client::connect(place, tls, "", FAREWELL).await?;
        client.post(&target(CANCEL, &[("sessionId", session)]), vec![]).await
    };
    let _ = tokio::time::timeout(FAREWELL, telling).await;
}

/// The whole body of an answer, if it is no longer than this.
pub(crate) async fn whole(answer: Response<Incoming>, limit: usize) -> Result<Bytes, Error> {
    let body = Limited::new(answer.into_body(), limit).collect().await;
    body.map(|body| body.to_bytes()).map_err(|error| Error::Malformed {
        what: "an answer",
        why: error.to_string(),
    })
}

/// What an answer that is no success means.
pub(crate) async fn refusal(call: &'static str, answer: Response<Incoming>) -> Error {
    let status = answer.status();
    let body = whole(answer, MAX_MESSAGE).await.unwrap_or_default();
    let text = reason(&body);
    match status {
        StatusCode::UNAUTHORIZED if text.contains("nvalid") => Error::PinWrong,
        StatusCode::UNAUTHORIZED => Error::PinWanted,
        StatusCode::FORBIDDEN => Error::Rejected(match text.as_str() {
            "Rejected" | "File request declined by recipient" => String::new(),
            _ => text,
        }),
        StatusCode::CONFLICT => Error::Busy,
        StatusCode::TOO_MANY_REQUESTS => Error::PinLocked,
        status => Error::Status {
            call,
            status: status.as_u16(),
            text,
        },
    }
}

/// What hyper says, down to what the connection said.
pub(crate) fn of_http(error: hyper::Error, host: &str) -> Error {
    let doing = format!("talking to {host}");
    let mut cause: &(dyn std::error::Error + 'static) = &error;
    while let Some(inner) = cause.source() {
        cause = inner;
        if let Some(io) = cause.downcast_ref::<io::Error>() {
            let inner = io.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>());
            let again = match inner {
                Some(tls) => io::Error::new(io.kind(), tls.clone()),
                None => io::Error::new(io.kind(), io.to_string()),
            };
            return of_tls(again, doing);
        }
    }
    let source = match error.is_incomplete_message() || error.is_canceled() || error.is_closed() {
        true => io::ErrorKind::UnexpectedEof.into(),
        false => io::Error::other(error.to_string()),
    };
    Error::Network { doing, source }
}

/// What a request carries.
pub(crate) enum Outgoing {
    Whole(Option<Bytes>),
    File(Reading),
}

/// A file, read as it is sent.
pub(crate) struct Reading {
    file: SourceFile,
    at: u64,
    /// What the connection was given; the oldest is the first that it lets go of.
    lent: VecDeque<Bytes>,
    progress: Arc<Progress>,
    under_way: Arc<UnderWay>,
    /// What has been handed to the connection.
    moved: Arc<AtomicU64>,
}

impl Outgoing {
    pub(crate) fn of(bytes: impl Into<Bytes>) -> Outgoing {
        let bytes = bytes.into();
        Outgoing::Whole((!bytes.is_empty()).then_some(bytes))
    }

    pub(crate) fn file(
        file: SourceFile,
        progress: Arc<Progress>,
        under_way: Arc<UnderWay>,
        moved: Arc<AtomicU64>,
    ) -> Outgoing {
        Outgoing::File(Reading {
            file,
            at: 0,
            lent: VecDeque::new(),
            progress,
            under_way,
            moved,
        })
    }
}

impl Reading {
    fn rest(&self) -> u64 {
        self.file.size() - self.at
    }

    fn next(&mut self) -> Option<io::Result<Bytes>> {
        let len = usize::try_from(self.rest()).unwrap_or(usize::MAX).min(PIECE);
        if len == 0 {
            return None;
        }
        let mut piece = self.room(len);
        // Mostly from memory: handing the thread's other work to another one would cost more. Few are read at a time.
        if let Err(error) = self.file.read_at(&mut piece, self.at) {
            return Some(Err(io::Error::other(error)));
        }
        self.at += len as u64;
        self.progress.moved_of(&self.under_way, len as u64);
        self.moved.fetch_add(len as u64, Ordering::Relaxed);
        let piece = piece.freeze();
        self.lent.push_back(piece.clone());
        Some(Ok(piece))
    }

    /// Room for so many bytes: that of a piece which has been sent, so that it need not be cleared.
    fn room(&mut self, len: usize) -> BytesMut {
        let mut room = match self.lent.pop_front().map(Bytes::try_into_mut) {
            Some(Ok(room)) => room,
            Some(Err(held)) => {
                self.lent.push_front(held);
                BytesMut::new()
            }
            None => BytesMut::new(),
        };
        room.resize(len, 0);
        room
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let next = match self.get_mut() {
            Outgoing::Whole(bytes) => bytes.take().map(Ok),
            Outgoing::File(reading) => reading.next(),
        };
        Poll::Ready(next.map(|next| next.map(Frame::data)))
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Outgoing::Whole(bytes) => bytes.is_none(),
            Outgoing::File(reading) => reading.rest() == 0,
        }
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(match self {
            Outgoing::Whole(bytes) => bytes.as_ref().map_or(0, |bytes| bytes.len() as u64),
            Outgoing::File(reading) => reading.rest(),
        })
    }
}
