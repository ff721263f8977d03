//! Two ends in one process.

use sealway_aead::Suite;
use sealway_aead::choose::Offer;
use sealway_session::Error;
use sealway_session::handshake::{Auth, Config, Established, Handshake, Kem, Mode, PeerKey, Role, StaticKey};
use sealway_session::record::{HEADER_LEN, OVERHEAD, Opened, RecvHalf, SendHalf, TAG_LEN};

/// Bytes that follow from a seed: SplitMix64.
pub(crate) fn random(seed: u64) -> impl FnMut(&mut [u8]) {
    let mut state = seed;
    move |out| {
        for chunk in out.chunks_mut(8) {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            z ^= z >> 31;
            chunk.copy_from_slice(&z.to_le_bytes()[..chunk.len()]);
        }
    }
}

pub(crate) fn offer(suites: &[Suite], aes_hardware: bool) -> Offer {
    Offer::new(suites, aes_hardware).unwrap()
}

/// The static key of an end.
pub(crate) fn static_key(role: Role) -> StaticKey {
    StaticKey::from_bytes(&match role {
        Role::Initiator => [0x11; 32],
        Role::Responder => [0x22; 32],
    })
}

pub(crate) fn code(secret: &str) -> Auth {
    Auth::Code(secret.as_bytes().to_vec().into())
}

pub(crate) fn keys(role: Role, peer: PeerKey) -> Auth {
    Auth::Keys {
        own: static_key(role),
        peer,
    }
}

pub(crate) fn auth(mode: Mode, role: Role) -> Auth {
    match mode {
        Mode::Code => code("castle-lemon-opera"),
        Mode::Keys => keys(role, PeerKey::Pinned(*static_key(role.other()).public())),
    }
}

pub(crate) fn config(role: Role, auth: Auth) -> Config {
    Config {
        role,
        auth,
        offer: offer(&[Suite::Aes256Gcm, Suite::ChaCha20Poly1305], true),
        kem: Kem::MlKem768,
        prologue: b"test".to_vec(),
    }
}

pub(crate) fn start(config: Config, seed: u64) -> Handshake {
    Handshake::new(config, &mut random(seed)).unwrap()
}

/// Both ends of a mode, that would agree if left alone.
pub(crate) fn ends(mode: Mode, seed: u64) -> (Handshake, Handshake) {
    let end = |role| start(config(role, auth(mode, role)), seed + role as u64);
    (end(Role::Initiator), end(Role::Responder))
}

/// Carries flights to and fro until nothing moves, through a filter that may change them: it is given the number of the
/// flight, from 1 on. What each end says in the end.
pub(crate) fn drive(
    initiator: &mut Handshake,
    responder: &mut Handshake,
    mut filter: impl FnMut(u32, Vec<u8>) -> Vec<u8>,
) -> (Result<(), Error>, Result<(), Error>) {
    let (mut here, mut there) = (Ok(()), Ok(()));
    for number in 1..=3 {
        let initiator_speaks = number % 2 == 1;
        let (from, to, result) = if initiator_speaks {
            (&mut *initiator, &mut *responder, &mut there)
        } else {
            (&mut *responder, &mut *initiator, &mut here)
        };
        let Some(flight) = from.write() else { break };
        let flight = filter(number, flight);
        if let Err(error) = to.read(&flight) {
            *result = Err(error);
            break;
        }
    }
    (here, there)
}

/// Two ends that agree.
pub(crate) fn agree(mut initiator: Handshake, mut responder: Handshake) -> (Established, Established) {
    let results = drive(&mut initiator, &mut responder, |_, flight| flight);
    assert_eq!(results, (Ok(()), Ok(())));
    (initiator.finish().unwrap(), responder.finish().unwrap())
}

pub(crate) fn established(mode: Mode, seed: u64) -> (Established, Established) {
    let (initiator, responder) = ends(mode, seed);
    agree(initiator, responder)
}

/// A record of this payload.
pub(crate) fn seal(half: &mut SendHalf, kind: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let mut record = vec![0; HEADER_LEN + payload.len() + TAG_LEN];
    record[HEADER_LEN..HEADER_LEN + payload.len()].copy_from_slice(payload);
    half.seal(kind, stream, &mut record).unwrap();
    record
}

/// Opens a record as one that came from the network: length first.
pub(crate) fn open(half: &mut RecvHalf, record: &[u8]) -> Result<(u8, u32, Vec<u8>), Error> {
    let header = record[..HEADER_LEN].try_into().unwrap();
    let len = half.record_len(&header)?;
    assert!(len >= OVERHEAD);
    let mut record = record.to_vec();
    record.resize(len, 0);
    match half.open(&mut record)? {
        Opened::Data { kind, stream, payload } => Ok((kind, stream, record[payload].to_vec())),
        Opened::Close => Ok((u8::MAX, 0, Vec::new())),
    }
}

/// Asserts that a half opens what another seals.
pub(crate) fn assert_talks(send: &mut SendHalf, recv: &mut RecvHalf) {
    let record = seal(send, 3, 9, b"payload");
    assert_eq!(open(recv, &record), Ok((3, 9, b"payload".to_vec())));
}
