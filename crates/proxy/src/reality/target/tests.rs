use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::time::{advance, sleep};

use super::*;

/// What lookups answer, one after another, and how many there were. Each takes 5 seconds.
struct Names {
    answers: Vec<&'static [&'static str]>,
    asked: AtomicUsize,
}

fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
    texts.iter().map(|text| text.parse().unwrap()).collect()
}

async fn answer(names: Arc<Names>) -> Result<Vec<SocketAddr>, Error> {
    let number = names.asked.fetch_add(1, Ordering::SeqCst);
    sleep(Duration::from_secs(5)).await;
    let found = addresses(names.answers.get(number).copied().unwrap_or_default());
    if found.is_empty() {
        return Err(Error::Resolve { name: String::new() });
    }
    Ok(found)
}

fn names(answers: &[&'static [&'static str]]) -> Arc<Names> {
    Arc::new(Names {
        answers: answers.to_vec(),
        asked: AtomicUsize::new(0),
    })
}

const ONE: &str = "192.0.2.1:443";
const TWO: &str = "192.0.2.2:443";
const SECOND: Duration = Duration::from_secs(1);

/// Lets lookups go on.
async fn settle() {
    for _ in 0..10 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_is_looked_up_once_and_nobody_waits_for_that_again() {
    let (found, names) = (Arc::<Found>::default(), names(&[&[ONE], &[TWO, ONE], &[], &[TWO]]));
    let get = || Found::get(&found, || answer(Arc::clone(&names)));
    let all = tokio::join!(get(), get(), get());
    for got in [all.0, all.1, all.2] {
        assert_eq!(got.unwrap(), addresses(&[ONE]));
    }
    assert_eq!(names.asked.load(Ordering::SeqCst), 1);
    // An hour later what is known is given at once, and looked up beside.
    for (later, wanted, asked) in [
        (3600, &[ONE][..], 2),
        (6, &[ONE, TWO], 2),
        (61, &[ONE, TWO], 3),
        // That lookup fails, and the next comes a second later.
        (6, &[ONE, TWO], 3),
        (2, &[ONE, TWO], 4),
        (6, &[TWO], 4),
    ] {
        advance(later * SECOND).await;
        settle().await;
        let before = Instant::now();
        assert_eq!(get().await.unwrap(), addresses(wanted), "{later}");
        assert_eq!(before.elapsed(), Duration::ZERO);
        settle().await;
        assert_eq!(names.asked.load(Ordering::SeqCst), asked, "{later}");
    }
    // What cannot be reached is looked up, once a second however often it is tried.
    for (later, asked) in [(0, 4), (1, 5), (5, 5), (0, 5), (1, 6)] {
        advance(later * SECOND).await;
        settle().await;
        get().await.unwrap();
        settle().await;
        assert_eq!(names.asked.load(Ordering::SeqCst), asked, "{later}");
        found.doubt();
    }
}

#[tokio::test(start_paused = true)]
async fn a_name_that_nobody_knows_is_asked_for_once_a_second_at_most() {
    let (found, names) = (Arc::<Found>::default(), names(&[&[], &[ONE]]));
    let get = || Found::get(&found, || answer(Arc::clone(&names)));
    let all = tokio::join!(get(), get(), get());
    assert!(all.0.is_err() && all.1.is_err() && all.2.is_err());
    assert_eq!(names.asked.load(Ordering::SeqCst), 1);
    advance(2 * SECOND).await;
    assert_eq!(get().await.unwrap(), addresses(&[ONE]));
}
