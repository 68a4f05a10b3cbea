//! Running a suite: the order of samples, the folder that everything is kept in, and the scheduler.

mod header;
mod order;
mod progress;
mod queue;
mod runner;
mod schedule;
mod store;

pub use header::{DatasetFacts, GitFacts, HEADER_SCHEMA, Header, Invocation, Mismatch};
pub use order::samples_in_order;
pub use progress::{Progress, Tally};
pub use queue::{InProcessQueue, WorkQueue};
pub use runner::{PipelineRunner, SampleRun, SampleRunner, run_folder};
pub use schedule::{Plan, Schedule};
pub use store::{Store, StoreError, is_at_work, read_run, running_samples, time_of};
