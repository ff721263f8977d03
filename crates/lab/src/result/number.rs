//! A number that survives JSON even when it is not finite.

use std::borrow::Cow;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// A 64-bit float that is written as `"inf"`, `"-inf"` or `"nan"` where JSON has no number for it.
#[derive(Clone, Copy, Debug, Default, PartialEq, PartialOrd)]
pub struct Num(pub f64);

impl Num {
    /// The plain number.
    pub const fn get(self) -> f64 {
        self.0
    }
}

impl From<f64> for Num {
    fn from(value: f64) -> Self {
        Num(value)
    }
}

impl Serialize for Num {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.0.is_finite() {
            serializer.serialize_f64(self.0)
        } else if self.0.is_nan() {
            serializer.serialize_str("nan")
        } else if self.0 > 0.0 {
            serializer.serialize_str("inf")
        } else {
            serializer.serialize_str("-inf")
        }
    }
}

impl JsonSchema for Num {
    fn schema_name() -> Cow<'static, str> {
        "Number".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "A number; what JSON cannot write is one of three words.",
            "anyOf": [{ "type": "number" }, { "enum": ["inf", "-inf", "nan"] }],
        })
    }
}

impl<'de> Deserialize<'de> for Num {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NumVisitor)
    }
}

struct NumVisitor;

impl Visitor<'_> for NumVisitor {
    type Value = Num;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a number, or one of \"inf\", \"-inf\", \"nan\"")
    }

    fn visit_f64<E: de::Error>(self, value: f64) -> Result<Num, E> {
        Ok(Num(value))
    }

    fn visit_i64<E: de::Error>(self, value: i64) -> Result<Num, E> {
        Ok(Num(value as f64))
    }

    fn visit_u64<E: de::Error>(self, value: u64) -> Result<Num, E> {
        Ok(Num(value as f64))
    }

    fn visit_str<E: de::Error>(self, value: &str) -> Result<Num, E> {
        match value {
            "inf" => Ok(Num(f64::INFINITY)),
            "-inf" => Ok(Num(f64::NEG_INFINITY)),
            "nan" => Ok(Num(f64::NAN)),
            _ => Err(E::invalid_value(de::Unexpected::Str(value), &self)),
        }
    }
}
