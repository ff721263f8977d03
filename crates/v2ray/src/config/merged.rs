//! Several files written as the one that they come to.

use std::fmt::Write;

use super::context::Cx;
use super::{File, Settings, merge};
use crate::json::{Data, Value};
use crate::problem::Problem;

/// The text of the one file that these come to, as [`load`](super::load) puts them together: plain JSON without comments, indented
/// by four spaces. Keys keep the order and the spelling that they have in the files.
///
/// # Errors
/// What cannot be read of the files.
pub fn merged(files: &[File<'_>]) -> Result<String, Vec<Problem>> {
    let names: Vec<&str> = files.iter().map(|file| file.name).collect();
    let mut cx = Cx::new(Settings::TABLE, &names, false, &|_| None);
    let whole = merge::all(files, &mut cx);
    match whole {
        Some(value) if cx.errors() == 0 => {
            let mut out = String::new();
            write(&value, 0, &mut out);
            out.push('\n');
            Ok(out)
        }
        _ => Err(cx.finish()),
    }
}

/// Depth is bounded by the reader of the files.
fn write(value: &Value, depth: usize, out: &mut String) {
    match &value.data {
        Data::Null => out.push_str("null"),
        Data::Bool(yes) => out.push_str(if *yes { "true" } else { "false" }),
        Data::Number(text) => out.push_str(text),
        Data::String(text) => string(text, out),
        Data::Array(values) => list(('[', ']'), values, depth, out, |value, out| {
            write(value, depth + 1, out)
        }),
        Data::Object(members) => list(('{', '}'), members, depth, out, |member, out| {
            string(&member.key, out);
            out.push_str(": ");
            write(&member.value, depth + 1, out);
        }),
    }
}

fn list<T>((open, close): (char, char), all: &[T], depth: usize, out: &mut String, one: impl Fn(&T, &mut String)) {
    out.push(open);
    for (i, item) in all.iter().enumerate() {
        out.push_str(if i == 0 { "\n" } else { ",\n" });
        out.extend(std::iter::repeat_n("    ", depth + 1));
        one(item, out);
    }
    if !all.is_empty() {
        out.push('\n');
        out.extend(std::iter::repeat_n("    ", depth));
    }
    out.push(close);
}

fn string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            // Writing to a string cannot fail.
            c if (c as u32) < 0x20 || c == '\u{7f}' => drop(write!(out, "\\u{:04x}", c as u32)),
            c => out.push(c),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file<'a>(name: &'a str, text: &'a str) -> File<'a> {
        let text = text.as_bytes();
        File { name, text }
    }

    #[test]
    fn files_become_one() {
        let first = r#"{ // A comment.
            "log": {}, "outbounds": [{"tag": "a", "x": [1.50, true, null, "q\"\\\u0001\n"]}]}"#;
        let over = r#"{"outbounds": [{"tag": "b"}], "Stats": {}}"#;
        let text = merged(&[file("1.json", first), file("2.json", over)]).unwrap();
        let wanted = r#"{
    "log": {},
    "outbounds": [
        {
            "tag": "b"
        },
        {
            "tag": "a",
            "x": [
                1.50,
                true,
                null,
                "q\"\\\u0001\u000a"
            ]
        }
    ],
    "Stats": {}
}
"#;
        assert_eq!(text, wanted);
        assert_eq!(merged(&[file("again.json", &text)]).unwrap(), wanted);
    }

    #[test]
    fn what_cannot_be_read_is_told() {
        let found = merged(&[file("1.json", "{}"), file("2.json", "{\n  \"a\": }")]).unwrap_err();
        assert_eq!((found[0].file.as_str(), found[0].line), ("2.json", 2));
        assert_eq!(merged(&[]).unwrap_err().len(), 1);
    }
}
