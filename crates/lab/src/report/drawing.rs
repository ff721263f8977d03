//! What is drawn: figures with their kinds of drawings, without a word of how.

use super::listing::Listing;
use crate::lens::Axis;
use crate::lens::rank::Speed;

/// Drawings with what belongs to them.
#[derive(Default)]
pub(crate) struct Figure<'a> {
    /// Unique in the page.
    pub(crate) id: String,
    pub(crate) drawings: Vec<Drawing<'a>>,
    /// The finding.
    pub(crate) caption: String,
    /// How to read the drawing; may be empty.
    pub(crate) reading: String,
    pub(crate) listing: Listing,
    /// Folded away under this title.
    pub(crate) folded: Option<String>,
}

/// Kinds of drawings.
pub(crate) enum Drawing<'a> {
    /// Lines over two logarithmic axes.
    Lines(Lines),
    /// Bars from zero.
    Bars(Bars<'a>),
    /// Ratios with their intervals.
    Ratios(Ratios<'a>),
}

/// What all drawings have.
pub(crate) struct Frame {
    /// Unique in the page.
    pub(crate) id: String,
    pub(crate) title: String,
    /// For who does not see it.
    pub(crate) description: String,
}

/// Lines over two logarithmic axes.
pub(crate) struct Lines {
    pub(crate) frame: Frame,
    pub(crate) axis: Axis,
    /// Ends of both axes.
    pub(crate) ends: ((f64, f64), (f64, f64)),
    pub(crate) lines: Vec<Line>,
}

/// One line.
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) series: Series,
    pub(crate) points: Vec<Point>,
}

/// What fixes colour and shape.
#[derive(Clone, Copy)]
pub(crate) enum Series {
    /// Of a subject, see [`super::model::Report::series`].
    Subject(usize),
    /// Of one of several lines of the same subject.
    Kin(usize),
}

/// One figure of a line.
pub(crate) struct Point {
    pub(crate) at: f64,
    /// What stands at the axis there.
    pub(crate) tick: String,
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) marked: bool,
    pub(crate) tip: String,
}

/// Bars from zero.
pub(crate) struct Bars<'a> {
    pub(crate) frame: Frame,
    /// What the axis counts.
    pub(crate) axis: String,
    /// Its end.
    pub(crate) most: f64,
    pub(crate) groups: Vec<(String, Vec<Bar<'a>>)>,
}

/// One bar.
pub(crate) struct Bar<'a> {
    pub(crate) name: &'a str,
    pub(crate) series: usize,
    pub(crate) value: f64,
    pub(crate) low: f64,
    pub(crate) high: f64,
    pub(crate) marked: bool,
    /// Pieces that it is made of: a name, its share and what is said of it. One for all of it has no name.
    pub(crate) pieces: Vec<(&'static str, f64, String)>,
}

/// Ratios of a subject with their intervals.
pub(crate) struct Ratios<'a> {
    pub(crate) frame: Frame,
    pub(crate) subject: &'a str,
    pub(crate) series: usize,
    pub(crate) ends: (f64, f64),
    /// A heading, and a label, a ratio, whether the row is marked, and what is said of it, for each line.
    pub(crate) groups: Vec<(String, Vec<(String, Speed<'a>, bool, String)>)>,
}

impl Ratios<'_> {
    /// The ends of a scale for these.
    pub(crate) fn ends<'s>(speeds: impl Iterator<Item = &'s Speed<'s>>) -> (f64, f64) {
        let ends = speeds.flat_map(|speed| [speed.low, speed.high, speed.estimate]);
        let ends = ends.filter(|end| end.is_finite() && *end > 0.0);
        let (low, high) = ends.fold((0.95, 1.0 / 0.95), |(low, high): (f64, f64), end| {
            (low.min(end), high.max(end))
        });
        ((low / 1.02).max(0.02), (high * 1.02).min(50.0))
    }
}

/// What has the same key together, in the order in which keys first come.
pub(crate) fn grouped<K: PartialEq, V>(members: impl IntoIterator<Item = (K, V)>) -> Vec<(K, Vec<V>)> {
    let mut groups: Vec<(K, Vec<V>)> = Vec::new();
    for (key, member) in members {
        match groups.iter_mut().find(|(known, _)| *known == key) {
            Some((_, members)) => members.push(member),
            None => groups.push((key, vec![member])),
        }
    }
    groups
}
