//! Routes over an emulated link: it lies between the client and what that connects to, or, without programs, before the sink.

use std::io;
use std::net::SocketAddr;

use super::{Engine, Route, RouteError, Stack, refused, system};
use crate::link::{Link, Relay};

impl Route {
    /// As [`Route::open`], over `link` if there is one; without an engine a route without programs. The link is an open door
    /// until [`Route::engage`].
    ///
    /// # Errors
    /// [`RouteError`]; whatever was started has been ended then.
    pub fn open_linked(
        stack: &Stack,
        engine: Option<&Engine>,
        sink: SocketAddr,
        link: Option<Link>,
    ) -> Result<Route, RouteError> {
        let mut relay = None;
        let mut over = |to: SocketAddr| -> io::Result<SocketAddr> {
            match link {
                Some(link) => Ok(relay.insert(Relay::open(to, link)?).address()),
                None => Ok(to),
            }
        };
        let mut route = match engine {
            Some(engine) if stack.has_programs() => Route::open_over(stack, engine, sink, over)?,
            _ => Route::direct(over(sink).map_err(system("emulate a link"))?),
        };
        route.relay = relay;
        Ok(route)
    }

    /// From now on the link is one, with losses from `seed`; nothing without a link.
    pub fn engage(&self, seed: u64) {
        if let Some(relay) = &self.relay {
            relay.engage(seed);
        }
    }

    /// From now on the link is an open door, and what is under way arrives at once.
    pub fn release(&self) {
        if let Some(relay) = &self.relay {
            relay.release();
        }
    }

    /// The mark of a window in which the machine could not keep the link; nothing of one in which it could.
    pub(crate) fn link_figure(&self) -> Option<(&'static str, f64)> {
        self.relay.as_ref().and_then(Relay::mark)
    }

    /// Fails if the link carries nothing any more.
    ///
    /// # Errors
    /// [`RouteError::System`].
    pub fn check_link(&self) -> Result<(), RouteError> {
        match self.relay.as_ref().and_then(Relay::fault) {
            None => Ok(()),
            Some(what) => Err(refused("carry bytes over the link", what)),
        }
    }
}
