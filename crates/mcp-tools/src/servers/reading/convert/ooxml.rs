//! Documents of Microsoft Office since 2007: parts in an archive that point to one another.
//!
//! Decides how the main part is found, where a part points to, and what a document is called.

use super::Problem;
use super::package::{Package, resolve};
use super::xml::Element;

impl Package<'_> {
    /// The main part and what it points to. It is at `usual` where the document does not say; `what` it is that a
    /// document without it lacks.
    pub(super) fn main_part(&mut self, usual: &str, what: &str) -> Result<(Element, Relations), Problem> {
        let path = self.relations("")?.of_kind("officeDocument").unwrap_or(usual).to_owned();
        let Some(main) = self.xml(&path)? else { return Err(Problem::Broken(format!("it has no {what}"))) };
        Ok((main, self.relations(&path)?))
    }

    /// The title in the document's properties.
    pub(super) fn title(&mut self) -> Result<Option<String>, Problem> {
        let Some(path) = self.relations("")?.of_kind("core-properties").map(str::to_owned) else {
            return Ok(None);
        };
        // Broken properties are no reason not to read the text.
        let Ok(Some(properties)) = self.xml(&path) else { return Ok(None) };
        let title = properties.child("title").map(|title| title.text().trim().to_owned());
        Ok(title.filter(|title| !title.is_empty()))
    }

    /// What a part of an Office document points to.
    pub(super) fn relations(&mut self, part: &str) -> Result<Relations, Problem> {
        let (folder, file) = part.rsplit_once('/').unwrap_or(("", part));
        let slash = if folder.is_empty() { "" } else { "/" };
        let Some(root) = self.xml(&format!("{folder}{slash}_rels/{file}.rels"))? else {
            return Ok(Relations::default());
        };
        let mut relations = Vec::new();
        for relation in root.all("Relationship") {
            let (Some(id), Some(target)) = (relation.attribute("Id"), relation.attribute("Target")) else {
                continue;
            };
            let external = relation.attribute("TargetMode") == Some("External");
            let target = if external { target.to_owned() } else { resolve(folder, target) };
            let kind =
                relation.attribute("Type").and_then(|kind| kind.rsplit('/').next()).unwrap_or_default();
            relations.push(Relation { id: id.to_owned(), kind: kind.to_owned(), target });
        }
        Ok(Relations(relations))
    }
}

/// What a part points to.
#[derive(Debug, Default)]
pub(super) struct Relations(Vec<Relation>);

#[derive(Debug)]
pub(super) struct Relation {
    id: String,
    /// The last part of its type: `hyperlink`, `slide`…
    pub(super) kind: String,
    /// A path in the archive, or an address.
    pub(super) target: String,
}

impl Relations {
    pub(super) fn target(&self, id: &str) -> Option<&str> {
        self.0.iter().find(|relation| relation.id == id).map(|relation| relation.target.as_str())
    }

    /// The first of a kind.
    pub(super) fn of_kind(&self, kind: &str) -> Option<&str> {
        self.0.iter().find(|relation| relation.kind == kind).map(|relation| relation.target.as_str())
    }
}
