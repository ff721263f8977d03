//! wrk as a subject: one thread of it against the lab's own server.

use std::collections::BTreeMap;
use std::process::Command;
use std::time::Duration;

use super::{CONNECTIONS, LATENCY, Program, cells, claims, whole};
use crate::load::scripts::HTTP_KEEP;
use crate::measure::place::{End, hold};
use crate::peer::{self, Ended, Folder, proc, program};
use crate::result::Subject;
use crate::run::{CellError, Counted, Timed};
use crate::stats::latency::Tail;

/// The subject's name.
pub(super) const NAME: &str = "wrk";

/// Most bytes of output that are taken; it prints some 10,000.
const MAX_OUTPUT: usize = 64 * 1024;

/// How long the program may take beyond the seconds it was given.
const PATIENCE: Duration = Duration::from_secs(20);

/// Ranks at which wrk says how long a request took: each stands for as many of them. An answer costs wrk time that counts as its own,
/// so it is not asked for every request.
const RANKS: usize = 1000;

/// What it runs at the end of a test, and how its file is called.
const SCRIPT: &str = "\
function done(summary, latency, requests)
  for rank = 1, 1000 do
    io.write(string.format('rank %d us\\n', latency:percentile((rank - 0.5) / 10)))
  end
end
";
const FILE: &str = "latency.lua";

/// Units of counts.
const COUNTS: [(&str, f64); 4] = [("k", 1e3), ("M", 1e6), ("G", 1e9), ("", 1.0)];

/// Looks on PATH and asks for the version.
///
/// # Errors
/// Why the program cannot take part, for the reader.
pub(super) fn find() -> Result<Program, String> {
    let path = program::on_path(NAME)?;
    // It ends as if it had failed.
    let mut command = Command::new("/bin/sh");
    let version = program::version_of("wrk ", &path, command.args(["-c", "\"$0\" -v; true"]).arg(&path))?;
    Ok(Program { path, version })
}

/// The program as the result file describes it.
pub(super) fn subject(program: &Program) -> Subject {
    let argv = [vec![NAME.to_owned()], arguments("127.0.0.1:80", 1, FILE)].concat();
    let differs = [
        "one thread; the same request each time, and nothing of an answer is compared",
        "opens its connections inside the window",
        "counts for itself, in whole seconds; its CPU time is that from start to end",
    ];
    Subject {
        role_argv: BTreeMap::from([("client".to_owned(), argv)]),
        config: BTreeMap::from([(FILE.to_owned(), SCRIPT.into())]),
        ..program.subject(NAME, &differs)
    }
}

/// The program against a server with so much work for each request.
pub(super) struct Load {
    pub(super) program: Program,
    pub(super) work: Duration,
}

impl Load {
    fn run(&self, seconds: u64) -> Result<Counted, CellError> {
        let folder = Folder::temporary("sealway-wrk-").map_err(CellError::failed)?;
        let script = folder.path().join(FILE);
        proc::write(&script, SCRIPT).map_err(CellError::failed)?;
        let sink = cells::server(self.work)?;
        let _held = hold(End::Client);
        let words = arguments(&sink.address().to_string(), seconds, &script.to_string_lossy());
        let mut command = self.program.command(words);
        let patience = Duration::from_secs(seconds) + PATIENCE;
        let ended = peer::run(&mut command, MAX_OUTPUT, patience).map_err(CellError::failed)?;
        sink.check()?;
        counted(&ended, seconds, sink.served()).map_err(CellError::failed)
    }
}

/// The request is that of our own generator, with a key that stays.
fn arguments(server: &str, seconds: u64, script: &str) -> Vec<String> {
    let (connections, seconds) = (format!("-c{CONNECTIONS}"), format!("-d{seconds}s"));
    let url = format!("http://{server}/0000000000000000");
    [
        "-t1",
        &connections,
        &seconds,
        "-s",
        script,
        "-H",
        "Host: lab.invalid",
        &url,
    ]
    .map(str::to_owned)
    .to_vec()
}

/// What wrk says of a test.
#[derive(Clone, Debug, PartialEq)]
struct Report {
    requests: u64,
    /// Requests a second.
    rate: f64,
    /// How long they took at each rank, in microseconds, ascending.
    ranks: Vec<u64>,
}

impl Report {
    /// All requests, as many at each rank.
    fn tail(&self) -> Tail {
        let upto = |rank: usize| (u128::from(self.requests) * rank as u128 / RANKS as u128) as u64;
        Tail::of(
            (0..)
                .zip(&self.ranks)
                .map(|(rank, us)| (us.saturating_mul(1000), upto(rank + 1) - upto(rank))),
        )
    }
}

/// A count with its unit.
fn scaled(word: &str) -> Option<f64> {
    let (number, factor) = COUNTS
        .iter()
        .find_map(|(unit, factor)| Some((word.strip_suffix(unit)?, factor)))?;
    // Digits and points only: the number parser would take `inf`, `1e9` and signs too.
    let plain = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let value = plain.then(|| number.parse::<f64>().ok())?? * factor;
    value.is_finite().then_some(value)
}

/// Reads what wrk prints with the script.
///
/// # Errors
/// What is wrong with it, for the reader: also that requests failed.
fn report(output: &str) -> Result<Report, String> {
    let (mut requests, mut rate, mut ranks) = (None, None, Vec::with_capacity(RANKS));
    for line in output.lines().map(str::trim) {
        if line.starts_with("Socket errors:") || line.starts_with("Non-2xx or 3xx responses:") {
            return Err(format!("requests failed: {}", claims::quoted(line)));
        }
        match line.split_whitespace().collect::<Vec<_>>()[..] {
            ["rank", time, "us"] => ranks.extend(time.parse::<u64>().ok()),
            [count, "requests", "in", ..] => requests = count.parse().ok(),
            ["Requests/sec:", count] => rate = scaled(count).filter(|rate| *rate > 0.0),
            _ => {}
        }
    }
    let missing = |what: &str| format!("its output has no {what}; it begins with {}", claims::quoted(output));
    let report = Report {
        requests: requests
            .filter(|count| *count > 0)
            .ok_or_else(|| missing("number of requests"))?,
        rate: rate.ok_or_else(|| missing("requests a second"))?,
        ranks,
    };
    match report.ranks.len() {
        RANKS if report.ranks.is_sorted() => Ok(report),
        RANKS => Err("it says that requests of a higher rank took less long".to_owned()),
        found => Err(format!(
            "its output has times of {found} ranks, and {RANKS} were asked for"
        )),
    }
}

/// What a test of `seconds` counted, from the program's output, its life, and what the server has served.
///
/// # Errors
/// What about the figures cannot be, for the reader.
fn counted(ended: &Ended, seconds: u64, served: u64) -> Result<Counted, String> {
    let report = report(&String::from_utf8_lossy(&ended.output))?;
    let wall_s = report.requests as f64 / report.rate;
    claims::seconds(wall_s, seconds, ended.wall)?;
    // What was under way at the end is counted by one and not by the other.
    if report.requests.abs_diff(served) > CONNECTIONS as u64 {
        return Err(format!(
            "it says that {} requests were answered, and the server answered {served}",
            report.requests
        ));
    }
    if let Some(longest) = report
        .ranks
        .last()
        .filter(|us| Duration::from_micros(**us) > ended.wall)
    {
        return Err(format!("it says that a request took {longest} us, longer than it ran"));
    }
    let cpu_s = claims::cpu(&[ended])?;
    Ok(Counted {
        ops: report.requests,
        bytes: report.requests.saturating_mul(HTTP_KEEP.bytes()),
        wall_s,
        cpu_s,
        figures: vec![("rate", report.rate), ("cpu_per_op", cpu_s / report.requests as f64)],
        tails: vec![(LATENCY, report.tail())],
    })
}

impl Timed for Load {
    fn window(&mut self, _warmup: Duration, window: Duration) -> Result<Counted, CellError> {
        self.run(whole(window))
    }
}

#[cfg(test)]
mod tests;
