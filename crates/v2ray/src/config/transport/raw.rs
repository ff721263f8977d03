//! Bytes as they are, or behind a made-up HTTP request and response.

use std::collections::BTreeMap;

use super::{Carrier, Transport};
use crate::config::context::{Cx, quoted};
use crate::config::scalar::{ScalarText, Texts, is_header};
use crate::config::table::{object, words};
use crate::http::front;
use crate::problem::At;

words! {
    /// What raw connections begin with.
    pub(crate) enum HeaderName {
        /// Nothing.
        None = "none" | "";
        /// A made-up HTTP request and response.
        Http = "http";
    }
}

object! {
    /// The made-up request: clients write it, servers know it by its path.
    pub(crate) struct FrontRequest: "rawSettings.header.request" {
        /// The version of HTTP.
        version: Option<At<String>> = "version";
        /// The method.
        method: Option<At<String>> = "method";
        /// The paths, of which clients draw one. A server takes a request for any of them.
        path: Option<At<Texts>> = "path";
        /// The headers, in place of the usual ones, each with the values of which clients draw one.
        headers: Option<At<BTreeMap<String, Texts>>> = "headers";
    }
}

object! {
    /// The made-up response, which servers write.
    pub(crate) struct FrontResponse: "rawSettings.header.response" {
        /// The version of HTTP.
        version: Option<At<String>> = "version";
        /// The status.
        status: Option<At<ScalarText>> = "status";
        /// What the status is called.
        reason: Option<At<String>> = "reason";
        /// The headers, in place of the usual ones, each with the values of which servers draw one. The date is added.
        headers: Option<At<BTreeMap<String, Texts>>> = "headers";
    }
}

object! {
    /// What raw connections begin with.
    pub(crate) struct RawHeader: "rawSettings.header" {
        /// The kind of header.
        kind: HeaderName = "type", default "\"none\"";
        /// The request, for the type http.
        request: Option<FrontRequest> = "request";
        /// The response, for the type http.
        response: Option<FrontResponse> = "response";
    }
}

object! {
    /// Bytes as they are.
    pub(crate) struct RawSettings: "streamSettings.rawSettings" {
        /// Require the PROXY protocol, version 1 or 2, at the begin of each connection.
        accept_proxy_protocol: bool = "acceptProxyProtocol", default "false";
        /// What connections begin with.
        header: RawHeader = "header", default "{}";
    }
}

/// A request and a response that raw connections begin with.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Front {
    /// The request.
    pub request: front::Request,
    /// The response.
    pub response: front::Response,
}

impl Carrier for RawSettings {
    fn transport(self, cx: &mut Cx<'_>) -> Option<(Transport, bool)> {
        let transport = match self.header.kind {
            HeaderName::None => Transport::Raw,
            HeaderName::Http => {
                let read = cx.within("header", |cx| {
                    let request = cx.within("request", |cx| request(self.header.request, cx));
                    let response = cx.within("response", |cx| response(self.header.response, cx));
                    Some((request?, response?))
                });
                let (request, response) = read?;
                Transport::RawHttp(Box::new(Front { request, response }))
            }
        };
        Some((transport, self.accept_proxy_protocol))
    }
}

fn request(given: Option<FrontRequest>, cx: &mut Cx<'_>) -> Option<front::Request> {
    let mut request = front::Request::default();
    let Some(given) = given else { return Some(request) };
    let word = |text: &str| is_header(text, "");
    put(
        &mut request.version,
        "version",
        given.version,
        is_version,
        "write \"1.1\"",
        cx,
    )?;
    put(
        &mut request.method,
        "method",
        given.method,
        word,
        "write GET or POST",
        cx,
    )?;
    if let Some(paths) = given.path.filter(|paths| !paths.is_empty()) {
        let wrong = |path: &str| path.is_empty() || path.chars().any(|c| c.is_control() || c == ' ');
        if let Some(path) = paths.iter().find(|path| wrong(path)) {
            let text = format!("{} is no path a request could have", quoted(path));
            cx.error_in("path", paths.at, text, "write it percent-encoded");
            return None;
        }
        request.paths = paths.iter().map(str::to_owned).collect();
    }
    put_headers(&mut request.headers, given.headers, cx)?;
    Some(request)
}

fn response(given: Option<FrontResponse>, cx: &mut Cx<'_>) -> Option<front::Response> {
    let mut response = front::Response::default();
    let Some(given) = given else { return Some(response) };
    let status = given.status.map(|status| At {
        value: status.value.0,
        at: status.at,
    });
    let digits = |text: &str| text.len() == 3 && text.bytes().all(|b| b.is_ascii_digit());
    put(
        &mut response.version,
        "version",
        given.version,
        is_version,
        "write \"1.1\"",
        cx,
    )?;
    put(&mut response.status, "status", status, digits, "write three digits", cx)?;
    let plain = |text: &str| !text.chars().any(char::is_control);
    put(&mut response.reason, "reason", given.reason, plain, "", cx)?;
    put_headers(&mut response.headers, given.headers, cx)?;
    Some(response)
}

fn is_version(text: &str) -> bool {
    matches!(text.as_bytes(), [a, b'.', b] if a.is_ascii_digit() && b.is_ascii_digit())
}

/// Sets a part that is given and can stand in a head.
fn put(
    part: &mut String,
    key: &str,
    given: Option<At<String>>,
    fits: impl Fn(&str) -> bool,
    hint: &str,
    cx: &mut Cx<'_>,
) -> Option<()> {
    if let Some(given) = given.filter(|given| !given.is_empty()) {
        if !fits(&given) {
            let text = format!("{} cannot stand there in HTTP", quoted(&given));
            cx.error_in(key, given.at, text, hint);
            return None;
        }
        *part = given.value;
    }
    Some(())
}

fn put_headers(
    headers: &mut front::Headers,
    given: Option<At<BTreeMap<String, Texts>>>,
    cx: &mut Cx<'_>,
) -> Option<()> {
    if let Some(given) = given.filter(|given| !given.is_empty()) {
        let wrong = |(name, values): &(&String, &Texts)| {
            !is_header(name, "") || values.iter().any(|value| !is_header(name, value))
        };
        if let Some((name, _)) = given.iter().find(wrong) {
            let text = format!("{} is no header a head could have", quoted(name));
            cx.error_in("headers", given.at, text, "");
            return None;
        }
        let owned = |values: Texts| values.iter().map(str::to_owned).collect();
        *headers = given
            .value
            .into_iter()
            .map(|(name, values)| (name, owned(values)))
            .collect();
    }
    Some(())
}
