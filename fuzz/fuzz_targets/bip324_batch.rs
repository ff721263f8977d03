#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sealway_bip324::fuzzing::run("bip324_batch", data));
