#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sealway_proxy::fuzzing::run("tls_hello", data));
