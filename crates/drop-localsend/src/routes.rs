//! What this end answers, by path.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use hyper::body::Incoming;
use hyper::{Method, Request, StatusCode};
use sealway_drop::cancel::Cancel;
use sealway_drop::lock;

use crate::calls::{Answer, CANCEL, PREPARE_UPLOAD, REGISTER, UPLOAD, body, empty, failed, json_bytes};
use crate::message::{Info, MAX_MESSAGE};
use crate::node::Node;
use crate::query::Query;
use crate::receive::Receiver;
use crate::session::Who;

const INFO: [&str; 2] = ["/api/localsend/v1/info", "/api/localsend/v2/info"];

/// Answers a request.
pub(crate) async fn answer(
    node: &Node,
    receiver: Option<&Arc<Receiver>>,
    request: Request<Incoming>,
    who: Who,
    from: SocketAddr,
    gone: &Cancel,
) -> Result<Answer, Infallible> {
    // The query may hold a PIN: it is read here, and said nowhere.
    let query = Query::read(request.uri().query().unwrap_or_default());
    let path = request.uri().path().to_owned();
    Ok(match (request.method(), path.as_str()) {
        (&Method::POST, REGISTER) => register(node, request, who, from).await,
        (&Method::GET, path) if INFO.contains(&path) => match query.fingerprint {
            Some(own) if own.eq_ignore_ascii_case(&node.info().fingerprint) => {
                failed(StatusCode::PRECONDITION_FAILED, "Self-discovered")
            }
            _ => introduction(node),
        },
        (&Method::POST, call @ (PREPARE_UPLOAD | UPLOAD)) => match receiver {
            Some(receiver) if call == UPLOAD => receiver.upload(request, who, query).await,
            Some(receiver) => receiver.prepare(request, who, from, query, gone).await,
            None => failed(StatusCode::FORBIDDEN, "This device only sends"),
        },
        (&Method::POST, CANCEL) => {
            if !cancelled_there(node, who, query.session.as_deref())
                && let Some(receiver) = receiver
            {
                receiver.cancelled_there(query.session.as_deref(), who).await;
            }
            empty(StatusCode::OK)
        }
        _ => empty(StatusCode::NOT_FOUND),
    })
}

/// What this end says of itself when asked.
fn introduction(node: &Node) -> Answer {
    let info = Info {
        port: None,
        protocol: None,
        ..node.info().clone()
    };
    json_bytes(info.write())
}

async fn register(node: &Node, request: Request<Incoming>, who: Who, from: SocketAddr) -> Answer {
    let Ok(bytes) = body(request.into_body(), MAX_MESSAGE).await else {
        return failed(StatusCode::BAD_REQUEST, "Request body malformed");
    };
    match Info::read(&bytes) {
        // Whoever shows another certificate than it names is answered all the same, and not taken down.
        Ok(info) => node.hear(info, from, who.certificate),
        Err(_) => return failed(StatusCode::BAD_REQUEST, "Request body malformed"),
    }
    introduction(node)
}

/// Whether it was about what this end sends.
fn cancelled_there(node: &Node, who: Who, session: Option<&str>) -> bool {
    let sent = lock(&node.sent);
    let Some(sent) = sent.as_ref() else { return false };
    // A receiver of an older version shows no certificate when it calls.
    let is_other = who.certificate.is_some() && who.certificate != sent.certificate;
    if sent.to != who.address || is_other || session.is_none() || sent.session.as_deref() != session {
        return false;
    }
    sent.cancelled.send_replace(true);
    true
}
