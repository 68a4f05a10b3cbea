//! The texts that end a pass, as the caller's templates give them.

/// What is said to the model when a pass ends. Implemented over templates by whoever owns them.
pub trait EndingPrompts: Send + Sync {
    /// Asks for the final answer to the question.
    fn final_answer(&self, question: &str) -> String;
    /// Asks for a report with citations on the question, where that is wanted instead of a short answer.
    fn final_report(&self, question: &str) -> String;
    /// Asks an agent that worked on a subtask for what it found.
    fn sub_agent_report(&self, subtask: &str) -> String;
    /// Asks what went wrong in this pass.
    fn failure_summary(&self) -> String;
    /// The beginning of the reply to [`EndingPrompts::failure_summary`]: a think block, opened and closed.
    fn failure_summary_prefix(&self) -> String;
    /// The task of the next pass: the question, and what each failed pass so far had to say.
    fn next_task(&self, question: &str, failures: &[String]) -> String;
}

/// The failure-summary prompt for providers that cannot go on from an assistant prefix: the prefix is folded
/// into the prompt as the form that the reply is to take.
#[must_use]
pub fn fold_prefix(prompt: &str, prefix: &str) -> String {
    format!("{prompt}\n\nBegin your reply with:\n{}", prefix.trim_end())
}
