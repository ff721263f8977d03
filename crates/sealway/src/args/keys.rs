//! Arguments of the commands that make ids and keys.

use clap::Args;

/// Make a user id
///
/// Prints a random id, or the one that a text of up to 30 bytes stands for: the same text gives the same id here and in
/// V2Ray and Xray. An id is all that a user needs to be let in: keep it secret, and do not make it from a text that can be
/// guessed.
#[derive(Args, Debug)]
pub(crate) struct Uuid {
    /// Text to make the id from [default: random]
    #[arg(value_name = "TEXT")]
    pub(crate) text: Option<String>,

    /// The same as TEXT
    #[arg(
        short = 'i',
        value_name = "TEXT",
        conflicts_with = "text",
        allow_hyphen_values = true
    )]
    pub(crate) input: Option<String>,
}

/// Make a pair of keys for REALITY
///
/// Prints the private key for `privateKey` of the server, the public key for `publicKey` of its clients, and a hash of the
/// public key. Keep the private key secret.
#[derive(Args, Debug)]
pub(crate) struct X25519 {
    /// The private key to tell the public key of, in base64 [default: a new one]
    // One in 64 begins with a dash in the base64 of URLs.
    #[arg(short, value_name = "KEY", allow_hyphen_values = true)]
    pub(crate) input: Option<String>,

    /// Write the keys in ordinary base64, with padding, instead of that for URLs
    #[arg(long)]
    pub(crate) std_encoding: bool,
}

/// Make a pair of keys of ML-DSA-65 for REALITY
///
/// Prints the seed for `mldsa65Seed` of the server, and the public key for `mldsa65Verify` of its clients. Keep the seed secret.
#[derive(Args, Debug)]
pub(crate) struct Mldsa65 {
    /// The seed to tell the public key of, in base64 [default: a new one]
    #[arg(short, value_name = "SEED", allow_hyphen_values = true)]
    pub(crate) input: Option<String>,
}
