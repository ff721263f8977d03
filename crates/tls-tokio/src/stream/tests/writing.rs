//! What is kept for writing, and what is written when.

use super::*;

#[tokio::test]
async fn a_flush_gives_back_what_a_large_write_needed() {
    let (mut near, mut far) = ends(&tls13(), true, 1 << 20).await;
    for (len, kept) in [(200_000, false), (10_000, true)] {
        pass(&mut near, &mut far, &payload(len), 1 << 20).await;
        let capacity = near.tx.out.capacity();
        assert!((capacity > 0) == kept && capacity <= 64 << 10, "{capacity} after {len}");
    }
}
