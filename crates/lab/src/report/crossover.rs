//! Where the lead changes from one suite to another.

use super::finding::{self, list};
use super::view::{View, op_title};
use crate::format::{self, clean};

/// Where two suites of our subject change places as messages grow, in one sentence per operation.
pub(crate) fn crossover(view: &View<'_>, op: &str, a: &str, b: &str) -> Option<String> {
    let ours = view.ours()?;
    let find = |suite: &str| view.of_op(op).find(|(_, g)| g.suite == suite && g.extra.is_empty());
    let ((ga, group), (gb, _)) = (find(a)?, find(b)?);
    // 1 where `a` leads, -1 where `b` does, 0 where they are not told apart.
    let mut order: Vec<(i64, i8)> = Vec::new();
    for bytes in &group.sizes {
        let (Some(x), Some(y)) = (
            view.row(ga, Some(*bytes), ours, "throughput"),
            view.row(gb, Some(*bytes), ours, "throughput"),
        ) else {
            continue;
        };
        let marks = finding::best(&[Some(x), Some(y)]);
        order.push((*bytes, i8::from(marks[0]) - i8::from(marks[1])));
    }
    let title = op_title(op);
    let (first, last) = (order.first()?, order.last()?);
    let name = |lead: i8| if lead > 0 { clean(a) } else { clean(b) };
    let decided: Vec<&(i64, i8)> = order.iter().filter(|(_, lead)| *lead != 0).collect();
    let Some(start) = decided.first() else {
        return Some(format!("{title}: {a} and {b} are not told apart at any size."));
    };
    let mut text = format!("{title}: ");
    if decided.iter().all(|(_, lead)| *lead == start.1) {
        let extent = if decided.len() == order.len() {
            format!(
                "at every size from {} to {}",
                format::size(first.0),
                format::size(last.0)
            )
        } else {
            let sizes: Vec<String> = decided.iter().map(|(bytes, _)| format::size(*bytes)).collect();
            format!("at {}; elsewhere the two are not told apart", list(&sizes))
        };
        text.push_str(&format!("{} beats {} {extent}.", name(start.1), name(-start.1)));
        return Some(text);
    }
    let turns: Vec<String> = decided
        .windows(2)
        .filter(|pair| pair[0].1 != pair[1].1)
        .map(|pair| {
            let (from, to) = (format::size(pair[0].0), format::size(pair[1].0));
            format!("{} leads up to {from}, {} from {to}", name(pair[0].1), name(pair[1].1))
        })
        .collect();
    text.push_str(&format!("the lead changes: {}.", turns.join("; ")));
    Some(text)
}
