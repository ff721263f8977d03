//! Masking (RFC 6455 section 5.3).

/// Masks or unmasks payload in place. `offset` is where `bytes` begins within the payload of its frame.
pub fn mask(bytes: &mut [u8], key: [u8; 4], offset: usize) {
    // The key is turned so that it fits the first byte here, and widened; the loop over whole words is one the compiler
    // makes vectors of.
    let mut turned = key;
    turned.rotate_left(offset % 4);
    let word = u32::from_ne_bytes(turned);
    let wide = u64::from(word) << 32 | u64::from(word);
    let mut words = bytes.chunks_exact_mut(8);
    for chunk in &mut words {
        let mut eight = [0; 8];
        eight.copy_from_slice(chunk);
        chunk.copy_from_slice(&(u64::from_ne_bytes(eight) ^ wide).to_ne_bytes());
    }
    for (byte, key) in words.into_remainder().iter_mut().zip(turned.iter().cycle()) {
        *byte ^= key;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agrees_with_the_definition_at_every_offset_and_length() {
        let key = [1, 2, 4, 8];
        for offset in 0..9 {
            for len in 0..70 {
                let plain: Vec<u8> = (0..len).map(|i| (i as u8).wrapping_mul(37)).collect();
                let mut got = plain.clone();
                mask(&mut got, key, offset);
                let want: Vec<u8> = plain
                    .iter()
                    .enumerate()
                    .map(|(i, b)| b ^ key[(offset + i) % 4])
                    .collect();
                assert_eq!(got, want, "{offset} {len}");
            }
        }
    }
}
