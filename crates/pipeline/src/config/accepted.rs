//! Keys of other programs' configuration directories that are accepted and have no effect.
//!
//! Decides which they are and what stands for them here. Everything else that nobody reads is an error.

use serde::Serialize;

use super::layer::{Layers, Origin};
use super::node::{Node, Step, path_text};

/// A key that was accepted and is not used.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AcceptedUnused {
    /// Its path.
    pub key: String,
    /// Where it was written.
    pub origin: Origin,
    /// Why nothing comes of it.
    pub why: String,
}

/// Path, and why nothing comes of it.
const ACCEPTED: [(&[&str], &str); 6] = [
    (&["hydra"], "settings of Hydra; where runs are kept is set with --runs-dir"),
    (&["project_name"], "a name that nothing here is called by"),
    (&["debug_dir"], "where runs are kept is set with --runs-dir"),
    (&["llm", "async_client"], "every call is asynchronous"),
    (&["agent", "tool_config"], "which services a tool uses follows from the keys in the environment"),
    (
        &["benchmark", "execution", "format_error_retry_limit"],
        "replies in a wrong format are rolled back within a run; see agent.max_consecutive_rollbacks",
    ),
];

/// Takes the accepted keys out of a tree and lists them.
pub(crate) fn take(tree: &mut Node, layers: &Layers) -> Vec<AcceptedUnused> {
    let mut taken = Vec::new();
    for (keys, why) in ACCEPTED {
        let path: Vec<Step> = keys.iter().map(|key| Step::Key((*key).to_owned())).collect();
        if let Some(entry) = tree.remove(&path) {
            let origin = layers.origin(entry.mark);
            taken.push(AcceptedUnused { key: path_text(&path), origin, why: why.to_owned() });
        }
    }
    taken
}
