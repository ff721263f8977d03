//! `sealway geo`.

use std::fmt::Write as _;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use sealway_proxy::geo::{self, GeoError, GeoFile, Item, Kind};
use sealway_v2ray::text::escape;

use super::run::files::{environment, location};
use crate::args::Geo;
use crate::exit::Exit;
use crate::output;
use crate::problem::{Problem, note};

const NAMES: &str = "geosite.dat";
const NETWORKS: &str = "geoip.dat";

pub(crate) fn run(options: &Geo) -> Result<Exit, Problem> {
    let text = match options {
        Geo::List { file } => list(file.as_deref()),
        Geo::Show { list, attr } => show(list, attr),
        Geo::Lookup { name, file } => lookup(name, file.as_deref()),
    };
    output::answer(&text?)
}

fn wrong(error: GeoError) -> Problem {
    match &error {
        GeoError::Unreadable { .. } => Problem::new(Exit::Storage, error),
        _ => Problem::usage(error),
    }
}

/// The file of this name or path.
fn find(name: &Path) -> Result<PathBuf, Problem> {
    if name.is_file() {
        return Ok(name.to_owned());
    }
    let folders = geo::folders(location("asset", &environment));
    geo::find(&name.to_string_lossy(), &folders).map_err(wrong)
}

fn list(file: Option<&Path>) -> Result<String, Problem> {
    let files = match file {
        Some(file) => vec![find(file)?],
        None => vec![find(Path::new(NAMES))?, find(Path::new(NETWORKS))?],
    };
    let mut text = String::new();
    for path in files {
        let mut file = GeoFile::open_any(&path).map_err(wrong)?;
        let written = written(&file, &path);
        for list in file.lists().to_vec() {
            let mut entries = 0u64;
            file.read(&list, |_| entries += 1).map_err(wrong)?;
            let code = written(&list.code);
            let _ = writeln!(text, "{}  {entries}", escape(&code));
        }
    }
    Ok(text)
}

/// How rules write the lists of a file.
fn written(file: &GeoFile, path: &Path) -> impl Fn(&str) -> String + use<> {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
    let start = match (file.kind(), name.unwrap_or_default().as_str()) {
        (Kind::Names, NAMES) => "geosite:".to_owned(),
        (Kind::Networks, NETWORKS) => "geoip:".to_owned(),
        (_, name) => format!("ext:{name}:"),
    };
    move |code| format!("{start}{}", code.to_lowercase())
}

fn show(list: &str, attributes: &[String]) -> Result<String, Problem> {
    let (form, rest) = list.split_once(':').unwrap_or(("geosite", list));
    let (name, code) = match form.to_ascii_lowercase().as_str() {
        "geosite" => (NAMES, rest),
        "geoip" => (NETWORKS, rest),
        "ext" | "ext-domain" | "ext-site" | "ext-ip" => rest.rsplit_once(':').unwrap_or_default(),
        _ => ("", ""),
    };
    let mut words = code.split('@');
    let code = words.next().unwrap_or_default();
    if name.is_empty() || code.is_empty() {
        let problem = Problem::usage(format!("{list:?} names no list"));
        return Err(problem.hint("write geosite:CODE, geoip:CODE or ext:FILE:CODE"));
    }
    let attributes: Vec<&str> = words.chain(attributes.iter().map(String::as_str)).collect();
    let mut file = GeoFile::open_any(&find(Path::new(name))?).map_err(wrong)?;
    let list = file.list(code).map_err(wrong)?;
    let mut text = String::new();
    let read = file.read(&list, |item| {
        let line = match item {
            Item::Name(name) => {
                let has = |wanted: &&str| name.attributes().any(|one| one.eq_ignore_ascii_case(wanted));
                attributes.iter().all(has).then(|| name.to_string())
            }
            Item::Network(net) => Some(net.to_string()),
            Item::Inverse => Some("(all addresses outside of these)".to_owned()),
            _ => None,
        };
        text.extend(line.map(|line| escape(&line).into_owned() + "\n"));
    });
    read.map_err(wrong)?;
    Ok(text)
}

fn lookup(name: &str, file: Option<&Path>) -> Result<String, Problem> {
    let ip: Option<IpAddr> = name.parse().ok();
    let usual = Path::new(if ip.is_some() { NETWORKS } else { NAMES });
    let path = find(file.unwrap_or(usual))?;
    let mut file = GeoFile::open_any(&path).map_err(wrong)?;
    let found = match (ip, file.kind()) {
        (Some(ip), Kind::Networks) => file.lists_with_ip(ip),
        (None, Kind::Names) => file.lists_with_name(&name.trim_end_matches('.').to_lowercase()),
        (Some(_), Kind::Names) => {
            let text = format!("{} lists names, and {name} is an address", path.display());
            return Err(Problem::usage(text));
        }
        (None, Kind::Networks) => {
            let text = format!("{} lists networks, and {name} is no IP address", path.display());
            return Err(Problem::usage(text));
        }
    };
    let found = found.map_err(wrong)?;
    if found.is_empty() {
        note(format_args!("no list of {} holds {name}", path.display()));
    }
    let written = written(&file, &path);
    Ok(found
        .iter()
        .map(|(code, entry)| format!("{}\n", escape(&format!("{}  {entry}", written(code)))))
        .collect())
}
