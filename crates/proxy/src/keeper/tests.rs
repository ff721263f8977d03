use std::sync::Arc;

use sealway_ledger::{Node, Store};
use tempfile::TempDir;

use super::*;
use crate::people::{Member, Way};
use crate::settings::Limits;

/// Noon of 15 November 2026.
const NOW: i64 = 1_794_744_000;
const DAY: i64 = 86_400;

/// A process with one user, who may use 1000 bytes a month that begins on the 20th.
struct Process {
    stats: Stats,
    member: Arc<Member>,
    keeper: Keeper,
}

impl Process {
    async fn start(folder: &TempDir, node: &str, now: i64) -> Process {
        let stats = Stats::default();
        let store = UsageStore {
            store: Store::parse(folder.path().join("usage.db").to_str().unwrap()).unwrap(),
            node: Node::new(node).unwrap(),
        };
        let keeper = Keeper::open(&store, &stats).await.unwrap();
        let limits = Limits {
            quota: Some(1000),
            reset_day: Some(20),
            ..Limits::default()
        };
        let member = stats.people().join("Anna", 0, Arc::default());
        stats.people().limit(&member, &limits);
        keeper.exchange(&stats, now).await;
        Process { stats, member, keeper }
    }

    async fn exchange(&self, now: i64) {
        self.keeper.exchange(&self.stats, now).await;
    }

    /// Uses so many bytes. False: he may not.
    fn uses(&self, bytes: usize) -> bool {
        let presence = self.member.enter(None);
        presence.is_ok_and(|presence| {
            presence.count(Way::Up, bytes / 2);
            presence.count(Way::Down, bytes - bytes / 2);
            true
        })
    }
}

#[tokio::test]
async fn what_was_used_is_known_after_a_restart_and_until_the_month_ends() {
    let folder = TempDir::new().unwrap();
    let first = Process::start(&folder, "a", NOW).await;
    assert!(first.uses(600));
    first.exchange(NOW).await;
    assert!(first.uses(300));
    first.exchange(NOW).await;
    // It is killed: what came since then is lost.
    assert!(first.uses(300) && !first.uses(1));
    drop(first);

    let second = Process::start(&folder, "a", NOW).await;
    assert!(second.uses(99) && second.uses(1));
    assert!(!second.uses(1));
    second.exchange(NOW + 4 * DAY).await;
    assert!(!second.uses(1), "the 19th");
    second.exchange(NOW + 5 * DAY).await;
    assert!(second.uses(1000) && !second.uses(1), "the 20th");
    second.exchange(NOW + 5 * DAY).await;
    drop(second);
    assert!(!Process::start(&folder, "a", NOW + 6 * DAY).await.uses(1));
}

#[tokio::test]
async fn a_quota_is_that_of_all_nodes() {
    let folder = TempDir::new().unwrap();
    let one = Process::start(&folder, "a", NOW).await;
    let other = Process::start(&folder, "b", NOW).await;
    // Both are connected.
    let (_here, _there) = (one.member.enter(None).unwrap(), other.member.enter(None).unwrap());
    assert!(one.uses(500) && other.uses(499));
    one.exchange(NOW).await;
    other.exchange(NOW).await;
    assert!(one.uses(1), "it does not know of the other yet");
    one.exchange(NOW).await;
    assert!(!one.uses(1));
    other.exchange(NOW).await;
    assert!(!other.uses(1));
}

#[tokio::test]
async fn what_somebody_has_used_who_was_removed_is_kept() {
    let folder = TempDir::new().unwrap();
    let first = Process::start(&folder, "a", NOW).await;
    assert!(first.uses(600));
    first.stats.people().leave(&first.member);
    first.exchange(NOW).await;
    drop(first);
    let second = Process::start(&folder, "a", NOW).await;
    assert!(second.uses(400) && !second.uses(1));
}

#[tokio::test]
async fn at_the_end_all_is_in_the_file_and_that_is_closed() {
    let folder = TempDir::new().unwrap();
    let process = Process::start(&folder, "a", NOW).await;
    assert!(process.uses(1));
    Arc::new(process.keeper).finish(&process.stats).await;
    let files: Vec<_> = std::fs::read_dir(folder.path()).unwrap().flatten().collect();
    assert_eq!(files.len(), 1, "{files:?}");
}

#[tokio::test(start_paused = true)]
async fn the_end_does_not_wait_for_a_silent_database() {
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("postgres://u@{}/db?sslmode=disable", silent.local_addr().unwrap());
    let (stats, store) = (Stats::default(), Store::parse(&url).unwrap());
    let node = Node::new("a").unwrap();
    let keeper = Keeper::open(&UsageStore { store, node }, &stats).await.unwrap();
    let member = stats.people().join("anna", 0, Arc::default());
    stats.people().limit(&member, &Limits::default());
    member.enter(None).unwrap().count(Way::Up, 1);
    let begun = Instant::now();
    Arc::new(keeper).finish(&stats).await;
    let took = begun.elapsed();
    assert!(took >= LAST && took < LAST + Duration::from_millis(10), "{took:?}");
}
