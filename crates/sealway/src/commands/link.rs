//! `sealway link`.

use std::path::Path;

use sealway_v2ray::config;
use sealway_v2ray::link::{Form, Link, LinkError, Scheme};
use serde_json::{Value, json};

use super::run::files::{parse, read};
use crate::args;
use crate::exit::Exit;
use crate::output;
use crate::problem::{Problem, note};

pub(crate) fn run(options: &args::Link) -> Result<Exit, Problem> {
    match options {
        args::Link::ToConfig { link, port, outbound } => to_config(link, *port, *outbound),
        args::Link::FromConfig { file, tag, v2rayn } => from_config(file, tag.as_deref(), *v2rayn),
    }
}

fn to_config(text: &str, port: u16, outbound_only: bool) -> Result<Exit, Problem> {
    let text = match text {
        "-" => {
            let source = read(Path::new("stdin:")).map_err(Problem::usage)?;
            String::from_utf8_lossy(&source.text).into_owned()
        }
        text => {
            note("warning: every user of this machine can read a command line, and a link holds the id");
            note("  hint: sealway link to-config - takes the link from standard input");
            text.to_owned()
        }
    };
    let link = Link::parse(&text).map_err(Problem::usage)?;
    // What it asks for must work here, or the file would be refused later, far from the link.
    match link.to_outbound() {
        Ok((_, warnings)) => {
            for warning in warnings {
                note(format_args!("warning: {}", said(&warning)));
            }
        }
        Err(LinkError::Outbound(found)) => {
            let found: Vec<_> = found.iter().map(said).collect();
            return Err(Problem::usage(found.join("; ")));
        }
        Err(error) => return Err(Problem::usage(error)),
    }
    let outbounds = Value::Array(vec![link.to_json()]);
    output::print_json(&if outbound_only {
        json!({ "outbounds": outbounds })
    } else {
        let local = json!({
            "tag": "local",
            "listen": "127.0.0.1",
            "port": port,
            "protocol": "socks",
            "settings": { "udp": true },
        });
        json!({ "log": { "loglevel": "warning" }, "inbounds": [local], "outbounds": outbounds })
    })?;
    Ok(Exit::Done)
}

/// What is wrong with the outbound that a link makes, which has no place in a file.
fn said(problem: &config::Problem) -> String {
    match problem.path.as_str() {
        "" => problem.text.clone(),
        path => format!("{path}: {}", problem.text),
    }
}

fn from_config(file: &Path, tag: Option<&str>, v2rayn: bool) -> Result<Exit, Problem> {
    let source = read(file).map_err(Problem::usage)?;
    let (name, config) = (&source.name, parse(std::slice::from_ref(&source)));
    let config = config.ok_or_else(|| Problem::usage(format!("{name}: the configuration is wrong")))?;
    let mut lines = String::new();
    for outbound in &config.outbounds {
        if tag.is_some_and(|tag| tag != outbound.tag) {
            continue;
        }
        let mut made = match Link::from_outbound(outbound) {
            Ok(made) => made,
            Err(error) if tag.is_some() => return Err(Problem::usage(error)),
            // Those that end here have nothing to share.
            Err(_) => continue,
        };
        if !made.left_out.is_empty() {
            let keys = made.left_out.join(", ");
            note(format_args!(
                "warning: {:?}: a link cannot say these, they are left out: {keys}",
                outbound.tag
            ));
        }
        if v2rayn && made.link.scheme == Scheme::Vmess {
            made.link.form = Form::Json;
        }
        lines.push_str(&format!("{}\n", made.link));
    }
    if lines.is_empty() {
        let problem = match tag {
            Some(tag) => {
                let tags: Vec<_> = config.outbounds.iter().map(|one| format!("{:?}", one.tag)).collect();
                Problem::usage(format!("{name}: no outbound has the tag {tag:?}"))
                    .hint(format_args!("the tags are {}", tags.join(", ")))
            }
            None => Problem::usage(format!("{name}: no outbound speaks VLESS or VMess"))
                .hint("links are made of a client's outbounds, not of a server's inbounds"),
        };
        return Err(problem);
    }
    output::answer(&lines)
}
