use super::*;
use crate::testing::{entry, field, name, names, networks};

/// Everything that a file holds.
fn read(file: &[u8], kind: Kind) -> Result<Vec<String>, Error> {
    let (mut scanner, mut at, mut found) = (Scanner::new(kind), 0, Vec::new());
    while at < file.len() {
        match scanner.next(&file[at..])? {
            Step::Item { item, used } => {
                at += used;
                found.push(match item {
                    Item::Entry(code) => code.to_owned(),
                    Item::Name(name) => name.to_string(),
                    Item::Network(net) => net.to_string(),
                    Item::Inverse => "inverse".to_owned(),
                });
            }
            Step::Skip(len) => at = at.saturating_add(len as usize),
            Step::More => return Err(Error::Truncated),
        }
    }
    scanner.finish(file.len() as u64)?;
    Ok(found)
}

#[test]
fn files_of_names_are_read() {
    let lines = [
        "keyword:cn",
        "regexp:^a$",
        "domain:example.cn @ads @!cn",
        "full:www.example.cn",
    ];
    let file = [names("CN", &lines), names("EMPTY", &[])].concat();
    let wanted = [&["CN"], &lines[..], &["EMPTY"]].concat();
    assert_eq!(read(&file, Kind::Names).unwrap(), wanted);
    assert_eq!(read(&[], Kind::Names).unwrap(), [""; 0]);
}

#[test]
fn files_of_networks_are_read() {
    let lines = ["192.0.2.0/24", "0.0.0.0/0", "2001:db8::/32", "::1/128"];
    let file = networks("CN", &lines);
    assert_eq!(read(&file, Kind::Networks).unwrap()[1..], lines);
    // A mapped address stays what it is here; the set knows that it is an IPv4 address. Bits behind the prefix are cut.
    let host = field(2, &[field(1, &[10, 1, 2, 3]), vec![16, 8]].concat());
    assert_eq!(read(&entry("X", &[host]), Kind::Networks).unwrap(), ["X", "10.0.0.0/8"]);
    let inverse = entry("X", &[vec![0x18, 1]]);
    assert_eq!(read(&inverse, Kind::Networks).unwrap(), ["X", "inverse"]);
    assert_eq!(read(&entry("X", &[vec![0x18, 0]]), Kind::Networks).unwrap(), ["X"]);
}

#[test]
fn unknown_fields_are_passed_over() {
    let more = [
        vec![0x20, 7],
        field(68_000, b"x"),
        vec![0x35, 1, 2, 3, 4],
        vec![0x39, 1, 2, 3, 4, 5, 6, 7, 8],
    ]
    .concat();
    let item = field(2, &[field(2, b"a.example"), more.clone()].concat());
    let file = [vec![0x10, 5], entry("X", &[more.clone(), item]), more].concat();
    assert_eq!(read(&file, Kind::Names).unwrap(), ["X", "keyword:a.example"]);
}

#[test]
fn what_nobody_asks_for_is_not_looked_into() {
    let broken = entry("BROKEN", &[field(2, b"\xff\xff")]);
    let file = [broken, names("CN", &["a.example"])].concat();
    assert_eq!(read(&file, Kind::Names), Err(Error::Malformed(10)));
    let mut scanner = Scanner::new(Kind::Names);
    assert_eq!(scanner.next(&file).unwrap(), Step::Skip(2));
    let Step::Item { used, .. } = scanner.next(&file[2..]).unwrap() else {
        panic!()
    };
    let rest = scanner.skip_entry();
    assert_eq!(rest, 4);
    let at = 2 + used + rest as usize;
    assert_eq!(scanner.position(), at as u64);
    assert!(matches!(scanner.next(&file[at..]), Ok(Step::Skip(2))));
}

#[test]
fn what_is_no_such_file_is_refused() {
    let sites = names("CN", &["a.example"]);
    assert!(matches!(read(&sites, Kind::Networks), Err(Error::Malformed(6))));
    assert!(matches!(
        read(&networks("CN", &["10.0.0.0/8"]), Kind::Names),
        Err(Error::Malformed(6))
    ));
    assert_eq!(read(b"<html>", Kind::Names), Err(Error::Malformed(0)));
    for end in 1..sites.len() {
        assert_eq!(read(&sites[..end], Kind::Names), Err(Error::Truncated), "{end}");
    }
    for item in [
        field(2, &[field(1, &[10, 1, 2]), vec![16, 8]].concat()),
        field(2, &[field(1, &[10, 1, 2, 3]), vec![16, 33]].concat()),
        field(2, &[16, 8]),
    ] {
        assert!(matches!(
            read(&entry("X", &[item]), Kind::Networks),
            Err(Error::Malformed(_))
        ));
    }
    for item in [
        field(2, &[8, 4]),
        field(2, &field(2, b"\xff")),
        field(2, &field(3, &[0xff])),
        vec![16, 0],
    ] {
        assert!(matches!(
            read(&entry("X", &[item]), Kind::Names),
            Err(Error::Malformed(_))
        ));
    }
}

#[test]
fn items_have_a_longest_length() {
    let most = "x".repeat(MAX_ITEM - 5);
    let file = entry("X", &[name(Form::Full, &most, &[])]);
    assert_eq!(read(&file, Kind::Names).unwrap().len(), 2);
    let file = entry("X", &[name(Form::Full, &format!("{most}x"), &[])]);
    assert!(read(&file, Kind::Names) == Err(Error::TooLong(7)));
}

#[test]
fn a_condition_can_be_asked_alone() {
    for (form, text, holds, fails) in [
        (Form::Keyword, "b", "abc", "ac"),
        (Form::Regex, r"^\d$", "1", "a"),
        (Form::Regex, "(", "\0", "("),
        (Form::Domain, "a.example", "x.a.example", "xa.example"),
        (Form::Full, "a.example", "a.example", "x.a.example"),
    ] {
        let message = name(form, text, &[]);
        let one = Name::read(&message[2..]).unwrap();
        assert_eq!(
            (one.matches(holds), one.matches(fails)),
            (holds != "\0", false),
            "{text}"
        );
    }
}
