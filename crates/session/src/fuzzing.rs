//! What a peer may send, for the fuzz target and for the test that replays its corpus. Not part of the public interface.
//!
//! It checks more than that nothing panics: that cutting the input elsewhere changes nothing, that nothing more is used than was
//! given, that an end that failed stays failed, and that nothing opens but what was sealed.

#[cfg(test)]
mod corpora;

use sealway_aead::Suite;
use sealway_aead::choose::Offer;

use crate::attach::{AttachInitiator, AttachResponder};
use crate::code::CodePhrase;
use crate::handshake::{Auth, Config, Established, Handshake, Kem, Mode, PeerKey, Role, StaticKey};
use crate::record::{HEADER_LEN, OVERHEAD, Opened, RecvHalf};
use crate::{Error, Zeroizing};

/// An entry: its name, which is also that of its fuzz target and corpus, and the function.
pub type Entry = (&'static str, fn(&[u8]));

/// All entries.
pub const ENTRIES: &[Entry] = &[("session", session)];

/// Random bytes that are always the same, so that inputs can get through a handshake.
fn fixed(mut byte: u8) -> impl FnMut(&mut [u8]) {
    move |out| {
        for place in out {
            byte = byte.wrapping_mul(109).wrapping_add(89);
            *place = byte;
        }
    }
}

/// One end, always the same.
///
/// # Errors
/// If memory ran out.
pub fn end(role: Role, mode: Mode) -> Result<Handshake, Error> {
    let auth = match mode {
        Mode::Code => Auth::Code(Zeroizing::new(b"castle-lemon-opera".to_vec())),
        Mode::Keys => Auth::Keys {
            own: StaticKey::from_bytes(&[role.id(); 32]),
            peer: PeerKey::Unknown,
        },
    };
    let suites = [Suite::Aes256Gcm, Suite::ChaCha20Poly1305];
    let config = Config {
        role,
        auth,
        offer: Offer::new(&suites, true).map_err(Error::Suites)?,
        kem: Kem::MlKem768,
        prologue: Vec::new(),
    };
    Handshake::new(config, &mut fixed(role.id()))
}

/// Both ends of a finished handshake, always the same.
///
/// # Errors
/// If memory ran out.
pub fn established(mode: Mode) -> Result<(Established, Established), Error> {
    let (mut here, mut there) = (end(Role::Initiator, mode)?, end(Role::Responder, mode)?);
    while let Some(flight) = here.write() {
        there.read(&flight)?;
        if let Some(flight) = there.write() {
            here.read(&flight)?;
        }
    }
    Ok((here.finish()?, there.finish()?))
}

/// What to send to a responder, an initiator, a responder that has answered, a receiver of records, both ends of an extra
/// connection, and a reader of code phrases: everything in order, to start a corpus with.
///
/// # Errors
/// If memory ran out.
pub fn seeds() -> Result<Vec<(&'static str, Vec<u8>)>, Error> {
    let mut seeds = Vec::new();
    let mut seed = |name, first: u8, rest: &[u8]| seeds.push((name, [&[first], rest].concat()));
    for (mode, bit) in [(Mode::Code, 0), (Mode::Keys, 8)] {
        let (mut here, mut there) = (end(Role::Initiator, mode)?, end(Role::Responder, mode)?);
        let names = match mode {
            Mode::Code => ["code-first", "code-second", "code-third"],
            Mode::Keys => ["keys-first", "keys-second", "keys-third"],
        };
        for (i, name) in (0u8..).zip(names) {
            let (from, to) = if i == 1 {
                (&mut there, &mut here)
            } else {
                (&mut here, &mut there)
            };
            let flight = from.write().unwrap_or_default();
            to.read(&flight)?;
            seed(name, i | bit | 0x20, &flight);
        }
    }
    let (mut here, there) = established(Mode::Code)?;
    let mut records = Vec::new();
    here.send.seal_from(1, 7, &[b"one"], &mut records)?;
    here.send.rekey();
    here.send.seal_from(2, 7, &[b"two"], &mut records)?;
    here.send.seal_from(2, 7, &[], &mut records)?;
    records.extend(here.send.close()?);
    seed("records", 3 | 0x40, &records);
    let mut dialled = AttachInitiator::new(&here.session, 1, &mut fixed(3))?;
    let hello = dialled.write().unwrap_or_default();
    seed("hello", 4 | 0x10, &hello);
    let mut answered = AttachResponder::new(&there.session, &mut fixed(4));
    answered.read(&hello)?;
    seed("answer", 5 | 0x10, &answered.write().unwrap_or_default());
    seed("phrase", 6, b" 7-Castle lemon--OPERA\n");
    Ok(seeds)
}

/// The first byte says who reads and how the input is cut; the rest is what a peer sent.
///
/// # Panics
/// If it finds a fault.
pub fn session(data: &[u8]) {
    let Some((&first, input)) = data.split_first() else {
        return;
    };
    let mode = if first & 8 == 0 { Mode::Code } else { Mode::Keys };
    let step = 1 + 37 * usize::from(first >> 4);
    let read = match first & 7 {
        0..=2 => handshake(first & 7, mode, input, step),
        3 => records(input, step),
        4 => dialled(input, step),
        5 => answered(input, step),
        _ => phrase(input),
    };
    // The ends themselves are always in order: an error here is not one of the input.
    if let Err(error) = read {
        panic!("{error}");
    }
}

/// Gives a machine the input in pieces. How much it took, and what it said in the end.
fn feed(input: &[u8], step: usize, mut read: impl FnMut(&[u8]) -> Result<usize, Error>) -> (usize, Option<Error>) {
    let mut used = 0;
    for piece in input.chunks(step) {
        match read(piece) {
            Ok(n) => {
                assert!(n <= piece.len());
                used += n;
                if n < piece.len() {
                    break;
                }
            }
            Err(error) => {
                assert_eq!(read(piece), Err(Error::Dead), "an end that failed goes on");
                return (0, Some(error));
            }
        }
    }
    (used, None)
}

fn handshake(flight: u8, mode: Mode, input: &[u8], step: usize) -> Result<(), Error> {
    let awaiting = || -> Result<Handshake, Error> {
        let (mut here, mut there) = (end(Role::Initiator, mode)?, end(Role::Responder, mode)?);
        let first = here.write().unwrap_or_default();
        match flight {
            0 => Ok(there),
            1 => Ok(here),
            _ => {
                there.read(&first)?;
                there.write();
                Ok(there)
            }
        }
    };
    let (mut whole, mut pieces) = (awaiting()?, awaiting()?);
    let a = feed(input, input.len().max(1), |piece| whole.read(piece));
    let b = feed(input, step, |piece| pieces.read(piece));
    assert_eq!(a, b, "cutting the input made a difference");
    assert_eq!(whole.write(), pieces.write());
    assert_eq!(whole.is_done(), pieces.is_done());
    assert_eq!(whole.guess_spent(), pieces.guess_spent());
    if flight > 0 && whole.is_done() {
        // Only the one flight that the other end really sends gets here.
        let (real, _) = established(mode)?;
        assert_eq!(whole.finish()?.check, real.check);
    }
    Ok(())
}

/// Records as they come: those that are opened are a beginning of what was sealed.
fn records(mut input: &[u8], step: usize) -> Result<(), Error> {
    let (mut here, mut there) = established(Mode::Code)?;
    let mut real = Vec::new();
    here.send.seal_from(1, 7, &[b"one"], &mut real)?;
    here.send.rekey();
    here.send.seal_from(2, 7, &[b"two"], &mut real)?;
    here.send.seal_from(2, 7, &[], &mut real)?;
    real.extend(here.send.close()?);
    let mut at = 0;
    while let Some(header) = input.first_chunk::<HEADER_LEN>() {
        let Ok(len) = there.recv.record_len(header) else { break };
        let Some((record, rest)) = input.split_at_checked(len) else {
            break;
        };
        match open(&mut there.recv, record) {
            Ok(_) => {
                assert_eq!(real.get(at..at + len), Some(record), "what was not sealed was opened");
                at += len;
            }
            Err(_) => {
                assert_eq!(there.recv.open(&mut [0; OVERHEAD]), Err(Error::Dead));
                break;
            }
        }
        input = rest;
    }
    assert_eq!(there.recv.is_closed(), at == real.len());
    // A buffer that was not measured first.
    let mut any = input[..step.min(input.len())].to_vec();
    let kept = any.clone();
    if there.recv.open(&mut any).is_ok() {
        assert!(real[at..].starts_with(&kept), "what was not sealed was opened");
    }
    Ok(())
}

fn open(recv: &mut RecvHalf, record: &[u8]) -> Result<Opened, Error> {
    let mut record = record.to_vec();
    let opened = recv.open(&mut record)?;
    if let Opened::Data { payload, .. } = &opened {
        assert_eq!(payload.len() + OVERHEAD, record.len());
    }
    Ok(opened)
}

fn dialled(input: &[u8], step: usize) -> Result<(), Error> {
    let read = |step| -> Result<_, Error> {
        let (_, there) = established(Mode::Code)?;
        let mut answered = AttachResponder::new(&there.session, &mut fixed(4));
        Ok((feed(input, step, |piece| answered.read(piece)), answered.write()))
    };
    assert_eq!(
        read(input.len().max(1))?,
        read(step)?,
        "cutting the input made a difference"
    );
    Ok(())
}

fn answered(input: &[u8], step: usize) -> Result<(), Error> {
    let read = |step| -> Result<_, Error> {
        let (here, _) = established(Mode::Code)?;
        let mut dialled = AttachInitiator::new(&here.session, 1, &mut fixed(3))?;
        dialled.write();
        Ok((feed(input, step, |piece| dialled.read(piece)), dialled.is_done()))
    };
    assert_eq!(
        read(input.len().max(1))?,
        read(step)?,
        "cutting the input made a difference"
    );
    Ok(())
}

fn phrase(input: &[u8]) -> Result<(), Error> {
    let text = String::from_utf8_lossy(input);
    if let Ok(phrase) = CodePhrase::parse(&text) {
        let shown = phrase.reveal();
        let again = CodePhrase::parse(&shown).map(|again| (again.nameplate(), again.secret()));
        assert_eq!(
            again,
            Ok((phrase.nameplate(), phrase.secret())),
            "what is shown is read otherwise"
        );
    }
    Ok(())
}
