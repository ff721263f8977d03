//! Messages looked at by their definitions alone: which fields are unknown, and how they look as JSON.

use std::collections::HashMap;
use std::sync::LazyLock;

use prost::Message;
use prost::encoding::{WireType, decode_key, decode_varint};
use prost_types::field_descriptor_proto::{Label, Type};
use prost_types::{DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorSet};

use crate::proto::{self, canonical};

mod json;

pub use json::to_json;

/// How deep messages may stand inside each other, those named by their types included.
const MAX_DEPTH: usize = 32;

/// What the definitions say, by full names.
struct Known {
    messages: HashMap<String, DescriptorProto>,
    enums: HashMap<String, EnumDescriptorProto>,
}

static KNOWN: LazyLock<Known> = LazyLock::new(|| {
    let mut known = Known {
        messages: HashMap::new(),
        enums: HashMap::new(),
    };
    let set = FileDescriptorSet::decode(proto::DESCRIPTORS).unwrap_or_default();
    for file in set.file {
        let package = file.package().to_owned();
        for message in file.message_type {
            known.add(&package, message);
        }
        for list in file.enum_type {
            known.enums.insert(format!("{package}.{}", list.name()), list);
        }
    }
    known
});

impl Known {
    fn add(&mut self, within: &str, mut message: DescriptorProto) {
        let name = format!("{within}.{}", message.name());
        for inner in std::mem::take(&mut message.nested_type) {
            self.add(&name, inner);
        }
        for list in std::mem::take(&mut message.enum_type) {
            self.enums.insert(format!("{name}.{}", list.name()), list);
        }
        self.messages.insert(name, message);
    }

    fn message(&self, name: &str) -> Option<&DescriptorProto> {
        self.messages.get(name.trim_start_matches('.'))
    }
}

/// A value on the wire.
enum Raw<'a> {
    Number(u64),
    Bytes(&'a [u8]),
}

/// Calls `each` with the fields of a message in their order.
fn fields<'a>(mut bytes: &'a [u8], mut each: impl FnMut(u32, Raw<'a>) -> Result<(), String>) -> Result<(), String> {
    let broken = |_| "it ends inside a field".to_owned();
    while !bytes.is_empty() {
        let (number, wire) = decode_key(&mut bytes).map_err(|error| error.to_string())?;
        let take = |bytes: &mut &'a [u8], n: usize| -> Result<&'a [u8], String> {
            let (head, rest) = bytes.split_at_checked(n).ok_or("it ends inside a field")?;
            *bytes = rest;
            Ok(head)
        };
        let raw = match wire {
            WireType::Varint => Raw::Number(decode_varint(&mut bytes).map_err(broken)?),
            WireType::LengthDelimited => {
                let length = decode_varint(&mut bytes).map_err(broken)?;
                let length = usize::try_from(length).map_err(|_| "it ends inside a field")?;
                Raw::Bytes(take(&mut bytes, length)?)
            }
            WireType::ThirtyTwoBit => {
                let four = take(&mut bytes, 4)?.try_into().unwrap_or_default();
                Raw::Number(u32::from_le_bytes(four).into())
            }
            WireType::SixtyFourBit => {
                let eight = take(&mut bytes, 8)?.try_into().unwrap_or_default();
                Raw::Number(u64::from_le_bytes(eight))
            }
            _ => return Err(format!("field {number}, which is a group")),
        };
        each(number, raw)?;
    }
    Ok(())
}

fn field(message: &DescriptorProto, number: u32) -> Option<&FieldDescriptorProto> {
    message.field.iter().find(|field| field.number() as u32 == number)
}

/// Whether the program knows every field of a message.
///
/// # Errors
/// Names the first field that it does not, or says why the bytes are no such message.
pub(crate) fn check(kind: &str, bytes: &[u8]) -> Result<(), String> {
    check_at(&canonical(kind), bytes, 0)
}

fn check_at(kind: &str, bytes: &[u8], depth: usize) -> Result<(), String> {
    let message = KNOWN.message(kind).ok_or_else(|| format!("the type {kind}"))?;
    if depth > MAX_DEPTH {
        return Err(format!("{kind}, which stands too deep"));
    }
    let mut named = None;
    fields(bytes, |number, raw| {
        let Some(field) = field(message, number) else {
            return Err(format!("field {number} of {kind}"));
        };
        let Raw::Bytes(inner) = raw else { return Ok(()) };
        if kind == "xray.common.serial.TypedMessage" {
            match number {
                1 => named = std::str::from_utf8(inner).ok(),
                _ => {
                    if let Some(name) = named {
                        check_at(&canonical(name), inner, depth + 1)?;
                    }
                }
            }
        } else if field.r#type() == Type::Message {
            check_at(field.type_name().trim_start_matches('.'), inner, depth + 1)?;
        }
        Ok(())
    })
}

#[cfg(test)]
pub(crate) mod tests;
