//! What stands between a ledger and the server, and can be shut.

use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Mode {
    Open,
    /// Connections end, and new ones with them.
    Closed,
    /// What is asked arrives. Instead of the answer the connection ends.
    NoAnswers,
}

pub(super) struct Gate {
    port: u16,
    server: u16,
    mode: Arc<watch::Sender<Mode>>,
}

impl Gate {
    pub(super) async fn before(server: u16) -> Gate {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let mode = Arc::new(watch::Sender::new(Mode::Open));
        let modes = Arc::clone(&mode);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(carry(client, server, modes.subscribe()));
            }
        });
        Gate { port, server, mode }
    }

    pub(super) fn set(&self, mode: Mode) {
        self.mode.send_replace(mode);
    }

    /// A URL of the server, through here.
    pub(super) fn url(&self, url: &str) -> String {
        let through = url.replace(&format!(":{}/", self.server), &format!(":{}/", self.port));
        assert_ne!(through, url);
        format!("{through}?sslmode=disable")
    }
}

async fn carry(mut client: TcpStream, server: u16, mut mode: watch::Receiver<Mode>) {
    if *mode.borrow() == Mode::Closed {
        return;
    }
    let mut server = TcpStream::connect(("127.0.0.1", server)).await.unwrap();
    let now = mode.clone();
    let (mut up, mut down) = ([0; 16384], [0; 16384]);
    loop {
        tokio::select! {
            () = closed(&mut mode) => return,
            got = client.read(&mut up) => match got {
                Ok(got @ 1..) => server.write_all(&up[..got]).await.unwrap(),
                _ => return,
            },
            got = server.read(&mut down) => match got {
                Ok(got @ 1..) if *now.borrow() == Mode::Open => client.write_all(&down[..got]).await.unwrap(),
                _ => return,
            },
        }
    }
}

async fn closed(mode: &mut watch::Receiver<Mode>) {
    let _ = mode.wait_for(|mode| *mode == Mode::Closed).await;
}
