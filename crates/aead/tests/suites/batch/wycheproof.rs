//! Every Wycheproof vector of the four suites through every backend, as batches of openings and of sealings.

use sealway_aead::batch::{Backend, Engine, Job, Keys, Memory, Slot, Status};
use sealway_aead::{Nonce, Suite};
use wycheproof::TestResult;
use wycheproof::aead::{TestName, TestSet};

/// One vector with lengths that the suite has.
struct Vector {
    suite: Suite,
    id: usize,
    key: Vec<u8>,
    nonce: Vec<u8>,
    aad: Vec<u8>,
    plain: Vec<u8>,
    sealed: Vec<u8>,
    valid: bool,
}

fn vectors() -> Vec<Vector> {
    let sets = [
        (TestName::ChaCha20Poly1305, [Some(Suite::ChaCha20Poly1305), None]),
        (TestName::XChaCha20Poly1305, [Some(Suite::XChaCha20Poly1305), None]),
        (TestName::AesGcm, [Some(Suite::Aes128Gcm), Some(Suite::Aes256Gcm)]),
    ];
    let mut vectors = Vec::new();
    for (name, suites) in sets {
        for group in TestSet::load(name).unwrap().test_groups {
            let fits = |suite: &Suite| suite.key_len() * 8 == group.key_size && group.tag_size == 128;
            let Some(suite) = suites.into_iter().flatten().find(fits) else {
                continue;
            };
            for test in group.tests {
                if test.nonce.len() != suite.nonce_len() || test.tag.len() != 16 {
                    continue;
                }
                vectors.push(Vector {
                    suite,
                    id: test.tc_id,
                    key: test.key.to_vec(),
                    nonce: test.nonce.to_vec(),
                    aad: test.aad.to_vec(),
                    plain: test.pt.to_vec(),
                    sealed: [test.ct.as_ref(), test.tag.as_ref()].concat(),
                    valid: test.result != TestResult::Invalid,
                });
            }
        }
    }
    vectors
}

/// Joins parts end to end; gives where each starts.
fn join<'a>(parts: impl Iterator<Item = &'a [u8]>) -> (Vec<u8>, Vec<u32>) {
    let (mut all, mut starts) = (Vec::new(), Vec::new());
    for part in parts {
        starts.push(all.len() as u32);
        all.extend_from_slice(part);
    }
    (all, starts)
}

#[test]
fn every_vector_through_every_backend() {
    let vectors = vectors();
    let count = |valid| vectors.iter().filter(|v| v.valid == valid).count();
    assert!(
        count(true) > 500 && count(false) > 150,
        "{} {}",
        count(true),
        count(false)
    );
    let mut keys = Keys::with_slots(vectors.len());
    for (i, v) in vectors.iter().enumerate() {
        keys.set(Slot(i as u32), v.suite, &v.key).unwrap();
    }
    let (aad, aad_at) = join(vectors.iter().map(|v| v.aad.as_slice()));
    let (plain, plain_at) = join(vectors.iter().map(|v| v.plain.as_slice()));
    let (sealed, sealed_at) = join(vectors.iter().map(|v| v.sealed.as_slice()));
    let range = |at: u32, len: usize| at..at + len as u32;

    for backend in Backend::available() {
        let mut engine = Engine::with_backend(backend);
        for step in [1, vectors.len()] {
            let mut run = |jobs: &[Job], src: &[u8], len: usize| {
                let (mut dst, mut statuses) = (vec![0xa5; len], vec![Status::Failed; jobs.len()]);
                for (jobs, statuses) in jobs.chunks(step).zip(statuses.chunks_mut(step)) {
                    let memory = Memory::Separate { src, dst: &mut dst };
                    engine.run(&keys, jobs, memory, &aad, statuses).unwrap();
                }
                (dst, statuses)
            };
            let jobs: Vec<Job> = vectors
                .iter()
                .enumerate()
                .map(|(i, v)| {
                    Job::open(
                        Slot(i as u32),
                        &v.nonce,
                        range(sealed_at[i], v.sealed.len()),
                        plain_at[i],
                    )
                    .unwrap()
                    .with_aad(range(aad_at[i], v.aad.len()))
                })
                .collect();
            let (out, statuses) = run(&jobs, &sealed, plain.len());
            for (i, v) in vectors.iter().enumerate() {
                let got = &out[plain_at[i] as usize..][..v.plain.len()];
                if v.valid {
                    assert_eq!(statuses[i], Status::Done, "{backend} {} {}", v.suite, v.id);
                    assert_eq!(got, v.plain, "{backend} {} {}", v.suite, v.id);
                } else {
                    assert_eq!(statuses[i], Status::Unauthentic, "{backend} {} {}", v.suite, v.id);
                    assert!(got.iter().all(|&b| b == 0), "{backend} {} {}", v.suite, v.id);
                }
            }

            let jobs: Vec<Job> = vectors
                .iter()
                .enumerate()
                .map(|(i, v)| {
                    let nonce = Nonce::assume_unique(v.suite, &v.nonce).unwrap();
                    Job::seal(Slot(i as u32), nonce, range(plain_at[i], v.plain.len()), sealed_at[i])
                        .with_aad(range(aad_at[i], v.aad.len()))
                })
                .collect();
            let (out, statuses) = run(&jobs, &plain, sealed.len());
            assert!(statuses.iter().all(|&status| status == Status::Done));
            for (i, v) in vectors.iter().enumerate().filter(|(_, v)| v.valid) {
                let got = &out[sealed_at[i] as usize..][..v.sealed.len()];
                assert_eq!(got, v.sealed, "{backend} {} {}", v.suite, v.id);
            }
        }
    }
}
