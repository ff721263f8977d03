//! Names and passwords of those who may use an inbound.

use sealway_v2ray::same_secret;
use sha2::{Digest, Sha256};

use crate::settings::Account;

/// Digests of a name and of a password: not even their lengths show in the time that a comparison takes.
type Digests = [[u8; 32]; 2];

/// Who may use an inbound.
pub(super) struct Accounts(Vec<Digests>);

fn digests(user: &[u8], pass: &[u8]) -> Digests {
    [user, pass].map(|secret| Sha256::digest(secret).into())
}

impl Accounts {
    pub(super) fn new(accounts: &[Account]) -> Self {
        let digests = |account: &Account| digests(account.user.as_bytes(), account.pass.as_bytes());
        Accounts(accounts.iter().map(digests).collect())
    }

    /// Anyone may.
    pub(super) fn are_none(&self) -> bool {
        self.0.is_empty()
    }

    /// True if one of the accounts has this name and password. Takes the same time whichever differs, and wherever.
    pub(super) fn know(&self, user: &[u8], pass: &[u8]) -> bool {
        let asked = digests(user, pass);
        let all = self.0.iter();
        all.fold(false, |known, account| {
            known | same_secret(account.as_flattened(), asked.as_flattened())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_and_password_belong_together() {
        let account = |user: &str, pass: &str| Account {
            user: user.into(),
            pass: pass.into(),
        };
        let accounts = Accounts::new(&[account("a", "1"), account("b", "2"), account("", "")]);
        for (user, pass, known) in [
            ("a", "1", true),
            ("b", "2", true),
            ("", "", true),
            ("a", "2", false),
            ("b", "1", false),
            ("a", "", false),
            ("", "1", false),
            ("a", "11", false),
            ("a1", "", false),
        ] {
            assert_eq!(
                accounts.know(user.as_bytes(), pass.as_bytes()),
                known,
                "{user:?} {pass:?}"
            );
        }
        assert!(!Accounts::new(&[]).know(b"", b""));
        assert!(Accounts::new(&[]).are_none());
    }
}
