//! Flows, and the addons that carry them.

use std::fmt;

use crate::{Error, Protocol};

/// How the payload is treated inside the outer layer.
#[derive(Clone, Copy, Debug, Default, Eq, Hash, PartialEq)]
pub enum Flow {
    /// As it is.
    #[default]
    None,
    /// `xtls-rprx-vision`: the inner TLS handshake is padded, then the outer layer is left.
    Vision,
}

impl Flow {
    /// The text on the wire; empty for [`Flow::None`].
    pub const fn as_str(self) -> &'static str {
        match self {
            Flow::None => "",
            Flow::Vision => "xtls-rprx-vision",
        }
    }

    fn from_wire(text: &[u8]) -> Result<Self, Error> {
        [Flow::None, Flow::Vision]
            .into_iter()
            .find(|flow| flow.as_str().as_bytes() == text)
            .ok_or(Error::Flow {
                problem: "the client asks for a flow we do not know; use \"xtls-rprx-vision\" or none",
            })
    }

    /// Writes the length of the addons and the addons.
    pub(super) fn write_addons(self, out: &mut Vec<u8>) {
        let text = self.as_str().as_bytes();
        if text.is_empty() {
            out.push(0);
        } else {
            // Field 1, length-delimited; both lengths are below 128 and so one byte each.
            out.push(2 + text.len() as u8);
            out.push(0x0a);
            out.push(text.len() as u8);
            out.extend_from_slice(text);
        }
    }

    /// Reads the addons, a protobuf message whose field 1 is the flow. Other fields are skipped, the last flow counts.
    pub(super) fn read_addons(mut bytes: &[u8]) -> Result<Self, Error> {
        let mut flow = Flow::None;
        while !bytes.is_empty() {
            let key = varint(&mut bytes)?;
            if key >> 3 == 0 {
                return Err(malformed("the addons hold a field with the number 0"));
            }
            match key & 7 {
                0 => {
                    varint(&mut bytes)?;
                }
                1 => {
                    split(&mut bytes, 8)?;
                }
                2 => {
                    let len = varint(&mut bytes)?;
                    let value = split(&mut bytes, len)?;
                    if key >> 3 == 1 {
                        flow = Flow::from_wire(value)?;
                    }
                }
                5 => {
                    split(&mut bytes, 4)?;
                }
                _ => return Err(malformed("the addons hold a field of an unknown kind")),
            }
        }
        Ok(flow)
    }
}

impl fmt::Display for Flow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

fn malformed(problem: &'static str) -> Error {
    Protocol::Vless.malformed(problem)
}

fn split<'a>(bytes: &mut &'a [u8], len: u64) -> Result<&'a [u8], Error> {
    let value = usize::try_from(len).ok().and_then(|len| bytes.split_at_checked(len));
    let (value, rest) = value.ok_or_else(|| malformed("a field of the addons runs past their end"))?;
    *bytes = rest;
    Ok(value)
}

fn varint(bytes: &mut &[u8]) -> Result<u64, Error> {
    let mut value = 0u64;
    for i in 0..10 {
        let byte = split(bytes, 1)?[0];
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(malformed("a number in the addons has more than ten bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addons_of_vision_are_the_eighteen_known_bytes() {
        let mut out = Vec::new();
        Flow::Vision.write_addons(&mut out);
        assert_eq!(out, b"\x12\x0a\x10xtls-rprx-vision");
        assert_eq!(Flow::read_addons(&out[1..]), Ok(Flow::Vision));
        out.clear();
        Flow::None.write_addons(&mut out);
        assert_eq!(out, [0]);
        assert_eq!(Flow::read_addons(&[]), Ok(Flow::None));
    }

    #[test]
    fn unknown_fields_are_skipped() {
        let mut addons = b"\x12\x03abc\x18\x96\x01\x21ABCDEFGH\x2dABCD".to_vec();
        assert_eq!(Flow::read_addons(&addons), Ok(Flow::None));
        addons.extend_from_slice(b"\x0a\x10xtls-rprx-vision");
        assert_eq!(Flow::read_addons(&addons), Ok(Flow::Vision));
    }

    #[test]
    fn broken_addons_are_refused() {
        for addons in [
            &b"\x0a"[..],
            b"\x0a\x05abcd",
            b"\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff",
            b"\x03",
            b"\x00\x01",
            b"\x0a\x01x",
            b"\x0a\x10xtls-rprx-splice",
        ] {
            assert!(Flow::read_addons(addons).is_err(), "{addons:?}");
        }
    }
}
