//! `sealway localsend devices`, `remember`, `forget`.

use std::time::Duration;

use sealway_drop::names::Escaped;
use sealway_drop_localsend::discover::scan;
use sealway_drop_localsend::favourites::Favourite;
use sealway_drop_localsend::find::is_address;
use sealway_drop_localsend::message::Protocol;
use serde_json::json;

use super::super::events::Events;
use super::super::stop_on_signal;
use super::{remembered, runtime, start};
use crate::exit::Exit;
use crate::output;
use crate::problem::Problem;

/// How long devices are listened for: as long as this end announces itself, and a second to answer.
const LISTENS: Duration = Duration::from_secs(3);

const EVENTS: Events = Events {
    notify: false,
    quiet: false,
    json: false,
};

pub(super) fn list(as_json: bool, scans: bool) -> Result<Exit, Problem> {
    let (_, known) = remembered()?;
    let devices = runtime()?.block_on(async {
        let running = start(None, false, true, None, EVENTS).await?;
        tokio::time::sleep(LISTENS).await;
        if scans {
            scan(&running.node).await;
        }
        let devices = running.node.devices();
        running.shut_down().await;
        Ok::<_, Problem>(devices)
    })?;
    let name_of = |pin| {
        known
            .iter()
            .find(|one| Some(one.fingerprint) == pin)
            .map(|one| one.name.clone())
    };
    let is_here = |one: &&Favourite| devices.iter().any(|device| device.fingerprint == Some(one.fingerprint));
    let absent: Vec<_> = known.iter().filter(|one| !is_here(one)).collect();
    if as_json {
        let mut all: Vec<_> = devices
            .iter()
            .map(|device| {
                json!({"alias": device.info.alias, "model": device.info.device_model, "type": device.info.device_type,
                    "fingerprint": device.fingerprint.map(|pin| pin.to_string()), "proved": device.proved,
                    "protocol": device.protocol().name(), "download": device.info.download, "version": device.info.version,
                    "addresses": device.addresses.iter().map(ToString::to_string).collect::<Vec<_>>(),
                    "remembered": name_of(device.fingerprint), "present": true})
            })
            .collect();
        all.extend(absent.iter().map(|one| {
            json!({"alias": one.name, "fingerprint": one.fingerprint.to_string(), "protocol": one.protocol.name(),
                "addresses": [one.host], "remembered": one.name, "present": false})
        }));
        return output::answer(&format!("{}\n", serde_json::Value::Array(all)));
    }
    for device in &devices {
        let address = device.addresses.first().map(ToString::to_string).unwrap_or_default();
        let proof = match (device.fingerprint, name_of(device.fingerprint)) {
            _ if device.protocol() == Protocol::Http => "in clear, not authenticated".to_owned(),
            (Some(pin), Some(name)) => format!("{}  remembered as {}", pin.short(), Escaped(name.as_bytes())),
            (Some(pin), None) => pin.short(),
            (None, _) => "not authenticated".to_owned(),
        };
        let offers = if device.info.download { "  offers files" } else { "" };
        output::print(&format!("{}  {address}  {proof}{offers}\n", device.info.shown()))?;
    }
    for one in &absent {
        let name = Escaped(one.name.as_bytes());
        output::print(&format!(
            "{name}  was at {}  {}  not heard\n",
            one.host,
            one.fingerprint.short()
        ))?;
    }
    if devices.is_empty() && absent.is_empty() {
        crate::problem::note(
            "no devices were heard; is the app open there, and does a firewall let 53317/udp and 53317/tcp through? --scan asks every address",
        );
    }
    Ok(Exit::Done)
}

pub(super) fn remember(device: &str, name: Option<&str>) -> Result<Exit, Problem> {
    let (favourites, known) = remembered()?;
    let Some(favourites) = favourites else {
        let problem = Problem::usage("there is no folder to remember devices in");
        return Err(problem.hint("set SEALWAY_CONFIG_DIR or HOME"));
    };
    let cancel = stop_on_signal()?;
    let found = runtime()?.block_on(async {
        let running = start(None, false, !is_address(device), None, EVENTS).await?;
        let found = super::send::search(&running.node, device, &known, &cancel).await;
        running.shut_down().await;
        found
    })?;
    let Some(fingerprint) = found.place.pin else {
        return Err(Problem::new(
            Exit::Identity,
            "the device has no certificate by which it could be known again",
        ));
    };
    let name = name.map_or_else(|| found.info.alias.clone(), str::to_owned);
    let shown = Escaped(name.as_bytes()).to_string();
    favourites.remember(Favourite {
        name,
        fingerprint,
        host: found.place.address.ip().to_string(),
        port: found.place.address.port(),
        protocol: found.place.protocol,
        since: jiff::Zoned::now().date().to_string(),
    })?;
    output::answer(&format!("{shown}  {}\n", fingerprint.short()))
}

pub(super) fn forget(name: &str) -> Result<Exit, Problem> {
    let (favourites, _) = remembered()?;
    if let Some(favourites) = favourites
        && favourites.forget(name)?
    {
        return Ok(Exit::Done);
    }
    let problem = Problem::usage(format!("no device is remembered as {}", Escaped(name.as_bytes())));
    Err(problem.hint("`sealway localsend devices` shows them"))
}
