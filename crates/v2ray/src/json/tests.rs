use proptest::prelude::*;

use super::*;

fn at(line: u32, column: u32) -> Position {
    Position { file: 3, line, column }
}

fn fault(text: impl AsRef<[u8]>) -> (u32, u32, String) {
    let fault = read(text.as_ref(), 3).unwrap_err();
    (fault.at.line, fault.at.column, fault.text)
}

fn string(text: impl AsRef<[u8]>) -> String {
    match read(text.as_ref(), 3).unwrap().value.data {
        Data::String(text) => text,
        other => panic!("{other:?}"),
    }
}

#[test]
fn every_key_and_value_knows_its_place() {
    let text = "\u{feff}{ // one\n  \"é\": 1, # two\n /* three\n */ \"b\": [true, \"x\"] }\n";
    let value = read(text.as_bytes(), 3).unwrap().value;
    assert_eq!(value.at, at(1, 1));
    let Data::Object(members) = value.data else { panic!() };
    assert_eq!(
        (members[0].key.as_str(), members[0].at, members[0].value.at),
        ("é", at(2, 3), at(2, 8))
    );
    assert_eq!((members[1].at, members[1].value.at), (at(4, 5), at(4, 10)));
    let Data::Array(values) = &members[1].value.data else {
        panic!()
    };
    assert_eq!((values[0].at, values[1].at), (at(4, 11), at(4, 17)));
}

#[test]
fn strings_as_go_reads_them() {
    assert_eq!(
        string(r#""\"\\\/\b\f\n\r\t\u00e9\ud83d\ude00""#),
        "\"\\/\u{8}\u{c}\n\r\té😀"
    );
    assert_eq!(string(r#""\ud83d\u0041\ude00x""#), "\u{fffd}A\u{fffd}x");
    assert_eq!(string(b"\"a\xffb\""), "a\u{fffd}b");
    assert_eq!(read(b"[\"\xff\"]", 3).unwrap().not_utf8, [at(1, 2)]);
    assert!(read(b"1 // \xff\xfe", 3).unwrap().not_utf8.is_empty());
    assert_eq!(fault(r#""a"#), (1, 1, "this string has no end on its line".into()));
    assert_eq!(fault("{\"a\":\n \"b\n\"}").0, 2);
    assert_eq!(fault(r#""\x""#), (1, 2, "a backslash begins no escape here".into()));
    assert_eq!(fault(r#""\u00g0""#), (1, 2, "\\u wants four hexadecimal digits".into()));
    assert_eq!(fault("\"a\tb\""), (1, 3, "a string holds the control byte 0x09".into()));
}

#[test]
fn numbers_keep_their_text() {
    for text in [
        "0",
        "-0",
        "10",
        "1.50",
        "1e9",
        "-2E+10",
        "123456789012345678901234567890",
    ] {
        assert_eq!(read(text.as_bytes(), 0).unwrap().value.data, Data::Number(text.into()));
    }
    for text in ["01", "-", "1.", "1e", "1e+", "0x10", "1.2.3", "--1", "1-2"] {
        assert_eq!(fault(text), (1, 1, format!("{text} is no JSON number")));
    }
}

#[test]
fn faults_say_where_and_what() {
    assert_eq!(fault(""), (1, 1, "the file is empty".into()));
    assert_eq!(fault(" // only a comment"), (1, 19, "the file is empty".into()));
    assert_eq!(
        fault("{}\n{}"),
        (2, 1, "there is more text after the end of the configuration".into())
    );
    assert_eq!(
        fault("{\"a\":1,}"),
        (1, 8, "a key in double quotes is expected here, not \"}\"".into())
    );
    assert_eq!(fault("[1,]"), (1, 4, "a value is expected here, not \"]\"".into()));
    assert_eq!(
        fault("[1 2]"),
        (1, 4, "a comma or a closing bracket is expected here, not \"2\"".into())
    );
    assert_eq!(fault("{\"a\" 1}"), (1, 6, "a colon is expected here, not \"1\"".into()));
    assert_eq!(
        fault("{\"a\":1"),
        (
            1,
            7,
            "a comma or a closing brace is expected here, not the end of the file".into()
        )
    );
    assert_eq!(
        fault("{'a':1}"),
        (1, 2, "a key in double quotes is expected here, not \"'\"".into())
    );
    assert_eq!(fault("[tru]"), (1, 2, "tru is no JSON value".into()));
    assert_eq!(fault("[1, /* 2"), (1, 5, "this comment has no end".into()));
    assert_eq!(
        fault(b"[\x80]"),
        (1, 2, "a value is expected here, not the byte 0x80".into())
    );
    assert_eq!(fault(b"\xff\xfe{\0}\0"), (1, 1, "the file is UTF-16".into()));
}

#[test]
fn depth_and_size_are_bounded() {
    let deep = |n: usize| format!("{}1{}", "[".repeat(n), "]".repeat(n));
    assert!(read(deep(MAX_DEPTH).as_bytes(), 0).is_ok());
    assert_eq!(
        fault(deep(MAX_DEPTH + 1)),
        (1, 65, "more than 64 objects and arrays inside each other".into())
    );
    assert!(read("{\"a\":".repeat(1 << 20).as_bytes(), 0).is_err());
    assert!(fault(vec![b' '; MAX_BYTES + 1]).2.contains("at most 33554432 are read"));
}

proptest! {
    #[test]
    fn agrees_with_another_reader(text in r#"[\[\]{},:"a0-9eE.+\-\\n ]{0,30}"#) {
        let ours = read(text.as_bytes(), 0).is_ok();
        match serde_json::from_str::<serde_json::Value>(&text) {
            Ok(_) => prop_assert!(ours),
            // Numbers are text to us.
            Err(error) if error.to_string().contains("out of range") => {}
            Err(_) => prop_assert!(!ours),
        }
    }
}
