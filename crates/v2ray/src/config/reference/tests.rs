use super::*;
use crate::config::context::Cx;
use crate::config::json::read;
use crate::config::table::Key;

/// The page that is kept in step with the tables.
fn page() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/config.md")
}

#[test]
fn the_reference_page_is_up_to_date() {
    let wanted = reference();
    if std::env::var_os("SEALWAY_BLESS").is_some() {
        std::fs::create_dir_all(page().parent().unwrap()).unwrap();
        std::fs::write(page(), &wanted).unwrap();
    }
    let found = std::fs::read_to_string(page()).unwrap_or_default();
    assert!(
        found == wanted,
        "docs/reference/config.md is out of date; SEALWAY_BLESS=1 cargo test -p sealway-v2ray reference writes it anew"
    );
}

#[test]
fn no_two_keys_of_an_object_have_the_same_name() {
    for object in objects() {
        let mut names: Vec<String> = Vec::new();
        for key in object.keys {
            names.push(key.name.to_lowercase());
            names.extend(key.aliases.iter().map(|alias| alias.to_lowercase()));
        }
        names.extend(object.others.iter().map(|other| other.name.to_lowercase()));
        let count = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), count, "{}", object.title);
    }
}

#[test]
fn every_key_has_a_meaning_and_every_default_is_json() {
    assert!(objects().len() > 30);
    for object in objects() {
        assert!(!object.about.is_empty(), "{}", object.title);
        for Key {
            name,
            meaning,
            presence,
            ..
        } in object.keys
        {
            assert!(
                meaning.first().is_some_and(|line| !line.trim().is_empty()),
                "{}.{name}",
                object.title
            );
            if let Presence::Default(json) = presence {
                assert!(read(json.as_bytes(), 0).is_ok(), "{}.{name}", object.title);
            }
        }
    }
}

#[test]
fn an_empty_object_has_all_defaults_without_a_problem() {
    macro_rules! check {
        ($($Type:ty),*) => {$(
            let mut cx = Cx::new(&["f"], true, &|_| None);
            let value = read(b"{}", 0).unwrap().value;
            assert!(<$Type>::decode(value, &mut cx).is_some(), stringify!($Type));
            assert_eq!(cx.finish(), []);
        )*};
    }
    check!(
        crate::config::Log,
        crate::config::LevelPolicy,
        crate::config::Policy,
        crate::config::SystemPolicy,
        crate::config::Dns,
        crate::config::Routing,
        crate::config::Sockopt,
        crate::config::Stream,
        crate::config::Tls,
        crate::config::Sniffing,
        crate::config::Mux,
        crate::config::FreedomSettings,
        crate::config::DokodemoSettings,
        crate::config::SocksSettings,
        crate::config::HttpSettings
    );
}
