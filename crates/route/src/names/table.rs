//! Whole names and domains: their texts one behind another, and a table of hashes that leads to them.
//!
//! The hash of a name is made byte by byte from its end, so the hashes of all domains above a name come up on the way. A
//! place in the table is a fingerprint of 16 bits and where the text begins. Most names that are not in the set end at the
//! fingerprints and touch no text.

use super::{Error, MAX_NAME};

/// Whether a name stands for itself alone or also for what is below it. A name may be both.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    Full = 1,
    Domain = 2,
}

/// Where a text begins, and in the two highest bits what it stands for.
#[derive(Clone, Copy, Debug, Default)]
struct Place(u32);

impl Place {
    const KIND_SHIFT: u32 = 30;
    const MAX: usize = (1 << Self::KIND_SHIFT) - 1;

    fn start(self) -> usize {
        self.0 as usize & Self::MAX
    }

    fn is(self, kind: Kind) -> bool {
        (self.0 >> Self::KIND_SHIFT) & kind as u32 != 0
    }

    fn with_kind(self, kinds: u32) -> Self {
        Place(self.0 | kinds << Self::KIND_SHIFT)
    }

    fn kinds(self) -> u32 {
        self.0 >> Self::KIND_SHIFT
    }
}

/// Names to look up.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// Texts, each behind its length in one byte.
    texts: Box<[u8]>,
    /// Fingerprints; 0 is a free place. A quarter of the places is free.
    prints: Box<[u16]>,
    places: Box<[Place]>,
    len: usize,
}

impl Table {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn memory(&self) -> usize {
        self.texts.len() + self.prints.len() * size_of::<u16>() + self.places.len() * size_of::<Place>()
    }

    /// Whether a name or a domain above it is in the table.
    pub(super) fn matches(&self, name: &str) -> bool {
        if self.prints.is_empty() {
            return false;
        }
        let name = name.as_bytes();
        endings(name).any(|(hash, start)| {
            let found = self.find(hash, &name[start..]).map(|at| self.places[at]);
            found.is_some_and(|place| place.is(Kind::Domain) || (start == 0 && place.is(Kind::Full)))
        })
    }

    fn text(&self, place: Place) -> &[u8] {
        text_at(&self.texts, place)
    }

    /// The place of a text.
    fn find(&self, hash: u64, text: &[u8]) -> Option<usize> {
        let (mut at, print) = home(hash, self.prints.len());
        // There is a free place, so this ends.
        while self.prints[at] != 0 {
            if self.prints[at] == print && self.text(self.places[at]) == text {
                return Some(at);
            }
            at = if at + 1 == self.prints.len() { 0 } else { at + 1 };
        }
        None
    }
}

fn text_at(texts: &[u8], place: Place) -> &[u8] {
    let start = place.start();
    &texts[start + 1..][..usize::from(texts[start])]
}

/// Where the search for a hash begins, and its fingerprint.
fn home(hash: u64, places: usize) -> (usize, u16) {
    let low = hash & u64::from(u32::MAX);
    let at = (low * places as u64) >> 32;
    (at as usize, ((hash >> 48) as u16).max(1))
}

/// The hashes of a name and of all domains above it with where they begin, the shortest first.
fn endings(name: &[u8]) -> impl Iterator<Item = (u64, usize)> {
    let (mut hash, mut rest) = (START, Some(name.len()));
    std::iter::from_fn(move || {
        let mut at = rest.take()?;
        while at > 0 {
            let byte = name[at - 1];
            let before = hash;
            hash = (hash ^ u64::from(byte)).wrapping_mul(STEP);
            if byte == b'.' {
                rest = Some(at - 1);
                return Some((mixed(before), at));
            }
            at -= 1;
        }
        Some((mixed(hash), 0))
    })
}

/// Odd numbers without a pattern in their bits: parts of pi.
const START: u64 = 0x243f_6a88_85a3_08d3;
const STEP: u64 = 0x1319_8a2e_0370_7345;
const MIX: u64 = 0xa409_3822_299f_31d1;

/// Spreads what the last bytes changed over all bits.
fn mixed(hash: u64) -> u64 {
    let wide = u128::from(hash) * u128::from(MIX);
    (wide >> 64) as u64 ^ wide as u64
}

/// Collects names.
#[derive(Debug, Default)]
pub(super) struct Builder {
    texts: Vec<u8>,
    places: Vec<Place>,
    /// There was no room for a name.
    full: bool,
}

impl Builder {
    pub(super) fn push(&mut self, name: &str, kind: Kind) {
        let Some(len) = u8::try_from(name.len())
            .ok()
            .filter(|len| usize::from(*len) <= MAX_NAME)
        else {
            return;
        };
        let start = self.texts.len();
        if start > Place::MAX {
            self.full = true;
            return;
        }
        self.places.push(Place(start as u32).with_kind(kind as u32));
        self.texts.push(len);
        self.texts.extend_from_slice(name.as_bytes());
    }

    pub(super) fn build(self) -> Result<Table, Error> {
        if self.full {
            return Err(Error::TooLarge);
        }
        // At least one place stays free.
        let places = self.places.len() + self.places.len() / 3 + 1;
        let mut table = Table {
            texts: self.texts.into(),
            prints: vec![0; places].into(),
            places: vec![Place::default(); places].into(),
            len: 0,
        };
        if self.places.is_empty() {
            return Ok(Table::default());
        }
        for place in self.places {
            let text = table.text(place);
            let Some((hash, _)) = endings(text).last() else {
                continue;
            };
            if let Some(at) = table.find(hash, text) {
                table.places[at] = table.places[at].with_kind(place.kinds());
                continue;
            }
            let (mut at, print) = home(hash, places);
            while table.prints[at] != 0 {
                at = if at + 1 == places { 0 } else { at + 1 };
            }
            table.prints[at] = print;
            table.places[at] = place;
            table.len += 1;
        }
        Ok(table)
    }
}
