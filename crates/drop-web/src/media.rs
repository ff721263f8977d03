//! What a browser may show by itself, by the end of a file's name.

/// How a file is given out.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct Media {
    /// `Content-Type`.
    pub kind: &'static str,
    /// Whether a browser may show it.
    pub shown: bool,
}

/// What is stored and never shown.
const OTHER: Media = Media {
    kind: "application/octet-stream",
    shown: false,
};

/// Pictures, sound and film, which run no script. SVG does, so it is not among them.
const SAFE: [(&str, &str); 22] = [
    ("png", "image/png"),
    ("jpg", "image/jpeg"),
    ("jpeg", "image/jpeg"),
    ("gif", "image/gif"),
    ("webp", "image/webp"),
    ("avif", "image/avif"),
    ("bmp", "image/bmp"),
    ("ico", "image/x-icon"),
    ("mp3", "audio/mpeg"),
    ("m4a", "audio/mp4"),
    ("aac", "audio/aac"),
    ("ogg", "audio/ogg"),
    ("oga", "audio/ogg"),
    ("opus", "audio/ogg"),
    ("flac", "audio/flac"),
    ("wav", "audio/wav"),
    ("mp4", "video/mp4"),
    ("m4v", "video/mp4"),
    ("mov", "video/quicktime"),
    ("webm", "video/webm"),
    ("ogv", "video/ogg"),
    ("pdf", PDF),
];

/// PDF: viewers of browsers run apart from the page's origin, and not at all in a sandbox.
pub const PDF: &str = "application/pdf";

/// What is shown as its source, so that pages and scripts among it do nothing.
const TEXT: &str = "txt text md rst log csv tsv json jsonl xml html htm xhtml js mjs ts css yaml yml toml ini conf cfg sh bash zsh py rb \
    pl lua rs go c h cc cpp hpp cs java kt swift php sql diff patch tex srt vtt asc pem";

/// By the name of a file.
pub fn of(name: &[u8]) -> Media {
    let Some(dot) = name.iter().rposition(|byte| *byte == b'.') else {
        return OTHER;
    };
    let end = String::from_utf8_lossy(name.get(dot + 1..).unwrap_or_default()).to_ascii_lowercase();
    if let Some((_, kind)) = SAFE.iter().find(|(known, _)| *known == end) {
        return Media { kind, shown: true };
    }
    match TEXT.split_ascii_whitespace().any(|known| known == end) {
        true => Media {
            kind: "text/plain; charset=utf-8",
            shown: true,
        },
        false => OTHER,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_and_pictures_that_run_scripts_are_not_shown_as_such() {
        for (name, kind, shown) in [
            ("a.PNG", "image/png", true),
            ("a.tar.gz", "application/octet-stream", false),
            ("a.svg", "application/octet-stream", false),
            ("a.html", "text/plain; charset=utf-8", true),
            ("a.png.xhtml", "text/plain; charset=utf-8", true),
            ("a.swf", "application/octet-stream", false),
            ("README", "application/octet-stream", false),
            (".png", "image/png", true),
            ("a.", "application/octet-stream", false),
            ("", "application/octet-stream", false),
        ] {
            assert_eq!(of(name.as_bytes()), Media { kind, shown }, "{name}");
        }
    }
}
