#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sealway_route::fuzzing::run("geo_file", data));
