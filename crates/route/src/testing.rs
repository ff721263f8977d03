//! Geo files for tests.

use std::net::IpAddr;

use ipnet::IpNet;

use crate::geo::Form;

/// A number as protobuf writes it.
pub fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value > 0x7f {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

/// A field with bytes.
pub fn field(number: u64, bytes: &[u8]) -> Vec<u8> {
    [varint(number << 3 | 2), varint(bytes.len() as u64), bytes.to_vec()].concat()
}

/// An entry: its code, and its items one behind another.
pub fn entry(code: &str, items: &[Vec<u8>]) -> Vec<u8> {
    field(1, &[field(1, code.as_bytes()), items.concat()].concat())
}

/// A condition about names with attributes.
pub fn name(form: Form, text: &str, attributes: &[&str]) -> Vec<u8> {
    let kind: u8 = match form {
        Form::Keyword => 0,
        Form::Regex => 1,
        Form::Domain => 2,
        Form::Full => 3,
    };
    let mut message = if kind == 0 { Vec::new() } else { vec![8, kind] };
    message.extend(field(2, text.as_bytes()));
    for attribute in attributes {
        message.extend(field(3, &[field(1, attribute.as_bytes()), vec![16, 1]].concat()));
    }
    field(2, &message)
}

/// A network.
///
/// # Panics
/// If the text is none.
pub fn network(text: &str) -> Vec<u8> {
    let net: IpNet = text.parse().expect("a network");
    let address = match net.addr() {
        IpAddr::V4(ip) => ip.octets().to_vec(),
        IpAddr::V6(ip) => ip.octets().to_vec(),
    };
    field(
        2,
        &[field(1, &address), vec![16], varint(net.prefix_len().into())].concat(),
    )
}

/// A list of names: each with its form as configurations write it (`full:a.example`; a bare text is a domain), and attributes
/// behind it (`a.example @ads @cn`).
pub fn names(code: &str, lines: &[&str]) -> Vec<u8> {
    let items = lines.iter().map(|line| {
        let mut words = line.split(" @");
        let written = words.next().unwrap_or_default();
        let (form, text) = match written.split_once(':') {
            Some(("full", text)) => (Form::Full, text),
            Some(("keyword", text)) => (Form::Keyword, text),
            Some(("regexp", text)) => (Form::Regex, text),
            Some((_, text)) => (Form::Domain, text),
            None => (Form::Domain, written),
        };
        name(form, text, &words.collect::<Vec<_>>())
    });
    entry(code, &items.collect::<Vec<_>>())
}

/// A list of networks.
pub fn networks(code: &str, lines: &[&str]) -> Vec<u8> {
    entry(code, &lines.iter().map(|line| network(line)).collect::<Vec<_>>())
}
