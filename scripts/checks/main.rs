//! Checks of the workspace that no compiler makes: floors of crates and modules, places of `unsafe`, the oldest compiler that
//! the dependencies allow, and public interfaces as text and their changes.
//!
//! Built by `scripts/checks.sh` with `rustc` alone, so that a machine with nothing but a Rust toolchain can run it; it
//! therefore uses the standard library only. Its unit tests run with the workspace's tests.

mod api;
mod api_change;
mod circles;
mod json;
mod layers;
mod map;
mod modules;
mod msrv;
mod names;
mod orphans;
mod purity;
mod source;
mod unsafety;
mod workspace;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [check, root] = arguments.as_slice() else {
        eprintln!("usage: checks api|layers|map|msrv|write-map FOLDER, checks api-change FILE <BEFORE");
        return ExitCode::from(2);
    };
    let root = Path::new(root);
    let outcome = match check.as_str() {
        "api" => api(root),
        "api-change" => api_change(root),
        "layers" => check_layers(root),
        "map" => check_map(root),
        "msrv" => check_msrv(root),
        "write-map" => write_map(root),
        other => Err(format!(
            "there is no check named `{other}`; there are `api`, `api-change`, `layers`, `map` and `msrv`"
        )),
    };
    match outcome {
        Ok(report) if report.findings.is_empty() => {
            println!("{}", report.summary);
            ExitCode::SUCCESS
        }
        Ok(report) => {
            for finding in &report.findings {
                eprintln!("error: {finding}");
            }
            eprintln!("{} finding(s)", report.findings.len());
            ExitCode::FAILURE
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

/// What a check found; it passed when there are no findings.
struct Report {
    findings: Vec<String>,
    summary: String,
}

fn check_layers(root: &Path) -> Result<Report, String> {
    let workspace = workspace::read(root, workspace::Depth::Members)?;
    let mut findings = layers::findings(&workspace);
    let mut files = 0;
    for package in &workspace.members {
        let does_no_io = layers::floor(&package.name) == Some(layers::NO_IO);
        if does_no_io {
            findings.extend(purity::dependencies(package));
        }
        // Tests, benches and examples may use what they test, and may hold `unsafe` where they say why: clippy asks.
        let targets = package
            .targets
            .iter()
            .filter(|target| target.kind != workspace::TargetKind::Test);
        for target in targets {
            let krate = source::Crate::read(&target.root)?;
            files += krate.files.len();
            findings.extend(unsafety::findings(package, target, &krate, root));
            if target.kind != workspace::TargetKind::BuildScript {
                findings.extend(orphans::findings(&target.root, root)?);
                findings.extend(circles::findings(&package.name, &krate));
                findings.extend(names::findings(&package.name, &krate, root));
            }
            if let Some(floors) = modules::floors_of(&package.name)
                && target.kind == workspace::TargetKind::Library
            {
                findings.extend(modules::findings(floors, &krate, root));
            }
            if does_no_io {
                findings.extend(purity::findings(&package.name, &krate, root));
            }
        }
    }
    let summary = format!(
        "layers: {} crates and {files} source files keep their floors, and no modules stand in a circle",
        workspace.members.len()
    );
    Ok(Report { findings, summary })
}

/// The page that holds the map, as it is and as it should be.
fn pages(root: &Path) -> Result<(String, String), String> {
    let page = map::page(root);
    let text = std::fs::read_to_string(&page).map_err(|error| format!("cannot read {}: {error}", page.display()))?;
    let renewed = map::renewed(root, &text, &workspace::read(root, workspace::Depth::Members)?)?;
    Ok((text, renewed))
}

fn check_map(root: &Path) -> Result<Report, String> {
    let (text, renewed) = pages(root)?;
    let mut findings = Vec::new();
    if text != renewed {
        let differs = text.lines().zip(renewed.lines()).position(|(old, new)| old != new);
        let line = differs.unwrap_or_else(|| text.lines().count().min(renewed.lines().count())) + 1;
        findings.push(format!(
            "ARCHITECTURE.md:{line}: the map of the modules is not theirs any more; `scripts/check-pages --write` makes it anew"
        ));
    }
    Ok(Report {
        findings,
        summary: "map: every module stands in ARCHITECTURE.md".to_string(),
    })
}

fn write_map(root: &Path) -> Result<Report, String> {
    let (text, renewed) = pages(root)?;
    let page = map::page(root);
    if text != renewed {
        std::fs::write(&page, renewed).map_err(|error| format!("cannot write {}: {error}", page.display()))?;
    }
    Ok(Report {
        findings: Vec::new(),
        summary: "map: written to ARCHITECTURE.md".to_string(),
    })
}

/// The folder is that of a crate's pages. The caller compares: the summary is all there is.
fn api(pages: &Path) -> Result<Report, String> {
    let listing = api::listing(pages)?;
    Ok(Report {
        findings: Vec::new(),
        summary: listing.trim_end().to_string(),
    })
}

/// The path is that of a file with an interface; the one that it is compared with comes in.
fn api_change(file: &Path) -> Result<Report, String> {
    let now = std::fs::read_to_string(file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    let before =
        std::io::read_to_string(std::io::stdin()).map_err(|error| format!("cannot read what was before: {error}"))?;
    Ok(Report {
        findings: api_change::findings(&before, &now).map_err(|error| format!("{}: {error}", file.display()))?,
        summary: format!("{}: its version tells of every break", file.display()),
    })
}

fn check_msrv(root: &Path) -> Result<Report, String> {
    let workspace = workspace::read(root, workspace::Depth::Everything)?;
    let stated = msrv::stated(&workspace)?;
    // The caller reads these lines: the version alone, then crates with versions of their own.
    let mut summary = stated.all;
    for (name, version) in stated.older {
        summary += &format!("\n{name} {version}");
    }
    Ok(Report {
        findings: stated.findings,
        summary,
    })
}
