//! Connecting to a host with several addresses.

use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::task::Poll;
use std::time::Duration;

use tokio::time::{Instant, sleep_until};

/// After this time without an answer the next address is tried beside the first (RFC 8305, section 5).
pub const STAGGER: Duration = Duration::from_millis(250);

/// Addresses that are tried at the same time, at most: whoever says what a name leads to does not say how many sockets are
/// opened for it.
pub(crate) const AT_ONCE: usize = 8;

/// The same addresses, families by turns (RFC 8305, section 4): if one family leads nowhere, the second try is of the other.
/// The family of the first address begins, and each keeps its order.
pub fn alternate(found: &[SocketAddr]) -> Vec<SocketAddr> {
    let first = found.first().is_some_and(SocketAddr::is_ipv6);
    let (mut one, mut two): (Vec<SocketAddr>, Vec<SocketAddr>) = found
        .iter()
        .rev()
        .copied()
        .partition(|address| address.is_ipv6() == first);
    let mut all = Vec::with_capacity(found.len());
    while let Some(address) = one.pop().or_else(|| two.pop()) {
        all.push(address);
        std::mem::swap(&mut one, &mut two);
    }
    all
}

/// Connects to whichever address answers first, and says which one that was.
///
/// The addresses are tried in their order: the next one [`STAGGER`] after the last, or at once when one has failed, and eight
/// at the same time at most. Those that lose are dropped. `connect` limits the time of one address.
///
/// # Errors
/// The last error when all have failed; `None` if there is no address.
pub async fn race<T, E, F>(
    addresses: impl IntoIterator<Item = SocketAddr>,
    mut connect: impl FnMut(SocketAddr) -> F,
) -> Result<(T, SocketAddr), Option<E>>
where
    F: Future<Output = Result<T, E>>,
{
    let mut left = addresses.into_iter().peekable();
    let mut trying: Vec<(SocketAddr, Pin<Box<F>>)> = Vec::new();
    let mut at_once = true;
    let mut turn = pin!(sleep_until(Instant::now()));
    let mut last = None;
    poll_fn(|cx| {
        loop {
            if trying.len() < AT_ONCE
                && (at_once || turn.as_mut().poll(cx).is_ready())
                && let Some(address) = left.next()
            {
                trying.push((address, Box::pin(connect(address))));
                turn.as_mut().reset(Instant::now() + STAGGER);
            }
            if trying.is_empty() {
                return Poll::Ready(Err(last.take()));
            }
            at_once = false;
            let mut at = 0;
            while let Some((address, attempt)) = trying.get_mut(at) {
                match attempt.as_mut().poll(cx) {
                    Poll::Ready(Ok(connected)) => return Poll::Ready(Ok((connected, *address))),
                    Poll::Ready(Err(error)) => {
                        (last, at_once) = (Some(error), true);
                        trying.swap_remove(at);
                    }
                    Poll::Pending => at += 1,
                }
            }
            // Here as well, so that the timer wakes this task: it may have been set just now.
            let no_more = trying.len() == AT_ONCE || left.peek().is_none();
            if !at_once && (no_more || turn.as_mut().poll(cx).is_pending()) {
                return Poll::Pending;
            }
        }
    })
    .await
}

#[cfg(test)]
mod tests {
    use std::io;

    use tokio::time::sleep;

    use super::*;

    fn addresses(texts: &[&str]) -> Vec<SocketAddr> {
        texts.iter().map(|text| text.parse().unwrap()).collect()
    }

    #[test]
    fn families_take_turns_in_the_order_of_the_system() {
        let found = addresses(&["[::1]:1", "[::2]:1", "[::3]:1", "1.1.1.1:1", "2.2.2.2:1"]);
        let wanted = addresses(&["[::1]:1", "1.1.1.1:1", "[::2]:1", "2.2.2.2:1", "[::3]:1"]);
        assert_eq!(alternate(&found), wanted);
        assert_eq!(alternate(&[]), []);
    }

    /// What an address does is its port: 1 swallows everything, 2 refuses after 20 ms, others answer after as many.
    async fn answer(address: SocketAddr) -> io::Result<u16> {
        if address.port() == 1 {
            std::future::pending::<()>().await;
        }
        sleep(Duration::from_millis(20)).await;
        match address.port() {
            2 => Err(io::ErrorKind::ConnectionRefused.into()),
            port => Ok(port),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_dead_address_costs_a_quarter_of_a_second_and_a_refusal_nothing() {
        for (ports, wanted, after) in [
            (&[3][..], 3, 20),
            (&[1, 3], 3, 270),
            (&[1, 1, 3], 3, 520),
            (&[2, 3], 3, 40),
            (&[1, 2, 3, 4], 3, 290),
            (&[2, 1, 2, 3], 3, 310),
        ] {
            let all: Vec<SocketAddr> = ports.iter().map(|port| ([192, 0, 2, 1], *port).into()).collect();
            let began = Instant::now();
            let (answered, address) = race(all, answer).await.unwrap();
            assert_eq!((answered, address.port()), (wanted, wanted), "{ports:?}");
            // The timer counts whole milliseconds, up.
            let took = began.elapsed().as_millis();
            assert!((after..after + 5).contains(&took), "{ports:?}: {took} ms");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_name_with_many_dead_addresses_does_not_open_a_socket_for_each() {
        let trying = std::cell::Cell::new(0);
        let connect = |_| {
            trying.set(trying.get() + 1);
            std::future::pending::<io::Result<()>>()
        };
        let all = (1..100).map(|port| ([192, 0, 2, 1], port).into());
        let racing = tokio::time::timeout(Duration::from_secs(60), race(all, connect));
        assert!(racing.await.is_err());
        assert_eq!(trying.get(), AT_ONCE);
    }

    #[tokio::test(start_paused = true)]
    async fn the_last_error_is_told_once_all_have_failed() {
        let began = Instant::now();
        let limited = |address| async move {
            let limit = Duration::from_secs(1);
            tokio::time::timeout(limit, answer(address))
                .await
                .unwrap_or_else(|_| Err(io::ErrorKind::TimedOut.into()))
        };
        let error = race(addresses(&["192.0.2.1:1", "192.0.2.1:2"]), limited)
            .await
            .unwrap_err();
        assert_eq!(error.map(|error| error.kind()), Some(io::ErrorKind::TimedOut));
        assert!(began.elapsed() < Duration::from_millis(1010));
        assert!(race(Vec::new(), answer).await.unwrap_err().is_none());
    }
}
