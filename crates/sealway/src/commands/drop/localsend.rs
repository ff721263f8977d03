//! LocalSend: `sealway localsend`, `send --localsend`, `receive --localsend`.

mod devices;
mod receive;
mod send;

use std::io::IsTerminal;
use std::sync::Arc;

use sealway_drop::cancel::Cancel;
use sealway_drop::identity::config_dir;
use sealway_drop_localsend::Error;
use sealway_drop_localsend::favourites::{Favourite, Favourites};
use sealway_drop_localsend::receive::Receiver;
use sealway_drop_localsend::send::{AskPin, What};
use sealway_drop_localsend::server::{self, Options, Running};
use sealway_drop_transfer::dest;
use tokio::runtime::Runtime;
use zeroize::Zeroizing;

use super::asking;
use super::events::Events;
use super::stop_on_signal;
use crate::args::{Appearing, HashWord, Localsend, LocalsendCommand, Receive, Send};
use crate::exit::Exit;
use crate::problem::Problem;
use crate::signals::runtime_of;

/// Two files come or go at a time, and may wait for a disk; somebody must answer meanwhile.
const WORKERS: usize = 4;

pub(crate) fn run(options: &Localsend) -> Result<Exit, Problem> {
    match &options.command {
        Some(LocalsendCommand::Devices { json, scan }) => return devices::list(*json, *scan),
        Some(LocalsendCommand::Remember { device, name }) => return devices::remember(device, name.as_deref()),
        Some(LocalsendCommand::Forget { name }) => return devices::forget(name),
        None => {}
    }
    let events = Events {
        notify: false,
        quiet: options.quiet,
        json: options.json,
    };
    let conflict = super::receive::conflict(options.conflict);
    let cancel = stop_on_signal()?;
    let taking = super::receive::taking(options.yes, conflict, (&options.output, options.create), &cancel)?;
    let settings = dest::Options {
        conflict: taking.conflict,
        hidden_in_home: options.hidden,
        fsync: options.fsync,
        ..dest::Options::default()
    };
    let destination = dest::Destination::open(&options.output, settings).map_err(sealway_drop::Error::from)?;
    let way = receive::Way {
        appearing: &options.appearing,
        guard: &options.guard,
        yes: options.yes,
        anyone: options.anyone,
        stays: true,
    };
    receive::run(&way, destination, events, &cancel)
}

/// `sealway send --localsend`.
pub(crate) fn send(options: &Send, device: &str) -> Result<Exit, Problem> {
    let events = Events::of(&options.link);
    let cancel = stop_on_signal()?;
    let (what, left_out) = match &options.text {
        Some(text) => (What::Text(text.clone()), 0),
        None => {
            let (_, scan) = super::send::found(options, events, &cancel)?;
            let left_out = scan.skipped.len() as u64;
            (
                What::Files(Arc::new(scan), options.link.hash == HashWord::All),
                left_out,
            )
        }
    };
    send::run(device, what, left_out, options.insecure_http, events, &cancel)
}

/// `sealway receive --localsend`.
pub(crate) fn receive(options: &Receive) -> Result<Exit, Problem> {
    let events = Events::of(&options.link);
    let cancel = stop_on_signal()?;
    let destination = super::receive::place(options, &cancel)?.destination;
    let way = receive::Way {
        appearing: &options.appearing,
        guard: &options.guard,
        yes: options.yes,
        anyone: options.link.anyone,
        stays: false,
    };
    match &options.pull {
        Some(device) => receive::pull(device, &way, destination, events, &cancel),
        None => receive::run(&way, destination, events, &cancel),
    }
}

/// An error with what to do about it.
fn problem(error: sealway_drop::Error) -> Problem {
    let hint = error.part::<Error>().and_then(Error::hint);
    Problem::from(error).hint_if(hint)
}

fn of_part(error: Error) -> Problem {
    problem(error.into())
}

fn runtime() -> Result<Runtime, Problem> {
    runtime_of(WORKERS)
}

/// The devices that are remembered, and where.
fn remembered() -> Result<(Option<Favourites>, Vec<Favourite>), Problem> {
    let favourites = config_dir().map(|dir| Favourites::at(&dir));
    let known = favourites.as_ref().map_or(Ok(vec![]), Favourites::list)?;
    Ok((favourites, known))
}

/// Starts to listen, and with `discover` to announce this end.
async fn start(
    appearing: Option<&Appearing>,
    clear: bool,
    discover: bool,
    receiver: Option<Receiver>,
    events: Events,
) -> Result<Running, Problem> {
    let said = appearing.and_then(|appearing| appearing.alias.clone());
    let options = Options {
        alias: said.unwrap_or_else(|| rustix::system::uname().nodename().to_string_lossy().into_owned()),
        port: appearing.and_then(|appearing| appearing.port),
        clear,
        discover,
        folder: config_dir(),
    };
    let running = server::start(options, receiver, move |text| events.warn(text))
        .await
        .map_err(problem)?;
    if !running.node.is_kept() {
        events.warn("the certificate of this end cannot be kept, so it is another device to others each time; set SEALWAY_CONFIG_DIR to a folder of yours");
    }
    Ok(running)
}

/// Asks for the PIN of a device: of the environment first, then of a person.
fn ask_pin(cancel: &Cancel) -> AskPin {
    let mut given = std::env::var("SEALWAY_PIN")
        .ok()
        .filter(|pin| !pin.is_empty())
        .map(Zeroizing::new);
    let cancel = cancel.clone();
    Box::new(move |was_wrong| {
        if let Some(pin) = given.take() {
            return Some(pin);
        }
        if !std::io::stdin().is_terminal() {
            return None;
        }
        let question = match was_wrong {
            true => "that was another PIN; PIN of the other device: ",
            false => "PIN of the other device: ",
        };
        asking::ask(question, &cancel).ok().filter(|pin| !pin.is_empty())
    })
}
