//! `sealway bip324 probe`.

use std::fmt::Write;
use std::time::Duration;

use sealway_bip324::Magic;
use sealway_bridge::probe::{Answer, Options, Report};
use sealway_bridge::{Error, Target, probe};
use serde_json::{Value, json};

use super::problem;
use crate::args::Probe;
use crate::exit::Exit;
use crate::output;
use crate::problem::Problem;
use crate::signals::runtime;

pub(crate) fn run(options: &Probe) -> Result<Exit, Problem> {
    let target = Target::parse(&options.target, options.network).map_err(|error| {
        problem(&error).hint("give HOST:PORT; the port may be left out for a network that has a name")
    })?;
    let how = Options {
        network: options.network,
        limit: options.timeout,
        user_agent: concat!("/sealway:", env!("CARGO_PKG_VERSION"), "/").to_owned(),
    };
    let runtime = runtime()?;
    let report = runtime.block_on(probe(&target, &how));
    // A name that the system still looks up is not waited for.
    runtime.shutdown_background();
    let report = match report {
        Ok(report) => report,
        Err(error) => {
            if options.json {
                output::print_json(&unreached(&target, options.network, &error))?;
            }
            return Err(problem(&error));
        }
    };
    if options.json {
        output::print_json(&object(&report))?;
    } else {
        output::print(&table(&report))?;
    }
    if report.v2.is_ok() || report.version.is_ok() {
        return Ok(Exit::Done);
    }
    let what = format!("{} answers neither v2 nor v1 of {}", report.target, report.network);
    Err(Problem::new(Exit::Remote, what).hint("is it a Bitcoin node, and of this --network? does it let you in?"))
}

/// What is printed of a node that could not be asked: the members of [`object`], and why.
fn unreached(target: &Target, network: Magic, error: &Error) -> Value {
    json!({
        "schema": 1,
        "target": target.to_string(),
        "address": null,
        "network": network.to_string(),
        "error": error.to_string(),
        "v2": false,
        "v2_error": null,
        "connect_seconds": null,
        "handshake_seconds": null,
        "session_id": null,
        "version_seconds": null,
        "version_error": null,
        "version_over": null,
        "version": null,
    })
}

fn object(report: &Report) -> Value {
    let v2 = report.v2.as_ref().ok();
    let answer = report.version.as_ref().ok();
    let transport = answer.map(|_| if v2.is_some() { "v2" } else { "v1" });
    json!({
        "schema": 1,
        "target": report.target.to_string(),
        "address": report.address.to_string(),
        "network": report.network.to_string(),
        "error": null,
        "v2": v2.is_some(),
        "v2_error": report.v2.as_ref().err().map(ToString::to_string),
        "connect_seconds": report.connect.as_secs_f64(),
        "handshake_seconds": v2.map(|v2| v2.handshake.as_secs_f64()),
        "session_id": v2.map(|v2| v2.session_id.to_string()),
        "version_seconds": answer.map(|answer| answer.after.as_secs_f64()),
        "version_error": report.version.as_ref().err().map(ToString::to_string),
        "version_over": transport,
        "version": answer.map(|Answer { version, .. }| json!({
            "protocol": version.protocol,
            "services": format!("{:#x}", version.services),
            "service_names": version.service_names(),
            "time": version.time,
            "user_agent": version.user_agent,
            "height": version.height,
        })),
    })
}

fn table(report: &Report) -> String {
    let mut text = format!("{} at {}, {}\n", report.target, report.address, report.network);
    let mut line = |name: &str, value: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(text, "  {name:<12} {value}");
    };
    match &report.v2 {
        Ok(v2) => {
            line("v2", "yes");
            line("connect", &milliseconds(report.connect));
            line("handshake", &milliseconds(v2.handshake));
            line("session id", &v2.session_id.to_string());
        }
        Err(error) => {
            line("v2", &format!("no: {error}"));
            line("connect", &milliseconds(report.connect));
            line("v1", if report.version.is_ok() { "yes" } else { "no" });
        }
    }
    match &report.version {
        Ok(Answer { after, version }) => {
            line("version", &milliseconds(*after));
            line("protocol", &version.protocol.to_string());
            let names = version.service_names().join(" ");
            line("services", &format!("{:#x} {names}", version.services));
            line("user agent", &version.user_agent);
            line("height", &version.height.to_string());
            const P2P_V2: u64 = 1 << 11;
            if report.v2.is_err() && version.services & P2P_V2 != 0 {
                line("note", "it says that it speaks v2 (P2P_V2), and did not");
            }
        }
        Err(error) => line("version", &format!("none: {error}")),
    }
    text
}

fn milliseconds(time: Duration) -> String {
    format!("{:.2} ms", time.as_secs_f64() * 1e3)
}
