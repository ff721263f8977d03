//! VLESS, as the client.

mod ready;

use std::ops::Range;
use std::sync::Arc;

use sealway_v2ray::vless::vision::Seed;
use sealway_v2ray::vless::{self, Flow, decode_response};
use sealway_v2ray::{Destination, Step, UserId, mux};
use tokio::time::timeout;

use super::mux::Programs;
use super::{Caller, Dialer, Far, Protocol, REACH};
use crate::error::{Error, Pending};
use crate::layer::{Open, Opened};
use crate::mux::Xudp;
use crate::roads::inherit;
use crate::settings::{MuxOut, VlessOut};
use crate::stream::Stream;
use crate::udp::{Framed, PacketEnd};

use ready::Ready;

/// A VLESS server.
pub(super) struct Vless {
    settings: VlessOut,
    dialer: Arc<Dialer>,
    /// Makes ids of associations by XUDP. `None`: datagrams go by the protocol's own command.
    xudp: Option<Programs>,
    /// One association by XUDP serves all targets.
    full_cone: bool,
    ready: Option<Ready>,
}

/// How a stream begins whose header is set.
#[derive(Clone, Copy)]
struct Begins {
    id: UserId,
    /// Of the flow, if there is one.
    seed: Option<Seed>,
    /// What is sent may leave TLS.
    leaves: bool,
}

impl Begins {
    fn on(self, mut stream: Stream) -> Result<Stream, Error> {
        stream.set_opener(Box::new(Response));
        if let Some(seed) = self.seed {
            stream.carries_vision()?;
            stream.set_vision(self.id, seed, self.leaves);
        }
        Ok(stream)
    }
}

/// Ports whose datagrams go out on their own: one question and one answer, or a connection of their own.
const ALONE: [u16; 2] = [53, 443];

impl Vless {
    pub(super) fn new(settings: VlessOut, dialer: Dialer, mux: &MuxOut) -> Result<Self, Error> {
        let dialer = Arc::new(dialer);
        let by_xudp = mux.full_cone || settings.vision.is_some();
        let ready = settings.vision.map(|vision| vision.ready).filter(|&ready| ready > 0);
        Ok(Vless {
            xudp: by_xudp.then(|| Programs::new(mux)).transpose()?,
            full_cone: mux.full_cone,
            ready: ready.map(|ready| Ready::new(settings.server.clone(), Arc::clone(&dialer), ready)),
            settings,
            dialer,
        })
    }

    async fn stream(&self, to: &Destination, caller: &Caller) -> Result<Stream, Error> {
        let is_mux = mux::is_mux(to);
        let request = vless::Request {
            id: self.settings.id,
            flow: if self.settings.vision.is_some() {
                Flow::Vision
            } else {
                Flow::None
            },
            command: match is_mux {
                true => vless::Command::Mux,
                false => vless::Command::Connect(to.clone()),
            },
        };
        let mut header = Vec::new();
        request.encode(&mut header);
        let kept = match &self.ready {
            Some(ready) => ready.take().await,
            None => None,
        };
        let begins = Begins {
            id: request.id,
            seed: self.settings.vision.map(|vision| vision.seed),
            leaves: !is_mux,
        };
        let Some(mut stream) = kept else {
            let stream = self.dialer.connect_with(&self.settings.server, header, caller).await?;
            return begins.on(stream);
        };
        stream.set_prefix(header.clone());
        let mut stream = begins.on(stream)?;
        if !is_mux {
            let (dialer, server, caller) = (Arc::clone(&self.dialer), self.settings.server.clone(), caller.clone());
            stream.set_again(Box::pin(inherit(async move {
                let dialled = timeout(REACH, dialer.connect_with(&server, header, &caller)).await;
                begins.on(dialled.unwrap_or(Err(Error::TimedOut("answer of the next server")))?)
            })));
        }
        Ok(stream)
    }

    /// Whether datagrams to this port are refused, and why.
    fn refuses(&self, to: &Destination) -> Result<(), Error> {
        match &self.settings.vision {
            Some(vision) if to.port == 443 && !vision.udp_443 => Err(Error::forbidden(
                &to,
                "the flow xtls-rprx-vision; xtls-rprx-vision-udp443 lets QUIC through",
            )),
            _ => Ok(()),
        }
    }

    /// Whether datagrams to this port go by the protocol's own command.
    fn is_alone(&self, to: &Destination) -> bool {
        self.settings.vision.is_none() && ALONE.contains(&to.port)
    }
}

impl Protocol for Vless {
    fn connect<'a>(&'a self, to: &'a Destination, caller: &'a Caller) -> Pending<'a, Far> {
        Box::pin(async { Ok(Far::Stream(Box::new(self.stream(to, caller).await?))) })
    }

    fn associate<'a>(&'a self, to: &'a Destination, caller: &'a Caller) -> Pending<'a, Box<dyn PacketEnd>> {
        Box::pin(async move {
            self.refuses(to)?;
            match &self.xudp {
                Some(programs) if !self.is_alone(to) => {
                    let stream = self.stream(&mux::target()?, caller).await?;
                    Ok(Xudp::new(stream, to.clone(), programs.id(caller)) as Box<dyn PacketEnd>)
                }
                _ => Ok(Framed::vless(self.stream(to, caller).await?, to.clone()) as Box<dyn PacketEnd>),
            }
        })
    }

    fn is_open_to_all(&self, to: &Destination) -> bool {
        self.full_cone && self.refuses(to).is_ok() && !self.is_alone(to)
    }
}

/// The response header, after which nothing is to be opened here.
struct Response;

impl Open for Response {
    fn open(&mut self, buffer: &mut [u8], _: usize, input: Range<usize>) -> Result<Opened, Error> {
        if input.is_empty() {
            return Ok(Opened::default());
        }
        match decode_response(&buffer[input])? {
            Step::More(_) => Ok(Opened::default()),
            Step::Done { used, .. } => Ok(Opened {
                consumed: used,
                through: true,
                ..Opened::default()
            }),
        }
    }

    fn may_end(&self) -> bool {
        false
    }
}
