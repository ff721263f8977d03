//! The place of a key, for what is found wrong only when a configuration is put to use.

use super::File;
use super::merge;
use crate::json::{self, Data, Value, members};
use crate::problem::{Position, Problem, Severity};

/// A problem of the key `path`, such as `inbounds[0].streamSettings.tlsSettings`, with its place in the files it was
/// loaded from. Where the key is not written, the place is that of the nearest object around it.
pub fn problem_at(files: &[File<'_>], severity: Severity, path: &str, text: String, hint: String) -> Problem {
    let at = position(files, path);
    Problem {
        severity,
        file: files.get(usize::from(at.file)).map_or("", |file| file.name).to_owned(),
        line: at.line,
        column: at.column,
        path: path.to_owned(),
        text,
        hint,
    }
}

fn position(files: &[File<'_>], path: &str) -> Position {
    // They have been read before without a fault.
    let mut values = files.iter().enumerate().filter_map(|(i, file)| {
        let value = json::read(file.text, u16::try_from(i).ok()?).ok()?.value;
        Some((value, file.name))
    });
    let Some((mut whole, _)) = values.next() else {
        return Position::default();
    };
    for (value, name) in values {
        merge::merge(&mut whole, value, name);
    }
    let mut here = &whole;
    for step in path.split(['.', '[']) {
        match step_into(here, step.trim_end_matches(']')) {
            Some(deeper) => here = deeper,
            None => break,
        }
    }
    here.at
}

fn step_into<'v>(value: &'v Value, step: &str) -> Option<&'v Value> {
    match &value.data {
        Data::Array(values) => values.get(step.parse::<usize>().ok()?),
        Data::Object(_) => {
            let found = members(value).iter().rfind(|m| m.key.eq_ignore_ascii_case(step));
            found.map(|member| &member.value)
        }
        _ => None,
    }
}
