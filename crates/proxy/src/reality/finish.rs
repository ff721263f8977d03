//! The end of a handshake with a client.

use std::future::poll_fn;

use sealway_net::sock::Sock;
use sealway_tls::codec::record;
use sealway_tls::server::AwaitFinished;

use crate::Error;
use crate::closing::LINGER;
use crate::stats::Traffic;
use crate::tls::handshake::{Agreed, Established};

/// Most bytes that a client may have sent before its handshake is through: its end of it, and first payload behind that.
const MAX_INPUT: usize = 64 << 10;

/// The end of a handshake, driven over a socket.
pub(super) struct Handshake<'a> {
    pub(super) client: Sock,
    pub(super) traffic: &'a Traffic,
    /// What was received and not used.
    pub(super) input: Vec<u8>,
    pub(super) out: Vec<u8>,
}

impl Handshake<'_> {
    /// Writes the flight, waits for the client's end of the handshake, and sends records of these lengths that carry nothing.
    pub(super) async fn finish(mut self, mut awaiting: AwaitFinished, after: &[usize]) -> Result<Established, Error> {
        self.write().await?;
        let mut connected = loop {
            let read = awaiting.read(&mut self.input, &mut self.out);
            let (used, connected) = match read {
                Ok(read) => read,
                Err(error) => {
                    // The client is owed the alert. Whatever it goes on to say is not waited for: servers close at once.
                    let _ = tokio::time::timeout(LINGER, self.write()).await;
                    return Err(error.into());
                }
            };
            self.input.drain(..used);
            if let Some(connected) = connected {
                break connected;
            }
            let mut piece = [0; 2048];
            let got = poll_fn(|cx| self.client.poll_read(cx, &mut piece)).await?;
            if got == 0 {
                return Err(Error::Closed);
            }
            self.traffic.received(got);
            self.input.extend_from_slice(&piece[..got]);
            if self.input.len() > MAX_INPUT {
                return Err(Error::protocol("TLS", "too much before the end of the handshake"));
            }
        };
        for length in after {
            let pushed = connected.records.push_nothing(length - record::HEAD, &mut self.out);
            pushed?;
        }
        self.write().await?;
        let name = connected.agreed.server_name.unwrap_or_default();
        Ok(Established {
            carrier: self.client.into(),
            records: connected.records,
            received: self.input,
            early: Vec::new(),
            closed: false,
            agreed: Agreed {
                sni: String::from_utf8_lossy(&name).to_ascii_lowercase(),
                alpn: String::new(),
            },
        })
    }

    async fn write(&mut self) -> Result<(), Error> {
        let mut at = 0;
        while at < self.out.len() {
            let wrote = poll_fn(|cx| self.client.poll_write(cx, &self.out[at..])).await?;
            self.traffic.sent(wrote);
            at += wrote;
        }
        self.out.clear();
        Ok(())
    }
}
