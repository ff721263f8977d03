//! Keys of others, remembered by name or address.

use std::path::Path;

use super::folder::malformed;
use super::{Error, Kept};
use crate::key::PublicKey;

/// Name of the file in the folder.
const FILE: &str = "known_peers";

/// First line of the file.
const VERSION: &str = "sealway known peers 1";

/// Longest name, bytes.
const MAX_NAME: usize = 255;

/// Somebody who is known.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Known {
    /// Name or address: 1 to 255 bytes, no white space, no control characters, no `#` in front.
    pub name: String,
    /// The key that was there.
    pub key: PublicKey,
    /// When it was there first: `YYYY-MM-DD`.
    pub first_seen: String,
}

/// What [`KnownPeers::remember`] found.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Remembered {
    /// The name was not known. Now it is.
    New,
    /// The name was known with this key.
    Already,
}

/// The file `known_peers`: text, a line for each name, to be edited by hand if wanted. It is replaced whole, never edited in
/// place, and several programs may change it at the same time.
#[derive(Clone, Debug)]
pub struct KnownPeers(Kept);

impl KnownPeers {
    /// The file in this folder, see [`config_dir`](super::config_dir). Neither needs to be there.
    pub fn at(dir: &Path) -> Self {
        KnownPeers(Kept::at(dir, FILE))
    }

    /// Who is known by this name.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be read, [`Error::Exposed`] if others may change it, [`Error::Malformed`] with the number
    /// of a line that is not as it should be.
    pub fn lookup(&self, name: &str) -> Result<Option<Known>, Error> {
        Ok(self.list()?.into_iter().find(|known| known.name == name))
    }

    /// Everybody who is known, in the order of the file.
    ///
    /// # Errors
    /// As [`KnownPeers::lookup`].
    pub fn list(&self) -> Result<Vec<Known>, Error> {
        let text = self.0.read()?;
        self.parse(text.as_ref().map(|text| text.as_str()))
    }

    /// Remembers a name with its key, first seen on this day (`YYYY-MM-DD`).
    ///
    /// # Errors
    /// [`Error::OtherKey`] if the name is known with another key, which stays: [`forget`](KnownPeers::forget) it first.
    /// [`Error::Unfit`] for a name or a day that cannot stand in the file. What [`KnownPeers::lookup`] fails with.
    pub fn remember(&self, name: &str, key: PublicKey, day: &str) -> Result<Remembered, Error> {
        check_name(name).and_then(|()| check_day(day)).map_err(Error::Unfit)?;
        self.0.change_if(|old| {
            let mut all = self.parse(old)?;
            match all.iter().find(|known| known.name == name) {
                Some(known) if known.key == key => Ok((None, Remembered::Already)),
                Some(known) => Err(Error::OtherKey {
                    name: name.into(),
                    found: key,
                    known: known.key,
                }),
                None => {
                    all.push(Known {
                        name: name.into(),
                        key,
                        first_seen: day.into(),
                    });
                    Ok((Some(to_text(&all)), Remembered::New))
                }
            }
        })
    }

    /// Forgets a name. False if it was not known.
    ///
    /// # Errors
    /// As [`KnownPeers::lookup`].
    pub fn forget(&self, name: &str) -> Result<bool, Error> {
        if self.lookup(name)?.is_none() {
            return Ok(false);
        }
        self.0.change_if(|old| {
            let mut all = self.parse(old)?;
            let before = all.len();
            all.retain(|known| known.name != name);
            let forgotten = all.len() < before;
            Ok((forgotten.then(|| to_text(&all)), forgotten))
        })
    }

    /// Everybody of what the file holds, if there is one.
    fn parse(&self, text: Option<&str>) -> Result<Vec<Known>, Error> {
        let all = text.map_or_else(|| Ok(Vec::new()), parse);
        all.map_err(|(line, what)| malformed(&self.0.path, line, what))
    }
}

fn to_text(all: &[Known]) -> String {
    let mut text = format!("{VERSION}\n# name, key, first seen\n");
    for Known { name, key, first_seen } in all {
        text.push_str(&format!("{name} {key} {first_seen}\n"));
    }
    text
}

/// Everybody of a file's text. Errors name the line, from 1.
fn parse(text: &str) -> Result<Vec<Known>, (usize, String)> {
    let mut lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    match lines.next() {
        Some((_, VERSION)) => {}
        Some((line, other)) if other.starts_with("sealway known peers ") => {
            return Err((line, "the file is of another version of this program".into()));
        }
        _ => return Err((1, format!("it does not begin with \"{VERSION}\""))),
    }
    let mut all = Vec::new();
    let mut names = std::collections::HashMap::new();
    for (line, text) in lines {
        if text.is_empty() || text.starts_with('#') {
            continue;
        }
        let mut fields = text.split_whitespace();
        let (Some(name), Some(key), Some(day), None) = (fields.next(), fields.next(), fields.next(), fields.next())
        else {
            return Err((line, "it has other fields than a name, a key and a day".into()));
        };
        check_name(name).map_err(|what| (line, what.into()))?;
        let key = key.parse().map_err(|error| (line, format!("{error}")))?;
        check_day(day).map_err(|what| (line, what.into()))?;
        if let Some(first) = names.insert(name, line) {
            return Err((line, format!("the name stands in line {first} already")));
        }
        all.push(Known {
            name: name.into(),
            key,
            first_seen: day.into(),
        });
    }
    Ok(all)
}

fn check_name(name: &str) -> Result<(), &'static str> {
    if name.is_empty() || name.len() > MAX_NAME {
        return Err("a name has 1 to 255 bytes");
    }
    if name.starts_with('#') || name.chars().any(|part| part.is_whitespace() || part.is_control()) {
        return Err("a name has no white space, no control characters, and no # in front");
    }
    Ok(())
}

fn check_day(day: &str) -> Result<(), &'static str> {
    let wrong = "a day is written as 2026-01-31";
    let [y1, y2, y3, y4, b'-', m1, m2, b'-', d1, d2] = *day.as_bytes() else {
        return Err(wrong);
    };
    if ![y1, y2, y3, y4, m1, m2, d1, d2].iter().all(u8::is_ascii_digit) {
        return Err(wrong);
    }
    let number = |tens: u8, ones: u8| (tens - b'0') * 10 + (ones - b'0');
    match (1..=12).contains(&number(m1, m2)) && (1..=31).contains(&number(d1, d2)) {
        true => Ok(()),
        false => Err(wrong),
    }
}

#[cfg(test)]
#[path = "known_tests.rs"]
mod tests;
