//! Who may depend on whom. The table is the one of ARCHITECTURE.md; `cargo metadata` tells what is true.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context as _;
use cargo_metadata::{DependencyKind, Metadata, MetadataCommand, PackageId};

/// A crate of ours: the crates of ours that it may use, and crates that must not be in its tree at all.
struct Layer {
    name: &'static str,
    below: &'static [&'static str],
    never: &'static [&'static str],
}

const LAYERS: &[Layer] = &[
    Layer {
        name: "core-protocol",
        below: &[],
        never: &["tokio", "reqwest", "hyper", "rmcp", "anyhow", "figment", "jiff", "async-trait"],
    },
    Layer {
        name: "llm-providers",
        below: &["core-protocol"],
        never: &["rmcp", "figment", "tantivy", "clap"],
    },
    Layer { name: "mcp-tools", below: &["core-protocol"], never: &["tiktoken-rs", "figment", "clap"] },
    Layer {
        name: "answer-generator",
        below: &["core-protocol"],
        never: &["tokio", "reqwest", "rmcp", "figment"],
    },
    Layer {
        name: "orchestrator",
        below: &["core-protocol", "llm-providers", "mcp-tools", "answer-generator"],
        never: &["figment", "clap", "indicatif"],
    },
    Layer {
        name: "pipeline",
        below: &["core-protocol", "llm-providers", "mcp-tools", "answer-generator", "orchestrator"],
        never: &["clap", "indicatif", "axum"],
    },
    Layer { name: "fathom", below: &["core-protocol", "llm-providers", "mcp-tools", "pipeline"], never: &[] },
    Layer {
        name: "evaluation",
        below: &["core-protocol", "llm-providers", "pipeline"],
        never: &["clap", "indicatif", "axum"],
    },
    Layer { name: "fathom-bench", below: &["evaluation", "pipeline"], never: &[] },
    Layer { name: "xtask", below: &[], never: &[] },
];

/// `anyhow` may be a direct dependency of these only.
const ANYHOW: &[&str] = &["fathom", "fathom-bench", "xtask"];

pub fn check() -> anyhow::Result<Vec<String>> {
    let metadata = MetadataCommand::new()
        .manifest_path(crate::shell::root().join("Cargo.toml"))
        .other_options(vec!["--locked".to_owned()])
        .exec()
        .context("cargo metadata failed")?;
    let mut problems = Vec::new();
    let ours: BTreeMap<&str, &cargo_metadata::Package> =
        metadata.workspace_packages().into_iter().map(|package| (package.name.as_str(), package)).collect();
    for name in ours.keys() {
        if !LAYERS.iter().any(|layer| layer.name == *name) {
            problems.push(format!(
                "the crate {name} has no place in the table of layers (xtask/src/tidy/layers.rs)"
            ));
        }
    }
    for layer in LAYERS {
        let Some(package) = ours.get(layer.name) else {
            problems.push(format!("the table of layers names {}, which is not there", layer.name));
            continue;
        };
        for dependency in &package.dependencies {
            let used = dependency.name.as_str();
            if dependency.kind == DependencyKind::Development {
                continue;
            }
            if ours.contains_key(used) && !layer.below.contains(&used) {
                problems.push(format!("{} uses {used}, which is not below it", layer.name));
            }
            if used == "anyhow" && !ANYHOW.contains(&layer.name) {
                problems.push(format!("{} uses anyhow; library crates have typed errors", layer.name));
            }
        }
        let tree = tree_of(&metadata, &package.id);
        for never in layer.never {
            if tree.contains(never) {
                problems.push(format!("{never} is in the tree of {}, which must do without it", layer.name));
            }
        }
    }
    Ok(problems)
}

/// Names of all crates that a crate of ours needs to build, those for its tests left out.
fn tree_of<'a>(metadata: &'a Metadata, root: &PackageId) -> BTreeSet<&'a str> {
    let Some(resolve) = &metadata.resolve else { return BTreeSet::new() };
    let nodes: BTreeMap<&PackageId, _> = resolve.nodes.iter().map(|node| (&node.id, node)).collect();
    let names: BTreeMap<&PackageId, &str> =
        metadata.packages.iter().map(|package| (&package.id, package.name.as_str())).collect();
    let mut seen = BTreeSet::new();
    let mut waiting = vec![root];
    while let Some(id) = waiting.pop() {
        let Some(node) = nodes.get(id) else { continue };
        for dependency in &node.deps {
            let built = dependency.dep_kinds.iter().any(|kind| kind.kind != DependencyKind::Development);
            if built
                && let Some((id, name)) = names.get_key_value(&dependency.pkg)
                && seen.insert(*name)
            {
                waiting.push(id);
            }
        }
    }
    seen
}
