//! Where samples wait. Decides which comes next; a queue that many machines share can take this one's place.

use std::collections::{BTreeMap, VecDeque};

use async_trait::async_trait;
use tokio::sync::{Mutex, Notify};

use crate::sample::SampleId;

/// A queue of samples.
#[async_trait]
pub trait WorkQueue: Send + Sync {
    /// The next sample, as soon as there is one; none when all are done or under way and no more can come.
    async fn take(&self) -> Option<SampleId>;

    /// A sample that was taken has ended. `settles` says that the task needs no further epochs.
    async fn done(&self, sample: &SampleId, settles: bool);
}

/// The queue of one process. Where tasks end with their first right epoch, an epoch waits for the one before it.
#[derive(Debug)]
pub struct InProcessQueue {
    state: Mutex<State>,
    changed: Notify,
    one_epoch_at_a_time: bool,
}

#[derive(Debug)]
struct State {
    waiting: VecDeque<SampleId>,
    /// Epochs under way, by task.
    running: BTreeMap<String, u32>,
}

impl InProcessQueue {
    /// A queue of samples in their order. With `one_epoch_at_a_time` no two epochs of a task are under way at once,
    /// and none follow once a task is settled.
    #[must_use]
    pub fn new(samples: impl IntoIterator<Item = SampleId>, one_epoch_at_a_time: bool) -> Self {
        Self {
            state: Mutex::new(State { waiting: samples.into_iter().collect(), running: BTreeMap::new() }),
            changed: Notify::new(),
            one_epoch_at_a_time,
        }
    }
}

#[async_trait]
impl WorkQueue for InProcessQueue {
    async fn take(&self) -> Option<SampleId> {
        loop {
            let changed = self.changed.notified();
            {
                let mut state = self.state.lock().await;
                let free = state.waiting.iter().position(|sample| {
                    !self.one_epoch_at_a_time || !state.running.contains_key(&sample.task_id)
                });
                if let Some(sample) = free.and_then(|index| state.waiting.remove(index)) {
                    *state.running.entry(sample.task_id.clone()).or_insert(0) += 1;
                    return Some(sample);
                }
                if state.waiting.is_empty() {
                    return None;
                }
            }
            changed.await;
        }
    }

    async fn done(&self, sample: &SampleId, settles: bool) {
        let mut state = self.state.lock().await;
        if let Some(under_way) = state.running.get_mut(&sample.task_id) {
            *under_way -= 1;
            if *under_way == 0 {
                state.running.remove(&sample.task_id);
            }
        }
        if settles {
            state.waiting.retain(|waiting| waiting.task_id != sample.task_id);
        }
        drop(state);
        self.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(task: &str, epoch: u32) -> SampleId {
        SampleId { task_id: task.to_owned(), epoch }
    }

    #[tokio::test]
    async fn in_order() {
        let queue = InProcessQueue::new([sample("a", 1), sample("b", 1), sample("a", 2)], false);
        assert_eq!(queue.take().await, Some(sample("a", 1)));
        assert_eq!(queue.take().await, Some(sample("b", 1)));
        assert_eq!(queue.take().await, Some(sample("a", 2)));
        assert_eq!(queue.take().await, None);
    }

    #[tokio::test]
    async fn an_epoch_waits_for_the_one_before_it_and_a_settled_task_has_no_more() {
        let queue =
            InProcessQueue::new([sample("a", 1), sample("a", 2), sample("b", 1), sample("b", 2)], true);
        assert_eq!(queue.take().await, Some(sample("a", 1)));
        assert_eq!(queue.take().await, Some(sample("b", 1)));
        let (next, ()) = tokio::join!(queue.take(), async {
            tokio::task::yield_now().await;
            queue.done(&sample("a", 1), true).await;
            tokio::task::yield_now().await;
            queue.done(&sample("b", 1), false).await;
        });
        assert_eq!(next, Some(sample("b", 2)));
        assert_eq!(queue.take().await, None);
    }
}
