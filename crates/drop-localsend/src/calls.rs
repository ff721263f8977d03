//! The calls of the protocol: their paths, bodies that are read within bounds, and answers.

use std::time::Duration;

use bytes::{Bytes, BytesMut};
use http_body_util::{BodyExt, Full};
use hyper::body::{Body, Incoming};
use hyper::{Response, StatusCode, header};
use serde_json::json;

pub(crate) const REGISTER: &str = "/api/localsend/v2/register";
pub(crate) const PREPARE_UPLOAD: &str = "/api/localsend/v2/prepare-upload";
pub(crate) const UPLOAD: &str = "/api/localsend/v2/upload";
pub(crate) const CANCEL: &str = "/api/localsend/v2/cancel";
pub(crate) const PREPARE_DOWNLOAD: &str = "/api/localsend/v2/prepare-download";
pub(crate) const DOWNLOAD: &str = "/api/localsend/v2/download";

/// How long nothing may come of a body.
pub(crate) const SILENCE: Duration = Duration::from_secs(60);

pub(crate) type Answer = Response<Full<Bytes>>;

/// An answer without a body.
pub(crate) fn empty(status: StatusCode) -> Answer {
    let mut answer = Response::new(Full::default());
    *answer.status_mut() = status;
    answer
}

/// An error, in the words that apps know.
pub(crate) fn failed(status: StatusCode, message: &str) -> Answer {
    let mut answer = json_bytes(json!({ "message": message }).to_string().into_bytes());
    *answer.status_mut() = status;
    answer
}

/// 200 with JSON.
pub(crate) fn json_bytes(body: Vec<u8>) -> Answer {
    let mut answer = Response::new(Full::from(body));
    let kind = header::HeaderValue::from_static("application/json");
    answer.headers_mut().insert(header::CONTENT_TYPE, kind);
    answer
}

/// Why a body was not taken.
pub(crate) enum BodyError {
    Long,
    Lost,
}

/// A whole body, if it is no longer than this and comes in time.
pub(crate) async fn body(mut body: Incoming, limit: usize) -> Result<Bytes, BodyError> {
    if body.size_hint().lower() > limit as u64 {
        return Err(BodyError::Long);
    }
    let mut whole = BytesMut::new();
    loop {
        match tokio::time::timeout(SILENCE, body.frame()).await {
            Ok(None) => return Ok(whole.freeze()),
            Ok(Some(Ok(frame))) => {
                let Ok(data) = frame.into_data() else { continue };
                if whole.len() + data.len() > limit {
                    return Err(BodyError::Long);
                }
                whole.extend_from_slice(&data);
            }
            Ok(Some(Err(_))) | Err(_) => return Err(BodyError::Lost),
        }
    }
}
