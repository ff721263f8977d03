//! The command line of Sealway: it parses, prints and sets exit codes. What a command does stands in the crates below.

#![forbid(unsafe_code)]

mod args;
mod commands;
mod compat;
mod exit;
mod log;
mod output;
mod problem;
mod progress;
mod signals;
mod stop;
mod systemd;
mod voice;

use std::process::ExitCode;

use clap::Parser;

use args::{Cli, Command, LabCommand, Route};
use exit::Exit;

/// Gives back to the system what is freed, wherever it lay. That of the C library keeps what a configuration of many users took while
/// it was read, and every long answer of the management API.
#[global_allocator]
static ALLOCATOR: tikv_jemallocator::Jemalloc = tikv_jemallocator::Jemalloc;

fn main() -> ExitCode {
    if let Some(words) = args::of_xray(std::env::args_os()) {
        return compat::run(&words);
    }
    let cli = match Cli::try_parse_from(args::with_two_dashes(std::env::args_os())) {
        Ok(cli) => cli,
        Err(error) => {
            let error = args::with_lab_commands(error);
            // Help and version arrive here too; a reader that has gone away is no failure of ours.
            let _ = error.print();
            return match error.use_stderr() {
                true => Exit::Usage.into(),
                false => Exit::Done.into(),
            };
        }
    };
    let outcome = match cli.command {
        Command::Bip324(bip324) => commands::bip324::run(bip324),
        Command::Completions { shell } => commands::completions::run(shell),
        Command::Cpu { json } => commands::cpu::run(json),
        Command::Drain(drain) => commands::drain::run(&drain),
        Command::Gateway(gateway) => commands::gateway::run(&gateway),
        Command::Geo(geo) => commands::geo::run(&geo),
        Command::Identity(identity) => commands::drop::identity::run(&identity),
        Command::Lab(lab) => match lab.command {
            None => commands::lab::run(&lab.run),
            Some(LabCommand::Compare(compare)) => commands::compare::run(&compare),
            Some(LabCommand::Doctor { json }) => commands::doctor::run(json),
            Some(LabCommand::Export(export)) => commands::runs::export(&export),
            Some(LabCommand::Import(import)) => commands::runs::import(&import),
            Some(LabCommand::Prune(prune)) => commands::runs::prune(&prune),
            Some(LabCommand::Runs(runs)) => commands::runs::runs(&runs),
            Some(LabCommand::Show(show)) => commands::runs::show(&show),
            Some(LabCommand::Trend(trend)) => commands::trend::run(&trend),
            Some(LabCommand::Reproduce(asked)) => commands::lab::reproduce(&asked),
            Some(LabCommand::Respond(asked)) => commands::respond::run(&asked),
            Some(LabCommand::HttpsPost(end)) => commands::lab::https_post(&end),
        },
        Command::Route(Route::Test(test)) => commands::route::run(&test),
        Command::Link(link) => commands::link::run(&link),
        Command::Localsend(localsend) => {
            commands::drop::told(localsend.json, commands::drop::localsend::run(&localsend))
        }
        Command::Man { folder } => commands::man::run(&folder),
        Command::Mount(mount) => commands::drop::told(mount.link.json, commands::drop::share::mount(&mount)),
        Command::ProxyApi(api) => commands::proxy_api::run(&api),
        Command::Receive(receive) => commands::drop::told(receive.link.json, commands::drop::received(&receive)),
        Command::Relay(relay) => commands::drop::relay::run(&relay),
        Command::Send(send) => commands::drop::told(send.link.json, commands::drop::sent(&send)),
        Command::Pair(pair) => commands::drop::told(pair.link.json, commands::drop::share::pair(&pair)),
        Command::Share(share) => commands::drop::told(share.link.json, commands::drop::share::share(&share)),
        // Its exit codes are those of the programs that it stands in for.
        Command::Run(run) => return commands::run::run(&run),
        Command::Tls(tls) => commands::tls::run(&tls),
        Command::Uuid(uuid) => commands::uuid::run(&uuid),
        Command::Version => commands::version::run(),
        Command::X25519(x25519) => commands::keys::x25519(&x25519),
        Command::Mldsa65(mldsa65) => commands::keys::mldsa65(&mldsa65),
    };
    let code: ExitCode = match outcome {
        Ok(exit) => exit.into(),
        Err(problem) => {
            problem.print();
            problem.exit().into()
        }
    };
    commands::drop::notify::finish();
    code
}
