//! Scratch directories: where they are, how files get in and out, how they go.
//!
//! Decides the place and its cleaning. Code in a sandbox owns its directory and may put anything there,
//! links to anywhere included, so every path below it is resolved by the kernel without leaving it.

use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};
use std::process::{Child, Command, Stdio};

use rustix::fs::{FileType, FlockOperation, Mode, OFlags, ResolveFlags};
use rustix::io::Errno;

use crate::sandbox::is_passable;

/// The directory of one server; it goes with it, however that ends.
#[derive(Debug)]
pub(super) struct ScratchRoot {
    path: PathBuf,
    /// Locked as long as the server lives, so that a later one clears up where even the cleaner was killed.
    lock: File,
    /// None where no shell could be started.
    cleaner: Option<Child>,
}

/// Waits for the end of its input, which comes when this process ends, kill -9 included, and removes the
/// directory then. Processes of a sandbox may be on their way out at that moment, so it is tried again.
const CLEANER: &str = "trap '' HUP INT TERM; read -r _; for _ in 1 2 3 4 5 6 7 8 9; do rm -rf -- \"$1\" && exit; sleep 0.3; done";

/// Starts the cleaner of a directory, in a group of its own so that Ctrl-C does not reach it.
fn cleaner(path: &Path) -> io::Result<Child> {
    use std::os::unix::process::CommandExt;
    Command::new("/bin/sh")
        .args(["-c", CLEANER, "scratch-cleaner"])
        .arg(path)
        .env_clear()
        .env("PATH", "/usr/local/bin:/usr/bin:/bin")
        .current_dir("/")
        .process_group(0)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
}

const LOCK: &str = ".lock";
const PREFIX: &str = "tool-python-";

impl ScratchRoot {
    /// Makes one below `root`; where users of sandboxes could not get there, below the directory for
    /// temporary files.
    pub(super) fn make(root: &Path, for_other_users: bool) -> io::Result<Self> {
        let place = |root: &Path| -> io::Result<PathBuf> {
            std::fs::create_dir_all(root)?;
            let root = root.canonicalize()?;
            if for_other_users && !is_passable(&root.join(LOCK)) {
                return Err(io::Error::new(
                    io::ErrorKind::PermissionDenied,
                    "other users cannot pass through",
                ));
            }
            Ok(root)
        };
        let root = match place(root) {
            Err(error) if for_other_users => {
                let elsewhere = std::env::temp_dir();
                tracing::info!(root = %root.display(), %error, instead = %elsewhere.display(), "sandboxes are kept elsewhere");
                place(&elsewhere)?
            }
            root => root?,
        };
        sweep(&root);
        for _ in 0..16 {
            let path = root.join(format!("{PREFIX}{:x}-{:08x}", std::process::id(), random()));
            match std::fs::create_dir(&path) {
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                made => made?,
            }
            if for_other_users {
                use std::os::unix::fs::PermissionsExt;
                std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o711))?;
            }
            let lock = File::create(path.join(LOCK))?;
            match rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive) {
                Ok(()) if path.join(LOCK).exists() => {}
                // A server that swept just then took it for one that nobody holds.
                Ok(()) | Err(Errno::WOULDBLOCK) => continue,
                // There are file systems without locks.
                Err(error) => {
                    remove(&path);
                    return Err(error.into());
                }
            }
            let cleaner = cleaner(&path);
            if let Err(error) = &cleaner {
                tracing::debug!(%error, "a scratch directory has no cleaner");
            }
            return Ok(Self { path, lock, cleaner: cleaner.ok() });
        }
        Err(io::Error::new(io::ErrorKind::AlreadyExists, "no free name for a directory"))
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for ScratchRoot {
    fn drop(&mut self) {
        if let Some(cleaner) = &mut self.cleaner {
            drop(cleaner.stdin.take());
            let _ = cleaner.wait();
        }
        if self.path.exists() {
            remove(&self.path);
        }
        let _ = rustix::fs::flock(&self.lock, FlockOperation::Unlock);
    }
}

/// Removes directories of servers that have gone.
fn sweep(root: &Path) {
    let Ok(entries) = std::fs::read_dir(root) else { return };
    let own = rustix::process::geteuid().as_raw();
    for entry in entries.flatten().filter(|entry| entry.file_name().to_string_lossy().starts_with(PREFIX)) {
        if !entry.metadata().is_ok_and(|entry| entry.is_dir() && entry.uid() == own) {
            continue;
        }
        let Ok(lock) = File::open(entry.path().join(LOCK)) else { continue };
        if rustix::fs::flock(&lock, FlockOperation::NonBlockingLockExclusive).is_ok() {
            remove(&entry.path());
        }
    }
}

/// Removes a tree that hostile code may have made. Left to `rm`, which follows no links and does not
/// recurse, however deep the tree is.
pub(super) fn remove(path: &Path) {
    let removed = Command::new("rm")
        .arg("-rf")
        .arg("--")
        .arg(path)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status();
    if !removed.is_ok_and(|status| status.success()) {
        tracing::warn!(path = %path.display(), "a scratch directory could not be removed");
    }
}

/// A number that no one guesses, from the kernel.
pub(super) fn random() -> u32 {
    let mut bytes = [0u8; 4];
    match rustix::rand::getrandom(&mut bytes, rustix::rand::GetRandomFlags::empty()) {
        Ok(4) => u32::from_ne_bytes(bytes),
        _ => std::time::SystemTime::now()
            .duration_since(std::time::UNIX_EPOCH)
            .map_or(0, |now| now.subsec_nanos()),
    }
}

/// A path of a model, relative to the scratch directory. Absolute ones mean the same place: models
/// write `/home/user/x`, where there is no such home.
pub(super) fn relative(path: &str, scratch: &Path) -> Result<PathBuf, String> {
    let given = Path::new(path.trim());
    let given = given.strip_prefix(scratch).unwrap_or(given);
    let given = ["/home/user", "/workspace", "/tmp", "~", "/"]
        .iter()
        .find_map(|prefix| given.strip_prefix(prefix).ok())
        .unwrap_or(given);
    let inside: PathBuf = given.components().filter(|part| *part != Component::CurDir).collect();
    if inside.as_os_str().is_empty() || inside.components().any(|part| !matches!(part, Component::Normal(_)))
    {
        return Err(format!(
            "`{path}` is not the path of a file in the sandbox; give one like `data/table.csv`"
        ));
    }
    Ok(inside)
}

fn open(scratch: &Path, path: &Path, flags: OFlags) -> io::Result<OwnedFd> {
    let directory =
        rustix::fs::open(scratch, OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty())?;
    // Not even a pipe that someone left there can make this wait.
    let flags = flags | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    let mode = if flags.contains(OFlags::CREATE) { Mode::from_raw_mode(0o644) } else { Mode::empty() };
    let confined = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    Ok(rustix::fs::openat2(directory, path, flags, mode, confined)?)
}

/// Writes a file of the sandbox, with the directories above it, owned by the sandbox's user.
pub(super) fn write(
    scratch: &Path,
    path: &Path,
    mut content: impl Read,
    owner: Option<(u32, u32)>,
) -> io::Result<u64> {
    let own = |file: &OwnedFd| match owner {
        Some((user, group)) => rustix::fs::fchown(
            file,
            Some(rustix::fs::Uid::from_raw(user)),
            Some(rustix::fs::Gid::from_raw(group)),
        ),
        None => Ok(()),
    };
    let mut above = PathBuf::new();
    for part in path.parent().into_iter().flat_map(Path::components) {
        let upper = if above.as_os_str().is_empty() { PathBuf::from(".") } else { above.clone() };
        above.push(part);
        let upper = open(scratch, &upper, OFlags::RDONLY | OFlags::DIRECTORY)?;
        match rustix::fs::mkdirat(&upper, part.as_os_str(), Mode::from_raw_mode(0o755)) {
            Ok(()) => own(&open(scratch, &above, OFlags::RDONLY | OFlags::DIRECTORY)?)?,
            Err(rustix::io::Errno::EXIST) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let file = open(scratch, path, OFlags::WRONLY | OFlags::CREATE)?;
    if FileType::from_raw_mode(rustix::fs::fstat(&file)?.st_mode) != FileType::RegularFile {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it exists and is not a file"));
    }
    rustix::fs::ftruncate(&file, 0)?;
    own(&file)?;
    io::copy(&mut content, &mut File::from(file))
}

/// Opens a file of the sandbox to be read.
pub(super) fn read(scratch: &Path, path: &Path) -> io::Result<(File, u64)> {
    let file = open(scratch, path, OFlags::RDONLY)?;
    let about = rustix::fs::fstat(&file)?;
    if FileType::from_raw_mode(about.st_mode) != FileType::RegularFile {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is not a file"));
    }
    Ok((File::from(file), u64::try_from(about.st_size).unwrap_or(0)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_models_stay_inside() {
        let check = |path: &str, expected: Option<&str>| {
            assert_eq!(relative(path, Path::new("/s/x")).ok(), expected.map(PathBuf::from), "{path}");
        };
        check("a.csv", Some("a.csv"));
        check(" ./d/a.csv ", Some("d/a.csv"));
        check("/home/user/a.csv", Some("a.csv"));
        check("/s/x/d/a.csv", Some("d/a.csv"));
        check("/data/a.csv", Some("data/a.csv"));
        check("~/a", Some("a"));
        for bad in ["", ".", "/", "..", "../a", "d/../../a", "/home/user/../../etc/passwd"] {
            check(bad, None);
        }
    }

    #[test]
    fn links_are_not_followed_out() {
        let outside = tempfile::tempdir().expect("a directory");
        std::fs::write(outside.path().join("secret"), "s").expect("a file");
        let scratch = tempfile::tempdir().expect("a directory");
        let link = |target: &Path, name: &str| {
            std::os::unix::fs::symlink(target, scratch.path().join(name)).expect("a link");
        };
        link(&outside.path().join("secret"), "file");
        link(outside.path(), "directory");
        link(Path::new("inner"), "within");
        std::fs::write(scratch.path().join("inner"), "mine").expect("a file");
        for path in ["file", "directory/secret"] {
            assert!(read(scratch.path(), Path::new(path)).is_err(), "{path}");
            assert!(write(scratch.path(), Path::new(path), &b"x"[..], None).is_err(), "{path}");
        }
        assert!(write(scratch.path(), Path::new("directory/new/file"), &b"x"[..], None).is_err());
        assert_eq!(std::fs::read_to_string(outside.path().join("secret")).expect("unchanged"), "s");
        assert!(!outside.path().join("new").exists());
        assert_eq!(read(scratch.path(), Path::new("within")).expect("inside").1, 4);
        assert_eq!(write(scratch.path(), Path::new("a/b/c"), &b"xyz"[..], None).expect("written"), 3);
    }

    #[test]
    fn a_pipe_is_refused_and_not_waited_for() {
        let scratch = tempfile::tempdir().expect("a directory");
        rustix::fs::mknodat(
            rustix::fs::CWD,
            scratch.path().join("pipe"),
            FileType::Fifo,
            Mode::from_raw_mode(0o600),
            0,
        )
        .expect("a pipe");
        assert!(read(scratch.path(), Path::new("pipe")).is_err());
        assert!(write(scratch.path(), Path::new("pipe"), &b"x"[..], None).is_err());
    }

    #[test]
    fn directories_of_dead_servers_are_swept() {
        let root = tempfile::tempdir().expect("a directory");
        let alive = ScratchRoot::make(root.path(), false).expect("made");
        let dead = root.path().join("tool-python-dead");
        std::fs::create_dir(&dead).expect("a directory");
        std::fs::write(dead.join(LOCK), "").expect("a lock");
        let second = ScratchRoot::make(root.path(), false).expect("made");
        assert!(alive.path().exists() && second.path().exists() && !dead.exists());
        let path = alive.path().to_owned();
        drop(alive);
        assert!(!path.exists());
    }
}
