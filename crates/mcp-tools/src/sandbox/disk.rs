//! How much space the files of a sandbox take.
//!
//! Decides what counts: every file once, by the blocks that it takes and not by its length; each name for four
//! kilobytes at least, so that their number counts too; files without a name that a process still holds. The tree is
//! hostile: it is walked by descriptors, no link is followed, and folders in folders have an end. Who watches it, and
//! what becomes of a sandbox that takes too much, is left to the servers.

use std::collections::HashSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, Dir, FileType, Mode, OFlags, Stat};

/// What a name takes at least.
const LEAST: u64 = 4096;
/// Folders inside one another.
const DEEPEST: usize = 100;
/// Processes of one sandbox that are looked at.
const MOST_PROCESSES: usize = 4096;

/// What was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Space {
    /// So many bytes; no less than this where counting ended early because it was too much already.
    Used(u64),
    /// Folders that cannot be looked into: too deep, or closed.
    Hidden,
}

/// Looks at a scratch directory and at the files that the process `root` and all that it has started hold open.
/// Counting ends where it passes `most`.
pub(crate) fn measure(scratch: &Path, root: Option<u32>, most: u64) -> io::Result<Space> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(scratch, flags, Mode::empty())?;
    let device = rustix::fs::fstat(&folder)?.st_dev;
    let mut count = Count { used: 0, most, seen: HashSet::new(), hidden: false };
    count.folder(folder.as_fd(), 0)?;
    for process in root.map(tree).unwrap_or_default() {
        if count.is_over() {
            break;
        }
        count.held(process, device);
    }
    Ok(if count.hidden { Space::Hidden } else { Space::Used(count.used) })
}

struct Count {
    used: u64,
    most: u64,
    /// Files with several names or none, by their numbers.
    seen: HashSet<u64>,
    hidden: bool,
}

impl Count {
    fn is_over(&self) -> bool {
        self.hidden || self.used > self.most
    }

    fn add(&mut self, blocks: u64) {
        self.used = self.used.saturating_add(blocks.saturating_mul(512).max(LEAST));
    }

    fn folder(&mut self, folder: BorrowedFd<'_>, depth: usize) -> io::Result<()> {
        for entry in Dir::read_from(folder)? {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            // What has gone meanwhile takes nothing.
            let Ok(about) = rustix::fs::statat(folder, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            let is_folder = FileType::from_raw_mode(about.st_mode) == FileType::Directory;
            if is_folder || about.st_nlink < 2 || self.seen.insert(about.st_ino) {
                self.add(blocks(&about));
            }
            if self.is_over() {
                return Ok(());
            }
            if is_folder {
                match open(folder, name) {
                    Ok(inner) if depth < DEEPEST => self.folder(inner.as_fd(), depth + 1)?,
                    Err(rustix::io::Errno::NOENT | rustix::io::Errno::NOTDIR | rustix::io::Errno::LOOP) => {}
                    _ => self.hidden = true,
                }
            }
        }
        Ok(())
    }

    /// Files without a name that a process has open, or in its memory.
    fn held(&mut self, process: u32, device: u64) {
        let Ok(descriptors) = std::fs::read_dir(format!("/proc/{process}/fd")) else { return };
        for descriptor in descriptors.flatten() {
            let Ok(about) = std::fs::metadata(descriptor.path()) else { continue };
            let is_nameless = about.is_file() && about.nlink() == 0 && about.dev() == device;
            if is_nameless && self.seen.insert(about.ino()) {
                self.add(about.blocks());
            }
        }
        let maps = std::fs::read_to_string(format!("/proc/{process}/maps")).unwrap_or_default();
        for line in maps.lines().filter(|line| line.ends_with(" (deleted)")) {
            if let Some((inode, length)) = mapped(line, device)
                && self.seen.insert(inode)
            {
                self.add(length / 512);
            }
        }
    }
}

fn blocks(about: &Stat) -> u64 {
    u64::try_from(about.st_blocks).unwrap_or(0)
}

/// A folder, made readable where its owner has closed it: code in a sandbox of this user may do that.
fn open(folder: BorrowedFd<'_>, name: &std::ffi::CStr) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    match rustix::fs::openat(folder, name, flags, Mode::empty()) {
        Err(rustix::io::Errno::ACCESS) => {
            let held = rustix::fs::openat(folder, name, OFlags::PATH | OFlags::NOFOLLOW, Mode::empty())?;
            let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&held));
            rustix::fs::chmod(path, Mode::RWXU)?;
            rustix::fs::openat(folder, name, flags, Mode::empty())
        }
        opened => opened,
    }
}

/// The number and length of a file in a line of `/proc/PID/maps`, where it is on that device.
fn mapped(line: &str, device: u64) -> Option<(u64, u64)> {
    let mut fields = line.split_ascii_whitespace();
    let (from, to) = fields.next()?.split_once('-')?;
    let (major, minor) = fields.nth(2)?.split_once(':')?;
    let number = |digits: &str| u64::from_str_radix(digits, 16).ok();
    let is_there = number(major)? == u64::from(rustix::fs::major(device))
        && number(minor)? == u64::from(rustix::fs::minor(device));
    let inode = fields.next()?.parse().ok()?;
    is_there.then_some((inode, number(to)?.saturating_sub(number(from)?)))
}

/// A process and all that it has started, as far as the kernel tells.
fn tree(root: u32) -> Vec<u32> {
    let mut found = vec![root];
    let mut next = 0;
    while let Some(process) = found.get(next).copied().filter(|_| found.len() < MOST_PROCESSES) {
        next += 1;
        let Ok(threads) = std::fs::read_dir(format!("/proc/{process}/task")) else { continue };
        for thread in threads.flatten() {
            let children = std::fs::read_to_string(thread.path().join("children")).unwrap_or_default();
            found.extend(children.split_ascii_whitespace().filter_map(|child| child.parse::<u32>().ok()));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn used(folder: &Path) -> u64 {
        match measure(folder, Some(std::process::id()), u64::MAX).expect("measured") {
            Space::Used(bytes) => bytes,
            Space::Hidden => panic!("hidden"),
        }
    }

    #[test]
    fn what_counts() {
        let folder = tempfile::tempdir().expect("a directory");
        let at = |name: &str| folder.path().join(name);
        assert_eq!(used(folder.path()), 0);
        std::fs::write(at("file"), vec![7; 1 << 20]).expect("a file");
        let megabyte = used(folder.path());
        assert!((1 << 20..(1 << 20) + (64 << 10)).contains(&megabyte), "{megabyte}");
        // Another name of it, a link, and a file that is long and empty.
        std::fs::hard_link(at("file"), at("again")).expect("a name");
        std::os::unix::fs::symlink("/usr", at("link")).expect("a link");
        std::fs::File::create(at("sparse")).expect("a file").set_len(1 << 40).expect("its length");
        assert!((megabyte..megabyte + (64 << 10)).contains(&used(folder.path())));
        // Names count.
        std::fs::create_dir(at("many")).expect("a folder");
        for number in 0..500 {
            std::fs::write(at(&format!("many/{number}")), "").expect("a file");
        }
        assert!(used(folder.path()) >= megabyte + 500 * LEAST);
        // It ends early.
        let most = Space::Used(LEAST);
        let early = measure(&at("many"), None, LEAST - 1).expect("measured");
        assert_eq!(early, most);
    }

    #[test]
    fn a_file_without_a_name_counts_while_it_is_held() {
        let folder = tempfile::tempdir().expect("a directory");
        let path = folder.path().join("gone");
        std::fs::write(&path, vec![7; 1 << 20]).expect("a file");
        let held = std::fs::File::open(&path).expect("opened");
        std::fs::remove_file(&path).expect("removed");
        assert!(used(folder.path()) >= 1 << 20);
        drop(held);
        assert_eq!(used(folder.path()), 0);
        let line = "7f0000000000-7f0000100000 rw-s 00000000 fe:01 77 /tmp/x (deleted)";
        assert_eq!(mapped(line, rustix::fs::makedev(0xfe, 1)), Some((77, 1 << 20)));
        assert_eq!(mapped(line, rustix::fs::makedev(0xfe, 2)), None);
    }

    #[test]
    fn folders_have_a_floor() {
        let folder = tempfile::tempdir().expect("a directory");
        let deep = |levels: usize| folder.path().join("d/".repeat(levels));
        std::fs::create_dir_all(deep(DEEPEST)).expect("folders");
        std::fs::write(deep(DEEPEST).join("file"), vec![7; 1 << 20]).expect("a file");
        assert!(used(folder.path()) >= 1 << 20);
        std::fs::create_dir_all(deep(DEEPEST + 1)).expect("folders");
        assert_eq!(measure(folder.path(), None, u64::MAX).expect("measured"), Space::Hidden);
    }
}
