//! By what ends know each other on a network, and what of it is announced.

use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

use crate::Error;

/// Most keys that an end is known by in one announcement.
pub const MAX_PAIRS: usize = 16;

/// Bytes of a tag.
const TAG: usize = 8;
/// Bytes of the random number that tags are made with.
const SALT: usize = 16;
/// How long tags hold, in seconds: who has recorded an announcement can find out with it who knows it for no longer.
pub(crate) const PERIOD: u64 = 12 * 3600;

/// The version of what is announced.
const VERSION: &str = "1";
const VERSION_KEY: &str = "txtvers";
const NUMBER_KEY: &str = "n";
const SALT_KEY: &str = "s";
const TAGS_KEY: &str = "t";

/// A secret that two ends have in common by their keys: [`sealway_drop::identity::Identity::pair_secret`].
pub type Pair = Zeroizing<[u8; 32]>;

/// By what ends know each other.
#[derive(Clone)]
pub enum Sign {
    /// The number of a code. It is announced as it is.
    Number(u32),
    /// Secrets of pairs, of which the first [`MAX_PAIRS`] count. What is announced is as long for one as for all, and looks like noise to anybody else.
    Pairs(Vec<Pair>),
}

/// What stands in an announcement.
pub(crate) type Text = Vec<(String, Vec<u8>)>;

/// One tag: what the owner of the same secret finds again.
fn tag(pair: &Pair, salt: &[u8], period: u64) -> [u8; TAG] {
    let mut hasher = blake3::Hasher::new_keyed(pair);
    hasher.update(b"sealway lan 1");
    hasher.update(salt);
    hasher.update(&period.to_le_bytes());
    let mut tag = [0; TAG];
    hasher.finalize_xof().fill(&mut tag);
    tag
}

impl Sign {
    /// What is announced at this time, in seconds since 1970.
    pub(crate) fn text(&self, now: u64) -> Result<Text, Error> {
        let mut text = vec![(VERSION_KEY.to_owned(), VERSION.into())];
        match self {
            Sign::Number(number) => text.push((NUMBER_KEY.to_owned(), number.to_string().into_bytes())),
            Sign::Pairs(pairs) => {
                let mut noise = [0; SALT + MAX_PAIRS * TAG];
                getrandom::fill(&mut noise).map_err(Error::Random)?;
                let (salt, tags) = noise.split_at_mut(SALT);
                for (pair, place) in pairs.iter().zip(tags.chunks_exact_mut(TAG)) {
                    place.copy_from_slice(&tag(pair, salt, now / PERIOD));
                }
                text.push((SALT_KEY.to_owned(), salt.to_vec()));
                text.push((TAGS_KEY.to_owned(), tags.to_vec()));
            }
        }
        Ok(text)
    }

    /// Whether this is what the announcement is for, at this time. Clocks may be up to [`PERIOD`] apart.
    pub(crate) fn is_meant<'a>(&self, now: u64, value: impl Fn(&str) -> Option<&'a [u8]>) -> bool {
        if value(VERSION_KEY) != Some(VERSION.as_bytes()) {
            return false;
        }
        match self {
            Sign::Number(number) => value(NUMBER_KEY) == Some(number.to_string().as_bytes()),
            Sign::Pairs(pairs) => {
                let (Some(salt), Some(tags)) = (value(SALT_KEY), value(TAGS_KEY)) else {
                    return false;
                };
                if salt.len() != SALT || tags.len() != MAX_PAIRS * TAG {
                    return false;
                }
                let now = now / PERIOD;
                let known = |found: &[u8]| {
                    pairs.iter().take(MAX_PAIRS).any(|pair| {
                        let mut periods = now.saturating_sub(1)..=now.saturating_add(1);
                        periods.any(|period| bool::from(found.ct_eq(&tag(pair, salt, period))))
                    })
                };
                tags.chunks_exact(TAG).any(known)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_800_000_000;

    fn pair(byte: u8) -> Pair {
        Zeroizing::new([byte; 32])
    }

    fn means(sign: &Sign, text: &Text, now: u64) -> bool {
        sign.is_meant(now, |key| {
            text.iter().find(|(name, _)| name == key).map(|(_, value)| &value[..])
        })
    }

    #[test]
    fn a_number_is_for_who_has_it() {
        let text = Sign::Number(7).text(NOW).unwrap();
        assert!(means(&Sign::Number(7), &text, NOW));
        for other in [Sign::Number(77), Sign::Number(0), Sign::Pairs(vec![pair(7)])] {
            assert!(!means(&other, &text, NOW));
        }
        // Another version, a number written otherwise.
        for (key, value) in [(0, "2"), (1, "07"), (1, "7 "), (1, "")] {
            let mut text = text.clone();
            text[key].1 = value.into();
            assert!(!means(&Sign::Number(7), &text, NOW), "{value}");
        }
    }

    #[test]
    fn tags_are_for_one_of_the_pairs_and_noise_to_others() {
        let mine = Sign::Pairs(vec![pair(1), pair(2)]);
        let text = mine.text(NOW).unwrap();
        for (other, known) in [
            (vec![pair(2)], true),
            (vec![pair(9), pair(1)], true),
            (vec![pair(3)], false),
            (vec![], false),
        ] {
            assert_eq!(means(&Sign::Pairs(other), &text, NOW), known);
        }
        assert!(!means(&Sign::Number(1), &text, NOW));
        // Nobody sees how many there are, or that it is the same end again.
        let again = mine.text(NOW).unwrap();
        assert!(text[2].1.len() == again[2].1.len() && text[1].1 != again[1].1);
        assert!(
            text[2]
                .1
                .chunks(TAG)
                .all(|tag| !again[2].1.chunks(TAG).any(|other| other == tag))
        );
        assert_eq!(Sign::Pairs(vec![]).text(NOW).unwrap()[2].1.len(), text[2].1.len());
        // All of it fits into what RFC 6763 section 6.2 recommends.
        assert!(
            text.iter()
                .map(|(key, value)| key.len() + value.len() + 2)
                .sum::<usize>()
                < 200
        );
    }

    #[test]
    fn tags_hold_for_a_while() {
        let mine = Sign::Pairs(vec![pair(1)]);
        let text = mine.text(NOW).unwrap();
        for (seconds, holds) in [(0, true), (PERIOD, true), (3 * PERIOD, false)] {
            assert_eq!(means(&mine, &text, NOW + seconds), holds, "{seconds}");
            assert_eq!(means(&mine, &text, NOW - seconds), holds, "-{seconds}");
        }
    }

    #[test]
    fn the_seventeenth_pair_is_not_known() {
        let many: Vec<Pair> = (0..=MAX_PAIRS as u8).map(pair).collect();
        let text = Sign::Pairs(many.clone()).text(NOW).unwrap();
        assert!(means(&Sign::Pairs(vec![many[MAX_PAIRS - 1].clone()]), &text, NOW));
        assert!(!means(&Sign::Pairs(vec![many[MAX_PAIRS].clone()]), &text, NOW));
    }

    #[test]
    fn what_is_not_of_the_right_length_is_for_nobody() {
        let mine = Sign::Pairs(vec![pair(1)]);
        let good = mine.text(NOW).unwrap();
        for (field, len) in [(1, 0), (1, SALT - 1), (1, 255), (2, 0), (2, TAG), (2, 255)] {
            let mut text = good.clone();
            text[field].1.resize(len, 0);
            assert!(!means(&mine, &text, NOW), "{field} {len}");
        }
    }
}
