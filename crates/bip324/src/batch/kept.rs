//! Costs that were measured before.

use std::fmt;

use super::costs::{Costs, NAME};

/// Most entries. What was set first goes first.
const ENTRIES: usize = 32;

/// Bytes of a setting at most.
const SETTING: usize = 512;

/// Between costs and what they are of.
const OF: &str = " of ";

/// Costs by the setting they were measured in: the text of a file that a program keeps, so that it need not measure at every
/// start.
///
/// A setting is any text that changes when costs may: [`Costs`] says what belongs into it. It is kept on one line, white space
/// and what cannot be printed as single spaces, and cut at 512 bytes. At most 32 settings are kept.
///
/// ```
/// use sealway_bip324::batch::{Costs, KeptCosts};
///
/// let mut kept = KeptCosts::read("");
/// let costs: Costs = "sealway-costs/1 cpu 0 90000 450 thread 8000000 20000 120 executor 15000000 1500 40".parse()?;
/// kept.set("this processor, that device", costs);
/// let again = KeptCosts::read(&kept.to_string());
/// assert_eq!(again.get("this processor, that device"), Some(costs));
/// # Ok::<(), sealway_bip324::batch::CostsError>(())
/// ```
#[derive(Clone, Debug, Default, Eq, PartialEq)]
pub struct KeptCosts {
    /// What was set last is last.
    entries: Vec<(String, Costs)>,
}

impl KeptCosts {
    /// Bytes that a file of costs has at most; what is displayed has fewer.
    pub const FILE_MAX: usize = 64 * 1024;

    /// Reads the bytes of a file; `None` if it is a file of something else, which is to be left alone. An empty file holds no
    /// costs.
    ///
    /// Who can write the file can make batches slow; nothing else depends on it.
    pub fn of_file(bytes: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(bytes).ok()?;
        let ours = bytes.len() <= Self::FILE_MAX && (text.is_empty() || text.starts_with(NAME));
        ours.then(|| Self::read(text))
    }

    /// Reads what was displayed. Lines that are none are left out: they are of another version, or damaged, and what they were
    /// about is measured again.
    pub fn read(text: &str) -> Self {
        let mut kept = KeptCosts::default();
        for line in text.lines() {
            if let Some((costs, setting)) = line.split_once(OF)
                && let Ok(costs) = costs.parse()
            {
                kept.set(setting, costs);
            }
        }
        kept
    }

    /// The costs in a setting.
    pub fn get(&self, setting: &str) -> Option<Costs> {
        let setting = on_a_line(setting);
        let (_, costs) = self.entries.iter().find(|(known, _)| *known == setting)?;
        Some(*costs)
    }

    /// Keeps costs, in place of those that the setting had.
    pub fn set(&mut self, setting: &str, costs: Costs) {
        let setting = on_a_line(setting);
        self.entries.retain(|(known, _)| *known != setting);
        if self.entries.len() >= ENTRIES {
            self.entries.remove(0);
        }
        self.entries.push((setting, costs));
    }
}

impl fmt::Display for KeptCosts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (setting, costs) in &self.entries {
            writeln!(f, "{costs}{OF}{setting}")?;
        }
        Ok(())
    }
}

fn on_a_line(setting: &str) -> String {
    let separates = |c: char| c.is_whitespace() || c.is_control();
    let mut line = String::new();
    for word in setting.split(separates).filter(|word| !word.is_empty()) {
        if !line.is_empty() {
            line.push(' ');
        }
        line.push_str(word);
        if line.len() > SETTING {
            break;
        }
    }
    while line.len() > SETTING {
        line.pop();
    }
    line.truncate(line.trim_end().len());
    line
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::costs::Line;
    use super::*;

    fn costs(job: u64) -> Costs {
        let cpu = Line { fixed: 0, job, byte: 1 };
        Costs {
            cpu,
            ..Costs::default()
        }
    }

    #[test]
    fn the_last_of_a_setting_counts() {
        let mut kept = KeptCosts::default();
        kept.set("a  b\n", costs(1));
        kept.set("c", costs(2));
        kept.set(" a\tb", costs(3));
        assert_eq!((kept.get("a b"), kept.get("c")), (Some(costs(3)), Some(costs(2))));
        assert_eq!((kept.get("a"), kept.get("")), (None, None));
        assert_eq!(kept.to_string().lines().count(), 2);
    }

    #[test]
    fn no_more_than_there_is_room_for() {
        let mut kept = KeptCosts::default();
        for n in 0..ENTRIES as u64 + 2 {
            kept.set(&n.to_string(), costs(n));
        }
        assert_eq!((kept.get("1"), kept.get("2")), (None, Some(costs(2))));
        assert_eq!(kept.to_string().lines().count(), ENTRIES);
        kept.set(&"ö ".repeat(5000), costs(7));
        let text = kept.to_string();
        assert!(text.len() < ENTRIES * (SETTING + 300), "{}", text.len());
        assert_eq!(KeptCosts::read(&text), kept);
        assert_eq!(kept.get(&"ö ".repeat(6000)), Some(costs(7)), "what is cut is cut alike");
    }

    #[test]
    fn what_is_no_line_is_left_out() {
        let mut kept = KeptCosts::default();
        kept.set("x of y", costs(1));
        let line = kept.to_string();
        let text = format!("\n# a word\nsealway-costs/9 cpu 1 of x\n{line}{}\0", &line[..30]);
        assert_eq!(KeptCosts::read(&text), kept);
        assert_eq!(kept.get("x of y"), Some(costs(1)));
    }

    proptest! {
        #[test]
        fn any_text_is_read(text in "(sealway-costs/1 cpu [0-9 ]{0,9}|of | |\n|[^a]){0,40}", setting in ".{0,600}") {
            let mut kept = KeptCosts::read(&text);
            kept.set(&setting, costs(5));
            let again = KeptCosts::read(&kept.to_string());
            prop_assert_eq!(again.get(&setting), Some(costs(5)));
            prop_assert_eq!(again, kept);
        }
    }
}
