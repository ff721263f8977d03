//! What is kept for writing, and what is written when.

use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

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

#[derive(Default)]
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Under `tokio::io::split` they are two tasks.
#[tokio::test]
async fn a_reader_that_gives_up_leaves_the_waker_of_a_writer_alone() {
    let (mut near, far) = ends(&tls13(), true, 61).await;
    let Theirs::Client(far) = far else { unreachable!() };
    let (mut pipe, mut far) = far.into_inner();
    near.write_all(&payload(1000)).await.unwrap();
    let woken = Arc::new(Woken::default());
    let waker = Waker::from(woken.clone());
    let flushing = Pin::new(&mut near).poll_flush(&mut Context::from_waker(&waker));
    assert!(flushing.is_pending());
    let forged = [&[23, 3, 3, 0, 20][..], &[0; 20]].concat();
    pipe.write_all(&forged).await.unwrap();
    let mut room = [0; 100];
    let read = Pin::new(&mut near).poll_read(&mut Context::from_waker(Waker::noop()), &mut ReadBuf::new(&mut room));
    assert!(matches!(read, Poll::Ready(Err(_))));
    let mut wire = vec![0; 61];
    pipe.read_exact(&mut wire).await.unwrap();
    assert!(woken.0.load(Ordering::Relaxed), "the writer would wait for ever");
    // The alert comes with what the writer flushes.
    let flushing = async {
        near.flush().await.unwrap();
        drop(near);
    };
    let ((), read) = tokio::join!(flushing, pipe.read_to_end(&mut wire));
    read.unwrap();
    let mut rest = &wire[..];
    while !rest.is_empty() {
        far.read_tls(&mut rest).unwrap();
    }
    let heard = far.process_new_packets().unwrap_err();
    assert_eq!(heard, rustls::Error::AlertReceived(AlertDescription::BadRecordMac));
}
