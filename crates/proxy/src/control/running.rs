//! A server that runs: an engine, and doors to it.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sealway_net::Alive;

use super::doors::{Door, Place};
use super::{Changes, Refusal};
use crate::engine::plan::Plan;
use crate::engine::{Engine, How, Next};
use crate::error::Error;
use crate::inbound::Inbound;
use crate::listen::Bound;
use crate::lists::Lists;
use crate::loops;
use crate::replay;
use crate::settings::{InboundProtocol, Settings, ShadowsocksUsers};
use crate::stats::Stats;
use crate::tls::provider;

/// What a server consists of while it runs.
pub(crate) struct Running {
    pub(super) engine: Arc<Engine>,
    /// `None`: nobody is to be accepted any more.
    alive: Mutex<Option<Alive>>,
    /// Held by whoever changes something: one change comes after another.
    doors: Arc<tokio::sync::Mutex<Vec<Door>>>,
    addresses: Mutex<HashMap<String, Vec<SocketAddr>>>,
}

/// The server ends, and its tasks with it.
pub(super) fn stopped() -> Error {
    Error::Unsupported("a change of a server that has stopped")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What has to stand before anybody can come to these inbounds.
async fn get_ready(plan: &Plan) {
    let tls = plan
        .inbounds
        .iter()
        .any(|one| one.transport.tls.is_some() || one.transport.reality.is_some());
    if tls || plan.outbounds.iter().any(|one| one.transport.tls.is_some()) {
        provider::seed();
    }
    let timed = |protocol: &InboundProtocol| match protocol {
        InboundProtocol::Vmess(_) => true,
        InboundProtocol::Shadowsocks(shadowsocks) => !matches!(shadowsocks.users, ShadowsocksUsers::Classic(_)),
        _ => false,
    };
    let mut reality = plan.inbounds.iter().filter_map(|one| one.transport.reality.as_ref());
    if plan.inbounds.iter().any(|one| timed(&one.protocol)) || reality.any(|one| one.max_time_diff.is_some()) {
        // Before anything listens: who is queued by the system meanwhile would come with an id of this second.
        replay::begin().await;
    }
    if plan.inbounds.iter().any(|one| one.protocol.capture().is_some()) {
        loops::own::watch();
    }
}

impl Running {
    /// Binds every listener and begins to serve.
    ///
    /// # Errors
    /// [`Error::Config`] and [`Error::Listen`]. Nothing is left running then.
    pub(crate) async fn start(settings: Settings, stats: &Arc<Stats>, alive: Alive) -> Result<Arc<Running>, Error> {
        let lists = Arc::new(Lists::of(&settings));
        let running = Arc::new(Running {
            engine: Arc::new(Engine::empty(stats, lists)?),
            alive: Mutex::new(Some(alive)),
            doors: Arc::default(),
            addresses: Mutex::default(),
        });
        let mut doors = running.doors.lock().await;
        // Whoever starts waits for it.
        let next = running.engine.prepare(Plan::of(settings), How::Strict)?;
        running.take_up(next, &mut doors).await?;
        drop(doors);
        Ok(running)
    }

    /// What serves.
    pub(crate) fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// Nobody is accepted any more, and nothing can be changed.
    pub(crate) fn stop(&self) {
        lock(&self.alive).take();
    }

    /// Addresses that the inbound with this tag listens on.
    pub(crate) fn addresses(&self, tag: &str) -> Vec<SocketAddr> {
        lock(&self.addresses).get(tag).cloned().unwrap_or_default()
    }

    /// Changes what there is to what `change` makes of it.
    ///
    /// # Errors
    /// Those of `change`, and [`Refusal::Unusable`] for what does not work. Nothing is changed then.
    pub(super) async fn change(
        self: &Arc<Self>,
        how: How,
        change: impl FnOnce(&mut Plan) -> Result<(), Refusal>,
    ) -> Result<Changes, Refusal> {
        let mut doors = Arc::clone(&self.doors).lock_owned().await;
        let mut plan = self.engine.plan();
        change(&mut plan)?;
        let running = Arc::clone(self);
        // Whoever asked for it may go away half way.
        let changing = tokio::spawn(async move {
            let engine = Arc::clone(&running.engine);
            // Files are read where that may take its time.
            let prepared = tokio::task::spawn_blocking(move || engine.prepare(plan, how)).await;
            let next = prepared.map_err(|_| stopped())??;
            running.take_up(next, &mut doors).await
        });
        Ok(changing.await.map_err(|_| stopped())??)
    }

    /// Does something of which nothing else comes in between.
    pub(super) async fn alone<T>(&self, work: impl FnOnce(&Engine) -> T) -> T {
        let _doors = self.doors.lock().await;
        work(&self.engine)
    }

    /// Opens what listeners are missing, puts what was made in its place, and closes those that are needed no more.
    async fn take_up(self: &Arc<Self>, next: Next, doors: &mut Vec<Door>) -> Result<Changes, Error> {
        let alive = lock(&self.alive).clone().ok_or_else(stopped)?;
        get_ready(&next.plan).await;
        let mut places = Vec::new();
        for (at, (settings, (inbound, _))) in next.plan.inbounds.iter().zip(&next.inbounds).enumerate() {
            places.extend(Place::all(settings).map(|place| Wanted {
                at,
                place,
                inbound: Arc::clone(inbound),
            }));
        }
        // Nothing is done to the old ones before all new ones are there.
        let mut going: Vec<Door> = std::mem::take(doors);
        let stays: Vec<Option<Door>> = places
            .iter()
            .map(|wanted| {
                let at = going
                    .iter()
                    .position(|door| door.fits(&wanted.place, &wanted.inbound.tag))?;
                Some(going.remove(at))
            })
            .collect();
        let (bound, failed) = bind(&places, &stays, &going);
        let done = match failed {
            None => {
                let plan = next.plan.clone();
                let engine = Arc::clone(&self.engine);
                // What is closed with it, such as a log, may take its time.
                let committed = tokio::task::spawn_blocking(move || engine.commit(next, true)).await;
                committed.map(|()| plan).map_err(|_| stopped())
            }
            Some(error) => {
                drop(next);
                self.engine.lists().sweep();
                Err(error)
            }
        };
        let plan = match done {
            Ok(plan) => plan,
            Err(error) => {
                for (wanted, sockets) in places.into_iter().zip(bound) {
                    if let Some(door) = going.iter().find(|door| door.is_at(&wanted.place)) {
                        door.relieve(wanted.place, sockets, &self.engine, &alive);
                    }
                }
                doors.extend(stays.into_iter().flatten().chain(going));
                return Err(error);
            }
        };
        let mut changes = Changes {
            closed: going.len(),
            ..Changes::default()
        };
        let mut addresses: HashMap<String, Vec<SocketAddr>> = HashMap::new();
        let mut guarded = Vec::new();
        for ((wanted, stays), sockets) in places.into_iter().zip(stays).zip(bound) {
            let Wanted { at, place, inbound } = wanted;
            let door = match stays {
                Some(mut door) => {
                    changes.kept += 1;
                    door.lead_to(place, &inbound);
                    door
                }
                None => {
                    changes.opened += 1;
                    Door::new(place, sockets, &inbound)
                }
            };
            if let Some(settings) = plan.inbounds.get(at) {
                guarded.extend(door.guarded(settings));
                let own = addresses.entry(settings.tag.clone()).or_default();
                own.extend(door.addresses());
                own.dedup();
            }
            doors.push(door);
        }
        guarded.dedup();
        self.engine.loops().set(guarded);
        for door in doors.iter_mut() {
            door.open(&self.engine, &alive);
        }
        *lock(&self.addresses) = addresses;
        // Now that others stand in their place.
        drop(going);
        Ok(changes)
    }
}

/// Where the inbound of this number is to be listened for.
struct Wanted {
    at: usize,
    place: Place,
    inbound: Arc<Inbound>,
}

/// The sockets of all places but those where a door stays, up to the first place that cannot be had.
fn bind(places: &[Wanted], stays: &[Option<Door>], going: &[Door]) -> (Vec<Vec<Bound>>, Option<Error>) {
    let mut bound = Vec::with_capacity(places.len());
    for (Wanted { at, place, inbound }, stays) in places.iter().zip(stays) {
        let sockets = match stays {
            Some(_) => Ok(Vec::new()),
            None => place.bind(&inbound.tag, going),
        };
        match sockets {
            Ok(sockets) => bound.push(sockets),
            Err(source) => {
                let failed = Error::Listen {
                    place: format!("inbounds[{at}]"),
                    on: place.name(),
                    source,
                };
                return (bound, Some(failed));
            }
        }
    }
    (bound, None)
}
