#![no_main]

#[path = "../../crates/aead/tests/common/fuzzing.rs"]
mod fuzzing;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::batch(data));
