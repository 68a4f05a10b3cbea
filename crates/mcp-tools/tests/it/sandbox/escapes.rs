//! Ways out: files, other processes, the network, the kernel.

use std::net::TcpListener;
use std::os::unix::net::UnixListener;

use super::{attempt, cell};

/// What a layer answers: it forbids, or there is nothing to be seen.
const REFUSED: [&str; 4] = ["PermissionError", "OSError", "FileNotFoundError", "ProcessLookupError"];

/// Tries each and expects each to be refused.
async fn all_refused(attempts: &[&str]) {
    let Some(client) = cell().await else { return };
    for code in attempts {
        let end = attempt(&client, code).await;
        assert!(REFUSED.contains(&end.as_str()), "{code}\n→ {end}");
    }
}

#[tokio::test]
async fn private_files_cannot_be_read() {
    let home = std::env::home_dir().expect("a home").display().to_string();
    let own = tempfile::tempdir().expect("a directory");
    std::fs::write(own.path().join("secret"), "secret").expect("a file");
    use std::os::unix::fs::PermissionsExt;
    // Open to every user, so that nothing but the sandbox stands in the way.
    std::fs::set_permissions(own.path(), std::fs::Permissions::from_mode(0o755)).expect("its mode");
    all_refused(&[
        &format!("os.listdir({home:?})"),
        &format!("open({:?}).read()", own.path().join("secret").display().to_string()),
        &format!("os.listdir({:?})", own.path().display().to_string()),
        &format!("open({:?}).read()", format!("{}/Cargo.toml", env!("CARGO_MANIFEST_DIR"))),
        "os.listdir('/tmp')",
        "os.listdir('/')",
        "os.listdir('/home')",
        "open('/etc/passwd').read()",
        "open('/etc/shadow').read()",
        "os.listdir('/etc')",
        "os.listdir('/var/log')",
        "open('../../' + os.listdir('..')[0]).read()",
    ])
    .await;
}

#[tokio::test]
async fn nothing_outside_can_be_written() {
    let target = tempfile::tempdir().expect("a directory");
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(target.path(), std::fs::Permissions::from_mode(0o777)).expect("its mode");
    std::fs::write(target.path().join("there"), "untouched").expect("a file");
    std::fs::set_permissions(target.path().join("there"), std::fs::Permissions::from_mode(0o666))
        .expect("its mode");
    let at = target.path().display();
    all_refused(&[
        &format!("open('{at}/new', 'w')"),
        &format!("open('{at}/there', 'w')"),
        &format!("os.truncate('{at}/there', 0)"),
        &format!("os.mkdir('{at}/new')"),
        &format!("os.symlink('x', '{at}/new')"),
        &format!("os.remove('{at}/there')"),
        &format!("os.rename('{at}/there', '{at}/new')"),
        &format!("os.link('{at}/there', 'stolen')"),
        &format!("open('mine', 'w').close(); os.rename('mine', '{at}/new')"),
        &format!("os.mkfifo('{at}/new')"),
        "open('/usr/bin/new', 'w')",
        "open('/var/tmp/new', 'w')",
        "os.mknod('device', 0o60600, os.makedev(8, 0))",
    ])
    .await;
    // Shared memory is its own, where it has any.
    if let Some(client) = cell().await {
        attempt(&client, "open('/dev/shm/fathom-escape', 'w').write('x')").await;
        assert!(!std::path::Path::new("/dev/shm/fathom-escape").exists());
    }
    assert_eq!(std::fs::read_to_string(target.path().join("there")).expect("the file"), "untouched");
    assert_eq!(std::fs::read_dir(target.path()).expect("the directory").count(), 1);
}

#[tokio::test]
async fn modes_and_times_of_files_outside_stay() {
    let Some(client) = cell().await else { return };
    let target = tempfile::NamedTempFile::new().expect("a file");
    let before = std::fs::metadata(target.path()).expect("metadata");
    let path = target.path().display();
    for code in [
        format!("os.chmod('{path}', 0o777)"),
        format!("os.utime('{path}', (1, 1))"),
        format!("os.chown('{path}', 1, 1)"),
    ] {
        attempt(&client, &code).await;
    }
    let after = std::fs::metadata(target.path()).expect("metadata");
    assert_eq!(after.permissions(), before.permissions());
    assert_eq!(after.modified().expect("a time"), before.modified().expect("a time"));
}

#[tokio::test]
async fn links_do_not_lead_out() {
    all_refused(&[
        "os.symlink('/etc/passwd', 'a'); open('a').read()",
        "os.symlink('/', 'root'); os.listdir('root/etc')",
        "os.symlink('/tmp', 't'); open('t/new', 'w')",
        "os.symlink('..', 'up'); os.listdir('up')",
        "os.chdir('/'); os.listdir('.')",
        "fd = os.open('/', os.O_PATH); os.listdir(fd)",
        "fd = os.open('/etc', os.O_PATH); os.open('passwd', os.O_RDONLY, dir_fd=fd)",
    ])
    .await;
}

#[tokio::test]
async fn the_environment_is_an_allow_list() {
    let Some(client) = cell().await else { return };
    let names = client.run("import os; sorted(os.environ)").await.text;
    let allowed = [
        "HOME",
        "LANG",
        "LC_CTYPE",
        "LOGNAME",
        "MPLBACKEND",
        "MPLCONFIGDIR",
        "OMP_NUM_THREADS",
        "OPENBLAS_NUM_THREADS",
        "PATH",
        "PYTHONDONTWRITEBYTECODE",
        "PYTHONIOENCODING",
        "TMPDIR",
        "USER",
    ];
    for name in names.trim_matches(['[', ']']).split(", ") {
        assert!(allowed.contains(&name.trim_matches('\'')), "{names}");
    }
    let shell = client
        .call("run_command", serde_json::json!({ "command": "env | cut -d= -f1 | sort | tr '\\n' ' '" }))
        .await
        .text;
    for name in shell.split_whitespace() {
        assert!(allowed.contains(&name) || ["_", "PWD", "SHLVL", "OLDPWD"].contains(&name), "{shell}");
    }
}

#[tokio::test]
async fn other_processes_cannot_be_looked_into() {
    let own = std::process::id();
    all_refused(&[
        &format!("open('/proc/{own}/environ').read()"),
        &format!("open('/proc/{own}/cmdline').read()"),
        &format!("open('/proc/{own}/maps').read()"),
        &format!("open('/proc/{own}/mem', 'rb').read(1)"),
        &format!("os.readlink('/proc/{own}/exe')"),
        &format!("os.listdir('/proc/{own}/fd')"),
        &format!("os.listdir('/proc/{own}/root/')"),
        &format!("os.listdir('/proc/{own}/cwd/')"),
        "open('/proc/1/environ').read()",
        "open(f'/proc/{os.getppid()}/environ').read()",
        "open(f'/proc/{os.getppid()}/status').read()",
        "os.listdir('/proc')",
        "open('/proc/self/environ').read()",
        "open('/proc/self/root/etc/passwd').read()",
        "os.listdir('/proc/self/cwd/..')",
        "os.listdir('/proc/self/fd')",
        "open('/proc/self/mem', 'r+b').read(1)",
        "open('/proc/self/oom_score_adj', 'w').write('-1000')",
        "open('/proc/thread-self/status').read()",
        "open('/sys/fs/cgroup/memory/memory.limit_in_bytes').read()",
        "os.listdir('/sys/fs/cgroup')",
        "open('/proc/net/tcp').read()",
        "open('/proc/sys/kernel/core_pattern', 'w')",
        "open('/proc/sysrq-trigger', 'w')",
    ])
    .await;
}

#[tokio::test]
async fn other_processes_cannot_be_signalled() {
    let mut outside = std::process::Command::new("sleep").arg("60").spawn().expect("a process");
    let own = std::process::id();
    all_refused(&[
        &format!("os.kill({}, 9)", outside.id()),
        &format!("os.kill({}, 0)", outside.id()),
        &format!("os.kill({own}, 9)"),
        "os.kill(os.getppid(), 9)",
        "os.kill(1, 9)",
        &format!("os.sched_setaffinity({own}, [0])"),
        &format!("os.setpriority(os.PRIO_PROCESS, {own}, 19)"),
        &format!("import resource; resource.prlimit({own}, resource.RLIMIT_NOFILE, (1, 1))"),
        "os.setpriority(os.PRIO_USER, os.getuid(), 19)",
        "import fcntl; fcntl.fcntl(0, fcntl.F_SETOWN, 1)",
    ])
    .await;
    // To everything that it may reach: itself, and nothing else.
    if let Some(client) = cell().await {
        client.run("import os, signal; os.kill(-1, signal.SIGKILL)").await;
        client.run("import os, signal; os.killpg(0, signal.SIGKILL)").await;
        assert!(client.run("2").await.text.ends_with('2'));
    }
    assert!(outside.try_wait().expect("its state").is_none());
    outside.kill().expect("the end");
    outside.wait().expect("the end");
}

#[tokio::test]
async fn there_is_no_network() {
    let tcp = TcpListener::bind("127.0.0.1:0").expect("a port");
    tcp.set_nonblocking(true).expect("its mode");
    let port = tcp.local_addr().expect("an address").port();
    let directory = tempfile::tempdir().expect("a directory");
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o777)).expect("its mode");
    let path = directory.path().join("socket");
    let unix = UnixListener::bind(&path).expect("a socket");
    unix.set_nonblocking(true).expect("its mode");
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o777)).expect("its mode");
    all_refused(&[
        &format!("import socket; socket.create_connection(('127.0.0.1', {port}), 2)"),
        "import socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM)",
        "import socket; socket.socket(socket.AF_INET6, socket.SOCK_STREAM)",
        "import socket; socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
        "import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
        "import socket; socket.socket(40, socket.SOCK_STREAM)",
        &format!("import socket; socket.socket(socket.AF_UNIX).connect('{}')", path.display()),
        "import socket; socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)",
        "import asyncio; asyncio.run(asyncio.open_connection('127.0.0.1', 80))",
    ])
    .await;
    assert_eq!(tcp.accept().map(drop).map_err(|error| error.kind()), Err(std::io::ErrorKind::WouldBlock));
    assert_eq!(unix.accept().map(drop).map_err(|error| error.kind()), Err(std::io::ErrorKind::WouldBlock));
}

/// System calls by number, because Python has no names for them.
#[cfg(target_arch = "x86_64")]
#[tokio::test]
async fn the_kernel_s_other_doors_are_shut() {
    let Some(client) = cell().await else { return };
    client
        .run("import ctypes, os\nlibc = ctypes.CDLL(None, use_errno=True)\ndef call(*args):\n    ctypes.set_errno(0)\n    r = libc.syscall(*[ctypes.c_long(a) for a in args])\n    return r, ctypes.get_errno()")
        .await;
    let doors = [
        ("ptrace", "101, 16, 1"),
        ("ptrace of its parent", "101, 16, os.getppid(), 0, 0"),
        ("process_vm_readv", "310, os.getppid(), 0, 0, 0, 0, 0"),
        ("mount", "165, 0, 0, 0, 0, 0"),
        ("umount2", "166, 0, 0"),
        ("pivot_root", "155, 0, 0"),
        ("chroot", "161, 0"),
        ("unshare user", "272, 0x10000000"),
        ("setns", "308, 0, 0"),
        ("clone with a user namespace", "56, 0x10000011, 0, 0, 0, 0"),
        ("clone with a network namespace", "56, 0x40000011, 0, 0, 0, 0"),
        ("bpf", "321, 0, 0, 0"),
        ("perf_event_open", "298, 0, 0, -1, -1, 0"),
        ("keyctl", "250, 0, -3, 0"),
        ("add_key", "248, 0, 0, 0, 0, 0"),
        ("io_uring_setup", "425, 8, 0"),
        ("userfaultfd", "323, 0"),
        ("open_by_handle_at", "304, 0, 0, 0"),
        ("name_to_handle_at", "303, -100, 0, 0, 0, 0"),
        ("init_module", "175, 0, 0, 0"),
        ("kexec_load", "246, 0, 0, 0, 0"),
        ("reboot", "169, 0, 0, 0, 0"),
        ("syslog", "103, 3, 0, 0"),
        ("shmget", "29, 1, 4096, 0o1777"),
        ("msgget", "68, 1, 0o1777"),
        ("mq_open", "240, 0, 0, 0, 0"),
        ("inotify_add_watch", "254, 0, 0, 0"),
        ("fanotify_init", "300, 0, 0"),
        ("setuid", "105, 0"),
        ("setgroups", "116, 0, 0"),
        ("capset", "126, 0, 0"),
        ("seccomp", "317, 1, 0, 0"),
        ("clear the death signal", "157, 1, 0, 0, 0, 0"),
        ("become a subreaper", "157, 36, 1, 0, 0, 0"),
        ("personality", "135, 0x0040000"),
        ("pidfd_getfd", "438, 0, 0, 0"),
        ("kcmp", "312, 1, os.getpid(), 0, 0, 0"),
        ("connect", "42, 0, 0, 0"),
        ("bind", "49, 0, 0, 0"),
        ("ioctl TIOCSTI", "16, 0, 0x5412, 0"),
        ("settimeofday", "164, 0, 0"),
        ("a call of the x32 interface", "0x40000000 + 41, 2, 1, 0"),
    ];
    for (door, arguments) in doors {
        assert_eq!(client.run(&format!("call({arguments})")).await.text, "(-1, 1)", "{door}");
    }
    // Answered as unknown, so that the C library uses the call whose flags can be seen.
    assert_eq!(client.run("call(435, 0, 0)").await.text, "(-1, 38)");
}

#[tokio::test]
async fn programs_cannot_gain_privileges() {
    let Some(client) = cell().await else { return };
    let code = "import ctypes; ctypes.CDLL(None).prctl(39, 0, 0, 0, 0)";
    assert_eq!(client.run(code).await.text, "1");
    // A program with the set-user-ID bit, where one is installed.
    let su =
        client.call("run_command", serde_json::json!({ "command": "su -c id root </dev/null" })).await.text;
    assert!(!su.contains("uid=0"), "{su}");
    let root = is_root();
    let user = client.run("import os; os.getuid(), os.getgroups()").await.text;
    assert!(!root || !user.starts_with("(0,") && user.ends_with("[])"), "{user}");
}

#[tokio::test]
async fn a_program_from_memory_is_as_confined_as_any() {
    let Some(client) = cell().await else { return };
    // Landlock has no path to judge it by; what it was started with holds for it all the same.
    let code = "import os, shutil\nf = os.memfd_create('program')\nwith open(shutil.which('cat'), 'rb') as c: os.write(f, c.read())\n\
                p = os.fork()\nif p == 0: os.execve(f, ['cat', '/etc/passwd', '/proc/1/environ'], {})\nos.waitstatus_to_exitcode(os.wait()[1])";
    let reply = client.run(code).await;
    assert!(!reply.text.contains("root:") && !reply.text.contains("PATH="), "{}", reply.text);
    assert!(
        reply.text.matches("Permission denied").count() == 2 && reply.text.ends_with('1'),
        "{}",
        reply.text
    );
}

#[tokio::test]
async fn other_processes_cannot_be_seen() {
    let Some(client) = cell().await else { return };
    // Where the sandbox has a namespace of its own, its processes are the only ones; where it has none, none can be
    // signalled. Either way no number outside answers.
    let code = "import os\nfound = []\nfor pid in list(range(1, 4000)):\n    if pid in (os.getpid(), os.getppid()): continue\n    \
                try: os.kill(pid, 0); found.append(pid)\n    except OSError: pass\nfound";
    assert_eq!(client.run(code).await.text, "[]");
}

fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|own| std::os::unix::fs::MetadataExt::uid(&own) == 0)
}
