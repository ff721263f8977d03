//! Whether a crate's interface may have become another one: what a program uses may go away with a version only that says so.
//!
//! Both are texts as `api` makes them, with a line before them that names the version.

use std::collections::HashSet;

/// A line of an interface below those that it stands under.
struct Line<'a> {
    /// Itself and what it stands under, the outermost first.
    path: Vec<&'a str>,
    /// A program may rely on its absence: it is part of a declaration that is closed, such as a variant of an exhaustive `enum`.
    closed: bool,
}

/// Lines of `now` that break programs written for `before`, each with how; none if the version of `now` says that it may break them.
pub fn findings(before: &str, now: &str) -> Result<Vec<String>, String> {
    let (old, before) = versioned(before)?;
    let (new, now) = versioned(now)?;
    let needed = next(old);
    if new >= needed {
        return Ok(Vec::new());
    }
    let (before, now) = (lines(before), lines(now));
    let (had, has) = (keys(&before), keys(&now));
    // What stands under something that went or came is part of that.
    let outermost = |path: &[&str], stands: &dyn Fn(&[&str]) -> bool| {
        let above = &path[..path.len() - 1];
        !stands(path) && (above.is_empty() || stands(above))
    };
    let mut findings = Vec::new();
    let mut find = |line: &Line, how: &str| {
        let (shown, [major, minor, patch]) = (line.path.join(" > "), needed);
        findings.push(format!(
            "`{shown}` {how}: that needs version {major}.{minor}.{patch} or a higher one"
        ));
    };
    for line in &before {
        if outermost(&line.path, &|path| has.contains(&path.join("\n"))) {
            find(line, "is gone");
        }
    }
    for line in now.iter().filter(|line| line.closed) {
        if outermost(&line.path, &|path| had.contains(&not_const(path))) {
            find(line, "is new, and programs rely on its absence");
        }
    }
    Ok(findings)
}

/// What there is, and what that stands for: a function that is `const` is also one that is not.
fn keys(lines: &[Line]) -> HashSet<String> {
    let both = |line: &Line| [line.path.join("\n"), not_const(&line.path)];
    lines.iter().flat_map(both).collect()
}

fn not_const(path: &[&str]) -> String {
    path.join("\n").replace("const fn ", "fn ")
}

/// The version in the first line, and the text after it.
fn versioned(text: &str) -> Result<([u64; 3], &str), String> {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let numbers = first.strip_prefix("version ").and_then(|version| {
        let mut parts = version.split(['.', '-', '+']).map(|part| part.parse().ok());
        Some([parts.next()??, parts.next()??, parts.next()??])
    });
    match numbers {
        Some(numbers) => Ok((numbers, rest)),
        None => Err(format!("an interface begins with `{first}` and not with its version")),
    }
}

/// The lowest version that Cargo does not take for compatible: the first number that is not 0 is another one.
fn next([major, minor, patch]: [u64; 3]) -> [u64; 3] {
    match (major, minor) {
        (0, 0) => [0, 0, patch + 1],
        (0, _) => [0, minor + 1, 0],
        _ => [major + 1, 0, 0],
    }
}

fn lines(text: &str) -> Vec<Line<'_>> {
    text.split("\n\n").flat_map(block).collect()
}

/// The lines of all modules, or of one item.
fn block(block: &str) -> Vec<Line<'_>> {
    let is_type = ["struct ", "enum ", "union "]
        .iter()
        .any(|kind| block.trim_start().starts_with(kind));
    let open = is_type
        && ["\n    #[non_exhaustive]\n", "\n        /* private fields */\n"]
            .iter()
            .any(|sign| block.contains(sign));
    let mut lines = Vec::new();
    let mut path: Vec<&str> = Vec::new();
    let (mut declares, mut provided) = (true, false);
    for shown in block.lines().filter(|shown| !shown.trim().is_empty()) {
        let line = shown.trim_start();
        let level = (shown.len() - line.len()) / 4;
        path.truncate(level);
        if line.starts_with("//") {
            provided = line.starts_with("// Provided");
            continue;
        }
        // What only closes something.
        if !line.ends_with('{') && !line.contains(char::is_alphanumeric) {
            continue;
        }
        declares &= !(level == 1 && line.starts_with("impl"));
        let may_come = match line {
            "#[non_exhaustive]" | "/* private fields */" => false,
            _ if line.starts_with("#[") => true,
            // A variant, a field, a method.
            _ => level == 2 && (open || provided) && path.last().is_some_and(|above| above.ends_with('{')),
        };
        path.push(line);
        lines.push(Line {
            closed: declares && level > 0 && !block.trim_start().starts_with("mod ") && !may_come,
            path: path.clone(),
        });
    }
    lines
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    const BEFORE: &str = "version 0.3.1
mod x
    pub use y::Z
mod x::deep

struct x::Tag
    pub struct Tag {
        pub a: u8,
    }
    impl Tag
        pub fn new() -> Tag
        pub const fn zero() -> Tag
    impl Send for Tag

struct x::Private
    pub struct Private {
        pub a: u8,
        /* private fields */
    }

enum x::Open
    #[non_exhaustive]
    pub enum Open {
        One {
            limit: usize,
        },
    }

enum x::Closed
    pub enum Closed {
        One,
    }

trait x::Trait
    pub trait Trait {
        // Required method
        fn must(&self);
        // Provided method
        fn may(&self) { ... }
    }

fn x::f
    pub fn f<T>(
        a: u8,
    ) -> Taken<T>where
        T: Copy,
";

    /// What is found if this text becomes that one, in the same version.
    fn change(from: &str, to: &str) -> Vec<String> {
        assert_eq!(BEFORE.matches(from).count(), 1, "{from}");
        findings(BEFORE, &BEFORE.replace(from, to)).unwrap()
    }

    #[test]
    fn what_goes_or_changes_breaks_programs() {
        for (from, to, found) in [
            (
                "        pub fn new() -> Tag\n",
                "",
                "`struct x::Tag > impl Tag > pub fn new() -> Tag` is gone",
            ),
            (
                "pub fn new() -> Tag",
                "pub fn new(a: u8) -> Tag",
                "pub fn new() -> Tag` is gone",
            ),
            (
                "    impl Send for Tag\n",
                "    impl !Send for Tag\n",
                "impl Send for Tag` is gone",
            ),
            ("    pub use y::Z\n", "", "`mod x > pub use y::Z` is gone"),
            ("mod x::deep\n", "", "`mod x::deep` is gone"),
            ("limit: usize", "limit: u64", "> One { > limit: usize,` is gone"),
            ("T: Copy,", "T: Clone,", "T: Copy,` is gone"),
        ] {
            let all = change(from, to);
            assert!(all.iter().any(|finding| finding.contains(found)), "{all:?}");
        }
        // One finding for all of an item.
        assert_eq!(
            change(
                &BEFORE[BEFORE.find("struct x::Tag").unwrap()..BEFORE.find("struct x::Priv").unwrap()],
                ""
            )
            .len(),
            1
        );
    }

    #[test]
    fn a_closed_declaration_may_not_grow() {
        for (from, to) in [
            ("    pub struct Tag {\n", "    pub struct Tag {\n        pub b: u8,\n"),
            (
                "        pub a: u8,\n    }\n    impl Tag",
                "        pub a: u8,\n        /* private fields */\n    }\n    impl Tag",
            ),
            (
                "    pub struct Tag {\n",
                "    #[non_exhaustive]\n    pub struct Tag {\n",
            ),
            (
                "            limit: usize,\n",
                "            limit: usize,\n            more: usize,\n",
            ),
            ("    pub enum Closed {\n", "    pub enum Closed {\n        Two,\n"),
            (
                "        fn must(&self);\n",
                "        fn must(&self);\n        fn also(&self);\n",
            ),
            ("        a: u8,\n    )", "        a: u8,\n        b: u8,\n    )"),
            ("        T: Copy,\n", "        T: Copy,\n        T: Send,\n"),
        ] {
            let all = change(from, to);
            assert!(all.len() == 1 && all[0].contains("is new"), "{to}: {all:?}");
        }
    }

    #[test]
    fn what_comes_may_come() {
        for (from, to) in [
            (
                "    impl Tag\n",
                "    impl Tag\n        pub fn old() -> Tag\n    impl Sync for Tag\n    impl Tag\n",
            ),
            ("pub fn new()", "pub const fn new()"),
            ("    pub fn f<T>(\n", "    pub const fn f<T>(\n"),
            (
                "    pub struct Private {\n",
                "    #[must_use]\n    pub struct Private {\n        pub b: u8,\n",
            ),
            (
                "        One {\n",
                "        Two {\n            new: u8,\n        },\n        One {\n",
            ),
            (
                "{ ... }\n",
                "{ ... }\n        fn other(\n            &self,\n        ) -> u8 { ... }\n",
            ),
            ("mod x::deep\n", "mod x::deep\n    pub use z::A\nmod x::new\n"),
            (
                "fn x::f\n",
                "fn x::e\n    pub fn e(\n        a: u8,\n    )\n\nfn x::f\n",
            ),
            // In another order.
            (
                "        pub fn new() -> Tag\n        pub const fn zero() -> Tag\n",
                "        pub const fn zero() -> Tag\n        pub fn new() -> Tag\n",
            ),
        ] {
            assert_eq!(change(from, to), [""; 0], "{to}");
        }
    }

    #[test]
    fn a_version_says_what_it_breaks() {
        let without = BEFORE.replace("        pub fn new() -> Tag\n", "");
        for (version, found) in [
            ("0.3.1", 1),
            ("0.3.2", 1),
            ("0.2.9", 1),
            ("0.4.0", 0),
            ("0.4.0-rc.1", 0),
            ("1.0.0", 0),
        ] {
            let now = without.replace("0.3.1", version);
            assert_eq!(findings(BEFORE, &now).unwrap().len(), found, "{version}");
        }
        for (version, following) in [([0, 0, 1], [0, 0, 2]), ([0, 3, 1], [0, 4, 0]), ([1, 2, 3], [2, 0, 0])] {
            assert_eq!(next(version), following);
        }
        for bad in ["", "mod x\n", "version one\nmod x\n", "version 1.0\n"] {
            assert!(
                findings(BEFORE, bad).is_err() && findings(bad, BEFORE).is_err(),
                "{bad}"
            );
        }
    }
}
