#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sealway_drop_web::fuzzing::run(data));
