#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sealway_lab::fuzzing::run("lab_import", data));
