//! The files that a sandbox may touch, as a landlock ruleset.
//!
//! Decides the list: the scratch directory to write, the system to read, nothing else; no TCP port; and
//! neither signals nor abstract sockets out of the sandbox where the kernel can keep them in.

use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

/// Landlock's version from which shortening a file counts as writing it.
pub(super) const CONFINES_TRUNCATION: i32 = 3;

/// Read and executed. Links among them are followed once, here.
const SYSTEM: &[&str] = &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store"];

/// Read. Of `/etc` only what libraries need to run: no accounts, no keys, no configuration of services.
/// Of `/proc` and `/sys` only what says how much there is of the machine.
const READ: &[&str] = &[
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/etc/ld.so.conf.d",
    "/etc/localtime",
    "/etc/timezone",
    "/etc/mime.types",
    "/etc/magic",
    "/etc/fonts",
    "/etc/ssl/openssl.cnf",
    "/etc/ssl/certs",
    "/etc/python3",
    "/etc/alternatives",
    "/proc/cpuinfo",
    "/proc/meminfo",
    "/proc/filesystems",
    "/sys/devices/system/cpu",
    "/dev/random",
    "/dev/urandom",
    "/dev/zero",
];

/// Read and written: devices that keep nothing.
const DEVICES: &[&str] = &["/dev/null", "/dev/full"];

/// What may be done with files of shared memory, as bits of landlock's version `version`: read and write
/// them, make and remove them, and, where that counts apart, change their length.
pub(super) fn shared_memory(version: i32) -> u64 {
    const WRITE_FILE: u64 = 1 << 1;
    const READ_FILE: u64 = 1 << 2;
    const READ_DIR: u64 = 1 << 3;
    const REMOVE_FILE: u64 = 1 << 5;
    const MAKE_REG: u64 = 1 << 8;
    const TRUNCATE: u64 = 1 << 14;
    let truncate = if version >= CONFINES_TRUNCATION { TRUNCATE } else { 0 };
    WRITE_FILE | READ_FILE | READ_DIR | REMOVE_FILE | MAKE_REG | truncate
}

#[cfg(target_os = "linux")]
pub(super) fn version() -> i32 {
    crate::spawn::landlock_version()
}

#[cfg(not(target_os = "linux"))]
pub(super) fn version() -> i32 {
    0
}

/// The ruleset for one sandbox, with the one port at which a proxy listens, where there is one. Paths that do not
/// exist are left out.
pub(super) fn ruleset(scratch: &Path, readable: &[PathBuf], port: Option<u16>) -> Result<OwnedFd, String> {
    build(scratch, readable, port)
        .map_err(|error| error.to_string())?
        .ok_or_else(|| "the kernel has no landlock".into())
}

fn build(
    scratch: &Path,
    readable: &[PathBuf],
    port: Option<u16>,
) -> Result<Option<OwnedFd>, landlock::RulesetError> {
    use landlock::{
        ABI, Access, AccessFs, AccessNet, BitFlags, CompatLevel, Compatible, NetPort, PathBeneath, PathFd,
        Ruleset, RulesetAttr, RulesetCreatedAttr, Scope,
    };
    // The newest that the library knows; what the kernel does not know yet is left out.
    const NEWEST: ABI = ABI::V9;
    let all = AccessFs::from_all(NEWEST);
    let look = AccessFs::ReadFile | AccessFs::ReadDir;
    let devices = AccessFs::MakeChar | AccessFs::MakeBlock | AccessFs::IoctlDev | AccessFs::MakeSock;
    let mut rules: Vec<(&Path, BitFlags<AccessFs>)> = vec![(scratch, all & !devices)];
    rules.extend(SYSTEM.iter().map(|path| (Path::new(*path), look | AccessFs::Execute)));
    rules.extend(readable.iter().map(|path| (path.as_path(), look | AccessFs::Execute)));
    rules.extend(READ.iter().map(|path| (Path::new(*path), look)));
    rules.extend(
        DEVICES.iter().map(|path| (Path::new(*path), look | AccessFs::WriteFile | AccessFs::Truncate)),
    );

    let mut ruleset = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)?
        .handle_access(AccessNet::from_all(NEWEST))?
        .scope(Scope::from_all(NEWEST))?
        .create()?;
    if let Some(port) = port {
        // Its listener is made by the child itself, before it is anybody's program.
        ruleset = ruleset.add_rule(NetPort::new(port, AccessNet::BindTcp | AccessNet::ConnectTcp))?;
    }
    for (path, access) in rules {
        let Ok(opened) = PathFd::new(path) else { continue };
        let access = if path.is_dir() { access } else { access & AccessFs::from_file(NEWEST) };
        ruleset = ruleset.add_rule(PathBeneath::new(opened, access))?;
    }
    Ok(ruleset.into())
}
