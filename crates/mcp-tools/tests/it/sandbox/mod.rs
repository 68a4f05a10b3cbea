//! What code in a sandbox must not be able to do, tried for real, and what it must.
//!
//! Every test runs hostile code in a real sandbox and looks from outside whether it got through. Where
//! the machine offers too little to run code at all, a test says so and passes: the refusal itself is
//! tested elsewhere.

mod ends;
mod escapes;
mod space;
mod work;

use crate::python::client::{Client, client};

/// A sandbox to break out of; none where this machine cannot confine.
#[expect(clippy::print_stdout, reason = "a test that cannot run says why")]
pub(crate) async fn cell() -> Option<Client> {
    let client = client().await;
    let reply = client.run("1").await;
    if reply.is_error {
        println!("skipped, no sandbox here: {}", reply.text);
        return None;
    }
    Some(client)
}

/// Whether a layer of the sandbox is in force here.
#[expect(clippy::print_stdout, reason = "a test that cannot run says why")]
pub(crate) async fn in_force(layer: &str) -> bool {
    let report = mcp_tools::servers::python::probe().await;
    let missing =
        report.layers.iter().find(|known| known.name == layer).and_then(|known| known.missing.clone());
    if let Some(why) = &missing {
        println!("skipped, `{layer}` is not in force: {why}");
    }
    missing.is_none()
}

/// Processes whose command line contains `mark`, from outside.
pub(crate) fn running(mark: &str) -> usize {
    let mut found = 0;
    for entry in std::fs::read_dir("/proc").expect("processes").flatten() {
        let command = std::fs::read(entry.path().join("cmdline")).unwrap_or_default();
        found += usize::from(String::from_utf8_lossy(&command).contains(mark));
    }
    found
}

/// Waits until something is so, for longer than a loaded machine needs. A process that was started has no command line
/// for a moment, so that what is looked for may not be there yet.
pub(crate) async fn until(is_so: impl Fn() -> bool, what: &str) {
    let began = std::time::Instant::now();
    while !is_so() {
        assert!(began.elapsed().as_secs() < 30, "{what}");
        tokio::task::yield_now().await;
    }
}

/// A number for `sleep` that stands in no other command line.
pub(crate) fn mark(digit: u32) -> String {
    format!("9{digit}.{:010}", std::process::id())
}

/// The last line of what code prints; `result` of the code is wrapped so that exceptions are named.
pub(crate) async fn attempt(client: &Client, code: &str) -> String {
    let indented: String = code.lines().map(|line| format!("    {line}\n")).collect();
    let wrapped = format!(
        "import os, sys\ntry:\n{indented}    print('done')\nexcept BaseException as e:\n    print(type(e).__name__)"
    );
    let text = client.run(&wrapped).await.text;
    text.lines().next_back().unwrap_or_default().to_owned()
}
