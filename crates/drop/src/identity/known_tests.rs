use std::os::unix::fs::PermissionsExt;

use proptest::prelude::*;

use super::*;

const DAY: &str = "2026-02-28";

fn key(n: u8) -> PublicKey {
    PublicKey::new([n; 32])
}

#[test]
fn names_are_remembered_and_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let peers = KnownPeers::at(&dir.path().join("made"));
    assert_eq!(peers.list().unwrap(), []);
    assert!(!peers.forget("alice").unwrap());
    assert_eq!(peers.remember("alice", key(1), DAY).unwrap(), Remembered::New);
    assert_eq!(
        peers.remember("[2001:db8::1]:4000", key(2), "2026-03-01").unwrap(),
        Remembered::New
    );
    assert_eq!(
        peers.remember("alice", key(1), "2027-01-01").unwrap(),
        Remembered::Already
    );
    let alice = Known {
        name: "alice".into(),
        key: key(1),
        first_seen: DAY.into(),
    };
    assert_eq!(peers.lookup("alice").unwrap(), Some(alice));
    assert_eq!(peers.lookup("Alice").unwrap(), None);
    assert!(peers.forget("alice").unwrap());
    let left: Vec<_> = peers.list().unwrap().into_iter().map(|known| known.name).collect();
    assert_eq!(left, ["[2001:db8::1]:4000"]);
    // Nothing is left beside the file, and both are the owner's alone.
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&peers.0.dir), mode(&peers.0.path)), (0o700, 0o600));
    assert_eq!(std::fs::read_dir(&peers.0.dir).unwrap().count(), 1);
}

#[test]
fn another_key_is_not_believed() {
    let dir = tempfile::tempdir().unwrap();
    let peers = KnownPeers::at(dir.path());
    peers.remember("alice", key(1), DAY).unwrap();
    let error = peers.remember("alice", key(2), DAY).unwrap_err();
    assert!(matches!(error, Error::OtherKey { found, .. } if found == key(2)));
    assert_eq!(peers.lookup("alice").unwrap().unwrap().key, key(1));
}

#[test]
fn what_cannot_stand_in_the_file_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let peers = KnownPeers::at(dir.path());
    for name in ["", "a b", "a\nb", "#a", "a\u{7f}", "a\u{2028}b", &"x".repeat(256)] {
        assert!(
            matches!(peers.remember(name, key(1), DAY), Err(Error::Unfit(_))),
            "{name:?}"
        );
    }
    for day in [
        "",
        "2026-1-1",
        "2026-13-01",
        "2026-00-01",
        "2026-01-32",
        "2026/01/01",
        "2026-01-010",
    ] {
        assert!(
            matches!(peers.remember("a", key(1), day), Err(Error::Unfit(_))),
            "{day:?}"
        );
    }
    assert_eq!(peers.list().unwrap(), []);
}

#[test]
fn errors_name_the_line() {
    let dir = tempfile::tempdir().unwrap();
    let peers = KnownPeers::at(dir.path());
    let good = format!("alice {} {DAY}", key(1));
    for (lines, wanted) in [
        (
            vec!["hello"],
            "line 1: it does not begin with \"sealway known peers 1\"",
        ),
        (vec![], "line 1: it does not begin"),
        (vec!["sealway known peers 2"], "line 1: the file is of another version"),
        (vec![VERSION, "# a comment", "", "alice"], "line 4: it has other fields"),
        (
            vec![VERSION, &good, "bob x 2026-01-01"],
            "line 3: a key has 52 characters, not 1",
        ),
        (vec![VERSION, &good, &good], "line 3: the name stands in line 2 already"),
        (vec![VERSION, &good[..good.len() - 1]], "line 2: a day is written as"),
    ] {
        std::fs::write(&peers.0.path, lines.join("\n")).unwrap();
        std::fs::set_permissions(&peers.0.path, std::fs::Permissions::from_mode(0o600)).unwrap();
        let error = peers.list().unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
        // It is not replaced either.
        assert!(peers.remember("bob", key(2), DAY).is_err());
        assert_eq!(std::fs::read_to_string(&peers.0.path).unwrap(), lines.join("\n"));
    }
    std::fs::write(&peers.0.path, [VERSION.as_bytes(), b"\n# \xff"].concat()).unwrap();
    assert!(peers.list().unwrap_err().to_string().contains("line 2: it is not text"));
}

#[test]
fn a_file_that_others_may_change_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let peers = KnownPeers::at(dir.path());
    peers.remember("alice", key(1), DAY).unwrap();
    let set = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    set(&peers.0.path, 0o644);
    assert_eq!(peers.list().unwrap().len(), 1);
    set(&peers.0.path, 0o664);
    let error = peers.list().unwrap_err().to_string();
    assert!(
        error.contains("others may change it") && error.contains("chmod 600"),
        "{error}"
    );
    set(&peers.0.path, 0o600);
    set(dir.path(), 0o777);
    assert!(peers.list().unwrap_err().to_string().contains("chmod 700"));
}

#[test]
fn those_who_remember_at_once_lose_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let peers = KnownPeers::at(dir.path());
    std::thread::scope(|scope| {
        for n in 0..16u8 {
            let peers = &peers;
            scope.spawn(move || peers.remember(&format!("peer-{n}"), key(n), DAY).unwrap());
        }
    });
    assert_eq!(peers.list().unwrap().len(), 16);
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in ".{0,200}", whole in any::<bool>()) {
        let text = if whole { format!("{VERSION}\n{text}") } else { text };
        if let Ok(all) = parse(&text) {
            for known in all {
                prop_assert!(check_name(&known.name).is_ok());
            }
        }
    }
}
