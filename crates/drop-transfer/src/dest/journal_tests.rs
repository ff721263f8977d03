//! A journal that was torn, changed or made up never claims what was not written.

#![allow(clippy::single_range_in_vec_init)]

use std::io::Write;
use std::os::fd::OwnedFd;

use proptest::prelude::*;

use super::journal::{Journal, Record, Recovered, read};
use crate::entry::Time;
use sealway_drop::names::{RelPath, Rules};

const TRANSFER: [u8; 32] = [9; 32];

fn path(text: &str) -> RelPath {
    RelPath::new(text.split('/'), Rules::POSIX).unwrap()
}

fn history() -> Vec<Record> {
    let mtime = Time {
        seconds: -5,
        nanoseconds: 999_999_999,
    };
    vec![
        Record::Directory { path: path("tree") },
        Record::File {
            slot: 0,
            path: path("tree/a"),
            size: 1000,
            mtime,
        },
        Record::Covered { slot: 0, range: 0..400 },
        Record::File {
            slot: 3,
            path: path("tree/b"),
            size: u64::MAX,
            mtime,
        },
        Record::Covered {
            slot: 3,
            range: 0..u64::MAX,
        },
        Record::Covered {
            slot: 0,
            range: 600..5000,
        },
        Record::Discarded {
            slot: 0,
            range: 300..700,
        },
        Record::Covered { slot: 8, range: 0..10 },
        Record::Done { slot: 3 },
        Record::Directory { path: path("theirs") },
        Record::Joined { path: path("theirs") },
    ]
}

/// A journal of these records, and its length after each.
fn written(records: &[Record]) -> (Vec<u8>, Vec<u64>) {
    let file = tempfile::tempfile().unwrap();
    let fd: OwnedFd = file.try_clone().unwrap().into();
    let (mut journal, recovered) = Journal::resume(fd, &TRANSFER).unwrap();
    let mut ends = vec![recovered.len];
    for record in records {
        journal.append(record).unwrap();
        ends.push(file.metadata().unwrap().len());
    }
    let mut bytes = vec![0; file.metadata().unwrap().len() as usize];
    std::os::unix::fs::FileExt::read_exact_at(&file, &mut bytes, 0).unwrap();
    (bytes, ends)
}

fn covered(recovered: &Recovered, slot: u32) -> Vec<std::ops::Range<u64>> {
    recovered
        .files
        .get(&slot)
        .map(|file| file.covered.to_vec())
        .unwrap_or_default()
}

#[test]
fn what_was_written_is_read() {
    let (bytes, _) = written(&history());
    let recovered = read(&bytes, &TRANSFER);
    assert_eq!(recovered.len, bytes.len() as u64);
    assert_eq!(covered(&recovered, 0), [0..300, 700..1000]);
    assert_eq!(recovered.files.keys().copied().collect::<Vec<_>>(), [0]);
    assert_eq!(recovered.directories.iter().collect::<Vec<_>>(), [&path("tree")]);
    assert_eq!(recovered.files[&0].path, path("tree/a"));
    assert_eq!(
        recovered.files[&0].mtime,
        Time {
            seconds: -5,
            nanoseconds: 999_999_999
        }
    );
}

#[test]
fn a_journal_cut_anywhere_says_exactly_what_its_whole_records_say() {
    let records = history();
    let (bytes, ends) = written(&records);
    for cut in 0..=bytes.len() {
        let torn = read(&bytes[..cut], &TRANSFER);
        let whole = ends.iter().filter(|end| **end <= cut as u64).count();
        if whole == 0 {
            assert_eq!((torn.len, torn.files.len()), (0, 0));
            continue;
        }
        assert_eq!(torn.len, ends[whole - 1]);
        let (shorter, _) = written(&records[..whole - 1]);
        let expected = read(&shorter, &TRANSFER);
        assert_eq!(torn.files, expected.files);
        assert_eq!(torn.directories, expected.directories);
    }
}

#[test]
fn a_changed_byte_ends_what_counts() {
    let (bytes, ends) = written(&history());
    for at in 0..bytes.len() {
        for flip in [1, 0x80] {
            let mut changed = bytes.clone();
            changed[at] ^= flip;
            let before = ends.iter().filter(|end| **end <= at as u64).max().copied().unwrap_or(0);
            assert_eq!(read(&changed, &TRANSFER).len, before, "byte {at}");
        }
    }
}

#[test]
fn records_of_another_transfer_or_another_place_do_not_count() {
    let (bytes, ends) = written(&history());
    assert_eq!(read(&bytes, &[8; 32]).len, 0);
    // The second record once more, at the end, where it does not belong.
    let mut moved = bytes.clone();
    moved.extend_from_slice(&bytes[ends[1] as usize..ends[2] as usize]);
    assert_eq!(read(&moved, &TRANSFER).len, bytes.len() as u64);
}

#[test]
fn a_torn_end_is_overwritten() {
    let (bytes, ends) = written(&history());
    let mut file = tempfile::tempfile().unwrap();
    file.write_all(&bytes[..ends[3] as usize + 5]).unwrap();
    let fd: OwnedFd = file.try_clone().unwrap().into();
    let (mut journal, recovered) = Journal::resume(fd, &TRANSFER).unwrap();
    assert_eq!(covered(&recovered, 0), [0..400]);
    journal
        .append(&Record::Covered {
            slot: 0,
            range: 500..501,
        })
        .unwrap();
    let (_, recovered) = Journal::resume(file.into(), &TRANSFER).unwrap();
    assert_eq!(covered(&recovered, 0), [0..400, 500..501]);
}

fn record() -> impl Strategy<Value = Record> {
    let name = prop::collection::vec(any::<u8>(), 1..20).prop_filter("names", |name| Rules::POSIX.check(name).is_ok());
    let path = prop::collection::vec(name, 1..5).prop_map(|parts| RelPath::new(parts, Rules::POSIX).unwrap());
    let range = (any::<u64>(), any::<u64>()).prop_map(|(a, b)| a.min(b)..a.max(b));
    prop_oneof![
        (0..4u32, path.clone(), any::<u64>(), any::<i64>(), any::<u32>()).prop_map(|(slot, path, size, seconds, n)| {
            Record::File {
                slot,
                path,
                size,
                mtime: Time {
                    seconds,
                    nanoseconds: n,
                },
            }
        }),
        (0..4u32, range.clone()).prop_map(|(slot, range)| Record::Covered { slot, range }),
        (0..4u32, range).prop_map(|(slot, range)| Record::Discarded { slot, range }),
        (0..4u32).prop_map(|slot| Record::Done { slot }),
        path.clone().prop_map(|path| Record::Directory { path }),
        path.prop_map(|path| Record::Joined { path }),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_history_is_read_back_and_never_claims_more(records in prop::collection::vec(record(), 0..20)) {
        let (bytes, _) = written(&records);
        let recovered = read(&bytes, &TRANSFER);
        prop_assert_eq!(recovered.len, bytes.len() as u64);
        for (slot, file) in &recovered.files {
            // Byte for byte, at the ends of what the records name.
            let mut points: Vec<u64> = vec![0];
            for record in &records {
                if let Record::Covered { range, .. } | Record::Discarded { range, .. } = record {
                    points.extend([range.start, range.end, range.end.saturating_sub(1)]);
                }
            }
            for point in points {
                let mut there = false;
                for record in &records {
                    match record {
                        Record::File { slot: s, .. } if s == slot => there = false,
                        Record::Covered { slot: s, range } if s == slot => there |= range.contains(&point),
                        Record::Discarded { slot: s, range } if s == slot => there &= !range.contains(&point),
                        _ => {}
                    }
                }
                let there = there && point < file.size;
                prop_assert_eq!(file.covered.iter().any(|r| r.contains(&point)), there, "at {}", point);
            }
        }
    }

    #[test]
    fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let (mut front, _) = written(&history()[..2]);
        prop_assert_eq!(read(&bytes, &TRANSFER).len, 0);
        let good = front.len() as u64;
        front.extend_from_slice(&bytes);
        prop_assert_eq!(read(&front, &TRANSFER).len, good);
    }
}
