//! Several files as one configuration.

use std::collections::{HashMap, HashSet};

use super::File;
use super::context::Cx;
use crate::json::{self, Data, Member, Value};
use crate::problem::Position;

/// Reads files and puts them together in their order. Tells of those that cannot be read.
pub(crate) fn all(files: &[File<'_>], cx: &mut Cx<'_>) -> Option<Value> {
    let mut whole: Option<Value> = None;
    for (i, file) in files.iter().enumerate() {
        let Ok(index) = u16::try_from(i) else {
            cx.error(Position::default(), "more than 65536 files", "");
            break;
        };
        match json::read(file.text, index) {
            Ok(document) => {
                for at in document.not_utf8 {
                    cx.warn(
                        at,
                        "this string is not UTF-8; what is not is replaced",
                        "save the file as UTF-8",
                    );
                }
                match &mut whole {
                    Some(base) => merge(base, document.value, file.name),
                    None => whole = Some(document.value),
                }
            }
            Err(fault) => cx.error(fault.at, fault.text, fault.hint),
        }
    }
    if files.is_empty() {
        cx.error(Position::default(), "there is no configuration", "name a file with -c");
    }
    whole
}

/// Puts a later file over what the earlier ones gave.
///
/// Inbounds and outbounds whose tag is there already take that one's place, and an untagged one that of the first
/// untagged one. New inbounds are put behind the others; new outbounds before them, or behind if the file's name has
/// "tail" in it. `env` gains the new names. Every other key replaces the earlier one whole.
pub(crate) fn merge(base: &mut Value, over: Value, file_name: &str) {
    let tail = file_name
        .rsplit(['/', '\\'])
        .next()
        .unwrap_or_default()
        .to_lowercase()
        .contains("tail");
    if !matches!((&base.data, &over.data), (Data::Object(_), Data::Object(_))) {
        // One of them is no configuration, which will be told of whichever is kept.
        if matches!(base.data, Data::Object(_)) {
            *base = over;
        }
        return;
    }
    let (Data::Object(members), Data::Object(over)) = (&mut base.data, over.data) else {
        return;
    };
    let mut places: HashMap<String, usize> = HashMap::new();
    for (i, member) in members.iter().enumerate() {
        places.insert(member.key.to_ascii_lowercase(), i);
    }
    for member in over {
        let key = member.key.to_ascii_lowercase();
        match (places.get(&key), key.as_str()) {
            (None, _) => {
                places.insert(key, members.len());
                members.push(member);
            }
            (Some(_), _) if member.value.is_null() => {}
            (Some(i), "inbounds") => merge_list(&mut members[*i], member, false),
            (Some(i), "outbounds") => merge_list(&mut members[*i], member, !tail),
            (Some(i), "env") => merge_map(&mut members[*i], member),
            (Some(i), _) => members[*i] = member,
        }
    }
}

fn merge_map(base: &mut Member, over: Member) {
    match (&mut base.value.data, over.value.data) {
        (Data::Object(members), Data::Object(over)) => {
            let new: HashSet<String> = over.iter().map(|m| m.key.clone()).collect();
            members.retain(|m| !new.contains(&m.key));
            members.extend(over);
        }
        (_, data) => base.value.data = data,
    }
}

fn merge_list(base: &mut Member, over: Member, before: bool) {
    let (Data::Array(list), Data::Array(_)) = (&mut base.value.data, &over.value.data) else {
        *base = over;
        return;
    };
    let Data::Array(over) = over.value.data else { return };
    let mut first_with_tag: HashMap<String, usize> = HashMap::new();
    for (i, value) in list.iter().enumerate() {
        first_with_tag.entry(tag(value).to_owned()).or_insert(i);
    }
    let mut new = Vec::new();
    for value in over {
        match first_with_tag.get(tag(&value)) {
            Some(i) => list[*i] = value,
            None => new.push(value),
        }
    }
    if before {
        new.append(list);
        *list = new;
    } else {
        list.append(&mut new);
    }
}

/// The tag of an inbound or outbound. Empty: it has none.
fn tag(value: &Value) -> &str {
    tag_value(value).map_or("", |(tag, _)| tag)
}

/// The tag of an inbound or outbound, and where it stands.
pub(crate) fn tag_value(value: &Value) -> Option<(&str, Position)> {
    let Data::Object(members) = &value.data else {
        return None;
    };
    let member = members.iter().rfind(|m| m.key.eq_ignore_ascii_case("tag"))?;
    match &member.value.data {
        Data::String(tag) => Some((tag, member.value.at)),
        _ => None,
    }
}

/// The tag in the object of a key of the top level, and where it stands, before anything else of it is read: rules refer to it.
pub(crate) fn tag_under(root: &Value, key: &str) -> Option<(String, Position)> {
    let found = json::members(root).iter().rfind(|m| m.key.eq_ignore_ascii_case(key))?;
    let (tag, at) = tag_value(&found.value)?;
    (!tag.is_empty()).then(|| (tag.to_owned(), at))
}
