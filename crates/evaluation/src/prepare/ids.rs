//! Which records of an original are taken. Decides where their ids are from, and that none of them may be missing.

use std::collections::BTreeSet;
use std::path::Path;

use super::{PrepareError, Recipe};
use crate::records::{RecordsError, is_named_so, read_records, scalar_text};

/// The ids that are taken.
pub(super) struct Wanted {
    ids: BTreeSet<String>,
    found: BTreeSet<String>,
    origin: String,
}

impl Wanted {
    /// Those of the file, else those that are known of the suite; none: all are taken.
    pub(super) fn of(recipe: &Recipe, file: Option<&Path>) -> Result<Option<Self>, PrepareError> {
        let (ids, origin) = match (file, recipe.selection) {
            (Some(file), _) => (read(file)?, file.display().to_string()),
            (None, Some(selection)) => match selection.ids {
                Some(text) => (lines(text), selection.source.to_owned()),
                None => return Ok(None),
            },
            (None, None) => return Ok(None),
        };
        Ok(Some(Self { ids, found: BTreeSet::new(), origin }))
    }

    pub(super) fn takes(&mut self, id: &str) -> bool {
        let takes = self.ids.contains(id);
        if takes {
            self.found.insert(id.to_owned());
        }
        takes
    }

    /// An error where one of them did not come.
    pub(super) fn all_found(self, original: &Path) -> Result<(), PrepareError> {
        let missing: Vec<String> = self.ids.difference(&self.found).cloned().collect();
        if missing.is_empty() {
            return Ok(());
        }
        Err(PrepareError::Missing {
            file: original.display().to_string(),
            wanted: self.ids.len(),
            origin: self.origin,
            missing,
        })
    }
}

/// One a line; `#` begins a comment.
fn lines(text: &str) -> BTreeSet<String> {
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or_default().trim());
    lines.filter(|line| !line.is_empty()).map(str::to_owned).collect()
}

/// A file of ids, or of records that have one each.
fn read(file: &Path) -> Result<BTreeSet<String>, PrepareError> {
    let name = file.display().to_string();
    let broken = |problem: &str| -> PrepareError {
        RecordsError::Broken { file: name.clone(), problem: problem.to_owned() }.into()
    };
    let ids = if is_named_so(file) {
        let mut ids = BTreeSet::new();
        for record in read_records(file)? {
            let record = record.map_err(PrepareError::Bad)?;
            let id = ["task_id", "id", "ID"].iter().find_map(|name| scalar_text(record.fields.get(*name)?));
            ids.insert(id.ok_or_else(|| broken("a record has neither `task_id` nor `id`"))?);
        }
        ids
    } else {
        let text = std::fs::read_to_string(file)
            .map_err(|source| RecordsError::Read { file: name.clone(), source })?;
        lines(&text)
    };
    if ids.is_empty() { Err(broken("it holds no ids")) } else { Ok(ids) }
}
