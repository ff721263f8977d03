//! One file, exercised at random, and compared with what it should hold after every look. `SEALWAY_EXERCISE` says how many
//! operations, `SEALWAY_EXERCISE_SEED` which ones.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt;

use super::Writing;

/// Longest file.
const MOST: u64 = 3 << 20;

/// Numbers that only look random (xorshift).
pub(super) struct Numbers(u64);

impl Numbers {
    pub(super) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn below(&mut self, most: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % most.max(1)
    }
}

pub(super) fn number(name: &str, otherwise: u64) -> u64 {
    std::env::var(name).map_or(otherwise, |text| text.parse().unwrap())
}

struct Exercise<'a> {
    w: &'a Writing,
    files: Vec<File>,
    model: Vec<u8>,
}

impl Exercise<'_> {
    fn step(&mut self, numbers: &mut Numbers, round: u64) {
        let which = numbers.below(self.files.len() as u64) as usize;
        let offset = numbers.below(MOST);
        // Mostly short, sometimes longer than one message.
        let len = match numbers.below(8) {
            0 => numbers.below(MOST / 2),
            1 | 2 => numbers.below(100_000),
            _ => numbers.below(5_000),
        };
        let len = len.min(MOST - offset);
        match numbers.below(16) {
            0..=5 => {
                let data: Vec<u8> = (0..len).map(|at| (at ^ round) as u8).collect();
                self.files[which].write_all_at(&data, offset).unwrap();
                let end = (offset + len) as usize;
                if len > 0 && end > self.model.len() {
                    self.model.resize(end, 0);
                }
                self.model[offset as usize..][..len as usize * usize::from(len > 0)].copy_from_slice(&data);
            }
            6..=11 => self.read(which, offset, len),
            12 => {
                let size = numbers.below(MOST);
                self.files[which].set_len(size).unwrap();
                self.model.resize(size as usize, 0);
            }
            13 => match numbers.below(3) {
                0 => self.files[which].sync_all().unwrap(),
                1 => self.files[which].sync_data().unwrap(),
                _ => assert_eq!(self.files[which].metadata().unwrap().len(), self.model.len() as u64),
            },
            14 => self.files[which] = open(self.w),
            _ if round.is_multiple_of(8) => {
                // As the owner has it.
                self.files[which].sync_all().unwrap();
                self.files[1 - which].sync_all().unwrap();
                let there = std::fs::read(self.w.there("file")).unwrap();
                assert!(there == self.model, "the owner's file, at {round}");
            }
            _ => assert_eq!(
                std::fs::metadata(self.w.at("file")).unwrap().len(),
                self.model.len() as u64
            ),
        }
    }

    fn read(&self, which: usize, offset: u64, len: u64) {
        let mut data = vec![0xee; len as usize];
        let mut have = 0;
        while have < data.len() {
            match self.files[which]
                .read_at(&mut data[have..], offset + have as u64)
                .unwrap()
            {
                0 => break,
                read => have += read,
            }
        }
        let from = (offset as usize).min(self.model.len());
        let due = &self.model[from..(from + len as usize).min(self.model.len())];
        assert_eq!(have, due.len(), "the end of the file");
        if data[..have] != *due {
            let at = data.iter().zip(due).position(|(one, other)| one != other);
            panic!("another content at {offset}+{at:?} of {len}");
        }
    }
}

fn open(w: &Writing) -> File {
    OpenOptions::new().read(true).write(true).open(w.at("file")).unwrap()
}

#[test]
fn a_file_holds_what_was_written_to_it_last() {
    let Some(w) = Writing::start() else { return };
    let seed = number("SEALWAY_EXERCISE_SEED", 1);
    let mut numbers = Numbers::new(seed);
    File::create(w.at("file")).unwrap();
    let mut exercise = Exercise {
        files: vec![open(&w), open(&w)],
        w: &w,
        model: Vec::new(),
    };
    for round in 0..number("SEALWAY_EXERCISE", 1_500) {
        exercise.step(&mut numbers, round);
    }
    exercise.read(0, 0, MOST);
}
