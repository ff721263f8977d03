//! Answers of a server, in either version of HTTP.

use std::task::{Context, Poll};

use http::header::{HeaderName, HeaderValue};
use http::{Response, StatusCode};
use sealway_v2ray::xhttp::padding::{self, Dice};
use sealway_v2ray::xhttp::serve::{Answered, Incoming, answer_headers};
use sealway_v2ray::xhttp::settings::{Settings, Span};
use tokio::time::{Duration, Instant, Sleep, sleep_until};

use super::half::Half;
use crate::error::Error;
use crate::random;

/// 64 random bits for padding.
pub(super) fn seed() -> Result<u64, Error> {
    random::bytes().map(u64::from_be_bytes)
}

/// The length of an answer's body in HTTP/1.1.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Length {
    /// None: the connection stays.
    Zero,
    /// None: the connection is closed.
    Last,
    /// Chunks: the connection is closed behind them.
    Chunks,
    /// All until the connection is closed.
    Close,
}

/// The head of an answer.
pub(super) struct Answer {
    pub(super) status: u16,
    headers: Vec<(String, String)>,
}

impl Answer {
    pub(super) fn new(
        settings: &Settings,
        request: Option<&Incoming<'_>>,
        status: u16,
        to: Answered,
    ) -> Result<Self, Error> {
        let headers = answer_headers(settings, request, to, seed()?);
        Ok(Answer { status, headers })
    }

    /// In HTTP/1.1.
    pub(super) fn head(&self, length: Length) -> Vec<u8> {
        let reason = StatusCode::from_u16(self.status)
            .ok()
            .and_then(|status| status.canonical_reason());
        let mut head = format!("HTTP/1.1 {} {}\r\n", self.status, reason.unwrap_or_default());
        for (name, value) in &self.headers {
            head.push_str(name);
            head.push_str(": ");
            head.push_str(value);
            head.push_str("\r\n");
        }
        head.push_str(match length {
            Length::Zero => "Content-Length: 0\r\n\r\n",
            Length::Last => "Content-Length: 0\r\nConnection: close\r\n\r\n",
            Length::Chunks => "Transfer-Encoding: chunked\r\nConnection: close\r\n\r\n",
            Length::Close => "Connection: close\r\n\r\n",
        });
        head.into_bytes()
    }

    /// In HTTP/2.
    pub(super) fn response(&self) -> Response<()> {
        let mut response = Response::new(());
        *response.status_mut() = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        for (name, value) in &self.headers {
            // Names and values that are no headers do not come so far.
            if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(value)) {
                response.headers_mut().append(name, value);
            }
        }
        response
    }
}

/// Padding that is sent down a request without an end, so that nobody between takes it for dead.
pub(super) struct Pads<'a> {
    settings: &'a Settings,
    every: Span,
    dice: Dice,
    timer: std::pin::Pin<Box<Sleep>>,
    pad: Vec<u8>,
}

impl<'a> Pads<'a> {
    pub(super) fn new(settings: &'a Settings, every: Span) -> Result<Self, Error> {
        Ok(Pads {
            settings,
            every,
            dice: Dice::new(seed()?),
            timer: Box::pin(sleep_until(Instant::now())),
            pad: Vec::new(),
        })
    }

    /// Sends some if it is time to.
    pub(super) fn poll(&mut self, half: &mut Half, cx: &mut Context<'_>) {
        loop {
            while !self.pad.is_empty() {
                match half.poll_write(cx, &self.pad) {
                    Poll::Ready(Ok(n)) => drop(self.pad.drain(..n)),
                    // That the client has gone is seen where it is read.
                    Poll::Ready(Err(_)) => self.pad.clear(),
                    Poll::Pending => return,
                }
            }
            if self.timer.as_mut().poll(cx).is_pending() {
                return;
            }
            let len = padding::make(&self.settings.padding, &mut self.dice).len();
            self.pad = vec![b'X'; len];
            let secs = self.every.pick(self.dice.roll()).max(1);
            let next = Instant::now() + Duration::from_secs(secs.into());
            self.timer.as_mut().reset(next);
        }
    }
}
