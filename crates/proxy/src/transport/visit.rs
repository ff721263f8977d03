//! One visit to the site that answered in place of a REALITY server: what a browser would do there, as little of it as there is.

use std::time::Duration;

use bytes::Bytes;
use h2::client;
use http::Request;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::stream::Stream;
use crate::stream::adapter::Io;

/// How long a visit lasts.
const LASTS: Duration = Duration::from_secs(10);
/// Most that is read of an answer, bytes.
const MOST: usize = 256 << 10;
/// What visits. The hello is that of the same browser.
const AGENT: &str =
    "Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/156.0.0.0 Safari/537.36";

/// Asks for one page, in a task of its own, and closes.
pub(super) fn visit(stream: Stream, alpn: String, host: String, path: String) {
    tokio::spawn(async move {
        let asked = async {
            match alpn.as_str() {
                "h2" => drop(http2(stream, &host, &path).await),
                _ => drop(http1(stream, &host, &path).await),
            }
        };
        let _ = tokio::time::timeout(LASTS, asked).await;
    });
}

async fn http1(stream: Stream, host: &str, path: &str) -> std::io::Result<()> {
    let mut io = Io(stream);
    let head = format!(
        "GET {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: {AGENT}\r\nAccept: text/html,*/*\r\nConnection: close\r\n\r\n"
    );
    io.write_all(head.as_bytes()).await?;
    io.flush().await?;
    let (mut piece, mut read) = ([0; 4096], 0);
    while read < MOST {
        match io.read(&mut piece).await? {
            0 => break,
            got => read += got,
        }
    }
    io.shutdown().await
}

async fn http2(stream: Stream, host: &str, path: &str) -> Result<(), h2::Error> {
    let mut settings = client::Builder::new();
    settings.initial_window_size(MOST as u32).enable_push(false);
    let (sender, connection) = settings.handshake::<_, Bytes>(Io(stream)).await?;
    let exchange = async {
        let request = Request::get(format!("https://{host}{path}"))
            .header("user-agent", AGENT)
            .header("accept", "text/html,*/*");
        let Ok(request) = request.body(()) else { return Ok(()) };
        let (answer, _) = sender.ready().await?.send_request(request, true)?;
        let mut body = answer.await?.into_body();
        let mut read = 0;
        while let Some(part) = body.data().await {
            read += part?.len();
            if read >= MOST {
                break;
            }
        }
        Ok(())
    };
    tokio::select! {
        done = exchange => done,
        done = connection => done,
    }
}
