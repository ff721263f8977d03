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

#[tokio::test]
async fn nothing_is_sent_behind_the_end_of_a_direction() {
    let (mut near, far) = ends(&tls13(), true, 1 << 20).await;
    let Theirs::Client(mut far) = far else { unreachable!() };
    near.shutdown().await.unwrap();
    assert_eq!(far.read(&mut [0; 8]).await.unwrap(), 0);
    far.get_mut().1.refresh_traffic_keys().unwrap();
    pass(&mut far, &mut near, b"in the other direction", 1000).await;
    assert!(!near.records.reply.is_empty(), "the request has not come");
    near.flush().await.unwrap();
    near.shutdown().await.unwrap();
    assert!(near.tx.out.is_empty());
    drop(near);
    let (mut pipe, _) = far.into_inner();
    assert_eq!(pipe.read(&mut [0; 8]).await.unwrap(), 0);
}
