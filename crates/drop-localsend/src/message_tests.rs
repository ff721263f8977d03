use super::*;

const OFFER: &str = r#"{"info":{"alias":"Nice Orange","version":"2.1","deviceModel":null,"fingerprint":"x","port":53317,"protocol":"https","download":null},
    "files":{"b":{"id":"b","fileName":"holiday/a.jpg","size":324242,"fileType":"image/jpeg","sha256":null,"preview":null,
    "metadata":{"modified":"2026-08-01T12:20:30.456+02:00","accessed":null}},"a":{"id":"a","fileName":"b","size":0,"fileType":"x","unknown":[1]}}}"#;

#[test]
fn an_offer_of_the_app_is_read() {
    let offer = Offer::read(OFFER.as_bytes()).unwrap();
    assert_eq!(offer.info.alias, "Nice Orange");
    assert_eq!(offer.files.0[0].1.file_name, "holiday/a.jpg");
    let time = offer.files.0[0].1.modified().unwrap();
    assert_eq!((time.seconds, time.nanoseconds), (1_785_579_630, 456_000_000));
    assert_eq!(
        Metadata::of(time).unwrap().modified.as_deref(),
        Some("2026-08-01T10:20:30.456Z")
    );
    assert_eq!(offer.message(), None);
    let again = serde_json::to_vec(&offer).unwrap();
    assert_eq!(Offer::read(&again).unwrap().files.0[1].0, "a");
}

#[test]
fn times_without_an_offset_and_before_1970() {
    let file = |text: &str| File {
        metadata: Some(Metadata {
            modified: Some(text.into()),
        }),
        ..File::default()
    };
    assert_eq!(file("2026-08-01T12:20:30").modified(), None);
    assert_eq!(file("tomorrow").modified(), None);
    let before = file("1969-12-31T23:59:59.5Z").modified().unwrap();
    assert_eq!((before.seconds, before.nanoseconds), (-1, 500_000_000));
    assert_eq!(
        Metadata::of(before).unwrap().modified.as_deref(),
        Some("1969-12-31T23:59:59.5Z")
    );
}

#[test]
fn what_is_missing_or_too_much_is_refused() {
    let wrong = |from: &str, to: &str| {
        Offer::read(OFFER.replacen(from, to, 1).as_bytes())
            .unwrap_err()
            .to_string()
    };
    assert!(wrong("\"alias\":\"Nice Orange\",", "").contains("alias"));
    assert!(wrong("324242", "-1").contains("invalid value"));
    assert!(wrong("324242", "18446744073709551616").contains("invalid"));
    assert!(wrong("\"a\":{", "\"b\":{").contains("two files"));
    assert!(wrong("\"port\":53317", "\"port\":65536").contains("invalid"));
    let many: Vec<_> = (0..=MAX_FILES)
        .map(|id| format!("\"{id}\":{{\"fileName\":\"a\",\"size\":0}}"))
        .collect();
    let many = format!("{{\"info\":{{\"alias\":\"a\"}},\"files\":{{{}}}}}", many.join(","));
    assert!(
        Offer::read(many.as_bytes())
            .unwrap_err()
            .to_string()
            .contains("more than 131072")
    );
    assert!(
        Offer::read(&vec![b' '; MAX_OFFER + 1])
            .unwrap_err()
            .to_string()
            .contains("long")
    );
    assert!(
        Info::read(&vec![b' '; MAX_MESSAGE + 1])
            .unwrap_err()
            .to_string()
            .contains("long")
    );
    assert!(Offer::read("[".repeat(100_000).as_bytes()).is_err());
}

#[test]
fn aliases_are_cut_and_escaped() {
    let info = Info::read(format!("{{\"alias\":\"\\u001b[2J{}\"}}", "é".repeat(1000)).as_bytes()).unwrap();
    assert_eq!(info.alias.chars().count(), 64);
    assert!(!info.shown().contains('\u{1b}'));
    assert_eq!((info.port, info.protocol, info.claimed()), (None, None, None));
    assert_eq!(reason(b"{\"message\":\"Rejected\"}"), "Rejected");
    assert_eq!(reason(b"<html>"), "");
}

#[test]
fn a_text_message_is_one_text_file_with_its_text() {
    let offer = |kind: &str, text: &str| {
        let json = format!(
            "{{\"info\":{{\"alias\":\"a\"}},\"files\":{{\"1\":{{\"fileName\":\"x.txt\",\"size\":2,\"fileType\":\"{kind}\",\"preview\":{text}}}}}}}"
        );
        Offer::read(json.as_bytes()).unwrap().message().map(str::to_owned)
    };
    assert_eq!(offer("text/plain", "\"hi\"").as_deref(), Some("hi"));
    assert_eq!(offer("text/plain", "null"), None);
    assert_eq!(offer("image/png", "\"hi\""), None);
}
