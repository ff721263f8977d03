//! Questions that go to their target.

use std::future::poll_fn;
use std::net::SocketAddr;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use sealway_v2ray::{Address, Destination, Network};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::dns::message::Asked;
use crate::loops::LoopGuard;
use crate::outbound::Dialer;
use crate::settings::DnsOut;
use crate::stream::adapter::Io;
use crate::udp::Slot;
use crate::{Error, random};

/// How long a target is waited for.
const PATIENCE: Duration = Duration::from_secs(4);

/// Sends questions on.
pub(super) struct Onward {
    network: Option<Network>,
    address: Option<Address>,
    port: Option<u16>,
    dialer: Dialer,
    loops: Arc<LoopGuard>,
}

impl Onward {
    pub(super) fn new(settings: &DnsOut, dialer: Dialer, loops: Arc<LoopGuard>) -> Onward {
        Onward {
            network: settings.network,
            address: settings.address.clone(),
            port: settings.port,
            dialer,
            loops,
        }
    }

    /// The target's answer, with the id of the question.
    pub(super) async fn ask(
        &self,
        asked: &Asked,
        bytes: &[u8],
        network: Network,
        to: &Destination,
    ) -> Result<Vec<u8>, Error> {
        let network = self.network.unwrap_or(network);
        let address = self.address.as_ref().unwrap_or(&to.address);
        let to = (address.clone(), self.port.unwrap_or(to.port));
        let id = u16::from_be_bytes(random::bytes()?);
        let mut question = bytes.to_vec();
        question[..2].copy_from_slice(&id.to_be_bytes());
        let asking = async {
            match network {
                Network::Tcp => self.by_stream(asked, id, &question, &to).await,
                Network::Udp => self.by_datagram(asked, id, &question, &to).await,
            }
        };
        let mut answer = match timeout(PATIENCE, asking).await {
            Ok(answer) => answer?,
            Err(_) => return Err(Error::TimedOut("the answer of a DNS server")),
        };
        answer[..2].copy_from_slice(&asked.id().to_be_bytes());
        Ok(answer)
    }

    async fn addresses(&self, to: &(Address, u16), network: Network) -> Result<Vec<SocketAddr>, Error> {
        let line = &self.dialer.connector.line;
        let addresses = line.resolver.resolve(&to.0, to.1, line.socket.domain_strategy).await?;
        for address in &addresses {
            self.loops.check(*address, network)?;
        }
        Ok(addresses)
    }

    async fn by_datagram(
        &self,
        asked: &Asked,
        id: u16,
        question: &[u8],
        to: &(Address, u16),
    ) -> Result<Vec<u8>, Error> {
        let line = &self.dialer.connector.line;
        if line.through.is_none() {
            self.addresses(to, Network::Udp).await?;
        }
        let mut wire = line.datagrams(to).await?;
        poll_fn(|cx| wire.poll_ready(cx)).await?;
        poll_fn(|cx| Poll::Ready(wire.send(cx, question))).await?;
        let mut slot = Slot::default();
        loop {
            let came = poll_fn(|cx| {
                let _ = wire.poll_flush(cx)?;
                wire.poll_recv(cx, &mut slot)
            });
            let len = came.await?.ok_or(Error::Closed)?;
            let answer = &slot.take()[..len];
            if asked.is_answered_by(id, answer) {
                return Ok(answer.to_vec());
            }
            slot.clear();
        }
    }

    async fn by_stream(&self, asked: &Asked, id: u16, question: &[u8], to: &(Address, u16)) -> Result<Vec<u8>, Error> {
        if self.dialer.connector.line.through.is_none() {
            self.addresses(to, Network::Tcp).await?;
        }
        let (stream, _) = self.dialer.connect(to, &[]).await?;
        let mut stream = Io(stream);
        let len = u16::try_from(question.len()).map_err(|_| Error::protocol("DNS", "a question that is too long"))?;
        stream.write_all(&[&len.to_be_bytes(), question].concat()).await?;
        stream.flush().await?;
        let mut answer = vec![0; stream.read_u16().await?.into()];
        stream.read_exact(&mut answer).await?;
        match asked.is_answered_by(id, &answer) {
            true => Ok(answer),
            false => Err(Error::protocol("DNS", "an answer to something else")),
        }
    }
}
