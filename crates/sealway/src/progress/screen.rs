//! Lines at the foot of a terminal, drawn anew in place.

use std::fmt::Write;

/// What to write so that lines stand there, go on and go away. What was written before is known here; nothing else may be
/// written in between.
#[derive(Debug, Default)]
pub(super) struct Screen {
    /// Characters of each line that stands there.
    drawn: Vec<usize>,
    over: bool,
}

impl Screen {
    /// Puts these lines, each shorter than `columns`, in the place of those that stand there; the first is bold if asked for.
    pub(super) fn draw(&mut self, lines: &[String], columns: usize, bold: bool) -> String {
        if self.over {
            return String::new();
        }
        let mut text = self.up(columns);
        for (place, line) in lines.iter().enumerate() {
            let (on, off) = if bold && place == 0 {
                ("\x1b[1m", "\x1b[0m")
            } else {
                ("", "")
            };
            // Old text behind the line goes, and what is below only at the end: nothing flickers.
            let _ = writeln!(text, "{on}{line}{off}\x1b[K");
        }
        text.push_str("\x1b[J");
        self.drawn = lines.iter().map(|line| line.chars().count()).collect();
        text
    }

    /// Takes the lines away.
    pub(super) fn clear(&mut self, columns: usize) -> String {
        if self.drawn.is_empty() {
            return String::new();
        }
        let text = format!("{}\x1b[J", self.up(columns));
        self.drawn.clear();
        text
    }

    /// Takes the lines away for good.
    pub(super) fn end(&mut self, columns: usize) -> String {
        self.over = true;
        self.clear(columns)
    }

    /// To the start of the first line. A terminal that has become narrower since has broken lines that do not fit any more.
    fn up(&self, columns: usize) -> String {
        let rows: usize = self.drawn.iter().map(|long| long.div_ceil(columns.max(1)).max(1)).sum();
        match rows {
            0 => String::new(),
            rows => format!("\r\x1b[{rows}A"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A terminal as far as these lines need one: rows of text, and a cursor.
    struct Terminal {
        rows: Vec<String>,
        at: usize,
        bold: bool,
    }

    impl Terminal {
        fn new() -> Terminal {
            Terminal {
                rows: vec!["$ sealway lab".to_owned(), String::new()],
                at: 1,
                bold: false,
            }
        }

        fn show(&mut self, text: &str) {
            let mut rest = text;
            while let Some(c) = rest.chars().next() {
                rest = &rest[c.len_utf8()..];
                match c {
                    '\r' => {}
                    '\n' => self.at += 1,
                    '\x1b' => {
                        let end = rest.find(|c: char| c.is_ascii_alphabetic()).expect("an escape ends");
                        let (number, kind) = (&rest[1..end], &rest[end..=end]);
                        rest = &rest[end + 1..];
                        match kind {
                            "A" => self.at -= number.parse::<usize>().expect("rows"),
                            // The cursor is behind what was just written, or at the start of a row.
                            "K" => {}
                            "J" => self.rows.truncate(self.at),
                            "m" => self.bold |= number == "1",
                            other => panic!("{other}"),
                        }
                        continue;
                    }
                    // A line is written as a whole, over what stood there.
                    c => {
                        let line: String = std::iter::once(c)
                            .chain(rest.chars().take_while(|c| !c.is_control()))
                            .collect();
                        rest = &rest[line.len() - c.len_utf8()..];
                        self.rows.resize(self.rows.len().max(self.at + 1), String::new());
                        self.rows[self.at] = line;
                    }
                }
            }
        }
    }

    fn lines(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn lines_stand_in_one_place_and_go_away() {
        let (mut screen, mut terminal) = (Screen::default(), Terminal::new());
        terminal.show(&screen.draw(&lines(&["one", "two, long", "three"]), 80, true));
        assert_eq!(terminal.rows, ["$ sealway lab", "one", "two, long", "three"]);
        assert!(terminal.bold);
        terminal.show(&screen.draw(&lines(&["uno", "dos"]), 80, false));
        assert_eq!(terminal.rows, ["$ sealway lab", "uno", "dos"]);
        terminal.show(&screen.clear(80));
        assert_eq!(terminal.rows, ["$ sealway lab"]);
        // Again beneath what was said in between.
        terminal.show("a remark\n");
        terminal.show(&screen.draw(&lines(&["eins"]), 80, false));
        assert_eq!(terminal.rows, ["$ sealway lab", "a remark", "eins"]);
        terminal.show(&screen.end(80));
        assert_eq!(terminal.rows, ["$ sealway lab", "a remark"]);
        assert_eq!(screen.draw(&lines(&["more"]), 80, false) + &screen.clear(80), "");
    }

    #[test]
    fn a_terminal_that_becomes_narrower_has_broken_the_lines() {
        let (mut screen, mut terminal) = (Screen::default(), Terminal::new());
        terminal.show(&screen.draw(&lines(&["0123456789", "abc", ""]), 80, false));
        // The first takes three rows of four columns.
        terminal.rows = lines(&["$ sealway lab", "0123", "4567", "89", "abc", ""]);
        terminal.at = 6;
        terminal.show(&screen.draw(&lines(&["new"]), 4, false));
        assert_eq!(terminal.rows, ["$ sealway lab", "new"]);
    }
}
