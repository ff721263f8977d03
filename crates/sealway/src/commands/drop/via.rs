//! `--via grpc` and `--via grpc-plain`: one file through the gRPC service.

use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

use sealway_drop::address::is_this_machine;
use sealway_drop::cancel::Cancel;
use sealway_drop::grpc::files::Way;
use sealway_lab::exit::Exit;

use super::events::Events;
use super::place::{End, Way as Found, confirm, way};
use super::problem;
use crate::args::{DropLink, ViaWord};
use crate::problem::Problem;

/// How long the other end may take to listen.
const PATIENCE: Duration = Duration::from_secs(10);

/// The connection that the service goes over.
pub(super) fn connect(link: &DropLink, end: End, events: Events, cancel: &Cancel) -> Result<Way, Problem> {
    if link.via == ViaWord::GrpcPlain {
        return plain(link).map(Way::Plain);
    }
    let Found {
        place, setup, check, ..
    } = way(link, end, events, cancel)?;
    let connected = super::place::connect(place, &setup, 1, events, cancel).and_then(|mut connected| {
        confirm(&mut connected, check, events, cancel)?;
        Ok(connected)
    });
    Ok(Way::Sealed(Box::new(connected.map_err(|error| problem(&error))?)))
}

fn plain(link: &DropLink) -> Result<TcpStream, Problem> {
    let usage = |text: String| Problem::new(Exit::Usage, text);
    let failed = |error: std::io::Error| Problem::new(Exit::Remote, error);
    let address = link.connect.as_ref().or(link.listen.as_ref());
    let address = address.ok_or_else(|| usage("--via grpc-plain needs --connect or --listen".into()))?;
    if !is_this_machine(address) {
        return Err(usage(
            "nothing is sealed with --via grpc-plain, so it goes over loopback only".into(),
        ));
    }
    if link.listen.is_some() {
        let listener = TcpListener::bind(address.as_str()).map_err(failed)?;
        return Ok(listener.accept().map_err(failed)?.0);
    }
    let until = Instant::now() + PATIENCE;
    loop {
        match TcpStream::connect(address.as_str()) {
            Ok(stream) => return Ok(stream),
            Err(error) if Instant::now() >= until => return Err(failed(error)),
            Err(_) => std::thread::sleep(Duration::from_millis(10)),
        }
    }
}
