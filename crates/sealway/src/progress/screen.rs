//! Lines at the foot of a terminal, drawn anew in place.

use std::fmt::Write;

/// What to write so that lines stand there, go on and go away. What was written before is known here; nothing else may be
/// written in between.
#[derive(Debug, Default)]
pub(super) struct Screen {
    /// Lines that stand there, and the columns that there were then.
    drawn: usize,
    columns: usize,
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
        (self.drawn, self.columns) = (lines.len(), columns);
        text
    }

    /// Takes the lines away.
    pub(super) fn clear(&mut self, columns: usize) -> String {
        if self.drawn == 0 {
            return String::new();
        }
        let text = format!("{}\x1b[J", self.up(columns));
        self.drawn = 0;
        text
    }

    /// Takes the lines away for good.
    pub(super) fn end(&mut self, columns: usize) -> String {
        self.over = true;
        self.clear(columns)
    }

    /// To the start of the first line. Terminals break lines anew for another width, or cut them: what was drawn stays then, and
    /// the rest goes below.
    fn up(&self, columns: usize) -> String {
        match self.drawn {
            0 => String::new(),
            _ if columns != self.columns => String::new(),
            rows => format!("\r\x1b[{rows}A"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A terminal as far as these lines need one: rows of characters, and a cursor.
    struct Terminal {
        rows: Vec<Vec<char>>,
        row: usize,
        column: usize,
        bold: bool,
    }

    impl Terminal {
        fn new() -> Terminal {
            let mut terminal = Terminal {
                rows: Vec::new(),
                row: 0,
                column: 0,
                bold: false,
            };
            terminal.show("$ sealway lab\n");
            terminal
        }

        fn show(&mut self, text: &str) {
            let mut rest = text.chars();
            while let Some(c) = rest.next() {
                match c {
                    '\r' => self.column = 0,
                    '\n' => (self.row, self.column) = (self.row + 1, 0),
                    '\x1b' => {
                        assert_eq!(rest.next(), Some('['));
                        let number: String = rest.by_ref().take_while(|c| c.is_ascii_digit()).collect();
                        // The one that ends the number is gone with it.
                        let kind = text[..text.len() - rest.as_str().len()].chars().next_back();
                        self.escape(&number, kind.expect("an escape ends"));
                    }
                    c => self.put(c),
                }
            }
        }

        fn escape(&mut self, number: &str, kind: char) {
            match kind {
                'A' => self.row -= number.parse::<usize>().expect("rows"),
                'K' => self.cut(),
                'J' => {
                    self.cut();
                    self.rows.truncate(self.row + 1);
                }
                'm' => self.bold |= number == "1",
                other => panic!("{other}"),
            }
        }

        /// Takes away what stands behind the cursor in its row.
        fn cut(&mut self) {
            let column = self.column;
            self.here().truncate(column);
        }

        fn put(&mut self, c: char) {
            let column = self.column;
            let row = self.here();
            row.resize(row.len().max(column + 1), ' ');
            row[column] = c;
            self.column += 1;
        }

        /// The row of the cursor.
        fn here(&mut self) -> &mut Vec<char> {
            self.rows.resize(self.rows.len().max(self.row + 1), Vec::new());
            &mut self.rows[self.row]
        }

        /// What is written, without empty rows at the end.
        fn text(&self) -> Vec<String> {
            let mut rows: Vec<String> = self.rows.iter().map(|row| row.iter().collect()).collect();
            while rows.last().is_some_and(String::is_empty) {
                rows.pop();
            }
            rows
        }
    }

    fn lines(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn lines_stand_in_one_place_and_go_away() {
        let (mut screen, mut terminal) = (Screen::default(), Terminal::new());
        terminal.show(&screen.draw(&lines(&["one", "two, long", "three"]), 80, true));
        assert_eq!(terminal.text(), ["$ sealway lab", "one", "two, long", "three"]);
        assert!(terminal.bold);
        terminal.show(&screen.draw(&lines(&["uno", "dos"]), 80, false));
        assert_eq!(terminal.text(), ["$ sealway lab", "uno", "dos"]);
        terminal.show(&screen.clear(80));
        assert_eq!(terminal.text(), ["$ sealway lab"]);
        // Again beneath what was said in between.
        terminal.show("a remark\n");
        terminal.show(&screen.draw(&lines(&["eins"]), 80, false));
        assert_eq!(terminal.text(), ["$ sealway lab", "a remark", "eins"]);
        terminal.show(&screen.end(80));
        assert_eq!(terminal.text(), ["$ sealway lab", "a remark"]);
        assert_eq!(screen.draw(&lines(&["more"]), 80, false) + &screen.clear(80), "");
    }

    #[test]
    fn a_terminal_of_another_width_gets_the_lines_below() {
        let (mut screen, mut terminal) = (Screen::default(), Terminal::new());
        terminal.show(&screen.draw(&lines(&["0123456789", "abc"]), 80, false));
        terminal.show(&screen.draw(&lines(&["new"]), 4, false));
        assert_eq!(terminal.text(), ["$ sealway lab", "0123456789", "abc", "new"]);
        terminal.show(&screen.draw(&lines(&["next", "x"]), 4, false));
        assert_eq!(terminal.text(), ["$ sealway lab", "0123456789", "abc", "next", "x"]);
        // Taken away at a third width: they stay.
        assert_eq!(screen.clear(80), "\x1b[J");
    }
}
