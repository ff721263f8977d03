//! Every kernel over the grid of lengths against an independent library, on any machine: the source of the kernels as plain C++.

use chacha20poly1305::aead::{AeadInOut, KeyInit};
use chacha20poly1305::{ChaCha20Poly1305, Key, Nonce};

use crate::support::emulator::{BUFFERS, Emulator};

const DONE: u8 = 1;
const UNAUTHENTIC: u8 = 2;
const PART_BLOCKS: usize = 256;

/// The kernels by lanes a message; 64 stands for the two that share a message out.
const KERNELS: [u32; 6] = [1, 4, 8, 16, 32, 64];

/// Bytes that look random and are the same every time (SplitMix64).
struct Noise(u64);

impl Noise {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ self.0 >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() % bound as u64) as usize
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.next() as u8).collect()
    }
}

/// What a message looks like before it is sealed, or opened.
#[derive(Clone, Copy)]
struct Shape {
    len: usize,
    aad: usize,
}

/// What the text is made of decides the carries of the authenticator.
fn text(noise: &mut Noise, len: usize, index: usize) -> Vec<u8> {
    match index % 4 {
        0 => vec![0xff; len],
        1 => vec![0; len],
        _ => noise.bytes(len),
    }
}

/// Where a forgery is.
#[derive(Clone, Copy, PartialEq)]
enum Forged {
    No,
    Tag,
    Text,
    Aad,
}

fn words(values: &[usize]) -> Vec<u8> {
    values.iter().flat_map(|&value| (value as u32).to_le_bytes()).collect()
}

fn put_padded(arena: &mut Vec<u8>, bytes: &[u8], noise: &mut Noise) -> usize {
    let piece = arena.len() / 16;
    arena.extend_from_slice(bytes);
    // What stands behind the end must not matter.
    while !arena.len().is_multiple_of(16) {
        arena.push(noise.next() as u8);
    }
    piece
}

/// A launch, and what it must leave.
struct Launch {
    buffers: [Vec<u8>; BUFFERS],
    parts: usize,
    want: Vec<u8>,
    statuses: Vec<u8>,
}

fn launch(shapes: &[Shape], seed: u64) -> Launch {
    let mut noise = Noise(seed);
    let mut buffers: [Vec<u8>; BUFFERS] = Default::default();
    let (mut want, mut statuses) = (Vec::new(), Vec::new());
    let mut first_parts = vec![0];
    let mut parts = 0;
    for (index, shape) in shapes.iter().enumerate() {
        let (key, nonce) = (noise.bytes(32), noise.bytes(12));
        let aad = noise.bytes(shape.aad);
        let plain = text(&mut noise, shape.len, index);
        let mut sealed = plain.clone();
        let cipher = ChaCha20Poly1305::new(&Key::try_from(&key[..]).unwrap());
        let nonce_of = Nonce::try_from(&nonce[..]).unwrap();
        let tag = cipher
            .encrypt_inout_detached(&nonce_of, &aad, sealed.as_mut_slice().into())
            .unwrap();
        let opens = noise.below(2) == 1;
        let forged = match noise.below(6) {
            0 if opens => Forged::Tag,
            1 if opens && shape.len > 0 => Forged::Text,
            2 if opens && shape.aad > 0 => Forged::Aad,
            _ => Forged::No,
        };
        let [descs, src, _, keys, aads, ..] = &mut buffers;
        keys.extend_from_slice(&key);
        let mut what = usize::from(opens);
        if shape.aad > 0 {
            what |= (aads.len() / 8 + 1) << 1;
            let mut aad = aad.clone();
            if forged == Forged::Aad {
                aad[noise.below(shape.aad)] ^= 1 << noise.below(8);
            }
            let piece = put_padded(src, &aad, &mut noise);
            aads.extend_from_slice(&words(&[piece, aad.len()]));
        }
        let mut tag = tag.to_vec();
        let dst = want.len() / 16;
        let at = if opens {
            if forged == Forged::Tag {
                tag[noise.below(16)] ^= 1 << noise.below(8);
            }
            let mut text = sealed.clone();
            if forged == Forged::Text {
                text[noise.below(shape.len)] ^= 1 << noise.below(8);
            }
            let at = put_padded(src, &text, &mut noise);
            src.extend_from_slice(&tag);
            at
        } else {
            put_padded(src, &plain, &mut noise)
        };
        let mut output = match (opens, forged) {
            (false, _) => sealed,
            (true, Forged::No) => plain,
            (true, _) => vec![0; shape.len],
        };
        output.resize(shape.len.next_multiple_of(16), 0);
        want.extend_from_slice(&output);
        if !opens {
            want.extend_from_slice(&tag);
        }
        statuses.push(if forged == Forged::No { DONE } else { UNAUTHENTIC });
        descs.extend_from_slice(&words(&[at, dst, shape.len, index]));
        descs.extend_from_slice(&nonce);
        descs.extend_from_slice(&words(&[what]));
        let blocks = shape.len.div_ceil(64);
        for first in (0..blocks.max(1)).step_by(PART_BLOCKS) {
            let count = PART_BLOCKS.min(blocks - first);
            buffers[6].extend_from_slice(&words(&[index, first, count, parts]));
            parts += 1;
        }
        first_parts.push(parts);
    }
    // Every byte of the output is to be written; statuses are zero before.
    buffers[2] = vec![0xaa; want.len()];
    buffers[5] = vec![0; shapes.len()];
    buffers[7] = words(&first_parts);
    buffers[8] = vec![0; 32 * parts];
    Launch {
        buffers,
        parts,
        want,
        statuses,
    }
}

fn check(emulator: &mut Emulator, kernel: u32, shapes: &[Shape], seed: u64) {
    let mut launch = launch(shapes, seed);
    let buffers = &mut launch.buffers;
    if kernel == 64 {
        emulator.launch(64, launch.parts as u32, buffers);
        emulator.launch(65, shapes.len() as u32, buffers);
    } else {
        emulator.launch(kernel, shapes.len() as u32, buffers);
    }
    let wrong = |index: usize| {
        format!(
            "kernel {kernel}, seed {seed}, message {index} of {} bytes",
            shapes[index].len
        )
    };
    for (index, (got, want)) in buffers[5].iter().zip(&launch.statuses).enumerate() {
        assert!(got == want, "status {got} and not {want}: {}", wrong(index));
    }
    let mut at = 0;
    for index in 0..shapes.len() {
        let opens = buffers[0][32 * index + 28] & 1 == 1;
        let len = shapes[index].len.next_multiple_of(16) + if opens { 0 } else { 16 };
        assert!(
            buffers[2][at..][..len] == launch.want[at..][..len],
            "output: {}",
            wrong(index)
        );
        at += len;
    }
    assert_eq!(at, buffers[2].len());
}

fn plain(len: usize) -> Shape {
    Shape { len, aad: 0 }
}

#[test]
fn every_length_to_1100() {
    let Some(mut emulator) = Emulator::start() else { return };
    let shapes: Vec<_> = (0..=1100).map(plain).collect();
    for kernel in KERNELS {
        for seed in 0..3 {
            check(&mut emulator, kernel, &shapes, seed);
        }
    }
}

#[test]
fn every_length_of_associated_data_to_70() {
    let Some(mut emulator) = Emulator::start() else { return };
    let shapes: Vec<_> = (0..=70)
        .flat_map(|aad| [0, 1, 16, 63, 64, 65, 200, 1000].map(|len| Shape { len, aad }))
        .collect();
    for kernel in KERNELS {
        check(&mut emulator, kernel, &shapes, 7);
    }
}

#[test]
fn long_messages() {
    let Some(mut emulator) = Emulator::start() else { return };
    // Around every number of blocks at which a kernel takes a round or a part more.
    let around = |blocks: usize| [64 * blocks - 1, 64 * blocks, 64 * blocks + 1, 64 * blocks + 49];
    let mut lens: Vec<_> = [30, 31, 32, 62, 63, 64, 126, 128, 255, 256, 257, 511, 512, 513, 1024]
        .into_iter()
        .flat_map(around)
        .collect();
    lens.extend([16_384, 65_535, 65_536, 65_537, (1 << 20) + 1]);
    let shapes: Vec<_> = lens
        .into_iter()
        .enumerate()
        .map(|(i, len)| Shape {
            len,
            aad: if i % 5 == 0 { i } else { 0 },
        })
        .collect();
    for kernel in KERNELS {
        check(&mut emulator, kernel, &shapes, 11);
    }
}

/// As many parts as lanes, one less, one more, and twice as many.
#[test]
fn messages_of_many_parts() {
    let Some(mut emulator) = Emulator::start() else { return };
    let part = 64 * PART_BLOCKS;
    let shapes: Vec<_> = [31, 32, 33, 64, 65]
        .into_iter()
        .flat_map(|parts| [parts * part - 1, parts * part, parts * part + 17])
        .map(plain)
        .collect();
    for seed in 0..2 {
        check(&mut emulator, 64, &shapes, seed);
    }
}

#[test]
fn every_number_of_messages_in_a_warp() {
    let Some(mut emulator) = Emulator::start() else { return };
    let mut noise = Noise(3);
    for kernel in KERNELS {
        for count in (1..=33).chain([63, 64, 65, 200]) {
            let shapes: Vec<_> = (0..count).map(|_| plain(noise.below(300))).collect();
            check(&mut emulator, kernel, &shapes, count as u64);
        }
    }
}

#[test]
fn keys_are_set_and_cleared() {
    let Some(mut emulator) = Emulator::start() else { return };
    let mut buffers: [Vec<u8>; BUFFERS] = Default::default();
    buffers[3] = vec![0x11; 32 * 5];
    for (slot, key) in [(3, 0x77), (0, 0x22), (4, 0)] {
        buffers[9].extend_from_slice(&words(&[slot, 0, 0, 0]));
        buffers[9].extend_from_slice(&[key; 32]);
    }
    emulator.launch(0, 3, &mut buffers);
    let want = [0x22, 0x11, 0x11, 0x77, 0].map(|key| [key; 32]).concat();
    assert!(buffers[3] == want);
}

/// Sums at the edge of the modulus, which no message under an honest key reaches: RFC 8439 appendix A.3, vectors 7 to 11, and others
/// made for the place where a number is reduced or not.
#[test]
fn sums_around_the_modulus() {
    let Some(mut emulator) = Emulator::start() else { return };
    // Numbers of 128 bits in little-endian words of 64: r, s, pieces, tag.
    type Wide = [u64; 2];
    const ONES: Wide = [u64::MAX; 2];
    let vectors: [(Wide, Wide, Vec<Wide>, Wide); 8] = [
        ([2, 0], [0, 0], vec![ONES], [3, 0]),
        ([2, 0], ONES, vec![[2, 0]], [3, 0]),
        ([1, 0], [0, 0], vec![ONES, [u64::MAX - 15, u64::MAX], [0x11, 0]], [5, 0]),
        (
            [1, 0],
            [0, 0],
            vec![
                ONES,
                [0xfefe_fefe_fefe_fefb, 0xfefe_fefe_fefe_fefe],
                [0x0101_0101_0101_0101; 2],
            ],
            [0, 0],
        ),
        ([2, 0], [0, 0], vec![[u64::MAX - 2, u64::MAX]], [u64::MAX - 5, u64::MAX]),
        // r = 1: three pieces make 3 * 2^128 more than their sum. 2^130 - 5 is 0; one less stays; the last number below 2^130 is 4.
        ([1, 0], [0, 0], vec![[u64::MAX - 4, u64::MAX], [0, 0], [0, 0]], [0, 0]),
        (
            [1, 0],
            [0, 0],
            vec![[u64::MAX - 5, u64::MAX], [0, 0], [0, 0]],
            [u64::MAX - 5, u64::MAX],
        ),
        ([1, 0], [0, 0], vec![ONES, [0, 0], [0, 0]], [4, 0]),
    ];
    for (r, s, pieces, want) in vectors {
        let bytes =
            |numbers: &[Wide]| -> Vec<u8> { numbers.iter().flatten().flat_map(|word| word.to_le_bytes()).collect() };
        for kernel in [128, 129] {
            let mut buffers: [Vec<u8>; BUFFERS] = Default::default();
            buffers[1] = bytes(&pieces);
            buffers[2] = vec![0xaa; 16];
            buffers[3] = bytes(&[r, s]);
            emulator.launch(kernel, pieces.len() as u32, &mut buffers);
            assert!(
                buffers[2] == bytes(&[want]),
                "way {kernel}, r {r:x?}, pieces {pieces:x?}: {:x?}",
                buffers[2]
            );
        }
    }
}
