//! The parameters of a case, with a canonical text that joins runs.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

/// One parameter: a string, an integer or a boolean, never a float (floats have no canonical text).
#[derive(Clone, Debug, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(untagged)]
pub enum CaseValue {
    /// A flag.
    Bool(bool),
    /// A size or a count.
    Int(i64),
    /// A name.
    Text(String),
}

impl fmt::Display for CaseValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CaseValue::Bool(value) => write!(f, "{value}"),
            CaseValue::Int(value) => write!(f, "{value}"),
            CaseValue::Text(value) => f.write_str(value),
        }
    }
}

impl From<bool> for CaseValue {
    fn from(value: bool) -> Self {
        CaseValue::Bool(value)
    }
}

impl From<i64> for CaseValue {
    fn from(value: i64) -> Self {
        CaseValue::Int(value)
    }
}

impl From<usize> for CaseValue {
    fn from(value: usize) -> Self {
        CaseValue::Int(i64::try_from(value).unwrap_or(i64::MAX))
    }
}

impl From<&str> for CaseValue {
    fn from(value: &str) -> Self {
        CaseValue::Text(value.to_owned())
    }
}

/// Sorted parameters of a case.
#[derive(Clone, Debug, Default, Deserialize, Eq, Hash, Ord, PartialEq, PartialOrd, Serialize)]
#[serde(transparent)]
pub struct Case(pub BTreeMap<String, CaseValue>);

impl Case {
    /// No parameters.
    pub fn new() -> Self {
        Self::default()
    }

    /// The case with one more parameter.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<CaseValue>) -> Self {
        self.0.insert(name.to_owned(), value.into());
        self
    }

    /// A text parameter.
    pub fn text(&self, name: &str) -> Option<&str> {
        match self.0.get(name) {
            Some(CaseValue::Text(value)) => Some(value),
            _ => None,
        }
    }

    /// An integer parameter.
    pub fn int(&self, name: &str) -> Option<i64> {
        match self.0.get(name) {
            Some(CaseValue::Int(value)) => Some(*value),
            _ => None,
        }
    }

    /// The join key of two runs: compact JSON with sorted keys.
    pub fn canonical(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }
}

impl JsonSchema for Case {
    fn schema_name() -> Cow<'static, str> {
        "Case".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "description": "Parameters of a case. Compact JSON of this object with sorted keys joins runs.",
            "type": "object",
            "additionalProperties": { "type": ["string", "integer", "boolean"] },
        })
    }
}

impl fmt::Display for Case {
    /// `bytes=16384 op=seal suite=aes-128-gcm`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (name, value)) in self.0.iter().enumerate() {
            if i > 0 {
                f.write_str(" ")?;
            }
            write!(f, "{name}={value}")?;
        }
        Ok(())
    }
}
