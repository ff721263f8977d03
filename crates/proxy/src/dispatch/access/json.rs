//! Lines of the access log as objects of JSON.

use std::fmt::{Display, Write};

use jiff::Zoned;
use sealway_v2ray::text;

use super::{Chosen, Client, Line, What};
use crate::settings::MaskAddress;

/// An object that is being written.
struct Object<'a> {
    text: String,
    mask: &'a MaskAddress,
}

impl Object<'_> {
    /// A key with a text, whose addresses are hidden if they are to be. Characters that are hidden in text stand written out in it,
    /// as they do in every log.
    fn put(&mut self, key: &str, value: impl Display) {
        let value = value.to_string();
        let value = text::escape(&self.mask.hide(&value))
            .replace('\\', r"\\")
            .replace('"', "\\\"");
        let comma = if self.text.len() > 1 { "," } else { "" };
        // Writing to a string cannot fail.
        let _ = write!(self.text, "{comma}\"{key}\":\"{value}\"");
    }

    fn put_unless_empty(&mut self, key: &str, value: &str) {
        if !value.is_empty() {
            self.put(key, value);
        }
    }
}

impl Line<'_> {
    /// The line as an object. What there is nothing to say of is left out.
    pub(super) fn json(&self, time: &Zoned, mask: &MaskAddress) -> String {
        let time = time.strftime("%Y-%m-%dT%H:%M:%S%.6f%:z");
        let text = format!("{{\"time\":\"{time}\"");
        let mut object = Object { text, mask };
        object.put("from", Client(self.source));
        match &self.what {
            What::Accepted {
                target,
                tags,
                chosen,
                email,
            } => {
                object.put("status", "accepted");
                object.put("target", target);
                object.put_unless_empty("inbound", tags.0);
                object.put_unless_empty("outbound", tags.1);
                object.put(
                    "by",
                    match chosen {
                        Chosen::Rule => "rule",
                        Chosen::Default => "default",
                    },
                );
                object.put_unless_empty("email", email);
            }
            What::Rejected { inbound, reason, kept } => {
                object.put("status", "rejected");
                object.put_unless_empty("inbound", inbound);
                object.put("reason", reason);
                if kept.0 > 0 {
                    let _ = write!(object.text, ",\"leftOut\":{}", kept.0);
                }
            }
        }
        object.text.push('}');
        object.text
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use sealway_v2ray::{Address, Destination};
    use serde_json::{Value, json};

    use super::*;
    use crate::Error;
    use crate::log::Kept;

    fn read(line: &Line<'_>, mask: MaskAddress) -> Value {
        let time: Zoned = "2026-01-02T03:04:05.123456+01:00[+01:00]".parse().unwrap();
        let text = line.json(&time, &mask);
        // A log writes hidden characters out, and nothing of that may be left to do.
        assert_eq!(text::escape(&text), text);
        serde_json::from_str(&text).unwrap()
    }

    fn masked(text: &str) -> MaskAddress {
        let config = format!(r#"{{"log":{{"maskAddress":"{text}"}},"outbounds":[{{"protocol":"freedom"}}]}}"#);
        let file = sealway_v2ray::config::File {
            name: "c",
            text: config.as_bytes(),
        };
        let loaded = sealway_v2ray::config::load(&[file], &Default::default());
        loaded.config.unwrap().log.mask_address
    }

    #[test]
    fn a_line_is_an_object() {
        let target = Destination::tcp(Address::parse("example.com").unwrap(), 443);
        let what = What::Accepted {
            target: &target,
            tags: ("in", "out"),
            chosen: Chosen::Rule,
            email: "a\"\\\u{2028}\n@b",
        };
        let line = Line {
            source: Some("1.2.3.4:5678".parse().unwrap()),
            what,
        };
        let wanted = json!({
            "time": "2026-01-02T03:04:05.123456+01:00", "from": "1.2.3.4:5678", "status": "accepted",
            "target": "tcp:example.com:443", "inbound": "in", "outbound": "out", "by": "rule",
            "email": "a\"\\\\u{2028}\\n@b",
        });
        assert_eq!(read(&line, MaskAddress::default()), wanted);
        assert_eq!(read(&line, masked("half"))["from"], "1.2.*.*:5678");
    }

    #[test]
    fn a_refusal_says_why_and_how_many_more() {
        let reason = &Error::config("x", "no such \"user\"");
        for (left_out, wanted) in [(0, Value::Null), (7, json!(7))] {
            let kept = Kept(left_out);
            let line = Line {
                source: None,
                what: What::Rejected {
                    inbound: "in",
                    reason,
                    kept,
                },
            };
            let read = read(&line, MaskAddress::default());
            assert_eq!(
                (&read["status"], &read["from"], &read["leftOut"]),
                (&json!("rejected"), &json!("unix"), &wanted)
            );
            assert!(read["reason"].as_str().unwrap().contains("no such \"user\""), "{read}");
        }
    }
}
