//! `sealway gateway`.

use sealway_proxy::gateway::{Plan, Wishes};
use sealway_proxy::settings::Settings;

use super::run::files;
use crate::args;
use crate::exit::Exit;
use crate::output;
use crate::problem::{Problem, note};

pub(crate) fn run(options: &args::Gateway) -> Result<Exit, Problem> {
    let config = files::look(&options.config)?.1;
    let config = config.ok_or_else(|| Problem::usage("the configuration is wrong"))?;
    let settings = Settings::from_config(&config).map_err(Problem::usage)?;
    let wishes = Wishes {
        lan: options.lan.clone(),
        mark: options.mark,
        table: options.table,
        ipv6: !options.no_ipv6,
        own: options.own,
    };
    let plan = Plan::new(&settings, &wishes).map_err(Problem::usage)?;
    if options.undo {
        return output::answer(&plan.undo);
    }
    for warning in &plan.warnings {
        note(format_args!("warning: {warning}"));
    }
    output::answer(&plan.apply)
}
