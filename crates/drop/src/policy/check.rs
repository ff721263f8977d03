//! What becomes of the check words.

use std::sync::Mutex;

use crate::lock;

/// What becomes of the check words of a session.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Check {
    /// They are not needed: a code or a key says who the other end is.
    Proved,
    /// Nothing says who it is, and nobody is asked: it is on this machine.
    Local,
    /// Nothing says who it is, and nobody is asked: that was wanted.
    Shown,
    /// A person says whether they are the same at both ends, before anything else goes on. No answer is no.
    Asked,
}

impl Check {
    /// Whether something proved who the other end is.
    pub const fn is_proved(self) -> bool {
        matches!(self, Check::Proved)
    }

    /// Whether a person is shown the words, with what it means if they differ.
    pub const fn is_shown(self) -> bool {
        matches!(self, Check::Shown | Check::Asked)
    }
}

/// Ends that come one after the other or again, such as those of a share: a person is asked about each key once.
#[derive(Debug)]
pub struct Confirmed {
    check: Check,
    /// Keys of the ends about which somebody has said yes.
    keys: Mutex<Vec<[u8; 32]>>,
}

impl Confirmed {
    /// Nobody has been asked yet; `check` is for ends that come for the first time.
    pub fn new(check: Check) -> Self {
        Self {
            check,
            keys: Mutex::default(),
        }
    }

    /// What becomes of the words of an end with this key; `None` if it came by a code.
    pub fn check(&self, key: Option<[u8; 32]>) -> Check {
        match key {
            Some(key) if self.check == Check::Asked && lock(&self.keys).contains(&key) => Check::Proved,
            _ => self.check,
        }
    }

    /// The end with this key may go on: if a person was asked, they have said yes.
    pub fn passed(&self, key: Option<[u8; 32]>) {
        let mut keys = lock(&self.keys);
        if let Some(key) = key.filter(|key| self.check == Check::Asked && !keys.contains(key)) {
            keys.push(key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_shown_where_nothing_else_says_who_it_is_elsewhere() {
        for (check, proved, shown) in [
            (Check::Proved, true, false),
            (Check::Local, false, false),
            (Check::Shown, false, true),
            (Check::Asked, false, true),
        ] {
            assert_eq!((check.is_proved(), check.is_shown()), (proved, shown), "{check:?}");
        }
    }

    #[test]
    fn a_person_is_asked_about_each_key_once() {
        let confirmed = Confirmed::new(Check::Asked);
        let (known, unknown) = (Some([1; 32]), Some([2; 32]));
        assert_eq!(confirmed.check(known), Check::Asked);
        confirmed.passed(known);
        assert_eq!(confirmed.check(known), Check::Proved, "it comes again");
        assert_eq!(confirmed.check(unknown), Check::Asked, "another one");
        confirmed.passed(None);
        assert_eq!(confirmed.check(None), Check::Asked, "no key, nothing to know it by");
        confirmed.passed(known);
        assert_eq!(lock(&confirmed.keys).len(), 1);
    }

    #[test]
    fn who_was_not_asked_about_is_not_vouched_for() {
        for check in [Check::Proved, Check::Local, Check::Shown] {
            let confirmed = Confirmed::new(check);
            confirmed.passed(Some([1; 32]));
            assert_eq!(confirmed.check(Some([1; 32])), check);
        }
    }
}
