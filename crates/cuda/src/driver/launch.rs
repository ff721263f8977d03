//! Kernels by name, and what they are called with.

use std::ffi::c_void;

use crate::Error;
use crate::device::{Lanes, Launch, Messages, Span};

use super::Driver;

/// Kernels, by their place in [`Driver::functions`].
pub(super) const FUNCTIONS: [&str; 10] = [
    "sealway_lanes1",
    "sealway_lanes4",
    "sealway_lanes8",
    "sealway_lanes16",
    "sealway_lanes32",
    "sealway_parts",
    "sealway_ends",
    "sealway_set_keys",
    "sealway_spread",
    "sealway_join",
];

pub(super) const fn function_of(launch: &Launch) -> usize {
    match launch {
        Launch::Lanes { lanes, .. } => match lanes {
            Lanes::One => 0,
            Lanes::Four => 1,
            Lanes::Eight => 2,
            Lanes::Sixteen => 3,
            Lanes::Warp => 4,
        },
        Launch::Parts { .. } => 5,
        Launch::Ends { .. } => 6,
        Launch::SetKeys { .. } => 7,
        Launch::Spread { .. } => 8,
        Launch::Join { .. } => 9,
    }
}

const MOST_ARGUMENTS: usize = 10;

/// What a kernel is called with: addresses, and a count among them.
pub(super) struct Arguments {
    words: [u64; MOST_ARGUMENTS],
    count: usize,
}

impl Arguments {
    /// In the order of the parameters in `kernels/kernels.cu`.
    pub(super) fn of(driver: &Driver, launch: &Launch) -> Result<Self, Error> {
        let mut arguments = Arguments {
            words: [0; MOST_ARGUMENTS],
            count: 0,
        };
        let mut push = |word: u64| {
            if let Some(place) = arguments.words.get_mut(arguments.count) {
                *place = word;
            }
            arguments.count += 1;
        };
        let at = |span: &Span| driver.address(*span);
        match launch {
            Launch::Lanes {
                count,
                messages,
                aad,
                status,
                ..
            } => {
                push(at(&messages.descs)?);
                push(u64::from(*count));
                for span in [&messages.src, &messages.dst, &messages.keys, aad, status] {
                    push(at(span)?);
                }
            }
            Launch::Parts {
                count,
                messages,
                parts,
                sums,
            } => {
                push(at(&messages.descs)?);
                push(at(parts)?);
                push(u64::from(*count));
                for span in [&messages.src, &messages.dst, &messages.keys, sums] {
                    push(at(span)?);
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
                push(at(&messages.descs)?);
                push(at(parts)?);
                push(u64::from(*count));
                let Messages { src, dst, keys, .. } = messages;
                for span in [first_part, src, dst, keys, aad, status, sums] {
                    push(at(span)?);
                }
            }
            Launch::Spread {
                count,
                descs,
                places,
                packets: first,
                src: second,
            }
            | Launch::Join {
                count,
                descs,
                places,
                dst: first,
                packets: second,
            } => {
                push(at(descs)?);
                push(at(places)?);
                push(u64::from(*count));
                push(at(first)?);
                push(at(second)?);
            }
            Launch::SetKeys { count, keys, updates } => {
                push(at(keys)?);
                push(at(updates)?);
                push(u64::from(*count));
            }
        }
        Ok(arguments)
    }

    /// Where they stand, as the driver wants them: good as long as this is not moved.
    pub(super) fn pointers(&mut self) -> Vec<*mut c_void> {
        self.words[..self.count]
            .iter_mut()
            .map(|word| (&raw mut *word).cast())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_are_there_with_as_many_parameters() {
        // Those that `Arguments::of` pushes.
        let counts = [7, 7, 7, 7, 7, 7, MOST_ARGUMENTS, 3, 5, 5];
        for (name, count) in FUNCTIONS.into_iter().zip(counts) {
            let entry = super::super::PTX
                .split(".visible .entry ")
                .find(|entry| entry.starts_with(&format!("{name}(")))
                .unwrap_or_else(|| panic!("no {name}"));
            let list = entry.split(')').next().unwrap();
            assert_eq!(list.matches(".param").count(), count, "{name}");
        }
    }
}
