use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use sealway_v2ray::shadowsocks::{Key, Method};
use sealway_v2ray::{UserId, trojan};

use super::*;
use crate::settings::{self, Account, InboundProtocol, ShadowsocksIn, ShadowsocksUser, ShadowsocksUsers};
use crate::stats::Stats;

const PSK: &str = "AAECAwQFBgcICQoLDA0ODw==";

fn account(kind: &str, number: u32) -> NewAccount {
    use base64::Engine;
    let secret = base64::engine::general_purpose::STANDARD.encode([number.to_be_bytes(); 4].as_flattened());
    let id = UserId::from_bytes([number.to_be_bytes(); 4].as_flattened().try_into().unwrap());
    match kind {
        "vless" => NewAccount::Vless(id, Default::default(), Default::default()),
        "vmess" => NewAccount::Vmess(id),
        "trojan" => NewAccount::Trojan(trojan::Key::of_password(&secret)),
        "shadowsocks" | "2022" => NewAccount::ShadowsocksPassword(None, secret),
        _ => NewAccount::Login(Account {
            user: secret,
            pass: "p".into(),
        }),
    }
}

fn user(email: &str, account: NewAccount) -> NewUser {
    NewUser {
        email: email.into(),
        level: 3,
        account,
    }
}

const KINDS: [&str; 7] = ["vless", "vmess", "trojan", "shadowsocks", "2022", "socks", "http"];

/// An inbound of each kind that knows one user without an e-mail, and the kind.
fn inbounds(stats: &Stats) -> Vec<(&'static str, Box<dyn super::super::Protocol>)> {
    let login = || {
        vec![Account {
            user: String::new(),
            pass: "first".into(),
        }]
    };
    let shadowsocks = |users| {
        InboundProtocol::Shadowsocks(ShadowsocksIn {
            users,
            tcp: true,
            udp: true,
            once: false,
        })
    };
    let one = |method, password| ShadowsocksUser {
        id: Key::new(method, password).unwrap(),
        email: String::new(),
        level: 0,
    };
    let make = |kind| match kind {
        "vless" => InboundProtocol::Vless(Default::default()),
        "vmess" => InboundProtocol::Vmess(Default::default()),
        "trojan" => InboundProtocol::Trojan(Default::default()),
        "shadowsocks" => shadowsocks(ShadowsocksUsers::Classic(vec![one(Method::Aes128Gcm, "first")])),
        "2022" => shadowsocks(ShadowsocksUsers::Many(
            Key::new(Method::Blake3Aes128Gcm, PSK).unwrap(),
            Vec::new(),
        )),
        "socks" => InboundProtocol::Socks(settings::Socks {
            accounts: login(),
            ..Default::default()
        }),
        _ => InboundProtocol::Http(settings::HttpProxy {
            accounts: login(),
            ..Default::default()
        }),
    };
    let levels = Levels::default();
    let protocol = |kind| super::super::protocol(&make(kind), &Users::of(&levels, stats)).unwrap();
    KINDS.map(|kind| (kind, protocol(kind))).into()
}

#[test]
fn the_words_and_rules_of_every_protocol() {
    let stats = Stats::default();
    for (kind, inbound) in inbounds(&stats) {
        let users = inbound.users().unwrap();
        let taken = |user: &NewUser| match users.add(user) {
            Ok(()) => "added",
            Err(Unchanged::Taken) => "e-mail",
            Err(Unchanged::Wire(_)) => "account",
            Err(Unchanged::Other(_)) => "kind",
            Err(_) => "?",
        };
        assert_eq!(taken(&user("A@b", account(kind, 1))), "added", "{kind}");
        assert_eq!(taken(&user("a@B", account(kind, 2))), "e-mail", "{kind}");
        assert_eq!(taken(&user("c", account(kind, 1))), "account", "{kind}");
        assert_eq!(taken(&user("", account(kind, 3))), "added", "{kind}");
        assert_eq!(taken(&user("", account(kind, 3))), "account", "{kind}");
        for other in KINDS {
            let fits = account(other, 9);
            let alike = std::mem::discriminant(&fits) == std::mem::discriminant(&account(kind, 9));
            if !alike {
                assert_eq!(taken(&user("d", fits)), "kind", "{kind} {other}");
            }
        }
        // Of those who have e-mails.
        assert_eq!(users.count(), 1, "{kind}");
        assert_eq!(users.list(), [("A@b".to_owned(), 3)], "{kind}");
        assert_eq!(users.find("a@b"), Some(("A@b".to_owned(), 3)), "{kind}");
        assert!(users.find("c").is_none() && users.find("").is_none(), "{kind}");
        assert!(matches!(users.remove(""), Err(Unchanged::NoEmail)), "{kind}");
        assert!(matches!(users.remove("c"), Err(Unchanged::Unknown)), "{kind}");
        users.remove("a@B").unwrap();
        assert!(matches!(users.remove("a@B"), Err(Unchanged::Unknown)), "{kind}");
        // What he had is free.
        assert_eq!(taken(&user("c", account(kind, 1))), "added", "{kind}");
        users.remove("C").unwrap();
        assert!(
            stats.people().find("a@b").is_none() && stats.people().find("c").is_none(),
            "{kind}"
        );
    }
}

#[test]
fn what_a_method_does_not_take_is_said() {
    let stats = Stats::default();
    for (kind, inbound) in inbounds(&stats) {
        let users = inbound.users().unwrap();
        let with =
            |method, password: &str| users.add(&user("a", NewAccount::ShadowsocksPassword(method, password.into())));
        match kind {
            "2022" => {
                assert!(matches!(with(None, "no base64"), Err(Unchanged::Wire(_))));
                assert!(matches!(with(Some(Method::Aes128Gcm), "x"), Err(Unchanged::Other(_))));
            }
            "shadowsocks" => {
                assert!(matches!(with(None, ""), Err(Unchanged::Wire(_))));
                assert!(matches!(
                    with(Some(Method::Blake3Aes128Gcm), PSK),
                    Err(Unchanged::Other(_))
                ));
                assert!(with(Some(Method::Aes256Gcm), "x").is_ok());
            }
            _ => {}
        }
    }
}

/// A table is what a plain map is, whatever comes and goes in whatever order.
#[test]
fn a_table_is_a_map() {
    let stats = Stats::default();
    for (kind, inbound) in inbounds(&stats) {
        let users = inbound.users().unwrap();
        let mut map: BTreeMap<String, u32> = BTreeMap::new();
        let mut random = 7_u32;
        for _ in 0..2_000 {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let (number, email) = ((random >> 8) % 40, format!("u{}", (random >> 16) % 40));
            if random >> 31 == 0 {
                let free = !map.contains_key(&email) && !map.values().any(|own| *own == number + 10);
                assert_eq!(
                    users.add(&user(&email, account(kind, number + 10))).is_ok(),
                    free,
                    "{kind}"
                );
                if free {
                    map.insert(email, number + 10);
                }
            } else {
                assert_eq!(users.remove(&email).is_ok(), map.remove(&email).is_some(), "{kind}");
            }
        }
        let mut left: Vec<_> = users.list().into_iter().map(|(email, _)| email).collect();
        left.sort();
        assert_eq!(left, map.into_keys().collect::<Vec<_>>(), "{kind}");
    }
}

/// 10,000 users are added while connections look for theirs: each is found from when he was added until he is removed.
#[test]
fn connections_find_theirs_while_10_000_are_added() {
    let (stats, levels) = (Stats::default(), Levels::default());
    let known = sealway_v2ray::vless::Users::new();
    struct Ids(sealway_v2ray::vless::Users<Arc<Member>>);
    impl Table for Ids {
        type Name = UserId;
        fn name(&self, account: &NewAccount) -> Result<UserId, Unchanged> {
            match account {
                NewAccount::Vless(id, ..) => Ok(*id),
                _ => Err(Unchanged::Other("")),
            }
        }
        fn insert(&mut self, id: &UserId, _: &NewAccount, member: Arc<Member>) -> Result<(), Unchanged> {
            Ok(self.0.insert(*id, member)?)
        }
        fn remove(&mut self, name: &UserId) {
            self.0.remove(name);
        }
    }
    let roster = Roster::new(Ids(known), [], &Users::of(&levels, &stats)).unwrap();
    let id = |number| match account("vless", number) {
        NewAccount::Vless(id, ..) => id,
        _ => unreachable!(),
    };
    roster.add(&user("first", account("vless", 1_000_000))).unwrap();
    let (over, looks) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                while !over.load(Ordering::Relaxed) {
                    let found = roster
                        .read()
                        .0
                        .find(&id(1_000_000))
                        .map(|found| found.user.email().to_owned());
                    assert_eq!(found.as_deref(), Some("first"));
                    looks.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        for number in 0..10_000 {
            roster
                .add(&user(&format!("u{number}"), account("vless", number)))
                .unwrap();
            assert!(roster.read().0.find(&id(number)).is_some());
            if number % 3 == 0 {
                roster.remove(&format!("U{number}")).unwrap();
                assert!(roster.read().0.find(&id(number)).is_none());
            }
        }
        over.store(true, Ordering::Relaxed);
    });
    assert!(looks.into_inner() > 100);
    assert_eq!(roster.count(), 6_667);
    drop(roster);
    assert!(stats.people().find("u1").is_none() && stats.people().find("first").is_none());
}
