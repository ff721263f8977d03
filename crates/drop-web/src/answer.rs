//! What is answered to a request.

mod give;
mod take;

use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use hyper::body::Incoming;
use hyper::header::{
    ACCEPT, ALLOW, AUTHORIZATION, CACHE_CONTROL, CONTENT_LENGTH, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HOST,
    HeaderMap, HeaderName, HeaderValue, ORIGIN, REFERRER_POLICY, WWW_AUTHENTICATE, X_CONTENT_TYPE_OPTIONS,
    X_FRAME_OPTIONS,
};
use hyper::{Method, Request, Response, StatusCode};
use sealway_drop::places::{Place, Places};
use tokio::sync::Semaphore;

use crate::body::Body;
use crate::guesses::{Guess, Guesses};
use crate::head;
use crate::page;
use crate::path;
use crate::secret::{Secret, password};
use crate::shared::Shared;
use crate::telling::Telling;
use crate::upload::Inbox;
use crate::wire::Pieces;

/// Of what is not a page: it runs nothing, loads nothing, and has the rights of no origin.
const SANDBOX: &str =
    "sandbox; default-src 'none'; img-src 'self'; media-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'none'";
/// The same for PDF, whose viewers do not start in a sandbox. It has no scripts that a page could have.
const VIEWER: &str = "default-src 'none'; object-src 'self'; style-src 'unsafe-inline'; frame-ancestors 'none'";
/// Kept apart from the pages of other sites, also in memory.
const APART: [(HeaderName, &str); 2] = [
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];
/// What browsers say of where a request comes from.
const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// What is served.
pub(crate) struct Web {
    /// What may be read; `None` for a folder that only takes files.
    pub(crate) shared: Option<Arc<Shared>>,
    /// Where files may be sent.
    pub(crate) inbox: Option<Arc<Inbox>>,
    pub(crate) token: Secret,
    pub(crate) pin: Option<Secret>,
    /// Names beside addresses under which this server is asked.
    pub(crate) names: Vec<String>,
    pub(crate) scheme: &'static str,
    pub(crate) telling: Arc<dyn Telling>,
    pub(crate) guesses: Guesses,
    /// Archives that are being made.
    pub(crate) archives: Arc<Semaphore>,
    /// Files that are coming.
    pub(crate) uploads: Places,
}

/// Who asks, and how its connection sends files.
#[derive(Clone)]
pub(crate) struct Client {
    pub(crate) address: IpAddr,
    pub(crate) pieces: Pieces,
}

pub(crate) type Answer = Response<Body>;

/// Answers.
pub(crate) async fn answer(web: Arc<Web>, client: Client, request: Request<Incoming>) -> Answer {
    let head = request.method() == Method::HEAD;
    let json = request
        .headers()
        .get(ACCEPT)
        .is_some_and(|kind| kind.as_bytes().starts_with(b"application/json"));
    let mut answer = match decide(&web, &client, request).await {
        Ok(answer) => answer,
        Err(no) => no.answer(json),
    };
    let headers = answer.headers_mut();
    let mut say = |name: HeaderName, value: &'static str| {
        headers.entry(name).or_insert(HeaderValue::from_static(value));
    };
    say(X_CONTENT_TYPE_OPTIONS, "nosniff");
    say(REFERRER_POLICY, "no-referrer");
    say(X_FRAME_OPTIONS, "DENY");
    say(CACHE_CONTROL, "no-store");
    say(CONTENT_SECURITY_POLICY, SANDBOX);
    for (name, value) in APART {
        say(name, value);
    }
    if head {
        // The length is said by a header; there is no body.
        let length = hyper::body::Body::size_hint(answer.body()).exact().unwrap_or(0);
        answer.headers_mut().entry(CONTENT_LENGTH).or_insert(length.into());
        *answer.body_mut() = Body::Empty;
    }
    answer
}

/// A request that is not done, and why.
pub(crate) struct No {
    status: StatusCode,
    title: &'static str,
    text: String,
    /// One that only this answer has.
    header: Option<(HeaderName, &'static str)>,
}

impl No {
    fn new(status: StatusCode, title: &'static str, text: impl Into<String>) -> No {
        No {
            status,
            title,
            text: text.into(),
            header: None,
        }
    }

    /// What has no token, and what is not there, look alike.
    fn nothing() -> No {
        No::new(
            StatusCode::NOT_FOUND,
            "Not found",
            "Nothing is here. Is the link complete?",
        )
    }

    fn with(self, name: HeaderName, value: &'static str) -> No {
        No {
            header: Some((name, value)),
            ..self
        }
    }

    fn answer(self, plain: bool) -> Answer {
        let mut answer = match plain {
            true => text(self.status, format!("{}\n", self.text)),
            false => page(self.status, page::problem(self.title, &self.text)),
        };
        if let Some((name, value)) = self.header {
            answer.headers_mut().insert(name, HeaderValue::from_static(value));
        }
        answer
    }
}

async fn decide(web: &Arc<Web>, client: &Client, request: Request<Incoming>) -> Result<Answer, No> {
    let host = host(web, &request)?;
    let target = request.uri().path_and_query().map_or("", |target| target.as_str());
    let target = path::read(target, &web.token).ok_or_else(No::nothing)?;
    check_pin(web, client, request.headers())?;
    let method = request.method().clone();
    if matches!(method, Method::GET | Method::HEAD) {
        return give::give(web, client, &request, target).await;
    }
    let not_allowed = |text, methods| No::new(StatusCode::METHOD_NOT_ALLOWED, "Not allowed", text).with(ALLOW, methods);
    let Some(inbox) = web.inbox.clone() else {
        return Err(not_allowed("Nothing can be changed here.", "GET, HEAD"));
    };
    if !matches!(method, Method::PUT | Method::POST) {
        let text = "Files can be read and sent here, and that is all.";
        return Err(not_allowed(text, "GET, HEAD, PUT, POST"));
    }
    let header = |name: HeaderName| request.headers().get(name).map(HeaderValue::as_bytes);
    if !head::is_from_here(header(ORIGIN), header(FETCH_SITE), web.scheme, &host) {
        return Err(No::new(
            StatusCode::FORBIDDEN,
            "Not from here",
            "Files are taken from the page of this server only, not from those of others.",
        ));
    }
    let _place = place(web, client)?;
    match method {
        Method::PUT => take::put(web, &inbox, client, request, target).await,
        _ => take::form(web, &inbox, client, request, target).await,
    }
}

fn place(web: &Web, client: &Client) -> Result<Place, No> {
    let busy = || {
        No::new(
            StatusCode::SERVICE_UNAVAILABLE,
            "Busy",
            "Too many files are coming at once; try again soon.",
        )
    };
    web.uploads.take(client.address).ok_or_else(busy)
}

/// The `Host`, one and no more, which must be an address or a name of ours (DNS rebinding).
fn host(web: &Web, request: &Request<Incoming>) -> Result<Vec<u8>, No> {
    let mut said = request.headers().get_all(HOST).iter();
    let (host, more) = (said.next(), said.next());
    let authority = request.uri().authority();
    let ours = |host: &[u8]| head::is_ours(host, &web.names);
    match (host, more) {
        (Some(host), None)
            if ours(host.as_bytes()) && authority.is_none_or(|named| ours(named.as_str().as_bytes())) =>
        {
            Ok(host.as_bytes().to_vec())
        }
        _ => Err(No::new(
            StatusCode::MISDIRECTED_REQUEST,
            "Another name",
            "This server is not known by that name. Use its address, or start it with --host NAME.",
        )),
    }
}

fn check_pin(web: &Web, client: &Client, headers: &HeaderMap) -> Result<(), No> {
    let Some(pin) = &web.pin else {
        return Ok(());
    };
    if !web.guesses.may(client.address) {
        return Err(No::new(
            StatusCode::TOO_MANY_REQUESTS,
            "Too many wrong PINs",
            "The PIN was wrong too often. Whoever shares this has to start again.",
        ));
    }
    let said = headers.get(AUTHORIZATION).and_then(|said| password(said.as_bytes()));
    match said {
        Some(said) if pin.is(&said) => return Ok(()),
        Some(_) if web.guesses.wrong(client.address) == Guess::Locked => web.telling.locked(),
        _ => {}
    }
    let ask = "Basic realm=\"PIN (leave the user name empty)\", charset=\"UTF-8\"";
    let no = No::new(
        StatusCode::UNAUTHORIZED,
        "PIN",
        "A PIN is needed; the user name does not matter.",
    );
    Err(no.with(WWW_AUTHENTICATE, ask))
}

fn page(status: StatusCode, page: String) -> Answer {
    let mut answer = of_kind("text/html; charset=utf-8", status, page);
    if let Ok(policy) = HeaderValue::from_str(&page::POLICY) {
        answer.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    }
    answer
}

fn text(status: StatusCode, text: impl Into<Bytes>) -> Answer {
    of_kind("text/plain; charset=utf-8", status, text)
}

fn of_kind(kind: &'static str, status: StatusCode, body: impl Into<Bytes>) -> Answer {
    let mut answer = Response::new(Body::text(body));
    *answer.status_mut() = status;
    answer
        .headers_mut()
        .insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    answer
}

/// The system's own fault; it is not for the client.
fn broken() -> No {
    No::new(
        StatusCode::INTERNAL_SERVER_ERROR,
        "Failed",
        "That did not work; it is not your fault.",
    )
}
