//! Small batches of short messages, in every shape that the bookkeeping knows: what an interpreter such as Miri can run. No
//! call here reaches the C library underneath.

use sealway_aead::Suite;
use sealway_aead::batch::{Memory, Status};

use crate::common::messages::{self, check, engines, layout, message, position};

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
                let starts = l.jobs[..i]
                    .iter()
                    .map(sealway_aead::batch::Job::input_len)
                    .sum::<usize>();
                let to = position(&messages, in_place, i);
                let text = &mut if in_place { &mut l.dst } else { &mut l.src }[..];
                let tag = if in_place { to } else { starts } + messages[i].plain.len();
                text[tag] ^= 1;
                l.want[to..to + messages[i].plain.len()].fill(0);
                if in_place {
                    l.want[tag] ^= 1;
                }
            }
            let mut statuses = vec![Status::Failed; messages.len()];
            let memory = if in_place {
                Memory::InPlace(&mut l.dst)
            } else {
                Memory::Separate {
                    src: &l.src,
                    dst: &mut l.dst,
                }
            };
            let report = engine.run(&l.keys, &l.jobs, memory, &l.aad, &mut statuses).unwrap();
            assert_eq!(report.refused, FORGED.len());
            for (i, status) in statuses.iter().enumerate() {
                assert_eq!(
                    *status == Status::Unauthentic,
                    FORGED.contains(&i),
                    "{} job {i}",
                    engine.backend()
                );
            }
            assert!(l.dst == l.want, "{} in place {in_place}", engine.backend());
        }
    }
}
