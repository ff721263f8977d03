use std::cell::RefCell;

use sealway_route::names::Asked;
use sealway_route::testing;

use super::*;
use crate::settings::{Rule, Settings};

#[test]
fn one_condition_of_a_list_suffices() {
    let net = |text: &str| IpMatch::Net(text.parse().unwrap());
    let holds = |conditions: &[IpMatch], ip: &str| {
        let set = Lists::default().addresses(conditions).unwrap();
        set.matches(ip.parse().unwrap())
    };
    for (conditions, ip, wanted) in [
        (&[net("192.0.2.0/24"), net("1.1.1.1/32")][..], "192.0.2.7", true),
        (&[net("192.0.2.0/24"), net("1.1.1.1/32")], "1.1.1.2", false),
        (&[net("1.1.1.1/32"), IpMatch::Private(true)], "10.0.0.1", true),
        (&[net("1.1.1.1/32"), IpMatch::Private(true)], "1.1.1.2", false),
        (&[net("10.0.0.1/32"), IpMatch::Private(false)], "10.0.0.1", true),
        (&[net("10.0.0.1/32"), IpMatch::Private(false)], "10.0.0.2", false),
        (&[IpMatch::Private(false)], "64:ff9b::1.1.1.1", true),
        (&[IpMatch::Private(false)], "64:ff9b::10.1.1.1", false),
        (&[IpMatch::Private(true), IpMatch::Private(false)], "10.1.1.1", true),
        (&[], "10.1.1.1", false),
    ] {
        assert_eq!(holds(conditions, ip), wanted, "{conditions:?} {ip}");
    }
}

/// A folder with both files, and lists that look there.
struct Place {
    folder: tempfile::TempDir,
    lists: Lists,
    /// Those that were made.
    rules: RefCell<Vec<Rule>>,
}

impl Place {
    fn new(names: &[(&str, &[&str])], networks: &[(&str, &[&str])]) -> Place {
        let folder = tempfile::tempdir().unwrap();
        let lists = Lists::new(vec![folder.path().to_owned()]);
        let rules = RefCell::default();
        let place = Place { folder, lists, rules };
        place.write(names, networks);
        place
    }

    fn write(&self, names: &[(&str, &[&str])], networks: &[(&str, &[&str])]) {
        let names: Vec<_> = names.iter().map(|(code, lines)| testing::names(code, lines)).collect();
        std::fs::write(self.folder.path().join("geosite.dat"), names.concat()).unwrap();
        let networks = networks.iter().map(|(code, lines)| testing::networks(code, lines));
        std::fs::write(
            self.folder.path().join("geoip.dat"),
            networks.collect::<Vec<_>>().concat(),
        )
        .unwrap();
    }

    fn rule(&self, conditions: &str) -> Rule {
        let text = format!(
            r#"{{"outbounds": [{{"tag": "o", "protocol": "freedom"}}], "inbounds": [],
                "routing": {{"rules": [{{{conditions}, "outboundTag": "o"}}]}}}}"#
        );
        let rule = Settings::of_text(&text).rules.remove(0);
        self.rules.borrow_mut().push(rule.clone());
        rule
    }

    fn names(&self, text: &str) -> Result<Names, Error> {
        let rule = self.rule(&format!(r#""domain": {text}"#));
        self.lists.names("x", &rule.domains)
    }

    /// Reads all that were named again.
    fn read_again(&self) -> Result<Fresh, GeoError> {
        let rules = self.rules.borrow();
        let names = rules.iter().flat_map(|rule| &rule.domains).filter_map(|one| match one {
            DomainMatch::List(list) => Some((Kind::Names, list)),
            _ => None,
        });
        let networks = rules.iter().flat_map(|rule| &rule.ips).filter_map(|one| match one {
            IpMatch::List(list) | IpMatch::NotList(list) => Some((Kind::Networks, list)),
            _ => None,
        });
        self.lists.read_again(&names.chain(networks).collect::<Vec<_>>())
    }

    /// The same, and takes up what they hold.
    fn reload(&self) -> Result<(), GeoError> {
        self.lists.take_up(self.read_again()?);
        Ok(())
    }

    fn addresses(&self, text: &str) -> Result<Addresses, Error> {
        self.lists.addresses(&self.rule(&format!(r#""ip": {text}"#)).ips)
    }
}

#[test]
fn lists_of_files_are_asked_beside_own_conditions() {
    let place = Place::new(
        &[
            (
                "CN",
                &[
                    "example.cn",
                    "full:one.example @ads @x",
                    "keyword:taobao",
                    "regexp:^\\D+z$",
                    "Upper.Example @ads",
                ],
            ),
            ("OTHER", &["example.org"]),
        ],
        &[],
    );
    let both = place
        .names(r#"["geosite:cn", "full:own.example", "geosite:other"]"#)
        .unwrap();
    for name in [
        "example.cn",
        "a.example.cn",
        "one.example",
        "xtaobaox",
        "abz",
        "x.upper.example",
        "own.example",
        "example.org",
    ] {
        assert!(both.matches(name), "{name}");
    }
    for name in ["cn", "two.one.example", "1z", "example.net"] {
        assert!(!both.matches(name), "{name}");
    }
    let ads = place.names(r#"["geosite:CN@ADS"]"#).unwrap();
    assert!(ads.matches("one.example") && ads.matches("upper.example") && !ads.matches("example.cn"));
    let two = place.names(r#"["geosite:cn@x@ads"]"#).unwrap();
    assert!(two.matches("one.example") && !two.matches("upper.example"));
}

#[test]
fn a_list_is_shared_by_all_who_name_it() {
    let place = Place::new(&[("CN", &["a", "b"]), ("X", &["c"])], &[("CN", &["10.0.0.0/8"])]);
    for text in [
        r#"["geosite:cn"]"#,
        r#"["x", "GEOSITE:Cn"]"#,
        r#"["geosite:cn@b@a", "geosite:cn@a@b@a", "ext:geosite.dat:x"]"#,
    ] {
        place.names(text).unwrap();
    }
    place.addresses(r#"["geoip:cn"]"#).unwrap();
    place.addresses(r#"["geoip:!cn"]"#).unwrap();
    let sizes = place.lists.sizes();
    let found: Vec<_> = sizes.iter().map(|list| (list.name.as_str(), list.entries)).collect();
    assert_eq!(
        found,
        [
            ("geosite:cn", 2),
            ("geosite:cn@a@b", 0),
            ("geosite:x", 1),
            ("geoip:cn", 1)
        ]
    );
}

#[test]
fn inverse_lists_are_taken_together() {
    let v4 = |code: &'static str, net: &'static [&'static str]| (code, net);
    let place = Place::new(
        &[],
        &[
            v4("A", &["1.0.0.0/8"]),
            v4("B", &["2.0.0.0/8"]),
            v4("SIX", &["2001:db8::/32"]),
        ],
    );
    for (conditions, ip, wanted) in [
        (r#"["geoip:a"]"#, "1.2.3.4", true),
        (r#"["geoip:a"]"#, "::ffff:1.2.3.4", true),
        (r#"["geoip:!a"]"#, "1.2.3.4", false),
        (r#"["geoip:!a"]"#, "2.2.3.4", true),
        // A family that the list does not speak of.
        (r#"["geoip:!a"]"#, "2001:db8::1", false),
        (r#"["geoip:!six"]"#, "2001:db9::1", true),
        (r#"["geoip:!a", "geoip:!b"]"#, "1.2.3.4", false),
        (r#"["geoip:!a", "geoip:!b"]"#, "2.2.3.4", false),
        (r#"["geoip:!a", "geoip:!b"]"#, "3.2.3.4", true),
        (r#"["geoip:!a", "geoip:!private"]"#, "10.0.0.1", false),
        (r#"["geoip:!a", "geoip:!private"]"#, "2001:db9::1", true),
        // Between groups one suffices.
        (r#"["geoip:!a", "geoip:a"]"#, "1.2.3.4", true),
        (r#"["geoip:!a", "1.2.0.0/16"]"#, "1.2.3.4", true),
        (r#"["geoip:!a", "!2.0.0.0/8"]"#, "1.2.3.4", true),
        (r#"["!2.0.0.0/8", "!3.0.0.0/8"]"#, "3.2.3.4", false),
        (r#"["!2.0.0.0/8"]"#, "2001:db8::1", false),
    ] {
        let set = place.addresses(conditions).unwrap();
        assert_eq!(set.matches(ip.parse().unwrap()), wanted, "{conditions} {ip}");
    }
}

#[test]
fn what_is_missing_is_told_with_its_place() {
    let place = Place::new(&[("CN", &["a"]), ("BAD", &["regexp:("])], &[("CN", &["10.0.0.0/8"])]);
    let told = |error: Error| match error {
        Error::Config { place, what } => (place, what),
        other => panic!("{other}"),
    };
    let (at, what) = told(place.names(r#"["full:x", "geosite:ch"]"#).unwrap_err());
    assert_eq!(at, "routing.rules[0].domain[1]");
    assert!(
        what.ends_with("geosite.dat has no list \"ch\"; did you mean \"cn\"?"),
        "{what}"
    );
    let (at, what) = told(place.addresses(r#"["ext:gone.dat:x"]"#).unwrap_err());
    assert_eq!(at, "routing.rules[0].ip[0]");
    assert!(what.starts_with("there is no geo file \"gone.dat\" in "), "{what}");
    let (_, what) = told(place.names(r#"["geosite:bad"]"#).unwrap_err());
    assert!(
        what.contains("the list \"bad\" of ") && what.contains("is no regular expression"),
        "{what}"
    );
    let (_, what) = told(place.names(r#"["ext:geoip.dat:cn"]"#).unwrap_err());
    assert!(what.contains("geoip.dat cannot be used: it is no such file"), "{what}");
    // Private addresses need no file.
    std::fs::remove_file(place.folder.path().join("geoip.dat")).unwrap();
    let private = place.addresses(r#"["geoip:private"]"#).unwrap();
    assert!(private.matches([10, 0, 0, 1].into()) && !private.matches([1, 1, 1, 1].into()));
}

#[test]
fn a_reload_replaces_all_lists_or_none() {
    let place = Place::new(
        &[("A", &["old.example"]), ("B", &["b.example"])],
        &[("A", &["1.0.0.0/8"])],
    );
    let names = place
        .names(r#"["geosite:a", "geosite:b", "full:own.example"]"#)
        .unwrap();
    let addresses = place.addresses(r#"["geoip:a"]"#).unwrap();
    place.lists.close();
    let old =
        || names.matches("old.example") && !names.matches("new.example") && addresses.matches([1, 1, 1, 1].into());
    place.write(
        &[("A", &["new.example"]), ("B", &["b.example"])],
        &[("OTHER", &["2.0.0.0/8"])],
    );
    assert!(
        place
            .reload()
            .unwrap_err()
            .to_string()
            .contains("geoip.dat has no list \"a\"")
    );
    assert!(old());
    std::fs::write(place.folder.path().join("geosite.dat"), b"<html>").unwrap();
    assert!(place.reload().is_err() && old());
    place.write(
        &[("B", &["b.example"]), ("A", &["new.example"])],
        &[("A", &["2.0.0.0/8"])],
    );
    assert_eq!(place.reload().unwrap(), ());
    assert!(names.matches("new.example") && !names.matches("old.example") && names.matches("own.example"));
    assert!(
        names.matches("b.example") && addresses.matches([2, 1, 1, 1].into()) && !addresses.matches([1, 1, 1, 1].into())
    );
}

#[test]
fn entries_without_a_text_hold_for_nothing() {
    let place = Place::new(&[("CN", &["keyword:", "regexp:", "Root.Example."])], &[]);
    let set = place.names(r#"["geosite:cn"]"#).unwrap();
    assert!(set.matches("a.root.example") && !set.matches("a.b") && !set.matches("a"));
}

#[test]
fn lists_that_nobody_names_any_more_are_let_go_of() {
    let place = Place::new(
        &[("A", &["a.example"]), ("B", &["b.example"])],
        &[("A", &["1.0.0.0/8"])],
    );
    let (a, nets) = (
        place.names(r#"["geosite:a"]"#).unwrap(),
        place.addresses(r#"["geoip:a"]"#).unwrap(),
    );
    let b = place.names(r#"["geosite:b"]"#).unwrap();
    let named = || place.lists.sizes().into_iter().map(|one| one.name).collect::<Vec<_>>();
    place.lists.sweep();
    assert_eq!(named(), ["geosite:a", "geosite:b", "geoip:a"]);
    drop((a, nets));
    let fresh = place.read_again().unwrap();
    // What is read again is named until it was taken up.
    place.lists.sweep();
    assert_eq!(named().len(), 3);
    place.lists.take_up(fresh);
    place.lists.sweep();
    assert_eq!(named(), ["geosite:b"]);
    assert!(b.matches("b.example"));
    // The place of a list is used again, and nobody sees another's.
    let again = place.names(r#"["geosite:a"]"#).unwrap();
    assert!(again.matches("a.example") && !again.matches("b.example") && b.matches("b.example"));
    assert_eq!(place.lists.current().load().names.len(), 2);
}

#[test]
fn no_answer_is_half_old_and_half_new() {
    let six = ["192.0.2.0/24", "2001:db8::/32"];
    let place = Place::new(&[("A", &["example"])], &[("A", &six), ("B", &six)]);
    // Both files hold the address of B or say nothing of its family: no answer may be that the list is of its family and
    // does not hold it.
    let outside = place.addresses(r#"["geoip:!a"]"#).unwrap();
    let names = place.names(r#"["geosite:a"]"#).unwrap();
    let both = place.addresses(r#"["geoip:b"]"#).unwrap();
    place.lists.close();
    let lists = &place.lists;
    let (old, ip) = (lists.current().load_full(), "2001:db8::1".parse().unwrap());
    let done = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                assert!(!outside.matches(ip));
                let sets = lists.current().load_full();
                assert_eq!(
                    names.matches_in(&sets, &Asked::new("a.example")),
                    both.matches_in(&sets, ip)
                );
            }
        });
        for round in 0..200 {
            match round % 2 {
                0 => place.write(&[("A", &["other"])], &[("A", &six[..1]), ("B", &six[..1])]),
                _ => place.write(&[("A", &["example"])], &[("A", &six), ("B", &six)]),
            }
            place.reload().unwrap();
        }
        done.store(true, std::sync::atomic::Ordering::Relaxed);
    });
    // Whoever took the sets before keeps them.
    assert!(names.matches_in(&old, &Asked::new("a.example")) && both.matches_in(&old, ip));
}
