//! `scheme://user@host:port?query#name`

use std::fmt::Write;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::{Form, Link, LinkError, Scheme, default_encryption, parse_address, parse_port, parse_user};
use crate::Address;

/// What stays as it is in a value: what JavaScript's `encodeURIComponent` leaves alone.
const VALUE: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'_')
    .remove(b'.')
    .remove(b'!')
    .remove(b'~')
    .remove(b'*')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')');

fn decode(part: &'static str, text: &str) -> Result<String, LinkError> {
    let bytes = percent_decode_str(text).decode_utf8();
    bytes
        .map(|text| text.into_owned())
        .map_err(|_| LinkError::part(part, "its percent-encoding is not UTF-8"))
}

/// Reads what follows `://`.
pub(super) fn read(scheme: Scheme, rest: &str) -> Result<Link, LinkError> {
    let (rest, name) = rest.split_once('#').unwrap_or((rest, ""));
    let (authority, query) = rest.split_once('?').unwrap_or((rest, ""));
    let who = match scheme {
        Scheme::Trojan => "the password",
        Scheme::Vless | Scheme::Vmess => "the id",
    };
    let Some((user, server)) = authority.rsplit_once('@') else {
        return Err(LinkError::part(who, "an \"@\" stands between it and the host"));
    };
    // Some programs write the empty path of the URI.
    let server = server.strip_suffix('/').unwrap_or(server);
    let (host, port) = match server.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((host, port)) => (host, port.strip_prefix(':')),
        None => server
            .rsplit_once(':')
            .map_or((server, None), |(host, port)| (host, Some(port))),
    };
    if host.contains(':') && !server.starts_with('[') {
        return Err(LinkError::part("the host", "an IPv6 address stands in brackets"));
    }
    let Some(port) = port else {
        return Err(LinkError::part("the port", "there is none"));
    };
    let address = parse_address(&decode("the host", host)?)?;
    let mut link = Link::new(
        scheme,
        parse_user(scheme, decode(who, user)?)?,
        address,
        parse_port(port)?,
    );
    link.form = Form::Uri;
    link.name = decode("the name", name)?;
    let (mut network, mut security) = (String::new(), String::new());
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
        let (key, value) = (decode("the query", key)?, decode("the query", value)?);
        if value.is_empty() {
            continue;
        }
        match key.as_str() {
            "type" => network = value,
            "security" => security = value,
            "encryption" => link.encryption = value,
            "insecure" => link.set_parameter("allowInsecure", value),
            _ => link.set_parameter(&key, value),
        }
    }
    // Saying what holds anyway is the same as saying nothing.
    if matches!(link.parameter("allowInsecure"), "0" | "false") {
        link.set_parameter("allowInsecure", "");
    } else if !link.parameter("allowInsecure").is_empty() {
        link.set_parameter("allowInsecure", "1");
    }
    link.set_words(&network, &security);
    Ok(link)
}

/// Writes the whole link.
pub(super) fn write(link: &Link) -> String {
    let value = |text: &str| utf8_percent_encode(text, VALUE).to_string();
    let mut out = format!("{}://{}@", link.scheme.as_str(), value(&link.user.to_string()));
    let _ = match &link.address {
        Address::Ipv6(ip) => write!(out, "[{ip}]:{}", link.port),
        address => write!(out, "{address}:{}", link.port),
    };
    let _ = write!(
        out,
        "?type={}&security={}",
        value(link.network_word()),
        value(&link.security)
    );
    // VLESS links always say it, as some programs want them to.
    if link.scheme == Scheme::Vless || link.encryption != default_encryption(link.scheme) {
        let _ = write!(out, "&encryption={}", value(&link.encryption));
    }
    for (key, text) in &link.parameters {
        if !text.is_empty() {
            let _ = write!(out, "&{}={}", value(key), value(text));
        }
    }
    if !link.name.is_empty() {
        let _ = write!(out, "#{}", value(&link.name));
    }
    out
}
