//! Ids and keys in the lines that panels read: of a pair the first line is the private part and the second the public one, each
//! behind a colon.

use std::process::ExitCode;

use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use sealway_tls::reality::keys::{clamped, mlkem768_public, x25519_public};
use sealway_v2ray::UserId;
use zeroize::Zeroizing;

use super::flags::{Flags, Takes};
use super::print;
use crate::commands::keys::{given_or_new, signing};
use crate::commands::uuid;
use crate::problem::Problem;

pub(super) const X25519_FLAGS: [(&str, Takes); 2] = [("i", Takes::Value), ("std-encoding", Takes::Nothing)];

/// Prints what came of it. What is wrong with a key is no failure to Xray, and goes to standard output.
fn told(text: Result<Zeroizing<String>, Problem>) -> ExitCode {
    match text {
        Ok(text) => print(&text),
        Err(problem) => print(&format!("{}\n", problem.message())),
    }
}

/// The text of `-i`, unless it is empty.
fn input(flags: &Flags) -> Option<Zeroizing<String>> {
    flags.text("i").filter(|text| !text.is_empty()).map(Zeroizing::new)
}

fn base64(bytes: &[u8]) -> Zeroizing<String> {
    Zeroizing::new(URL_SAFE_NO_PAD.encode(bytes))
}

pub(super) fn uuid(flags: &Flags) -> ExitCode {
    told(id(input(flags)).map(|id| Zeroizing::new(format!("{id}\n"))))
}

fn id(text: Option<Zeroizing<String>>) -> Result<UserId, Problem> {
    match text {
        Some(text) if text.len() > 30 => {
            let what = "Input must be within 30 bytes.";
            Err(Problem::usage(what))
        }
        Some(text) => UserId::parse(&text).map_err(Problem::usage),
        None => uuid::random(),
    }
}

/// The older two lines: those who look for either word of the newer ones take the text behind the colon.
fn pair(flags: &Flags, standard: bool) -> Result<Zeroizing<String>, Problem> {
    let given = input(flags);
    let private = clamped(*given_or_new::<32>(
        "private key",
        given.as_deref().map(String::as_str),
    )?);
    let public = x25519_public(&private);
    let text = |bytes: &[u8; 32]| match standard {
        true => Zeroizing::new(STANDARD.encode(bytes)),
        false => base64(bytes),
    };
    let (private, public) = (text(&private), text(&public));
    Ok(Zeroizing::new(format!(
        "Private key: {}\nPublic key: {}\n",
        *private, *public
    )))
}

pub(super) fn x25519(flags: &Flags) -> ExitCode {
    told(pair(flags, flags.is("std-encoding")))
}

pub(super) fn wg(flags: &Flags) -> ExitCode {
    told(pair(flags, true))
}

pub(super) fn mldsa65(flags: &Flags) -> ExitCode {
    told(signing(input(flags).as_deref().map(String::as_str)))
}

pub(super) fn mlkem768(flags: &Flags) -> ExitCode {
    told(encapsulation(flags))
}

fn encapsulation(flags: &Flags) -> Result<Zeroizing<String>, Problem> {
    let seed = given_or_new::<64>("seed", input(flags).as_deref().map(String::as_str))?;
    let client = mlkem768_public(&seed);
    let hash = base64(blake3::hash(&client).as_bytes());
    let (seed, client) = (base64(seed.as_slice()), base64(&client));
    Ok(Zeroizing::new(format!(
        "Seed: {}\nClient: {}\nHash32: {}\n",
        *seed, *client, *hash
    )))
}

pub(super) fn vlessenc() -> ExitCode {
    told(encryption())
}

/// Two ways to know the server by; the words for `decryption` and `encryption` of each.
fn encryption() -> Result<Zeroizing<String>, Problem> {
    let private = clamped(*given_or_new::<32>("private key", None)?);
    let seed = given_or_new::<64>("seed", None)?;
    let block = |title: &str, secret: &[u8], public: &[u8]| {
        let (secret, public) = (base64(secret), base64(public));
        Zeroizing::new(format!(
            "\nAuthentication: {title}\n\
             \"decryption\": \"mlkem768x25519plus.native.600s.{}\"\n\
             \"encryption\": \"mlkem768x25519plus.native.0rtt.{}\"\n",
            *secret, *public
        ))
    };
    let classic = block("X25519, not Post-Quantum", private.as_slice(), &x25519_public(&private));
    let hybrid = block("ML-KEM-768, Post-Quantum", seed.as_slice(), &mlkem768_public(&seed));
    Ok(Zeroizing::new(format!(
        "Take one of the two, and both of its lines.\n{}{}",
        *classic, *hybrid
    )))
}
