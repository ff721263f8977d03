//! Two ways to do what the kernels do: by an independent library, and by the kernels' own source as a program.

use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{ChaCha20Poly1305, Key, Nonce, Tag};
use sealway_cuda::device::{Launch, Messages, Span};

use super::emulator::{BUFFERS, Emulator};
use super::fake::{Kernels, Memory};

fn words(bytes: &[u8]) -> Vec<u32> {
    bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|&word| u32::from_le_bytes(word))
        .collect()
}

/// The meaning of the kernels, by the `chacha20poly1305` crate.
pub struct Model;

impl Model {
    /// Where a message is read and written, in pieces, its bytes, and 1 if it is opened.
    fn place(memory: &Memory, descs: Span, places: Span, index: usize) -> [usize; 4] {
        assert_eq!(descs.len, places.len * 8);
        let desc = words(&memory.get(descs)[index * 32..][..32]);
        [desc[0], desc[1], desc[2], desc[7] & 1].map(|word| word as usize)
    }

    fn message(memory: &mut Memory, messages: &Messages, index: usize, aads: Span, status: Span) {
        let desc = words(&memory.get(messages.descs)[index * 32..][..32]);
        let [src, dst, len, slot, n0, n1, n2, what] = desc[..] else {
            unreachable!()
        };
        let (src, dst, len) = (src as usize * 16, dst as usize * 16, len as usize);
        let text_end = len.next_multiple_of(16);
        let key = &memory.get(messages.keys)[slot as usize * 32..][..32];
        let cipher = ChaCha20Poly1305::new(&Key::try_from(key).unwrap());
        let nonce: Vec<u8> = [n0, n1, n2].iter().flat_map(|word| word.to_le_bytes()).collect();
        let nonce = Nonce::try_from(&nonce[..]).unwrap();
        let input = memory.get(messages.src);
        let mut aad = &[][..];
        if what >> 1 > 0 {
            let entry = words(&memory.get(aads)[(what as usize / 2 - 1) * 8..][..8]);
            aad = &input[entry[0] as usize * 16..][..entry[1] as usize];
        }
        let mut text = input[src..src + len].to_vec();
        let mut code = 1;
        let mut tail = vec![0; text_end - len];
        if what & 1 == 1 {
            let tag = Tag::try_from(&input[src + text_end..][..16]).unwrap();
            if cipher
                .decrypt_inout_detached(&nonce, aad, (&mut text[..]).into(), &tag)
                .is_err()
            {
                text.fill(0);
                code = 2;
            }
        } else {
            tail.extend(
                cipher
                    .encrypt_inout_detached(&nonce, aad, (&mut text[..]).into())
                    .unwrap(),
            );
        }
        text.extend(tail);
        memory.get_mut(messages.dst)[dst..dst + text.len()].copy_from_slice(&text);
        memory.get_mut(status)[index] = code;
    }
}

impl Kernels for Model {
    fn run(&mut self, launch: &Launch, memory: &mut Memory) {
        match launch {
            Launch::Lanes {
                count,
                messages,
                aad,
                status,
                ..
            } => {
                assert_eq!(
                    (messages.descs.len, status.len),
                    (*count as usize * 32, *count as usize)
                );
                for index in 0..*count as usize {
                    Self::message(memory, messages, index, *aad, *status);
                }
            }
            Launch::Parts { count, parts, sums, .. } => {
                let parts = words(memory.get(*parts));
                for part in parts.as_chunks::<4>().0.iter().take(*count as usize) {
                    // What a part did, for the end to find.
                    for (place, word) in [0, 1, 2].into_iter().zip(part) {
                        let at = part[3] as usize * 32 + place * 4;
                        memory.get_mut(*sums)[at..at + 4].copy_from_slice(&word.to_le_bytes());
                    }
                }
            }
            Launch::Ends {
                count,
                messages,
                parts,
                first_part,
                aad,
                status,
                sums,
            } => {
                let (parts, first) = (words(memory.get(*parts)), words(memory.get(*first_part)));
                for index in 0..*count as usize {
                    let len = words(&memory.get(messages.descs)[index * 32..][..32])[2] as usize;
                    let mut block = 0;
                    for part in first[index]..first[index + 1] {
                        let [desc, from, blocks, sum] = parts[part as usize * 4..][..4] else {
                            unreachable!()
                        };
                        assert_eq!((desc as usize, from), (index, block));
                        assert!(blocks == 256 || part + 1 == first[index + 1]);
                        let done = words(&memory.get(*sums)[sum as usize * 32..][..12]);
                        assert_eq!(done, [desc, from, blocks], "a part was not run");
                        block += blocks;
                    }
                    assert_eq!(block as usize, len.div_ceil(64));
                    Self::message(memory, messages, index, *aad, *status);
                }
            }
            Launch::Spread {
                count,
                descs,
                places,
                packets,
                src,
            } => {
                for index in 0..*count as usize {
                    let [from, _, len, what] = Self::place(memory, *descs, *places, index);
                    let at = words(&memory.get(*places)[index * 4..][..4])[0] as usize;
                    let packet = memory.get(*packets)[at..at + len + 16 * what].to_vec();
                    let src = &mut memory.get_mut(*src)[from * 16..];
                    src[..len].copy_from_slice(&packet[..len]);
                    src[len.next_multiple_of(16)..][..16 * what].copy_from_slice(&packet[len..]);
                }
            }
            Launch::Join {
                count,
                descs,
                places,
                dst,
                packets,
            } => {
                for index in 0..*count as usize {
                    let [_, to, len, what] = Self::place(memory, *descs, *places, index);
                    let at = words(&memory.get(*places)[index * 4..][..4])[0] as usize;
                    let dst = &memory.get(*dst)[to * 16..];
                    let tag = &dst[len.next_multiple_of(16)..][..16 * (1 - what)];
                    let packet = [&dst[..len], tag].concat();
                    memory.get_mut(*packets)[at..at + packet.len()].copy_from_slice(&packet);
                }
            }
            Launch::SetKeys { count, keys, updates } => {
                let updates = memory.get(*updates).to_vec();
                let mut slots = std::collections::HashSet::new();
                for update in updates.chunks(48).take(*count as usize) {
                    let slot = words(&update[..4])[0];
                    assert!(slots.insert(slot), "two keys for a slot at once");
                    memory.get_mut(*keys)[slot as usize * 32..][..32].copy_from_slice(&update[16..]);
                }
            }
        }
    }
}

/// The kernels' source, as a program.
impl Kernels for Emulator {
    fn run(&mut self, launch: &Launch, memory: &mut Memory) {
        let mut spans: [Option<Span>; BUFFERS] = [None; BUFFERS];
        if let Launch::Lanes { messages, .. } | Launch::Parts { messages, .. } | Launch::Ends { messages, .. } = launch
        {
            spans[0] = Some(messages.descs);
            spans[1] = Some(messages.src);
            spans[2] = Some(messages.dst);
            spans[3] = Some(messages.keys);
        }
        let (kernel, count) = match launch {
            Launch::Lanes {
                lanes,
                count,
                aad,
                status,
                ..
            } => {
                (spans[4], spans[5]) = (Some(*aad), Some(*status));
                (lanes.count(), *count)
            }
            Launch::Parts { count, parts, sums, .. } => {
                (spans[6], spans[8]) = (Some(*parts), Some(*sums));
                (64, *count)
            }
            Launch::Ends {
                count,
                parts,
                first_part,
                aad,
                status,
                sums,
                ..
            } => {
                (spans[4], spans[5]) = (Some(*aad), Some(*status));
                (spans[6], spans[7], spans[8]) = (Some(*parts), Some(*first_part), Some(*sums));
                (65, *count)
            }
            Launch::Spread {
                count,
                descs,
                places,
                packets,
                src,
            } => {
                // The emulator answers with what is in the place of outputs.
                spans[0] = Some(*descs);
                (spans[1], spans[2], spans[6]) = (Some(*packets), Some(*src), Some(*places));
                (66, *count)
            }
            Launch::Join {
                count,
                descs,
                places,
                dst,
                packets,
            } => {
                spans[0] = Some(*descs);
                (spans[1], spans[2], spans[6]) = (Some(*dst), Some(*packets), Some(*places));
                (67, *count)
            }
            Launch::SetKeys { count, keys, updates } => {
                (spans[3], spans[9]) = (Some(*keys), Some(*updates));
                (0, *count)
            }
        };
        let mut buffers = spans.map(|span| span.map_or_else(Vec::new, |span| memory.get(span).to_vec()));
        self.launch(kernel, count, &mut buffers);
        for (span, bytes) in spans.into_iter().zip(buffers) {
            if let Some(span) = span {
                memory.get_mut(span).copy_from_slice(&bytes);
            }
        }
    }
}
