//! Configuration files and share links.

use crate::config::{File, Options, load};
use crate::link::Link;

/// A file, or several with zero bytes between them.
pub(super) fn config(data: &[u8]) {
    let files: Vec<File<'_>> = data
        .split(|b| *b == 0)
        .take(3)
        .map(|text| File { name: "f", text })
        .collect();
    let env = |name: &str| (name == "PORT").then(|| "1".to_owned());
    let errors = [false, true].map(|strict| {
        let loaded = load(&files, &Options { strict, env: &env });
        assert_eq!(
            loaded.config.is_none(),
            loaded.errors().next().is_some(),
            "a configuration and an error, or neither"
        );
        for problem in &loaded.problems {
            let told = problem.to_string();
            assert!(!told.chars().any(char::is_control), "control characters in {told:?}");
        }
        loaded.config.is_none()
    });
    assert!(errors[1] || !errors[0], "strict reading accepts what the other refuses");
}

pub(super) fn link(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    match Link::parse(text) {
        Ok(link) => {
            assert_eq!(
                Link::parse(&link.to_string()).as_ref(),
                Ok(&link),
                "writing a link lost something"
            );
            if let Ok((outbound, _)) = link.to_outbound() {
                assert!(
                    Link::from_outbound(&outbound).is_ok(),
                    "an outbound of a link has no link"
                );
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}
