//! The order in which samples are run. Decides it from the tasks, the epochs and the seed alone, so that the same
//! command gives the same order on every machine.

use sha2::{Digest as _, Sha256};

use crate::sample::SampleId;

/// All samples: the first epoch of every task, then the second, and so on. With a seed, the tasks of each epoch are
/// shuffled; the order within an epoch is that of SHA-256 over seed, epoch and id, which no library update changes.
#[must_use]
pub fn samples_in_order(task_ids: &[String], epochs: u32, seed: Option<u64>) -> Vec<SampleId> {
    (1..=epochs)
        .flat_map(|epoch| {
            let mut ids: Vec<&String> = task_ids.iter().collect();
            if let Some(seed) = seed {
                ids.sort_by_cached_key(|id| {
                    Sha256::digest(format!("{seed}\n{epoch}\n{id}").as_bytes()).to_vec()
                });
            }
            ids.into_iter().map(move |id| SampleId { task_id: id.clone(), epoch }).collect::<Vec<_>>()
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(seed: Option<u64>) -> String {
        let ids: Vec<String> = ["a", "b", "c", "d"].map(str::to_owned).into();
        let samples = samples_in_order(&ids, 2, seed);
        samples
            .iter()
            .map(|sample| format!("{}{}", sample.task_id, sample.epoch))
            .collect::<Vec<_>>()
            .join(" ")
    }

    #[test]
    fn epoch_by_epoch_and_the_same_for_the_same_seed() {
        assert_eq!(shown(None), "a1 b1 c1 d1 a2 b2 c2 d2");
        let first = shown(Some(7));
        assert_eq!(first, shown(Some(7)));
        assert_ne!(first, shown(Some(8)));
        let epochs: Vec<char> = first.split(' ').filter_map(|sample| sample.chars().nth(1)).collect();
        assert_eq!(epochs, ['1', '1', '1', '1', '2', '2', '2', '2']);
    }
}
