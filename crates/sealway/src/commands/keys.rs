//! `sealway x25519` and `sealway mldsa65`: keys for REALITY.

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use sealway_tls::reality::keys;
use zeroize::Zeroizing;

use crate::args::{Mldsa65, X25519};
use crate::exit::Exit;
use crate::output;
use crate::problem::Problem;

pub(crate) fn x25519(options: &X25519) -> Result<Exit, Problem> {
    let private = keys::clamped(*given_or_new::<32>("private key", options.input.as_deref())?);
    let public = keys::x25519_public(&private);
    let hash = blake3::hash(&public);
    let text = |bytes: &[u8; 32]| match options.std_encoding {
        true => Zeroizing::new(STANDARD.encode(bytes)),
        false => Zeroizing::new(URL_SAFE_NO_PAD.encode(bytes)),
    };
    // The words of Xray, which scripts look for.
    output::answer(&Zeroizing::new(format!(
        "PrivateKey: {}\nPassword (PublicKey): {}\nHash32: {}\n",
        *text(&private),
        *text(&public),
        *text(hash.as_bytes())
    )))
}

pub(crate) fn mldsa65(options: &Mldsa65) -> Result<Exit, Problem> {
    output::answer(&signing(options.input.as_deref())?)
}

/// The two lines of an ML-DSA-65 pair.
pub(crate) fn signing(seed: Option<&str>) -> Result<Zeroizing<String>, Problem> {
    let seed = given_or_new::<32>("seed", seed)?;
    let public = keys::mldsa65_public(&seed).map_err(|error| Problem::new(Exit::Internal, error))?;
    Ok(Zeroizing::new(format!(
        "Seed: {}\nVerify: {}\n",
        *Zeroizing::new(URL_SAFE_NO_PAD.encode(seed.as_slice())),
        URL_SAFE_NO_PAD.encode(&public)
    )))
}

/// The bytes that base64 of either kind stands for; random ones if there is none.
pub(crate) fn given_or_new<const LEN: usize>(what: &str, text: Option<&str>) -> Result<Zeroizing<[u8; LEN]>, Problem> {
    let mut bytes = Zeroizing::new([0; LEN]);
    let Some(text) = text else {
        getrandom::fill(bytes.as_mut_slice()).map_err(Problem::no_random_bytes)?;
        return Ok(bytes);
    };
    let text = text.trim();
    let read = URL_SAFE_NO_PAD
        .decode(text)
        .or_else(|_| STANDARD.decode(text))
        .map(Zeroizing::new);
    match read {
        Ok(read) if read.len() == bytes.len() => {
            bytes.copy_from_slice(&read);
            Ok(bytes)
        }
        // The text itself may be a key with a letter too many.
        Ok(read) => {
            let text = format!("the {what} has {} bytes, and {LEN} are needed", read.len());
            Err(Problem::usage(text))
        }
        Err(_) => Err(Problem::usage(format!("the {what} is not base64"))),
    }
}
