//! `scheme://user@host:port?query#name`

use std::fmt::Write;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};

use super::{Credential, Form, Link, LinkError, Scheme, default_encryption, parse_address, parse_port, parse_user};
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

pub(super) fn decode(part: &'static str, text: &str) -> Result<String, LinkError> {
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
        Scheme::Shadowsocks | Scheme::Trojan => "the password",
        Scheme::Vless | Scheme::Vmess => "the id",
    };
    let Some((user, server)) = authority.rsplit_once('@') else {
        return Err(LinkError::part(who, "an \"@\" stands between it and the host"));
    };
    read_rest(scheme, parse_user(scheme, decode(who, user)?)?, server, query, name)
}

/// Reads what stands behind the user.
pub(super) fn read_rest(
    scheme: Scheme,
    user: Credential,
    server: &str,
    query: &str,
    name: &str,
) -> Result<Link, LinkError> {
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
    let mut link = Link::new(scheme, user, address, parse_port(port)?);
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
    if scheme == Scheme::Trojan {
        take_older_words(&mut link, &mut network);
    }
    link.set_words(&network, &security);
    Ok(link)
}

/// Puts the words that Trojan links had before VLESS links were there in the place of those that say the same now.
fn take_older_words(link: &mut Link, network: &mut String) {
    if network.is_empty() && matches!(link.parameter("ws"), "1" | "true") {
        "ws".clone_into(network);
        link.set_parameter("ws", "");
    }
    for (older, name) in [("wspath", "path"), ("peer", "sni")] {
        if let Some(text) = link.parameters.remove(older)
            && link.parameter(name).is_empty()
        {
            link.set_parameter(name, text);
        }
    }
}

/// A text as it stands in a link.
pub(super) fn value(text: &str) -> String {
    utf8_percent_encode(text, VALUE).to_string()
}

/// Writes the whole link.
pub(super) fn write(link: &Link) -> String {
    let mut out = format!("{}://{}@", link.scheme.as_str(), value(&link.user.to_string()));
    write_server(link, &mut out);
    let mut query = String::new();
    write_words(link, &mut query);
    out.push('?');
    out.push_str(query.get(1..).unwrap_or_default());
    // VLESS links always say it, as some programs want them to.
    if link.scheme == Scheme::Vless || link.encryption != default_encryption(link.scheme) {
        let _ = write!(out, "&encryption={}", value(&link.encryption));
    }
    write_parameters(link, &mut out);
    write_name(link, &mut out);
    out
}

pub(super) fn write_server(link: &Link, out: &mut String) {
    let _ = match &link.address {
        Address::Ipv6(ip) => write!(out, "[{ip}]:{}", link.port),
        address => write!(out, "{address}:{}", link.port),
    };
}

/// Appends transport and security, each behind an `&`.
pub(super) fn write_words(link: &Link, out: &mut String) {
    let (network, security) = (value(link.network_word()), value(&link.security));
    let _ = write!(out, "&type={network}&security={security}");
}

/// Appends the parameters, each behind an `&`.
pub(super) fn write_parameters(link: &Link, out: &mut String) {
    for (key, text) in &link.parameters {
        if !text.is_empty() {
            let _ = write!(out, "&{}={}", value(key), value(text));
        }
    }
}

pub(super) fn write_name(link: &Link, out: &mut String) {
    if !link.name.is_empty() {
        let _ = write!(out, "#{}", value(&link.name));
    }
}
