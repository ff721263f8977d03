//! `sealway lab`.

use std::io::Write;
use std::path::PathBuf;

use sealway_lab::calibrate;
use sealway_lab::catalogue;
use sealway_lab::ending::Ending;
use sealway_lab::files::https_post;
use sealway_lab::link::Link;
use sealway_lab::packets;
use sealway_lab::pin::Places;
use sealway_lab::plan::{Preset, Profile};
use sealway_lab::report::{html, json, terminal};
use sealway_lab::reproduce;
use sealway_lab::result::RunResult;
use sealway_lab::route::{Guest, Pair};
use sealway_lab::transports;
use sealway_lab::workload::{self, LabError, Peers, Request};

use super::respond;
use super::store::{Keeper, without_store};
use crate::args::{HttpsPost, LabOptions, LabRun, Measured, PeerWord, Remote, Reproduce, scope};
use crate::exit::Exit;
use crate::output::{self, Target};
use crate::problem::{Problem, note};
use crate::progress::Progress;

pub(crate) fn run(run: &LabRun) -> Result<Exit, Problem> {
    let knows_gpu = matches!(run.workload, Measured::One(workload) if workload.gpu);
    if run.gpu && !knows_gpu {
        let names: Vec<&str> = catalogue::ALL.iter().filter(|w| w.gpu).map(|w| w.name).collect();
        let commands: Vec<String> = names.iter().map(|name| format!("sealway lab {name} --gpu")).collect();
        let what = format!("--gpu is for the workloads {}", names.join(" and "));
        return Err(Problem::usage(what).hint(commands.join(", or ")));
    }
    if !run.gpu_mode.is_empty() && !matches!(run.workload, Measured::One(workload) if workload.name == packets::NAME) {
        let what = format!("--gpu-mode is for the workload {}", packets::NAME);
        return Err(Problem::usage(what).hint("sealway lab packets --gpu --gpu-mode kernel"));
    }
    let over_links =
        |measured| matches!(measured, Measured::One(workload) if catalogue::OVER_LINKS.named(workload.name).is_some());
    if run.link.is_some() && !over_links(run.workload) {
        let names: Vec<&str> = catalogue::OVER_LINKS.iter().map(|workload| workload.name).collect();
        let why = match run.workload {
            Measured::One(workload) if workload.name == calibrate::NAME => {
                "; over a link calibrate would compare no generators, but what the link's relay does with each"
            }
            _ => "",
        };
        let what = format!("--link is for one of the workloads {}{why}", names.join(", "));
        return Err(Problem::usage(what).hint("sealway lab transports --link rate=100mbit,rtt=40ms"));
    }
    if run.remote.remote.is_some()
        && !matches!(run.workload, Measured::One(workload) if workload.name == transports::NAME)
    {
        let what = format!("--remote is for the workload {}", transports::NAME);
        return Err(Problem::usage(what).hint("sealway lab transports --remote HOST:PORT"));
    }
    let special = Special {
        gpu: run.gpu.then_some(run.gpu_mode.as_slice()),
        link: run.link,
        preset: run.windows.preset,
        remote: Some(&run.remote),
        ..Special::default()
    };
    measure(run.workload, &run.options, special)
}

/// What is asked for beside the options that every run has.
#[derive(Default)]
pub(crate) struct Special<'a> {
    /// To measure a GPU, with these modes (all if none), if its workload knows one.
    pub(crate) gpu: Option<&'a [String]>,
    pub(crate) link: Option<Link>,
    pub(crate) preset: Option<Preset>,
    /// The other of two hosts.
    pub(crate) remote: Option<&'a Remote>,
    /// So many connections over sockets.
    pub(crate) sockets: Vec<usize>,
    /// The CPUs that threads stay on.
    pub(crate) pin: Option<Places>,
}

/// Only what has one stream of a proxy can be measured as somebody else did.
fn check_preset(measured: Measured, preset: Option<Preset>) -> Result<(), Problem> {
    let knows = match measured {
        Measured::One(workload) => *workload == transports::WORKLOAD,
        Measured::Recipe(recipe) => recipe.knows_presets(),
        Measured::All => false,
    };
    if preset.is_none() || knows {
        return Ok(());
    }
    let recipes = reproduce::ALL.into_iter().filter(|recipe| recipe.knows_presets());
    let names: Vec<&str> = recipes.map(|recipe| recipe.name).collect();
    let what = format!(
        "--preset is for the workload {} and for the recipes {}",
        transports::NAME,
        names.join(" and ")
    );
    Err(Problem::usage(what).hint("sealway lab transports --preset iperf3 --stack vless-tcp-tls"))
}

/// Measures and reports.
pub(crate) fn measure(measured: Measured, options: &LabOptions, special: Special<'_>) -> Result<Exit, Problem> {
    check_preset(measured, special.preset)?;
    let workloads = match measured {
        Measured::All => catalogue::ALL.together().collect(),
        Measured::One(workload) => vec![workload],
        Measured::Recipe(_) => Vec::new(),
    };
    check_guests(measured, &options.peer)?;
    check_pairs(measured, &options.pair)?;
    let other_host = special.remote.filter(|asked| asked.remote.is_some());
    let mut request = request(options, special)?;
    if other_host.is_some() {
        transports::allowed(&request).map_err(|e| Problem::new(e.ending().into(), &e))?;
    }
    let (json, html) = targets(options)?;
    let keeper = Keeper::new(&options.keep)?;
    if let Some(warning) = keeper.as_ref().and_then(Keeper::warning) {
        note(warning);
    }
    // Last of what can fail: a wrong request troubles no other host.
    request.remote = other_host.map(respond::connect).transpose()?.flatten();
    if measured == Measured::All {
        note(scope(catalogue::ALL.together()));
    }
    let kept = match &json {
        Some(Target::File(path)) if path.is_file() || !path.exists() => Some(path.as_path()),
        _ => None,
    };
    let mut progress = Progress::start(!options.no_progress && !options.ci, kept)?;
    let result = match measured {
        Measured::Recipe(recipe) => reproduce::run(recipe, &request, &mut progress),
        _ => workload::run(&workloads, &request, &mut progress),
    };
    progress.clear();
    let result = match result {
        Err(nothing @ LabError::NoDevice { .. }) => {
            progress.result_is_kept();
            note(format!("{nothing}; nothing was measured and nothing was written"));
            return Ok(Exit::Done);
        }
        result => result.map_err(|e| Problem::new(e.ending().into(), &e))?,
    };
    let written = write(&result, json.as_ref(), html.as_ref());
    // The partial file goes only once the result stands; the table is shown even when a file could not be written.
    if written.is_ok() {
        progress.result_is_kept();
    }
    let shown = show(&result, options.ci, &[&json, &html]);
    // A store may be slow to answer: nobody waits for it to see the tables.
    if let Some(kept) = keeper.and_then(|keeper| keeper.keep(&result)) {
        note(kept);
    }
    shown?;
    written?;
    if request.remote.is_some_and(|link| link.is_lost()) {
        return Err(Problem::new(Exit::Remote, "the other host was lost during the run"));
    }
    Ok(Ending::of(&result, options.strict).into())
}

/// Judges the claims of a recipe by a result that is there.
pub(crate) fn reproduce(asked: &Reproduce) -> Result<Exit, Problem> {
    let Some(from) = &asked.from else {
        let special = Special {
            preset: asked.windows.preset,
            ..Special::default()
        };
        return measure(Measured::Recipe(asked.recipe), &asked.options, special);
    };
    let options = &asked.options;
    let (json, html) = targets(options)?;
    let mut result = super::compare::read(from)?;
    result.reproduction = Some(reproduce::evaluate(asked.recipe, &result));
    write(&result, json.as_ref(), html.as_ref())?;
    show(&result, options.ci, &[&json, &html])?;
    Ok(Ending::of(&result, options.strict).into())
}

/// Where the result and the page go, found out before anything runs: a minute of measuring must not end in a path that cannot
/// be written.
fn targets(options: &LabOptions) -> Result<(Option<Target>, Option<Target>), Problem> {
    output::targets(options.json.as_deref(), options.html.as_deref())
}

/// One end of an HTTPS POST.
pub(crate) fn https_post(end: &HttpsPost) -> Result<Exit, Problem> {
    let moved = match end {
        HttpsPost::Receive { dir, cert, suite } => https_post::receive(dir, cert, *suite, |address| {
            // The line is whole at once, also where standard output is a pipe.
            let mut out = std::io::stdout().lock();
            writeln!(out, "listening {address}")?;
            out.flush()
        }),
        HttpsPost::Send { to, cert, suite, file } => https_post::send(*to, cert, *suite, file),
    };
    moved
        .map(|()| Exit::Done)
        .map_err(|error| Problem::new(Exit::Internal, &error))
}

fn request(options: &LabOptions, special: Special<'_>) -> Result<Request, Problem> {
    let profile = match (options.quick, options.full) {
        (true, _) => Profile::Quick,
        (_, true) => Profile::Full,
        _ => Profile::Standard,
    };
    Ok(Request {
        profile,
        peers: peers(&options.peers)?,
        guests: options.peer.clone(),
        pairs: options.pair.clone(),
        suites: options.suite.clone(),
        budget: options.budget,
        overtime: false,
        link: special.link,
        preset: special.preset,
        cases: None,
        stacks: options.stack.clone(),
        gpu: special.gpu.is_some(),
        sockets: special.sockets,
        pin: special.pin,
        gpu_modes: special.gpu.unwrap_or_default().to_vec(),
        costs: cache_folder().map(|folder| folder.join("sealway").join("costs")),
        remote: None,
        program: std::env::current_exe().ok(),
        seed: options.seed,
        // Where the program lies may say who the user is; its name repeats the run as well.
        command: std::iter::once("sealway".to_owned())
            .chain(without_host(without_store(std::env::args().skip(1))))
            .collect(),
    })
}

/// The words of a command without the address of another host and without the place of its token.
fn without_host(words: Vec<String>) -> impl Iterator<Item = String> {
    let mut before = String::new();
    words.into_iter().map(move |word| {
        let option = std::mem::replace(&mut before, word.clone());
        match (option.as_str(), word.split_once('=')) {
            ("--remote", _) => "HOST:PORT".to_owned(),
            ("--token-file", _) => "FILE".to_owned(),
            (_, Some(("--remote", _))) => "--remote=HOST:PORT".to_owned(),
            (_, Some(("--token-file", _))) => "--token-file=FILE".to_owned(),
            _ => word,
        }
    })
}

/// Where programs keep what can be had again, by the XDG Base Directory Specification: relative paths do not count.
fn cache_folder() -> Option<PathBuf> {
    let absolute = |name| {
        std::env::var_os(name)
            .map(PathBuf::from)
            .filter(|path| path.is_absolute())
    };
    absolute("XDG_CACHE_HOME").or_else(|| Some(absolute("HOME")?.join(".cache")))
}

/// User-supplied programs need a workload that can measure them, and a name each.
fn check_guests(measured: Measured, guests: &[Guest]) -> Result<(), Problem> {
    let can = match measured {
        Measured::All => true,
        Measured::One(workload) => workload.guests,
        Measured::Recipe(recipe) => recipe.takes_guests(),
    };
    if !guests.is_empty() && !can {
        let able = catalogue::ALL.iter().filter(|workload| workload.guests);
        let names: Vec<&str> = able.map(|workload| workload.name).collect();
        let recipes = reproduce::ALL.iter().filter(|recipe| recipe.takes_guests());
        let recipes: Vec<&str> = recipes.map(|recipe| recipe.name).collect();
        let what = format!(
            "--peer is for the workloads {} and the recipes {}",
            names.join(", "),
            recipes.join(", ")
        );
        return Err(Problem::usage(what).hint("sealway lab transports --peer NAME=PATH"));
    }
    let twice = |(at, guest): &(usize, &Guest)| {
        guests[..*at]
            .iter()
            .any(|other| other.name().eq_ignore_ascii_case(guest.name()))
    };
    match guests.iter().enumerate().find(twice) {
        Some((_, guest)) => {
            let what = format!("--peer: the name {} is given twice", guest.name());
            Err(Problem::usage(what).hint("give each program a name of its own"))
        }
        None => Ok(()),
    }
}

/// Pairs need a workload over proxied routes.
fn check_pairs(measured: Measured, pairs: &[Pair]) -> Result<(), Problem> {
    let can = match measured {
        Measured::All => true,
        Measured::One(workload) => workload.guests,
        Measured::Recipe(_) => false,
    };
    if pairs.is_empty() || can {
        return Ok(());
    }
    let able = catalogue::ALL.iter().filter(|workload| workload.guests);
    let names: Vec<&str> = able.map(|workload| workload.name).collect();
    let what = format!("--pair is for the workloads {}", names.join(", "));
    Err(Problem::new(Exit::Usage, what).hint("sealway lab transports --pair sealway+xray"))
}

fn peers(words: &[PeerWord]) -> Result<Peers, Problem> {
    let names = words.iter().filter_map(|word| match word {
        PeerWord::Named(name) => Some(name.clone()),
        PeerWord::Auto | PeerWord::None => None,
    });
    match words {
        [PeerWord::Auto] => Ok(Peers::Auto),
        [PeerWord::None] => Ok(Peers::None),
        _ if words.contains(&PeerWord::Auto) || words.contains(&PeerWord::None) => {
            Err(Problem::usage("--peers: `auto` and `none` stand alone")
                .hint("give either one of them or a list of names"))
        }
        _ => Ok(Peers::Named(names.collect())),
    }
}

pub(super) fn write(result: &RunResult, json: Option<&Target>, html: Option<&Target>) -> Result<(), Problem> {
    let failed = |error: &dyn std::fmt::Display| Problem::new(Exit::Internal, error);
    match json {
        Some(Target::File(path)) => json::write(path, result).map_err(|e| failed(&e))?,
        Some(Target::Stdout) => output::print_json(&serde_json::to_value(result)?)?,
        None => {}
    }
    match html {
        Some(Target::File(path)) => {
            html::write(path, result, &catalogue::ALL).map_err(|e| failed(&e))?;
        }
        Some(Target::Stdout) => output::print(&html::render(result, &catalogue::ALL))?,
        None => {}
    }
    Ok(())
}

/// Prints the tables: to standard output, or to standard error when a file took that.
pub(super) fn show(result: &RunResult, plain: bool, targets: &[&Option<Target>]) -> Result<(), Problem> {
    let files: Vec<String> = targets
        .iter()
        .filter_map(|target| match target {
            Some(Target::File(path)) => Some(path.display().to_string()),
            _ => None,
        })
        .collect();
    let files: Vec<&str> = files.iter().map(String::as_str).collect();
    let beside = targets.iter().any(|target| matches!(target, Some(Target::Stdout)));
    let style = if beside {
        output::style(&std::io::stderr(), plain)
    } else {
        output::style(&std::io::stdout(), plain)
    };
    let text = terminal::render(result, &catalogue::ALL, &style, &files);
    if beside {
        note(text.trim_end());
        return Ok(());
    }
    output::print(&text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_result_does_not_say_where_the_other_host_is() {
        let told = |line: &str| {
            without_host(line.split(' ').map(str::to_owned).collect())
                .collect::<Vec<_>>()
                .join(" ")
        };
        assert_eq!(
            told("lab transports --remote ann.example:1 --token-file /home/ann/t --quick"),
            "lab transports --remote HOST:PORT --token-file FILE --quick"
        );
        assert_eq!(
            told("lab --remote=ann.example:1 --token-file=t --seed 1"),
            "lab --remote=HOST:PORT --token-file=FILE --seed 1"
        );
    }
}
