//! As much of YAML as the manifests here are written in: blocks of keys and of items, plain and quoted scalars, comments.

use serde_json::{Map, Value};

/// Reads one document. Panics at what the manifests do not use.
pub(crate) fn read(text: &str) -> Value {
    let lines = text
        .lines()
        .map(|line| (line.len() - line.trim_start().len(), line.trim().to_owned()));
    let lines = lines.filter(|(_, text)| !text.is_empty() && !text.starts_with('#'));
    let mut reader = Reader {
        lines: lines.collect(),
        at: 0,
    };
    let value = reader.block();
    assert_eq!(
        reader.at,
        reader.lines.len(),
        "what follows {:?}",
        reader.lines.get(reader.at)
    );
    value
}

struct Reader {
    /// Indentation and text.
    lines: Vec<(usize, String)>,
    at: usize,
}

impl Reader {
    /// What stands at the indentation of the next line.
    fn block(&mut self) -> Value {
        let (indent, first) = self.lines[self.at].clone();
        if first.starts_with("- ") {
            self.items(indent)
        } else {
            self.keys(indent)
        }
    }

    /// The text of the next line, if it stands at this indentation.
    fn line(&self, indent: usize) -> Option<&str> {
        let (found, text) = self.lines.get(self.at)?;
        assert!(*found <= indent, "{text:?} is too far to the right");
        (*found == indent).then_some(text)
    }

    fn items(&mut self, indent: usize) -> Value {
        let mut items = Vec::new();
        while let Some(item) = self.line(indent).and_then(|text| text.strip_prefix("- ")) {
            let item = item.to_owned();
            if item.ends_with(':') || item.contains(": ") {
                self.lines[self.at] = (indent + 2, item);
                items.push(self.block());
            } else {
                items.push(scalar(&item));
                self.at += 1;
            }
        }
        Value::Array(items)
    }

    fn keys(&mut self, indent: usize) -> Value {
        let mut keys = Map::new();
        while let Some(text) = self.line(indent).filter(|text| !text.starts_with("- ")) {
            let (key, rest) = text.split_once(':').unwrap_or_else(|| panic!("{text:?} is no key"));
            let (key, rest) = (key.to_owned(), rest.trim().to_owned());
            self.at += 1;
            let deeper = self
                .lines
                .get(self.at)
                .is_some_and(|(found, text)| *found > indent || *found == indent && text.starts_with("- "));
            let value = match (rest.as_str(), deeper) {
                ("", true) => self.block(),
                ("", false) => panic!("{key} has no value"),
                (text, _) => scalar(text),
            };
            assert!(keys.insert(key.clone(), value).is_none(), "{key} stands twice");
        }
        Value::Object(keys)
    }
}

fn scalar(text: &str) -> Value {
    assert!(
        !text.starts_with(['{', '[', '&', '*', '|', '>', '!', '\'']),
        "{text:?} is not read here"
    );
    if let Some(quoted) = text.strip_prefix('"') {
        return Value::String(quoted.strip_suffix('"').unwrap().to_owned());
    }
    match text {
        "true" => Value::Bool(true),
        "false" => Value::Bool(false),
        text => text
            .parse::<i64>()
            .map_or_else(|_| Value::String(text.to_owned()), Value::from),
    }
}
