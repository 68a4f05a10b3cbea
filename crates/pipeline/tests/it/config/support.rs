//! A configuration directory made for one test.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail as tests do")]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use pipeline::config::{ConfigError, ConfigSources, Resolved, resolve};
use tempfile::TempDir;

/// Files in a directory of their own, and the sources that use it.
pub(crate) struct Case {
    pub(crate) dir: TempDir,
    pub(crate) sources: ConfigSources,
}

impl Case {
    /// A directory with these files as `conf/`; without any, the built-in files alone.
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let conf = dir.path().join("conf");
        for (name, text) in files {
            write(&conf, name, text);
        }
        let conf_dir = (!files.is_empty()).then_some(conf);
        Self { dir, sources: ConfigSources { conf_dir, ..ConfigSources::default() } }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn file(mut self, name: &str, text: &str) -> Self {
        write(self.dir.path(), name, text);
        match name {
            "user.yaml" => self.sources.user_config = Some(self.path(name)),
            ".env" => self.sources.dotenv.push(self.path(name)),
            _ => {}
        }
        self
    }

    pub(crate) fn set(mut self, set: &str) -> Self {
        self.sources.sets.push(set.to_owned());
        self
    }

    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.sources.environment.insert(name.to_owned(), value.to_owned());
        self
    }

    pub(crate) fn agent(mut self, name: &str) -> Self {
        self.sources.agent = Some(name.to_owned());
        self
    }

    pub(crate) fn llm(mut self, name: &str) -> Self {
        self.sources.llm = Some(name.to_owned());
        self
    }

    pub(crate) fn benchmark(mut self, name: &str) -> Self {
        self.sources.benchmark = Some(name.to_owned());
        self
    }

    pub(crate) fn resolved(&self) -> Resolved {
        resolve(&self.sources).unwrap_or_else(|errors| panic!("{errors}"))
    }

    /// The errors, with the test's directory taken out of the paths.
    pub(crate) fn errors(&self) -> Vec<ConfigError> {
        match resolve(&self.sources) {
            Ok(_) => Vec::new(),
            Err(errors) => errors.0,
        }
    }

    /// A text with the test's directory taken out.
    pub(crate) fn plain(&self, text: &str) -> String {
        text.replace(&format!("{}/", self.dir.path().display()), "")
    }
}

fn write(dir: &Path, name: &str, text: &str) {
    let path = dir.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

/// The value at a dotted path of the configuration as JSON, as compact text.
pub(crate) fn value(resolved: &Resolved, path: &str) -> String {
    let json = resolved.to_json();
    path.split('.').fold(&json, |value, key| &value[key]).to_string()
}

pub(crate) fn variables(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}
