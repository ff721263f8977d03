//! Questions that go to their target.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use sealway_v2ray::{Address, Destination, Network};
use socket2::SockRef;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UdpSocket;
use tokio::time::timeout;

use crate::dial::set_common_options;
use crate::dns::message::Asked;
use crate::loops::LoopGuard;
use crate::outbound::Dialer;
use crate::settings::DnsOut;
use crate::stream::adapter::Io;
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
        let addresses = self.addresses(to, Network::Udp).await?;
        let to = addresses.first().copied().ok_or(Error::Closed)?;
        let any: SocketAddr = match (line.source, to) {
            (Some(source), _) if source.is_ipv4() == to.is_ipv4() => (source, 0).into(),
            (_, SocketAddr::V4(_)) => ([0, 0, 0, 0], 0).into(),
            (_, SocketAddr::V6(_)) => ([0u16; 8], 0).into(),
        };
        let socket = UdpSocket::bind(any).await?;
        set_common_options(&SockRef::from(&socket), &line.socket)?;
        socket.connect(to).await.map_err(|error| Error::connect(to, error))?;
        socket.send(question).await?;
        let mut answer = Vec::with_capacity(usize::from(u16::MAX));
        loop {
            answer.clear();
            socket.recv_buf(&mut answer).await?;
            if asked.is_answered_by(id, &answer) {
                return Ok(answer);
            }
        }
    }

    async fn by_stream(&self, asked: &Asked, id: u16, question: &[u8], to: &(Address, u16)) -> Result<Vec<u8>, Error> {
        self.addresses(to, Network::Tcp).await?;
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
