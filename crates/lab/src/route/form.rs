//! Which program gets configurations of which form.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use serde_json::{Value, json};

use super::config::{Facts, local};
use super::kind::Kind;
use super::shoes;
use super::sing_box;
use super::stack::Stack;

/// The configuration of a client: from `entry` to `sink`, by way of `server`.
pub(super) fn client(kind: Kind, facts: &Facts<'_>, entry: u16, server: SocketAddr, sink: SocketAddr) -> Value {
    match kind {
        Kind::SingBox => sing_box::client(facts, entry, server, sink),
        Kind::Shoes => shoes::client(facts, entry, server, sink),
        _ => facts.client(entry, server, sink),
    }
}

/// The configuration of a server that leads to `sink`, at the first of two ports; the second is for an inbound behind it, where the
/// stack has one.
pub(super) fn server(kind: Kind, facts: &Facts<'_>, ports: [u16; 2], sink: SocketAddr) -> Value {
    match kind {
        Kind::SingBox => sing_box::server(facts, ports[0]),
        Kind::Shoes => shoes::server(facts, ports[0]),
        _ => facts.server(ports, sink),
    }
}

/// The configurations of client and server for `stacks`, which both have, for the result file: by stack and role, with made-up
/// ports, folder and id.
pub(super) fn samples([at_client, at_server]: [Kind; 2], stacks: &[Stack]) -> BTreeMap<String, Value> {
    let mut samples = BTreeMap::new();
    for stack in stacks.iter().filter(|stack| stack.has_programs()) {
        let facts = Facts::sample(*stack);
        let mut add = |role: &str, config: Value| samples.insert(format!("{stack} {role}"), config);
        let to = if stack.needs_nginx() { local(3) } else { local(2) };
        add("client", client(at_client, &facts, 1, to, local(9)));
        if stack.has_wire() {
            add("server", server(at_server, &facts, [2, 4], local(9)));
        }
        if stack.needs_nginx() {
            add("front", json!(facts.nginx(3, local(2), None)));
        }
    }
    samples
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use sealway_v2ray::config::{File, Options, load};

    use super::*;

    #[test]
    fn our_own_reader_finds_nothing_to_say_of_any_configuration() {
        let samples = samples([Kind::Sealway; 2], &Stack::ALL);
        // All but the direct one have a client, all but the copy a server.
        let fronts = Stack::ALL.iter().filter(|stack| stack.needs_nginx()).count();
        let count = |role: &str| samples.keys().filter(|name| name.ends_with(role)).count();
        assert_eq!(
            (count(" client"), count(" server"), count(" front")),
            (Stack::ALL.len() - 1, Stack::ALL.len() - 2, fronts)
        );
        for (name, config) in &samples {
            let Value::Object(_) = config else {
                assert!(name.ends_with(" front"));
                continue;
            };
            let text = config.to_string();
            let file = File {
                name: "config.json",
                text: text.as_bytes(),
            };
            let options = Options {
                strict: true,
                ..Options::default()
            };
            let loaded = load(&[file], &options);
            assert!(loaded.problems.is_empty(), "{name}: {:?}\n{text}", loaded.problems);
            assert_eq!(loaded.config.unwrap().outbounds.len(), 1);
        }
    }
}
