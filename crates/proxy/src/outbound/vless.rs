//! VLESS, as the client.

use std::ops::Range;

use sealway_v2ray::vless::{self, decode_response};
use sealway_v2ray::{Destination, Step, mux};

use super::mux::Programs;
use super::{Caller, Dialer, Far, Protocol};
use crate::error::{Error, Pending};
use crate::layer::{Open, Opened};
use crate::mux::Xudp;
use crate::policy::is_private;
use crate::settings::VlessOut;
use crate::stream::Stream;
use crate::udp::{Framed, PacketEnd};

/// A VLESS server.
pub(super) struct Vless {
    settings: VlessOut,
    dialer: Dialer,
    /// One association serves all targets, by XUDP.
    xudp: Option<Programs>,
}

/// Ports whose datagrams go out on their own: one question and one answer, or a connection of their own.
const ALONE: [u16; 2] = [53, 443];

impl Vless {
    pub(super) fn new(place: &str, settings: VlessOut, dialer: Dialer, xudp: Option<Programs>) -> Self {
        if !dialer.connector.line.has_tls() && settings.server.0.ip().is_none_or(|ip| !is_private(ip)) {
            tracing::warn!("{place}: VLESS without TLS sends everything in the clear");
        }
        Vless { settings, dialer, xudp }
    }

    async fn stream(&self, to: &Destination, caller: &Caller) -> Result<Stream, Error> {
        let request = vless::Request {
            id: self.settings.id,
            flow: vless::Flow::None,
            command: match mux::is_mux(to) {
                true => vless::Command::Mux,
                false => vless::Command::Connect(to.clone()),
            },
        };
        let mut header = Vec::new();
        request.encode(&mut header);
        let mut stream = self.dialer.connect_with(&self.settings.server, header, caller).await?;
        stream.set_opener(Box::new(Response));
        Ok(stream)
    }
}

impl Protocol for Vless {
    fn connect<'a>(&'a self, to: &'a Destination, caller: &'a Caller) -> Pending<'a, Far> {
        Box::pin(async { Ok(Far::Stream(Box::new(self.stream(to, caller).await?))) })
    }

    fn associate<'a>(&'a self, to: &'a Destination, caller: &'a Caller) -> Pending<'a, Box<dyn PacketEnd>> {
        Box::pin(async move {
            match &self.xudp {
                Some(programs) if !ALONE.contains(&to.port) => {
                    let stream = self.stream(&mux::target()?, caller).await?;
                    Ok(Xudp::new(stream, to.clone(), programs.id(caller)) as Box<dyn PacketEnd>)
                }
                _ => Ok(Framed::vless(self.stream(to, caller).await?, to.clone()) as Box<dyn PacketEnd>),
            }
        })
    }

    fn is_open_to_all(&self, to: &Destination) -> bool {
        self.xudp.is_some() && !ALONE.contains(&to.port)
    }
}

/// The response header, after which the payload follows as it is.
struct Response;

impl Open for Response {
    fn open(&mut self, buffer: &mut [u8], out: usize, input: Range<usize>) -> Result<Opened, Error> {
        if input.is_empty() {
            return Ok(Opened::default());
        }
        match decode_response(&buffer[input.clone()])? {
            Step::More(_) => Ok(Opened::default()),
            Step::Done { used, .. } => {
                let rest = input.start + used..input.end;
                let produced = rest.len();
                buffer.copy_within(rest, out);
                Ok(Opened {
                    consumed: input.len(),
                    produced,
                    end: false,
                    through: true,
                })
            }
        }
    }

    fn may_end(&self) -> bool {
        false
    }
}
