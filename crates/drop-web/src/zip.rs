//! Zip files whose members are stored, written from front to back (PKWARE's APPNOTE 6.3).
//!
//! Sizes are known before a member begins, its check sum only when it has ended: it stands in a data descriptor behind it and in the
//! central directory. What needs 64 bits is written as zip64. The length of the whole is known as soon as all names and sizes are.

/// A file or a folder in a zip file.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Member<'a> {
    /// Its path, with slashes; a folder's ends with one.
    pub name: &'a [u8],
    /// Bytes; zero for a folder.
    pub size: u64,
    /// When it changed, seconds since 1970.
    pub modified: i64,
    /// Its date and time as MS-DOS has them.
    pub dos: (u16, u16),
}

/// From here on a number of 32 bits says that the real one is elsewhere.
const LIMIT: u64 = 0xffff_ffff;
/// The same of 16 bits.
const MANY: u64 = 0xffff;
/// Versions that are needed to read: plain, and with zip64.
const PLAIN: u16 = 20;
const ZIP64: u16 = 45;
/// Check sum and sizes follow the content.
const DESCRIPTOR: u16 = 1 << 3;
/// The name is UTF-8.
const UTF8: u16 = 1 << 11;

/// The records of one zip file, in order.
#[derive(Debug, Default)]
pub struct Zip {
    at: u64,
    count: u64,
    directory: Vec<u8>,
    /// Where the member began that is being written.
    began: u64,
}

impl Member<'_> {
    fn is_folder(&self) -> bool {
        self.name.ends_with(b"/")
    }

    fn is_large(&self) -> bool {
        self.size >= LIMIT
    }

    fn flags(&self) -> u16 {
        let utf8 = if std::str::from_utf8(self.name).is_ok() {
            UTF8
        } else {
            0
        };
        let descriptor = if self.is_folder() { 0 } else { DESCRIPTOR };
        utf8 | descriptor
    }

    /// The extra field with the time in UTC ("UT"), where 32 bits hold it.
    fn time(&self) -> Vec<u8> {
        let Ok(modified) = i32::try_from(self.modified) else {
            return Vec::new();
        };
        let mut extra = vec![0x55, 0x54, 5, 0, 1];
        extra.extend_from_slice(&modified.to_le_bytes());
        extra
    }

    /// Flags, method, time: what a local header and the directory say alike.
    fn common(&self, version: u16, out: &mut Vec<u8>) {
        for number in [version, self.flags(), 0, self.dos.1, self.dos.0] {
            out.extend_from_slice(&number.to_le_bytes());
        }
    }
}

impl Zip {
    /// What stands before the content of a member. Names have at most 65,535 bytes, which those of the drop always keep.
    pub fn begin(&mut self, member: &Member<'_>) -> Vec<u8> {
        self.began = self.at;
        let mut extra = member.time();
        let mut out = b"PK\x03\x04".to_vec();
        let (version, size) = match member.is_large() {
            true => (ZIP64, LIMIT as u32),
            false => (PLAIN, 0),
        };
        if member.is_large() {
            extra.extend_from_slice(&[1, 0, 16, 0]);
            extra.extend_from_slice(&[0; 16]);
        }
        member.common(version, &mut out);
        for number in [0, size, size] {
            out.extend_from_slice(&number.to_le_bytes());
        }
        for len in [member.name.len(), extra.len()] {
            out.extend_from_slice(&(len as u16).to_le_bytes());
        }
        out.extend_from_slice(member.name);
        out.extend_from_slice(&extra);
        self.at += out.len() as u64;
        out
    }

    /// What stands behind the content of a member, whose check sum (CRC-32) is known by now.
    pub fn end(&mut self, member: &Member<'_>, crc: u32) -> Vec<u8> {
        self.at += member.size;
        let mut out = Vec::new();
        if !member.is_folder() {
            out.extend_from_slice(b"PK\x07\x08");
            out.extend_from_slice(&crc.to_le_bytes());
            for _ in 0..2 {
                match member.is_large() {
                    true => out.extend_from_slice(&member.size.to_le_bytes()),
                    false => out.extend_from_slice(&(member.size as u32).to_le_bytes()),
                }
            }
        }
        self.list(member, crc);
        self.at += out.len() as u64;
        out
    }

    fn list(&mut self, member: &Member<'_>, crc: u32) {
        self.count += 1;
        let mut large = Vec::new();
        for number in [member.size, member.size, self.began] {
            if number >= LIMIT {
                large.extend_from_slice(&number.to_le_bytes());
            }
        }
        let mut extra = member.time();
        if !large.is_empty() {
            extra.extend_from_slice(&[1, 0, large.len() as u8, 0]);
            extra.extend_from_slice(&large);
        }
        let version = if large.is_empty() { PLAIN } else { ZIP64 };
        let out = &mut self.directory;
        out.extend_from_slice(b"PK\x01\x02");
        // Made on Unix, so that the mode counts.
        out.extend_from_slice(&(3 << 8 | ZIP64).to_le_bytes());
        member.common(version, out);
        out.extend_from_slice(&crc.to_le_bytes());
        let size = member.size.min(LIMIT) as u32;
        for _ in 0..2 {
            out.extend_from_slice(&size.to_le_bytes());
        }
        for len in [member.name.len(), extra.len(), 0, 0, 0] {
            out.extend_from_slice(&(len as u16).to_le_bytes());
        }
        let mode: u32 = match member.is_folder() {
            true => 0o040_755 << 16 | 0x10,
            false => 0o100_644 << 16,
        };
        out.extend_from_slice(&mode.to_le_bytes());
        out.extend_from_slice(&(self.began.min(LIMIT) as u32).to_le_bytes());
        out.extend_from_slice(member.name);
        out.extend_from_slice(&extra);
    }

    /// The directory and the end.
    pub fn finish(self) -> Vec<u8> {
        let (at, count, mut out) = (self.at, self.count, self.directory);
        let len = out.len() as u64;
        if count >= MANY || len >= LIMIT || at >= LIMIT {
            let end = at + len;
            out.extend_from_slice(b"PK\x06\x06");
            out.extend_from_slice(&44u64.to_le_bytes());
            out.extend_from_slice(&(3 << 8 | ZIP64).to_le_bytes());
            out.extend_from_slice(&ZIP64.to_le_bytes());
            out.extend_from_slice(&[0; 8]);
            for number in [count, count, len, at] {
                out.extend_from_slice(&number.to_le_bytes());
            }
            out.extend_from_slice(b"PK\x06\x07\0\0\0\0");
            out.extend_from_slice(&end.to_le_bytes());
            out.extend_from_slice(&1u32.to_le_bytes());
        }
        out.extend_from_slice(b"PK\x05\x06\0\0\0\0");
        for _ in 0..2 {
            out.extend_from_slice(&(count.min(MANY) as u16).to_le_bytes());
        }
        for number in [len, at] {
            out.extend_from_slice(&(number.min(LIMIT) as u32).to_le_bytes());
        }
        out.extend_from_slice(&[0; 2]);
        out
    }
}

/// The length of a zip file with these members.
pub fn length<'a>(members: impl Iterator<Item = Member<'a>>) -> u64 {
    let mut zip = Zip::default();
    for member in members {
        zip.begin(&member);
        zip.end(&member, 0);
    }
    let at = zip.at;
    at + zip.finish().len() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn member(name: &str, size: u64) -> Member<'_> {
        Member {
            name: name.as_bytes(),
            size,
            modified: 1_000_000_000,
            dos: (0x2b29, 0x0dc0),
        }
    }

    fn number(bytes: &[u8], at: usize, len: usize) -> u64 {
        bytes[at..at + len]
            .iter()
            .rev()
            .fold(0, |sum, byte| sum << 8 | u64::from(*byte))
    }

    #[test]
    fn the_length_is_that_of_what_is_written() {
        let members = [member("f/", 0), member("f/a", 3), member("f/你", 0)];
        let mut zip = Zip::default();
        let mut out = Vec::new();
        for (member, content) in members.iter().zip([&b""[..], b"abc", b""]) {
            out.extend(zip.begin(member));
            out.extend_from_slice(content);
            out.extend(zip.end(member, crc32fast::hash(content)));
        }
        out.extend(zip.finish());
        assert_eq!(length(members.into_iter()), out.len() as u64);
        assert_eq!(number(&out, out.len() - 22, 4), 0x0605_4b50);
        assert_eq!(number(&out, out.len() - 12, 2), 3);
    }

    /// Sizes and places of 4 GiB and more, without their bytes.
    #[test]
    fn what_needs_64_bits_has_them() {
        for size in [LIMIT - 1, LIMIT, LIMIT + 1, 6 << 30] {
            let (large, after) = (member("large", size), member("after", 1));
            let mut zip = Zip::default();
            let local = zip.begin(&large);
            let descriptor = zip.end(&large, 7);
            let is_large = size >= LIMIT;
            assert_eq!(descriptor.len(), if is_large { 24 } else { 16 });
            assert_eq!(number(&descriptor, 8, if is_large { 8 } else { 4 }), size);
            assert_eq!(number(&local, 4, 2), if is_large { 45 } else { 20 });
            let began = (local.len() + descriptor.len()) as u64 + size;
            zip.begin(&after);
            zip.end(&after, 8);
            let at = zip.at;
            let end = zip.finish();
            // The first record of the directory: its sizes, in 32 bits or in the extra field.
            let (name, extra) = (number(&end, 28, 2) as usize, number(&end, 30, 2) as usize);
            let sizes = 46 + name + 9;
            assert_eq!(number(&end, 24, 4), size.min(LIMIT));
            if is_large {
                assert_eq!(
                    (extra, number(&end, sizes, 2), number(&end, sizes + 4, 8)),
                    (29, 1, size)
                );
                assert_eq!(number(&end, sizes + 12, 8), size);
            } else {
                assert_eq!(extra, 9);
            }
            // The second: where it begins.
            let second = 46 + name + extra;
            assert_eq!(number(&end, second, 4), 0x0201_4b50);
            assert_eq!(number(&end, second + 42, 4), began.min(LIMIT));
            let (name, extra) = (
                number(&end, second + 28, 2) as usize,
                number(&end, second + 30, 2) as usize,
            );
            if began >= LIMIT {
                assert_eq!(number(&end, second + 46 + name + 9 + 4, 8), began);
            }
            // The end of 64 bits, its locator, the end.
            let tail = second + 46 + name + extra;
            let old = end.len() - 22;
            assert_eq!(number(&end, old, 4), 0x0605_4b50);
            assert_eq!(old - tail, if at >= LIMIT { 56 + 20 } else { 0 });
            if at >= LIMIT {
                assert_eq!(number(&end, tail, 4), 0x0606_4b50);
                assert_eq!((number(&end, tail + 32, 8), number(&end, tail + 48, 8)), (2, at));
                assert_eq!(number(&end, tail + 56 + 8, 8), at + tail as u64);
                assert_eq!(number(&end, old + 16, 4), LIMIT);
            }
            assert_eq!(length([large, after].into_iter()), at + end.len() as u64);
        }
    }

    #[test]
    fn more_than_65_534_members_are_counted_in_64_bits() {
        for (count, wide) in [(MANY - 1, false), (MANY, true)] {
            let mut zip = Zip::default();
            for _ in 0..count {
                zip.begin(&member("f/", 0));
                zip.end(&member("f/", 0), 0);
            }
            let len = zip.directory.len();
            let end = zip.finish();
            assert_eq!(end.len() - len, if wide { 56 + 20 + 22 } else { 22 });
            assert_eq!(number(&end, end.len() - 12, 2), count);
            if wide {
                assert_eq!(number(&end, len + 32, 8), count);
            }
        }
    }
}
