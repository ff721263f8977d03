#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sealway_api::fuzzing::run("api_describe", data));
