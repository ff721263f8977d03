//! An end that waits lets the network know.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mdns_sd::{ServiceDaemon, ServiceInfo, TxtProperty};

use crate::sign::PERIOD;
use crate::{Error, SERVICE, Sign, daemon};

/// How long the last word may take.
const GOODBYE: Duration = Duration::from_millis(500);

/// An announcement. Dropped, it is taken back.
pub struct Announced {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

/// Lets the network know that the end with this sign waits at `port`, until what is returned is dropped.
///
/// # Errors
/// [`Error::Multicast`], [`Error::Random`].
pub fn announce(port: u16, sign: Sign) -> Result<Announced, Error> {
    let (daemon, name) = (daemon()?, name()?);
    daemon.register(info(&name, port, &sign)?)?;
    let (stop, stopped) = mpsc::channel();
    let run = move || {
        // Tags hold for a while, and are made anew before that.
        while let Err(RecvTimeoutError::Timeout) = stopped.recv_timeout(Duration::from_secs(PERIOD)) {
            let again = info(&name, port, &sign).and_then(|info| Ok(daemon.register(info)?));
            if let Err(error) = again {
                tracing::warn!(%error, "the network is not told any more that this end waits");
            }
        }
        end(&daemon, &name);
    };
    let thread = std::thread::Builder::new().name("lan".into()).spawn(run);
    Ok(Announced {
        stop: Some(stop),
        thread: Some(thread.map_err(|error| Error::Multicast(mdns_sd::Error::Msg(error.to_string())))?),
    })
}

/// A name that says nothing.
fn name() -> Result<String, Error> {
    let mut random = [0; 8];
    getrandom::fill(&mut random).map_err(Error::Random)?;
    Ok(format!("{:016x}", u64::from_le_bytes(random)))
}

fn info(name: &str, port: u16, sign: &Sign) -> Result<ServiceInfo, Error> {
    let text: Vec<TxtProperty> = sign.text(now())?.into_iter().map(TxtProperty::from).collect();
    let info = ServiceInfo::new(SERVICE, name, &format!("{name}.local."), "", port, text)?;
    let mut info = info.enable_addr_auto();
    // Asking for a second whether somebody has the name already is left out: it is 64 random bits, and nobody has.
    info.set_requires_probe(false);
    Ok(info)
}

pub(crate) fn now() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

fn end(daemon: &ServiceDaemon, name: &str) {
    if let Ok(taken_back) = daemon.unregister(&format!("{name}.{SERVICE}")) {
        let _ = taken_back.recv_timeout(GOODBYE);
    }
    if let Ok(ended) = daemon.shutdown() {
        let _ = ended.recv_timeout(GOODBYE);
    }
}

impl Drop for Announced {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_is_announced_without_asking_whether_somebody_has_it() {
        let info = info("0123456789abcdef", 4000, &Sign::Number(7)).unwrap();
        assert!(!info.requires_probe());
    }
}
