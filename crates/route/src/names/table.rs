//! Whole names and domains: their texts in buckets, and where each bucket begins.
//!
//! The hash of a name is made byte by byte from its end, so the hashes of all domains above a name come up on the way, and
//! are made once for all tables. A bucket is a few names one behind another, each without its last label where that is a
//! common one.

use super::{Error, MAX_NAME};

/// Whether a name stands for itself alone or also for what is below it. A name may be both.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    Full = 1,
    Domain = 2,
}

/// Last labels that names are kept without, in order. Their number, from 1, takes the six lower bits of a name's first byte.
const COMMON: [&str; 62] = [
    "ai", "app", "at", "au", "be", "beer", "biz", "br", "ca", "cc", "cfd", "ch", "cloud", "club", "cn", "co", "com",
    "cyou", "cz", "de", "dk", "es", "eu", "fi", "fr", "fun", "hk", "hu", "icu", "in", "info", "io", "it", "jp", "kr",
    "me", "net", "nl", "no", "online", "org", "pl", "pro", "qpon", "rest", "ro", "ru", "se", "shop", "site", "space",
    "store", "tech", "top", "tv", "tw", "uk", "us", "vip", "vn", "website", "xyz",
];

const KIND_SHIFT: u32 = 6;
const CODE: u8 = (1 << KIND_SHIFT) - 1;
const _: () = assert!(COMMON.len() <= CODE as usize);

/// The same as numbers, which are compared in one step each.
const COMMON_WORDS: [u64; COMMON.len()] = {
    let (mut words, mut at) = ([0; COMMON.len()], 0);
    while at < COMMON.len() {
        words[at] = word(COMMON[at].as_bytes());
        at += 1;
    }
    words
};

/// Up to eight bytes as a number: texts without a byte 0 in their order. Longer ones are none of ours.
const fn word(text: &[u8]) -> u64 {
    if text.len() > 8 {
        return u64::MAX;
    }
    let (mut word, mut at) = (0, 0);
    while at < text.len() {
        word |= (text[at] as u64) << (56 - 8 * at);
        at += 1;
    }
    word
}

/// A name without its last label where that is a common one: the label's number, or 0, and where the rest ends.
fn split(name: &[u8]) -> (u8, usize) {
    let label = name.iter().rposition(|byte| *byte == b'.');
    let common = label.and_then(|dot| {
        let text = &name[dot + 1..];
        let number = COMMON_WORDS.binary_search(&word(text)).ok()?;
        // A byte 0 behind a label makes the same number.
        (COMMON[number].len() == text.len()).then_some((number as u8 + 1, dot))
    });
    common.unwrap_or((0, name.len()))
}

/// Most labels of a name whose hashes are kept.
const MAX_ENDINGS: usize = 16;

/// A name with the hashes that tables look for.
#[derive(Debug)]
pub(super) struct Hashed<'n> {
    pub(super) name: &'n str,
    /// The number of the last label, and where the rest ends.
    code: u8,
    end: usize,
    /// The hashes of the name and of all domains above it, with where they begin: the shortest first.
    endings: [(u64, u8); MAX_ENDINGS],
    len: usize,
    /// It has more labels, or is longer than names are.
    is_long: bool,
}

impl<'n> Hashed<'n> {
    pub(super) fn new(name: &'n str) -> Self {
        let (code, end) = split(name.as_bytes());
        let mut hashed = Hashed {
            name,
            code,
            end,
            endings: [(0, 0); MAX_ENDINGS],
            len: 0,
            is_long: false,
        };
        for (hash, start) in endings(name.as_bytes()) {
            match (hashed.endings.get_mut(hashed.len), u8::try_from(start)) {
                (Some(place), Ok(start)) => *place = (hash, start),
                _ => {
                    hashed.is_long = true;
                    break;
                }
            }
            hashed.len += 1;
        }
        hashed
    }

    /// What is kept of the domain that begins there: the number of its last label, and the rest.
    fn kept(&self, start: usize) -> (u8, &[u8]) {
        let name = self.name.as_bytes();
        match start <= self.end {
            true => (self.code, &name[start..self.end]),
            // Nothing but the label.
            false => (0, &name[start..]),
        }
    }
}

/// Names to look up.
#[derive(Debug, Default)]
pub(super) struct Table {
    /// Names: kind and number of the last label in one byte, the length of the rest in one, and the rest.
    texts: Box<[u8]>,
    /// Where each bucket begins in them, and where the last ends.
    starts: Box<[u32]>,
    len: usize,
}

/// Names of a bucket, on average, in tables of more than [`SMALL`] names. Small tables have a bucket for each name.
const BUCKET: usize = 2;
const SMALL: usize = 1 << 10;

/// What names may take in a table, in bytes.
const MAX_TEXTS: usize = 1 << 30;

impl Table {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn memory(&self) -> usize {
        self.texts.len() + self.starts.len() * size_of::<u32>()
    }

    /// Whether a name or a domain above it is in the table.
    pub(super) fn matches(&self, hashed: &Hashed<'_>) -> bool {
        if self.len == 0 {
            return false;
        }
        let has = |(hash, start): (u64, usize)| {
            let wanted = match start {
                0 => Kind::Domain as u8 | Kind::Full as u8,
                _ => Kind::Domain as u8,
            };
            let (code, rest) = hashed.kept(start);
            let mut bucket = self.bucket(hash);
            bucket.any(|one| one.code == code && one.rest == rest && one.kinds & wanted != 0)
        };
        match hashed.is_long {
            false => hashed.endings[..hashed.len]
                .iter()
                .any(|&(hash, start)| has((hash, start.into()))),
            true => endings(hashed.name.as_bytes()).any(has),
        }
    }

    fn bucket(&self, hash: u64) -> Bucket<'_> {
        let at = home(hash, self.starts.len() - 1);
        Bucket(&self.texts[self.starts[at] as usize..self.starts[at + 1] as usize])
    }
}

/// A name as it is kept.
struct Kept<'t> {
    kinds: u8,
    code: u8,
    rest: &'t [u8],
}

/// The names of a bucket.
struct Bucket<'t>(&'t [u8]);

impl<'t> Iterator for Bucket<'t> {
    type Item = Kept<'t>;

    fn next(&mut self) -> Option<Kept<'t>> {
        let [head, len, rest @ ..] = self.0 else { return None };
        let (rest, behind) = rest.split_at_checked(usize::from(*len))?;
        self.0 = behind;
        Some(Kept {
            kinds: head >> KIND_SHIFT,
            code: head & CODE,
            rest,
        })
    }
}

/// The bucket of a hash.
fn home(hash: u64, buckets: usize) -> usize {
    let low = hash & u64::from(u32::MAX);
    ((low * buckets as u64) >> 32) as usize
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

fn hash_of(name: &[u8]) -> u64 {
    endings(name).last().map_or(0, |(hash, _)| hash)
}

/// What names are collected in, in bytes. Allocators take memory in pieces of this size out of a heap that shrinks again, and
/// tables, which stay, from elsewhere; names in one piece would leave a hole as large as themselves.
const PIECE: usize = 64 << 10;

/// Collects names.
#[derive(Debug, Default)]
pub(super) struct Builder {
    /// Names as a table has them, but whole, in the order of their coming.
    pieces: Vec<Vec<u8>>,
    count: usize,
    size: usize,
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
        let size = 2 + name.len();
        if self.size + size > MAX_TEXTS {
            self.full = true;
            return;
        }
        let head = [(kind as u8) << KIND_SHIFT, len];
        match self.pieces.last_mut() {
            Some(piece) if piece.len() + size <= PIECE => {
                piece.extend_from_slice(&head);
                piece.extend_from_slice(name.as_bytes());
            }
            last => {
                // The first grows with what comes, for most sets are small.
                let room = if last.is_some() { PIECE } else { size };
                let mut piece = Vec::with_capacity(room);
                piece.extend_from_slice(&head);
                piece.extend_from_slice(name.as_bytes());
                self.pieces.push(piece);
            }
        }
        self.count += 1;
        self.size += size;
    }

    fn names(&self) -> impl Iterator<Item = Kept<'_>> {
        self.pieces.iter().flat_map(|piece| Bucket(piece))
    }

    /// Sorts the names into buckets: how long each bucket is comes first, then what is in it.
    pub(super) fn build(self) -> Result<Table, Error> {
        if self.full {
            return Err(Error::TooLarge);
        }
        if self.count == 0 {
            return Ok(Table::default());
        }
        let buckets = match self.count <= SMALL {
            true => self.count,
            false => self.count.div_ceil(BUCKET),
        };
        let size = |name: &[u8]| 2 + split(name).1;
        let mut starts = vec![0u32; buckets + 1];
        for one in self.names() {
            // Less than `MAX_TEXTS` in all.
            starts[home(hash_of(one.rest), buckets) + 1] += size(one.rest) as u32;
        }
        for at in 0..buckets {
            starts[at + 1] += starts[at];
        }
        let mut table = Table {
            texts: vec![0; starts[buckets] as usize].into(),
            starts: starts.into(),
            len: 0,
        };
        // How much of each bucket is filled. A name that comes twice leaves a hole at the end of its bucket.
        let mut ends: Vec<u32> = table.starts[..buckets].to_vec();
        for one in self.names() {
            let at = home(hash_of(one.rest), buckets);
            let (code, end) = split(one.rest);
            let (start, filled) = (table.starts[at] as usize, ends[at] as usize);
            if let Some(head) = head_of(&table.texts[start..filled], code, &one.rest[..end]) {
                table.texts[start + head] |= one.kinds << KIND_SHIFT;
                continue;
            }
            let place = &mut table.texts[filled..filled + 2 + end];
            place[0] = one.kinds << KIND_SHIFT | code;
            place[1] = end as u8;
            place[2..].copy_from_slice(&one.rest[..end]);
            ends[at] += size(one.rest) as u32;
            table.len += 1;
        }
        if table.len < self.count {
            table.close_holes(&ends);
        }
        Ok(table)
    }
}

/// Where the first byte of a name is that a bucket has already.
fn head_of(bucket: &[u8], code: u8, rest: &[u8]) -> Option<usize> {
    let mut at = 0;
    for one in Bucket(bucket) {
        if one.code == code && one.rest == rest {
            return Some(at);
        }
        at += 2 + one.rest.len();
    }
    None
}

impl Table {
    /// Moves the buckets together, each of which is filled up to one of `ends`.
    fn close_holes(&mut self, ends: &[u32]) {
        let mut texts = Vec::with_capacity(self.texts.len());
        for (at, end) in ends.iter().enumerate() {
            let here = texts.len() as u32;
            texts.extend_from_slice(&self.texts[self.starts[at] as usize..*end as usize]);
            self.starts[at] = here;
        }
        self.starts[ends.len()] = texts.len() as u32;
        self.texts = texts.into();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn common_labels_can_be_searched() {
        assert!(COMMON.is_sorted() && COMMON_WORDS.is_sorted() && !COMMON_WORDS.contains(&u64::MAX));
        assert_eq!(split(b"a.com"), (1 + COMMON.binary_search(&"com").unwrap() as u8, 1));
        assert_eq!(split(b"com"), (0, 3));
        assert_eq!(split(b"a.example"), (0, 9));
        assert_eq!(split(b".com").1, 0);
        assert_eq!(split(b"a.com\0"), (0, 6));
        assert_eq!(split(b"a.\xff\xff\xff\xff\xff\xff\xff\xff"), (0, 10));
        assert_eq!(split(b"a.international"), (0, 15));
    }
}
