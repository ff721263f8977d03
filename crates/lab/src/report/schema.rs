//! The JSON schema of result files: derived from the types, with the parameters of every workload's cases.

use schemars::Schema;
use schemars::generate::SchemaSettings;
use schemars::transform::{Transform, transform_subschemas};
use serde_json::{Map, Value, json};

use crate::result::{RunResult, SCHEMA};
use crate::workload::Catalogue;

/// The schema (draft 2020-12) that every file fits which a lab with these workloads writes.
pub fn of(catalogue: &Catalogue) -> Value {
    let settings = SchemaSettings::draft2020_12().with_transform(Plain);
    let mut schema = settings.into_generator().into_root_schema_for::<RunResult>();
    schema.insert("$id".to_owned(), json!(format!("urn:sealway:lab:result:{SCHEMA}")));
    schema.insert("title".to_owned(), json!("Result of a sealway lab run"));
    if let Some(case) = schema.pointer_mut("/$defs/Case").and_then(Value::as_object_mut) {
        case.insert("properties".to_owned(), Value::Object(parameters(catalogue)));
    }
    schema.to_value()
}

/// What is known of each parameter, by the workloads that have it.
fn parameters(catalogue: &Catalogue) -> Map<String, Value> {
    let all = |name: &str| {
        let own = catalogue.iter().flat_map(|workload| {
            let parameters = workload.lens.parameters.iter();
            parameters.map(move |parameter| (workload.name, parameter))
        });
        own.filter(|(_, parameter)| parameter.name == name).collect::<Vec<_>>()
    };
    let names = catalogue.iter().flat_map(|workload| workload.lens.parameters);
    let schemas = names.map(|named| {
        let all = all(named.name);
        let chunks = all.chunk_by(|(_, a), (_, b)| a.what == b.what);
        let said: Vec<String> = chunks
            .filter_map(|chunk| {
                let names: Vec<&str> = chunk.iter().map(|(name, _)| *name).collect();
                Some(format!("{}: {}", names.join(", "), chunk.first()?.1.what))
            })
            .collect();
        let mut schema = json!({ "type": "string", "description": said.join("; ") });
        // What one allows the other must not refuse.
        let ranges = all.iter().filter_map(|(_, parameter)| parameter.range);
        if let Some((least, most)) = ranges.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))) {
            schema["type"] = json!("integer");
            schema["minimum"] = json!(least);
            if most < i64::MAX {
                schema["maximum"] = json!(most);
            }
        }
        (named.name.to_owned(), schema)
    });
    schemas.collect()
}

/// Leaves out what is of no use outside of Rust.
#[derive(Clone)]
struct Plain;

impl Transform for Plain {
    fn transform(&mut self, schema: &mut Schema) {
        // The most that the type holds, which its name says here and a validator does not know.
        let bits = schema.remove("format");
        if bits.as_ref().and_then(Value::as_str) == Some("uint32") {
            schema.insert("maximum".to_owned(), json!(u32::MAX));
        }
        schema.remove("default");
        if let Some(Value::String(text)) = schema.get_mut("description") {
            *text = text.replace("[`", "`").replace("`]", "`").replace('\n', " ");
        }
        transform_subschemas(self, schema);
    }
}
