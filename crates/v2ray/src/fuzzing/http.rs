//! HTTP: heads, bodies, the proxy protocol, and the header of raw TCP.

use super::whole;
use crate::http::body::Body;
use crate::http::{front, head, proxy};
use crate::{Error, Protocol, Step};

pub(super) fn http_front(data: &[u8]) {
    whole(data, front::skip_response);
    let request = front::Request::default();
    // Refusals may come early, so only what is let in is held to the rules of whole messages.
    if let Ok(Step::Done { .. }) = request.accept(data) {
        whole(data, |bytes| Ok(request.accept(bytes).unwrap_or(Step::More(1))));
    }
    let again = request.write(&mut |n| data.len() % n);
    let used = again.len();
    assert_eq!(request.accept(&again), Ok(Step::Done { value: (), used }));
}

pub(super) fn http_request(data: &[u8]) {
    whole(data, |bytes| proxy::decode(bytes, false));
    whole(data, |bytes| proxy::decode(bytes, true));
    if let Ok(Step::Done { value, .. }) = proxy::decode(data, true)
        && let proxy::Command::Forward(forward) = value.command
    {
        // What is sent on is one request with the same border, or the next server would see another. It may have two lines
        // more than what came.
        if forward.head.iter().filter(|byte| **byte == b'\n').count() > head::MAX_HEADERS {
            return;
        }
        match head::parse_request(&forward.head, usize::MAX, Protocol::Http) {
            Ok(Step::Done { value, used }) => {
                assert_eq!(used, forward.head.len());
                assert_eq!(Body::of_request(&value), Ok(forward.body));
            }
            other => panic!("what is sent on is no request: {other:?}"),
        }
    }
}

pub(super) fn http_response(data: &[u8]) {
    let Ok(Step::Done { value, .. }) = proxy::decode(b"GET http://a/ HTTP/1.1\r\n\r\n", false) else {
        return;
    };
    if let proxy::Command::Forward(request) = value.command {
        whole(data, |bytes| proxy::decode_response(bytes, &request));
    }
    whole(data, crate::http::client::parse_connected);
}

pub(super) fn http_body(data: &[u8]) {
    let head = b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n";
    let Ok(Step::Done { value, .. }) = head::parse_request(head, 99, Protocol::Http) else {
        return;
    };
    let run = |step: usize| {
        let mut body = Body::of_request(&value)?;
        let (mut used, mut carried) = (0, Vec::new());
        let mut beside = body;
        for piece in data.chunks(step) {
            let mut at = 0;
            while at < piece.len() && !beside.is_over() {
                let (n, range) = beside.next(&piece[at..])?;
                assert!(n > 0, "a step that goes nowhere");
                carried.extend_from_slice(&piece[at..][range]);
                at += n;
            }
            let advanced = body.advance(piece)?;
            assert_eq!((advanced, body), (at, beside), "two ways through a body");
            used += at;
            if body.is_over() {
                break;
            }
        }
        Ok::<_, Error>((used, carried, body.is_over()))
    };
    assert_eq!(run(1), run(data.len().max(1)), "pieces made a difference");
}
