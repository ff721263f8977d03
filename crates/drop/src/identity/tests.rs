use std::os::unix::fs::PermissionsExt;

use proptest::prelude::*;

use super::*;

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).unwrap().permissions().mode() & 0o777
}

fn set_mode(path: &Path, mode: u32) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn the_first_use_makes_it_and_later_ones_find_it() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path().join("config/sealway");
    let made = Identity::load_or_make_in(&dir).unwrap();
    let path = dir.join("identity");
    assert_eq!(made.path(), Some(&*path));
    assert_eq!((mode(&dir), mode(&path)), (0o700, 0o600));
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 1);
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.starts_with("sealway identity 1\n"));
    assert!(text.contains(&format!("# public key: {}\n", made.public())));
    let found = Identity::load_or_make_in(&dir).unwrap();
    assert_eq!(found.secret(), made.secret());
    assert_eq!(found.public(), made.public());
    assert_eq!(StaticKey::from_bytes(found.secret()).public(), found.public().bytes());
    // What is printed about it shows the public key only.
    assert_eq!(format!("{found:?}"), format!("Identity({})", found.public()));
}

#[test]
fn programs_that_start_at_once_end_with_one_key() {
    for _ in 0..10 {
        let dir = tempfile::tempdir().unwrap();
        let barrier = std::sync::Barrier::new(8);
        let keys: Vec<_> = std::thread::scope(|scope| {
            let start = || {
                barrier.wait();
                Identity::load_or_make_in(&dir.path().join("new")).unwrap().public()
            };
            let all: Vec<_> = (0..8).map(|_| scope.spawn(start)).collect();
            all.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert!(keys.iter().all(|key| *key == keys[0]));
        assert_eq!(std::fs::read_dir(dir.path().join("new")).unwrap().count(), 1);
    }
}

#[test]
fn a_file_that_others_may_read_is_refused_and_stays() {
    let dir = tempfile::tempdir().unwrap();
    let made = Identity::load_or_make_in(dir.path()).unwrap();
    let path = dir.path().join("identity");
    for wrong in [0o640, 0o604, 0o620, 0o644] {
        set_mode(&path, wrong);
        let error = Identity::load_or_make_in(dir.path()).unwrap_err().to_string();
        assert!(
            error.contains("others may read it") && error.contains("chmod 600"),
            "{error}"
        );
    }
    set_mode(&path, 0o400);
    assert_eq!(Identity::load_or_make_in(dir.path()).unwrap().public(), made.public());
    set_mode(dir.path(), 0o770);
    let error = Identity::load_or_make_in(dir.path()).unwrap_err().to_string();
    assert!(
        error.contains("others may change what is in it") && error.contains("chmod 700"),
        "{error}"
    );
    // One that others may look into, but not change, will do.
    set_mode(dir.path(), 0o755);
    assert!(Identity::load_or_make_in(dir.path()).is_ok());
}

#[test]
fn without_a_place_it_is_ephemeral() {
    let one = Identity::load_or_make_in(Path::new("/dev/null/sealway")).unwrap();
    let two = Identity::load_or_make_in(Path::new("/proc/sealway")).unwrap();
    assert_eq!((one.path(), two.path()), (None, None));
    assert_ne!(one.public(), two.public());
}

#[test]
fn a_broken_file_is_an_error_with_its_line_and_without_the_secret() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("identity");
    let secret = Identity::ephemeral().unwrap();
    let key = key::encode(secret.secret());
    let wrong_key = format!("{}!{}", &key[..9], &key[10..]);
    for (text, wanted) in [
        (String::new(), "line 1: it does not begin"),
        ("sealway identity 2\n".into(), "line 1: the file is of another version"),
        ("sealway identity 1\n# nothing\n".into(), "line 2: there is no secret"),
        (
            format!("sealway identity 1\nsecret {wrong_key}\n"),
            "line 2: character 10 of the key",
        ),
        (
            format!("sealway identity 1\nsecret {}\n", &key[..51]),
            "line 2: a key has 52 characters, not 51",
        ),
        (
            format!("sealway identity 1\nsecret {0}\nsecret {0}\n", &*key),
            "line 3: there are two secrets",
        ),
        (format!("sealway identity 1\n\n{}\n", &*key), "line 3: it is neither"),
    ] {
        std::fs::write(&path, &text).unwrap();
        set_mode(&path, 0o600);
        let error = Identity::load_or_make_in(dir.path()).unwrap_err().to_string();
        assert!(error.contains(wanted), "{error}");
        assert!(!error.contains(&key[..8]), "{error}");
        assert_eq!(std::fs::read_to_string(&path).unwrap(), text, "it is not replaced");
    }
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    assert!(
        Identity::load_or_make_in(dir.path())
            .unwrap_err()
            .to_string()
            .contains("not a file")
    );
}

#[test]
fn the_secret_of_transfers_is_derived() {
    let one = Identity::ephemeral().unwrap();
    let same = Identity::of(Box::new(one.secret().clone()), None);
    assert_eq!(one.transfer_secret().unwrap(), same.transfer_secret().unwrap());
    assert_ne!(one.transfer_secret().unwrap(), *one.secret());
    assert_ne!(
        one.transfer_secret().unwrap(),
        Identity::ephemeral().unwrap().transfer_secret().unwrap()
    );
}

#[test]
fn two_machines_have_tokens_that_nobody_else_has() {
    const NOW: u64 = 1_800_000_000;
    let [one, two, other] = [1, 2, 3].map(|byte| Identity::with_secret(&Zeroizing::new([byte; 32])));
    let key = |identity: &Identity| *identity.public().bytes();
    let token = one.relay_token(&key(&two), true, NOW).unwrap();
    assert_eq!(two.relay_token(&key(&one), false, NOW).unwrap(), token);
    assert_eq!(
        one.relay_token(&key(&two), true, NOW / DAY * DAY).unwrap(),
        token,
        "the same day"
    );
    for another in [
        two.relay_token(&key(&one), true, NOW),
        one.relay_token(&key(&two), true, NOW + DAY),
        one.relay_token(&key(&other), true, NOW),
        other.relay_token(&key(&two), true, NOW),
        other.relay_token(&key(&one), false, NOW),
    ] {
        assert_ne!(another.unwrap(), token);
    }
    let secret = one.pair_secret(&key(&two)).unwrap();
    assert_eq!(*two.pair_secret(&key(&one)).unwrap(), *secret);
    assert_ne!(*secret, token);
    // A key of small order is none.
    assert!(one.relay_token(&[0; 32], true, NOW).is_err() && one.pair_secret(&[0; 32]).is_err());
}

proptest! {
    #[test]
    fn any_text_is_read_or_refused(text in ".{0,200}", whole in any::<bool>()) {
        let text = if whole { format!("{VERSION}\n{text}") } else { text };
        let _ = parse(&text);
    }

    #[test]
    fn what_is_written_is_read(secret in any::<[u8; 32]>()) {
        let identity = Identity::of(Box::new(Zeroizing::new(secret)), None);
        prop_assert_eq!(**parse(&identity.to_text()).unwrap(), secret);
    }
}
