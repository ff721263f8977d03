//! Runs of the lab that are kept: where, which, and what is done with them.

use std::path::PathBuf;

use clap::{Args, ValueHint};
use sealway_lab::catalogue::ALL;
use sealway_lab::store::check_name;

use super::values;
use crate::exit::Exit;

/// Where runs are kept.
#[derive(Args, Debug)]
pub(crate) struct Stored {
    /// Where runs are kept: a file, or a database [default: $SEALWAY_LAB_STORE, else $XDG_DATA_HOME/sealway/lab.sqlite]
    ///
    /// A database is postgres://USER@HOST/DATABASE. Others on this machine see what stands on a command line: a URL with a
    /// password belongs in SEALWAY_LAB_STORE.
    #[arg(long, value_name = "PATH|URL")]
    pub(crate) store: Option<String>,
}

/// What becomes of the result of a run.
#[derive(Args, Debug)]
pub(crate) struct Keep {
    #[command(flatten)]
    pub(crate) stored: Stored,

    /// Do not keep the result
    #[arg(long, conflicts_with_all = ["store", "name"])]
    pub(crate) no_store: bool,

    /// Keep the result under a name, by which `show` and `compare` find it
    #[arg(long, value_name = "NAME", value_parser = check_name)]
    pub(crate) name: Option<String>,
}

/// List the runs that are kept, newest first
#[derive(Args, Debug)]
pub(crate) struct Runs {
    /// Most runs to list
    #[arg(long, value_name = "N", default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    pub(crate) limit: u32,

    /// Runs of this branch only
    #[arg(long, value_name = "NAME")]
    pub(crate) branch: Option<String>,

    #[command(flatten)]
    pub(crate) stored: Stored,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Show a kept run again, as it was shown when it ended
#[derive(Args, Debug)]
pub(crate) struct Show {
    /// The run: its number, the first eight characters of its identifier, `last`, or a name or branch, whose newest is meant
    #[arg(value_name = "RUN")]
    pub(crate) run: String,

    /// Write the result to FILE, - for standard output (the table then goes to standard error)
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) json: Option<PathBuf>,

    /// Write a report with charts to FILE
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) stored: Stored,
}

/// Write kept runs to a file, for `import`
#[derive(Args, Debug)]
pub(crate) struct Export {
    /// The runs, as `show` takes them
    #[arg(value_name = "RUN", required = true)]
    pub(crate) runs: Vec<String>,

    /// The file, - for standard output
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) output: PathBuf,

    #[command(flatten)]
    pub(crate) stored: Stored,
}

/// Keep the runs of a file that `export` or `lab --json` wrote
///
/// A run that is kept already stays as it is. A name that means other runs here, such as that of a branch, is dropped.
#[derive(Args, Debug)]
pub(crate) struct Import {
    /// The file
    #[arg(value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) file: PathBuf,

    #[command(flatten)]
    pub(crate) stored: Stored,
}

/// Delete old runs, or some that are named
///
/// With --keep a run that has a name stays, and does not count.
#[derive(Args, Debug)]
pub(crate) struct Prune {
    /// Runs to delete: numbers, identifiers (eight characters at least) or names
    #[arg(value_name = "RUN", required_unless_present = "keep", conflicts_with = "keep")]
    pub(crate) runs: Vec<String>,

    /// How many of the newest runs stay
    #[arg(long, value_name = "N")]
    pub(crate) keep: Option<u32>,

    #[command(flatten)]
    pub(crate) stored: Stored,
}

/// How `trend` ends.
const TREND_EXITS: [(Exit, &str); 6] = [
    (Exit::Done, "done; with --fail-on: the newest run is not slower"),
    (Exit::Internal, Exit::Internal.words()),
    (Exit::Usage, "the command line is wrong, or no kept run has the figure"),
    (Exit::Regression, "with --fail-on: the two newest runs are slower"),
    (Exit::Undecidable, "with --fail-on: nothing is decided"),
    (Exit::Store, Exit::Store.words()),
];

/// Draw a figure over kept runs, and find where it changed
///
/// Takes the figure over that of a peer in the same rounds, or else over the speed of the processor, from runs of the same processor
/// and profile. The answer says where it changed; with --fail-on it sets the exit code, for a build service.
#[derive(Args, Debug)]
#[command(after_help = Exit::help_of(&TREND_EXITS))]
pub(crate) struct Trend {
    /// The workload
    #[arg(value_name = "WORKLOAD", value_parser = values::workload_name(ALL))]
    pub(crate) workload: String,

    /// Which case, by parameters that leave one: values, such as `aes-256-gcm seal 16384`, or names with values, such as `bytes=16384`
    #[arg(value_name = "CASE")]
    pub(crate) case: Vec<String>,

    /// The metric [default: the first of the case]
    #[arg(long, value_name = "NAME")]
    pub(crate) metric: Option<String>,

    /// Whose figure [default: sealway]
    #[arg(long, value_name = "NAME")]
    pub(crate) subject: Option<String>,

    /// Runs of this branch only
    #[arg(long, value_name = "NAME")]
    pub(crate) branch: Option<String>,

    /// Leave out what is older than this run: a change until then is accepted
    #[arg(long, value_name = "RUN")]
    pub(crate) since: Option<String>,

    /// How many of the newest runs to look at
    #[arg(long, value_name = "N", default_value_t = 40, value_parser = clap::value_parser!(u32).range(1..=200))]
    pub(crate) limit: u32,

    /// Fail with code 5 when the two newest runs are slower by more than N % than those before, and outside their range
    ///
    /// Code 6 says that nothing is decided: the newest run alone is slower, it is left out, or no run is before it. Where runs have few
    /// rounds or differ much anyway, the bound is the change that they can show, if that is more than N %.
    #[arg(long, value_name = "slower=N%", value_parser = values::slower)]
    pub(crate) fail_on: Option<f64>,

    /// Write a page with the drawing to FILE
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub(crate) html: Option<PathBuf>,

    #[command(flatten)]
    pub(crate) stored: Stored,

    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
