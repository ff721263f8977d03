//! Floors of the modules inside a crate: a module may use modules of its own floor and of lower ones.

use std::path::Path;

use super::source::{Crate, Use};

/// The floors of one crate's modules.
pub struct Floors {
    /// Module and floor.
    modules: &'static [(&'static str, u8)],
    /// Upward edges that are part of the design: user, used.
    exceptions: &'static [(&'static str, &'static str)],
    /// Modules that may use nothing of their crate but the exceptions.
    closed: &'static [&'static str],
}

// `stream` stands above `derive`: it makes a sealer or an opener of a derived secret.
const AEAD: Floors = Floors {
    modules: &[
        ("low", 0),
        ("error", 1),
        ("suite", 1),
        ("limits", 1),
        ("cpu", 1),
        ("wipe", 1),
        ("library", 1),
        ("nonce", 1),
        ("key", 2),
        ("choose", 2),
        ("derive", 2),
        ("one", 3),
        ("stream", 4),
        ("batch", 5),
        ("keystream", 5),
    ],
    // Kernels take the proof tokens of the CPU probe as arguments.
    exceptions: &[("low", "cpu")],
    closed: &["low"],
};

const PROXY: Floors = Floors {
    modules: &[
        ("bucket", 0),
        ("carrier", 0),
        ("clock", 0),
        ("closing", 0),
        ("error", 0),
        ("files", 0),
        ("geo", 0),
        ("log", 0),
        ("people", 0),
        ("meters", 0),
        ("pool", 0),
        ("settings", 0),
        ("stats", 0),
        ("tally", 0),
        ("config", 1),
        ("dial", 1),
        ("dns", 1),
        ("inherited", 1),
        ("layer", 1),
        ("listen", 2),
        ("lists", 1),
        ("loops", 1),
        ("policy", 1),
        ("program", 1),
        ("proxy_protocol", 1),
        ("random", 1),
        ("replay", 1),
        ("resolver", 1),
        ("sockopt", 1),
        ("transparent", 1),
        ("balance", 2),
        ("body", 2),
        ("tls", 2),
        ("stream", 3),
        ("reality", 4),
        ("relay", 4),
        ("roads", 4),
        ("transport", 4),
        ("udp", 4),
        ("mux", 5),
        ("upstream", 5),
        ("observe", 5),
        ("outbound", 5),
        ("dispatch", 6),
        ("inbound", 7),
        ("check", 8),
        ("gateway", 8),
        ("engine", 8),
        ("keeper", 8),
        ("control", 10),
        ("monitor", 9),
        ("routes", 9),
        ("server", 11),
    ],
    exceptions: &[],
    closed: &[],
};

// Links know nothing of configurations: `config` turns outbounds into links, and links into outbounds.
const V2RAY: Floors = Floors {
    modules: &[
        ("error", 0),
        ("problem", 0),
        ("text", 0),
        ("step", 1),
        ("json", 1),
        ("address", 2),
        ("id", 2),
        ("replay", 2),
        ("gun", 3),
        ("shadowsocks", 3),
        ("h2", 4),
        ("http", 3),
        ("mux", 3),
        ("packet_addr", 3),
        ("proxy_protocol", 3),
        ("sniff", 3),
        ("socks", 3),
        ("trojan", 3),
        ("vless", 3),
        ("vmess", 3),
        ("link", 3),
        ("httpupgrade", 4),
        ("ws", 4),
        ("xhttp", 4),
        ("config", 5),
        ("fuzzing", 6),
    ],
    exceptions: &[],
    closed: &[],
};

/// The floors of a crate's modules, if it has any.
pub fn floors_of(package: &str) -> Option<&'static Floors> {
    match package {
        "sealway-aead" => Some(&AEAD),
        "sealway-proxy" => Some(&PROXY),
        "sealway-v2ray" => Some(&V2RAY),
        _ => None,
    }
}

impl Floors {
    /// The floor of a module.
    pub fn floor(&self, module: &str) -> Option<u8> {
        self.modules
            .iter()
            .find(|(known, _)| *known == module)
            .map(|(_, floor)| *floor)
    }

    fn may_use(&self, user: &str, used: &str) -> bool {
        if user == used || self.exceptions.contains(&(user, used)) {
            return true;
        }
        match (self.floor(user), self.floor(used)) {
            (Some(own), Some(other)) => other <= own && !self.closed.contains(&user),
            // Modules without a floor are reported as such.
            _ => true,
        }
    }
}

/// Uses against the floors, and modules that have none.
pub fn findings(floors: &Floors, krate: &Crate, root: &Path) -> Vec<String> {
    let unknown = krate.top_modules.iter().filter(|module| floors.floor(module).is_none());
    let mut findings: Vec<String> = unknown
        .map(|module| format!("module `{module}` has no floor; add it to scripts/checks/modules.rs"))
        .collect();
    findings.extend(krate.uses.iter().filter_map(|found| {
        let reason = violation(floors, krate, found)?;
        let file = found.place.file.strip_prefix(root).unwrap_or(&found.place.file);
        Some(format!("{}:{}: {reason}", file.display(), found.place.line))
    }));
    findings.sort();
    findings.dedup();
    findings
}

fn violation(floors: &Floors, krate: &Crate, found: &Use) -> Option<String> {
    // The root stands above all modules.
    let user = found.place.module.first()?;
    let named = found.path.join("::");
    let used = match found.path.first() {
        Some(first) if krate.top_modules.contains(first) => first,
        Some(first) if first != "*" => match krate.exports.iter().find(|(name, _)| name == first) {
            Some((_, behind)) => behind.first()?,
            None => {
                return Some(format!(
                    "module `{user}` uses `crate::{named}` of the crate's root, which stands above it; name the module that defines it"
                ));
            }
        },
        _ => {
            return Some(format!(
                "module `{user}` takes in the crate's root; name the modules it uses"
            ));
        }
    };
    if floors.may_use(user, used) {
        return None;
    }
    Some(format!(
        "module `{user}` may not use `{used}` (`crate::{named}`), which stands above it"
    ))
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::super::source::Place;
    use super::*;

    fn check(module: &str, path: &str) -> Vec<String> {
        let place = Place {
            module: vec![module.into()],
            file: PathBuf::from("src/x.rs"),
            line: 7,
        };
        let path = path.split("::").filter(|p| !p.is_empty()).map(str::to_string).collect();
        let krate = Crate {
            top_modules: AEAD.modules.iter().map(|(name, _)| name.to_string()).collect(),
            exports: vec![("SealingKey".into(), vec!["key".into(), "SealingKey".into()])],
            uses: vec![Use { place, path }],
            ..Crate::default()
        };
        findings(&AEAD, &krate, Path::new(""))
    }

    #[test]
    fn lower_and_equal_floors_may_be_used() {
        for (user, path) in [
            ("one", "key::SealingKey"),
            ("cpu", "suite"),
            ("key", "low::x"),
            ("low", "cpu::HaveAvx2"),
            ("one", "SealingKey"),
        ] {
            assert_eq!(check(user, path), [""; 0], "{user} {path}");
        }
    }

    #[test]
    fn higher_floors_may_not() {
        for (user, path) in [
            ("suite", "key::X"),
            ("low", "suite::Suite"),
            ("key", "one"),
            ("one", "batch::Job"),
            ("nonce", "SealingKey"),
        ] {
            let found = check(user, path);
            assert_eq!(found.len(), 1, "{user} {path}");
            assert!(
                found[0].starts_with("src/x.rs:7: ") && found[0].contains(user),
                "{found:?}"
            );
        }
    }

    #[test]
    fn the_proxy_goes_downwards_only() {
        let way = [
            "server",
            "engine",
            "inbound",
            "dispatch",
            "outbound",
            "transport",
            "stream",
            "tls",
            "settings",
        ];
        for pair in way.windows(2) {
            assert!(PROXY.may_use(pair[0], pair[1]), "{pair:?}");
            assert!(!PROXY.may_use(pair[1], pair[0]), "{pair:?}");
        }
    }

    #[test]
    fn the_root_is_above_everything() {
        for path in ["", "*", "Unknown"] {
            assert_eq!(check("batch", path).len(), 1, "{path:?}");
        }
    }

    #[test]
    fn a_module_without_a_floor_is_named() {
        let krate = Crate {
            top_modules: vec!["extra".into()],
            ..Crate::default()
        };
        assert!(findings(&AEAD, &krate, Path::new(""))[0].contains("extra"));
    }
}
