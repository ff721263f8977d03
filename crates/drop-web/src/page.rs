//! The pages. Every name in them is text, never markup (CVE-2026-25154), and nothing is loaded from elsewhere.

use std::sync::LazyLock;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sealway_drop::names::Escaped;
use sha2::{Digest, Sha256};

use crate::path::{Column, Order, encoded};

const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");

/// `Content-Security-Policy` of the pages: their own style and script, by hash, and nothing else.
pub static POLICY: LazyLock<String> = LazyLock::new(|| {
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text.as_bytes()));
    format!(
        "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; img-src data:; connect-src 'self'; form-action 'self'; \
         base-uri 'none'; frame-ancestors 'none'",
        hash(STYLE),
        hash(SCRIPT)
    )
});

/// One line of a listing.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Line {
    /// The name.
    pub name: Vec<u8>,
    /// Bytes; `None` for a folder.
    pub size: Option<u64>,
    /// When it changed, seconds since 1970.
    pub modified: i64,
    /// The same, for people.
    pub time: String,
}

/// What a page of a folder shows.
#[derive(Debug)]
pub struct Folder<'a> {
    /// The names from what is shared to the folder, the first of them what it is called.
    pub way: &'a [Vec<u8>],
    /// What is in it; `None` where that is not to be seen.
    pub lines: Option<&'a [Line]>,
    /// How many more there are.
    pub more: usize,
    /// How they are sorted.
    pub order: Order,
    /// Whether files may be sent here.
    pub upload: bool,
}

/// Sorts lines: folders first, then by the order, and by name where that says nothing.
pub fn sort(lines: &mut [Line], order: Order) {
    lines.sort_by(|a, b| {
        let by = match order.by {
            Column::Name => a.name.cmp(&b.name),
            Column::Size => a.size.cmp(&b.size),
            Column::Time => a.modified.cmp(&b.modified),
        };
        let by = if order.descending { by.reverse() } else { by };
        let folders = b.size.is_none().cmp(&a.size.is_none());
        folders.then(by).then_with(|| a.name.cmp(&b.name))
    });
}

/// The page of a folder.
pub fn folder(folder: &Folder<'_>) -> String {
    let last = folder.way.last().map(Vec::as_slice).unwrap_or_default();
    let body = html! {
        (way(folder.way))
        h1 { (shown(last)) }
        @if let Some(lines) = folder.lines {
            @if folder.upload { (upload()) }
            p {
                "All of it: " a href="?zip" download { "zip" } ", " a href="?tar" download { "tar" }
            }
            (listing(lines, folder.order))
            @if lines.is_empty() { p.soft { "Nothing is here." } }
            @if folder.more > 0 { p.soft { (folder.more) " more are not listed; they are in the zip." } }
        } @else {
            p { "Files that you send here go to the computer that shows this page." }
            (upload())
        }
    };
    page(&shown(last), &body)
}

/// What became of the files of a form: of each its name, and why it was not taken.
pub fn taken(files: &[(Vec<u8>, Result<String, String>)]) -> String {
    let body = html! {
        h1 { "Sent" }
        @if files.is_empty() { p { "No file was chosen." } }
        ul {
            @for (name, result) in files {
                li {
                    (shown(name)) ": "
                    @match result {
                        Ok(told) => (told),
                        Err(why) => span.bad { (why) },
                    }
                }
            }
        }
        p { a href="./" { "Back" } }
    };
    page("Sent", &body)
}

/// A page that says what is wrong.
pub fn problem(title: &str, text: &str) -> String {
    page(title, &html! { h1 { (title) } p { (text) } })
}

fn page(title: &str, body: &Markup) -> String {
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                link rel="icon" href="data:,";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                main { (body) }
                script { (PreEscaped(SCRIPT)) }
            }
        }
    };
    page.into_string()
}

/// A name as people read it, with nothing in it that turns or hides what stands beside it.
fn shown(name: &[u8]) -> String {
    // A backslash is a character like any other here.
    Escaped(name).to_string().replace("\\\\", "\\")
}

fn way(names: &[Vec<u8>]) -> Markup {
    let above = names.len().saturating_sub(1);
    html! {
        @if above > 0 {
            nav aria-label="Folders above" {
                @for (at, name) in names.iter().take(above).enumerate() {
                    a href=(format!("./{}", "../".repeat(above - at))) { (shown(name)) }
                    " / "
                }
            }
        }
    }
}

fn listing(lines: &[Line], order: Order) -> Markup {
    html! {
        table {
            thead {
                tr {
                    (head("Name", "", Column::Name, order))
                    (head("Size", "number", Column::Size, order))
                    (head("Changed", "time", Column::Time, order))
                    th { span.soft { "Save" } }
                }
            }
            tbody {
                @for line in lines {
                    // Behind `./` no name is taken for a scheme.
                    @let link = format!("./{}", encoded(&line.name));
                    tr {
                        @match line.size {
                            None => {
                                td { a href=(format!("{link}/")) { (shown(&line.name)) "/" } }
                                td.number {}
                                td.time { (line.time) }
                                td { a href=(format!("{link}/?zip")) download aria-label=(format!("{} as zip", shown(&line.name))) { "zip" } }
                            }
                            Some(size) => {
                                td { a href=(link) { (shown(&line.name)) } }
                                td.number title=(format!("{size} bytes")) { (human(size)) }
                                td.time { (line.time) }
                                td { a href=(format!("{link}?download")) download aria-label=(format!("Save {}", shown(&line.name))) { "↓" } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn head(title: &str, class: &str, column: Column, order: Order) -> Markup {
    let current = order.by == column;
    let direction = if current && !order.descending { "&desc" } else { "" };
    let sorted = match (current, order.descending) {
        (false, _) => "none",
        (true, false) => "ascending",
        (true, true) => "descending",
    };
    html! {
        th class=(class) aria-sort=(sorted) {
            a href=(format!("?sort={}{direction}", column.word())) { (title) }
            @if current { (if order.descending { " ▼" } else { " ▲" }) }
        }
    }
}

fn upload() -> Markup {
    html! {
        form #upload method="post" enctype="multipart/form-data" {
            div #drop {
                label for="files" { "Send files here; they can also be dropped on this page" }
                input #files type="file" name="files" multiple;
                label for="folder" { "or a whole folder" }
                input #folder type="file" name="folder" webkitdirectory multiple;
            }
            button type="submit" { "Send" }
            p #summary role="status" aria-live="polite" {}
            ul #transfers {}
        }
    }
}

fn human(bytes: u64) -> String {
    let units = ["KiB", "MiB", "GiB", "TiB", "PiB"];
    if bytes < 1024 {
        return format!("{bytes} B");
    }
    let mut value = bytes as f64 / 1024.0;
    let mut at = 0;
    while value >= 1024.0 && at + 1 < units.len() {
        value /= 1024.0;
        at += 1;
    }
    format!("{value:.1} {}", units.get(at).unwrap_or(&"PiB"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(name: &str, size: Option<u64>, modified: i64) -> Line {
        Line {
            name: name.into(),
            size,
            modified,
            time: "then".into(),
        }
    }

    fn page_of(name: &str) -> String {
        let lines = [line(name, Some(1), 0), line(name, None, 0)];
        folder(&Folder {
            way: &[name.into(), name.into()],
            lines: Some(&lines),
            more: 1,
            order: Order::default(),
            upload: true,
        })
    }

    #[test]
    fn cve_2026_25154_a_script_in_a_name_is_text() {
        let plain = page_of("plain");
        for name in [
            "<script>alert(1)</script>",
            "\"><img src=x onerror=alert(1)>",
            "javascript:alert(1)",
            "'onmouseover='alert(1)",
            "</title><script>alert(1)</script>",
            "<!--",
            "]]>",
        ] {
            let page = page_of(name);
            for mark in ["<script", "<img", "<!--", "onerror=", "href=\"javascript", "</title>"] {
                let count = |page: &str| page.matches(mark).count();
                let escaped = page.replace("onerror=alert(1)&gt;", "");
                assert_eq!(count(&escaped), count(&plain), "{name}: {mark}");
            }
            assert_eq!(page.matches('<').count(), plain.matches('<').count(), "{name}");
        }
        let turned = page_of("a\u{202e}gpj.exe");
        assert!(!turned.contains('\u{202e}') && turned.contains("\\u{202e}"), "{turned}");
        assert!(page_of("a\\b").contains(">a\\b<"));
    }

    #[test]
    fn the_policy_allows_these_very_texts() {
        let page = page_of("x");
        let between = |from: &str, to: &str| {
            let start = page.find(from).unwrap() + from.len();
            &page[start..start + page[start..].find(to).unwrap()]
        };
        for (text, word) in [
            (between("<style>", "</style>"), "style-src"),
            (between("<script>", "</script>"), "script-src"),
        ] {
            let hash = STANDARD.encode(Sha256::digest(text.as_bytes()));
            assert!(POLICY.contains(&format!("{word} 'sha256-{hash}'")), "{word}");
        }
        assert!(POLICY.starts_with("default-src 'none'; ") && !POLICY.contains("unsafe"));
        for outside in ["http:", "https:", "src=", "@import", "url("] {
            assert!(!page.contains(outside), "{outside}");
        }
    }

    #[test]
    fn lines_are_sorted_with_folders_first() {
        let all = [
            line("b", Some(1), 3),
            line("a", Some(2), 1),
            line("z", None, 2),
            line("c", Some(2), 2),
        ];
        let sorted = |by, descending| {
            let mut lines = all.to_vec();
            sort(&mut lines, Order { by, descending });
            lines.iter().map(|line| line.name[0] as char).collect::<String>()
        };
        assert_eq!(sorted(Column::Name, false), "zabc");
        assert_eq!(sorted(Column::Name, true), "zcba");
        assert_eq!(sorted(Column::Size, false), "zbac");
        assert_eq!(sorted(Column::Size, true), "zacb");
        assert_eq!(sorted(Column::Time, false), "zacb");
    }

    #[test]
    fn sizes_are_for_people() {
        for (bytes, text) in [
            (0, "0 B"),
            (1023, "1023 B"),
            (1024, "1.0 KiB"),
            (1 << 40, "1.0 TiB"),
            (u64::MAX, "16384.0 PiB"),
        ] {
            assert_eq!(human(bytes), text);
        }
    }
}
