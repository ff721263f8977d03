//! Bad input, exit codes and the plain commands.

use std::fs;
use std::process::Stdio;

use serde_json::Value;

use crate::common::{Ran, ran, run, sealway, words};

/// The command line is refused before anything runs: code 2, nothing on standard output, the words in the message.
fn refused(arguments: &[&str], words: &[&str]) {
    let ran = run(arguments);
    ran.refuses(2, words);
    assert!(ran.stderr.starts_with("error: "), "{ran:?}");
    assert_eq!(ran.stderr.matches("error: ").count(), 1, "{ran:?}");
}

/// The same of a line.
fn refused_line(line: &str, said: &[&str]) {
    refused(&words(line), said);
}

#[test]
fn unknown_words_are_answered_with_what_is_known() {
    for (line, said) in [
        ("labs", &["'labs'", "'lab'"][..]),
        (
            "lab primitves",
            &["primitves", "'primitives'", "files and calibrate", "'compare'"],
        ),
        (
            "lab --suite aes-265-gcm",
            &["aes-265-gcm", "'aes-256-gcm'", "xchacha20-poly1305"],
        ),
        ("lab --peers openss", &["openss", "'openssl'", "aws-lc-rs"]),
        ("lab --quik", &["--quik", "'--quick'"]),
        ("completions bosh", &["bosh", "zsh"]),
    ] {
        refused_line(line, said);
    }
}

#[test]
fn options_that_contradict_each_other_are_refused() {
    for (line, said) in [
        ("lab --quick --full", &["--quick", "--full"][..]),
        ("lab --peers none,openssl", &["none", "stand alone"]),
        ("lab --peers openssl,auto", &["auto", "stand alone"]),
        ("lab --json - --html -", &["standard output", "hint: "]),
        ("lab --budget 5", &["90s, 5m or 1h"]),
        ("lab --budget 48h", &["between 1s and 24h"]),
        ("lab --seed x", &["--seed"]),
    ] {
        refused_line(line, said);
    }
}

#[test]
fn targets_are_checked_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("plain");
    fs::write(&file, "older").unwrap();
    for option in ["--json", "--html"] {
        for (target, said) in [
            (folder.path().to_owned(), &["is a folder", option][..]),
            (folder.path().join("none/out"), &["there is no folder", "hint: "]),
            (file.join("out"), &["Not a directory"]),
        ] {
            refused(&["lab", option, target.to_str().unwrap()], said);
        }
    }
    assert_eq!(fs::read_to_string(&file).unwrap(), "older");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn two_targets_that_are_one_file_are_refused() {
    // With a budget that no run can keep, a check that fails to refuse ends at once too.
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).to_str().unwrap().to_string();
    let inner = folder.path().join("inner");
    fs::create_dir(&inner).unwrap();
    let old = at("old");
    fs::write(&old, "older").unwrap();
    let both = |json: &str, html: &str, said: &[&str]| {
        refused(&["lab", "--full", "--budget=1s", "--json", json, "--html", html], said);
    };
    let same = |json: &str, html: &str| both(json, html, &["the same file", "hint: "]);
    same(&old, &old);
    same(&at("new"), &at("new"));
    same(&at("new"), &at("inner/../new"));
    same(&at("./old"), &at("inner/../old"));
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink("old", folder.path().join("link")).unwrap();
        std::os::unix::fs::symlink(".", folder.path().join("here")).unwrap();
        same(&at("link"), &old);
        same(&old, &at("link"));
        same(&at("here/new"), &at("new"));
    }
    // Finished rounds are kept beside the JSON, and go when it stands.
    both(&at("new"), &at("new.partial"), &["finished rounds", "hint: "]);
    assert_eq!(fs::read_to_string(&old).unwrap(), "older");
}

#[cfg(unix)]
#[test]
fn a_link_that_leads_nowhere_is_refused_before_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let link = folder.path().join("link");
    std::os::unix::fs::symlink("nowhere", &link).unwrap();
    for option in ["--json", "--html"] {
        refused(
            &["lab", "--full", "--budget=1s", option, link.to_str().unwrap()],
            &["leads nowhere", option, "nothing was run"],
        );
    }
    assert!(link.is_symlink());
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
}

#[test]
fn results_that_cannot_be_read_are_named_with_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_string()
    };
    let absent = folder.path().join("absent.json").to_str().unwrap().to_string();
    let cut = write("cut.json", "{\"schema\": 1, \"run\":");
    let other = write("other.json", "{\"name\": \"something else\"}");
    for path in [&absent, &cut, &other, &folder.path().to_str().unwrap().to_string()] {
        refused(&["lab", "compare", path, path], &[path]);
    }
    let newer = write("newer.json", "{\"schema\": 99, \"run\": \"x\"}");
    run(&["lab", "compare", &newer, &newer]).refuses(8, &["99"]);
    refused(&["lab", "compare", &absent], &["<B>"]);
}

#[test]
fn cpu_says_what_is_there() {
    let said = run(&["cpu"]).answer();
    for words in ["Order of preference: ", std::env::consts::ARCH] {
        assert!(said.contains(words), "{said}");
    }
}

fn cpu_json(disable: &str) -> (Value, Ran) {
    let ran = ran(sealway(&["cpu", "--json"]).env("SEALWAY_CPU_DISABLE", disable));
    (serde_json::from_str(&ran.stdout).unwrap(), ran)
}

#[test]
fn cpu_json_follows_the_switches() {
    let (all, ran) = cpu_json("");
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
    assert_eq!(all["schema"], 1);
    assert_eq!(all["preference"].as_array().unwrap().len(), 4);
    let (without, _) = cpu_json("aes");
    let features = without["features"].as_array().unwrap();
    let aes = features.iter().find(|feature| feature["name"] == "aes");
    assert_eq!(aes.unwrap()["disabled"], true);
    assert_eq!(without["aes_gcm_in_hardware"], false);
    assert_eq!(without["preference"][0], "chacha20-poly1305");
}

#[test]
fn a_misspelt_switch_is_said_and_does_not_spoil_the_json() {
    let (object, ran) = cpu_json("axv2");
    ran.says(0, &["axv2"]);
    let features = object["features"].as_array().unwrap();
    assert!(features.iter().all(|feature| feature["disabled"] == false), "{object}");
}

#[cfg(unix)]
#[test]
fn a_reader_that_goes_away_is_no_failure() {
    for arguments in [&["cpu"][..], &["cpu", "--json"], &["completions", "bash"], &["--help"]] {
        // A pipe whose reading end is closed before the program writes.
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let child = sealway(arguments).stdout(writer).stderr(Stdio::piped()).spawn();
        Ran::from(child.unwrap().wait_with_output().unwrap()).answer();
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_under_standard_output_is_said() {
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    ran(sealway(&["cpu", "--json"]).stdout(full)).says(1, &["standard output"]);
}

#[test]
fn cpus_that_threads_cannot_stay_on() {
    refused_line("bip324 bench --pin auto", &["--gpu", "WHAT"]);
    refused_line("bip324 bench sockets --pin 1-0", &["--pin", "0,2-3"]);
    refused_line(
        "bip324 bench sockets --pin 0,1023",
        &["there is no CPU 1023", "it may use"],
    );
}

/// On a machine without a GPU there is nothing to measure, which is no failure, and nothing is written.
#[test]
fn a_gpu_that_is_not_there() {
    refused_line("lab primitives --gpu", &["--gpu", "packets", "bip324"]);
    refused_line("lab all --gpu", &["--gpu", "packets", "bip324"]);
    refused_line("lab packets --gpu-mode call", &["--gpu"]);
    refused_line("lab packets --gpu --gpu-mode calls", &["kernel", "link"]);
    refused_line("lab bip324 --gpu --gpu-mode call", &["--gpu-mode", "packets"]);
    if std::path::Path::new("/dev/nvidiactl").exists() {
        println!("SKIPPED: there is a GPU");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("result.json");
    for command in [["lab", "packets"], ["lab", "bip324"], ["bip324", "bench"]] {
        let options = ["--gpu", "--quick", "--json", file.to_str().unwrap()];
        let ran = run(&[&command[..], &options].concat());
        ran.refuses(0, &[]);
        assert!(ran.stderr.starts_with("no GPU to measure here: "), "{ran:?}");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "something was written");
    }
}
