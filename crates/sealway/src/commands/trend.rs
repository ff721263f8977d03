//! `sealway lab trend`.

use sealway_lab::trend::{Collector, Question, Slower, Undecided};

use super::store::Library;
use crate::args::Trend;
use crate::exit::Exit;
use crate::output::{self, Target};
use crate::problem::{Problem, note};

pub(crate) fn run(options: &Trend) -> Result<Exit, Problem> {
    let html = output::page_target(options.html.as_deref(), options.json)?;
    let mut library = Library::open(&options.stored)?;
    let since = match &options.since {
        Some(word) => library.find(word, None, Problem::usage)?.started,
        None => String::new(),
    };
    let of_branch = |branch: &Option<String>| options.branch.is_none() || *branch == options.branch;
    let kept = library.kept.iter().filter(|run| {
        // Times of one form compare as texts.
        run.measured(&options.workload) && run.started >= since && of_branch(&run.label.branch)
    });
    let kept: Vec<_> = kept.take(options.limit as usize).cloned().collect();
    let mut collector = Collector::new(Question {
        workload: options.workload.clone(),
        words: options.case.clone(),
        metric: options.metric.clone(),
        subject: options.subject.clone(),
    });
    for run in &kept {
        let result = library.result(run)?;
        collector.take(run, &result).map_err(Problem::usage)?;
    }
    let trend = collector.finish().map_err(Problem::usage)?;
    if let Some(target) = &html {
        output::write_page(target, &trend.page())?;
    }
    let judged = options.fail_on.map(|bound| trend.slower(bound));
    if options.json {
        let slower = judged.and_then(|judged| judged.ok().flatten());
        let mut value = serde_json::to_value(&trend)?;
        value["slower"] = serde_json::to_value(slower)?;
        output::print_json(&value)?;
    } else if html != Some(Target::Stdout) {
        output::print(&trend.render())?;
    }
    Ok(judged.map_or(Exit::Done, exit))
}

/// What a build service is told of the newest run.
fn exit(judged: Result<Option<Slower>, Undecided>) -> Exit {
    let slower = match judged {
        Ok(Some(slower)) => slower,
        Ok(None) => return Exit::Done,
        Err(why) => {
            note(format!("nothing is decided: {why}"));
            return Exit::Undecidable;
        }
    };
    let than = match slower.runs {
        1 => "the run before".to_owned(),
        runs => format!("{runs} runs before"),
    };
    let by = slower.by * 100.0;
    if slower.confirmed {
        note(format!(
            "the two newest runs are slower than {than}, the last by {by:.1} %"
        ));
        return Exit::Regression;
    }
    note(format!(
        "the newest run is slower than {than}, by {by:.1} %; one run proves nothing: another one decides"
    ));
    Exit::Undecidable
}
