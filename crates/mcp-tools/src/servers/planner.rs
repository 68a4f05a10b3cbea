//! The server `task_planner`: what a model has set out to do, item by item.
//!
//! Decides how items are named and what is said of ids that mean nothing. There is one list to a server, in memory:
//! it ends with it.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};

use rmcp::handler::server::wrapper::Parameters;
use rmcp::{ServerHandler, tool, tool_handler, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::{InProcessServer, in_process};

/// Items of a list: more is no plan.
const MOST_ITEMS: usize = 200;
/// Characters of an item.
const LONGEST_TITLE: usize = 500;

/// The server, with an empty list.
#[must_use]
pub fn server() -> Arc<dyn InProcessServer> {
    let list = Arc::new(Mutex::new(List::default()));
    in_process("task_planner", move || Planner { list: Arc::clone(&list) })
}

#[derive(Debug, Default)]
struct List {
    items: Vec<Item>,
    /// The last id that was given: ids of deleted items mean nothing for ever.
    last: u64,
}

#[derive(Debug)]
struct Item {
    id: u64,
    title: String,
    done: bool,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Add {
    /// What to do, one text for each item, in the order in which it is to be done.
    titles: Vec<String>,
}

#[derive(Debug, Deserialize, JsonSchema)]
struct Ids {
    /// The ids of the items, as list_todos shows them.
    todo_ids: Vec<String>,
}

#[derive(Debug, Clone)]
struct Planner {
    list: Arc<Mutex<List>>,
}

#[tool_router]
impl Planner {
    #[tool(
        description = "Adds items to the list of what is to be done. Returns the whole list with the items' ids."
    )]
    async fn add_todo(&self, Parameters(Add { titles }): Parameters<Add>) -> Result<String, String> {
        self.change(|list| list.add(&titles))
    }

    #[tool(description = "Shows the list of what is to be done: id, state and title of each item.")]
    async fn list_todos(&self) -> Result<String, String> {
        self.change(|_| Ok(String::new()))
    }

    #[tool(description = "Marks items of the list as done. Returns the whole list.")]
    async fn complete_todo(&self, Parameters(Ids { todo_ids }): Parameters<Ids>) -> Result<String, String> {
        self.change(|list| {
            let ids = list.known(&todo_ids)?;
            list.items.iter_mut().filter(|item| ids.contains(&item.id)).for_each(|item| item.done = true);
            Ok(format!("Done: {}.", named(&ids)))
        })
    }

    #[tool(description = "Removes items from the list. Returns what is left of it.")]
    async fn delete_todo(&self, Parameters(Ids { todo_ids }): Parameters<Ids>) -> Result<String, String> {
        self.change(|list| {
            let ids = list.known(&todo_ids)?;
            list.items.retain(|item| !ids.contains(&item.id));
            Ok(format!("Deleted: {}.", named(&ids)))
        })
    }
}

#[tool_handler(name = "task_planner")]
impl ServerHandler for Planner {}

impl Planner {
    /// All or nothing of a change, and the list after it.
    fn change(&self, change: impl FnOnce(&mut List) -> Result<String, String>) -> Result<String, String> {
        let mut list = self.list.lock().unwrap_or_else(PoisonError::into_inner);
        let done = change(&mut list)?;
        Ok(if done.is_empty() { list.shown() } else { format!("{done}\n\n{}", list.shown()) })
    }
}

impl List {
    fn add(&mut self, titles: &[String]) -> Result<String, String> {
        let titles: Vec<String> =
            titles.iter().map(|title| title.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        if titles.is_empty() {
            return Err("Nothing was added: `titles` is empty. Give one text for each item.".into());
        }
        if let Some(at) = titles.iter().position(String::is_empty) {
            return Err(format!("Nothing was added: title {} is empty.", at + 1));
        }
        if let Some(at) = titles.iter().position(|title| title.chars().count() > LONGEST_TITLE) {
            return Err(format!(
                "Nothing was added: title {} is longer than {LONGEST_TITLE} characters.",
                at + 1
            ));
        }
        if self.items.len() + titles.len() > MOST_ITEMS {
            return Err(format!(
                "Nothing was added: a list has {MOST_ITEMS} items at most, and there are {}. Delete what is done.",
                self.items.len()
            ));
        }
        let mut ids = Vec::new();
        for title in titles {
            self.last += 1;
            ids.push(self.last);
            self.items.push(Item { id: self.last, title, done: false });
        }
        Ok(format!("Added: {}.", named(&ids)))
    }

    /// The numbers of ids, all of which must be there.
    fn known(&self, ids: &[String]) -> Result<Vec<u64>, String> {
        if ids.is_empty() {
            return Err(
                "Nothing was changed: `todo_ids` is empty. Give the ids that list_todos shows.".into()
            );
        }
        let number = |id: &String| {
            let id: u64 = id.trim().trim_start_matches('#').parse().ok()?;
            self.items.iter().any(|item| item.id == id).then_some(id)
        };
        let unknown: Vec<String> =
            ids.iter().filter(|id| number(id).is_none()).map(|id| format!("`{id}`")).collect();
        if !unknown.is_empty() {
            let there: Vec<u64> = self.items.iter().map(|item| item.id).collect();
            let there = if there.is_empty() {
                "the list is empty".to_owned()
            } else {
                format!("there are {}", named(&there))
            };
            return Err(format!("Nothing was changed: no item has the id {}; {there}.", unknown.join(", ")));
        }
        Ok(ids.iter().filter_map(number).collect())
    }

    fn shown(&self) -> String {
        if self.items.is_empty() {
            return "The list is empty.".into();
        }
        let done = self.items.iter().filter(|item| item.done).count();
        let mut text = format!("{} of {} done:", done, self.items.len());
        for Item { id, title, done } in &self.items {
            let mark = if *done { 'x' } else { ' ' };
            // Writing to a string cannot fail.
            let _ = write!(text, "\n{id}. [{mark}] {title}");
        }
        text
    }
}

fn named(ids: &[u64]) -> String {
    ids.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    #[test]
    fn ids_are_never_given_twice() {
        let mut list = List::default();
        assert_eq!(list.add(&texts(&["one", " two\n words "])).as_deref(), Ok("Added: 1, 2."));
        list.items.retain(|item| item.id != 2);
        assert_eq!(list.add(&texts(&["three"])).as_deref(), Ok("Added: 3."));
        assert_eq!(list.known(&texts(&[" #3", "1"])), Ok(vec![3, 1]));
        assert_eq!(
            list.known(&texts(&["2", "1", "x"])).unwrap_err(),
            "Nothing was changed: no item has the id `2`, `x`; there are 1, 3."
        );
        assert_eq!(list.shown(), "0 of 2 done:\n1. [ ] one\n3. [ ] three");
    }

    #[test]
    fn what_is_no_item_is_not_added() {
        let mut list = List::default();
        let long = "x".repeat(LONGEST_TITLE + 1);
        let many = vec!["x".to_owned(); MOST_ITEMS + 1];
        for (titles, part) in [
            (texts(&[]), "is empty"),
            (texts(&["a", "  "]), "title 2 is empty"),
            (texts(&[&long]), "longer than 500"),
            (many, "200 items at most"),
        ] {
            assert!(list.add(&titles).unwrap_err().contains(part), "{part}");
        }
        assert!(list.items.is_empty());
        assert!(list.known(&texts(&["1"])).unwrap_err().contains("the list is empty"));
    }
}
