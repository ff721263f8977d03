//! A code while it is typed: what is in the line, what a terminal shows of it, and which words it may go on with.

use sealway_session::code;
use zeroize::Zeroizing;

/// Longest line; what is typed beyond it is not taken.
const LINE: usize = 256;

/// More words than that are not listed.
const LISTED: usize = 24;

const BELL: &str = "\x07";
const RUB_OUT: &str = "\x08 \x08";

/// A line of a terminal that neither echoes nor waits for the end of the line. Bytes that are no letters of a code are left out, and so
/// are the sequences of arrows and other keys.
#[derive(Default)]
pub struct Line {
    text: Zeroizing<String>,
    escape: Escape,
}

#[derive(Clone, Copy, Debug, Default, Eq, PartialEq)]
enum Escape {
    #[default]
    None,
    /// After ESC.
    Begun,
    /// After ESC and `[` or `O`, up to a letter or `~`.
    Inside,
}

/// What a byte did.
#[derive(Debug, Eq, PartialEq)]
pub enum Typed {
    /// The line goes on; the terminal is to show this.
    Show(Zeroizing<String>),
    /// The line goes on below these words, which may be meant; it is to be shown anew.
    List(Vec<&'static str>),
    /// The line is complete.
    Done,
}

impl Line {
    /// An empty line.
    pub fn new() -> Line {
        Line {
            // Room for all of it: a string that grows leaves its beginning behind.
            text: Zeroizing::new(String::with_capacity(LINE)),
            escape: Escape::None,
        }
    }

    /// What was typed.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The same, without the space around it.
    pub fn into_text(self) -> Zeroizing<String> {
        Zeroizing::new(self.text.trim().to_owned())
    }

    /// Takes a byte that the terminal gave.
    pub fn handle_byte(&mut self, byte: u8) -> Typed {
        let show = |text: &str| Typed::Show(Zeroizing::new(text.to_owned()));
        match (self.escape, byte) {
            (Escape::Begun, b'[' | b'O') => {
                self.escape = Escape::Inside;
                return show("");
            }
            (Escape::Begun, _) => {
                self.escape = Escape::None;
                return show("");
            }
            (Escape::Inside, b'a'..=b'z' | b'A'..=b'Z' | b'~') => {
                self.escape = Escape::None;
                return show("");
            }
            (Escape::Inside, _) => return show(""),
            (Escape::None, _) => {}
        }
        match byte {
            b'\r' | b'\n' => Typed::Done,
            // Ctrl-D ends an empty line.
            4 if self.text.is_empty() => Typed::Done,
            b'\t' => self.complete(),
            8 | 127 => self.rub_out(usize::from(!self.text.is_empty())),
            // Ctrl-U, Ctrl-W.
            21 => self.rub_out(self.text.len()),
            23 => self.rub_out(self.text.len() - word_start(self.text.trim_end_matches(['-', ' ']))),
            27 => {
                self.escape = Escape::Begun;
                show("")
            }
            b' '..=b'~' if self.text.len() < LINE => {
                self.text.push(char::from(byte));
                show(char::from(byte).encode_utf8(&mut [0; 4]))
            }
            _ => show(BELL),
        }
    }

    fn rub_out(&mut self, count: usize) -> Typed {
        // Only ASCII gets into a line.
        let rest = self.text.len().saturating_sub(count);
        self.text.truncate(rest);
        Typed::Show(Zeroizing::new(match count {
            0 => BELL.to_owned(),
            count => RUB_OUT.repeat(count),
        }))
    }

    fn complete(&mut self) -> Typed {
        let show = |text: &str| Typed::Show(Zeroizing::new(text.to_owned()));
        let start = word_start(&self.text);
        let begun = Zeroizing::new(self.text.get(start..).unwrap_or_default().to_ascii_lowercase());
        // The number comes first, and no word begins with nothing.
        let words = match start {
            0 => Vec::new(),
            _ if begun.is_empty() => Vec::new(),
            _ => code::words_beginning(&begun).collect::<Vec<_>>(),
        };
        let (Some(first), Some(last)) = (words.first(), words.last()) else {
            return show(BELL);
        };
        // The list is sorted: what its ends have in common, all have.
        let common = first.bytes().zip(last.bytes()).take_while(|(a, b)| a == b).count();
        let mut more = Zeroizing::new(first.get(begun.len()..common).unwrap_or_default().to_owned());
        let words_so_far = self.text.split(['-', ' ']).filter(|part| !part.is_empty()).count() - 1;
        if words.len() == 1 && words_so_far < code::DEFAULT_WORDS {
            more.push('-');
        }
        if !more.is_empty() && self.text.len() + more.len() <= LINE {
            self.text.push_str(&more);
            return Typed::Show(more);
        }
        match words.len() {
            2..=LISTED => Typed::List(words),
            _ => show(BELL),
        }
    }
}

/// Where the last word begins.
fn word_start(text: &str) -> usize {
    text.rfind(['-', ' ']).map_or(0, |at| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line after these keys, and what the terminal shows of it.
    fn typed(keys: &str) -> (String, String) {
        let (mut line, mut shown) = (Line::new(), String::new());
        for byte in keys.bytes() {
            match line.handle_byte(byte) {
                Typed::Show(text) => {
                    for c in text.chars() {
                        match c {
                            '\x08' => drop(shown.pop()),
                            ' ' if text.contains('\x08') => shown.push(' '),
                            '\x07' => {}
                            c => shown.push(c),
                        }
                    }
                }
                Typed::List(words) => assert!(words.len() > 1),
                Typed::Done => break,
            }
        }
        (line.text().to_owned(), shown)
    }

    #[test]
    fn words_complete_at_the_tab() {
        for (keys, line) in [
            ("7-cas\tlem\tope\t\rxxx", "7-castle-lemon-opera"),
            ("7 CAS\t", "7 CAStle-"),
            // No word begins so, nothing was begun, the number is no word.
            ("7-zzz\t", "7-zzz"),
            ("7-\t", "7-"),
            ("\t7\t", "7"),
            ("7-castlx\x7fe\t-", "7-castle--"),
            ("7-castle-lemon\x17op\t", "7-castle-opera-"),
            ("7-castle\x158-", "8-"),
            ("\x1b[A7\x1b[3~-\x1bOB\x1bxa", "7-a"),
            ("\x7f\x17\x15\u{e9}7", "7"),
        ] {
            let (text, shown) = typed(keys);
            assert_eq!(text, line, "{keys:?}");
            assert_eq!(shown, line, "what is shown of {keys:?}");
        }
    }

    #[test]
    fn several_words_are_listed() {
        let mut line = Line::new();
        for byte in *b"7-al" {
            line.handle_byte(byte);
        }
        let Typed::List(words) = line.handle_byte(b'\t') else {
            panic!("one word only")
        };
        assert!(
            words.len() > 1 && words.iter().all(|word| word.starts_with("al")),
            "{words:?}"
        );
        assert_eq!(line.into_text().as_str(), "7-al");
    }

    #[test]
    fn a_line_ends_and_is_bounded() {
        assert_eq!(Line::new().handle_byte(4), Typed::Done);
        let mut line = Line::new();
        for _ in 0..1000 {
            line.handle_byte(b'7');
        }
        assert_eq!(line.text().len(), LINE);
        assert_ne!(line.handle_byte(4), Typed::Done);
        assert_eq!(line.handle_byte(b'\n'), Typed::Done);
    }
}
