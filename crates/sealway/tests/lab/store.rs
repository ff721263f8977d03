//! Runs that the lab keeps, listed, shown and compared.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::{Value, json};

use crate::common::{Ran, ran, run, sealway, words};

/// The smallest run that has figures.
const SMALL: &str = "lab primitives --quick --peers none --suite=aes-128-gcm --budget 4s";

/// The program with a store of its own, in a checkout of a branch.
struct Kept(tempfile::TempDir);

impl Kept {
    fn new() -> Kept {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join("checkout/.git/refs/heads")).unwrap();
        fs::write(folder.path().join("checkout/.git/HEAD"), "ref: refs/heads/main\n").unwrap();
        let head = folder.path().join("checkout/.git/refs/heads/main");
        fs::write(head, "c0ffee00".repeat(5)).unwrap();
        Kept(folder)
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().unwrap().to_owned()
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = sealway(words);
        command
            .env("SEALWAY_LAB_STORE", self.path("lab.sqlite"))
            .current_dir(self.path("checkout"));
        command
    }

    fn lab(&self, words: &[&str]) -> Ran {
        ran(&mut self.command(&[&["lab"], words].concat()))
    }
}

#[test]
fn a_run_is_kept_and_shown_again() {
    let kept = Kept::new();
    kept.lab(&["runs"]).refuses(0, &[]);
    assert!(!Path::new(&kept.path("lab.sqlite")).exists(), "a reader has made it");

    let json = kept.path("run.json");
    let ran = ran(kept.command(&words(SMALL)).args(["--json", &json, "--name", "before"]));
    ran.says(0, &["kept as run 1 in "]);

    let text = kept.lab(&["runs"]).stdout;
    for word in ["primitives", "quick", "main", "c0ffee00", "before"] {
        assert!(text.contains(word), "{text}");
    }
    let list: Value = serde_json::from_str(&kept.lab(&["runs", "--json"]).stdout).unwrap();
    assert_eq!(list[0]["commit"], "c0ffee00".repeat(5));
    let id = list[0]["run"].as_str().unwrap();
    for word in ["1", &id[..8], "last", "before", "main"] {
        let again = kept.path("again.json");
        let shown = kept.lab(&["show", word, "--json", &again]);
        assert_eq!((shown.code, shown.stderr.as_str()), (0, ""), "{word}");
        assert!(fs::read(&again).unwrap() == fs::read(&json).unwrap(), "{word}");
    }
    let shown = kept.lab(&["show", "1"]);
    assert_eq!(shown.stdout.lines().next(), ran.stdout.lines().next());
    // A result does not say where it was kept, nor under which name.
    let result: Value = serde_json::from_str(&fs::read_to_string(&json).unwrap()).unwrap();
    let command = result["command"].to_string();
    assert!(!command.contains("before"), "{command}");

    // Kept runs and files stand for each other.
    let same = kept.lab(&["compare", "1", &json, "--json"]);
    let same: Value = serde_json::from_str(&same.stdout).unwrap();
    assert_eq!(same["old"]["run"], id);
    kept.lab(&["compare", "main", &json]).says(2, &["no other whole run"]);
    kept.lab(&["show", "nobody"]).says(2, &["nobody", "hint: "]);
}

#[test]
fn a_store_that_fails_loses_the_run_and_nothing_else() {
    let kept = Kept::new();
    fs::write(kept.path("lab.sqlite"), "something that is no database".repeat(100)).unwrap();
    let ran = ran(&mut kept.command(&words(SMALL)));
    assert!(ran.stdout.contains("aes-128-gcm"), "{ran:?}");
    ran.says(
        0,
        &[
            "this run will not be kept: ",
            "this run is not kept: ",
            "name another store",
        ],
    );
    kept.lab(&["runs"]).refuses(8, &[]);
    // What names no store is said before anything runs.
    let ran = run(&["lab", "--store", "mysql://u:secret@host/db"]);
    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(!ran.stderr.contains("secret"), "{ran:?}");
}

/// A result as the lab writes it, of a day of January 2021, with a figure of ours and of a peer in nine rounds.
fn result(day: u32, ours: f64) -> Value {
    let row = |subject: &str, centre: f64| {
        let noise = [0.0, 0.4, -0.6, 0.5, -0.3, 0.2, -0.5, 0.7, -0.1];
        let values: Vec<f64> = noise.iter().map(|noise| centre * (1.0 + noise / 100.0)).collect();
        json!({
            "workload": "primitives", "workload_def": "d", "subject": subject,
            "case": { "suite": "aes-256-gcm", "op": "seal", "bytes": 16384, "aad": 13 },
            "metric": "throughput", "unit": "B/s", "better": "higher", "median": centre, "mad": 0.0,
            "low": centre, "high": centre, "how": "order-statistics", "rounds": 9, "values": values,
        })
    };
    json!({
        "schema": 1, "run": format!("{day:08x}-0000-4000-8000-000000000000"), "started": format!("2021-01-{day:02}T00:00:00Z"),
        "complete": true, "sealway": "0.1.0", "profile": "standard", "machine": { "key": "m", "cpu": "Some CPU" },
        "subjects": [{ "name": "sealway", "version": "0.1.0" }, { "name": "ring", "version": "0.17" }],
        "results": [row("sealway", ours), row("ring", 1e9)],
    })
}

#[test]
fn a_trend_fails_a_build_and_runs_go_to_another_store() {
    let kept = Kept::new();
    let import = |day: u32, ours: f64| {
        fs::write(kept.path("one.json"), result(day, ours).to_string()).unwrap();
        let ran = kept.lab(&["import", &kept.path("one.json")]);
        assert_eq!((ran.code, ran.stderr.as_str()), (0, "1 new, 0 kept already\n"));
    };
    for day in 1..=4 {
        import(day, 1.1e9);
    }
    let trend = |words: &[&str]| kept.lab(&[&["trend", "primitives"], words].concat());
    let ran = trend(&["--since", "4", "--fail-on", "slower=5%"]);
    assert_eq!(ran.code, 6, "one run says nothing: {ran:?}");
    let ran = trend(&["seal", "16384", "--fail-on", "slower=5%"]);
    ran.says(0, &[]);
    assert!(
        ran.stdout.contains("No change of more than 5.0 % over 4 runs."),
        "{ran:?}"
    );
    import(5, 0.9e9);
    let ran = trend(&["bytes=16384", "--fail-on", "slower=5%"]);
    ran.says(6, &["another one decides"]);
    assert!(ran.stdout.contains("-- slower: -18 % --"), "{ran:?}");
    import(6, 0.9e9);
    let ran = trend(&["bytes=16384", "--fail-on", "slower=5%"]);
    ran.says(5, &["slower than 4 runs before, the last by 22.2 %"]);
    let answer: Value = serde_json::from_str(&trend(&["--json", "--fail-on", "slower=30%"]).stdout).unwrap();
    assert!(
        answer["slower"].is_null() && answer["segments"][1]["first"] == 4,
        "{answer}"
    );
    let page = kept.path("trend.html");
    assert_eq!(trend(&["--html", &page]).code, 0);
    assert!(fs::read_to_string(&page).unwrap().contains("<svg"));
    // Without a bound it fails nothing; nor when the change is accepted.
    assert_eq!(trend(&[]).code, 0);
    assert_eq!(trend(&["--since", "5", "--fail-on", "slower=5%"]).code, 0);
    for wrong in [
        &["64"][..],
        &["--metric", "rate"],
        &["--branch", "none"],
        &["--fail-on", "slower=5"],
    ] {
        trend(wrong).refuses(2, &[]);
    }

    let slower = kept.lab(&["compare", "4", "last"]);
    assert_eq!(slower.code, 6, "{slower:?}");
    let page = kept.path("two.html");
    let again = kept.lab(&["compare", "4", "last", "--html", &page]);
    assert_eq!(again.stdout, slower.stdout);
    assert!(fs::read_to_string(&page).unwrap().contains("<svg"));
    kept.lab(&["export", "1", "last", "--output", &kept.path("two")])
        .says(0, &[]);
    let other = kept.path("other.sqlite");
    let ran = kept.lab(&["import", &kept.path("two"), "--store", &other]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, "2 new, 0 kept already\n"));
    let shown = kept.lab(&["show", "last", "--json", "-", "--store", &other]);
    let shown: Value = serde_json::from_str(&shown.stdout).unwrap();
    assert_eq!(shown["run"], result(6, 1.0)["run"]);
    let ran = kept.lab(&["prune", "--keep", "1", "--store", &other]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, "1 deleted\n"));
    kept.lab(&["import", &kept.path("checkout/.git/HEAD")]).says(2, &[]);
    kept.lab(&["prune", "last"]).says(2, &["run 6 is the one"]);
    let ran = kept.lab(&["prune", "00000002", "3"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (0, "2 deleted\n"));
    for gone in ["3", "00000001x", "01", "+1"] {
        assert_eq!(kept.lab(&["show", gone]).code, 2, "{gone}");
    }
}

#[test]
fn what_does_nothing_makes_no_store() {
    let kept = Kept::new();
    for (words, code) in [
        (&["prune", "--keep", "1"][..], 0),
        (&["prune", "1"], 2),
        (&["import", "/no/such/file"], 2),
    ] {
        kept.lab(words).says(code, &[]);
        assert!(!Path::new(&kept.path("lab.sqlite")).exists(), "{words:?} have made it");
    }
}
