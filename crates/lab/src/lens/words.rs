//! Names of the field in plain words, for readers who meet them for the first time.

/// A cipher suite in half a line; empty for a name that is none.
pub fn suite(name: &str) -> &'static str {
    match name {
        "aes-128-gcm" => "AES with 128-bit keys, fast where the CPU has instructions for it",
        "aes-256-gcm" => "AES with 256-bit keys, fast where the CPU has instructions for it",
        "chacha20-poly1305" => "ChaCha20, fast on every CPU",
        "xchacha20-poly1305" => "ChaCha20 for nonces drawn at random",
        _ => "",
    }
}

/// Sizes of packets: `mixed sizes`, `tiny packets`, `128 B`.
pub fn sizes(name: &str) -> String {
    match name {
        "mix" => "mixed sizes".to_owned(),
        "tiny" => "tiny packets".to_owned(),
        other => other.parse().map_or_else(|_| other.to_owned(), crate::format::size),
    }
}

/// What is done with a packet: `seal and open`.
pub fn deed(op: &str) -> &str {
    match op {
        "pair" => "seal and open",
        "key-setup" => "key set-up",
        "fresh-key" => "fresh key",
        "seal-without-aes" => "seal without AES in hardware,",
        other => other,
    }
}
