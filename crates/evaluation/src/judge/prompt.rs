//! The prompt of a judge: a template of `conf/prompts/judge/` with the question, the right answer and the given one.

use minijinja::{Environment, UndefinedBehavior, context};
use sha2::{Digest as _, Sha256};

/// A template that cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the prompt {file} of the judge cannot be used: {problem}")]
pub struct PromptError {
    /// The template.
    pub file: String,
    /// What is wrong with it.
    pub problem: String,
}

/// A judge's prompt.
#[derive(Debug)]
pub struct JudgePrompt {
    environment: Environment<'static>,
    file: String,
    sha256: String,
}

impl JudgePrompt {
    /// Takes a template, which may use `question`, `answer` (the right one) and `response` (the given one).
    ///
    /// # Errors
    ///
    /// A template that cannot be read, uses other names, or leaves one of the three out.
    pub fn new(file: &str, template: &str) -> Result<Self, PromptError> {
        let failed = |problem: String| PromptError { file: file.to_owned(), problem };
        let mut environment = Environment::new();
        environment.set_undefined_behavior(UndefinedBehavior::Strict);
        environment
            .add_template_owned("judge".to_owned(), template.to_owned())
            .map_err(|error| failed(error.to_string()))?;
        let sha256 = hex::encode(Sha256::digest(template.as_bytes()));
        let prompt = Self { environment, file: file.to_owned(), sha256 };
        let marks = ["\u{1}question\u{1}", "\u{1}answer\u{1}", "\u{1}response\u{1}"];
        let tried = prompt.render(marks[0], marks[1], marks[2])?;
        match marks.iter().find(|mark| !tried.contains(**mark)) {
            Some(mark) => Err(failed(format!("it does not use `{}`", mark.trim_matches('\u{1}')))),
            None => Ok(prompt),
        }
    }

    /// Hexadecimal SHA-256 of the template.
    #[must_use]
    pub fn sha256(&self) -> &str {
        &self.sha256
    }

    /// The prompt for one answer.
    ///
    /// # Errors
    ///
    /// A template that uses a name that there is not.
    pub fn render(&self, question: &str, answer: &str, response: &str) -> Result<String, PromptError> {
        self.environment
            .get_template("judge")
            .and_then(|template| template.render(context! { question, answer, response }))
            .map_err(|error| PromptError { file: self.file.clone(), problem: error.to_string() })
    }
}
