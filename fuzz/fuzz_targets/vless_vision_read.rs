#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| sealway_v2ray::fuzzing::run("vless_vision_read", data));
