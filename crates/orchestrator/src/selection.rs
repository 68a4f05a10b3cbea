//! Which tools a request shows. Decides from the rules of the configuration, the turn and the question's words; the
//! rules' meaning is told at [`ToolSelectionRule`].

use std::collections::{BTreeMap, BTreeSet};

use core_protocol::ToolDefinition;

use crate::config::ToolSelectionRule;

/// The rules, worked out for the tools and the question of one agent.
#[derive(Debug, Clone)]
pub struct Selection {
    /// By tool: the turns of the rules about it; none where no such rule is.
    turns: Vec<Option<Vec<(u32, u32)>>>,
    /// By rule with `search`: its turns, and the tools that it hides in them.
    searches: Vec<((u32, u32), Vec<usize>)>,
}

impl Selection {
    /// None where there is no rule, so that all tools are shown always. Tools for which `is_own` holds belong to the
    /// loop itself and are hidden only by a rule that names their server.
    #[must_use]
    pub fn new(
        rules: &[ToolSelectionRule],
        tools: &[ToolDefinition],
        is_own: &dyn Fn(&ToolDefinition) -> bool,
        question: &str,
    ) -> Option<Self> {
        if rules.is_empty() {
            return None;
        }
        let mut turns: Vec<Option<Vec<(u32, u32)>>> = vec![None; tools.len()];
        let mut searches = Vec::new();
        for rule in rules {
            let range = (rule.from_turn.unwrap_or(1), rule.to_turn.unwrap_or(u32::MAX));
            let about: Vec<usize> =
                (0..tools.len()).filter(|index| is_about(rule, &tools[*index], is_own)).collect();
            match rule.search {
                None => {
                    for index in about {
                        turns[index].get_or_insert_default().push(range);
                    }
                }
                Some(most) => {
                    let ranked: Vec<usize> =
                        about.into_iter().filter(|index| !is_always(rule, &tools[*index])).collect();
                    let shown = best(&ranked, tools, question, most);
                    let hidden = ranked.into_iter().filter(|index| !shown.contains(index)).collect();
                    searches.push((range, hidden));
                }
            }
        }
        Some(Self { turns, searches })
    }

    /// The tools that a turn shows, by position. Where the rules would leave none, all of them are: a choice of tools
    /// must not leave an agent without any.
    #[must_use]
    pub fn shown(&self, turn: u32) -> Vec<u32> {
        let within = |(from, to): &(u32, u32)| (*from..=*to).contains(&turn);
        let mut shown: Vec<bool> = self
            .turns
            .iter()
            .map(|ranges| ranges.as_ref().is_none_or(|ranges| ranges.iter().any(within)))
            .collect();
        for (range, hidden) in &self.searches {
            if within(range) {
                hidden.iter().for_each(|index| shown[*index] = false);
            }
        }
        let all = !shown.contains(&true);
        (0u32..).zip(shown).filter(|(_, shown)| all || *shown).map(|(index, _)| index).collect()
    }
}

fn is_about(
    rule: &ToolSelectionRule,
    tool: &ToolDefinition,
    is_own: &dyn Fn(&ToolDefinition) -> bool,
) -> bool {
    match &rule.server {
        Some(server) => *server == tool.server && (rule.tools.is_empty() || rule.tools.contains(&tool.name)),
        None => rule.search.is_some() && !is_own(tool),
    }
}

fn is_always(rule: &ToolSelectionRule, tool: &ToolDefinition) -> bool {
    rule.always.contains(&tool.server) || rule.always.contains(&tool.name)
}

/// The `most` tools that share the rarest of the question's words; of equal ones those that stand first.
fn best(ranked: &[usize], tools: &[ToolDefinition], question: &str, most: usize) -> BTreeSet<usize> {
    let asked: BTreeSet<String> = words(question).collect();
    let described: Vec<BTreeMap<String, u32>> = tools
        .iter()
        .map(|tool| {
            let mut counts = BTreeMap::new();
            for word in words(&tool.name).chain(words(&tool.server)).chain(words(&tool.description)) {
                if asked.contains(&word) {
                    *counts.entry(word).or_insert(0) += 1;
                }
            }
            counts
        })
        .collect();
    let mut holding: BTreeMap<&str, u32> = BTreeMap::new();
    for word in described.iter().flat_map(BTreeMap::keys) {
        *holding.entry(word).or_insert(0) += 1;
    }
    let total = f64::from(u32::try_from(tools.len()).unwrap_or(u32::MAX));
    let mut scored: Vec<(f64, usize)> = ranked
        .iter()
        .map(|&index| {
            let score: f64 = described[index]
                .iter()
                .map(|(word, count)| {
                    let rarity = (1.0 + total / f64::from(holding[word.as_str()])).ln();
                    rarity * f64::from(*count) / (f64::from(*count) + 1.0)
                })
                .sum();
            (score, index)
        })
        .collect();
    scored.sort_by(|left, right| right.0.total_cmp(&left.0).then(left.1.cmp(&right.1)));
    scored.into_iter().take(most).map(|(_, index)| index).collect()
}

/// Words in lower case, without the `s` of plurals; of scripts without blanks each character.
fn words(text: &str) -> impl Iterator<Item = String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut end = |word: &mut String| {
        if word.len() > 3 && word.ends_with('s') && !word.ends_with("ss") {
            word.pop();
        }
        if word.len() > 1 {
            words.push(std::mem::take(word));
        }
        word.clear();
    };
    for character in text.chars() {
        if ('\u{2e80}'..'\u{ffff}').contains(&character) && character.is_alphanumeric() {
            end(&mut word);
            word.push(character);
            end(&mut word);
        } else if character.is_alphanumeric() {
            word.extend(character.to_lowercase());
        } else {
            end(&mut word);
        }
    }
    end(&mut word);
    words.into_iter()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools() -> Vec<ToolDefinition> {
        [
            ("web", "google_search", "Search the web for pages."),
            ("web", "scrape_website", "Read a web page."),
            ("music", "find_songs", "Find songs and composers of operas."),
            ("maps", "distance", "The distance between two cities."),
            ("findings", "record_finding", "Note a fact."),
        ]
        .map(|(server, name, description)| ToolDefinition {
            server: server.into(),
            name: name.into(),
            description: description.into(),
            input_schema: serde_json::json!({}),
        })
        .to_vec()
    }

    /// The rules as they are written, and the shown tools of some turns.
    fn check(rules: serde_json::Value, question: &str, expected: &[(u32, &str)]) {
        let rules: Vec<ToolSelectionRule> = serde_json::from_value(rules).unwrap();
        let tools = tools();
        let selection =
            Selection::new(&rules, &tools, &|tool| tool.server == "findings", question).expect("rules");
        for (turn, names) in expected {
            let shown: Vec<&str> =
                selection.shown(*turn).iter().map(|index| tools[*index as usize].name.as_str()).collect();
            assert_eq!(shown.join(" "), *names, "turn {turn}");
        }
    }

    const ALL: &str = "google_search scrape_website find_songs distance record_finding";

    #[test]
    fn by_server_and_turn() {
        use serde_json::json;
        assert!(Selection::new(&[], &tools(), &|_| false, "").is_none());
        let rest = "find_songs distance record_finding";
        check(
            json!([{"server": "web", "from_turn": 2, "to_turn": 3}]),
            "",
            &[(1, rest), (2, ALL), (3, ALL), (4, rest)],
        );
        check(
            json!([{"server": "web", "to_turn": 1}, {"server": "web", "from_turn": 3}]),
            "",
            &[(1, ALL), (2, rest), (3, ALL)],
        );
        check(
            json!([{"server": "web", "tools": ["scrape_website"], "from_turn": 2}]),
            "",
            &[(1, "google_search find_songs distance record_finding"), (2, ALL)],
        );
        check(
            json!([{"server": "findings", "from_turn": 5}]),
            "",
            &[(1, "google_search scrape_website find_songs distance"), (5, ALL)],
        );
    }

    #[test]
    fn by_the_words_of_the_question() {
        use serde_json::json;
        let question = "Who is the composer of the opera?";
        check(json!([{"search": 1}]), question, &[(1, "find_songs record_finding")]);
        check(
            json!([{"search": 1, "always": ["distance"]}]),
            question,
            &[(9, "find_songs distance record_finding")],
        );
        check(
            json!([{"search": 2}]),
            "words that no tool knows",
            &[(1, "google_search scrape_website record_finding")],
        );
        check(json!([{"search": 1, "to_turn": 2}]), question, &[(2, "find_songs record_finding"), (3, ALL)]);
        check(
            json!([{"server": "web", "search": 1}]),
            "Read the page",
            &[(1, "scrape_website find_songs distance record_finding")],
        );
        check(json!([{"search": 1}]), "两个城市 cities 之间", &[(1, "distance record_finding")]);
    }

    #[test]
    fn never_without_any_tool() {
        use serde_json::json;
        let rules: Vec<serde_json::Value> = ["web", "music", "maps", "findings"]
            .iter()
            .map(|server| json!({"server": server, "from_turn": 2}))
            .collect();
        check(json!(rules), "", &[(1, ALL), (2, ALL)]);
    }
}
