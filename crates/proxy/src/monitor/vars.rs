//! Numbers as JSON, in the form that panels of Xray read.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::process::Process;
use super::view::parts;
use crate::stats::{Health, Stats};

/// What Xray says instead of the delay of an outbound that does not answer, milliseconds.
const DEAD: u128 = 99_999_999;

/// `memstats`, `observatory` and `stats`.
///
/// What belongs to the memory of Go is left out, or 0; what Xray tells of the command line is not for whoever asks here, since
/// secrets may stand in it.
pub(super) fn write(stats: &Stats, process: &Process) -> String {
    let mut out = String::new();
    let memory = process.resident;
    let _ = writeln!(
        out,
        "{{\n\"memstats\": {{\"Alloc\":{memory},\"TotalAlloc\":{memory},\"Sys\":{memory},\"HeapAlloc\":{memory},\
         \"HeapSys\":{memory},\"HeapInuse\":{memory},\"HeapObjects\":0,\"NumGC\":0,\"PauseTotalNs\":0,\"PauseNs\":[]}},"
    );
    out.push_str("\"observatory\": ");
    observatory(&stats.health(), &mut out);
    out.push_str(",\n\"stats\": ");
    traffic(stats, &mut out);
    out.push_str("\n}\n");
    out
}

/// The outbounds that are measured. Keys whose value is nothing are left out, as there.
fn observatory(health: &BTreeMap<String, Health>, out: &mut String) {
    if health.is_empty() {
        out.push_str("null");
        return;
    }
    let mut before = '{';
    for (tag, health) in health {
        out.push(before);
        before = ',';
        string(tag, out);
        out.push_str(":{");
        if health.alive {
            out.push_str("\"alive\":true,");
        }
        let delay = if health.alive { health.delay.as_millis() } else { DEAD };
        if delay > 0 {
            let _ = write!(out, "\"delay\":{delay},");
        }
        if !health.alive && !health.last_error.is_empty() {
            out.push_str("\"last_error_reason\":");
            string(&health.last_error, out);
            out.push(',');
        }
        out.push_str("\"outbound_tag\":");
        string(tag, out);
        for (key, time) in [("last_seen_time", health.last_seen), ("last_try_time", health.last_try)] {
            if time != 0 {
                let _ = write!(out, ",\"{key}\":{time}");
            }
        }
        out.push('}');
    }
    out.push('}');
}

/// The bytes of inbounds, outbounds and users.
fn traffic(stats: &Stats, out: &mut String) {
    let mut kinds = BTreeMap::from(["inbound", "outbound", "user"].map(|kind| (kind, String::new())));
    let mut last = String::new();
    let add = |name: &str, bytes: u64| {
        let Some((kind, tag, direction)) = parts(name) else {
            return;
        };
        let Some(text) = kinds.get_mut(kind) else { return };
        // Both directions of one follow each other.
        let whose = &name[..name.len() - direction.len()];
        if last == whose {
            text.pop();
            text.push(',');
        } else {
            if !text.is_empty() {
                text.push(',');
            }
            string(tag, text);
            text.push_str(":{");
            whose.clone_into(&mut last);
        }
        let _ = write!(text, "\"{direction}\":{bytes}}}");
    };
    stats.each(false, |_| true, add);
    let mut before = '{';
    for (kind, text) in kinds {
        let _ = write!(out, "{before}\"{kind}\":{{{text}}}");
        before = ',';
    }
    out.push('}');
}

/// A text of JSON.
fn string(text: &str, out: &mut String) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            c if c.is_control() => {
                let _ = write!(out, "\\u{:04x}", u32::from(c));
            }
            c => out.push(c),
        }
    }
    out.push('"');
}
