use sealway_route::testing::{entry, field, names, network, networks};

use super::*;

fn write(bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("geosite.dat");
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn texts(file: &mut GeoFile, code: &str) -> Vec<String> {
    let list = file.list(code).unwrap();
    let mut found = Vec::new();
    let read = file.read(&list, |item| match item {
        Item::Name(name) => found.push(name.text.to_owned()),
        other => panic!("{other:?}"),
    });
    read.unwrap();
    found
}

#[test]
fn lists_are_found_wherever_they_stand() {
    // Several buffers long, so that items lie across their borders.
    let many: Vec<String> = (0..20_000).map(|i| format!("name{i}.example")).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let (_folder, path) = write(
        &[
            names("FIRST", &["a.example"]),
            names("MANY", &many),
            names("EMPTY", &[]),
            names("LAST", &["b.example", "c.example"]),
            names("FIRST", &["second.example"]),
        ]
        .concat(),
    );
    let mut file = GeoFile::open(&path, Kind::Names).unwrap();
    let codes: Vec<_> = file.lists().iter().map(|list| list.code.clone()).collect();
    assert_eq!(codes, ["FIRST", "MANY", "EMPTY", "LAST", "FIRST"]);
    assert_eq!(texts(&mut file, "last"), ["b.example", "c.example"]);
    assert_eq!(texts(&mut file, "many"), many);
    assert_eq!(texts(&mut file, "empty"), [""; 0]);
    assert_eq!(texts(&mut file, "First"), ["a.example"]);
    let error = file.list("fist").unwrap_err().to_string();
    assert!(
        error.ends_with("has no list \"fist\"; did you mean \"first\"?"),
        "{error}"
    );
    let error = file.list("something").unwrap_err().to_string();
    assert!(
        error.ends_with("has no list \"something\"; `sealway geo list` shows all of them"),
        "{error}"
    );
}

#[test]
fn what_is_no_geo_file_is_told() {
    let whole = [names("A", &["a.example"]), names("B", &["b.example"])].concat();
    let long = [
        names("A", &["a"]),
        field(1, &[field(1, b"B"), field(2, &[0; 100_000])].concat()),
    ]
    .concat();
    for (bytes, said) in [
        (&b"<html>"[..], "byte 0 does not belong there"),
        (&whole[..whole.len() - 1], "it ends in the middle of an entry"),
        (&whole[..whole.len() - 14], "it ends in the middle of an entry"),
        (&long[..long.len() - 1], "it ends in the middle of an entry"),
    ] {
        let (_folder, path) = write(bytes);
        let error = GeoFile::open(&path, Kind::Names).unwrap_err().to_string();
        assert!(error.ends_with(said), "{error}");
    }
    // What nobody reads may be anything.
    let (_folder, path) = write(&[entry("BROKEN", &[field(2, b"\xff")]), names("A", &["a"])].concat());
    let mut file = GeoFile::open(&path, Kind::Names).unwrap();
    assert_eq!(texts(&mut file, "A"), ["a"]);
    let list = file.list("broken").unwrap();
    assert!(matches!(file.read(&list, |_| ()), Err(GeoError::Wrong { .. })));
}

#[test]
fn lists_are_counted() {
    let (_folder, path) = write(&names("X", &[]).repeat(MAX_LISTS));
    assert_eq!(GeoFile::open(&path, Kind::Names).unwrap().lists().len(), MAX_LISTS);
    let (_folder, path) = write(&names("X", &[]).repeat(MAX_LISTS + 1));
    assert!(matches!(
        GeoFile::open(&path, Kind::Names),
        Err(GeoError::TooManyLists { .. })
    ));
}

#[test]
fn the_first_folder_with_the_file_counts() {
    let (one, path_one) = write(b"");
    let (two, path_two) = write(b"");
    let empty = tempfile::tempdir().unwrap();
    let look = |name: &str, folders: &[&Path]| {
        let folders: Vec<PathBuf> = folders.iter().map(PathBuf::from).collect();
        find(name, &folders)
    };
    assert_eq!(
        look("geosite.dat", &[empty.path(), two.path(), one.path()]).unwrap(),
        path_two
    );
    assert_eq!(look(path_one.to_str().unwrap(), &[two.path()]).unwrap(), path_one);
    let error = look("gone.dat", &[empty.path()]).unwrap_err().to_string();
    let wanted = format!("there is no geo file \"gone.dat\" in {};", empty.path().display());
    assert!(error.starts_with(&wanted), "{error}");
    // What is there and is no file, or leads nowhere, is not passed over: an older file may stand behind it.
    std::fs::create_dir(empty.path().join("geosite.dat")).unwrap();
    std::os::unix::fs::symlink("gone", empty.path().join("geoip.dat")).unwrap();
    std::fs::write(one.path().join("geoip.dat"), b"").unwrap();
    for (name, why) in [("geosite.dat", "it is no file"), ("geoip.dat", "No such file")] {
        let error = look(name, &[empty.path(), one.path()]).unwrap_err().to_string();
        assert!(error.contains("cannot be read") && error.contains(why), "{error}");
    }
    assert_eq!(
        folders(Some("/there".into()))[..2],
        [PathBuf::from("/there"), "/usr/local/share/sealway".into()]
    );
    assert!(
        folders(None)
            .iter()
            .any(|folder| folder == Path::new("/usr/share/xray"))
    );
}

#[test]
fn a_file_that_is_written_to_meanwhile_gives_no_list() {
    let whole = [names("A", &["a.example"]), names("B", &["b.example"])].concat();
    let other = [names("B", &["b.example"]), names("A", &["a.example"])].concat();
    let (_folder, path) = write(&whole);
    let mut file = GeoFile::open(&path, Kind::Names).unwrap();
    let list = file.list("a").unwrap();
    assert!(file.read(&list, |_| ()).is_ok());
    // Into the same file, as long, and each list where the other was.
    std::fs::write(&path, &other).unwrap();
    let later = SystemTime::now() + std::time::Duration::from_secs(1);
    File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_modified(later)
        .unwrap();
    let error = file.read(&list, |_| ()).unwrap_err().to_string();
    assert!(error.ends_with("changed while it was read; try again"), "{error}");
    // A new file in its place is none of its business.
    let mut file = GeoFile::open(&path, Kind::Names).unwrap();
    let list = file.list("a").unwrap();
    std::fs::remove_file(&path).unwrap();
    std::fs::write(&path, b"<html>").unwrap();
    assert!(file.read(&list, |_| ()).is_ok());
}

/// What a look-up says is what rules go by.
#[test]
fn a_lookup_holds_what_rules_hold() {
    let networks = [
        // Nothing but a mark that both kinds of lists may have.
        field(1, &[field(1, b"EMPTY"), vec![40, 1]].concat()),
        networks("MAPPED", &["::ffff:192.0.2.0/120"]),
        field(1, &[field(1, b"NOT"), network("10.0.0.0/8"), vec![24, 1]].concat()),
    ];
    let (_folder, path) = write(&networks.concat());
    let mut file = GeoFile::open_any(&path).unwrap();
    assert_eq!(file.kind(), Kind::Networks);
    let mut holds = |ip: &str| {
        let found = file.lists_with_ip(ip.parse().unwrap()).unwrap();
        found.into_iter().map(|(code, _)| code).collect::<Vec<_>>()
    };
    assert_eq!(holds("192.0.2.7"), ["MAPPED", "NOT"]);
    assert_eq!(holds("10.0.0.1"), Vec::<String>::new());
    // A family that no network of it is of.
    assert_eq!(holds("2001:db8::1"), Vec::<String>::new());

    let conditions = [
        "full:Upper.Example",
        "domain:dot.example.",
        "keyword:KEY",
        "full:",
        "regexp:",
        "keyword:",
    ];
    let (_folder, path) = write(&names("A", &conditions));
    let mut file = GeoFile::open_any(&path).unwrap();
    for (name, entry) in [
        ("upper.example", Some("full:Upper.Example")),
        ("a.dot.example", Some("domain:dot.example.")),
        ("monkey.example", Some("keyword:KEY")),
        ("other.example", None),
    ] {
        let found = file.lists_with_name(name).unwrap();
        let wanted = entry.map(|entry| ("A".to_owned(), entry.to_owned()));
        assert_eq!(found, Vec::from_iter(wanted), "{name}");
    }
}
