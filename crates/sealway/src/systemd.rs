//! What a service manager is told, and the sockets that it holds for the server.

use std::io;
use std::sync::{Once, mpsc};
use std::thread;
use std::time::Duration;

use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use sd_notify::NotifyState;
use sealway_proxy::inherit;
use sealway_proxy::settings::{Listen, Settings};

use crate::exit::Exit;
use crate::problem::Problem;

/// Sockets that the program was started with: the names that the manager gives them, and their addresses.
#[derive(Debug, Default)]
pub(crate) struct Sockets(Vec<(String, Listen)>);

impl Sockets {
    /// Takes those that are meant for this process (`LISTEN_PID`, `LISTEN_FDS`, `LISTEN_FDNAMES`). Once a process.
    pub(crate) fn take() -> Result<Sockets, Problem> {
        let refused = |name: &str, error: io::Error| {
            let name = name.escape_debug();
            let text = format!("the socket {name} of the service manager cannot be taken over: {error}");
            Problem::new(Exit::Internal, text).hint("see ListenStream=, ListenDatagram= and Accept= of the socket unit")
        };
        // Names that are meant for another process fit no socket.
        if sd_notify::listen_fds().map_err(|error| refused("list", error))?.len() == 0 {
            return Ok(Sockets::default());
        }
        let given = sd_notify::listen_fds_with_names().map_err(|error| refused("list", error))?;
        let own = pidfd_open(getpid(), PidfdFlags::empty()).map_err(|error| refused("list", error.into()))?;
        let one = |(number, name): (i32, String)| {
            let fd =
                pidfd_getfd(&own, number, PidfdGetfdFlags::empty()).map_err(|error| refused(&name, error.into()))?;
            let at = inherit(fd).map_err(|error| refused(&name, error))?;
            Ok((name, at))
        };
        given.map(one).collect::<Result<_, _>>().map(Sockets)
    }

    /// Lets inbounds listen on the sockets that have their tags as names. One that has the address of an inbound is taken by it
    /// anyway; others are said. Who may reach an inbound was checked by its own address, so no socket opens it to more.
    pub(crate) fn give_to(&self, settings: &mut Settings) {
        let is_named = |name: &str, tag: &str| name == tag && !tag.is_empty();
        for inbound in &mut settings.inbounds {
            let own = self.0.iter().filter(|(name, _)| is_named(name, &inbound.tag));
            let mut own: Vec<Listen> = own.map(|(_, at)| at.clone()).collect();
            let is_within = |at: &Listen| inbound.listen.iter().any(|asked| includes(asked, at));
            if !own.iter().all(is_within) {
                let tag = inbound.tag.escape_debug();
                tracing::error!(
                    "the inbound {tag} does not take the service manager's socket, which more can reach than its `listen` allows: \
                     give both the same address"
                );
                continue;
            }
            // One for streams and one for datagrams have the same address.
            own.dedup();
            if !own.is_empty() {
                inbound.listen = own;
            }
        }
        for (name, at) in &self.0 {
            let mut inbounds = settings.inbounds.iter();
            if !inbounds.any(|inbound| is_named(name, &inbound.tag) || inbound.listen.contains(at)) {
                let name = name.escape_debug();
                tracing::warn!("no inbound has the tag or the address of the service manager's socket {name}");
            }
        }
    }
}

/// Whether whoever reaches the second address is meant to reach the first, ports aside, and the family of "every address".
fn includes(asked: &Listen, given: &Listen) -> bool {
    match (asked, given) {
        (Listen::EveryAddress(_), _) => true,
        (Listen::Port(asked), _) if asked.ip().is_unspecified() => true,
        (Listen::Port(asked), Listen::Port(given)) if asked.ip().to_canonical() == given.ip().to_canonical() => true,
        (Listen::Port(_), given) => asked.is_this_machine() && given.is_this_machine(),
        (Listen::Unix(..), given) => matches!(given, Listen::Unix(..)),
    }
}

/// Tells the service manager, if there is one that listens. It may have gone away, which is no reason to stop, and is said once.
fn tell(states: &[NotifyState<'_>]) {
    static SAID: Once = Once::new();
    if let Err(error) = sd_notify::notify(states) {
        SAID.call_once(|| tracing::warn!("the service manager cannot be told: {error}"));
    }
}

/// It serves now.
pub(crate) fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// It reads its configuration again. [`ready`] says when it has.
pub(crate) fn reloading() {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(_) => tell(&[NotifyState::Reloading]),
    }
}

/// It ends.
pub(crate) fn stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("stopping")]);
}

/// Says twice in the time that a watchdog allows that the runtime still answers. Must be called within it.
pub(crate) fn feed_watchdog() {
    let Some(most) = sd_notify::watchdog_enabled() else {
        return;
    };
    let pause = (most / 2).max(Duration::from_millis(1));
    // It may hang in the manager's socket, where nothing else must wait with it; and nothing else may keep it from its thread, as
    // names that are looked up keep others from those of the runtime.
    let (beats, heard) = mpsc::sync_channel(1);
    let feeding = move || {
        while heard.recv().is_ok() {
            tell(&[NotifyState::Watchdog]);
        }
    };
    if let Err(error) = thread::Builder::new().name("watchdog".into()).spawn(feeding) {
        tracing::warn!("the service manager's watchdog cannot be fed: {error}");
        return;
    }
    tokio::spawn(async move {
        let mut beat = tokio::time::interval(pause);
        beat.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            beat.tick().await;
            // One that still waits to be said counts for both.
            let _ = beats.try_send(());
        }
    });
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use sealway_v2ray::config::{self, File, Options};

    use super::*;

    #[test]
    fn no_socket_of_the_manager_opens_an_inbound_to_more() {
        let port = |text: &str| Listen::Port(text.parse().unwrap());
        let (local, public, every) = (port("127.0.0.1:7"), port("192.0.2.1:7"), Listen::EveryAddress(7));
        for (listen, given, taken) in [
            ("127.0.0.1", vec![public.clone()], false),
            ("::1", vec![every.clone()], false),
            ("/run/in.sock", vec![every.clone()], false),
            ("/run/in.sock", vec![local.clone()], false),
            ("127.0.0.1", vec![local.clone(), public.clone()], false),
            ("10.0.0.1", vec![public.clone()], false),
            ("10.0.0.1", vec![every.clone()], false),
            ("127.0.0.2", vec![local], true),
            ("192.0.2.1", vec![public.clone()], true),
            ("0.0.0.0", vec![every], true),
            ("::", vec![public], true),
        ] {
            let text = format!(
                r#"{{"inbounds": [{{"tag": "in", "listen": "{listen}", "port": 1, "protocol": "socks"}}],
                    "outbounds": [{{"protocol": "freedom"}}]}}"#
            );
            let file = File {
                name: "c.json",
                text: text.as_bytes(),
            };
            let loaded = config::load(
                &[file],
                &Options {
                    strict: false,
                    env: &|_| None,
                },
            );
            let mut settings = Settings::from_config(&loaded.config.unwrap()).unwrap();
            let before = settings.inbounds[0].listen.clone();
            Sockets(given.iter().map(|at| ("in".to_owned(), at.clone())).collect()).give_to(&mut settings);
            let wanted = if taken { &given } else { &before };
            assert_eq!(&settings.inbounds[0].listen, wanted, "{listen}");
        }
    }
}
