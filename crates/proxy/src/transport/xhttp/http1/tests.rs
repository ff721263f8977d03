use sealway_net::sock::Sock;
use tokio::io::AsyncWriteExt;
use tokio::net::UnixStream;

use super::*;
use crate::stats::Traffic;

/// The head of an answer that ends in its middle. A loop without an end would not heed a timeout, so another thread waits.
#[test]
fn a_cut_answer_is_an_error() {
    for method in ["GET", "POST"] {
        let (said, heard) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .unwrap();
            let kind = runtime.block_on(async {
                let (ours, mut theirs) = UnixStream::pair().unwrap();
                theirs.write_all(b"HTTP/1.1 200").await.unwrap();
                drop(theirs);
                let mut http1 = Http1::client(Stream::new(Sock::Unix(ours), Traffic::default()), method, To::Done);
                poll_fn(|cx| http1.poll_take(cx, 4096, |_| ()))
                    .await
                    .map_err(|e| e.kind())
            });
            let _ = said.send(kind);
        });
        let kind = heard.recv_timeout(std::time::Duration::from_secs(5)).expect("an end");
        assert_eq!(kind, Err(io::ErrorKind::UnexpectedEof), "{method}");
    }
}
