//! Tests against a real server, which the tests start for themselves.

mod gate;

use std::time::Duration;

use gate::{Gate, Mode};

use crate::testing::{PASSWORD, Real};
use crate::{Ask, Error, Ledger, Node, Store, Sum};

async fn open(url: &str, node: &str) -> Result<Ledger, Error> {
    Ledger::open(&Store::parse(url).unwrap(), Node::new(node).unwrap()).await
}

async fn sum(ledger: &Ledger, user: &str) -> (u64, u64) {
    let sums = ledger.exchange(&[Ask::new(user, 0)]).await.unwrap();
    (sums[0].up, sums[0].down)
}

/// A moment whose sums are not old.
fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

#[tokio::test]
async fn many_nodes_write_to_one_and_read_the_sum_of_all() {
    let Some(real) = Real::get() else { return };
    let url = real.database("many");
    let day = now();
    let writers = (0..4).map(|node| {
        let url = url.clone();
        tokio::spawn(async move {
            // Two of them have the same name, as a process and the one that takes over from it.
            let ledger = open(&url, &format!("node {}", node / 2)).await.unwrap();
            for _ in 0..5 {
                for user in 0..300 {
                    ledger.add(&format!("user {user}"), day, 1, 10).unwrap();
                }
                ledger.add("old", day - 100, 1, 0).unwrap();
                ledger.exchange(&[]).await.unwrap();
            }
            ledger
        })
    });
    let mut ledgers = Vec::new();
    for writer in writers.collect::<Vec<_>>() {
        ledgers.push(writer.await.unwrap());
    }
    let asked = [
        Ask::new("user 299", day),
        Ask::new("nobody", 0),
        Ask::new("old", day),
        Ask::new("old", day - 100),
    ];
    let sums = ledgers[0].exchange(&asked).await.unwrap();
    let wanted = [(20, 200), (0, 0), (0, 0), (20, 0)].map(|(up, down)| Sum { up, down });
    assert_eq!(sums, wanted);
}

#[tokio::test]
async fn a_batch_whose_answer_was_lost_counts_once() {
    let Some(real) = Real::get() else { return };
    let gate = Gate::before(real.port).await;
    let ledger = open(&gate.url(&real.database("lost")), "a").await.unwrap();
    let direct = open(&real.database("lost"), "b").await.unwrap();
    // The process is known to the server: the next that it asks for is the batch.
    ledger.add("bob", now(), 1, 0).unwrap();
    for round in 1..=3 {
        assert_eq!(sum(&ledger, "anna").await.0, round - 1);
        ledger.add("anna", now(), 1, 0).unwrap();
        gate.set(Mode::NoAnswers);
        let error = ledger.exchange(&[]).await.unwrap_err();
        assert!(error.may_pass(), "{error}");
        while sum(&direct, "anna").await.0 < round {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        gate.set(Mode::Open);
    }
    assert_eq!(sum(&ledger, "anna").await.0, 3);
    assert_eq!(ledger.waits(), 0);
}

#[tokio::test]
async fn what_is_used_while_the_database_is_away_waits_as_sums() {
    let Some(real) = Real::get() else { return };
    let gate = Gate::before(real.port).await;
    gate.set(Mode::Closed);
    // It may be away from the start.
    let ledger = open(&gate.url(&real.database("away")), "a").await.unwrap();
    for _ in 0..100 {
        for user in ["anna", "bob"] {
            ledger.add(user, 4_000_000_000, 1, 2).unwrap();
        }
        let error = ledger.exchange(&[Ask::new("anna", 0)]).await.unwrap_err();
        assert!(error.may_pass(), "{error}");
    }
    assert_eq!(ledger.waits(), 4, "a batch that was tried, and what came since");
    gate.set(Mode::Open);
    assert_eq!(sum(&ledger, "anna").await, (100, 200));
    assert_eq!(sum(&ledger, "bob").await, (100, 200));
    // It is restarted while we are connected.
    gate.set(Mode::Closed);
    ledger.add("anna", 4_000_000_000, 1, 0).unwrap();
    assert!(ledger.exchange(&[]).await.is_err());
    gate.set(Mode::Open);
    assert_eq!(sum(&ledger, "anna").await, (101, 200));
}

#[tokio::test]
async fn a_process_whose_row_was_deleted_gets_another() {
    let Some(real) = Real::get() else { return };
    let url = real.database("row");
    let ledger = open(&url, "a").await.unwrap();
    for round in 1..=2 {
        ledger.add("anna", now(), 1, 0).unwrap();
        assert_eq!(sum(&ledger, "anna").await.0, round);
        real.sql("row", "DELETE FROM sealway.writer");
    }
}

#[tokio::test]
async fn tables_of_later_versions_and_of_others_are_refused() {
    let Some(real) = Real::get() else { return };
    let url = real.database("newer");
    drop(open(&url, "a").await.unwrap());
    real.sql("newer", "UPDATE sealway.version SET version = 7");
    let error = open(&url, "a").await.unwrap_err();
    assert!(matches!(error, Error::Newer { version: 7, .. }), "{error}");
    real.sql("newer", "DELETE FROM sealway.version");
    let error = open(&url, "a").await.unwrap_err();
    assert!(matches!(error, Error::Foreign(_)), "{error}");
}

#[tokio::test]
async fn a_name_that_cannot_be_held_keeps_nobody_back() {
    let Some(real) = Real::get() else { return };
    let ledger = open(&real.database("names"), "a").await.unwrap();
    // So long, and not to be made shorter.
    let hex = |number: u64| format!("{:x}ж", number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
    let long: String = (1..1000).map(hex).collect();
    for name in ["anna", "bo\0b", &long] {
        ledger.add(name, now(), 1, 0).unwrap();
    }
    for name in ["anna", "bo\0b", &long] {
        assert_eq!(sum(&ledger, name).await.0, 1);
    }
    real.sql("postgres", "CREATE DATABASE latin ENCODING 'LATIN1' TEMPLATE template0");
    let error = open(&real.database("latin"), "a").await.unwrap_err();
    assert!(
        matches!(&error, Error::Refused(why) if why.contains("LATIN1")),
        "{error}"
    );
}

#[tokio::test]
async fn what_is_old_is_deleted_after_a_write_and_holds_none_up() {
    let Some(real) = Real::get() else { return };
    let url = real.database("old");
    drop(open(&url, "a").await.unwrap());
    real.sql(
        "old",
        "INSERT INTO sealway.used VALUES ('anna', 0, 'a', 7, 0); \
         CREATE FUNCTION sealway.no() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE ''no''; END'; \
         CREATE TRIGGER no BEFORE DELETE ON sealway.used EXECUTE FUNCTION sealway.no()",
    );
    let ledger = open(&url, "a").await.unwrap();
    ledger.add("anna", now(), 1, 0).unwrap();
    assert_eq!(sum(&ledger, "anna").await.0, 8);
    real.sql("old", "DROP TRIGGER no ON sealway.used");
    let ledger = open(&url, "a").await.unwrap();
    ledger.add("anna", now(), 1, 0).unwrap();
    assert_eq!(sum(&ledger, "anna").await.0, 2);
}

#[tokio::test]
async fn an_address_without_a_name_is_enough() {
    let Some(real) = Real::get() else { return };
    let url = real.database("address");
    let url = url.replace(&format!("127.0.0.1:{}", real.port), "");
    for mode in ["disable", "prefer", "require"] {
        let place = format!("hostaddr=127.0.0.1&port={}&sslmode={mode}", real.port);
        let ledger = open(&format!("{url}?{place}"), "a").await.unwrap();
        assert_eq!(sum(&ledger, "anna").await, (0, 0));
    }
}

#[tokio::test]
async fn a_server_that_refuses_us_says_so_at_once_and_passwords_are_not_shown() {
    let Some(real) = Real::get() else { return };
    let url = real.database("refuses");
    for (wrong, what) in [
        (url.replace(PASSWORD, "swordfish"), "password"),
        (url.replace("/refuses", "/no_such_database"), "no_such_database"),
        (url.replace("sealway:", "stranger:"), "stranger"),
    ] {
        let error = open(&wrong, "a").await.unwrap_err();
        assert!(matches!(error, Error::Refused(_)), "{error}");
        let text = error.to_string();
        assert!(
            text.contains(what) && !text.contains("swordfish") && !text.contains(PASSWORD),
            "{text}"
        );
    }
    // Somebody who may not write into the tables.
    drop(open(&url, "a").await.unwrap());
    real.sql(
        "refuses",
        "GRANT USAGE ON SCHEMA sealway TO reader; GRANT SELECT ON ALL TABLES IN SCHEMA sealway TO reader",
    );
    let ledger = open(&url.replace("sealway:", "reader:"), "a").await.unwrap();
    ledger.add("anna", now(), 1, 0).unwrap();
    let error = ledger.exchange(&[]).await.unwrap_err();
    assert!(
        matches!(&error, Error::Refused(why) if why.contains("permission denied")),
        "{error}"
    );
}

#[tokio::test]
async fn tls_is_asked_for_what_libpq_asks() {
    let Some(real) = Real::get() else { return };
    let url = real.database("tls");
    let (ours, other) = (real.authority.display(), real.other_authority.display());
    let by_name = |parameters: &str| format!("{}?{parameters}", url.replace("127.0.0.1", "localhost"));
    let by_address = |parameters: &str| format!("{url}?{parameters}");
    for right in [
        by_address("sslmode=prefer"),
        by_address("sslmode=require"),
        by_address(&format!("sslmode=verify-ca&sslrootcert={ours}")),
        by_address(&format!("sslmode=require&sslrootcert={ours}")),
        by_name(&format!("sslmode=verify-full&sslrootcert={ours}")),
    ] {
        let ledger = open(&right, "a")
            .await
            .unwrap_or_else(|error| panic!("{right}: {error}"));
        assert_eq!(sum(&ledger, "anna").await, (0, 0), "{right}");
        assert_eq!(real.encrypted("tls"), "t", "{right}");
        ledger.close().await.unwrap();
        while !real.encrypted("tls").is_empty() {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
    let plain = open(&by_address("sslmode=disable"), "a").await.unwrap();
    assert_eq!(real.encrypted("tls"), "f");
    plain.close().await.unwrap();
    for wrong in [
        by_address(&format!("sslmode=verify-full&sslrootcert={ours}")),
        by_address(&format!("sslmode=verify-ca&sslrootcert={other}")),
        by_address(&format!("sslmode=require&sslrootcert={other}")),
        by_address("sslmode=verify-ca"),
    ] {
        let error = open(&wrong, "a").await.unwrap_err();
        assert!(matches!(error, Error::Refused(_)), "{wrong}: {error}");
    }
}

#[tokio::test]
async fn a_server_without_tls_gets_no_password_where_tls_is_required() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let port = listener.local_addr().unwrap().port();
    let server = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut wish = [0; 8];
        stream.read_exact(&mut wish).await.unwrap();
        stream.write_all(b"N").await.unwrap();
        let mut rest = Vec::new();
        stream.read_to_end(&mut rest).await.unwrap();
        rest
    });
    let error = open(&format!("postgres://u:p@127.0.0.1:{port}/db?sslmode=require"), "a")
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Refused(_)), "{error}");
    assert!(server.await.unwrap().is_empty());
}
