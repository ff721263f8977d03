use clap::{Command as Definition, CommandFactory};
use sealway_drop::Fault;

use super::*;

#[test]
fn the_definition_holds_together() {
    Cli::command().debug_assert();
}

#[test]
fn help_lists_every_exit_code() {
    let mut command = Cli::command();
    let help = command.render_long_help().to_string();
    for exit in Exit::ALL {
        let line = format!("\n{:>5}  {}", exit.code(), exit.words());
        assert!(help.contains(&line), "{exit:?}: {help}");
    }
}

/// Every command below this one with its words, itself among them.
fn each(definition: &mut Definition, words: &str, look: &mut dyn FnMut(&str, &mut Definition)) {
    look(words, definition);
    for below in definition.get_subcommands_mut() {
        let words = format!("{words} {}", below.get_name());
        each(below, words.trim_start(), look);
    }
}

/// The codes that the help of a command lists; `None` if it has no such list.
fn codes(help: &str) -> Option<Vec<u8>> {
    let list = help.split_once("Exit codes:\n")?.1;
    let code = |line: &str| line.trim_start().split_once("  ")?.0.parse().ok();
    Some(list.lines().map_while(code).collect())
}

#[test]
fn every_command_that_lists_exit_codes_lists_those_it_has() {
    let all: Vec<u8> = Exit::ALL.iter().map(|exit| exit.code()).collect();
    let faults = [
        Fault::Usage,
        Fault::Peer,
        Fault::Identity,
        Fault::Network,
        Fault::Storage,
        Fault::Declined,
        Fault::Cancelled,
    ];
    let of_drop = faults
        .map(Exit::from)
        .into_iter()
        .chain([Exit::Done, Exit::Internal, Exit::Partial]);
    let mut of_drop: Vec<u8> = of_drop.map(Exit::code).collect();
    of_drop.sort_unstable();
    of_drop.dedup();
    let mut lists = 0;
    each(&mut Cli::command(), "", &mut |words, definition| {
        let (short, long) = (definition.render_help(), definition.render_long_help());
        let (short, long) = (codes(&short.to_string()), codes(&long.to_string()));
        assert_eq!(short, long, "{words}");
        let expected = match words {
            "" | "lab" | "lab compare" | "lab doctor" | "lab reproduce" | "bip324 bench" => &all[..],
            "lab trend" => &[0, 1, 2, 5, 6, 8],
            "send" | "receive" | "share" | "mount" | "pair" | "localsend" => &of_drop,
            "bip324 bridge" | "gateway" | "route test" | "lab respond" => &[0, 1, 2],
            "bip324 probe" | "proxy-api" | "drain" => &[0, 1, 2, 7],
            "tls cert" | "tls hash" => &[0, 1, 2, 10],
            "tls ping" => &[0, 1, 2, 7, 9],
            // Those of the programs that it stands in for.
            "run" => &[0, 1, 2, 23],
            _ => return assert_eq!(long, None, "{words}: a list that nobody checks"),
        };
        assert_eq!(long.as_deref(), Some(expected), "{words}");
        lists += 1;
    });
    assert_eq!(lists, 24);
}

#[test]
fn help_of_the_lab_names_every_workload() {
    let mut command = Cli::command();
    let lab = command.find_subcommand_mut("lab").expect("a command");
    let (short, long) = (lab.render_help().to_string(), lab.render_long_help().to_string());
    let all = ("all", "everything but calibrate");
    let workloads = ALL.iter().map(|workload| (workload.name, workload.summary));
    for (name, summary) in workloads.chain([all]) {
        assert!(short.contains(name), "{name}: {short}");
        // Words are broken over lines.
        let flat = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            flat(&long).contains(&flat(&format!("- {name}: {summary}"))),
            "{name}: {long}"
        );
    }
    assert!(ALL.iter().all(|workload| scope(ALL.iter()).contains(workload.name)));
}

/// The words of an example, which ends where two spaces follow; what is between quotes is one word.
fn words(example: &str) -> Vec<String> {
    let line = example.trim_start().split("  ").next().unwrap_or_default();
    let mut words = vec![];
    for (place, piece) in line.split('"').enumerate() {
        match place % 2 {
            0 => words.extend(piece.split_whitespace().map(str::to_owned)),
            _ => words.push(piece.to_owned()),
        }
    }
    words
}

#[test]
fn every_example_of_the_help_is_understood() {
    let mut examples = 0;
    for command in ["send", "receive", "share", "mount", "pair", "localsend"] {
        let mut definition = Cli::command();
        let found = definition.find_subcommand_mut(command).expect("a command");
        let (short, long) = (found.render_help().to_string(), found.render_long_help().to_string());
        let of = |help: &str| {
            help.split_once("Examples:\n")
                .expect("examples")
                .1
                .trim_end()
                .to_owned()
        };
        assert_eq!(of(&short), of(&long), "{command}");
        for line in of(&short).lines() {
            let line = line.split_once("| ").map_or(line, |(_, piped)| piped);
            let words = words(line);
            assert_eq!(words[..2], ["sealway", command], "{line}");
            let parsed = Cli::try_parse_from(&words);
            assert!(parsed.is_ok(), "{line}: {:?}", parsed.err());
            examples += 1;
        }
    }
    assert!(examples > 30, "{examples}");
}
