//! VLESS: requests, answers, packets, the choice of a fallback, and the blocks of Vision.

use std::convert::Infallible;

use super::whole;
use crate::vless::fallback::{Fallback, Fallbacks};
use crate::vless::vision::{Filter, MAX_BLOCK, Reader, Seed, Writer};
use crate::{Error, Step, UserId, vless};

pub(super) fn vless_request(data: &[u8]) {
    whole(data, vless::Request::decode);
    if let Ok(Step::Done { value, .. }) = vless::Request::decode(data) {
        let mut again = Vec::new();
        value.encode(&mut again);
        let used = again.len();
        assert_eq!(vless::Request::decode(&again), Ok(Step::Done { value, used }));
    }
}

pub(super) fn vless_response(data: &[u8]) {
    whole(data, vless::decode_response);
}

pub(super) fn vless_packet(data: &[u8]) {
    whole(data, |bytes| Ok(vless::packet::decode(bytes)));
}

pub(super) fn vless_fallback(data: &[u8]) {
    let entry = |name: &str, alpn: &str, path: &str, target: u8| Fallback {
        name: name.into(),
        alpn: alpn.into(),
        path: path.into(),
        target,
    };
    let fallbacks = Fallbacks::new([
        entry("", "", "", 1),
        entry("", "", "/a", 2),
        entry("a.example", "h2", "/b", 3),
    ]);
    let mut parts = data.splitn(3, |byte| *byte == 0);
    let mut text = || String::from_utf8_lossy(parts.next().unwrap_or_default()).into_owned();
    let (name, alpn) = (text(), text());
    let first = parts.next().unwrap_or_default();
    let choice = fallbacks.choose(&name, &alpn, first);
    assert!(
        choice.is_ok() || alpn.eq_ignore_ascii_case("h2"),
        "there is a default entry for all but one ALPN"
    );
    // Nothing is waited for once 64 bytes have come.
    assert!(first.len() < 64 || !fallbacks.wants_more(&name, &alpn, first));
    let mut users = vless::Users::new();
    assert!(users.insert(UserId::from_bytes([7; 16]), ()).is_ok());
    let _ = vless::first::inspect(first, &users);
}

const ID: UserId = UserId::from_bytes([7; 16]);

/// The payload of blocks that come in pieces of at most `most` bytes, and how they end.
fn opened(data: &[u8], most: usize) -> Result<(Vec<u8>, Option<bool>), Error> {
    let mut reader = Reader::new(ID);
    let (mut payload, mut held) = (Vec::new(), Vec::new());
    for piece in data.chunks(most) {
        held.extend_from_slice(piece);
        while let Some(part) = reader.next(&held)? {
            let used = part.skip + part.content;
            assert!(
                used > 0 && used <= held.len(),
                "a part of {used} bytes of {}",
                held.len()
            );
            payload.extend_from_slice(&held[part.skip..used]);
            held.drain(..used);
        }
        if reader.is_through().is_some() {
            payload.append(&mut held);
        }
        assert!(held.len() < 16, "{} bytes are kept", held.len());
    }
    Ok((payload, reader.is_through()))
}

pub(super) fn vision_read(data: &[u8]) {
    // Most inputs are blocks of the user, else there would be nothing to look for.
    let mut blocks = ID.as_bytes().to_vec();
    blocks.extend_from_slice(data);
    for data in [data, &blocks] {
        let whole = opened(data, usize::MAX);
        for most in [1, 3, 1000] {
            assert_eq!(opened(data, most), whole, "in pieces of {most}");
        }
    }
    let (mut at_once, mut by_two) = (Filter::default(), Filter::default());
    at_once.look(data);
    let (first, second) = data.split_at(data.len() / 2);
    by_two.look(first);
    by_two.look(second);
    assert!(!at_once.may_go_direct() || at_once.is_tls12());
    assert!(!by_two.may_go_direct() || by_two.is_tls12());
}

/// The input is batches: two bytes of length each, and a seed in front of them.
pub(super) fn vision_write(data: &[u8]) {
    let Some((seed, mut rest)) = data.split_first_chunk::<4>() else {
        return;
    };
    let numbers = seed.map(|byte| u32::from(byte) * 40);
    let (mut writer, mut filter) = (Writer::new(ID, Seed::new(numbers), true), Filter::default());
    let (mut wire, mut whole) = (Vec::new(), Vec::new());
    let mut random = u32::from_be_bytes(*seed);
    while let Some((len, after)) = rest.split_first_chunk::<2>() {
        let len = usize::from(u16::from_be_bytes(*len)).min(after.len());
        let (batch, later) = after.split_at(len);
        rest = later;
        whole.extend_from_slice(batch);
        let mut end = 0;
        // More than this many blocks without content in a row are refused.
        if writer.is_through().is_none() && len > 0 {
            let number = || {
                random = random.wrapping_mul(0x9e37_79b1).wrapping_add(1);
                Ok::<_, Infallible>(random)
            };
            let padded = match writer.pad(batch, &mut filter, number) {
                Ok(padded) => padded,
                Err(never) => match never {},
            };
            for block in padded.blocks {
                assert_eq!(block.content.start, end);
                end = block.content.end;
                let length = block.head().len() + block.content.len() + block.padding;
                assert!(length <= MAX_BLOCK);
                wire.extend_from_slice(block.head());
                wire.extend_from_slice(&batch[block.content]);
                wire.resize(wire.len() + block.padding, 0);
            }
            assert_eq!(end, padded.end);
            assert!(end == len || writer.is_through().is_some());
        }
        wire.extend_from_slice(&batch[end..]);
    }
    let through = if wire.is_empty() { None } else { writer.is_through() };
    assert_eq!(opened(&wire, 700), Ok((whole, through)));
}
