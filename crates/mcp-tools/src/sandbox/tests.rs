//! What is decided before a child starts; what the layers keep in and out is tested from outside.

use super::*;

/// A machine as it might be.
fn machine(landlock: i32, seccomp: Result<(), String>, mode: SandboxMode) -> Sandbox {
    let (users, namespaces) = (Err("not root".to_owned()), Err("not allowed".to_owned()));
    let totals = Err("none".to_owned());
    Sandbox { mode, limits: SandboxLimits::default(), landlock, seccomp, users, namespaces, totals }
}

#[test]
fn without_landlock_or_seccomp_nothing_is_started() {
    let scratch = tempfile::tempdir().expect("a directory");
    for (landlock, seccomp) in
        [(0, Ok(())), (7, Err("no filters".to_owned())), (0, Err("no filters".to_owned()))]
    {
        let sandbox = machine(landlock, seccomp, SandboxMode::Auto);
        let error = sandbox.child(scratch.path(), &[], None, None).expect_err("refused");
        assert!(matches!(error, SandboxError::Refused(_)), "{error}");
        let report = sandbox.report();
        let refusal = report.refusal.clone().expect("a refusal");
        assert!(refusal.contains("`sandbox: none`") && error.to_string() == refusal, "{refusal}");
        assert!(report.lines().iter().any(|line| line.starts_with("refused: ")));
    }
}

#[test]
fn mode_none_confines_nothing_and_says_so() {
    let scratch = tempfile::tempdir().expect("a directory");
    let sandbox = machine(0, Err("no filters".to_owned()), SandboxMode::None);
    let setup = sandbox.child(scratch.path(), &[], None, None).expect("a child");
    assert!(setup.landlock.is_none() && setup.seccomp.is_empty() && setup.rlimits.is_empty());
    assert!(setup.watchdog.is_some());
    let report = sandbox.report();
    assert_eq!(report.refusal, None);
    // Its files are counted all the same.
    let mut others = report.layers.iter().filter(|layer| layer.name != "space");
    assert!(others.all(|layer| layer.missing.is_some()), "{report:?}");
}

#[test]
fn what_is_not_limited_as_a_whole_is_said_with_its_figure() {
    let report = machine(7, Ok(()), SandboxMode::Auto).report();
    let missing = |name: &str| {
        report.layers.iter().find(|layer| layer.name == name).and_then(|layer| layer.missing.clone())
    };
    assert_eq!(
        missing("totals").as_deref(),
        Some("none; each process has its limit, all together may use 256 GiB")
    );
    assert_eq!(missing("namespaces").as_deref(), Some("not allowed"));
}

#[test]
fn an_old_landlock_says_what_it_lacks() {
    let missing = |version| {
        let report = machine(version, Ok(()), SandboxMode::Auto).report();
        report.layers.into_iter().find(|layer| layer.name == "landlock").and_then(|layer| layer.missing)
    };
    assert!(missing(4).is_some_and(|words| words.contains("version 4")));
    assert_eq!(missing(6), None);
}

#[test]
fn the_environment_is_made_of_the_scratch_directory() {
    let variables = environment(Path::new("/s/x"), Path::new("/opt/py/bin/python3"));
    let value =
        |name: &str| variables.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str());
    assert_eq!(value("PATH"), Some("/opt/py/bin:/usr/local/bin:/usr/bin:/bin"));
    assert_eq!((value("HOME"), value("TMPDIR")), (Some("/s/x"), Some("/s/x")));
    let usual = environment(Path::new("/s"), Path::new("/usr/bin/python3"));
    assert_eq!(usual[0], ("PATH", "/usr/local/bin:/usr/bin:/bin".to_owned()));
}

/// Where users can be changed, no two sandboxes of this process have the same, whichever server they belong to.
#[test]
fn users_are_not_shared() {
    let make = || Sandbox::examine(SandboxMode::Auto, SandboxLimits::default());
    let (one, other) = (make(), make());
    let picked: Vec<_> = [&one, &other, &one, &other].into_iter().filter_map(Sandbox::new_user).collect();
    let mut different = picked.clone();
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), picked.len(), "{picked:?}");
    if picked.is_empty() {
        assert!(!one.changes_user());
    }
}
