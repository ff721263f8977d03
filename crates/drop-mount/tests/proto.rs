//! The generated code of the gRPC service is what its definition says.

use std::path::Path;

/// What stands above the generated code.
const HEAD: &str = "// Longer than a file should be, and in one piece: the generator makes one file of a package.\n";

/// `SEALWAY_UPDATE_GOLDEN=1 cargo test -p sealway-drop-mount --test proto` writes the code anew after the definition changed.
#[test]
fn the_service_is_generated_from_its_definition() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let definition = protox::compile(["sealway_drop_v1.proto"], [here.join("proto")]).unwrap();
    let dir = tempfile::tempdir().unwrap();
    tonic_prost_build::configure()
        .bytes(".")
        .out_dir(dir.path())
        .emit_rerun_if_changed(false)
        .compile_fds(definition)
        .unwrap();
    let generated = std::fs::read_to_string(dir.path().join("sealway.drop.v1.rs")).unwrap();
    let generated = format!("{HEAD}{generated}");
    let kept = here.join("src/grpc/sealway.drop.v1.rs");
    if std::env::var("SEALWAY_UPDATE_GOLDEN").is_ok_and(|value| value == "1") {
        std::fs::write(&kept, &generated).unwrap();
    }
    assert!(
        std::fs::read_to_string(&kept).unwrap() == generated,
        "run again with SEALWAY_UPDATE_GOLDEN=1"
    );
}
