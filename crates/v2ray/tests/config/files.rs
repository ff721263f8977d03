use sealway_v2ray::config::{File, Listen, Options, load};

use super::*;

fn several(files: &[(&str, &str)]) -> Loaded {
    let files: Vec<File<'_>> = files
        .iter()
        .map(|(name, text)| File {
            name,
            text: text.as_bytes(),
        })
        .collect();
    load(&files, &Options::default())
}

fn tags(config: &Config) -> (Vec<&str>, Vec<&str>) {
    let inbounds = config.inbounds.iter().map(|i| i.tag.as_str()).collect();
    (inbounds, config.outbounds.iter().map(|o| o.tag.as_str()).collect())
}

const BASE: &str = r#"{"log":{"loglevel":"debug"},"env":{"A":"1","B":"2"},
    "inbounds":[{"tag":"a","port":1,"protocol":"socks"},{"port":2,"protocol":"socks"}],
    "outbounds":[{"tag":"x","protocol":"freedom"},{"protocol":"freedom"}]}"#;

#[test]
fn later_files_go_over_earlier_ones() {
    let over = r#"{"log":{"access":"none"},"env":{"B":"3"},
        "inbounds":[{"tag":"b","port":3,"protocol":"http"},{"tag":"a","port":4,"protocol":"http"},{"port":5,"protocol":"http"}],
        "outbounds":[{"tag":"y","protocol":"blackhole"},{"tag":"x","protocol":"blackhole"},{"tag":"z","protocol":"freedom"}]}"#;
    let loaded = several(&[("1.json", BASE), ("2.json", over)]);
    assert_eq!(told(&loaded), Vec::<String>::new());
    let config = loaded.config.unwrap();
    // New inbounds behind, new outbounds in front and in their order, equal tags in place.
    assert_eq!(tags(&config), (vec!["a", "", "b"], vec!["y", "z", "x", ""]));
    let ports: Vec<u16> = config
        .inbounds
        .iter()
        .map(|inbound| match &inbound.listen {
            Listen::Ip { ports, .. } => ports.iter().next().unwrap(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(ports, [4, 5, 3]);
    // Objects are replaced whole, `env` is not.
    assert_eq!(config.log.level.as_str(), "warning");
    assert_eq!(
        config.env.into_iter().collect::<Vec<_>>(),
        [("A".into(), "1".into()), ("B".into(), "3".into())]
    );
    assert_eq!((config.inbounds[0].at.file, config.inbounds[0].at.line), (1, 2));
}

#[test]
fn a_file_named_tail_appends_its_outbounds() {
    let over = r#"{"outbounds":[{"tag":"y","protocol":"blackhole"},{"tag":"x","protocol":"blackhole"}]}"#;
    for (name, wanted) in [("99_TAIL.json", ["x", "", "y"]), ("tail/99.json", ["y", "x", ""])] {
        let loaded = several(&[("1.json", BASE), (name, over)]);
        assert_eq!(tags(&loaded.config.unwrap()).1, wanted, "{name}");
    }
}

#[test]
fn problems_name_their_file() {
    let loaded = several(&[
        ("1.json", BASE),
        ("2.json", "{\n \"outbounds\": [{\"protocol\": \"fredom\"}]}"),
    ]);
    assert_eq!(
        told(&loaded),
        ["2.json:2:29: error: outbounds[1].protocol: \"fredom\" is not known here (did you mean \"freedom\"?)"]
    );
    let loaded = several(&[("1.json", "{"), ("2.json", "[1,]")]);
    assert_eq!(loaded.problems.len(), 2);
    assert!(loaded.config.is_none());
    assert_eq!(
        told(&several(&[])),
        [":0:0: error: there is no configuration (name a file with -c)"]
    );
    let loaded = several(&[("1.json", BASE), ("2.json", "[]")]);
    assert_eq!(
        told(&loaded),
        ["2.json:1:1: error: an object is expected here, not an array"]
    );
}
