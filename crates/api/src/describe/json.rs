//! Messages as JSON, in the way that Xray's command line prints them.
//!
//! That is: what has its default is left out; numbers are numbers, however large; a message inside a `TypedMessage` stands in
//! its place, with `_TypedMessage_` for its type, and its bytes if the type is not known; addresses and ports look as they do in
//! `config.json`.

use prost::Message;
use serde_json::{Map, Value, json};

use super::{DescriptorProto, FieldDescriptorProto, KNOWN, Label, MAX_DEPTH, Raw, Type, field, fields};
use crate::proto::xray::app::router::Cidr;
use crate::proto::xray::common::net::{IpOrDomain, PortList, ip_or_domain::Address};
use crate::proto::{self, TypedMessage, canonical};

/// A message as JSON.
///
/// # Errors
/// Says what the program does not know of it, or why the bytes are no such message.
pub fn to_json(kind: &str, bytes: &[u8]) -> Result<Value, String> {
    object(&canonical(kind), bytes, 0)
}

fn object(kind: &str, bytes: &[u8], depth: usize) -> Result<Value, String> {
    let kind = kind.trim_start_matches('.');
    let message = KNOWN.message(kind).ok_or_else(|| format!("the type {kind}"))?;
    if depth > MAX_DEPTH {
        return Err(format!("{kind}, which stands too deep"));
    }
    let broken = |error: prost::DecodeError| error.to_string();
    match kind {
        "xray.common.serial.TypedMessage" => {
            let inner = TypedMessage::decode(bytes).map_err(broken)?;
            let kind = canonical(&inner.r#type);
            let value = match KNOWN.message(&kind) {
                Some(_) => object(&kind, &inner.value, depth + 1)?,
                None => base64(&inner.value),
            };
            let mut all = match value {
                Value::Object(all) => all,
                empty if is_default(&empty) => Map::new(),
                other => Map::from_iter([("value".to_owned(), other)]),
            };
            all.insert("_TypedMessage_".to_owned(), inner.r#type.clone().into());
            return Ok(all.into());
        }
        "xray.common.net.IPOrDomain" => return Ok(address(&IpOrDomain::decode(bytes).map_err(broken)?)),
        "xray.common.net.PortList" => return Ok(ports(&PortList::decode(bytes).map_err(broken)?)),
        "xray.app.router.CIDR" => {
            let cidr = Cidr::decode(bytes).map_err(broken)?;
            return Ok(json!(format!("{}/{}", ip(&cidr.ip), cidr.prefix)));
        }
        _ => {}
    }
    let mut all = Map::new();
    fields(bytes, |number, raw| {
        let field = field(message, number).ok_or_else(|| format!("field {number} of {kind}"))?;
        let name = field.json_name().to_owned();
        if field.label() != Label::Repeated {
            let value = value(field, &raw, depth)?;
            // Some write defaults.
            if !is_default(&value) {
                all.insert(name, value);
            }
            return Ok(());
        }
        let of_map = |inner: &&DescriptorProto| inner.options.as_ref().is_some_and(|options| options.map_entry());
        if KNOWN.message(field.type_name()).filter(of_map).is_some() {
            let entry = object(field.type_name(), bytes_of(&raw), depth + 1)?;
            let key = match &entry["key"] {
                Value::String(key) => key.clone(),
                Value::Null => String::new(),
                other => other.to_string(),
            };
            let map = all.entry(name).or_insert_with(|| json!({}));
            map[key] = entry.get("value").cloned().unwrap_or(Value::Null);
            return Ok(());
        }
        let list = all.entry(name).or_insert_with(|| json!([]));
        let mut push = |value| {
            if let Value::Array(list) = list {
                list.push(value);
            }
        };
        match raw {
            // Packed.
            Raw::Bytes(mut packed) if !matches!(field.r#type(), Type::String | Type::Bytes | Type::Message) => {
                while !packed.is_empty() {
                    let number = prost::encoding::decode_varint(&mut packed).map_err(broken)?;
                    push(value(field, &Raw::Number(number), depth)?);
                }
            }
            raw => push(value(field, &raw, depth)?),
        }
        Ok(())
    })?;
    Ok(Value::Object(all))
}

fn bytes_of<'a>(raw: &Raw<'a>) -> &'a [u8] {
    match raw {
        Raw::Bytes(bytes) => bytes,
        Raw::Number(_) => &[],
    }
}

fn is_default(value: &Value) -> bool {
    match value {
        Value::Bool(value) => !value,
        Value::Number(value) => value.as_f64() == Some(0.0),
        Value::String(value) => value.is_empty(),
        _ => false,
    }
}

fn value(field: &FieldDescriptorProto, raw: &Raw<'_>, depth: usize) -> Result<Value, String> {
    Ok(match (field.r#type(), raw) {
        (Type::Message, Raw::Bytes(bytes)) => object(field.type_name(), bytes, depth + 1)?,
        (Type::String, Raw::Bytes(bytes)) => String::from_utf8_lossy(bytes).into(),
        (Type::Bytes, Raw::Bytes(bytes)) => base64(bytes),
        (Type::Bool, Raw::Number(number)) => (*number != 0).into(),
        (Type::Enum, Raw::Number(number)) => word(field.type_name(), *number as i32),
        (Type::Float, Raw::Number(number)) => f32::from_bits(*number as u32).into(),
        (Type::Double, Raw::Number(number)) => f64::from_bits(*number).into(),
        (Type::Int32 | Type::Int64, Raw::Number(number)) => (*number as i64).into(),
        (_, Raw::Number(number)) => (*number).into(),
        _ => return Err(format!("the field {} as something else", field.name())),
    })
}

fn base64(bytes: &[u8]) -> Value {
    use ::base64::Engine as _;
    ::base64::engine::general_purpose::STANDARD.encode(bytes).into()
}

/// The word of an enumeration's number, or the number.
fn word(kind: &str, number: i32) -> Value {
    let list = KNOWN.enums.get(kind.trim_start_matches('.'));
    let found = list.and_then(|list| list.value.iter().find(|value| value.number() == number));
    found.map_or_else(|| number.into(), |value| value.name().into())
}

fn ip(bytes: &[u8]) -> String {
    proto::ip(bytes).map(|ip| ip.to_string()).unwrap_or_default()
}

fn address(given: &IpOrDomain) -> Value {
    match &given.address {
        Some(Address::Ip(bytes)) => ip(bytes).into(),
        Some(Address::Domain(name)) => name.as_str().into(),
        None => Value::Null,
    }
}

/// One port as a number, several as a text.
fn ports(list: &PortList) -> Value {
    match list.range.as_slice() {
        [one] if one.from == one.to => one.from.into(),
        many => {
            let text = many.iter().map(|range| match range.from == range.to {
                true => range.from.to_string(),
                false => format!("{}-{}", range.from, range.to),
            });
            text.collect::<Vec<_>>().join(",").into()
        }
    }
}
