//! What a batch refuses, and that it then touches nothing.

use sealway_aead::batch::{Engine, Job, Keys, Memory, Slot, Status};
use sealway_aead::{Error, JobError, Nonce, Suite};

/// Value of bytes that must not change.
const GUARD: u8 = 0xc3;

fn refusal(jobs: &[Job], memory: Memory<'_>, aad: &[u8]) -> Error {
    let mut keys = Keys::with_slots(2);
    keys.set(Slot(0), Suite::ChaCha20Poly1305, &[1; 32]).unwrap();
    let mut statuses = vec![Status::Failed; jobs.len()];
    let error = Engine::new().run(&keys, jobs, memory, aad, &mut statuses).unwrap_err();
    assert!(statuses.iter().all(|&s| s == Status::Failed), "statuses untouched");
    error
}

fn seal(slot: u32, src: std::ops::Range<u32>, dst: u32) -> Job {
    Job::seal(
        Slot(slot),
        Nonce::assume_unique(Suite::ChaCha20Poly1305, &[0; 12]).unwrap(),
        src,
        dst,
    )
}

#[test]
fn batches_that_break_a_rule_are_refused_untouched() {
    let cases = [
        (seal(1, 0..4, 0), JobError::NoKey),
        (seal(2, 0..4, 0), JobError::NoKey),
        (seal(u32::MAX, 0..4, 0), JobError::NoKey),
        (seal(0, 97..101, 0), JobError::Input),
        (seal(0, u32::MAX - 1..u32::MAX, 0), JobError::Input),
        (seal(0, 0..4, 81), JobError::Output),
        (seal(0, 0..4, u32::MAX), JobError::Output),
        (seal(0, 0..4, 0).with_aad(3..6), JobError::AssociatedData),
        (
            seal(0, 0..4, 0).with_aad(u32::MAX - 1..u32::MAX),
            JobError::AssociatedData,
        ),
        (seal(0, 0..10, 40), JobError::Overlap),
        (seal(0, 0..10, 65), JobError::Overlap),
        (Job::open(Slot(0), &[0; 11], 0..20, 0).unwrap(), JobError::NonceLength),
        (Job::open(Slot(0), &[0; 24], 0..20, 0).unwrap(), JobError::NonceLength),
        (Job::open(Slot(0), &[0; 12], 85..101, 0).unwrap(), JobError::Input),
        (Job::open(Slot(0), &[0; 12], 0..26, 91).unwrap(), JobError::Output),
    ];
    let src = [7; 100];
    for (job, wrong) in cases {
        let mut dst = [GUARD; 100];
        let good = seal(0, 0..0, 50);
        let jobs = [good, job];
        let error = refusal(
            &jobs,
            Memory::Separate {
                src: &src,
                dst: &mut dst,
            },
            &[1; 5],
        );
        assert_eq!(error, Error::Job { index: 1, wrong }, "{:?}", jobs[1]);
        assert_eq!(dst, [GUARD; 100]);
    }
}

#[test]
fn in_place_rules() {
    let mut arena = [7; 100];
    let error = refusal(&[seal(0, 1..4, 0)], Memory::InPlace(&mut arena), &[]);
    let wrong = JobError::NotInPlace;
    assert_eq!(error, Error::Job { index: 0, wrong });
    // Opening claims the tag too: what lies over it is an overlap.
    let jobs = [Job::open(Slot(0), &[0; 12], 0..20, 0).unwrap(), seal(0, 10..12, 10)];
    let wrong = JobError::Overlap;
    assert_eq!(
        refusal(&jobs, Memory::InPlace(&mut arena), &[]),
        Error::Job { index: 1, wrong }
    );
    assert_eq!(arena, [7; 100]);
}

#[test]
fn outputs_may_come_in_any_order_and_touch() {
    let mut keys = Keys::with_slots(1);
    keys.set(Slot(0), Suite::ChaCha20Poly1305, &[1; 32]).unwrap();
    let mut dst = [0; 60];
    let mut statuses = [Status::Failed; 3];
    let jobs = [seal(0, 0..4, 40), seal(0, 0..4, 0), seal(0, 0..4, 20)];
    let memory = Memory::Separate {
        src: &[5; 4],
        dst: &mut dst,
    };
    Engine::new().run(&keys, &jobs, memory, &[], &mut statuses).unwrap();
    assert_eq!(dst[..20], dst[20..40]);
    assert_eq!(dst[..20], dst[40..]);
    let error = Engine::new().run(&keys, &jobs, Memory::InPlace(&mut dst), &[], &mut statuses[..2]);
    assert_eq!(error, Err(Error::StatusCount { jobs: 3, statuses: 2 }));
    assert!(matches!(
        Job::open(Slot(0), &[0; 12], 0..15, 0),
        Err(Error::TooShort { got: 15 })
    ));
}
