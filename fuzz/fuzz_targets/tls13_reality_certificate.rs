#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sealway_tls::fuzzing::run("tls13_reality_certificate", data));
