//! Questions that go to their target.

use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use sealway_v2ray::{Address, Destination, Network};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::time::timeout;

use crate::dns::message::Asked;
use crate::loops::LoopGuard;
use crate::outbound::Dialer;
use crate::policy::DialPolicy;
use crate::roads::Caller;
use crate::settings::DnsOut;
use crate::stream::Stream;
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
        caller: &Caller,
    ) -> Result<Vec<u8>, Error> {
        let network = self.network.unwrap_or(network);
        let to = self.target(to);
        let id = u16::from_be_bytes(random::bytes()?);
        let mut question = bytes.to_vec();
        question[..2].copy_from_slice(&id.to_be_bytes());
        let asking = async {
            match network {
                Network::Tcp => self.by_stream(asked, id, &question, &to, caller).await,
                Network::Udp => self.by_datagram(asked, id, &question, &to, caller).await,
            }
        };
        let mut answer = match timeout(PATIENCE, asking).await {
            Ok(answer) => answer?,
            Err(_) => return Err(Error::TimedOut("the answer of a DNS server")),
        };
        answer[..2].copy_from_slice(&asked.id().to_be_bytes());
        Ok(answer)
    }

    fn target(&self, to: &Destination) -> (Address, u16) {
        let address = self.address.as_ref().unwrap_or(&to.address);
        (address.clone(), self.port.unwrap_or(to.port))
    }

    /// A stream to the target, for whatever is in it.
    pub(super) async fn stream(&self, to: &Destination, caller: &Caller) -> Result<Stream, Error> {
        self.dial(&self.target(to), caller).await
    }

    /// The target to dial. What is dialled here is an address that the caller may reach; another outbound sees to that itself.
    async fn allowed(&self, to: &(Address, u16), network: Network, caller: &Caller) -> Result<(Address, u16), Error> {
        let line = &self.dialer.connector.line;
        if line.through.is_some() {
            return Ok(to.clone());
        }
        // Where the configuration says to go, everybody may.
        let policy = self.address.is_none().then(|| DialPolicy {
            rules: Arc::default(),
            remote: caller.remote,
            captured: caller.captured,
            neighbour: caller.neighbour,
            exempt: caller.exempt.clone(),
        });
        let mut refused = None;
        for address in line.resolver.resolve(&to.0, to.1, line.socket.domain_strategy).await? {
            let checked = policy.as_ref().map_or(Ok(()), |policy| policy.check(address, network));
            match checked.and_then(|()| self.loops.check(address, network)) {
                // A name is not asked for again: it might lead elsewhere by then.
                Ok(()) => return Ok((address.ip().into(), address.port())),
                Err(error) => refused = Some(error),
            }
        }
        Err(refused.unwrap_or_else(|| Error::Resolve { name: to.0.to_string() }))
    }

    async fn dial(&self, to: &(Address, u16), caller: &Caller) -> Result<Stream, Error> {
        let to = self.allowed(to, Network::Tcp, caller).await?;
        let (stream, _) = self.dialer.connect(&to, &[], caller).await?;
        Ok(stream)
    }

    async fn by_datagram(
        &self,
        asked: &Asked,
        id: u16,
        question: &[u8],
        to: &(Address, u16),
        caller: &Caller,
    ) -> Result<Vec<u8>, Error> {
        let to = self.allowed(to, Network::Udp, caller).await?;
        let mut wire = self.dialer.connector.line.datagrams(&to, caller).await?;
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

    async fn by_stream(
        &self,
        asked: &Asked,
        id: u16,
        question: &[u8],
        to: &(Address, u16),
        caller: &Caller,
    ) -> Result<Vec<u8>, Error> {
        let mut stream = Io(self.dial(to, caller).await?);
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
