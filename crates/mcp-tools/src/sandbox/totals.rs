//! Limits on a whole sandbox, by control groups of its own.
//!
//! Decides where groups can be made (version 2 in a part of the hierarchy that hands the controllers on,
//! version 1 below the process's own) and what each allows. Where none can be made, limits hold for each
//! process only, and the report says so.

use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use super::limits::SandboxLimits;

/// How the directories of groups begin; the id of the process that made one follows.
const PREFIX: &str = "fathom-sandbox-";

/// Where groups can be made, one place for each controller that is needed, or one for all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Hierarchy {
    places: Vec<Place>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Place {
    parent: PathBuf,
    /// Files of a group with what is written into them; the values are filled in for each group.
    files: &'static [(&'static str, Limit)],
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Limit {
    Memory,
    Processes,
    /// What else the group needs to hold its limit.
    Text(&'static str),
}

const VERSION_2: &[(&str, Limit)] =
    &[("memory.max", Limit::Memory), ("memory.swap.max", Limit::Text("0")), ("pids.max", Limit::Processes)];
const MEMORY_1: &[(&str, Limit)] = &[("memory.limit_in_bytes", Limit::Memory)];
const PROCESSES_1: &[(&str, Limit)] = &[("pids.max", Limit::Processes)];
/// Kernels without accounting of swap lack these.
const MAY_BE_MISSING: &[&str] = &["memory.swap.max"];

impl Hierarchy {
    /// Looks where this process may make groups, by making one.
    pub(super) fn find() -> Result<Self, String> {
        let own = std::fs::read_to_string("/proc/self/cgroup")
            .map_err(|error| format!("/proc/self/cgroup: {error}"))?;
        let mounts = std::fs::read_to_string("/proc/self/mounts").unwrap_or_default();
        let mut problem = "there are no control groups for memory".to_owned();
        for places in candidates(&own, &mounts) {
            let hierarchy = Self { places };
            match hierarchy.make(&SandboxLimits::default()) {
                Ok(group) => {
                    drop(group);
                    return Ok(hierarchy);
                }
                Err(error) => problem = format!("no control group can be made: {error}"),
            }
        }
        Err(problem)
    }

    /// A new group with these limits. Those of processes that are gone are removed on the way.
    pub(super) fn make(&self, limits: &SandboxLimits) -> io::Result<Totals> {
        let name = format!("{PREFIX}{}-{:08x}", std::process::id(), rand_name());
        let mut totals = Totals { directories: Vec::new(), seen: AtomicU64::new(0) };
        for place in &self.places {
            sweep(&place.parent);
            let directory = place.parent.join(&name);
            std::fs::create_dir(&directory)?;
            totals.directories.push(directory.clone());
            for (file, limit) in place.files {
                let value = match limit {
                    Limit::Memory => limits.total_memory.to_string(),
                    Limit::Processes => limits.processes.to_string(),
                    Limit::Text(text) => (*text).to_owned(),
                };
                match std::fs::write(directory.join(file), value) {
                    Err(_) if MAY_BE_MISSING.contains(file) => {}
                    written => written?,
                }
            }
        }
        Ok(totals)
    }
}

/// The groups of one sandbox. Dropping them removes them, once their processes have ended.
#[derive(Debug)]
pub(crate) struct Totals {
    directories: Vec<PathBuf>,
    /// How often the kernel had ended a process for the memory of all when somebody looked last.
    seen: AtomicU64,
}

impl Totals {
    /// What a child writes to in order to join.
    pub(super) fn doors(&self) -> io::Result<Vec<OwnedFd>> {
        let open = |directory: &PathBuf| {
            File::options().write(true).open(directory.join("cgroup.procs")).map(OwnedFd::from)
        };
        self.directories.iter().map(open).collect()
    }

    /// Whether the kernel has ended processes since this was asked last, because all of the sandbox together
    /// used up its memory.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        let ended = |file: PathBuf| -> u64 {
            let text = std::fs::read_to_string(file).unwrap_or_default();
            let count = text.lines().find_map(|line| line.strip_prefix("oom_kill "));
            count.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
        };
        let of_group = |directory: &PathBuf| {
            ["memory.events", "memory.oom_control"]
                .map(|file| ended(directory.join(file)))
                .into_iter()
                .sum::<u64>()
        };
        let now = self.directories.iter().map(of_group).sum();
        self.seen.swap(now, Ordering::Relaxed) < now
    }
}

impl Drop for Totals {
    fn drop(&mut self) {
        for directory in &self.directories {
            if let Err(error) = std::fs::remove_dir(directory) {
                tracing::debug!(group = %directory.display(), %error, "a control group stays for the next sweep");
            }
        }
    }
}

/// Removes groups of processes that have gone. One that is in use cannot be removed.
fn sweep(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let maker =
            name.to_str().and_then(|name| name.strip_prefix(PREFIX)?.split('-').next()?.parse::<u32>().ok());
        if maker.is_some_and(|maker| !Path::new(&format!("/proc/{maker}")).exists()) {
            let _ = std::fs::remove_dir(entry.path());
        }
    }
}

/// Where groups might be made, best first, from `/proc/self/cgroup` and `/proc/self/mounts`.
fn candidates(own: &str, mounts: &str) -> Vec<Vec<Place>> {
    let lines: Vec<(&str, &str)> =
        own.lines().filter_map(|line| line.split_once(':')?.1.split_once(':')).collect();
    let mounted: Vec<(&str, &str, &str)> = mounts
        .lines()
        .filter_map(|line| {
            let mut fields = line.split(' ').skip(1);
            Some((fields.next()?, fields.next()?, fields.next()?))
        })
        .collect();
    let mut found = Vec::new();
    // Version 2: the nearest group above that hands memory and pids on to its children.
    if let (Some((_, path)), Some((mount, _, _))) = (
        lines.iter().find(|(controllers, _)| controllers.is_empty()),
        mounted.iter().find(|(_, kind, _)| *kind == "cgroup2"),
    ) {
        let own = Path::new(mount).join(path.trim_start_matches('/'));
        let above = own.ancestors().take_while(|directory| directory.starts_with(mount));
        let hands_on = |directory: &&Path| {
            let handed =
                std::fs::read_to_string(directory.join("cgroup.subtree_control")).unwrap_or_default();
            let handed: Vec<&str> = handed.split_ascii_whitespace().collect();
            handed.contains(&"memory") && handed.contains(&"pids")
        };
        found.extend(
            above.filter(hands_on).map(|parent| vec![Place { parent: parent.to_owned(), files: VERSION_2 }]),
        );
    }
    // Version 1: a hierarchy for each controller.
    let below = |controller: &str, files| {
        let (_, path) =
            lines.iter().find(|(controllers, _)| controllers.split(',').any(|one| one == controller))?;
        let (mount, _, _) = mounted.iter().find(|(_, kind, options)| {
            *kind == "cgroup" && options.split(',').any(|option| option == controller)
        })?;
        Some(Place { parent: Path::new(mount).join(path.trim_start_matches('/')), files })
    };
    if let (Some(memory), Some(processes)) = (below("memory", MEMORY_1), below("pids", PROCESSES_1)) {
        found.push(vec![memory, processes]);
    }
    found
}

/// A number that tells groups of one process apart.
fn rand_name() -> u32 {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_versions_are_found() {
        let own = "9:name=systemd:/\n8:pids:/\n4:memory:/a/b\n0::/user\n";
        let mounts = "tmpfs /sys/fs/cgroup tmpfs rw 0 0\ncgroup /sys/fs/cgroup/memory cgroup rw,relatime,memory 0 0\ncgroup /sys/fs/cgroup/pids cgroup rw,pids 0 0\n";
        let found = candidates(own, mounts);
        let place = |parent: &str, files| Place { parent: parent.into(), files };
        assert_eq!(
            found,
            [vec![place("/sys/fs/cgroup/memory/a/b", MEMORY_1), place("/sys/fs/cgroup/pids/", PROCESSES_1)]]
        );
        assert_eq!(candidates("", ""), Vec::<Vec<Place>>::new());
        assert_eq!(candidates("4:memory:/a\n", mounts), Vec::<Vec<Place>>::new());
    }

    #[test]
    fn version_2_is_where_controllers_are_handed_on() {
        let root = tempfile::tempdir().unwrap();
        let mount = root.path().display().to_string();
        std::fs::create_dir_all(root.path().join("slice/scope")).unwrap();
        for (group, handed) in [("", "cpu memory pids"), ("slice", "memory pids"), ("slice/scope", "")] {
            std::fs::write(root.path().join(group).join("cgroup.subtree_control"), handed).unwrap();
        }
        let mounts = format!("cgroup2 {mount} cgroup2 rw 0 0\n");
        let parents: Vec<PathBuf> = candidates("0::/slice/scope\n", &mounts)
            .into_iter()
            .map(|places| places[0].parent.clone())
            .collect();
        assert_eq!(parents, [root.path().join("slice"), root.path().to_owned()]);
    }
}
