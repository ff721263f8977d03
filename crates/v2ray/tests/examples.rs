//! The configurations under `examples/` load as they are.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};

use sealway_v2ray::config::{File, InboundProtocol, Options, OutboundProtocol, load};

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

#[test]
fn every_example_loads_without_a_warning() {
    let mut pairs = 0;
    for entry in std::fs::read_dir(folder()).unwrap() {
        let folder = entry.unwrap().path();
        // Examples without two ends are tested with the programs they stand beside.
        if !folder.join("server.json").exists() {
            continue;
        }
        let mut ends = Vec::new();
        for name in ["server.json", "client.json"] {
            let path = folder.join(name);
            let text = std::fs::read(&path).unwrap();
            let options = Options {
                strict: true,
                ..Options::default()
            };
            let loaded = load(&[File { name, text: &text }], &options);
            assert_eq!(loaded.problems, [], "{}", path.display());
            ends.push(loaded.config.unwrap());
        }
        // The client is one of the server's users.
        let server_ids: Vec<_> = match &ends[0].inbounds[0].protocol {
            InboundProtocol::Vless(vless) => vless.users.iter().map(|user| user.user.id).collect(),
            InboundProtocol::Vmess(vmess) => vmess.users.iter().map(|user| user.id).collect(),
            other => panic!("{other:?}"),
        };
        let client_id = match &ends[1].outbounds[0].protocol {
            OutboundProtocol::Vless(vless) => vless.id,
            OutboundProtocol::Vmess(vmess) => vmess.id,
            other => panic!("{other:?}"),
        };
        assert!(server_ids.contains(&client_id), "{}", folder.display());
        pairs += 1;
    }
    assert_eq!(pairs, 6);
}
