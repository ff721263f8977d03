use super::*;
use crate::RekeyPolicy;

fn hex(nonce: &Nonce) -> String {
    nonce.to_bytes().iter().map(|b| format!("{b:02x}")).collect()
}

#[test]
fn xor_layout_follows_tls13() {
    let mut sequence = NonceSequence::xor(Suite::Aes128Gcm, &[0xff; 12])
        .unwrap()
        .starting_at(0x0102)
        .unwrap();
    assert_eq!(hex(&sequence.advance().unwrap().nonce), "fffffffffffffffffffffefd");
    assert_eq!(hex(&sequence.advance().unwrap().nonce), "fffffffffffffffffffffefc");
}

#[test]
fn field_layouts() {
    let mut s = NonceSequence::fixed_then_counter(Suite::ChaCha20Poly1305, &[0xaa; 4]).unwrap();
    assert_eq!(hex(&s.advance().unwrap().nonce), "aaaaaaaa0000000000000000");
    assert_eq!(hex(&s.advance().unwrap().nonce), "aaaaaaaa0000000000000001");
    let mut s = NonceSequence::counter_then_fixed(Suite::Aes128Gcm, 2, CounterOrder::BigEndian, &[7; 10]).unwrap();
    s = s.starting_at(0x1234).unwrap();
    assert_eq!(hex(&s.advance().unwrap().nonce), "123407070707070707070707");
    let mut s =
        NonceSequence::counter_then_fixed(Suite::ChaCha20Poly1305, 4, CounterOrder::LittleEndian, &[9; 8]).unwrap();
    s = s.starting_at(0x0a0b0c0d).unwrap();
    assert_eq!(hex(&s.advance().unwrap().nonce), "0d0c0b0a0909090909090909");
}

#[test]
fn layouts_that_do_not_fit_are_refused() {
    for fixed in [0, 1, 2, 3, 12, 13, 24, 100] {
        let result = NonceSequence::fixed_then_counter(Suite::Aes256Gcm, &vec![0; fixed]);
        assert!(matches!(result, Err(Error::NonceLayout { .. })), "{fixed}");
    }
    assert!(NonceSequence::fixed_then_counter(Suite::XChaCha20Poly1305, &[0; 16]).is_ok());
    let order = CounterOrder::BigEndian;
    assert!(NonceSequence::counter_then_fixed(Suite::Aes256Gcm, 0, order, &[0; 12]).is_err());
    assert!(NonceSequence::counter_then_fixed(Suite::Aes256Gcm, 9, order, &[0; 3]).is_err());
    assert!(NonceSequence::xor(Suite::Aes256Gcm, &[0; 24]).is_err());
}

/// Every width ends exactly where its field is full, both orders, and stays ended. No loop here depends on the end.
#[test]
fn a_counter_field_ends_where_it_is_full_and_never_wraps() {
    for order in [CounterOrder::BigEndian, CounterOrder::LittleEndian] {
        for width in 1..=8 {
            let last = u64::MAX >> (64 - 8 * width as u32);
            let what = format!("{order:?}, {width} bytes");
            let fresh = || {
                NonceSequence::counter_then_fixed(Suite::ChaCha20Poly1305, width, order, &vec![0xee; 12 - width])
                    .unwrap()
            };
            let mut s = fresh().starting_at(last - 1).unwrap();
            assert_eq!(s.remaining(), 2, "{what}");
            assert_eq!(s.advance().unwrap().number, last - 1, "{what}");
            let end = s.advance().unwrap();
            assert_eq!(end.number, last, "{what}");
            let full = format!("{}{}", "ff".repeat(width), "ee".repeat(12 - width));
            assert_eq!(hex(&end.nonce), full, "{what}");
            for _ in 0..3 {
                assert!(matches!(s.advance(), Err(Error::Exhausted)), "{what}");
            }
            assert_eq!((s.remaining(), s.next_number()), (0, None), "{what}");
            if let Some(past) = last.checked_add(1) {
                assert_eq!(fresh().starting_at(past).unwrap_err(), Error::Exhausted, "{what}");
            }
        }
    }
}

#[test]
fn a_narrow_counter_gives_every_number_once() {
    let order = CounterOrder::BigEndian;
    let mut s = NonceSequence::counter_then_fixed(Suite::Aes128Gcm, 1, order, &[0; 11]).unwrap();
    let steps: Vec<_> = (0..300).map_while(|_| s.advance().ok()).collect();
    assert!(steps.iter().map(|step| step.number).eq(0..256));
    let nonces: std::collections::HashSet<_> = steps.iter().map(|step| hex(&step.nonce)).collect();
    assert_eq!(nonces.len(), 256);
}

#[test]
fn the_end_of_u64_is_the_end() {
    let mut s = NonceSequence::xor(Suite::ChaCha20Poly1305, &[0; 12]).unwrap();
    assert_eq!(s.remaining(), u64::MAX);
    s = s.starting_at(u64::MAX).unwrap();
    assert_eq!(s.remaining(), 1);
    assert_eq!(hex(&s.advance().unwrap().nonce), "00000000ffffffffffffffff");
    assert!(matches!(s.advance(), Err(Error::Exhausted)));
    assert_eq!(s.starting_at(0).unwrap_err(), Error::Exhausted);
}

#[test]
fn a_start_moves_the_limits_and_never_goes_back() {
    let limits = Limits::of(Suite::Aes256Gcm).with_max_messages(3);
    let sequence = || {
        NonceSequence::xor(Suite::Aes256Gcm, &[0; 12])
            .unwrap()
            .with_limits(limits)
    };
    let start = 1 << 60;
    let mut s = sequence().starting_at(u64::MAX).unwrap().starting_at(start).unwrap();
    assert_eq!(s.remaining(), 3);
    assert_eq!(s.advance().unwrap().number, start);
    s = s.starting_at(start + 1).unwrap();
    assert_eq!(s.advance().unwrap().number, start + 1);
    s = s.starting_at(start + 2).unwrap();
    assert_eq!(s.advance().unwrap().number, start + 2);
    assert!(matches!(s.advance(), Err(Error::Exhausted)));

    for back in [0, 5, start] {
        let mut s = sequence().starting_at(start).unwrap();
        s.advance().unwrap();
        let next = start + 1;
        assert_eq!(s.starting_at(back).unwrap_err(), Error::NonceBehind { next, got: back });
    }
    let mut s = sequence();
    s.advance().unwrap();
    assert_eq!(s.starting_at(3).unwrap_err(), Error::Exhausted, "skipped numbers count");
}

#[test]
fn hard_limits_only_ever_fall() {
    let with = |messages, blocks| Limits {
        rekey: RekeyPolicy::NEVER,
        max_messages: messages,
        max_blocks: blocks,
    };
    for suite in Suite::ALL {
        let own = Limits::of(suite);
        let fresh = || NonceSequence::xor(suite, &[0; 24][..suite.nonce_len()]).unwrap();
        let raised = fresh().with_limits(with(u64::MAX, u64::MAX));
        assert_eq!(raised.limits(), own.with_rekey(RekeyPolicy::NEVER), "{suite}");
        assert_eq!(raised.remaining(), own.max_messages, "{suite}");
        let mut s = fresh().with_limits(with(2, 9)).with_limits(with(7, 8));
        assert_eq!(s.limits(), with(2, 8), "{suite}");
        assert!(
            s.advance().is_ok() && s.advance().is_ok() && s.advance().is_err(),
            "{suite}"
        );
        assert_eq!(s.with_limits(own).remaining(), 0, "{suite}: no second life");
        assert_eq!(
            fresh().with_limits(with(2, 9)).following_peer().remaining(),
            u64::MAX,
            "{suite}"
        );
    }
}

#[test]
fn soft_and_hard_limits() {
    let limits = Limits {
        rekey: RekeyPolicy {
            bytes: u64::MAX,
            messages: 3,
        },
        max_messages: 5,
        max_blocks: u64::MAX,
    };
    let mut s = NonceSequence::xor(Suite::Aes256Gcm, &[0; 12])
        .unwrap()
        .with_limits(limits);
    let due: Vec<bool> = (0..5).map(|_| s.advance().unwrap().rekey).collect();
    assert_eq!(due, [false, false, true, true, true]);
    assert!(matches!(s.advance(), Err(Error::Exhausted)));
}

#[test]
fn debug_does_not_show_the_fixed_field() {
    let s = NonceSequence::xor(Suite::Aes256Gcm, &[0xab; 12]).unwrap();
    assert!(!format!("{s:?}").contains("171"));
    assert!(!format!("{s:?}").to_lowercase().contains("ab"));
}
