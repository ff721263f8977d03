//! Small batches of short messages, in every shape that the bookkeeping knows: what an interpreter such as Miri can run. No
//! call here reaches the C library underneath.

use sealway_aead::Suite;

use crate::messages::{self, check, engines, layout, message};

const SUITES: [Suite; 3] = [
    Suite::ChaCha20Poly1305,
    Suite::XChaCha20Poly1305,
    Suite::ChaCha20Poly1305,
];

/// Lengths around the blocks of both primitives, so many that no backend takes them one at a time. Fewer for an interpreter,
/// which looks at memory, not at numbers.
const LENGTHS: &[usize] = if cfg!(miri) {
    &[0, 17, 64, 1, 65]
} else {
    &[0, 1, 15, 16, 17, 31, 63, 64, 65, 128, 129, 200, 0]
};

/// The messages that get a wrong tag.
const FORGED: &[usize] = if cfg!(miri) { &[2, 4] } else { &[4, 8, 11] };

fn messages(opens: impl Fn(usize) -> bool) -> Vec<messages::Message> {
    let one = |(i, len): (usize, &usize)| message(SUITES[i % 3], *len, i % 4 * 9, i as u64, opens(i));
    LENGTHS.iter().enumerate().map(one).collect()
}

#[test]
fn sealed_opened_and_mixed_in_and_out_of_place() {
    for mut engine in engines() {
        for in_place in [false, true] {
            if !cfg!(miri) {
                check(&mut engine, &messages(|_| false), in_place, |i| i);
                check(&mut engine, &messages(|_| true), in_place, |i| 3 * i);
            }
            check(&mut engine, &messages(|i| i % 2 == 0), in_place, |i| 7 * i);
        }
    }
}

#[test]
fn what_is_forged_is_zeroed_and_nothing_else() {
    let messages = messages(|i| i % 3 != 0);
    for mut engine in engines() {
        for in_place in [false, true] {
            let mut l = layout(&messages, in_place, |i| i);
            for &i in FORGED {
                l.forge(i, messages[i].plain.len(), in_place);
            }
            l.check_refused(&mut engine, in_place, FORGED, "");
        }
    }
}
