//! Tests of the source reader.
#![allow(clippy::unwrap_used)]

use super::*;

fn scan(text: &str, module: &[&str]) -> Crate {
    let tokens = tokens(text).unwrap();
    let mut krate = Crate {
        files: vec![PathBuf::from("a.rs")],
        ..Crate::default()
    };
    let module = module.iter().map(|m| m.to_string()).collect();
    Scan {
        tokens: &tokens,
        at: 0,
        file: Path::new("a.rs"),
        module,
        open: Vec::new(),
        found: &mut krate,
    }
    .run();
    krate
}

fn paths(text: &str, module: &[&str]) -> Vec<String> {
    scan(text, module).uses.iter().map(|u| u.path.join("::")).collect()
}

#[test]
fn paths_are_resolved_from_the_root() {
    assert_eq!(paths("use crate::key::SealingKey;", &["low"]), ["key::SealingKey"]);
    assert_eq!(
        paths("use crate::{one, key::{self, A as B}, batch::*};", &["low"]),
        ["one", "key", "key::A", "batch::*"]
    );
    assert_eq!(paths("use super::super::one::seal;", &["low", "avx2"]), ["one::seal"]);
    assert_eq!(
        paths("use super::{portable, super::one};", &["low", "avx2"]),
        ["low::portable", "one"]
    );
    assert_eq!(
        paths("fn f() { let x = crate::batch::job::<u8>(); self::g() }", &["low"]),
        ["batch::job", "low::g"]
    );
    assert_eq!(
        paths("mod inner { use super::super::key; } use super::one;", &["low"]),
        ["key", "one"]
    );
    assert_eq!(paths("use crate as c;", &["low"]), [""]);
}

#[test]
fn what_is_no_path_is_no_use() {
    let text = "pub(crate) fn f(&self) { self.x(); } pub(super) struct S; impl S { fn g(self) -> Self { self } }";
    assert_eq!(paths(text, &["low"]), [""; 0]);
}

#[test]
fn comments_literals_and_tests_are_left_out() {
    let text = r####"
        //! [`crate::batch`]
        /* crate::one::x /* nested */ crate::key */
        const A: &str = "crate::batch::\" unsafe";
        const B: &str = r#"crate::one" unsafe "#;
        const C: (char, u8, char) = ('"', b'\'', '\u{22}');
        fn f<'a>(x: &'a str) -> &'a str { x }
        #[cfg(test)]
        mod tests { use crate::batch::Job; fn f() { unsafe { g() } } }
        #[cfg(all(test, target_arch = "x86_64"))]
        #[allow(dead_code)]
        fn only_in_tests(x: [u8; 3]) { crate::one::seal() }
        #[cfg(test)]
        mod far_tests;
        #[cfg(not(test))]
        use crate::suite::Suite;
    "####;
    let krate = scan(text, &["key"]);
    assert_eq!(
        krate.uses.iter().map(|u| u.path.join("::")).collect::<Vec<_>>(),
        ["suite::Suite"]
    );
    assert_eq!(krate.uses[0].place.line, 16);
    assert!(krate.unsafe_code.is_empty());
}

#[test]
fn exports_of_the_root_are_known() {
    let krate = scan(
        "mod key; pub mod one { } pub use key::{A, B as C}; use crate::one::*;",
        &[],
    );
    assert_eq!(krate.top_modules, ["key", "one"]);
    let names: Vec<_> = krate
        .exports
        .iter()
        .map(|(name, path)| (name.as_str(), path.join("::")))
        .collect();
    assert_eq!(
        names,
        [
            ("A", "key::A".into()),
            ("C", "key::B".into()),
            ("*", "one::*".to_string())
        ]
    );
}

#[test]
fn unsafe_and_lint_levels_are_placed() {
    let text =
        "#![deny(unsafe_code)] #[allow(unsafe_code)] pub(crate) mod low { unsafe fn f() {} } fn g() { unsafe {} }";
    let krate = scan(text, &[]);
    let places: Vec<_> = krate.unsafe_code.iter().map(|p| p.module.join("::")).collect();
    assert_eq!(places, ["low", ""]);
    let lints: Vec<_> = krate
        .lints
        .iter()
        .map(|l| (l.level.as_str(), l.module.join("::"), l.inner))
        .collect();
    assert_eq!(lints, [("deny", String::new(), true), ("allow", "low".into(), false)]);
}

#[test]
fn a_literal_without_an_end_is_an_error() {
    for text in ["\"abc", "r#\"abc\"", "/* abc", "x\n 'ab\\'"] {
        let outcome = tokens(text);
        // A lone quote reads as a lifetime; everything else is refused.
        assert!(outcome.is_err() || text.contains('\''), "{text:?}");
    }
}
