use proptest::prelude::*;

use super::*;

fn build(entries: &[(&str, &str, &str, u32)]) -> Fallbacks<u32> {
    Fallbacks::new(entries.iter().map(|(name, alpn, path, target)| Fallback {
        name: (*name).into(),
        alpn: (*alpn).into(),
        path: (*path).into(),
        target: *target,
    }))
}

fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes()
}

/// One table, and what each connection must reach, worked out by hand from the rules at the top of the module.
#[test]
fn the_table() {
    let f = build(&[
        ("", "", "", 1),
        ("", "", "/ws", 2),
        ("", "h2", "", 3),
        ("example.com", "", "", 4),
        ("example.com", "", "/ws", 5),
        ("example.com", "http/1.1", "/api", 6),
        ("www.example.com", "h2", "/x", 7),
        ("only.h2.test", "h2", "", 8),
    ]);
    for (name, alpn, first, want) in [
        // Plain TCP, and an unknown name: the empty name.
        ("", "", get("/"), 1),
        ("", "", get("/ws"), 2),
        ("", "", get("/ws?ed=2048"), 2),
        ("", "", get("/ws/"), 1),
        ("", "", get("/WS"), 1),
        ("", "h2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), 3),
        // h2 took "/ws" from the empty ALPN of its own name.
        ("", "h2", get("/ws"), 2),
        // Unknown ALPN: the empty one.
        ("", "http/1.1", get("/"), 1),
        ("other.test", "h2", get("/"), 3),
        // Exact name, case does not matter.
        ("example.com", "", get("/"), 4),
        ("EXAMPLE.com", "", get("/ws"), 5),
        // Rule 2: the ALPN of the name takes what it lacks from the name's own empty ALPN.
        ("example.com", "http/1.1", get("/api"), 6),
        ("example.com", "http/1.1", get("/ws"), 5),
        ("example.com", "http/1.1", get("/"), 4),
        // Rule 1 gave example.com an h2 node; rule 2 filled it from its own empty ALPN, not from h2 of the empty name.
        ("example.com", "h2", get("/"), 4),
        ("example.com", "H2", get("/ws"), 5),
        // A part of the name: the longest wins.
        ("a.example.com", "", get("/"), 4),
        ("a.www.example.com", "h2", get("/x"), 7),
        // www.example.com has no empty ALPN of its own: rule 3 takes h2 and "" from the empty name.
        ("www.example.com", "h2", get("/"), 3),
        ("www.example.com", "h2", get("/ws"), 2),
        ("www.example.com", "", get("/"), 1),
        ("www.example.com", "http/1.1", get("/ws"), 2),
        ("only.h2.test", "h2", get("/ws"), 2),
        ("only.h2.test", "h2", get("/"), 8),
        // Not HTTP at all.
        ("", "", vec![0; 40], 1),
        ("", "", b"SSH-2.0-OpenSSH\r\n".to_vec(), 1),
        ("example.com", "", Vec::new(), 4),
    ] {
        let said = String::from_utf8_lossy(&first).into_owned();
        assert_eq!(f.choose(name, alpn, &first), Ok(&want), "{name:?} {alpn:?} {said:?}");
    }
}

#[test]
fn without_a_default_entry_some_are_closed() {
    let f = build(&[("a.test", "h2", "/x", 1)]);
    assert_eq!(f.choose("", "", &get("/x")), Err(NoFallback::Name));
    assert_eq!(f.choose("b.test", "h2", &get("/x")), Err(NoFallback::Name));
    assert_eq!(f.choose("a.test", "", &get("/x")), Err(NoFallback::Alpn));
    assert_eq!(f.choose("a.test", "http/1.1", &get("/x")), Err(NoFallback::Alpn));
    assert_eq!(f.choose("a.test", "h2", &get("/y")), Err(NoFallback::Path));
    assert_eq!(f.choose("a.test", "h2", &get("/x")), Ok(&1));
    assert!(!f.is_empty());
    let none = build(&[]);
    assert!(none.is_empty());
    assert_eq!(none.choose("", "", b"x"), Err(NoFallback::Name));
}

#[test]
fn the_last_of_equal_keys_counts() {
    let f = build(&[("", "", "", 1), ("", "", "", 2)]);
    assert_eq!(f.choose("", "", b""), Ok(&2));
}

#[test]
fn methods_and_ends_of_the_path() {
    let f = build(&[
        ("", "", "", 1),
        ("", "", "/p", 2),
        ("", "", &format!("/{}", "a".repeat(58)), 3),
    ]);
    let choose = |first: &str| *f.choose("", "", first.as_bytes()).unwrap();
    for method in ["GET", "POST", "PATCH", "DELETE", "OPTIONS", "CONNECT"] {
        assert_eq!(choose(&format!("{method} /p HTTP/1.1\r\n\r\n")), 2, "{method}");
    }
    // Offsets 4 to 8 only: a method of two letters or of eight has no path.
    assert_eq!(choose("GE /p HTTP/1.1\r\n\r\n"), 1);
    assert_eq!(choose("PROPFIND /p HTTP/1.1\r\n\r\n"), 1);
    assert_eq!(choose("GET /p\r\nabcdefghijklmnop"), 1);
    assert_eq!(choose("GET /p\nabcdefghijklmnop"), 1);
    // Fewer than 18 bytes.
    assert_eq!(choose("GET /p HTTP/1.1\r\n"), 1);
    assert_eq!(choose("GET /p HTTP/1.1\r\n\r"), 2);
    // Lower-case letters are no method a server would wait for, but the peers find the path all the same.
    assert_eq!(choose("get /p HTTP/1.1\r\n\r\n"), 2);
    // The end must stand at offset 63 at most.
    let long = |n: usize| format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(n));
    assert_eq!(long(58).find(" H"), Some(63));
    assert_eq!(choose(&long(58)), 3);
    assert_eq!(choose(&long(59)), 1);
}

#[test]
fn waits_only_for_what_looks_like_http() {
    let f = build(&[("", "", "", 1), ("", "", "/p", 2)]);
    let line = "OPTIONS /p HTTP/1.1\r\n";
    for n in 0..line.len() {
        let first = &line.as_bytes()[..n];
        // The path ends at offset 10, but nothing is decided before 18 bytes.
        assert_eq!(f.wants_more("", "", first), n < 18, "{n}");
    }
    for first in [
        &b"GET /p\r\n"[..],
        b"get /p",
        b"\x16\x03\x01",
        b"SSH-2.0",
        b"GE /",
        b"PROPFIND",
        b"PRI * HTTP/2.0",
    ] {
        assert!(!f.wants_more("", "", first), "{first:?}");
    }
    let endless = format!("GET /{}", "a".repeat(200));
    assert!(f.wants_more("", "", &endless.as_bytes()[..63]));
    assert!(!f.wants_more("", "", &endless.as_bytes()[..64]));
    // Where the path does not matter nothing is waited for.
    assert!(!build(&[("", "", "", 1)]).wants_more("", "", b"GET"));
    assert!(build(&[("", "", "/p", 1)]).wants_more("", "", b"GET"));
}

const NAMES: [&str; 4] = ["", "a.test", "b.a.test", "c.test"];
const ALPNS: [&str; 3] = ["", "h2", "http/1.1"];
const PATHS: [&str; 3] = ["", "/x", "/y"];

type Entry = (usize, usize, usize, u32);

/// The rules again, asked backwards: instead of copying entries down a tree, look up along the line of inheritance.
fn by_line_of_inheritance(entries: &[Entry], name: usize, alpn: usize, path: usize) -> Option<u32> {
    let own = |n: usize, a: usize, p: usize| {
        let hit = entries.iter().rev().find(|e| (e.0, e.1, e.2) == (n, a, p));
        hit.map(|e| e.3)
    };
    let has_name = |n: usize| entries.iter().any(|e| e.0 == n);
    let configured = |n: usize, a: usize| entries.iter().any(|e| e.0 == n && e.1 == a);
    let present = |n: usize, a: usize| configured(n, a) || configured(0, a);
    // b.a.test contains a.test.
    let line: &[usize] = if name == 2 { &[2, 1, 0] } else { &[name, 0] };
    let n = *line.iter().find(|n| has_name(**n))?;
    let a = *[alpn, 0].iter().find(|a| present(n, **a))?;
    let lookup = |p: usize| {
        let mut line = vec![(n, a), (n, 0)];
        if configured(0, a) {
            line.extend([(0, a), (0, 0)]);
        }
        line.into_iter().find_map(|(n, a)| own(n, a, p))
    };
    lookup(path).or_else(|| lookup(0))
}

proptest! {
    #[test]
    fn the_tree_agrees_with_the_line_of_inheritance(
        entries in prop::collection::vec((0..4usize, 0..3usize, 0..3usize, 0..1000u32), 0..12),
        name in 0..4usize, alpn in 0..3usize, path in 0..3usize,
    ) {
        let named: Vec<_> = entries.iter().map(|e| (NAMES[e.0], ALPNS[e.1], PATHS[e.2], e.3)).collect();
        let first = if path == 0 { get("/none") } else { get(PATHS[path]) };
        let got = build(&named).choose(NAMES[name], ALPNS[alpn], &first).ok().copied();
        prop_assert_eq!(got, by_line_of_inheritance(&entries, name, alpn, path));
    }
}
