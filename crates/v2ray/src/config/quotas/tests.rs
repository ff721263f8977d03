use crate::config::{Config, File, InboundProtocol, Limits, Loaded, Options, load};
use crate::problem::Severity;

const ID: [&str; 2] = [
    "11111111-2222-4333-8444-555555555555",
    "11111111-2222-4333-8444-666666666666",
];

fn read(text: &str) -> Loaded {
    let file = File {
        name: "config.json",
        text: text.as_bytes(),
    };
    load(&[file], &Options::default())
}

/// A configuration of one VLESS inbound with these users, this level and these stats.
fn text(users: &str, level: &str, stats: &str) -> String {
    format!(
        r#"{{"policy": {{"levels": {{"0": {{{level}}}}}}}, "stats": {{{stats}}},
"inbounds": [{{"listen": "127.0.0.1", "port": 1, "protocol": "vless", "settings": {{"decryption": "none", "clients": [
{users}]}}}}],
"outbounds": [{{"protocol": "freedom"}}]}}"#
    )
}

fn right(text: &str) -> Config {
    let loaded = read(text);
    loaded.config.unwrap_or_else(|| panic!("{text}: {:?}", loaded.problems))
}

/// The first problem: line, column and words.
fn wrong(text: &str) -> (u32, u32, String) {
    let loaded = read(text);
    let problem = loaded.problems.first().unwrap_or_else(|| panic!("{text} is right"));
    assert_eq!(problem.severity, Severity::Error, "{problem:?}");
    (problem.line, problem.column, format!("{problem:?}"))
}

#[test]
fn limits_of_a_user_go_before_those_of_the_level() {
    let user = format!(
        r#"{{"id": "{}", "email": "a", "uplinkMbps": 0.5, "maxIPs": 0, "quotaResetDay": 31}}"#,
        ID[0]
    );
    let level =
        r#""maxConnections": 10, "maxIPs": 3, "uplinkMbps": 50, "downlinkMbps": 200, "burstKiB": 64, "quotaGiB": 1.5"#;
    let config = right(&text(&user, level, r#""store": "usage.db""#));
    let level = config.policy.level(0).limits();
    let whole = Limits {
        connections: Some(10),
        addresses: Some(3),
        uplink: Some(6_250_000),
        downlink: Some(25_000_000),
        burst: Some(65_536),
        quota: Some(3 << 29),
        reset_day: None,
    };
    assert_eq!(level, whole);
    let InboundProtocol::Vless(vless) = &config.inbounds[0].protocol else {
        panic!()
    };
    let wanted = Limits {
        addresses: Some(0),
        uplink: Some(62_500),
        reset_day: Some(31),
        ..whole
    };
    assert_eq!(vless.users[0].user.limits.or(level), wanted);
    assert_eq!(config.policy.level(1).limits(), Limits::default());
}

#[test]
fn every_protocol_with_users_reads_their_limits() {
    for (settings, protocol) in [
        (
            format!(
                r#""decryption": "none", "clients": [{{"id": "{}", "email": "a", "uplinkMbps": -1}}]"#,
                ID[0]
            ),
            "vless",
        ),
        (
            format!(r#""clients": [{{"id": "{}", "email": "a", "uplinkMbps": -1}}]"#, ID[0]),
            "vmess",
        ),
        (
            r#""clients": [{"password": "p", "email": "a", "uplinkMbps": -1}]"#.to_owned(),
            "trojan",
        ),
        (
            r#""clients": [{"method": "aes-128-gcm", "password": "p", "email": "a", "uplinkMbps": -1}]"#.to_owned(),
            "shadowsocks",
        ),
    ] {
        let config = |settings: &str| {
            format!(
                r#"{{"inbounds": [{{"listen": "127.0.0.1", "port": 1, "protocol": "{protocol}", "settings": {{{settings}}}}}],
                "outbounds": [{{"protocol": "freedom"}}]}}"#
            )
        };
        assert!(wrong(&config(&settings)).2.contains("uplinkMbps"), "{protocol}");
        right(&config(&settings.replace(": -1", ": 1e1")));
    }
}

#[test]
fn numbers_that_are_none_are_refused_where_they_stand() {
    for key in [
        r#""maxConnections": -1"#,
        r#""maxIPs": 1.5"#,
        r#""uplinkMbps": 0.009"#,
        r#""downlinkMbps": 2e6"#,
        r#""downlinkMbps": "50""#,
        r#""burstKiB": -1"#,
        r#""quotaGiB": 1e300"#,
        r#""quotaResetDay": 0"#,
        r#""quotaResetDay": 32"#,
    ] {
        let name = key.split('"').nth(1).unwrap();
        let (line, column, words) = wrong(&text("", key, ""));
        assert_eq!(line, 1, "{key}");
        assert!(column > 30 && words.contains(name), "{key}: {words}");
    }
}

#[test]
fn limits_need_a_name_and_a_quota_a_store() {
    let user = |email: &str, more: &str| format!(r#"{{"id": "{}", "email": "{email}"{more}}}"#, ID[0]);
    let own = user("a", r#", "quotaGiB": 1"#);
    let (line, _, words) = wrong(&text(&own, "", ""));
    assert!(line == 3 && words.contains("stats.store"), "{line} {words}");
    let (.., words) = wrong(&text(&user("a", ""), r#""quotaGiB": 1"#, ""));
    assert!(words.contains("stats.store"), "{words}");
    let (line, _, words) = wrong(&text(&user("", ""), r#""quotaGiB": 1"#, r#""store": "x.db""#));
    assert!(line == 3 && words.contains("without a name"), "{line} {words}");
    for limit in [r#""maxIPs": 2"#, r#""uplinkMbps": 5"#] {
        let (line, _, words) = wrong(&text(&user("", ""), limit, ""));
        assert!(line == 3 && words.contains("without a name"), "{line} {words}");
        let (line, _, words) = wrong(&text(&user("", &format!(", {limit}")), "", ""));
        assert!(line == 3 && words.contains("without a name"), "{line} {words}");
    }
    // A level whose users come while it runs.
    let (line, column, words) = wrong(&text("", r#""quotaGiB": 1"#, ""));
    assert!(
        line == 1 && column > 30 && words.contains("level 0") && words.contains("stats.store"),
        "{line}:{column} {words}"
    );
    right(&text("", r#""quotaGiB": 0"#, ""));
    right(&text("", r#""quotaGiB": 1"#, r#""store": "x.db""#));
    right(&text(&user("", ""), r#""maxIPs": 0"#, ""));
    right(&text(&own, "", r#""store": "x.db", "node": "paris-1""#));
    right(&text(&user("a", r#", "quotaGiB": 0"#), r#""quotaGiB": 1"#, ""));
}

#[test]
fn a_store_is_a_path_or_a_database_and_its_password_is_not_shown() {
    let url = "postgres://u:secret@host/db";
    let config = right(&text("", "", &format!(r#""store": "{url}""#)));
    assert!(!format!("{config:?}").contains("secret"));
    assert_eq!(
        read(&text("", "", &format!(r#""store": "{url}""#)))
            .files_with_secrets()
            .len(),
        1
    );
    for store in ["mysql://u:secret@h/db", "redis://secret"] {
        let (line, _, words) = wrong(&text("", "", &format!(r#""store": "{store}""#)));
        assert!(
            line == 1 && words.contains("stats.store") && !words.contains("secret"),
            "{words}"
        );
    }
    for node in [&"x".repeat(65), "a\\nb"] {
        assert!(
            wrong(&text("", "", &format!(r#""node": "{node}""#)))
                .2
                .contains("stats.node")
        );
    }
}

#[test]
fn one_user_with_different_limits_in_two_inbounds_is_told_of() {
    let inbound = |id: &str, mbps: u32, port: u32| {
        format!(
            r#"{{"listen": "127.0.0.1", "port": {port}, "protocol": "vmess", "settings": {{"clients": [
            {{"id": "{id}", "email": "A@b", "uplinkMbps": {mbps}}}]}}}}"#
        )
    };
    let two = |first, second| {
        format!(
            r#"{{"inbounds": [{}, {}], "outbounds": [{{"protocol": "freedom"}}]}}"#,
            inbound(ID[0], first, 1),
            inbound(ID[1], second, 2)
        )
    };
    assert_eq!(read(&two(5, 5)).problems, []);
    let problems = read(&two(5, 6)).problems;
    assert!(
        problems.len() == 1 && problems[0].severity == Severity::Warning,
        "{problems:?}"
    );
}
