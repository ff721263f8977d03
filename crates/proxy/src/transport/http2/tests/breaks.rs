//! What breaks on a stream, and what merely ends.

use super::*;

/// A foreign server that answers each request as it is told.
async fn answering<F, Done>(socket: UnixStream, answer: F)
where
    F: Fn(Request<h2::RecvStream>, h2::server::SendResponse<Bytes>) -> Done + Send + 'static,
    Done: Future<Output = ()> + Send + 'static,
{
    let mut connection = h2::server::handshake(socket).await.unwrap();
    while let Some(Ok((request, respond))) = connection.accept().await {
        tokio::spawn(answer(request, respond));
    }
}

#[tokio::test]
async fn trailers_that_are_wrong_are_so_for_every_look() {
    let (near, far) = UnixStream::pair().unwrap();
    tokio::spawn(answering(near, async |_, mut respond| {
        let mut to = respond.send_response(Response::new(()), false).unwrap();
        to.send_data(Bytes::from_static(b"bytes"), false).unwrap();
        let mut trailers = http::HeaderMap::new();
        trailers.insert("grpc-status", 14.into());
        to.send_trailers(trailers).unwrap();
    }));
    let client = client(far).await;
    let check: Trailers = |_| Err(io::ErrorKind::ConnectionReset.into());
    let mut body = client.request(ask(), Box::new(|_| Ok(())), Some(check)).await.unwrap();
    // All of it is there before the first look.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let mut buffer = [0; 100];
    assert_eq!(poll_fn(|cx| body.poll_read(cx, &mut buffer)).await.unwrap(), 5);
    for _ in 0..3 {
        let error = poll_fn(|cx| body.poll_read(cx, &mut buffer)).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }
}

#[tokio::test]
async fn a_head_that_is_wrong_is_so_for_every_look() {
    let (near, far) = UnixStream::pair().unwrap();
    let _serving = echo(near, true);
    let client = client(far).await;
    let wrong = Box::new(|_: &Response<()>| Err(io::ErrorKind::ConnectionReset.into()));
    let mut body = client.request(ask(), wrong, None).await.unwrap();
    poll_fn(|cx| body.poll_write(cx, b"x")).await.unwrap();
    for _ in 0..3 {
        assert!(poll_fn(|cx| body.poll_read(cx, &mut [0; 9])).await.is_err());
    }
}

#[tokio::test]
async fn what_came_with_the_end_is_free_in_the_window() {
    let (far, mut told) = accepting();
    let (mut send, _driving) = foreign(far).await;
    let mut held = Vec::new();
    for _ in 0..3 {
        send = send.ready().await.unwrap();
        let (answer, mut to) = send.send_request(ask(), false).unwrap();
        to.send_data(vec![0; 60_000].into(), true).unwrap();
        let mut body = told.recv().await.unwrap();
        tokio::time::sleep(Duration::from_millis(100)).await;
        let (mut got, mut buffer) = (0, vec![0; 100_000]);
        while got < 60_000 {
            let read = timeout(Duration::from_secs(5), poll_fn(|cx| body.poll_read(cx, &mut buffer)));
            got += read.await.unwrap().unwrap();
        }
        assert_eq!(poll_fn(|cx| body.poll_read(cx, &mut buffer)).await.unwrap(), 0);
        // Its answer stays open.
        held.push((body, answer));
    }
}

#[tokio::test]
async fn a_client_that_takes_back_what_is_answered_has_ended() {
    let (far, mut told) = accepting();
    let (mut send, _driving) = foreign(far).await;
    for answered in [true, false] {
        send = send.ready().await.unwrap();
        let (_answer, mut to) = send.send_request(ask(), false).unwrap();
        to.send_data(Bytes::from_static(b"bytes"), false).unwrap();
        let mut body = told.recv().await.unwrap();
        body.begin().unwrap();
        let mut buffer = [0; 9];
        assert_eq!(poll_fn(|cx| body.poll_read(cx, &mut buffer)).await.unwrap(), 5);
        if answered {
            poll_fn(|cx| body.poll_shutdown(cx)).await.unwrap();
        }
        assert_eq!(body.is_answered(), answered);
        to.send_reset(Reason::CANCEL);
        for _ in 0..2 {
            let read = timeout(Duration::from_secs(5), poll_fn(|cx| body.poll_read(cx, &mut buffer)));
            assert_eq!(read.await.unwrap().ok(), answered.then_some(0), "{answered}");
        }
    }
}

#[tokio::test]
async fn a_server_that_wants_no_more_has_answered() {
    let (near, far) = UnixStream::pair().unwrap();
    tokio::spawn(answering(near, async |_, mut respond| {
        let mut to = respond.send_response(Response::new(()), false).unwrap();
        to.send_data(Bytes::from_static(b"bytes"), true).unwrap();
        tokio::time::sleep(Duration::from_millis(50)).await;
        to.send_reset(Reason::NO_ERROR);
    }));
    let client = client(far).await;
    let mut body = body(&client).await;
    tokio::time::sleep(Duration::from_millis(200)).await;
    // More than any window holds.
    for _ in 0..100 {
        poll_fn(|cx| body.poll_write(cx, &[0; 60_000])).await.unwrap();
    }
    poll_fn(|cx| body.poll_shutdown(cx)).await.unwrap();
    let mut buffer = [0; 100];
    assert_eq!(poll_fn(|cx| body.poll_read(cx, &mut buffer)).await.unwrap(), 5);
}
