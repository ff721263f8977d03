//! 256 plain English words: one byte each, in check strings and code phrases.
//!
//! No two share their first three letters, so none is the beginning of another, and any two are at least three edits apart:
//! a slip of one letter is never another word. The order is part of the protocol.

/// The words, by the byte that each stands for.
pub const WORDS: [&str; 256] = [
    "acorn", "adult", "album", "alley", "almond", "amber", "anchor", "angle", "arch", "arrow", "aspen", "atlas",
    "attic", "autumn", "avocado", "badge", "balcony", "bamboo", "banjo", "basket", "beacon", "bench", "berry",
    "bicycle", "biscuit", "blossom", "bonfire", "bottle", "boulder", "bracelet", "breeze", "brick", "bubble",
    "buffalo", "butter", "cabin", "cactus", "camel", "canoe", "carpet", "castle", "cavern", "cedar", "cello", "chalk",
    "chimney", "cinema", "circus", "clover", "cobalt", "coffee", "copper", "cotton", "cousin", "coyote", "cradle",
    "cricket", "crystal", "cupboard", "curtain", "cushion", "cymbal", "daisy", "dancer", "debris", "delta", "denim",
    "desert", "diamond", "dolphin", "donkey", "doorway", "dragon", "drummer", "duckling", "dustpan", "echo", "eclipse",
    "elbow", "elephant", "emerald", "engine", "fabric", "farmer", "feather", "fender", "fiddle", "fiesta", "filter",
    "fjord", "flannel", "flute", "forest", "fossil", "freckle", "furnace", "galaxy", "garden", "gazebo", "geyser",
    "ginger", "giraffe", "glacier", "goblet", "gondola", "granite", "guitar", "gymnast", "harbor", "helmet", "hickory",
    "horizon", "hotel", "husky", "iceberg", "igloo", "indigo", "inlet", "iris", "island", "ivory", "jaguar", "jasmine",
    "jersey", "jigsaw", "journal", "juniper", "kayak", "kernel", "kidney", "kitchen", "kiwi", "knuckle", "koala",
    "ladder", "lagoon", "lantern", "lasso", "laundry", "lemon", "lettuce", "library", "lilac", "linen", "lizard",
    "lobster", "locket", "lyric", "magnet", "mammoth", "maple", "meadow", "mermaid", "mirror", "mitten", "monsoon",
    "morning", "muffin", "mustard", "napkin", "nectar", "needle", "nephew", "nickel", "nugget", "nutmeg", "oasis",
    "oatmeal", "ocean", "octopus", "olive", "onion", "opera", "orange", "orchid", "origami", "oval", "pajamas",
    "pancake", "parsley", "pasture", "peanut", "pelican", "pencil", "pigeon", "pilot", "pirate", "pony", "popcorn",
    "potato", "prairie", "pretzel", "pumpkin", "puzzle", "pyramid", "quarry", "quilt", "rabbit", "radish", "raisin",
    "recipe", "ribbon", "river", "rubber", "saffron", "sandal", "satchel", "scarf", "seagull", "shelter", "sketch",
    "slipper", "snow", "spider", "spruce", "stable", "stove", "sugar", "summit", "sunset", "swan", "syrup", "tadpole",
    "teapot", "temple", "thimble", "thunder", "toast", "topaz", "tornado", "trellis", "trumpet", "tulip", "tundra",
    "tuxedo", "twig", "typhoon", "unicorn", "vanilla", "vessel", "village", "vinegar", "volcano", "voyage", "vulture",
    "waffle", "walnut", "whistle", "willow", "wombat", "wool", "yacht", "yogurt", "zebra", "zenith", "zigzag",
];

/// The byte that a word in lower case stands for.
pub fn index_of(word: &str) -> Option<u8> {
    // The list is sorted.
    WORDS
        .binary_search(&word)
        .ok()
        .and_then(|index| u8::try_from(index).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_has_a_word_and_every_word_its_byte() {
        for (byte, word) in (0..=u8::MAX).zip(WORDS) {
            assert_eq!(index_of(word), Some(byte), "{word}");
        }
        assert_eq!(index_of(""), None);
        assert_eq!(index_of("ACORN"), None);
    }

    #[test]
    fn words_are_plain_sorted_and_hard_to_confuse() {
        assert!(WORDS.windows(2).all(|pair| pair[0] < pair[1]));
        for (i, a) in WORDS.iter().enumerate() {
            assert!(
                (4..=8).contains(&a.len()) && a.bytes().all(|b| b.is_ascii_lowercase()),
                "{a}"
            );
            for b in &WORDS[i + 1..] {
                assert_ne!(a[..3], b[..3], "{a} {b}");
                assert!(strsim::osa_distance(a, b) >= 3, "{a} {b}");
            }
        }
    }
}
