//! What a benchmark configuration leaves open and the built-in suite of the same name knows.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::embedded::embedded;
use super::layer::Origin;
use super::node::{Node, Step, path_text};
use super::resolve::Provenance;
use super::{BenchmarkConfig, JudgeId, typed, yaml};

/// The part of a suite's file that others may leave open.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Suite {
    epochs: Option<u32>,
    judge: SuiteJudge,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct SuiteJudge {
    id: Option<JudgeId>,
}

/// Fills in the epochs and the judge of the suite's name, so that a directory made for another program, which knows
/// neither, is run as the suite is meant to be run.
pub(crate) fn fill(benchmark: &mut BenchmarkConfig, origins: &mut BTreeMap<String, Provenance>) {
    if benchmark.epochs.is_some() && benchmark.judge.id.is_some() {
        return;
    }
    let path = format!("benchmark/{}.yaml", benchmark.name);
    let Some(node) = embedded().get_file(&path).and_then(|file| yaml::parse(file.contents_utf8()?).ok())
    else {
        return;
    };
    let suite = typed::read::<Suite>(&node).0.unwrap_or_default();
    let mut note = |keys: &[&str]| {
        let steps: Vec<Step> = keys.iter().map(|key| Step::Key((*key).to_owned())).collect();
        let line = node.find(&steps).map_or(1, |node: &Node| node.mark.line);
        let origin = Origin::File { path: format!("conf/{path}"), line, built_in: true };
        origins
            .insert(format!("benchmark.{}", path_text(&steps)), Provenance { origin, variables: Vec::new() });
    };
    if benchmark.epochs.is_none() && suite.epochs.is_some() {
        benchmark.epochs = suite.epochs;
        note(&["epochs"]);
    }
    if benchmark.judge.id.is_none() && suite.judge.id.is_some() {
        benchmark.judge.id = suite.judge.id;
        note(&["judge", "id"]);
    }
}
