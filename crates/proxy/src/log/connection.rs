//! Which connection a line is about.

use std::future::Future;
use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};

/// An odd number with which a counter meets every number before it meets one again.
const STEP: u32 = 0x9e37_79b9;

static NEXT: LazyLock<AtomicU32> = LazyLock::new(|| {
    let anywhere = RandomState::new().hash_one(0);
    AtomicU32::new(u32::try_from(anywhere >> 32).unwrap_or_default())
});

tokio::task_local! {
    /// 0 stands for none.
    static CONNECTION: u32;
}

/// The number of the connection, or of the flow of datagrams, that what runs now is done for. It tells lines of the error log apart,
/// as in those of Xray, and comes again after 4,294,967,295 others.
pub fn connection() -> Option<u32> {
    CONNECTION.try_with(|number| *number).ok().filter(|number| *number != 0)
}

fn number() -> u32 {
    match NEXT.fetch_add(STEP, Ordering::Relaxed) {
        0 => NEXT.fetch_add(STEP, Ordering::Relaxed),
        number => number,
    }
}

/// What is done for a connection, or a flow of datagrams, that is new.
pub(crate) fn about_new<F: Future>(future: F) -> impl Future<Output = F::Output> {
    CONNECTION.scope(number(), future)
}

/// What a task of its own does for the connection that this one serves.
pub(crate) fn about_this<F: Future>(future: F) -> impl Future<Output = F::Output> {
    CONNECTION.scope(connection().unwrap_or(0), future)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn tasks_of_a_connection_have_its_number() {
        assert_eq!(connection(), None);
        assert_eq!(about_this(async { connection() }).await, None);
        let both = || async {
            let own = connection();
            let other = tokio::spawn(about_this(async { connection() })).await;
            (own, other.unwrap_or_default())
        };
        let (one, two) = (about_new(both()).await, about_new(both()).await);
        assert!(one.0.is_some() && one.0 == one.1, "{one:?}");
        assert!(two.0.is_some() && two.0 == two.1 && two.0 != one.0, "{one:?} {two:?}");
    }
}
