//! What tells the tool servers of one `mcp.json` from those of another, to be kept beside a run. Decides what of a
//! server is said and what only compared: anything that may hold a secret is a part of a digest, or its name alone.

use mcp_tools::{ServerSpec, Transport};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use crate::config::is_secret_name;
use crate::run::Pipeline;
use crate::servers::configured_in_use;

impl Pipeline {
    /// The servers of `mcp.json` that runs use, by their names: the program, or scheme and host of the address, in
    /// plain text, as is the folder that one is started in; arguments, variables and the whole address as the first
    /// digits of their SHA-256; of secrets and headers that they are there. A secret that is replaced by another makes
    /// no difference, limits neither.
    #[must_use]
    pub fn server_identities(&self) -> Map<String, Value> {
        let redacted = |text: &str| self.resolved().redacted(text);
        configured_in_use(self.config(), &self.configured)
            .map(|spec| (spec.name.clone(), identity(spec, &redacted)))
            .collect()
    }
}

fn identity(spec: &ServerSpec, redacted: &dyn Fn(&str) -> String) -> Value {
    let mut identity = match &spec.transport {
        Transport::Stdio { command, args, env, cwd } => json!({
            "command": redacted(command),
            "args": args_of(args, redacted),
            "env": env
                .iter()
                .map(|(name, value)| (name.clone(), compared(name, value, redacted)))
                .collect::<Map<_, _>>(),
            "cwd": cwd.as_ref().map(|folder| redacted(&folder.display().to_string())),
        }),
        Transport::Http { url, bearer, headers } => json!({
            "host": host_of(url),
            "url": digest(&redacted(url)),
            "bearer": bearer.is_some(),
            "headers": headers.keys().collect::<Vec<_>>(),
        }),
        Transport::InProcess(server) => json!({ "in_process": server.name() }),
        Transport::Unavailable { .. } => json!({ "unavailable": true }),
    };
    identity["enabled_tools"] = json!(spec.enabled_tools);
    identity["disabled_tools"] = json!(spec.disabled_tools);
    identity
}

/// What stands for a secret.
const SECRET: &str = "***";

fn compared(name: &str, value: &str, redacted: &dyn Fn(&str) -> String) -> Value {
    if is_secret_name(name) { SECRET.into() } else { digest(&redacted(value)).into() }
}

/// Arguments as digests, without values that are named like secrets.
fn args_of(args: &[String], redacted: &dyn Fn(&str) -> String) -> Vec<Value> {
    let mut previous = "";
    args.iter()
        .map(|argument| {
            let shown = if previous.starts_with('-') && is_secret_name(previous.trim_start_matches('-')) {
                SECRET.into()
            } else {
                digest(&redacted(without_secret(argument))).into()
            };
            previous = if argument.contains('=') { "" } else { argument };
            shown
        })
        .collect()
}

/// An argument up to a secret: to `=` or `:` behind a name that means one, as in `API_KEY=…`, `--header=Cookie: …` or
/// `https://host/?token=…`.
fn without_secret(argument: &str) -> &str {
    let is_of_name = |letter: char| letter.is_alphanumeric() || "_-".contains(letter);
    let names_secret = |before: &&str| {
        let name = before.trim_end_matches(|letter| !is_of_name(letter));
        let name = name.rsplit(|letter| !is_of_name(letter)).next().unwrap_or_default();
        is_secret_name(name.trim_start_matches('-'))
    };
    let mut before = argument.match_indices(['=', ':']).filter_map(|(at, _)| argument.get(..at));
    before.find(names_secret).unwrap_or(argument)
}

/// Enough to see that two texts differ, but for one pair in 65,536. It does not give a text away; but who has a list of
/// guesses can rule out all but one in 65,536 of them.
fn digest(text: &str) -> String {
    const DIGITS: usize = 4;
    hex::encode(Sha256::digest(text.as_bytes())).get(..DIGITS).unwrap_or_default().to_owned()
}

/// Scheme and host of an address, without what could be a key.
fn host_of(url: &str) -> String {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit_once('@').map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(server: &str) -> Value {
        let text = format!("{{\"mcpServers\": {{\"one\": {server}}}}}");
        let servers = mcp_tools::parse_mcp_json(&text, "mcp.json", &|_| None).unwrap().servers;
        identity(&servers[0], &|text| text.replace("known-secret", "***"))
    }

    #[test]
    fn what_differs_and_what_does_not() {
        for (one, other, same) in [
            (
                r#"{"command": "npx", "args": ["-y", "server@1"]}"#,
                r#"{"command": "npx", "args": ["-y", "server@1"]}"#,
                true,
            ),
            (
                r#"{"command": "npx", "args": ["-y", "server@1"]}"#,
                r#"{"command": "npx", "args": ["-y", "server@2"]}"#,
                false,
            ),
            (r#"{"command": "npx"}"#, r#"{"command": "uvx"}"#, false),
            (r#"{"command": "a", "env": {"MODE": "x"}}"#, r#"{"command": "a", "env": {"MODE": "y"}}"#, false),
            (r#"{"command": "a", "env": {"MODE": "x"}}"#, r#"{"command": "a"}"#, false),
            (
                r#"{"command": "a", "env": {"API_KEY": "x"}}"#,
                r#"{"command": "a", "env": {"API_KEY": "y"}}"#,
                true,
            ),
            (
                r#"{"command": "a", "args": ["--api-key", "x"]}"#,
                r#"{"command": "a", "args": ["--api-key", "y"]}"#,
                true,
            ),
            (
                r#"{"command": "a", "args": ["--api-key=x"]}"#,
                r#"{"command": "a", "args": ["--api-key=y"]}"#,
                true,
            ),
            (
                r#"{"command": "a", "args": ["--api-key=x", "p"]}"#,
                r#"{"command": "a", "args": ["--api-key=x", "q"]}"#,
                false,
            ),
            (
                r#"{"command": "a", "args": ["-e", "API_KEY=x"]}"#,
                r#"{"command": "a", "args": ["-e", "API_KEY=y"]}"#,
                true,
            ),
            (
                r#"{"command": "a", "args": ["-e", "API_KEY=x"]}"#,
                r#"{"command": "a", "args": ["-e", "MODE=x"]}"#,
                false,
            ),
            (
                r#"{"command": "a", "args": ["--header", "Authorization: Basic eA=="]}"#,
                r#"{"command": "a", "args": ["--header", "Authorization: Basic eB=="]}"#,
                true,
            ),
            (
                r#"{"command": "a", "args": ["--header=X-Api-Key:x", "https://h/?v=1&token=x", "--token", "x"]}"#,
                r#"{"command": "a", "args": ["--header=X-Api-Key:y", "https://h/?v=1&token=y", "--token", "y"]}"#,
                true,
            ),
            (r#"{"command": "a", "cwd": "/x/known-secret"}"#, r#"{"command": "a", "cwd": "/x/***"}"#, true),
            (r#"{"command": "a", "args": ["--mode=x"]}"#, r#"{"command": "a", "args": ["--mode=y"]}"#, false),
            (r#"{"command": "a", "args": ["known-secret"]}"#, r#"{"command": "a", "args": ["***"]}"#, true),
            (r#"{"command": "a", "timeout": 5}"#, r#"{"command": "a", "timeout": 7}"#, true),
            (r#"{"command": "a"}"#, r#"{"command": "a", "disabledTools": ["t"]}"#, false),
            (r#"{"url": "https://h/mcp"}"#, r#"{"url": "https://h/other"}"#, false),
            (r#"{"url": "https://h/mcp"}"#, r#"{"url": "https://g/mcp"}"#, false),
            (r#"{"url": "https://h/?k=known-secret"}"#, r#"{"url": "https://h/?k=***"}"#, true),
            (
                r#"{"url": "https://h/", "headers": {"X-Mode": "1"}}"#,
                r#"{"url": "https://h/", "headers": {"X-Mode": "2"}}"#,
                true,
            ),
            (r#"{"url": "https://h/", "headers": {"X-Mode": "1"}}"#, r#"{"url": "https://h/"}"#, false),
            (r#"{"url": "https://h/", "bearer": "x"}"#, r#"{"url": "https://h/", "bearer": "y"}"#, true),
            (r#"{"command": "a", "args": ["${UNSET}"]}"#, r#"{"command": "a", "args": ["x"]}"#, false),
        ] {
            assert_eq!(of(one) == of(other), same, "{} and {}", of(one), of(other));
        }
    }

    #[test]
    fn nothing_that_may_be_a_secret_is_said() {
        for server in [
            r#"{"command": "a", "args": ["HIDDEN", "--x=HIDDEN", "--token", "HIDDEN", "Authorization: HIDDEN"]}"#,
            r#"{"command": "a", "env": {"PASSWORD": "HIDDEN", "DATABASE_URL": "postgres://me:HIDDEN@host/db"}}"#,
            r#"{"command": "a", "args": ["${UNSET}"], "env": {"KEY": "HIDDEN"}}"#,
            r#"{"url": "https://me:HIDDEN@host/s/HIDDEN/mcp?api_key=HIDDEN#HIDDEN", "bearer": "HIDDEN"}"#,
            r#"{"url": "https://host/mcp", "headers": {"Authorization": "HIDDEN", "X-Any": "HIDDEN"}}"#,
        ] {
            let said = of(server).to_string();
            assert!(!said.contains("HIDDEN"), "{said}");
        }
    }
}
