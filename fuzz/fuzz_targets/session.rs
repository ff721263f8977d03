#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sealway_session::fuzzing::session(data));
