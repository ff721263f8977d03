//! A link as a picture for the camera of a phone, drawn with characters.

use qrcode::{Color, EcLevel, QrCode};

/// Light modules around the code (ISO/IEC 18004).
const QUIET: usize = 4;
/// Black on white whatever the terminal's own colours are: some readers do not take inverted codes.
const PAINT: &str = "\x1b[38;5;16;48;5;231m";
const PLAIN: &str = "\x1b[0m";

/// The code in half blocks, two rows of modules a line; `None` if it is wider than `columns`, or the text is too long for a code.
pub fn draw(text: &str, columns: usize) -> Option<String> {
    let code = QrCode::with_error_correction_level(text, EcLevel::L).ok()?;
    let (width, modules) = (code.width(), code.to_colors());
    let side = width + 2 * QUIET;
    if side > columns {
        return None;
    }
    let dark = |x: usize, y: usize| {
        let inside = |at: usize| at.checked_sub(QUIET).filter(|at| *at < width);
        let at = inside(x).zip(inside(y)).map(|(x, y)| y * width + x);
        at.and_then(|at| modules.get(at)) == Some(&Color::Dark)
    };
    let mut out = String::new();
    for y in (0..side).step_by(2) {
        out.push_str(PAINT);
        out.extend((0..side).map(|x| match (dark(x, y), dark(x, y + 1)) {
            (true, true) => '█',
            (true, false) => '▀',
            (false, true) => '▄',
            (false, false) => ' ',
        }));
        out.push_str(PLAIN);
        out.push('\n');
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_fits_a_terminal_and_has_light_around_it() {
        let link = "https://192.168.1.20:40213/0123456789abcdefABCDEF/";
        let drawn = draw(link, 80).unwrap();
        let lines: Vec<_> = drawn
            .lines()
            .map(|line| line.strip_prefix(PAINT).unwrap().strip_suffix(PLAIN).unwrap())
            .collect();
        // Version 3: 29 modules.
        assert_eq!(lines.len(), (29 + 8_usize).div_ceil(2));
        assert!(lines.iter().all(|line| line.chars().count() == 29 + 8));
        for line in [lines[0], lines[1], lines[18]] {
            assert!(line.chars().all(|c| c == ' '), "{line}");
        }
        // A finder pattern: seven dark modules, then light.
        assert!(lines[2].starts_with("    █▀▀▀▀▀█ "), "{}", lines[2]);
        assert_eq!(draw(link, 36), None);
        assert_eq!(draw(&"x".repeat(5000), 1000), None);
    }
}
