//! The reference of all keys, made from the tables that the reading itself goes by.

use std::fmt::Write;

use super::Settings;
use super::schema::{Key, Kind, Object, Presence, Why};

/// Every table, each once, the way down from the top of a configuration.
fn objects() -> Vec<&'static Object> {
    Settings::TABLE.with_all_below()
}

/// Every key that is read: the heading of its object in the [`reference()`], and its name.
pub fn keys() -> Vec<(&'static str, &'static str)> {
    let all = objects().into_iter();
    all.flat_map(|object| object.keys.iter().map(|key| (object.title, key.name)))
        .collect()
}

/// The reference of every key of `config.json`, as Markdown.
pub fn reference() -> String {
    let mut out = String::from(
        "# Keys of config.json\n\n\
         Made from the tables the program itself reads by; `SEALWAY_UPDATE_GOLDEN=1 cargo test -p sealway-v2ray reference` \
         writes it anew.\n\n\
         Comments (`//`, `#`, `/* */`) may stand anywhere. Letter case of keys makes no difference. A list of strings \
         may also be one string with commas. `null` is the same as no key, and so is an empty string \
         where there is no default.\n\n\
         Unknown keys are warned about. What is \"not supported yet\" is a warning where leaving it out changes only \
         speed, limits or looks, and an error where it would change who can read a connection or where it goes. With \
         `-strict` every warning is an error.\n",
    );
    for object in objects() {
        write_object(object, &mut out);
    }
    out
}

fn write_object(object: &Object, out: &mut String) {
    let title = if object.title == Settings::TABLE.title {
        "The top level"
    } else {
        object.title
    };
    let code = if title == object.title { "`" } else { "" };
    let _ = write!(out, "\n## {code}{title}{code}\n\n{}\n", joined(object.about));
    if !object.keys.is_empty() {
        out.push_str("\n| Key | Type | Default | Meaning | Since |\n|---|---|---|---|---|\n");
    }
    for key in object.keys {
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {} |",
            names(key),
            cell(&kind((key.kind)())),
            default(key),
            cell(&joined(key.meaning)),
            key.since
        );
    }
    for (why, heading) in [
        (Why::LaterError, "Not supported yet, and an error"),
        (
            Why::LaterService,
            "Not supported yet, and an error; connections do not need it",
        ),
        (Why::LaterWarning, "Not supported yet, and a warning"),
        (Why::Gone, "Obsolete, and an error"),
        (Why::Accepted, "Accepted without effect"),
    ] {
        let others: Vec<String> = object
            .others
            .iter()
            .filter(|other| other.why == why)
            .map(|other| match (why, other.text.trim_end_matches('.')) {
                (Why::Gone, text) => format!("`{}` ({text})", other.name),
                (Why::Accepted, text) if !text.is_empty() => format!("`{}` ({})", other.name, lower_first(text)),
                _ => format!("`{}`", other.name),
            })
            .collect();
        if !others.is_empty() {
            let _ = write!(out, "\n{heading}: {}.\n", others.join(", "));
        }
    }
}

fn lower_first(text: &str) -> String {
    let mut chars = text.chars();
    chars
        .next()
        .map(|c| c.to_lowercase().chain(chars).collect())
        .unwrap_or_default()
}

fn names(key: &Key) -> String {
    let all: Vec<String> = std::iter::once(&key.name)
        .chain(key.aliases)
        .map(|name| format!("`{name}`"))
        .collect();
    all.join(" or ")
}

fn default(key: &Key) -> String {
    match key.presence {
        Presence::Required => "required".into(),
        Presence::Default(json) => format!("`{json}`"),
        Presence::Optional => "none".into(),
    }
}

fn kind(kind: Kind) -> String {
    match kind {
        Kind::Text(text) => text,
        Kind::Words(words, others) => {
            let list = |words: &[&str]| {
                let words: Vec<String> = words.iter().map(|word| format!("`{word}`")).collect();
                words.join(", ")
            };
            let later = others.iter().filter(|other| other.why.loses().is_some());
            let later: Vec<&str> = later.map(|other| other.name).collect();
            match later.is_empty() {
                true => list(&words),
                false => format!("{}; not yet: {}", list(&words), list(&later)),
            }
        }
        Kind::List(inner) => format!("list of {}", self::kind(*inner)),
        Kind::Map(inner) => format!("names, and for each {}", self::kind(*inner)),
        Kind::Object(object) => format!("object `{}`", object.title),
        Kind::ByProtocol(_) => "by protocol, see below".to_owned(),
    }
}

fn joined(lines: &[&str]) -> String {
    let lines: Vec<&str> = lines.iter().map(|line| line.trim()).collect();
    lines.join(" ")
}

fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

#[cfg(test)]
mod tests;
