//! An end that was told no address looks for the one that waits.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use mdns_sd::{Receiver, RecvTimeoutError, ResolvedService, ScopedIp, ServiceDaemon, ServiceEvent};

use crate::announce::now;
use crate::near::dialled;
use crate::{Error, SERVICE, Sign, daemon};

/// How long others may take to answer as well, once one has.
const OTHERS: Duration = Duration::from_millis(300);
/// How often it is looked whether somebody wants no more.
const TICK: Duration = Duration::from_millis(50);
/// Most answers that are looked at.
const MAX_ANSWERS: usize = 1024;

/// Looks for the end with this sign for at most `limit`, and says where it waits, the likely addresses first.
///
/// # Errors
/// [`Error::Several`] if more than one answers to it, [`Error::Nobody`], [`Error::Stopped`] soon after `stop` says so,
/// [`Error::Multicast`].
pub fn search(sign: &Sign, limit: Duration, stop: &dyn Fn() -> bool) -> Result<Vec<SocketAddr>, Error> {
    let daemon = daemon()?;
    let found = daemon.browse(SERVICE).map_err(Error::from).and_then(|answers| {
        let found = gather(sign, &answers, limit, stop);
        let _ = daemon.stop_browse(SERVICE);
        found
    });
    end(&daemon);
    found
}

fn end(daemon: &ServiceDaemon) {
    if let Ok(ended) = daemon.shutdown() {
        let _ = ended.recv_timeout(OTHERS);
    }
}

fn gather(
    sign: &Sign,
    answers: &Receiver<ServiceEvent>,
    limit: Duration,
    stop: &dyn Fn() -> bool,
) -> Result<Vec<SocketAddr>, Error> {
    let mut until = Instant::now() + limit;
    // By name: one that is heard on several interfaces has more addresses each time.
    let mut found: HashMap<String, Vec<SocketAddr>> = HashMap::new();
    let mut looked_at = 0;
    while Instant::now() < until && looked_at < MAX_ANSWERS {
        if stop() {
            return Err(Error::Stopped);
        }
        let answer = match answers.recv_timeout(TICK) {
            Ok(answer) => answer,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => break,
        };
        match answer {
            ServiceEvent::ServiceResolved(service) => {
                looked_at += 1;
                let addresses = addresses(sign, &service);
                if addresses.is_empty() {
                    continue;
                }
                if found.is_empty() {
                    until = until.min(Instant::now() + OTHERS);
                }
                found.insert(service.fullname, addresses);
                if found.len() > 1 {
                    return Err(Error::Several);
                }
            }
            // It has gone again, so that another may stand there.
            ServiceEvent::ServiceRemoved(_, name) => {
                found.remove(&name);
            }
            _ => {}
        }
    }
    found.into_values().next().ok_or(Error::Nobody)
}

/// Where the one who announces this is dialled; nowhere if it is not meant.
fn addresses(sign: &Sign, service: &ResolvedService) -> Vec<SocketAddr> {
    let value = |key: &str| service.txt_properties.get_property_val(key).flatten();
    if !sign.is_meant(now(), value) {
        return Vec::new();
    }
    let heard = service.addresses.iter().map(|address| {
        let interface = match address {
            ScopedIp::V6(v6) => v6.scope_id().index,
            _ => 0,
        };
        (address.to_ip_addr(), interface)
    });
    dialled(heard, service.port)
}
