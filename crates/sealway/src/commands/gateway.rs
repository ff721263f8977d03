//! `sealway gateway`.

use sealway_proxy::gateway::{Plan, Wishes};
use sealway_proxy::settings::Settings;
use sealway_v2ray::config::{File, Options, load};

use super::run::files::{Missing, Source, names, problems, read};
use crate::args;
use crate::exit::Exit;
use crate::output;
use crate::problem::{Problem, note};

pub(crate) fn run(options: &args::Gateway) -> Result<Exit, Problem> {
    let missing = |missing: Missing| Problem::new(Exit::Usage, &missing).hint(missing.hint());
    let env = |name: &str| std::env::var(name).ok();
    let files = names(&options.config, None, &env).map_err(missing)?;
    let sources: Vec<Source> = files
        .iter()
        .map(|file| read(file))
        .collect::<Result<_, _>>()
        .map_err(missing)?;
    let texts: Vec<File<'_>> = sources
        .iter()
        .map(|Source { name, text }| File { name, text })
        .collect();
    let how = Options {
        strict: false,
        env: &env,
    };
    let loaded = load(&texts, &how);
    problems(&loaded.problems);
    let wrong = |what: String| Problem::new(Exit::Usage, what);
    let config = loaded
        .config
        .ok_or_else(|| wrong("the configuration is wrong".to_owned()))?;
    let settings = Settings::from_config(&config).map_err(|error| wrong(error.to_string()))?;
    let wishes = Wishes {
        lan: options.lan.clone(),
        mark: options.mark,
        table: options.table,
        ipv6: !options.no_ipv6,
        own: options.own,
    };
    let plan = Plan::new(&settings, &wishes).map_err(|error| wrong(error.to_string()))?;
    if options.undo {
        output::print(&plan.undo)?;
        return Ok(Exit::Done);
    }
    for warning in &plan.warnings {
        note(format_args!("warning: {warning}"));
    }
    output::print(&plan.apply)?;
    Ok(Exit::Done)
}
