//! Messages written where the device reads them, and batches that stay on the device.

use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{ChaCha20Poly1305, Key, Nonce};
use sealway_aead::JobError;
use sealway_aead::batch::{Slot, Status};
use sealway_cuda::{Engine, Error, Message, Options, Ticket, Wrong};

use crate::support::mix::{Mix, Noise, key, set_keys};
use crate::support::{each, model, small};

fn message(slot: u32, len: usize, aad_len: usize, opens: bool) -> Message {
    Message {
        slot: Slot(slot),
        nonce: [9; 12],
        len: len as u32,
        aad_len: aad_len as u32,
        opens,
    }
}

/// Text and tag by a library that is not ours.
fn sealed(key: &[u8; 32], aad: &[u8], text: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut text = text.to_vec();
    let cipher = ChaCha20Poly1305::new(&Key::from(*key));
    let tag = cipher
        .encrypt_inout_detached(&Nonce::from([9; 12]), aad, (&mut text[..]).into())
        .unwrap();
    (text, tag.to_vec())
}

#[test]
fn written_once_and_read_in_place() {
    for mut engine in each(&small()) {
        set_keys(&mut engine, 16);
        let mut noise = Noise(1);
        let mut batch = engine.batch().unwrap().unwrap();
        assert!(batch.is_empty());
        let mut wanted = Vec::new();
        for (index, len) in [0, 1, 16, 17, 63, 64, 65, 200, 333].into_iter().enumerate() {
            let (text, aad) = (noise.bytes(len), noise.bytes(index));
            let (cipher, tag) = sealed(&key(2), &aad, &text);
            let opens = index % 3 == 1;
            let room = batch.reserve(&message(2, len, aad.len(), opens)).unwrap().unwrap();
            assert_eq!((room.index, room.text.len(), room.aad.len()), (index, len, aad.len()));
            room.aad.copy_from_slice(&aad);
            room.text.copy_from_slice(if opens { &cipher } else { &text });
            assert_eq!(room.tag.len(), if opens { 16 } else { 0 });
            if opens {
                room.tag.copy_from_slice(&tag);
            }
            // The last that is opened is forged.
            let forged = index == 7;
            if forged {
                room.tag[0] ^= 1;
            }
            wanted.push(match (opens, forged) {
                (false, _) => (Status::Done, cipher, tag),
                (true, false) => (Status::Done, text, Vec::new()),
                (true, true) => (Status::Unauthentic, vec![0; len], Vec::new()),
            });
        }
        let ticket = batch.submit().unwrap();
        let mut finished = engine.collect(ticket).unwrap();
        assert_eq!((finished.report().done, finished.report().refused), (8, 1));
        for (index, (status, text, tag)) in wanted.iter().enumerate() {
            assert_eq!(finished.get(index), Some((*status, &text[..], &tag[..])), "{index}");
        }
        assert_eq!((finished.len(), finished.get(9)), (9, None));
    }
}

/// One message under the key of slot 0.
fn submit(engine: &mut Engine, fill: u8) -> Option<Ticket> {
    let mut batch = engine.batch().unwrap()?;
    let room = batch.reserve(&message(0, 40, 0, false)).unwrap().unwrap();
    room.text.fill(fill);
    Some(batch.submit().unwrap())
}

#[test]
fn the_ring_is_as_long_as_asked_for() {
    let (mut engine, _) = model(small());
    engine.set_key(Slot(0), &key(0)).unwrap();
    let mut tickets: Vec<Ticket> = (0..3).map(|fill| submit(&mut engine, fill).unwrap()).collect();
    assert!(submit(&mut engine, 3).is_none());
    let mix = Mix::new(1, &[30; 9], 1, false);
    let busy = engine.start(&mix.jobs(), &mix.src, &mix.aad);
    assert_eq!(busy, Err(Error::Busy));
    // The last first.
    assert!(!engine.is_done(&tickets[2]).unwrap());
    for fill in [2, 0, 1] {
        let at = if fill == 2 { 2 } else { 0 };
        let ticket = tickets.remove(at);
        let mut finished = engine.collect(ticket).unwrap();
        assert_eq!(finished.get(0).unwrap().1, sealed(&key(0), &[], &[fill; 40]).0);
    }
    // A ticket that nobody has any more holds nothing up.
    drop(submit(&mut engine, 1).unwrap());
    drop(engine.batch().unwrap());
    let tickets: Vec<Option<Ticket>> = (0..4).map(|fill| submit(&mut engine, fill)).collect();
    assert_eq!(tickets.iter().flatten().count(), 3);
    drop(tickets);
    mix.check(&mut engine);
}

#[test]
fn tickets_are_good_once_and_for_their_engine() {
    let (mut engine, _) = model(small());
    let (mut other, _) = model(small());
    engine.set_key(Slot(0), &key(0)).unwrap();
    other.set_key(Slot(0), &key(0)).unwrap();
    let ticket = submit(&mut engine, 1).unwrap();
    let same_number = submit(&mut other, 1).unwrap();
    assert_eq!(engine.is_done(&same_number), Err(Error::NotStarted));
    assert_eq!(engine.collect(same_number).unwrap_err(), Error::NotStarted);
    assert!(engine.collect(ticket).is_ok());
}

#[test]
fn what_is_under_way_has_the_old_key() {
    for mut engine in each(&small()) {
        let mut tickets = Vec::new();
        for round in 0..3 {
            engine.set_key(Slot(0), &key(round)).unwrap();
            tickets.push(submit(&mut engine, 7).unwrap());
        }
        // Nothing has been waited for: the device has all three before it.
        for (round, ticket) in tickets.into_iter().enumerate().rev() {
            let mut finished = engine.collect(ticket).unwrap();
            let wanted = sealed(&key(round as u32), &[], &[7; 40]);
            assert_eq!(finished.get(0), Some((Status::Done, &wanted.0[..], &wanted.1[..])));
        }
    }
}

#[test]
fn no_room_and_no_key() {
    let (mut engine, _) = model(small());
    engine.set_key(Slot(0), &key(0)).unwrap();
    let mut batch = engine.batch().unwrap().unwrap();
    let mut count = 0;
    while batch.reserve(&message(0, 100, 0, false)).unwrap().is_some() {
        count += 1;
    }
    assert_eq!((batch.len(), count > 20), (count, true));
    let refused = batch.reserve(&message(1, 1, 0, false)).unwrap_err();
    let wrong = Wrong::Rule(JobError::NoKey);
    assert_eq!(refused, Error::Job { index: count, wrong });
    assert!(matches!(
        batch.reserve(&message(0, 5000, 0, false)),
        Err(Error::Job {
            wrong: Wrong::TooLong { .. },
            ..
        })
    ));
}

#[test]
fn resident_batches_equal_the_processors() {
    for mut engine in each(&Options {
        chunk_bytes: 8192,
        ..small()
    }) {
        set_keys(&mut engine, 16);
        for seed in 0..6 {
            let mut lens: Vec<usize> = (0..90).map(|i| (i * 41 + seed as usize) % 700).collect();
            // Longer than what is pinned.
            lens[4] = 20_000;
            let mix = Mix::new(seed, &lens, 16, false);
            let jobs = mix.jobs();
            let mut resident = engine.resident(&jobs).unwrap();
            assert!(resident.input_bytes() > mix.src.len() && resident.output_bytes() > 40_000);
            resident.upload(&jobs, &mix.src, &mix.aad).unwrap();
            assert!(resident.run().unwrap() > 0.0);
            assert!(resident.run_times(3).unwrap() > 0.0);
            let (mut dst, mut statuses) = (mix.before.clone(), vec![Status::Failed; 90]);
            let report = resident.download(&jobs, &mut dst, &mut statuses).unwrap();
            mix.compare(&dst, &statuses);
            assert_eq!(report.done + report.refused, 90);
            let other = Mix::new(seed + 1, &lens, 16, false).jobs();
            let wrong = resident.upload(&other, &mix.src, &mix.aad);
            assert_eq!(wrong, Err(Error::NotStarted));
        }
        Mix::new(1, &[50; 70], 16, true).check(&mut engine);
    }
}

#[test]
fn resident_memory_is_wiped_and_given_back() {
    let (mut engine, seen) = model(small());
    set_keys(&mut engine, 16);
    let mix = Mix::new(2, &[500, 17_000, 3], 16, false);
    let mut resident = engine.resident(&mix.jobs()).unwrap();
    resident.upload(&mix.jobs(), &mix.src, &mix.aad).unwrap();
    // Statuses that no kernel has written are not taken for results.
    let (mut dst, mut statuses) = (mix.before.clone(), [Status::Failed; 3]);
    let early = resident.download(&mix.jobs(), &mut dst, &mut statuses);
    assert!(matches!(early, Err(Error::Device { code: 0, .. })));
    resident.run().unwrap();
    drop(resident);
    let seen = seen.lock().unwrap();
    assert_eq!((seen.freed, seen.dirty), (4, 0));
}

/// What lies in pinned memory goes once more, for the same bytes, as long as the keys are those it was sent with.
#[test]
fn sent_again_under_the_same_keys_only() {
    for mut engine in each(&small()) {
        set_keys(&mut engine, 16);
        let text = [7; 100];
        let (cipher, tag) = sealed(&key(2), &[], &text);
        let mut batch = engine.batch().unwrap().unwrap();
        let room = batch.reserve(&message(2, 100, 0, false)).unwrap().unwrap();
        room.text.copy_from_slice(&text);
        let mut ticket = batch.submit().unwrap();
        for _ in 0..3 {
            let mut finished = engine.collect(ticket).unwrap();
            assert_eq!(finished.get(0).unwrap(), (Status::Done, &cipher[..], &tag[..]));
            assert_eq!(finished.report().done, 1);
            ticket = finished.again().unwrap();
        }
        // Under another key, or none, these would not be the same messages.
        engine.clear_key(Slot(2)).unwrap();
        let finished = engine.collect(ticket).unwrap();
        assert_eq!(finished.again().unwrap_err(), Error::KeysChanged);
        // The chunk is free again.
        let batches: Vec<_> = (0..small().chunks)
            .map(|_| {
                let mut batch = engine.batch().unwrap().unwrap();
                batch.reserve(&message(3, 1, 0, false)).unwrap().unwrap();
                batch.submit().unwrap()
            })
            .collect();
        for ticket in batches {
            assert_eq!(engine.collect(ticket).unwrap().report().done, 1);
        }
    }
}
