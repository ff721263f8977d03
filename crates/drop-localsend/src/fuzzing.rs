//! What a device may send, for the fuzz target and for the test that replays its corpus. Not part of the public interface.
//!
//! It checks more than that nothing panics: that what is read keeps its bounds, that names lead nowhere else, and that what is
//! written again is read as the same.

use sealway_drop::names::{MAX_PATH, Rules};

use crate::devices::{Devices, MAX};
use crate::landing::Plan;
use crate::message::{Accepted, Info, MAX_DATAGRAM, MAX_FILES, Offer, reason};
use crate::names;
use crate::query::Query;

#[cfg(test)]
mod corpora;

/// The fuzz targets' names and their entries.
pub const ENTRIES: &[(&str, fn(&[u8]))] = &[
    ("localsend_json", json),
    ("localsend_query", query),
    ("localsend_datagram", datagram),
];

/// Bodies: offers, answers, errors.
pub fn json(data: &[u8]) {
    assert!(!reason(data).contains(char::is_control));
    if let Ok(accepted) = Accepted::read(data) {
        assert!(accepted.files.0.len() <= MAX_FILES);
    }
    let Ok(offer) = Offer::read(data) else { return };
    let again = serde_json::to_vec(&offer).unwrap_or_default();
    assert_eq!(Offer::read(&again).ok().as_ref(), Some(&offer));
    assert!(offer.files.0.len() <= MAX_FILES && !offer.info.shown().contains(char::is_control));
    for (_, file) in &offer.files.0 {
        let _ = file.modified();
        let _ = file.hash();
        name(&file.file_name);
    }
    let plan = Plan::of(&offer.files.0, Rules::POSIX);
    let mut paths: Vec<_> = plan.entries.iter().map(|entry| &entry.path).collect();
    paths.sort();
    assert!(
        paths.windows(2).all(|pair| pair.first() != pair.last()),
        "every path once"
    );
}

fn name(text: &str) {
    for rules in [Rules::POSIX, Rules::WINDOWS] {
        let Ok(path) = names::path(text, rules) else { continue };
        assert!(path.components().map(<[u8]>::len).sum::<usize>() <= MAX_PATH);
        for part in path.components() {
            assert!(rules.check(part).is_ok() && part != b".." && !part.contains(&b'/'));
            assert!(!part.iter().any(u8::is_ascii_control));
        }
        // A name that was taken for a path is one that can be offered.
        assert!(names::offered(&path).is_some());
        let _ = names::numbered(&path, 1, rules);
    }
}

/// Queries.
pub fn query(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let read = Query::read(&text);
    if let Some(session) = &read.session {
        let written = crate::query::target("/", &[("sessionId", Some(session))]);
        let again = Query::read(written.trim_start_matches("/?"));
        assert_eq!(again.session.as_ref(), Some(session));
    }
}

/// Announcements.
pub fn datagram(data: &[u8]) {
    if data.len() > MAX_DATAGRAM {
        return;
    }
    let Ok(info) = Info::read(data) else { return };
    assert_eq!(Info::read(&info.write()).ok().as_ref(), Some(&info));
    assert!(info.alias.chars().count() <= 64);
    let (mut devices, now) = (Devices::default(), std::time::Instant::now());
    let from = ([10, 0, 0, 1], 1).into();
    devices.hear(info.clone(), from, None, now);
    let claimed = info.claimed();
    if devices.hear(info, from, claimed, now) {
        assert_eq!(devices.list().len(), 1);
    }
    assert!(devices.list().len() <= MAX);
}

/// One of everything in order, to start the corpora with.
pub fn seeds() -> Vec<(&'static str, &'static str, Vec<u8>)> {
    let info = r#""alias":"Nice Orange","version":"2.2","deviceModel":"Linux","deviceType":"headless","fingerprint":"A4BF00112233445566778899AABBCCDDEEFFA4BF00112233445566778899AABB","port":53317,"protocol":"https","download":false"#;
    let offer = format!(
        r#"{{"info":{{{info}}},"files":{{"0":{{"id":"0","fileName":"holiday/a.jpg","size":324242,"fileType":"image/jpeg","sha256":"9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08","preview":null,"metadata":{{"modified":"2026-08-01T10:20:30.456Z","accessed":"2026-08-01T10:20:30Z"}}}},"1":{{"fileName":"../x","size":0,"fileType":""}},"2":{{"fileName":"holiday/a.jpg","size":1,"fileType":"x"}}}}}}"#
    );
    vec![
        ("localsend_json", "offer", offer.into_bytes()),
        (
            "localsend_json",
            "accepted",
            br#"{"sessionId":"5f2c","files":{"0":"a1b2"}}"#.to_vec(),
        ),
        ("localsend_json", "error", br#"{"message":"Rejected"}"#.to_vec()),
        (
            "localsend_query",
            "upload",
            b"sessionId=5f2c&fileId=0&token=a%20b+c&pin=123456".to_vec(),
        ),
        ("localsend_query", "info", b"fingerprint=A4BF&x".to_vec()),
        (
            "localsend_datagram",
            "announcement",
            format!(r#"{{{info},"announce":true,"announcement":true}}"#).into_bytes(),
        ),
        ("localsend_datagram", "least", br#"{"alias":"a","port":1}"#.to_vec()),
    ]
}
