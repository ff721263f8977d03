use super::*;
use sealway_drop_transfer::dest::Options;

fn file(name: &str, size: u64) -> (String, File) {
    let file = File {
        file_name: name.into(),
        size,
        ..File::default()
    };
    (format!("{name}{size}"), file)
}

#[test]
fn an_offer_becomes_folders_and_files_each_once() {
    let offer = [
        file("album/one/IMG.jpg", 1),
        file("album/one/IMG.jpg", 2),
        file("album/two.jpg", 3),
        file("../out", 4),
        file("album", 5),
        file("big", u64::MAX),
    ];
    let plan = Plan::of(&offer, Rules::POSIX);
    let paths: Vec<_> = plan.entries.iter().map(|entry| entry.path.to_string()).collect();
    assert_eq!(
        paths,
        [
            "album",
            "album/one",
            "album/one/IMG.jpg",
            "album/one/IMG (1).jpg",
            "album/two.jpg",
            "album (1)"
        ]
    );
    assert_eq!(plan.refused.len(), 2);
    assert!(plan.refused[0].starts_with("../out: ") && plan.refused[1].starts_with("big: "));
    assert!(Plan::of(&[file("..", 1)], Rules::POSIX).is_empty());
}

#[test]
fn an_offer_that_is_cancelled_while_it_is_decided_leaves_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let destination = Destination::open(folder.path(), Options::default()).unwrap();
    let left = || std::fs::read_dir(folder.path()).unwrap().count();
    let begin = |cancel: &Cancel| {
        let plan = Plan::of(&[file("big", 1 << 20), file("small", 1)], Rules::POSIX);
        let taken = |_: &RelPath, _: &Existing| Answer::Skip;
        Landing::begin(&destination, plan, Arc::new(Progress::new()), &taken, cancel)
    };
    let (landing, wanted) = begin(&Cancel::new()).unwrap();
    assert_eq!(wanted.len(), 2);
    let big = wanted.values().find(|one| one.entry.size() > 1).unwrap();
    let staged = landing.staging.open_file(big.number, &big.entry).unwrap();
    staged.write_at(0, b"some").unwrap();
    assert_eq!(left(), 1);
    drop(staged);
    drop(landing);
    assert_eq!(left(), 0);
    let cancel = Cancel::new();
    cancel.cancel();
    assert!(matches!(begin(&cancel), Err(sealway_drop::Error::Cancelled)));
    assert_eq!(left(), 0);
}

#[test]
fn names_of_an_offer_are_bounded() {
    let planned = |names: &[String]| {
        let files: Vec<_> = names
            .iter()
            .enumerate()
            .map(|(at, name)| file(name, at as u64))
            .collect();
        Plan::of(&files, Rules::POSIX)
    };
    // A name is cut, a path that is too deep or too long is refused with as much of it as a line has room for.
    let plan = planned(&[
        "x".repeat(100_000),
        "d/".repeat(200) + "f",
        format!("{}/", "y".repeat(250)).repeat(20) + "f",
    ]);
    assert_eq!((plan.files.len(), plan.refused.len()), (1, 2), "{:?}", plan.refused);
    assert_eq!(plan.entries[0].path.name().len(), 255);
    assert!(plan.refused.iter().all(|why| why.len() < 400), "{:?}", plan.refused);
    // Numbers for files of one name run out.
    let same = vec!["same".to_owned(); 2000];
    assert_eq!(planned(&same).files.len(), 2000);
    // Folders whose names alone come to more than FOLDERS.
    let deep = |at: usize| format!("{at}/{}f", format!("{}/", "z".repeat(30)).repeat(100));
    let plan = planned(&(0..500).map(deep).collect::<Vec<_>>());
    let folders: usize = plan
        .entries
        .iter()
        .filter(|one| one.kind == Kind::Directory)
        .map(|one| one.path.key().len() + 64)
        .sum();
    assert!(folders <= FOLDERS && !plan.files.is_empty());
    assert_eq!(plan.files.len() + plan.refused.len(), 500);
    assert!(plan.refused.iter().any(|why| why.ends_with("too many folders")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_written_of_a_file_that_is_given_up_counts_for_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let destination = Destination::open(folder.path(), Options::default()).unwrap();
    let plan = Plan::of(&[file("big", 40_000)], Rules::POSIX);
    let taken = |_: &RelPath, _: &Existing| Answer::Skip;
    let begun = Landing::begin(&destination, plan, Arc::new(Progress::new()), &taken, &Cancel::new());
    let (landing, wanted) = begun.unwrap();
    let wanted = wanted.values().next().unwrap();
    let open = || landing.staging.open_file(wanted.number, &wanted.entry).unwrap();
    let staged = open();
    for pieces in 0..4 {
        let mut writer = Writer::start(open(), None);
        for _ in 0..pieces {
            writer.add(Bytes::from(vec![1; 10_000])).await.unwrap();
        }
        // Some of it may wait still.
        drop(writer);
        assert_eq!(staged.missing(), std::slice::from_ref(&(0..40_000)));
    }
    drop(staged);
    let mut writer = Writer::start(open(), Some(Sha256::new()));
    for piece in 0..4 {
        writer.add(Bytes::from(vec![piece; 10_000])).await.unwrap();
    }
    let hash = writer.end().await.unwrap().unwrap();
    writer.place(&wanted.entry).unwrap();
    let placed = std::fs::read(folder.path().join("big")).unwrap();
    assert_eq!(placed, [[0; 10_000], [1; 10_000], [2; 10_000], [3; 10_000]].concat());
    assert_eq!(hash.finalize(), Sha256::digest(&placed));
    // More than was offered is refused, and said by the next piece or at the end.
    drop(landing);
    let plan = Plan::of(&[file("short", 10)], Rules::POSIX);
    let begun = Landing::begin(&destination, plan, Arc::new(Progress::new()), &taken, &Cancel::new());
    let (landing, wanted) = begun.unwrap();
    let wanted = wanted.values().next().unwrap();
    let staged = landing.staging.open_file(wanted.number, &wanted.entry).unwrap();
    let mut writer = Writer::start(staged, None);
    writer.add(Bytes::from(vec![1; 11])).await.unwrap();
    assert!(matches!(writer.end().await, Err(Failed::Storage(_))));
}
