use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::*;

fn store(folder: &TempDir) -> Store {
    Store::parse(folder.path().join("usage.db").to_str().unwrap()).unwrap()
}

async fn open(store: &Store, node: &str) -> Result<Ledger, Error> {
    Ledger::open(store, Node::new(node).unwrap()).await
}

async fn sum(ledger: &Ledger, user: &str, since: i64) -> (u64, u64) {
    let sums = ledger.exchange(&[Ask::new(user, since)]).await.unwrap();
    (sums[0].up, sums[0].down)
}

/// A moment whose sums are not old.
fn now() -> i64 {
    jiff::Timestamp::now().as_second()
}

#[tokio::test]
async fn sums_are_there_when_the_file_is_opened_again() {
    let folder = TempDir::new().unwrap();
    let (store, day) = (store(&folder), now());
    let ledger = open(&store, "a").await.unwrap();
    ledger.add("anna", day, 1, 20).unwrap();
    ledger.add("anna", day, 1, 20).unwrap();
    ledger.add("anna", day - 100, 1000, 0).unwrap();
    ledger.add("bo\0b", day, 7, 0).unwrap();
    assert_eq!(ledger.waits(), 3);
    let asked = [Ask::new("nobody", 0), Ask::new("bo\0b", 0), Ask::new("anna", day)];
    let sums = ledger.exchange(&asked).await.unwrap();
    assert_eq!(sums, [Sum::default(), Sum { up: 7, down: 0 }, Sum { up: 2, down: 40 }]);
    assert_eq!(ledger.waits(), 0);
    ledger.add("anna", day, 5, 5).unwrap();
    ledger.close().await.unwrap();

    let ledger = open(&store, "b").await.unwrap();
    assert_eq!(sum(&ledger, "anna", day).await, (7, 45));
    assert_eq!(sum(&ledger, "anna", day - 100).await, (1007, 45), "later periods count");
    // Two processes may have it open.
    let other = open(&store, "a").await.unwrap();
    other.add("anna", day, 1, 0).unwrap();
    ledger.add("anna", day, 1, 0).unwrap();
    other.exchange(&[]).await.unwrap();
    assert_eq!(sum(&ledger, "anna", day).await, (9, 45));
}

#[tokio::test]
async fn only_its_owner_reads_the_file() {
    use std::os::unix::fs::PermissionsExt;
    let folder = TempDir::new().unwrap();
    let ledger = open(&store(&folder), "a").await.unwrap();
    ledger.add("anna", now(), 1, 1).unwrap();
    ledger.exchange(&[]).await.unwrap();
    let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().map(Result::unwrap).collect();
    assert!(files.len() >= 2, "the file and its log");
    for file in files {
        let mode = file.metadata().unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600, "{:?}", file.path());
    }
}

#[tokio::test]
async fn sums_of_long_ago_are_deleted() {
    let folder = TempDir::new().unwrap();
    let store = store(&folder);
    let old = now() - i64::from(KEPT_DAYS + 1) * 86_400;
    let ledger = open(&store, "a").await.unwrap();
    ledger.add("anna", old, 1, 0).unwrap();
    ledger.add("anna", old + 2 * 86_400, 2, 0).unwrap();
    ledger.close().await.unwrap();
    assert_eq!(sum(&open(&store, "a").await.unwrap(), "anna", 0).await, (2, 0));
}

#[tokio::test]
async fn a_file_that_cannot_be_used_is_refused_with_what_to_do() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    let refusal = async |name: &str| {
        let store = Store::parse(path(name).to_str().unwrap()).unwrap();
        let error = open(&store, "a").await.unwrap_err();
        assert!(error.to_string().contains(name), "{error}");
        error
    };

    assert!(matches!(refusal("no/such/folder").await, Error::File(..)));
    std::fs::write(
        path("text"),
        "a text, and long enough to be looked at as what it is: no database".repeat(20),
    )
    .unwrap();
    assert!(matches!(refusal("text").await, Error::Foreign(_)));
    let other = rusqlite::Connection::open(path("other")).unwrap();
    other.execute_batch("CREATE TABLE clients (id INTEGER)").unwrap();
    assert!(matches!(refusal("other").await, Error::Foreign(_)));

    let make = async |name: &str| {
        let store = Store::parse(path(name).to_str().unwrap()).unwrap();
        let ledger = open(&store, "a").await.unwrap();
        for user in 0..2000 {
            ledger.add(&format!("user {user}"), now(), 1, 1).unwrap();
        }
        ledger.close().await.unwrap();
    };
    make("newer").await;
    let newer = rusqlite::Connection::open(path("newer")).unwrap();
    newer.pragma_update(None, "user_version", 7).unwrap();
    drop(newer);
    assert!(matches!(refusal("newer").await, Error::Newer { version: 7, .. }));

    make("damaged").await;
    let mut bytes = std::fs::read(path("damaged")).unwrap();
    for byte in &mut bytes[8192..20_000] {
        *byte ^= 0x5a;
    }
    std::fs::write(path("damaged"), bytes).unwrap();
    let error = refusal("damaged").await;
    assert!(matches!(error, Error::Damaged(..)), "{error}");
}

#[tokio::test]
async fn many_users_are_written_in_several_batches() {
    let folder = TempDir::new().unwrap();
    let ledger = open(&store(&folder), "a").await.unwrap();
    let users = BATCH + 10;
    for user in 0..users {
        ledger.add(&user.to_string(), now(), 1, 1).unwrap();
    }
    let asked: Vec<_> = (0..users).map(|user| Ask::new(&user.to_string(), 0)).collect();
    let sums = ledger.exchange(&asked).await.unwrap();
    assert!(sums.len() == users && sums.iter().all(|sum| *sum == Sum { up: 1, down: 1 }));
}

/// Where the process that is killed finds its file.
const KILLED: &str = "SEALWAY_LEDGER_TEST_KILLED";

/// Not a test of its own: the process that [`what_an_exchange_wrote_survives_kill_9`] kills.
#[tokio::test]
async fn process_that_is_killed() {
    let Ok(path) = std::env::var(KILLED) else { return };
    let ledger = open(&Store::parse(&path).unwrap(), "a").await.unwrap();
    loop {
        ledger.add("anna", now(), 0, 1).unwrap();
        let (_, down) = sum(&ledger, "anna", 0).await;
        println!("written {down} ");
    }
}

#[tokio::test]
async fn what_an_exchange_wrote_survives_kill_9() {
    use std::io::{BufRead, BufReader};
    let folder = TempDir::new().unwrap();
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "--nocapture", "tests::process_that_is_killed"])
        .env(KILLED, folder.path().join("usage.db"))
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let written = |line: &str| line.split("written ").nth(1)?.split(' ').next()?.parse::<u64>().ok();
    let mut lines = BufReader::new(child.stdout.take().unwrap())
        .lines()
        .map_while(Result::ok);
    let begun = Instant::now();
    let mut last = 0;
    while last < 20 {
        last = lines.by_ref().find_map(|line| written(&line)).expect("it writes");
        assert!(begun.elapsed() < Duration::from_secs(60));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let last = lines.filter_map(|line| written(&line)).max().unwrap_or(last);
    let (_, down) = sum(&open(&store(&folder), "a").await.unwrap(), "anna", 0).await;
    assert!((last..=last + 1).contains(&down), "{down} of {last}");
}
