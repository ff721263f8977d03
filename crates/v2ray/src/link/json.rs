//! `vmess://` and base64 of JSON.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::DecodePaddingMode;
use base64::engine::general_purpose::{GeneralPurpose, GeneralPurposeConfig, PAD};
use serde_json::{Map, Value};

use super::{Form, Link, LinkError, Scheme, default_encryption, parse_address, parse_id, parse_port};
use crate::json::{Data, Member, read as read_json};

/// Base64 with the usual alphabet; padding may be missing.
pub(super) const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_padding_mode(DecodePaddingMode::Indifferent)
        .with_decode_allow_trailing_bits(true),
);
const STRICT: GeneralPurpose = GeneralPurpose::new(&STANDARD, PAD);

/// The parameter that the fields `type`, `host` and `path` stand for. Empty: it has none there.
struct Names {
    kind: &'static str,
    host: &'static str,
    path: &'static str,
}

fn names(network: &str) -> Names {
    match network {
        "grpc" => Names {
            kind: "mode",
            host: "authority",
            path: "serviceName",
        },
        "kcp" | "mkcp" => Names {
            kind: "headerType",
            host: "host",
            path: "seed",
        },
        "quic" => Names {
            kind: "headerType",
            host: "quicSecurity",
            path: "key",
        },
        _ => Names {
            kind: "headerType",
            host: "host",
            path: "path",
        },
    }
}

/// Parameters that have a field of the same or another name in every link: the field, and the parameter.
const FIELDS: [(&str, &str); 4] = [
    ("sni", "sni"),
    ("alpn", "alpn"),
    ("fp", "fp"),
    ("insecure", "allowInsecure"),
];

/// Fields that are more than a parameter.
const OWN: [&str; 12] = [
    "v", "ps", "add", "port", "id", "aid", "scy", "net", "tls", "type", "host", "path",
];

/// Reads what follows `://`.
pub(super) fn read(rest: &str) -> Result<Link, LinkError> {
    // Both alphabets of base64, in any layout.
    let letters = rest.chars().filter(|c| !c.is_whitespace());
    let plain: String = letters
        .map(|c| {
            if c == '-' {
                '+'
            } else if c == '_' {
                '/'
            } else {
                c
            }
        })
        .collect();
    let text = LENIENT
        .decode(plain.trim_end_matches('='))
        .map_err(|_| LinkError::part("the body", "it is not base64"))?;
    let document = read_json(&text, 0).map_err(|fault| LinkError::part("the body", fault.text))?;
    let Data::Object(members) = document.value.data else {
        return Err(LinkError::part("the body", "it is no JSON object"));
    };
    let field = |name: &str| field(&members, name);
    let scheme = Scheme::Vmess;
    let mut link = Link::new(
        scheme,
        parse_id(field("id").trim())?,
        parse_address(field("add").trim())?,
        parse_port(field("port").trim())?,
    );
    link.form = Form::Json;
    link.name = field("ps");
    // Some programs write whether, not which.
    let security = match field("tls").trim() {
        "1" | "true" => "tls".to_owned(),
        "0" | "false" => "none".to_owned(),
        word => word.to_owned(),
    };
    link.set_words(field("net").trim(), &security);
    let sealed = field("scy");
    link.encryption = if sealed.is_empty() {
        default_encryption(scheme).to_owned()
    } else {
        sealed
    };
    let alter_id = field("aid");
    link.alter_id = match alter_id.trim() {
        "" => 0,
        text => text
            .parse()
            .map_err(|_| LinkError::part("aid", "it is a whole number"))?,
    };
    let Names { kind, host, path } = names(&link.network);
    for (field_name, parameter) in [("type", kind), ("host", host), ("path", path)] {
        link.set_parameter(parameter, field(field_name));
    }
    for (name, parameter) in FIELDS {
        link.set_parameter(parameter, field(name));
    }
    // Whatever else there is goes by its own name.
    for Member { key, .. } in &members {
        let known = OWN.contains(&key.as_str()) || FIELDS.iter().any(|(name, _)| name == key);
        if !known && link.parameter(key).is_empty() {
            link.set_parameter(key, field(key));
        }
    }
    match link.parameter("allowInsecure") {
        "" => {}
        "0" | "false" => link.set_parameter("allowInsecure", ""),
        _ => link.set_parameter("allowInsecure", "1"),
    }
    Ok(link)
}

/// The text of a field, which may be a string, a number or a bool.
fn field(members: &[Member], name: &str) -> String {
    match members.iter().rfind(|m| m.key == name).map(|m| &m.value.data) {
        Some(Data::String(text)) => text.clone(),
        Some(Data::Number(text)) => text.to_string(),
        Some(Data::Bool(b)) => u8::from(*b).to_string(),
        _ => String::new(),
    }
}

/// Writes the whole link.
pub(super) fn write(link: &Link) -> String {
    let mut map = Map::new();
    let mut put = |name: &str, text: &str| {
        map.insert(name.to_owned(), Value::from(text));
    };
    put("v", "2");
    put("ps", &link.name);
    put("add", &link.address.to_string());
    put("port", &link.port.to_string());
    put("id", &link.user.to_string());
    put("aid", &link.alter_id.to_string());
    put("scy", &link.encryption);
    put("net", link.network_word());
    put("tls", if link.security == "none" { "" } else { &link.security });
    let Names { kind, host, path } = names(&link.network);
    for (field_name, parameter) in [("type", kind), ("host", host), ("path", path)] {
        put(field_name, link.parameter(parameter));
    }
    for (name, parameter) in FIELDS {
        put(name, link.parameter(parameter));
    }
    for (key, text) in &link.parameters {
        let said = [kind, host, path].contains(&key.as_str()) || FIELDS.iter().any(|(_, parameter)| parameter == key);
        if !said && !OWN.contains(&key.as_str()) {
            put(key, text);
        }
    }
    format!("vmess://{}", STRICT.encode(Value::Object(map).to_string()))
}
