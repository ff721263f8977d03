//! Whole transfers over loopback.

#![allow(clippy::unwrap_used)]

mod support;

use std::fs;

use support::{Case, assert_same, content, strays, transfer, tree};

#[test]
fn a_tree_arrives_as_it_was() {
    for hash in [true, false] {
        let dir = tempfile::tempdir().unwrap();
        let source = tree(dir.path());
        let output = dir.path().join("out");
        fs::create_dir(&output).unwrap();
        let case = Case {
            hash,
            ..Case::default()
        };
        let ((sent, _), (received, progress)) = transfer(&case, std::slice::from_ref(&source), &output);
        let (Ok(sent), Ok(received)) = (&sent, &received) else {
            panic!("{sent:?} {received:?}")
        };
        assert_eq!((sent.failed, received.failed), (0, 0), "{received:?}");
        assert_same(&source, &output.join("tree"));
        assert_eq!(strays(&output), Vec::<String>::new());
        assert_eq!(progress.files, progress.total_files);
        assert!(progress.kept >= 39 << 20, "the hole was sent: {progress:?}");
    }
}

#[test]
fn the_same_again_moves_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let source = tree(dir.path());
    let output = dir.path().join("out");
    fs::create_dir(&output).unwrap();
    transfer(&Case::default(), std::slice::from_ref(&source), &output)
        .1
        .0
        .unwrap();
    let ((sent, progress), (received, _)) = transfer(&Case::default(), std::slice::from_ref(&source), &output);
    assert_eq!(sent.unwrap().placed, received.unwrap().placed);
    assert_eq!(progress.bytes, 0);
    assert_same(&source, &output.join("tree"));
}

#[test]
fn one_empty_file_and_nothing_at_all_arrive() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("nothing"), b"").unwrap();
    fs::create_dir(dir.path().join("folder")).unwrap();
    let output = dir.path().join("out");
    fs::create_dir(&output).unwrap();
    for name in ["nothing", "folder"] {
        let ((sent, _), (received, _)) = transfer(&Case::default(), &[dir.path().join(name)], &output);
        assert!(sent.is_ok() && received.is_ok(), "{sent:?} {received:?}");
        assert!(output.join(name).exists());
    }
}

#[test]
fn a_code_that_is_wrong_ends_both() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("file"), content(1000, 1)).unwrap();
    let case = Case {
        sender: support::code("one-two"),
        receiver: support::code("one-too"),
        ..Case::default()
    };
    let ((sent, _), (received, _)) = transfer(&case, &[dir.path().join("file")], dir.path());
    assert!(matches!(sent, Err(sealway_drop::Error::CodeSpent)), "{sent:?}");
    assert!(matches!(received, Err(sealway_drop::Error::CodeSpent)), "{received:?}");
    let case = Case {
        receiver: support::code("one-two"),
        ..case
    };
    let output = dir.path().join("out");
    fs::create_dir(&output).unwrap();
    let ((sent, _), (received, _)) = transfer(&case, &[dir.path().join("file")], &output);
    assert!(sent.is_ok() && received.is_ok(), "{sent:?} {received:?}");
}
