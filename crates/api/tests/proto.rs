//! The generated code of the services and messages is what their definitions say.
#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;

use prost_types::FileDescriptorSet;

/// What stands above generated code.
const HEAD: &str = "// Made from proto/ by tests/proto.rs.\n";

/// `SEALWAY_UPDATE_GOLDEN=1 cargo test --workspace --locked --test proto` writes the code anew after a definition changed.
#[test]
fn the_code_is_generated_from_the_definitions() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut definitions: Vec<_> = std::fs::read_dir(here.join("proto"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    definitions.sort();
    let set: FileDescriptorSet = protox::Compiler::new([here.join("proto")])
        .unwrap()
        .include_imports(true)
        .open_files(&definitions)
        .unwrap()
        .file_descriptor_set();
    let dir = tempfile::tempdir().unwrap();
    tonic_prost_build::configure()
        .build_client(false)
        .btree_map(".")
        .out_dir(dir.path())
        .include_file("all.rs")
        .emit_rerun_if_changed(false)
        .compile_fds(set.clone())
        .unwrap();
    let mut made = files(dir.path());
    for (name, text) in &mut made {
        if name.ends_with(".rs") {
            text.splice(0..0, HEAD.bytes());
        }
    }
    made.insert("descriptors.bin".to_owned(), prost::Message::encode_to_vec(&set));
    let kept = here.join("src/generated");
    if std::env::var("SEALWAY_UPDATE_GOLDEN").is_ok_and(|value| value == "1") {
        for name in files(&kept).into_keys() {
            std::fs::remove_file(kept.join(name)).unwrap();
        }
        for (name, bytes) in &made {
            std::fs::write(kept.join(name), bytes).unwrap();
        }
    }
    assert!(files(&kept) == made, "run again with SEALWAY_UPDATE_GOLDEN=1");
}

fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap());
    let read = entries.map(|entry| {
        let name = entry.file_name().into_string().unwrap();
        (name, std::fs::read(entry.path()).unwrap())
    });
    read.collect()
}
