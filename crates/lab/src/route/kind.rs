//! What a program is, by what it says of itself: what it can carry, and how it is told to.

use std::ffi::OsString;
use std::path::Path;

/// The first version of V2Ray that takes `run -c FILE`.
const NEW_WORDS: u32 = 5;

/// What a program is.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Kind {
    /// Ours, which no program becomes by what it says: of ours more is known than it says.
    Sealway,
    Xray,
    V2Ray,
    /// V2Ray before version 5, which has other words.
    OldV2Ray,
    /// It reads configurations of its own form.
    SingBox,
    /// So does this one.
    Shoes,
    /// None of these: it is taken to have what Xray has.
    Other,
}

impl Kind {
    /// What a program is that says this of its version.
    pub(super) fn of(version: &str) -> Kind {
        let mut words = version.split_whitespace();
        let name = words.next().unwrap_or_default();
        let major = words
            .next()
            .and_then(|number| number.split('.').next()?.parse::<u32>().ok());
        match (name, major) {
            ("Xray", _) => Kind::Xray,
            ("V2Ray", Some(..NEW_WORDS)) => Kind::OldV2Ray,
            ("V2Ray", _) => Kind::V2Ray,
            ("sing-box", _) => Kind::SingBox,
            ("shoes", _) => Kind::Shoes,
            _ => Kind::Other,
        }
    }

    /// Whether a peer of this name is of this kind.
    pub(super) fn is_called(self, name: &str) -> bool {
        let own = match self {
            Kind::Xray => "xray",
            Kind::V2Ray | Kind::OldV2Ray => "v2ray",
            Kind::SingBox => "sing-box",
            Kind::Shoes => "shoes",
            Kind::Sealway | Kind::Other => return false,
        };
        own == name
    }

    /// The arguments that run a configuration.
    pub(super) fn arguments(self, config: &Path) -> Vec<OsString> {
        let file = config.as_os_str().to_owned();
        match self {
            Kind::OldV2Ray => vec!["-config".into(), file],
            Kind::Shoes => vec!["--no-reload".into(), file],
            _ => vec!["run".into(), "-c".into(), file],
        }
    }

    /// What configurations leave different from our program.
    pub(super) fn differs(self) -> Vec<String> {
        const SUITE: &str =
            "its TLS library cannot be held to one suite of TLS 1.3: it takes AES-128-GCM where the CPU has AES";
        const COLLECTOR: &str = "its garbage collector has its defaults";
        let words: &[&str] = match self {
            Kind::Sealway => &[],
            Kind::Xray => &[
                "reads and seals at most 8 KiB at once",
                "its TLS library cannot be held to one suite of TLS 1.3: it takes AES-128-GCM where the CPU has AES, as \
                 the hello of a browser that it imitates lists it first",
                "that hello brings a share for ML-KEM, which its server is told not to take: all agree on X25519",
                COLLECTOR,
            ],
            Kind::V2Ray | Kind::OldV2Ray => &["reads and seals at most 2 KiB at once", SUITE, COLLECTOR],
            Kind::SingBox => &[
                "its configurations say the same in another form",
                "seals at most 15,000 B of VMess at once",
                SUITE,
                COLLECTOR,
            ],
            Kind::Shoes => &[
                "its configurations say the same in another form",
                "its TLS library cannot be held to one suite of TLS 1.3: it takes AES-256-GCM",
                "its TLS offers X25519MLKEM768, which its own server takes; all others agree on X25519",
                "its client does not verify the chain of the server's certificate",
            ],
            Kind::Other => &["how much it seals at once, and the suite of its TLS 1.3, are not known"],
        };
        words.iter().map(|&word| word.to_owned()).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_is_what_it_says() {
        for (version, kind) in [
            ("Xray 26.3.27 (Xray, Penetrates Everything.) Custom", Kind::Xray),
            ("V2Ray 4.34.0 (user) 20230518-074445", Kind::OldV2Ray),
            (
                "V2Ray 5.52.0 (V2Fly, a community-driven edition of V2Ray.)",
                Kind::V2Ray,
            ),
            ("V2Ray", Kind::V2Ray),
            ("V2Ray dev", Kind::V2Ray),
            ("sing-box version 1.14.1", Kind::SingBox),
            ("shoes 0.3.2", Kind::Shoes),
            ("sealway 0.1.0", Kind::Other),
            ("V2RayN 4.0", Kind::Other),
            ("", Kind::Other),
        ] {
            assert_eq!(Kind::of(version), kind, "{version}");
        }
    }

    #[test]
    fn who_has_other_words_is_known() {
        let words = |kind: Kind| kind.arguments(Path::new("c.json"));
        assert_eq!(words(Kind::OldV2Ray), ["-config", "c.json"]);
        assert_eq!(words(Kind::Shoes), ["--no-reload", "c.json"]);
        for kind in [Kind::Sealway, Kind::Xray, Kind::V2Ray, Kind::SingBox, Kind::Other] {
            assert_eq!(words(kind), ["run", "-c", "c.json"], "{kind:?}");
        }
    }
}
