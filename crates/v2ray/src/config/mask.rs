//! `log.maskAddress`: hiding addresses in logs.

use std::borrow::Cow;
use std::fmt::Write;
use std::net::{Ipv4Addr, Ipv6Addr};

use super::context::quoted;
use super::scalar::texts;

/// How many bits of an address the logs show. Xray writes the rest as `*` or zeros, and so do we.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub struct MaskAddress {
    /// Of IPv4 addresses: 0, 8, 16, 24 or 32.
    pub ipv4: u8,
    /// Of IPv6 addresses, 0 to 128.
    pub ipv6: u8,
}

impl Default for MaskAddress {
    /// Addresses are shown as they are.
    fn default() -> Self {
        MaskAddress { ipv4: 32, ipv6: 128 }
    }
}

texts! {
    MaskAddress = "`quarter`, `half`, `full`, or bits to show as `/16+/32`", |text| {
        let shown = |ipv4, ipv6| Ok(MaskAddress { ipv4, ipv6 });
        match text.to_ascii_lowercase().as_str() {
            "" => Ok(MaskAddress::default()),
            "quarter" => shown(8, 16),
            "half" => shown(16, 32),
            "full" => shown(0, 0),
            bits => {
                let bits: Option<Vec<u8>> = bits.split('+').map(|part| part.strip_prefix('/')?.parse().ok()).collect();
                match bits.as_deref() {
                    Some([ipv4 @ (0 | 8 | 16 | 24 | 32)]) => shown(*ipv4, 0),
                    Some([ipv4 @ (0 | 8 | 16 | 24 | 32), ipv6 @ 0..=128]) => shown(*ipv4, *ipv6),
                    _ => Err(format!("{} is no mask of addresses", quoted(text))),
                }
            }
        }
    }, "write quarter, half, full, or as /16+/32 the bits to show: of IPv4 a multiple of 8, of IPv6 up to 128";
}

/// What an address may consist of.
fn is_part(c: char) -> bool {
    c.is_ascii_hexdigit() || c == ':' || c == '.'
}

impl MaskAddress {
    /// A line of a log with its addresses hidden: `192.0.2.1` becomes `192.0.*.*`, `2001:db8::1` becomes `2001:db8::/32`.
    pub fn hide<'l>(&self, line: &'l str) -> Cow<'l, str> {
        if *self == MaskAddress::default() {
            return Cow::Borrowed(line);
        }
        let mut out = String::with_capacity(line.len());
        let mut rest = line;
        let mut before = None;
        while let Some(first) = rest.chars().next() {
            // A word that goes on to either side is a name.
            let starts = is_part(first) && before.is_none_or(|c: char| !c.is_alphanumeric() && !"-_".contains(c));
            let len = match starts {
                true => rest.find(|c| !is_part(c)).unwrap_or(rest.len()),
                false => first.len_utf8(),
            };
            let (word, after) = rest.split_at(len);
            let goes_on = after.starts_with(|c: char| c.is_alphanumeric() || c == '-' || c == '_');
            if !starts || goes_on || !self.hide_word(word, &mut out) {
                out.push_str(word);
            }
            before = word.chars().next_back();
            rest = after;
        }
        Cow::Owned(out)
    }

    /// Writes a word with the address it begins with hidden. False if it begins with none, and nothing is written.
    fn hide_word(&self, word: &str, out: &mut String) -> bool {
        // What stands behind an address in a line: a port, and marks that end a sentence or a clause.
        let bare = word.trim_end_matches(['.', ':']);
        for whole in [word, bare] {
            if let Ok(ip) = whole.parse() {
                self.write_v6(ip, out);
                out.push_str(&word[whole.len()..]);
                return true;
            }
        }
        let host = bare.split_once(':').map_or(bare, |(host, _)| host);
        if let Ok(ip) = host.parse() {
            self.write_v4(ip, out);
            out.push_str(&word[host.len()..]);
            return true;
        }
        false
    }

    fn write_v4(&self, ip: Ipv4Addr, out: &mut String) {
        if self.ipv4 == 0 {
            out.push_str("[Masked IPv4]");
            return;
        }
        for (i, part) in ip.octets().iter().enumerate() {
            let dot = if i == 0 { "" } else { "." };
            // Writing to a string cannot fail.
            let _ = match i < usize::from(self.ipv4 / 8) {
                true => write!(out, "{dot}{part}"),
                false => write!(out, "{dot}*"),
            };
        }
    }

    fn write_v6(&self, ip: Ipv6Addr, out: &mut String) {
        match self.ipv6 {
            0 => out.push_str("Masked IPv6"),
            bits @ 1..=127 => {
                let shown = u128::from(ip) & !(u128::MAX >> bits);
                let _ = write!(out, "{}/{bits}", Ipv6Addr::from(shown));
            }
            _ => {
                let _ = write!(out, "{ip}");
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_hidden_and_nothing_else() {
        let half = MaskAddress { ipv4: 16, ipv6: 32 };
        for (line, hidden) in [
            ("from 11.45.1.4:80 accepted", "from 11.45.*.*:80 accepted"),
            ("from [11:45:14:19::]:80", "from [11:45::/32]:80"),
            ("tcp:11.45.1.4:443 [a -> b]", "tcp:11.45.*.*:443 [a -> b]"),
            ("tcp:[2001:db8:1::1]:443", "tcp:[2001:db8::/32]:443"),
            ("no route to 1.2.3.4.", "no route to 1.2.*.*."),
            ("2001:db8:1::1: refused", "2001:db8::/32: refused"),
            ("(1.2.3.4)", "(1.2.*.*)"),
            ("1.2.3.4", "1.2.*.*"),
            ("Some(1.2.3.4:5)", "Some(1.2.*.*:5)"),
            ("tcp:a.1.2.3.4.example:443", "tcp:a.1.2.3.4.example:443"),
            ("tcp:1.2.3.4.example:443", "tcp:1.2.3.4.example:443"),
            ("tcp:example.com:443 email: a@b", "tcp:example.com:443 email: a@b"),
            ("2026/01/02 03:04:05.123456 ...", "2026/01/02 03:04:05.123456 ..."),
            ("1.2.3, 300.1.1.1 and v1.2.3.4", "1.2.3, 300.1.1.1 and v1.2.3.4"),
            ("straße 1.2.3.4 ü", "straße 1.2.*.* ü"),
        ] {
            assert_eq!(half.hide(line), hidden);
        }
        let full = MaskAddress { ipv4: 0, ipv6: 0 };
        assert_eq!(full.hide("1.2.3.4:5 [::1]:6"), "[Masked IPv4]:5 [Masked IPv6]:6");
        let quarter = MaskAddress { ipv4: 8, ipv6: 16 };
        assert_eq!(quarter.hide("1.2.3.4 2001:db8::1"), "1.*.*.* 2001::/16");
        assert_eq!(MaskAddress::default().hide("1.2.3.4 ::1"), "1.2.3.4 ::1");
    }
}
