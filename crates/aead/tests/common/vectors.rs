//! The vectors of the specifications, which lie in `tests/vectors`. They are part of the repository: without them no test compiles.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use std::collections::BTreeMap;

/// One case: its title, a section of the specification, and its fields.
pub struct Record {
    pub title: String,
    fields: BTreeMap<String, String>,
}

impl Record {
    pub fn has(&self, name: &str) -> bool {
        self.fields.contains_key(name)
    }

    pub fn text(&self, name: &str) -> &str {
        match self.fields.get(name) {
            Some(text) => text,
            None => panic!("{} has no {name}", self.title),
        }
    }

    /// A field of hexadecimal digits.
    pub fn bytes(&self, name: &str) -> Vec<u8> {
        let digits = self.text(name);
        assert!(
            digits.len().is_multiple_of(2),
            "an odd number of digits in {}",
            self.title
        );
        (0..digits.len())
            .step_by(2)
            .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
            .collect()
    }

    /// A field of as many bytes as the array has.
    pub fn array<const N: usize>(&self, name: &str) -> [u8; N] {
        self.bytes(name).try_into().unwrap()
    }
}

/// The records of a file: `[title]`, then lines of `name = value`.
pub fn records(file: &str) -> Vec<Record> {
    // Compiled in, so that tests need no file system, which Miri does not have.
    let text = match file {
        "gcm.txt" => include_str!("../vectors/gcm.txt"),
        "rfc5869.txt" => include_str!("../vectors/rfc5869.txt"),
        "rfc8439.txt" => include_str!("../vectors/rfc8439.txt"),
        "xchacha.txt" => include_str!("../vectors/xchacha.txt"),
        _ => panic!("no vectors are called {file}"),
    };
    let mut records: Vec<Record> = Vec::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(title) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            let (title, fields) = (title.to_owned(), BTreeMap::new());
            records.push(Record { title, fields });
        } else {
            let (name, value) = line.split_once(" =").unwrap();
            let fields = &mut records.last_mut().unwrap().fields;
            assert!(fields.insert(name.to_owned(), value.trim().to_owned()).is_none());
        }
    }
    records
}

/// The record with this title.
pub fn record(file: &str, title: &str) -> Record {
    let found = records(file).into_iter().find(|record| record.title == title);
    found.unwrap_or_else(|| panic!("{file} has no {title}"))
}
