//! Records: only the next one as sealed is opened, and the end is authenticated.

use proptest::prelude::*;
use sealway_session::Error;
use sealway_session::handshake::{Established, Mode};
use sealway_session::record::{HEADER_LEN, MAX_KIND, MAX_PAYLOAD, OVERHEAD, Opened};

use crate::common::*;

fn pair() -> (Established, Established) {
    established(Mode::Keys, 1)
}

#[test]
fn every_length_and_kind_goes_through() {
    let (mut here, mut there) = pair();
    for (kind, len) in [
        (0, 0),
        (1, 1),
        (MAX_KIND, 15),
        (2, 16),
        (3, 17),
        (4, 65536),
        (5, MAX_PAYLOAD),
    ] {
        let payload: Vec<u8> = (0..len).map(|i| i as u8).collect();
        let record = seal(&mut here.send, kind, u32::MAX - u32::from(kind), &payload);
        assert_eq!(record.len(), OVERHEAD + len);
        let opened = open(&mut there.recv, &record).unwrap();
        assert!(opened == (kind, u32::MAX - u32::from(kind), payload), "{kind} {len}");
    }
    assert_eq!((here.send.records(), there.recv.records()), (7, 7));
    assert_eq!(here.send.bytes(), there.recv.bytes());
}

#[test]
fn parts_are_put_together() {
    let (mut here, mut there) = pair();
    let mut out = b"before".to_vec();
    here.send.seal_from(9, 8, &[b"one", b"", b" two"], &mut out).unwrap();
    assert_eq!(out.len(), 6 + OVERHEAD + 7);
    assert_eq!(open(&mut there.recv, &out[6..]), Ok((9, 8, b"one two".to_vec())));
    assert_eq!(
        here.send.seal_from(48, 8, &[b"x"], &mut out),
        Err(Error::ReservedKind { kind: 48 })
    );
    assert_eq!(out.len(), 6 + OVERHEAD + 7);
}

#[test]
fn mistakes_of_the_caller_change_nothing() {
    let (mut here, mut there) = pair();
    let need = OVERHEAD;
    assert_eq!(
        here.send.seal(1, 1, &mut [0; 23]),
        Err(Error::RecordLength { need, got: 23 })
    );
    assert_eq!(
        here.send.seal(48, 1, &mut [0; 30]),
        Err(Error::ReservedKind { kind: 48 })
    );
    assert_eq!(
        here.send.seal(128, 1, &mut [0; 30]),
        Err(Error::ReservedKind { kind: 128 })
    );
    let mut long = vec![0; OVERHEAD + MAX_PAYLOAD + 1];
    let got = MAX_PAYLOAD + 1;
    assert_eq!(here.send.seal(1, 1, &mut long), Err(Error::PayloadTooLong { got }));
    assert_eq!(here.send.records(), 0);
    let mut record = seal(&mut here.send, 1, 1, b"12345");
    assert_eq!(there.recv.open(&mut []), Err(Error::RecordLength { need, got: 0 }));
    assert_eq!(
        there.recv.open(&mut record[..28]),
        Err(Error::RecordLength { need: 29, got: 28 })
    );
    assert_eq!(open(&mut there.recv, &record), Ok((1, 1, b"12345".to_vec())));
}

/// Every bit of a record, header included: it does not open, leaves no plaintext, and nothing opens after it.
#[test]
fn any_flipped_bit_is_the_end() {
    let (mut sealer, _) = pair();
    let payload = b"a payload that must not be seen";
    let (first, second) = (
        seal(&mut sealer.send, 5, 6, payload),
        seal(&mut sealer.send, 5, 6, b"next"),
    );
    for bit in 0..first.len() * 8 {
        let mut record = first.clone();
        record[bit / 8] ^= 1 << (bit % 8);
        let (_, mut opener) = pair();
        let header = record[..HEADER_LEN].try_into().unwrap();
        let length_changed = (8..32).contains(&bit);
        match opener.recv.record_len(&header) {
            Ok(len) => {
                assert_eq!(len != first.len(), length_changed);
                // What comes next is taken for the rest of a longer record.
                record.extend_from_slice(&second);
                record.resize(len.max(OVERHEAD), 0);
                assert_eq!(opener.recv.open(&mut record), Err(Error::Unauthentic), "bit {bit}");
                let payload_len = len - OVERHEAD;
                assert!(
                    record[HEADER_LEN..HEADER_LEN + payload_len].iter().all(|&b| b == 0),
                    "bit {bit}"
                );
            }
            Err(error) => {
                assert_eq!(error, Error::BadHeader { header });
                assert_eq!(opener.recv.open(&mut record), Err(error));
            }
        }
        assert_eq!(opener.recv.open(&mut first.clone()), Err(Error::Dead), "bit {bit}");
        assert_eq!(opener.recv.record_len(first[..8].try_into().unwrap()), Err(Error::Dead));
        assert_eq!(opener.recv.end(), Err(Error::Dead));
    }
}

#[test]
fn what_is_repeated_moved_or_left_out_does_not_open() {
    let records = |n: u8| -> (Established, Vec<Vec<u8>>) {
        let (mut here, there) = pair();
        (there, (0..n).map(|i| seal(&mut here.send, 1, 0, &[i; 9])).collect())
    };
    for order in [[0, 0, 1], [1, 0, 2], [0, 2, 1]] {
        let (mut there, records) = records(3);
        let results: Vec<bool> = order
            .iter()
            .map(|&i| open(&mut there.recv, &records[i]).is_ok())
            .collect();
        let good = order.iter().zip(0..).take_while(|&(&a, b)| a == b).count();
        assert_eq!(results, (0..3).map(|i| i < good).collect::<Vec<_>>(), "{order:?}");
    }
}

#[test]
fn records_sent_back_or_of_another_session_do_not_open() {
    let (mut here, mut there) = pair();
    let record = seal(&mut here.send, 1, 0, b"mine");
    assert_eq!(open(&mut here.recv, &record), Err(Error::Unauthentic));
    let (mut other, _) = established(Mode::Keys, 77);
    let foreign = seal(&mut other.send, 1, 0, b"mine");
    assert_eq!(open(&mut there.recv, &foreign), Err(Error::Unauthentic));
}

#[test]
fn the_close_is_the_end() {
    let (mut here, mut there) = pair();
    let record = seal(&mut here.send, 1, 0, b"last");
    let mut close = here.send.close().unwrap();
    assert!(here.send.is_closed());
    assert_eq!(here.send.close(), Err(Error::Closed));
    assert_eq!(here.send.seal(1, 0, &mut [0; 30]), Err(Error::Closed));
    open(&mut there.recv, &record).unwrap();
    assert_eq!(there.recv.end(), Err(Error::Truncated));
    assert!(!there.recv.is_closed());
    assert_eq!(there.recv.record_len(close[..8].try_into().unwrap()), Ok(OVERHEAD));
    assert_eq!(there.recv.open(&mut close.clone()), Ok(Opened::Close));
    assert!(there.recv.is_closed());
    assert_eq!(there.recv.end(), Ok(()));
    // Not even the same again.
    assert_eq!(
        there.recv.record_len(close[..8].try_into().unwrap()),
        Err(Error::AfterClose)
    );
    assert_eq!(there.recv.open(&mut close), Err(Error::AfterClose));
    assert_eq!(there.recv.end(), Err(Error::Dead));
    // The other direction goes on.
    assert_talks(&mut there.send, &mut here.recv);
}

/// A close has no payload and no stream: other headers of its kind are refused before anything is opened.
#[test]
fn a_close_has_one_form() {
    let (mut here, there) = pair();
    let close: [u8; OVERHEAD] = here.send.close().unwrap();
    for bit in 0..HEADER_LEN * 8 {
        let mut header: [u8; HEADER_LEN] = close[..HEADER_LEN].try_into().unwrap();
        header[bit / 8] ^= 1 << (bit % 8);
        // The phase bit is no matter of form; a kind below 48 makes it a record of the application.
        let expected = match bit {
            4 | 5 | 7 => Ok(OVERHEAD),
            _ => Err(Error::BadHeader { header }),
        };
        assert_eq!(there.recv.record_len(&header), expected, "bit {bit}");
    }
}

#[test]
fn a_close_that_comes_early_is_none() {
    let (mut here, mut there) = pair();
    let _left_out = seal(&mut here.send, 1, 0, b"left out");
    let mut close = here.send.close().unwrap();
    assert_eq!(there.recv.open(&mut close), Err(Error::Unauthentic));
    assert_eq!(there.recv.end(), Err(Error::Dead));
}

#[test]
fn a_connection_that_ends_anywhere_is_truncated() {
    let (mut here, _) = pair();
    let mut wire = seal(&mut here.send, 1, 0, b"one");
    wire.extend(seal(&mut here.send, 1, 0, b"two"));
    wire.extend(here.send.close().unwrap());
    for cut in 0..=wire.len() {
        let (_, mut there) = pair();
        let mut rest = &wire[..cut];
        while let Some(header) = rest.first_chunk() {
            let len = there.recv.record_len(header).unwrap();
            let Some((record, after)) = rest.split_at_checked(len) else {
                break;
            };
            there.recv.open(&mut record.to_vec()).unwrap();
            rest = after;
        }
        let expected = if cut == wire.len() {
            Ok(())
        } else {
            Err(Error::Truncated)
        };
        assert_eq!(there.recv.end(), expected, "cut at {cut}");
    }
}

#[test]
fn nothing_secret_is_shown() {
    let (here, _) = pair();
    let shown = format!("{here:?} {:?} {:?} {:?}", here.send, here.recv, here.session);
    assert!(!shown.contains("key: ["), "{shown}");
    assert!(
        shown.contains("SendHalf { suite: Aes256Gcm, epoch: 0, records: 0, .. }"),
        "{shown}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Any records in both directions, with keys changed at any moment.
    #[test]
    fn what_is_sealed_is_opened(steps in prop::collection::vec(
        (any::<bool>(), 0..=MAX_KIND, any::<u32>(), prop::collection::vec(any::<u8>(), 0..300), any::<bool>()), 1..30,
    )) {
        let (mut here, mut there) = pair();
        for (forth, kind, stream, payload, rekey) in steps {
            let (send, recv) = if forth { (&mut here.send, &mut there.recv) } else { (&mut there.send, &mut here.recv) };
            if rekey {
                send.rekey();
            }
            let record = seal(send, kind, stream, &payload);
            prop_assert_eq!(open(recv, &record), Ok((kind, stream, payload)));
            prop_assert_eq!(send.epoch(), recv.epoch());
        }
    }

    /// No bytes that come first are ever taken for a record.
    #[test]
    fn no_forgery(bytes in prop::collection::vec(any::<u8>(), 8..64)) {
        let (_, mut there) = pair();
        prop_assert!(there.recv.open(&mut bytes.clone()).is_err());
    }
}
