//! The texts that an agent is given, rendered from the templates in `conf/prompts/`.
//!
//! Decides which variables a template sees; the wording is the templates'. Every template is rendered once when
//! the run is set up, so that a mistake in one is found before the first request.

use answer_generator::EndingPrompts;
use core_protocol::event::RollbackReason;
use minijinja::{Environment, UndefinedBehavior, context};
use orchestrator::{Finding, Prompts};

use crate::error::PipelineError;

/// Gives the text of a template by its path below `prompts/`, with the place it came from.
pub type TemplateSource<'a> = dyn Fn(&str) -> Option<(String, String)> + 'a;

/// What the system prompt depends on beside the tools.
#[derive(Debug, Clone)]
pub struct PromptFacts {
    /// Today, as the model is told it (`2026-11-21`).
    pub date: String,
    /// `mcp_xml`, `hermes`, `qwen_xml`, `auto`, or `native`.
    pub dialect: String,
    /// Whether a message may hold several calls.
    pub several_calls: bool,
    /// `plain` or `example`.
    pub style: String,
    /// `main` or `browsing`.
    pub role: String,
}

/// Rendered and renderable texts of one agent.
pub struct TemplatePrompts {
    environment: Environment<'static>,
    facts: PromptFacts,
    failure_summary: String,
    failure_summary_prefix: String,
}

const TEMPLATES: &[&str] = &[
    "system.md",
    "role_main.md",
    "role_browsing.md",
    "final_answer.md",
    "failure_summary.md",
    "failure_summary_prefix.md",
    "next_task.md",
    "rollback_hint.md",
    "final_report.md",
    "sub_agent_task.md",
    "sub_agent_report.md",
    "findings.md",
    "compression.md",
    "compressed.md",
    "compressed_go_on.md",
];

impl TemplatePrompts {
    /// Loads and tries every template.
    ///
    /// # Errors
    ///
    /// A template that is missing, cannot be parsed or asks for an unknown variable; the error names its file.
    pub fn load(source: &TemplateSource<'_>, facts: PromptFacts) -> Result<Self, PipelineError> {
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
        let mut names: Vec<String> = TEMPLATES.iter().map(|name| (*name).to_owned()).collect();
        names.push(format!("tool_use/{}.md", facts.dialect));
        names.push("tool_use/mcp_xml.md".to_owned());
        names.push(format!("tool_use/example_{}.md", facts.dialect));
        for name in names {
            let Some((text, origin)) = source(&name) else {
                if name.starts_with("tool_use/example_") {
                    continue;
                }
                return Err(PipelineError::Prompt {
                    place: format!("prompts/{name}"),
                    problem: "the template is missing".to_owned(),
                });
            };
            environment
                .add_template_owned(name, text)
                .map_err(|error| PipelineError::Prompt { place: origin, problem: describe(&error) })?;
        }
        let mut prompts = Self {
            environment,
            facts,
            failure_summary: String::new(),
            failure_summary_prefix: String::new(),
        };
        prompts.failure_summary = prompts.render("failure_summary.md", context! {})?;
        prompts.failure_summary_prefix = prompts.render("failure_summary_prefix.md", context! {})?;
        let system = prompts.render_system("TOOLS")?;
        if prompts.facts.dialect != "native" && !system.contains("TOOLS") {
            return Err(PipelineError::Prompt {
                place: "prompts/system.md".to_owned(),
                problem: "it never shows {{ tools }}, so the model would not know its tools".to_owned(),
            });
        }
        for name in ["final_answer.md", "final_report.md"] {
            prompts.render(name, context! { question => "" })?;
        }
        for name in ["sub_agent_task.md", "sub_agent_report.md"] {
            prompts.render(name, context! { subtask => "" })?;
        }
        let finding = Finding { name: "a".into(), text: "b".into(), source: "c".into(), quote: "d".into() };
        prompts.render("findings.md", context! { findings => listed(&[finding]) })?;
        prompts.render("compression.md", context! { words => 1 })?;
        prompts.render("compressed.md", context! { summary => "" })?;
        prompts.render("compressed_go_on.md", context! {})?;
        prompts.render("next_task.md", context! { question => "", failures => vec!["", ""] })?;
        for reason in [
            RollbackReason::FormatError,
            RollbackReason::Refusal,
            RollbackReason::DuplicateQuery,
            RollbackReason::ToolError,
        ] {
            prompts.render("rollback_hint.md", context! { reason => reason.as_str(), detail => "" })?;
        }
        Ok(prompts)
    }

    fn render_system(&self, tools: &str) -> Result<String, PipelineError> {
        let PromptFacts { date, dialect, several_calls, style, role } = &self.facts;
        self.render("system.md", context! { date, dialect, several_calls, style, role, tools })
    }

    fn render(&self, name: &str, values: minijinja::Value) -> Result<String, PipelineError> {
        self.environment.get_template(name).and_then(|template| template.render(values)).map_err(|error| {
            PipelineError::Prompt { place: format!("prompts/{name}"), problem: describe(&error) }
        })
    }

    /// A template that was tried when it was loaded; what still fails depends on the values, and is said in place.
    fn render_tried(&self, name: &str, values: minijinja::Value) -> String {
        self.render(name, values).unwrap_or_else(|error| {
            tracing::error!(%error, "a prompt could not be rendered");
            String::new()
        })
    }
}

impl EndingPrompts for TemplatePrompts {
    fn final_answer(&self, question: &str) -> String {
        self.render_tried("final_answer.md", context! { question })
    }

    fn final_report(&self, question: &str) -> String {
        self.render_tried("final_report.md", context! { question })
    }

    fn sub_agent_report(&self, subtask: &str) -> String {
        self.render_tried("sub_agent_report.md", context! { subtask })
    }

    fn failure_summary(&self) -> String {
        self.failure_summary.clone()
    }

    fn failure_summary_prefix(&self) -> String {
        format!("{}\n\n", self.failure_summary_prefix.trim_end())
    }

    fn next_task(&self, question: &str, failures: &[String]) -> String {
        self.render_tried("next_task.md", context! { question, failures => failures.to_vec() })
    }
}

impl Prompts for TemplatePrompts {
    fn system(&self, tool_section: &str) -> String {
        self.render_system(tool_section).unwrap_or_else(|error| {
            tracing::error!(%error, "the system prompt could not be rendered");
            tool_section.to_owned()
        })
    }

    fn rollback_hint(&self, reason: RollbackReason, detail: &str) -> String {
        self.render_tried("rollback_hint.md", context! { reason => reason.as_str(), detail })
    }

    fn sub_agent_task(&self, subtask: &str) -> String {
        self.render_tried("sub_agent_task.md", context! { subtask })
    }

    fn findings(&self, findings: &[Finding]) -> String {
        self.render_tried("findings.md", context! { findings => listed(findings) })
    }

    fn compression(&self, words: u64) -> String {
        self.render_tried("compression.md", context! { words })
    }

    fn compressed(&self, summary: &str) -> String {
        self.render_tried("compressed.md", context! { summary })
    }

    fn compressed_go_on(&self) -> String {
        self.render_tried("compressed_go_on.md", context! {})
    }
}

/// Facts as a template sees them.
fn listed(findings: &[Finding]) -> Vec<minijinja::Value> {
    let one = |finding: &Finding| {
        let Finding { name, text, source, quote } = finding.clone();
        context! { name, text, source, quote }
    };
    findings.iter().map(one).collect()
}

/// The error with its line and its cause, without the source listing.
fn describe(error: &minijinja::Error) -> String {
    let mut text = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(inner) = cause {
        text.push_str(": ");
        text.push_str(&inner.to_string());
        cause = inner.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shipped(name: &str) -> Option<(String, String)> {
        let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../conf/prompts").join(name);
        std::fs::read_to_string(&path).ok().map(|text| (text, path.display().to_string()))
    }

    fn facts(dialect: &str, style: &str) -> PromptFacts {
        PromptFacts {
            date: "2026-11-21".into(),
            dialect: dialect.into(),
            several_calls: true,
            style: style.into(),
            role: "main".into(),
        }
    }

    #[test]
    fn shipped_templates_render_for_every_dialect() {
        for dialect in ["mcp_xml", "hermes", "qwen_xml", "auto", "native"] {
            for style in ["plain", "example"] {
                let prompts = TemplatePrompts::load(&shipped, facts(dialect, style)).unwrap();
                let tools = if dialect == "native" { "" } else { "## Server name: s" };
                let system = prompts.system(tools);
                assert!(system.contains("2026-11-21") && system.contains(tools), "{dialect}");
                assert!(!system.contains("{{") && !system.contains("{%"), "{dialect}");
                assert_eq!(system.contains("worked example"), style == "example" && dialect == "mcp_xml");
            }
        }
    }

    #[test]
    fn the_texts_hold_what_the_loop_relies_on() {
        let prompts = TemplatePrompts::load(&shipped, facts("mcp_xml", "plain")).unwrap();
        let last = prompts.final_answer("Who?\n{{ not a variable }}");
        assert!(last.contains("Who?\n{{ not a variable }}") && last.contains("\\boxed{"));
        assert!(prompts.failure_summary_prefix().starts_with("<think>"));
        assert!(prompts.failure_summary_prefix().ends_with("</think>\n\n"));
        let task = prompts.next_task("Who?", &["first".into(), "second".into()]);
        assert!(task.starts_with("Who?\n") && task.contains("## Attempt 2\n\nsecond"));
        assert!(prompts.rollback_hint(RollbackReason::Refusal, "x").contains('x'));
        let report = prompts.final_report("Who?");
        assert!(report.contains("Who?") && report.contains("[[") && !report.contains("\\boxed"));
        assert!(prompts.sub_agent_task("Find it.").starts_with("Find it.\n"));
        assert!(prompts.sub_agent_report("Find it.").contains("Find it."));
        assert!(prompts.compression(70).contains("70 words"));
        assert!(
            prompts.compressed("So far.").starts_with("[Summary")
                && prompts.compressed("So far.").contains("So far.")
        );
        assert!(prompts.compressed_go_on().contains("summary"));
    }

    #[test]
    fn facts_are_listed_with_source_and_quote() {
        let prompts = TemplatePrompts::load(&shipped, facts("mcp_xml", "plain")).unwrap();
        let finding = |name: &str, quote: &str| Finding {
            name: name.into(),
            text: "1571".into(),
            source: "https://a.org".into(),
            quote: quote.into(),
        };
        let listed = prompts.findings(&[finding("birth", ""), finding("place", "in Weil")]);
        assert_eq!(
            listed,
            "# Facts noted so far\n\n- birth: 1571 (source: https://a.org)\n- place: 1571 (source: https://a.org; quote: “in Weil”)"
        );
    }

    #[test]
    fn a_broken_template_is_named() {
        for (name, text, expected) in [
            ("system.md", "{{ tols }}", "undefined value"),
            ("system.md", "no tools here", "never shows"),
            ("final_answer.md", "{% if %}", "final_answer.md"),
            ("next_task.md", "{{ question | nofilter }}", "nofilter"),
        ] {
            let source = |asked: &str| {
                if asked == name { Some((text.to_owned(), format!("mine/{name}"))) } else { shipped(asked) }
            };
            let error = TemplatePrompts::load(&source, facts("mcp_xml", "plain")).map(|_| ()).unwrap_err();
            let text = error.to_string();
            assert!(text.contains(name) && text.contains(expected), "{text}");
        }
    }
}
