//! What is known while a file is read: where we are, and what was wrong so far.

use std::collections::{BTreeMap, HashMap};

use super::schema::{Loses, Object};
use crate::json::{Member, Value};
use crate::problem::{Position, Problem, Severity};

/// Most problems that are kept. Whoever has more starts with these.
const MAX_PROBLEMS: usize = 200;

/// The tags of a configuration, known before its parts are read.
#[derive(Debug, Default)]
pub(crate) struct Tags {
    pub(crate) inbounds: HashMap<String, usize>,
    pub(crate) outbounds: HashMap<String, usize>,
    /// That of the management API, which rules may lead to as to an outbound.
    pub(crate) api: Option<String>,
    /// Services of the program that rules may lead to as to an outbound.
    pub(crate) services: Vec<String>,
    /// The inbound tags that queries of DNS have.
    pub(crate) queries: Vec<String>,
    pub(crate) balancers: HashMap<String, usize>,
}

impl Tags {
    /// Whether connections or queries of DNS come by this tag.
    pub(crate) fn is_inbound(&self, tag: &str) -> bool {
        self.inbounds.contains_key(tag) || self.queries.iter().any(|query| query == tag)
    }
}

/// The state of a reading.
pub(crate) struct Cx<'a> {
    /// The table of the whole file, for telling where a key belongs that stands in the wrong object.
    root: &'static Object,
    files: &'a [&'a str],
    strict: bool,
    process_env: &'a dyn Fn(&str) -> Option<String>,
    /// The `env` object of the files, which is asked before the environment of the process.
    pub(crate) env: BTreeMap<String, String>,
    path: Vec<String>,
    /// What is read belongs to an inbound.
    pub(crate) listens: bool,
    /// Which place in its list each tag has.
    pub(crate) tags: Tags,
    problems: Vec<(Position, Problem)>,
    errors: usize,
    left_out: usize,
}

impl<'a> Cx<'a> {
    pub(crate) fn new(
        root: &'static Object,
        files: &'a [&'a str],
        strict: bool,
        process_env: &'a dyn Fn(&str) -> Option<String>,
    ) -> Self {
        Cx {
            root,
            files,
            strict,
            process_env,
            env: BTreeMap::new(),
            path: Vec::new(),
            listens: false,
            tags: Tags::default(),
            problems: Vec::new(),
            errors: 0,
            left_out: 0,
        }
    }

    /// The value of a variable of the environment.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        self.env.get(name).cloned().or_else(|| (self.process_env)(name))
    }

    /// Does something inside a key.
    pub(crate) fn within<T>(&mut self, key: &str, run: impl FnOnce(&mut Self) -> T) -> T {
        // A key of the user's may hold anything; a message must not hand it to the terminal.
        let plain = key.len() <= 80 && key.chars().all(|c| !c.is_control());
        let key = if plain { key.to_owned() } else { quoted(key) };
        self.path
            .push(if self.path.is_empty() { key } else { format!(".{key}") });
        let result = run(self);
        self.path.pop();
        result
    }

    /// Does something inside an element of a list.
    pub(crate) fn at_index<T>(&mut self, index: usize, run: impl FnOnce(&mut Self) -> T) -> T {
        self.path.push(format!("[{index}]"));
        let result = run(self);
        self.path.pop();
        result
    }

    /// Where we are, such as `routing.rules[0].domain[2]`.
    pub(crate) fn path(&self) -> String {
        self.path.concat()
    }

    /// How many errors there were so far.
    pub(crate) fn errors(&self) -> usize {
        self.errors
    }

    pub(crate) fn error(&mut self, at: Position, text: impl Into<String>, hint: impl Into<String>) {
        self.report(Severity::Error, at, text.into(), hint.into());
    }

    pub(crate) fn warn(&mut self, at: Position, text: impl Into<String>, hint: impl Into<String>) {
        self.report(Severity::Warning, at, text.into(), hint.into());
    }

    /// The same of a key of the object that is read.
    pub(crate) fn error_in(&mut self, key: &str, at: Position, text: impl Into<String>, hint: impl Into<String>) {
        self.within(key, |cx| cx.error(at, text, hint));
    }

    /// The same of a key of the object that is read.
    pub(crate) fn warn_in(&mut self, key: &str, at: Position, text: impl Into<String>, hint: impl Into<String>) {
        self.within(key, |cx| cx.warn(at, text, hint));
    }

    /// Names something that other programs have and we do not have yet.
    pub(crate) fn later(&mut self, loses: Loses, at: Position, what: &str) {
        self.report(
            loses.severity(),
            at,
            format!("not supported yet: {what}"),
            loses.hint().into(),
        );
    }

    /// The same, with advice of its own: what can be written instead, so that nothing else gets through than was meant.
    pub(crate) fn later_but(&mut self, at: Position, what: &str, hint: &str) {
        let severity = Loses::Protection.severity();
        self.report(severity, at, format!("not supported yet: {what}"), hint.into());
    }

    pub(crate) fn wrong_type(&mut self, value: &Value, wanted: &str) {
        self.error(
            value.at,
            format!("{wanted} is expected here, not {}", value.type_name()),
            "",
        );
    }

    /// Reports a key that no table entry answers to.
    pub(crate) fn unknown_key(&mut self, member: &Member, table: &'static Object) {
        // Advice costs time, and nobody would see it.
        if self.is_full() {
            self.report(Severity::Warning, member.at, String::new(), String::new());
            return;
        }
        let names = table
            .keys
            .iter()
            .flat_map(|key| std::iter::once(key.name).chain(key.aliases.iter().copied()));
        let names = names.chain(table.others.iter().map(|other| other.name));
        let hint = if let Some(near) = nearest(&member.key, names) {
            format!("did you mean `{near}`?")
        } else if let Some(home) = self.root.home_of(&member.key, table) {
            format!("`{}` belongs to {home}", member.key)
        } else {
            // It may be meant to protect something, so it is not for us to say that it can go.
            "nothing reads it: check how it is spelt, and where it stands".to_owned()
        };
        let text = format!("unknown key {} in {}", quoted(&member.key), table.title);
        self.report(Severity::Warning, member.at, text, hint);
    }

    /// The name that `text` is most likely a misspelling of, unless nobody would see it.
    pub(crate) fn nearest<'n>(&self, text: &str, names: &[&'n str]) -> Option<&'n str> {
        if self.is_full() {
            None
        } else {
            nearest(text, names.iter().copied())
        }
    }

    /// Whether no more problems are kept.
    pub(crate) fn is_full(&self) -> bool {
        self.problems.len() >= MAX_PROBLEMS
    }

    fn report(&mut self, severity: Severity, at: Position, text: String, hint: String) {
        let severity = if self.strict { Severity::Error } else { severity };
        self.errors += usize::from(severity == Severity::Error);
        // An error is never left out for warnings' sake as long as none has been kept.
        let room = !self.is_full() || (severity == Severity::Error && self.errors == 1);
        if !room {
            self.left_out += 1;
            return;
        }
        let problem = Problem {
            severity,
            file: self
                .files
                .get(usize::from(at.file))
                .map(|name| (*name).to_owned())
                .unwrap_or_default(),
            line: at.line,
            column: at.column,
            path: self.path.concat(),
            text,
            hint,
        };
        self.problems.push((at, problem));
    }

    /// All problems in the order of the files, with a last one that says how many were left out.
    pub(crate) fn finish(mut self) -> Vec<Problem> {
        self.problems.sort_by_key(|(at, _)| *at);
        let mut problems: Vec<Problem> = self.problems.into_iter().map(|(_, problem)| problem).collect();
        if self.left_out > 0
            && let Some(last) = problems.last().cloned()
        {
            problems.push(Problem {
                severity: Severity::Warning,
                path: String::new(),
                text: format!("{} more problems are not listed", self.left_out),
                hint: String::new(),
                ..last
            });
        }
        problems
    }
}

/// The name that `text` is most likely a misspelling of, if one is near enough.
pub fn nearest<'n>(text: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    if text.len() > 64 {
        return None;
    }
    let text = text.to_lowercase();
    let limit = (text.chars().count() / 3).clamp(1, 4);
    names
        .filter(|name| !name.is_empty())
        .map(|name| (strsim::damerau_levenshtein(&text, &name.to_lowercase()), name))
        .filter(|(distance, name)| *distance <= limit && *distance < name.len())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// Advice about a tag that nothing has.
pub(crate) fn near_tag<'t>(tag: &str, tags: impl Iterator<Item = &'t String>) -> String {
    // The order of a hash table is nobody's.
    let mut tags: Vec<&str> = tags.map(String::as_str).take(1000).collect();
    tags.sort_unstable();
    if let Some(near) = nearest(tag, tags.iter().copied()) {
        return format!("did you mean {}?", quoted(near));
    }
    let known: Vec<String> = tags.iter().take(8).map(|tag| quoted(tag)).collect();
    match known.is_empty() {
        true => "none has a tag".into(),
        false => format!("the tags are {}", known.join(", ")),
    }
}

/// A text of the user's between quotes, without control characters and not endlessly long.
pub(crate) fn quoted(text: &str) -> String {
    const MOST: usize = 80;
    let mut out = String::from("\"");
    for (i, c) in text.chars().enumerate() {
        if i == MOST {
            out.push('…');
            break;
        }
        if crate::text::is_hidden(c) {
            out.extend(c.escape_default());
        } else {
            out.push(c);
        }
    }
    out.push('"');
    out
}
