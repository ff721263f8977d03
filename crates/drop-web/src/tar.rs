//! Tar files, written from front to back, as GNU tar writes them: names of any bytes and any length, sizes of any number.

/// The size of a block.
const BLOCK: usize = 512;
/// The longest name in a header.
const NAME: usize = 100;
/// The first size that eleven octal digits do not hold.
const OCTAL: u64 = 1 << 33;

/// Two blocks of zeros are the end.
pub const END: [u8; 2 * BLOCK] = [0; 2 * BLOCK];

/// What stands before the content of a file or a folder. A folder's name ends with a slash.
pub fn begin(name: &[u8], size: u64, modified: i64) -> Vec<u8> {
    let mut out = Vec::with_capacity(BLOCK);
    if name.len() > NAME {
        // The name as the content of an entry of its own, with a zero behind it.
        let len = name.len() as u64 + 1;
        out.extend_from_slice(&header(b"././@LongLink", b'L', len, 0));
        out.extend_from_slice(name);
        out.resize(out.len() + 1 + padding(len), 0);
    }
    let kind = if name.ends_with(b"/") { b'5' } else { b'0' };
    out.extend_from_slice(&header(name, kind, size, modified));
    out
}

/// How many zeros follow content of so many bytes.
pub fn padding(size: u64) -> usize {
    (size.wrapping_neg() % BLOCK as u64) as usize
}

/// The length of a tar file with these names and sizes.
pub fn length<'a>(members: impl Iterator<Item = (&'a [u8], u64)>) -> u64 {
    let of = |(name, size): (&[u8], u64)| begin(name, size, 0).len() as u64 + size + padding(size) as u64;
    members.map(of).sum::<u64>() + END.len() as u64
}

fn header(name: &[u8], kind: u8, size: u64, modified: i64) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    let mut put = |at: usize, bytes: &[u8]| {
        for (to, from) in block.iter_mut().skip(at).zip(bytes) {
            *to = *from;
        }
    };
    put(0, name.get(..NAME).unwrap_or(name));
    put(100, if kind == b'5' { b"0000755\0" } else { b"0000644\0" });
    put(108, b"0000000\0");
    put(116, b"0000000\0");
    match size < OCTAL {
        true => put(124, format!("{size:011o}\0").as_bytes()),
        // In base 256, with the highest bit set.
        false => {
            put(124, &[0x80]);
            put(128, &size.to_be_bytes());
        }
    }
    let modified = u64::try_from(modified).unwrap_or(0).min(OCTAL - 1);
    put(136, format!("{modified:011o}\0").as_bytes());
    put(148, b"        ");
    put(156, &[kind]);
    put(257, b"ustar  \0");
    let sum: u32 = block.iter().map(|byte| u32::from(*byte)).sum();
    for (to, from) in block.iter_mut().skip(148).zip(format!("{sum:06o}\0 ").bytes()) {
        *to = from;
    }
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_say_names_and_sizes() {
        let plain = begin(b"a", 5, 1_000_000_000);
        assert_eq!(plain.len(), BLOCK);
        assert_eq!((&plain[124..136], plain[156]), (&b"00000000005\0"[..], b'0'));
        assert_eq!(&plain[136..148], b"07346545000\0");
        let large = begin(b"a", 6 << 33, -1);
        assert_eq!(
            (&large[124..128], &large[128..136]),
            (&[0x80, 0, 0, 0][..], &(6u64 << 33).to_be_bytes()[..])
        );
        assert_eq!(&large[136..148], b"00000000000\0");
        let long = begin(&[b'x'; 101], 0, 0);
        assert_eq!((long.len(), long[156]), (3 * BLOCK, b'L'));
        assert_eq!(begin(b"f/", 0, 0)[156], b'5');
    }

    #[test]
    fn content_is_padded_to_blocks() {
        for (size, zeros) in [(0, 0), (1, 511), (511, 1), (512, 0), (513, 511)] {
            assert_eq!(padding(size), zeros);
        }
        assert_eq!(length([(&b"a"[..], 513)].into_iter()), 512 + 1024 + 1024);
    }
}
