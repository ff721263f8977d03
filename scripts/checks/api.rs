//! The public interface of a crate as text, out of the pages that rustdoc makes of it: a change of it shows as a change of lines.

use std::fmt::Write;
use std::fs;
use std::path::Path;

/// Sections of an item's page that follow its own methods and the traits it implements.
const SECTIONS: [&str; 5] = [
    "id=\"deref-methods",
    "id=\"trait-implementations\"",
    "id=\"synthetic-implementations\"",
    "id=\"blanket-implementations\"",
    "id=\"implementors\"",
];

/// Traits that nobody writes down and that programs rely on: a field more may take them away.
const AUTO: [&str; 3] = ["Send", "Sync", "Unpin"];

/// The interface of the crate whose pages lie in this folder: its modules with what they pass on, then its items with their
/// declarations, methods and traits, those of `AUTO` among them.
pub fn listing(folder: &Path) -> Result<String, String> {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    let mut text = String::new();
    modules(folder, &name, &mut text)?;
    let all = page(&folder.join("all.html"))?;
    let links = between(&all, "<li><a href=\"", "</a></li>").filter_map(|link| link.split_once("\">"));
    // The others lead to headings of the page.
    let items: Vec<_> = links.filter(|(href, _)| href.ends_with(".html")).collect();
    if items.is_empty() {
        return Err(format!("{}: rustdoc lists no items", folder.display()));
    }
    for (href, path) in items {
        let file = href.rsplit('/').next().unwrap_or_default();
        let kind = file.split('.').next().unwrap_or_default();
        write_item(
            &mut text,
            &format!("{kind} {name}::{}", plain(path)),
            &page(&folder.join(href))?,
        )
        .map_err(|error| format!("{href}: {error}"))?;
    }
    Ok(text)
}

fn page(path: &Path) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))
}

/// A module, what it passes on of other crates, and the modules in it.
fn modules(folder: &Path, name: &str, text: &mut String) -> Result<(), String> {
    let index = page(&folder.join("index.html"))?;
    line(text, 0, &format!("mod {name}"));
    for passed_on in between(&index, "<dt id=\"reexport.", "</dt>") {
        let shown = passed_on.split_once("<code>").map_or(passed_on, |(_, shown)| shown);
        line(text, 1, &in_one_line(shown));
    }
    for link in between(&index, "<a class=\"mod\" href=\"", "/index.html") {
        modules(&folder.join(link), &format!("{name}::{link}"), text)?;
    }
    Ok(())
}

fn write_item(text: &mut String, title: &str, page: &str) -> Result<(), String> {
    let declaration = between(page, "<pre class=\"rust item-decl\"><code>", "</code></pre>")
        .next()
        .ok_or("the page has no declaration")?;
    text.push('\n');
    line(text, 0, title);
    for shown in plain(declaration).lines().filter(|shown| !shown.trim().is_empty()) {
        line(text, 1, shown);
    }
    for (level, header) in headers(section(page, "id=\"implementations-list\"")) {
        line(text, level, &header);
    }
    for (level, header) in headers(section(page, "id=\"trait-implementations-list\"")) {
        // Of a trait's methods the trait tells; of its types it cannot.
        if level == 1 || header.starts_with("type ") {
            line(text, level, &header);
        }
    }
    for (level, header) in headers(section(page, "id=\"synthetic-implementations-list\"")) {
        if AUTO.iter().any(|name| implements(&header, name)) {
            line(text, level, &header);
        }
    }
    Ok(())
}

/// True for `impl NAME for …` and `impl !NAME for …`, generic or not.
fn implements(header: &str, name: &str) -> bool {
    let implemented = header.split_once(" for ").map_or("", |(before, _)| before);
    implemented
        .split(' ')
        .next_back()
        .unwrap_or_default()
        .trim_start_matches('!')
        == name
}

fn line(text: &mut String, level: usize, shown: &str) {
    let _ = writeln!(text, "{:width$}{}", "", shown.trim_end(), width = 4 * level);
}

/// The part of a page from a mark to the next section.
fn section<'a>(page: &'a str, mark: &str) -> &'a str {
    let rest = page.split_once(mark).map_or("", |(_, rest)| rest);
    let end = SECTIONS.iter().filter_map(|next| rest.find(next)).min();
    &rest[..end.unwrap_or(rest.len())]
}

/// Headers of implementations, which have level 1, and of what is in them.
fn headers(section: &str) -> impl Iterator<Item = (usize, String)> {
    let marked = section.split("<h").skip(1).filter_map(|part| {
        let (level, rest) = part.split_at_checked(1)?;
        let rest = rest.strip_prefix(" class=\"code-header\">")?;
        let level = usize::from(level == "4") + 1;
        Some((level, in_one_line(rest.split_once("</h")?.0)))
    });
    // What the compiler derives for itself is nothing that a program can use.
    marked.filter(|(_, header)| !header.starts_with("impl StructuralPartialEq"))
}

/// The pieces of a text that stand between two marks.
fn between<'a>(text: &'a str, start: &'a str, end: &'a str) -> impl Iterator<Item = &'a str> {
    text.split(start)
        .skip(1)
        .filter_map(move |part| Some(part.split_once(end)?.0))
}

fn in_one_line(html: &str) -> String {
    plain(html).split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The text of a piece of HTML. What folds a part of it away is no part of it.
fn plain(html: &str) -> String {
    let mut text = String::new();
    let mut rest = html;
    while let Some((before, tag)) = rest.split_once('<') {
        text.push_str(before);
        // An attribute stands in a line of its own by its style alone.
        if tag.starts_with("/div") {
            text.push('\n');
        }
        let skipped = if tag.starts_with("summary") { "</summary>" } else { ">" };
        rest = tag.split_once(skipped).map_or("", |(_, rest)| rest);
    }
    text.push_str(rest);
    // The ampersand is last, or it would make new ones.
    for (entity, shown) in [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&#x27;", "'"),
        ("&nbsp;", " "),
        // A sign that tells readers more when they point at it.
        (" ⓘ", ""),
        ("&amp;", "&"),
    ] {
        text = text.replace(entity, shown);
    }
    text
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use super::*;

    #[test]
    fn html_becomes_text() {
        let html = "pub fn <a href=\"#m\">f</a>(&amp;self) -&gt; <a>Option</a>&lt;&amp;'a T&gt;";
        assert_eq!(plain(html), "pub fn f(&self) -> Option<&'a T>");
        assert_eq!(
            plain("{<details><summary class=\"hideme\"><span>Show 9 variants</span></summary>A,</details>}"),
            "{A,}"
        );
        assert_eq!(plain("&amp;lt; and a < that nothing closes"), "&lt; and a ");
        let attribute = "<div class=\"code-attribute\">#[non_exhaustive]</div>pub enum E";
        assert_eq!(plain(attribute), "#[non_exhaustive]\npub enum E");
        assert_eq!(plain("-&gt; Vec&lt;u8&gt; <a class=\"tooltip\">ⓘ</a>"), "-> Vec<u8>");
        assert_eq!(in_one_line("f(\n    <b>a</b>,\n)"), "f( a, )");
    }

    #[test]
    fn an_item_has_its_declaration_its_methods_and_its_traits() {
        let header = |level: u8, of: &str| format!("<h{level} class=\"code-header\">{of}</h{level}>");
        let page = [
            "<h2>Struct</h2><pre class=\"rust item-decl\"><code>pub struct Tag {\n    pub a: u8,\n\n}</code></pre>",
            "<h2 id=\"implementations\">Implementations</h2><div id=\"implementations-list\">",
            &header(3, "impl Tag"),
            &header(4, "pub fn new() -&gt; Tag"),
            "<h2 id=\"trait-implementations\">Traits</h2><div id=\"trait-implementations-list\">",
            &header(3, "impl Deref for Tag"),
            &header(4, "type <a>Target</a> = [u8]"),
            &header(4, "fn deref(&amp;self) -&gt; &amp;[u8]"),
            &header(3, "impl StructuralPartialEq for Tag"),
            "<h2 id=\"synthetic-implementations\">Auto</h2><div id=\"synthetic-implementations-list\">",
            &header(3, "impl Freeze for Tag"),
            &header(3, "impl !<a>Send</a> for Tag"),
            &header(
                3,
                "impl&lt;T&gt; Sync for Tag&lt;T&gt;<div class=\"where\">where T: for&lt;'a&gt; F&lt;'a&gt;,</div>",
            ),
            "<h2 id=\"blanket-implementations\">Blanket</h2>",
            &header(3, "impl Send for Blanket"),
        ]
        .concat();
        let mut text = String::new();
        write_item(&mut text, "struct x::Tag", &page).unwrap();
        let expected = [
            "",
            "struct x::Tag",
            "    pub struct Tag {",
            "        pub a: u8,",
            "    }",
            "    impl Tag",
            "        pub fn new() -> Tag",
            "    impl Deref for Tag",
            "        type Target = [u8]",
            "    impl !Send for Tag",
            "    impl<T> Sync for Tag<T>where T: for<'a> F<'a>,",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
        assert!(write_item(&mut text, "struct x::Tag", "another form of page").is_err());
    }
}
