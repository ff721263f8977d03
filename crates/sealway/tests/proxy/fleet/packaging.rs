//! The files of Kubernetes and of the container.

use std::collections::BTreeSet;
use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::yaml;
use crate::common::{Ran, private_folder, ran, sealway, workspace};

fn kubernetes() -> PathBuf {
    workspace().join("packaging/kubernetes")
}

/// The manifests that the kustomization lists, by kind.
fn manifests() -> Vec<(String, Value)> {
    let text = fs::read_to_string(kubernetes().join("kustomization.yaml")).unwrap();
    let listed = yaml::read(&text)["resources"].as_array().unwrap().clone();
    let read = |name: &Value| {
        let name = name.as_str().unwrap();
        let manifest = yaml::read(&fs::read_to_string(kubernetes().join(name)).unwrap());
        (manifest["kind"].as_str().unwrap().to_owned(), manifest)
    };
    listed.iter().map(read).collect()
}

fn of_kind(kind: &str) -> Value {
    let found = manifests().into_iter().find(|(found, _)| found == kind);
    found.unwrap_or_else(|| panic!("no {kind}")).1
}

/// The texts of a list.
fn texts(list: &Value) -> impl Iterator<Item = String> {
    let list = list.as_array().unwrap();
    list.iter().map(|text| text.as_str().unwrap().to_owned())
}

fn validator() -> jsonschema::Validator {
    let path = workspace().join("crates/sealway/tests/proxy/fleet/kubernetes.schema.json");
    let schema = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    jsonschema::draft202012::new(&schema).unwrap()
}

fn faults(validator: &jsonschema::Validator, value: &Value) -> Vec<String> {
    validator
        .iter_errors(value)
        .map(|fault| format!("{}: {fault}", fault.instance_path()))
        .collect()
}

#[test]
fn manifests_are_what_kubernetes_takes() {
    let validator = validator();
    let all = manifests();
    let kinds: BTreeSet<&str> = all.iter().map(|(kind, _)| kind.as_str()).collect();
    assert_eq!(
        kinds.into_iter().collect::<Vec<_>>(),
        ["Deployment", "NetworkPolicy", "PodDisruptionBudget", "Service"]
    );
    for (kind, manifest) in &all {
        assert_eq!(faults(&validator, manifest), [""; 0], "{kind}");
    }
    // And what it does not take is found.
    let mut wrong = of_kind("Deployment");
    wrong["spec"]["template"]["spec"]["containers"][0]["readynessProbe"] = json!({});
    assert_eq!(faults(&validator, &wrong).len(), 1);
    let mut wrong = of_kind("Service");
    wrong["spec"]["ports"][0]["port"] = json!("https");
    assert_eq!(faults(&validator, &wrong).len(), 1);
}

#[test]
fn every_file_of_the_base_is_in_the_kustomization() {
    let text = fs::read_to_string(kubernetes().join("kustomization.yaml")).unwrap();
    let kustomization = yaml::read(&text);
    let mut listed: Vec<String> = texts(&kustomization["resources"]).collect();
    listed.extend(texts(&kustomization["secretGenerator"][0]["files"]));
    listed.push("kustomization.yaml".to_owned());
    listed.sort();
    let files = fs::read_dir(kubernetes()).unwrap();
    let files: BTreeSet<_> = files
        .map(|file| file.unwrap().file_name().into_string().unwrap())
        .collect();
    // None is listed twice either.
    assert_eq!(Vec::from_iter(files), listed);
    // kustomize itself, where there is one.
    match Command::new("kubectl").arg("kustomize").arg(kubernetes()).output() {
        Ok(built) => {
            let built = Ran::from(built);
            built.says(0, &[]);
            assert_eq!(built.stdout.matches("\nkind: ").count(), 5, "{built:?}");
        }
        Err(_) => println!("skipped: there is no kubectl to build the base"),
    }
}

#[test]
fn pods_have_no_rights_and_are_asked_where_they_answer() {
    let pod = of_kind("Deployment")["spec"]["template"].clone();
    let (labels, spec) = (&pod["metadata"]["labels"], &pod["spec"]);
    let container = &spec["containers"][0];
    // As the pod security standard `restricted` wants it, and more.
    assert_eq!(spec["securityContext"]["runAsNonRoot"], true);
    assert!(spec["securityContext"]["runAsUser"].as_i64().unwrap() > 0);
    assert_eq!(spec["securityContext"]["seccompProfile"]["type"], "RuntimeDefault");
    assert_eq!(spec["automountServiceAccountToken"], false);
    let rights = json!({
        "allowPrivilegeEscalation": false, "readOnlyRootFilesystem": true, "capabilities": { "drop": ["ALL"] },
    });
    assert_eq!(container["securityContext"], rights);
    for kind in ["Service", "NetworkPolicy", "PodDisruptionBudget", "Deployment"] {
        let spec = &of_kind(kind)["spec"];
        let selector = [
            &spec["podSelector"]["matchLabels"],
            &spec["selector"]["matchLabels"],
            &spec["selector"],
        ];
        assert!(selector.contains(&labels), "{kind} is about other pods");
    }
    let ports = container["ports"].as_array().unwrap();
    let port = |name: &str| {
        let port = ports.iter().find(|port| port["name"] == name).unwrap();
        port["containerPort"].as_u64().unwrap()
    };
    for (probe, path) in [
        ("startupProbe", "/healthz"),
        ("livenessProbe", "/healthz"),
        ("readinessProbe", "/readyz"),
    ] {
        assert_eq!(container[probe]["httpGet"], json!({ "path": path, "port": "metrics" }));
    }
    let config = fs::read_to_string(kubernetes().join("config.json")).unwrap();
    assert!(config.contains(&format!("\"port\": {},", port("proxy"))));
    assert!(config.contains(&format!("\"listen\": \"0.0.0.0:{}\"", port("metrics"))));
    // The time that is left after SIGTERM is longer than what the program takes of it.
    let arguments: Vec<String> = texts(&container["args"]).collect();
    let seconds = |name: &str| {
        let time = arguments.iter().find_map(|word| word.strip_prefix(name)).unwrap();
        time.strip_suffix('s').unwrap().parse::<u64>().unwrap()
    };
    assert!(spec["terminationGracePeriodSeconds"].as_u64().unwrap() > seconds("--delay=") + seconds("--grace="));
    assert!(
        container["lifecycle"].is_null(),
        "a second SIGTERM would end everything at once"
    );
}

#[test]
fn a_pod_starts_once_there_is_an_id() {
    let folder = private_folder();
    let file = folder.path().join("config.json");
    let container = &of_kind("Deployment")["spec"]["template"]["spec"]["containers"][0];
    let here = folder.path().to_str().unwrap();
    let arguments = texts(&container["args"]).map(|word| word.replace("/etc/sealway", here));
    let arguments: Vec<String> = arguments.chain(["--test".to_owned()]).collect();
    let test = || ran(sealway(&[]).args(&arguments));
    let text = fs::read_to_string(kubernetes().join("config.json")).unwrap();
    fs::write(&file, &text).unwrap();
    test().says(23, &["settings.clients[0].id: "]);
    let id = "b831381d-6324-4d53-ad4f-8cda48b30811";
    fs::write(&file, text.replace("what `sealway uuid` prints goes here", id)).unwrap();
    let tested = test();
    assert_eq!(
        (tested.code, tested.stdout.as_str()),
        (0, "Configuration OK.\n"),
        "{tested:?}"
    );
}

#[test]
fn the_container_runs_the_program_without_rights() {
    let text = fs::read_to_string(workspace().join("packaging/container/Containerfile")).unwrap();
    let lines = text.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    let lines: Vec<(&str, &str)> = lines.map(|line| line.split_once(' ').unwrap()).collect();
    let stages: Vec<usize> = (0..lines.len()).filter(|at| lines[*at].0 == "FROM").collect();
    let [build, last] = stages[..] else {
        panic!("{stages:?}")
    };
    assert!(lines[build].1.ends_with(" AS build"));
    assert!(lines[last].1.starts_with("gcr.io/distroless/") && lines[last].1.ends_with(":nonroot"));
    let of = |word: &str| {
        let mut found = lines[last..].iter().filter(|(instruction, _)| *instruction == word);
        let one = found.next().unwrap_or_else(|| panic!("no {word}")).1;
        assert!(found.next().is_none(), "{word} stands twice");
        one
    };
    let (user, group) = of("USER").split_once(':').unwrap();
    assert!(user.parse::<u32>().unwrap() > 0 && group.parse::<u32>().unwrap() > 0);
    // The compiler is one that the workspace builds with, and what is built is what is copied.
    let manifest = fs::read_to_string(workspace().join("Cargo.toml")).unwrap();
    let oldest = manifest
        .lines()
        .find_map(|line| line.strip_prefix("rust-version = "))
        .unwrap()
        .trim_matches('"');
    assert!(lines[build].1.contains(&format!("/rust:{oldest}-")), "{oldest}");
    let built = lines[build..last]
        .iter()
        .any(|(word, rest)| *word == "RUN" && rest.contains("--profile dist") && rest.contains("--bin sealway"));
    assert!(built && manifest.contains("[profile.dist]"));
    for (_, words) in lines[last..].iter().filter(|(word, _)| *word == "COPY") {
        match words.strip_prefix("--from=build ") {
            Some(words) => assert_eq!(words, "/src/target/dist/sealway /usr/bin/sealway"),
            None => {
                let words: Vec<&str> = words.split_whitespace().collect();
                let (_, sources) = words.split_last().unwrap();
                assert!(sources.iter().all(|name| workspace().join(name).exists()), "{words:?}");
            }
        }
    }
    let list = |text: &str| -> Vec<String> { serde_json::from_str(text).unwrap() };
    assert_eq!(list(of("ENTRYPOINT")), ["/usr/bin/sealway"]);
    ran(sealway(&[]).args(list(of("CMD"))).arg("--help")).says(0, &[]);
}
