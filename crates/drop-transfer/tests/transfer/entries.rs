//! Entries of a list as a peer sends them.

use proptest::prelude::*;
use sealway_drop::names::{RelPath, Rules};
use sealway_drop::testing::any_path;
use sealway_drop_transfer::entry::{Entry, EntryError, Kind, Time};

fn any_entry() -> impl Strategy<Value = Entry> {
    let kind = prop_oneof![
        (0..=i64::MAX as u64, any::<bool>()).prop_map(|(size, sparse)| Kind::File { size, sparse }),
        Just(Kind::Directory),
        prop::collection::vec(1..=255u8, 1..300).prop_map(|target| Kind::Symlink { target: target.into() }),
    ];
    (any_path(), kind, 0..=0o777u32, any::<i64>(), 0..1_000_000_000u32).prop_map(
        |(path, kind, mode, seconds, nanos)| Entry {
            path,
            kind,
            mode,
            mtime: Time {
                seconds,
                nanoseconds: nanos,
            },
        },
    )
}

proptest! {
    #[test]
    fn entries_travel(entry in any_entry()) {
        let mut bytes = Vec::new();
        entry.encode(&mut bytes);
        for cut in 0..bytes.len() {
            prop_assert_eq!(Entry::decode(&bytes[..cut], Rules::POSIX), Err(EntryError::Truncated));
        }
        prop_assert_eq!(Entry::decode(&bytes, Rules::POSIX), Ok((entry, bytes.len())));
    }

    #[test]
    fn whatever_a_peer_sends_decodes_to_what_the_rules_allow(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        if let Ok((entry, used)) = Entry::decode(&bytes, Rules::WINDOWS) {
            prop_assert!(entry.mode <= 0o777 && entry.mtime.nanoseconds < 1_000_000_000);
            let mut again = Vec::new();
            entry.encode(&mut again);
            prop_assert_eq!(&again[..], &bytes[..used]);
        }
    }
}

#[test]
fn an_entry_out_of_its_limits_is_refused() {
    let good = Entry {
        path: RelPath::new([b"a"], Rules::POSIX).unwrap(),
        kind: Kind::Symlink { target: (*b"t").into() },
        mode: 0o644,
        mtime: Time::default(),
    };
    let mut bytes = Vec::new();
    good.encode(&mut bytes);
    // Path 3, kind 1, mode 2, seconds 8, nanoseconds 4, length 2, target 1.
    assert_eq!(bytes.len(), 21);
    let with = |at: usize, value: &[u8]| {
        let mut bytes = bytes.clone();
        bytes[at..at + value.len()].copy_from_slice(value);
        Entry::decode(&bytes, Rules::POSIX).unwrap_err()
    };
    assert_eq!(with(3, &[4]), EntryError::Kind(4));
    assert_eq!(with(4, &0o4644u16.to_le_bytes()), EntryError::Mode(0o4644));
    assert_eq!(
        with(14, &1_000_000_000u32.to_le_bytes()),
        EntryError::Nanoseconds(1_000_000_000)
    );
    assert_eq!(with(18, &0u16.to_le_bytes()), EntryError::Target);
    assert_eq!(with(20, &[0]), EntryError::Target);
    let file = Entry {
        kind: Kind::File {
            size: u64::MAX,
            sparse: true,
        },
        ..good
    };
    let mut bytes = Vec::new();
    file.encode(&mut bytes);
    assert_eq!(Entry::decode(&bytes, Rules::POSIX), Err(EntryError::Size(u64::MAX)));
}
