//! Jobs of AES-GCM.

use aws_lc_rs::aead as aws;
use sealway_aead::batch::{Engine, Job, Keys, Memory, Slot, Status};
use sealway_aead::{Nonce, Suite};

use super::{Packets, Subject, nonce};

/// AES-128-GCM in jobs under keys that are there already, against a loop over the library that does them.
pub(crate) fn race(title: &str, p: &mut Packets) {
    const GCM: Suite = Suite::Aes128Gcm;
    /// Few enough that both have all of them in the first-level cache.
    const KEYS: usize = 16;
    let mut keys = Keys::with_slots(KEYS);
    let aws_keys: Vec<aws::LessSafeKey> = (0..KEYS)
        .map(|slot| {
            let key = [slot as u8; 16];
            keys.set(Slot(slot as u32), GCM, &key).unwrap();
            aws::LessSafeKey::new(aws::UnboundKey::new(&aws::AES_128_GCM, &key).unwrap())
        })
        .collect();
    for opens in [false, true] {
        let q = &*p;
        let jobs: Vec<Job> = q
            .each()
            .map(|(i, from, to, len)| {
                let (slot, text) = (Slot((i % KEYS) as u32), from as u32..(from + len) as u32);
                if opens {
                    return Job::open(slot, &nonce(i), to as u32..(to + len + 16) as u32, text.start).unwrap();
                }
                Job::seal(slot, Nonce::assume_unique(GCM, &nonce(i)).unwrap(), text, to as u32)
            })
            .collect();
        let (keys, aws_keys) = (&keys, &aws_keys);
        let (mut engine, mut statuses) = (Engine::new(), vec![Status::Failed; jobs.len()]);
        let src = if opens { &q.sealed } else { &q.plain };
        let ours: Subject<'_> = (
            "sealway",
            Box::new(move |out| {
                let memory = Memory::Separate { src, dst: out };
                let report = engine.run(keys, &jobs, memory, &[], &mut statuses).unwrap();
                assert_eq!(report.refused, 0);
            }),
        );
        let plain_loop: Subject<'_> = (
            "aws-lc-rs",
            Box::new(move |out| {
                for (i, from, to, len) in q.each() {
                    let (key, nonce) = (&aws_keys[i % KEYS], aws::Nonce::assume_unique_for_key(nonce(i)));
                    if opens {
                        let ((text, tag), out) =
                            (q.sealed[to..to + len + 16].split_at(len), &mut out[from..from + len]);
                        key.open_separate_gather(nonce, aws::Aad::empty(), text, tag, out)
                            .unwrap();
                    } else {
                        let (text, tag) = out[to..to + len + 16].split_at_mut(len);
                        let plain = &q.plain[from..from + len];
                        key.seal_out_of_place_scatter(nonce, aws::Aad::empty(), plain, text, &[], tag)
                            .unwrap();
                    }
                }
            }),
        );
        let mut subjects = vec![ours, plain_loop];
        if !opens {
            let mut sealed = vec![0; q.sealed.len()];
            (subjects[1].1)(&mut sealed);
            super::race(
                &format!("{title} seal"),
                q.lens.len(),
                q.plain.len(),
                sealed.len(),
                subjects,
            );
            p.sealed = sealed;
        } else {
            super::race(
                &format!("{title} open"),
                q.lens.len(),
                q.plain.len(),
                q.plain.len(),
                subjects,
            );
        }
    }
}
