#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sealway_proxy::fuzzing::run("dns_answer", data));
