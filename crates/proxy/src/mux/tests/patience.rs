//! How long sessions that take little stop the others of their carrier.

use super::*;

/// A server whose sessions lie in these inboxes, in the order in which they begin.
struct Given(Vec<Arc<Inbox>>);

impl Role for Given {
    fn begin(&mut self, _: Begun<'_>) -> Option<Entry> {
        (!self.0.is_empty()).then(|| Entry::Stream(self.0.remove(0), None))
    }

    fn idle(&self) -> Duration {
        SERVER_IDLE
    }
}

fn given(inboxes: &[Arc<Inbox>]) -> (Arc<Link>, UnixStream) {
    let link = Link::new();
    let (near, far) = UnixStream::pair().unwrap();
    let stream = Stream::new(Sock::Unix(near), Traffic::default());
    let driver = Driver::new(stream, Arc::clone(&link), Given(inboxes.to_vec()));
    tokio::spawn(driver.run());
    (link, far)
}

/// Sends to one session until the carrier is stopped, and then a byte to another.
async fn overfill(far: UnixStream, id: u16, other: u16) -> UnixStream {
    let (mut far, mut out) = (far, Vec::new());
    for _ in 0..20 {
        mux::push_keep(&mut out, id, &[1; 16 << 10]).unwrap();
    }
    mux::push_keep(&mut out, other, b"x").unwrap();
    far.write_all(&out).await.unwrap();
    far
}

async fn begin(far: &mut UnixStream, many: u16) {
    let mut out = Vec::new();
    for id in 0..many {
        mux::push_new(&mut out, id, &here(1), None, None).unwrap();
    }
    far.write_all(&out).await.unwrap();
}

/// Takes so many bytes every so often.
async fn drain(link: &Link, inbox: &Inbox, len: usize, every: Duration) {
    let mut cx = Context::from_waker(Waker::noop());
    let mut into = vec![0; len];
    while inbox.end() == End::None {
        tokio::time::sleep(every).await;
        let _ = inbox.poll_read(&link.meter, &mut cx, &mut into);
    }
}

#[tokio::test(start_paused = true)]
async fn a_session_that_takes_little_stops_the_others_no_longer_than_one_that_takes_nothing() {
    for (every, ends) in [(Duration::from_secs(4), true), (Duration::from_millis(400), false)] {
        let inboxes = [Arc::<Inbox>::default(), Arc::default()];
        let (link, mut far) = given(&inboxes);
        begin(&mut far, 2).await;
        let sending = tokio::spawn(overfill(far, 0, 1));
        let since = Instant::now();
        tokio::select! {
            () = drain(&link, &inboxes[0], 16 << 10, every) => {}
            () = std::future::poll_fn(|cx| inboxes[1].poll_ready(cx)) => {}
        }
        std::future::poll_fn(|cx| inboxes[1].poll_ready(cx)).await;
        assert!(since.elapsed() <= Duration::from_secs(7), "{:?}", since.elapsed());
        assert_eq!(inboxes[0].end() == End::Broken, ends, "{every:?}");
        sending.await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn where_buffers_are_short_the_session_ends_that_takes_nothing() {
    // 18 largest buffers are all there are: 17 are held by sessions that take enough, one with less in it by one that rests.
    let inboxes: Vec<Arc<Inbox>> = (0..19).map(|_| Arc::default()).collect();
    let (link, mut far) = given(&inboxes);
    begin(&mut far, 19).await;
    let mut out = Vec::new();
    for id in 0..18 {
        for _ in 0..if id == 7 { 6 } else { 14 } {
            mux::push_keep(&mut out, id, &[1; 16 << 10]).unwrap();
        }
    }
    mux::push_keep(&mut out, 18, &[1; 60_000]).unwrap();
    let sending = tokio::spawn(async move {
        far.write_all(&out).await.unwrap();
        far
    });
    let lively = async {
        let mut cx = Context::from_waker(Waker::noop());
        let mut into = vec![0; 60 << 10];
        loop {
            tokio::time::sleep(Duration::from_secs(1)).await;
            for (at, inbox) in inboxes[..18].iter().enumerate() {
                if at != 7 && inbox.waiting() > 110 << 10 {
                    let _ = inbox.poll_read(&link.meter, &mut cx, &mut into);
                }
            }
        }
    };
    tokio::select! {
        () = lively => {}
        () = std::future::poll_fn(|cx| inboxes[18].poll_ready(cx)) => {}
    }
    let ended: Vec<usize> = (0..19).filter(|at| inboxes[*at].end() != End::None).collect();
    assert_eq!(ended, [7]);
    sending.await.unwrap();
}
