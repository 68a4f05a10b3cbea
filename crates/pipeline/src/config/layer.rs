//! Layers: where a value came from, and which of several values holds.
//!
//! Decides what a layer is and how layers are laid over each other: maps key by key, everything else as a whole,
//! the later one wins. The merging is figment's, which knows for every value the layer that it came from; the value
//! itself, with its line and as it was written, is then taken from that layer. In which order they lie is left to
//! the resolver.

use figment::value::{Dict, Map, Tag, Value};
use figment::{Error, Figment, Metadata, Profile, Provider};
use serde::Serialize;

use super::node::{Entry, Mark, Node, NodeValue, Step};

/// Where a value was written.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// Nowhere: it is the default.
    Default,
    /// In a file.
    File {
        /// Its path; of a file inside the binary `conf/…`.
        path: String,
        /// Line, from 1.
        line: u32,
        /// Whether it is the copy inside the binary.
        built_in: bool,
    },
    /// In an environment variable.
    Environment {
        /// Its name.
        variable: String,
        /// The `.env` file and line that set it, where it was not in the environment itself.
        dotenv: Option<String>,
    },
    /// With `--set`.
    Set {
        /// The key as it was given.
        key: String,
    },
}

impl std::fmt::Display for Origin {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Default => formatter.write_str("default"),
            Self::File { path, line, built_in: false } => write!(formatter, "{path}:{line}"),
            Self::File { path, line, built_in: true } => write!(formatter, "{path}:{line} (built in)"),
            Self::Environment { variable, dotenv: None } => write!(formatter, "variable {variable}"),
            Self::Environment { variable, dotenv: Some(file) } => {
                write!(formatter, "variable {variable} ({file})")
            }
            Self::Set { key } => write!(formatter, "--set {key}"),
        }
    }
}

/// What one place says.
#[derive(Clone)]
pub(crate) struct Layer {
    /// A file's line is filled in from the value.
    pub(crate) origin: Origin,
    pub(crate) root: Node,
}

/// All layers, the winning ones last.
#[derive(Default)]
pub(crate) struct Layers {
    layers: Vec<Layer>,
}

impl Layers {
    pub(crate) fn push(&mut self, origin: Origin, mut root: Node) {
        root.set_layer(u32::try_from(self.layers.len()).unwrap_or(u32::MAX));
        self.layers.push(Layer { origin, root });
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Layer> {
        self.layers.iter()
    }

    /// Where a value was written.
    pub(crate) fn origin(&self, mark: Mark) -> Origin {
        let layer = usize::try_from(mark.layer).ok().and_then(|index| self.layers.get(index));
        match layer.map(|layer| &layer.origin) {
            Some(Origin::File { path, built_in, .. }) => {
                Origin::File { path: path.clone(), line: mark.line, built_in: *built_in }
            }
            Some(origin) => origin.clone(),
            None => Origin::Default,
        }
    }

    /// The keys of all maps at a path, so that a variable's name can be matched to them.
    pub(crate) fn keys_at(&self, path: &[String]) -> impl Iterator<Item = &str> {
        let steps: Vec<Step> = path.iter().cloned().map(Step::Key).collect();
        self.layers
            .iter()
            .filter_map(move |layer| layer.root.find(&steps))
            .flat_map(Node::entries)
            .map(|entry| entry.key.as_str())
    }

    /// The one tree that all layers make together.
    pub(crate) fn merged(&self) -> Result<Node, Box<Error>> {
        let mut figment = Figment::new();
        for (index, layer) in self.layers.iter().enumerate() {
            figment = figment.merge(Skeleton { index, root: &layer.root });
        }
        let mut profiles = figment.data().map_err(Box::new)?;
        let merged = profiles.remove(&Profile::Default).unwrap_or_default();
        let mut path = Vec::new();
        Ok(Node::map(self.entries(&figment, &merged, &mut path), Mark::default()))
    }

    fn entries(&self, figment: &Figment, merged: &Dict, path: &mut Vec<Step>) -> Vec<Entry> {
        let mut entries = Vec::with_capacity(merged.len());
        for (key, value) in merged {
            path.push(Step::Key(key.clone()));
            entries.extend(self.entry(figment, value, path).map(|(mark, node)| Entry {
                key: key.clone(),
                mark,
                node,
            }));
            path.pop();
        }
        entries
    }

    fn entry(&self, figment: &Figment, value: &Value, path: &mut Vec<Step>) -> Option<(Mark, Node)> {
        let own = self.layer_of(figment, value.tag())?.root.find(path)?;
        Some(match value {
            Value::Dict(_, merged) => (own.mark, Node::map(self.entries(figment, merged, path), own.mark)),
            _ => (own.mark, own.clone()),
        })
    }

    fn layer_of(&self, figment: &Figment, tag: Tag) -> Option<&Layer> {
        let index: usize = figment.get_metadata(tag)?.name.parse().ok()?;
        self.layers.get(index)
    }
}

/// A layer as figment sees it: its maps, and a mark for everything that is no map.
struct Skeleton<'a> {
    index: usize,
    root: &'a Node,
}

impl Provider for Skeleton<'_> {
    fn metadata(&self) -> Metadata {
        Metadata::named(self.index.to_string())
    }

    fn data(&self) -> Result<Map<Profile, Dict>, Error> {
        Ok(Profile::Default.collect(bones(self.root)))
    }
}

fn bones(node: &Node) -> Dict {
    let bone = |node: &Node| match &node.value {
        NodeValue::Map(_) => Value::from(bones(node)),
        _ => Value::from(true),
    };
    node.entries().iter().map(|entry| (entry.key.clone(), bone(&entry.node))).collect()
}
