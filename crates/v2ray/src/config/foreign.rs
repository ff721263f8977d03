//! Configurations of other programs, which are told from those that are read here before anything is said of their keys.

use crate::json::{Data, Value, members};

/// Whose configuration it is if it is not one of V2Ray or Xray, and what to do.
pub(crate) fn told(root: &Value) -> Option<(&'static str, &'static str)> {
    if is_sing_box(root) {
        return Some((
            "this is a configuration of sing-box, and those of V2Ray and Xray are read here",
            "`sealway link to-config -` makes one of a share link; a server's has to be written anew",
        ));
    }
    is_jsonv5(root).then_some((
        "this is the form that V2Ray calls jsonv5, and its older one is read here, which Xray has as well",
        "write it in that form: `log.access` is a path there, and `streamSettings` has `network` and `security`",
    ))
}

fn under<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    let member = members(value).iter().rfind(|m| m.key.eq_ignore_ascii_case(key));
    member.map(|m| &m.value)
}

/// The inbounds and outbounds.
fn ends(root: &Value) -> impl Iterator<Item = &Value> {
    ["inbounds", "outbounds"]
        .into_iter()
        .flat_map(move |list| match under(root, list).map(|value| &value.data) {
            Some(Data::Array(values)) => values.as_slice(),
            _ => &[],
        })
}

fn is_object(value: Option<&Value>) -> bool {
    matches!(value.map(|value| &value.data), Some(Data::Object(_)))
}

fn is_text(value: Option<&Value>) -> bool {
    matches!(value.map(|value| &value.data), Some(Data::String(_)))
}

/// There the `protocol` is called `type`.
fn is_sing_box(root: &Value) -> bool {
    let spoken = |end: &Value| under(end, "protocol").is_some();
    let typed = ends(root).any(|end| is_text(under(end, "type"))) || is_object(under(root, "route"));
    typed && !ends(root).any(spoken)
}

/// There the logs are objects, the rules are in a `router`, and what is spoken by the network is a `transport`.
fn is_jsonv5(root: &Value) -> bool {
    let log = under(root, "log");
    let carried = |end: &Value| under(end, "streamSettings").is_some_and(|stream| is_text(under(stream, "transport")));
    ["access", "error"]
        .into_iter()
        .any(|name| is_object(log.and_then(|log| under(log, name))))
        || is_object(under(root, "router"))
        || ends(root).any(carried)
}
