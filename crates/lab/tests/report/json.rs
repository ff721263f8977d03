//! Result files: the schema in the documents, and what reading gives back.
use std::path::Path;

use sealway_lab::catalogue::ALL;
use sealway_lab::report::{json, schema};
use sealway_lab::result::{Num, RunResult};
use serde_json::{Value, json};

/// The schema in the documents. `SEALWAY_UPDATE_GOLDEN=1` writes it anew, for a person to read before committing.
fn kept() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/result.schema.json");
    if std::env::var_os("SEALWAY_UPDATE_GOLDEN").is_some() {
        let text = serde_json::to_string_pretty(&schema::of(&ALL)).unwrap();
        std::fs::write(&path, text + "\n").unwrap();
    }
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

pub(crate) fn validator() -> jsonschema::Validator {
    let schema = kept();
    jsonschema::draft202012::meta::validate(&schema)
        .map_err(|error| error.to_string())
        .unwrap();
    jsonschema::draft202012::new(&schema).unwrap()
}

pub(crate) fn check(validator: &jsonschema::Validator, run: &RunResult) {
    let value = serde_json::to_value(run).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(&value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(errors.is_empty(), "{errors:#?}");
}

#[test]
fn the_documents_have_the_schema_of_the_types() {
    assert_eq!(kept(), schema::of(&ALL), "SEALWAY_UPDATE_GOLDEN=1 writes it anew");
}

#[test]
fn what_the_lab_writes_fits_the_schema() {
    let validator = validator();
    check(&validator, &crate::common::sample());
    check(&validator, &crate::common::broken());
    check(&validator, &crate::common::empty());
}

#[test]
fn unknown_keys_are_welcome_everywhere() {
    let validator = validator();
    let mut value = serde_json::to_value(crate::common::sample()).unwrap();
    for pointer in [
        "",
        "/machine",
        "/plan",
        "/warnings/0",
        "/subjects/0",
        "/results/1",
        "/results/0/ratio",
        "/windows/0",
        "/windows/0/canary/0",
        "/recommendation/0",
    ] {
        let object = value
            .pointer_mut(pointer)
            .and_then(Value::as_object_mut)
            .unwrap_or_else(|| panic!("{pointer}"));
        object.insert("a_later_addition".to_owned(), json!({"any": [1, "thing"]}));
    }
    assert!(validator.is_valid(&value));
    let text = serde_json::to_vec(&value).unwrap();
    assert_eq!(json::parse(Path::new("x"), &text).unwrap(), crate::common::sample());
}

#[test]
fn wrong_documents_are_rejected() {
    let validator = validator();
    let good = serde_json::to_value(crate::common::sample()).unwrap();
    let wrong: [(&str, Value); 16] = [
        ("/schema", json!(2)),
        ("/schema", json!("1")),
        ("/run", json!(5)),
        ("/complete", json!("true")),
        ("/seed", json!(1)),
        ("/machine", json!([])),
        ("/machine/cores", json!(-1)),
        ("/results/0/median", json!("fast")),
        ("/results/0/better", json!("greater")),
        ("/results/0/case/bytes", json!(1.5)),
        ("/results/0/ratio/verdict", json!("won")),
        ("/results/0/rounds", json!(2.5)),
        ("/windows/0/steal", json!(1.5)),
        ("/windows/0/bytes", json!(-1)),
        ("/recommendation/0/because", json!(["0"])),
        ("/recommendation/0/confidence", json!("certain")),
    ];
    for (pointer, value) in wrong {
        let mut bad = good.clone();
        *bad.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value.clone();
        assert!(!validator.is_valid(&bad), "{pointer} = {value} was accepted");
    }
    for key in ["schema", "run", "started", "sealway", "machine"] {
        let mut bad = good.clone();
        bad.as_object_mut().unwrap().remove(key);
        assert!(!validator.is_valid(&bad), "accepted without {key}");
        let text = serde_json::to_vec(&bad).unwrap();
        assert!(json::parse(Path::new("x"), &text).is_err(), "read without {key}");
    }
}

#[test]
fn a_file_gives_back_what_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("result.json");
    for run in [crate::common::empty(), crate::common::sample()] {
        json::write(&path, &run).unwrap();
        assert_eq!(json::read(&path).unwrap(), run);
    }
    let mut run = crate::common::sample();
    run.results[0].high = Num(f64::INFINITY);
    json::write(&path, &run).unwrap();
    assert_eq!(json::read(&path).unwrap().results[0].high, Num(f64::INFINITY));
}

#[test]
fn what_could_not_be_read_back_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("result.json");
    json::write(&path, &crate::common::sample()).unwrap();
    let before = std::fs::read(&path).unwrap();
    let mut run = crate::common::sample();
    run.windows[0].cpu_s = f64::INFINITY;
    let error = json::write(&path, &run).unwrap_err();
    assert!(error.to_string().contains("fault of Sealway"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), before);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
}
