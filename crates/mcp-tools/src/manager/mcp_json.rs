//! Reads the file in which desktop clients keep their MCP servers.
//!
//! Decides which keys mean what, and how each fault is located: file, line, server, key. Starting
//! the servers is left to the manager.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};

use self::lines::KeyLines;
use super::error::ToolsError;
use super::spec::{MAX_CALL_LIMIT, ServerSpec, Transport};
use super::words::nearest;

mod lines;
mod variables;

/// Top-level keys that hold the servers: most clients', and one editor's.
const SERVER_MAPS: &[&str] = &["mcpServers", "servers"];

/// Keys of other clients that mean nothing here: approval and display are not this program's.
pub const IGNORED_KEYS: &[&str] = &[
    "autoApprove",
    "alwaysAllow",
    "autoStart",
    "trust",
    "name",
    "description",
    "icon",
    "iconUrl",
    "note",
    "notes",
    "comment",
    "_comment",
    "version",
    "tags",
    "category",
    "gallery",
    "registryUrl",
    "provider",
    "dev",
];

/// What a key sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Command,
    Args,
    Env,
    Cwd,
    Type,
    Url,
    Headers,
    Bearer,
    Disabled,
    Enabled,
    StartLimit,
    CallLimit,
    MaxConcurrency,
    DisabledTools,
}

/// All keys with the names that clients give them, the name used here first.
const KEYS: &[(Key, &[&str])] = &[
    (Key::Command, &["command"]),
    (Key::Args, &["args"]),
    (Key::Env, &["env"]),
    (Key::Cwd, &["cwd"]),
    (Key::Type, &["type", "transport", "transportType"]),
    (Key::Url, &["url", "serverUrl", "httpUrl"]),
    (Key::Headers, &["headers"]),
    (Key::Bearer, &["bearer"]),
    (Key::Disabled, &["disabled"]),
    (Key::Enabled, &["enabled", "isActive"]),
    (Key::StartLimit, &["start_limit", "startup_timeout", "startupTimeout", "startup_timeout_sec"]),
    (Key::CallLimit, &["call_limit", "timeout", "tool_timeout_sec"]),
    (Key::MaxConcurrency, &["max_concurrency"]),
    (Key::DisabledTools, &["disabled_tools", "disabledTools", "excludeTools"]),
];

/// Reads `mcp.json`: `{"mcpServers": {"NAME": {…}}}`, where JSON5's liberties are allowed.
///
/// `origin` names the file in errors. `${VAR}`, `${env:VAR}` and `${VAR:-default}` in values are
/// filled in by `lookup_env`. Servers with `disabled: true` are left out unread. Times are seconds.
/// Keys of other clients that mean nothing here are accepted ([`IGNORED_KEYS`]); any other unknown
/// key is an error, because it is most often a slip.
///
/// # Errors
/// The first fault, with its place in the file.
pub fn parse_mcp_json(
    text: &str,
    origin: &str,
    lookup_env: &dyn Fn(&str) -> Option<String>,
) -> Result<Vec<ServerSpec>, ToolsError> {
    let lines = KeyLines::of(text);
    let file = File { origin, lines: &lines, lookup_env };
    if lines.is_too_deep() {
        return Err(file.error(&[], format!("nested deeper than {} levels", lines::MAX_DEPTH)));
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let root: Value = json5::from_str(text).map_err(|error| file.syntax_error(&error))?;
    let Value::Object(root) = root else {
        return Err(file.error(&[], r#"expected an object: {"mcpServers": {…}}"#.to_owned()));
    };
    let Some((map_key, servers)) = SERVER_MAPS.iter().find_map(|key| Some((*key, root.get(*key)?))) else {
        let near = root.keys().find(|key| nearest(key, SERVER_MAPS.iter().copied()).is_some());
        return Err(match near {
            Some(key) => file.error(&[key], "unknown key: do you mean `mcpServers`?".to_owned()),
            None => file.error(&[], r#"there is no key `mcpServers`: write {"mcpServers": {…}}"#.to_owned()),
        });
    };
    let Value::Object(servers) = servers else {
        return Err(file.error(&[map_key], format!("expected an object of servers, found {}", kind(servers))));
    };
    if let Some((name, first, second)) = lines.repeated_under(&[map_key]) {
        let problem = format!("the name stands in lines {first} and {second}: give each server its own");
        return Err(file.error(&[map_key, name], problem));
    }
    let mut specs = Vec::with_capacity(servers.len());
    for (name, fields) in servers {
        let server = Server { file: &file, map_key, name };
        if let Some(spec) = server.read(fields)? {
            specs.push(spec);
        }
    }
    Ok(specs)
}

struct File<'a> {
    origin: &'a str,
    lines: &'a KeyLines,
    lookup_env: &'a dyn Fn(&str) -> Option<String>,
}

impl File<'_> {
    fn error(&self, path: &[&str], problem: String) -> ToolsError {
        let line = self.lines.line(path);
        ToolsError::McpJson { origin: self.origin.to_owned(), line, path: path.join("."), problem }
    }

    fn syntax_error(&self, error: &json5::Error) -> ToolsError {
        let problem = match error.code() {
            Some(code) => code.to_string(),
            None => error.to_string(),
        };
        let (line, column) = error.position().map_or((1, 1), |place| (place.line + 1, place.column + 1));
        ToolsError::McpJsonSyntax { origin: self.origin.to_owned(), line, column, problem }
    }
}

/// One server of the file, while it is read.
struct Server<'a> {
    file: &'a File<'a>,
    map_key: &'a str,
    name: &'a str,
}

/// The fields of a server by what they set, each with the name that it has in the file.
type Fields<'a> = Vec<(Key, &'a str, &'a Value)>;

impl Server<'_> {
    fn read(&self, value: &Value) -> Result<Option<ServerSpec>, ToolsError> {
        let Value::Object(object) = value else {
            return Err(self.error(&[], format!("expected an object, found {}", kind(value))));
        };
        if self.name.trim().is_empty() {
            return Err(self.error(&[], "a server needs a name".to_owned()));
        }
        let fields = self.fields(object)?;
        if self.is_disabled(&fields)? {
            return Ok(None);
        }
        let mut spec = ServerSpec::new(self.name, self.transport(&fields)?);
        for &(key, name, value) in &fields {
            match key {
                Key::StartLimit => spec.start_limit = self.seconds(name, value, None)?,
                Key::CallLimit => spec.call_limit = self.seconds(name, value, Some(MAX_CALL_LIMIT))?,
                Key::MaxConcurrency => spec.max_concurrency = Some(self.count(name, value)?),
                Key::DisabledTools => spec.disabled_tools = self.strings(name, value)?,
                _ => {}
            }
        }
        Ok(Some(spec))
    }

    fn fields<'v>(&self, object: &'v Map<String, Value>) -> Result<Fields<'v>, ToolsError> {
        let mut fields: Fields<'v> = Vec::new();
        for (name, value) in object {
            let known = KEYS.iter().find(|(_, names)| names.contains(&name.as_str()));
            let Some(&(key, _)) = known else {
                if IGNORED_KEYS.contains(&name.as_str()) || name.starts_with('$') {
                    continue;
                }
                let names = KEYS.iter().flat_map(|(_, names)| names.iter().copied());
                let advice = match nearest(name, names) {
                    Some(near) => format!("do you mean `{near}`?"),
                    None => {
                        let names: Vec<&str> =
                            KEYS.iter().filter_map(|(_, names)| names.first().copied()).collect();
                        format!("known keys: {}", names.join(", "))
                    }
                };
                return Err(self.error(&[name], format!("unknown key: {advice}")));
            };
            if let Some((_, other, _)) = fields.iter().find(|(other, _, _)| *other == key) {
                return Err(self.error(&[name], format!("says the same as `{other}`: remove one of them")));
            }
            if !value.is_null() {
                fields.push((key, name, value));
            }
        }
        Ok(fields)
    }

    fn is_disabled(&self, fields: &Fields<'_>) -> Result<bool, ToolsError> {
        for &(key, name, value) in fields {
            let off = match key {
                Key::Disabled => self.boolean(name, value)?,
                Key::Enabled => !self.boolean(name, value)?,
                _ => false,
            };
            if off {
                return Ok(true);
            }
        }
        Ok(false)
    }

    fn transport(&self, fields: &Fields<'_>) -> Result<Transport, ToolsError> {
        let field = |wanted: Key| {
            fields.iter().find(|(key, _, _)| *key == wanted).map(|&(_, name, value)| (name, value))
        };
        let (command, url) = (field(Key::Command), field(Key::Url));
        let is_http = match field(Key::Type) {
            None => url.is_some(),
            Some((name, value)) => match self.string(name, value)?.as_str() {
                "stdio" | "local" => false,
                "http" | "streamable-http" | "streamableHttp" | "streamable_http" | "remote" => true,
                "sse" => {
                    let problem = "the old HTTP+SSE transport is not supported: use the server's streamable HTTP address, which often ends in /mcp, with the type `http`";
                    return Err(self.error(&[name], problem.to_owned()));
                }
                other => {
                    return Err(self.error(&[name], format!("unknown type `{other}`: use `stdio` or `http`")));
                }
            },
        };
        // Each kind has keys of its own; one of the other kind is a slip that would go unnoticed.
        let (kind, foreign): (&str, &[Key]) = if is_http {
            ("http", &[Key::Command, Key::Args, Key::Env, Key::Cwd])
        } else {
            ("stdio", &[Key::Url, Key::Headers, Key::Bearer])
        };
        if let Some((_, name, _)) = fields.iter().find(|(key, _, _)| foreign.contains(key)) {
            return Err(
                self.error(&[name], format!("a server of the type `{kind}` has no `{name}`: remove it"))
            );
        }
        if is_http {
            let Some((name, value)) = url else {
                return Err(self.error(&[], "a server of the type `http` needs `url`".to_owned()));
            };
            let url = self.string(name, value)?;
            #[cfg(feature = "http")]
            super::http::check_url(&url).map_err(|problem| self.error(&[name], problem))?;
            let bearer = field(Key::Bearer).map(|(name, value)| self.string(name, value)).transpose()?;
            let headers = field(Key::Headers).map(|(name, value)| self.map(name, value)).transpose()?;
            return Ok(Transport::Http { url, bearer, headers: headers.unwrap_or_default() });
        }
        let Some((name, value)) = command else {
            return Err(self.error(&[], "a server needs `command`, or `url`".to_owned()));
        };
        let command = self.string(name, value)?;
        if command.trim().is_empty() {
            return Err(self.error(&[name], "no program is named".to_owned()));
        }
        let args = field(Key::Args).map(|(name, value)| self.strings(name, value)).transpose()?;
        let env = field(Key::Env).map(|(name, value)| self.map(name, value)).transpose()?;
        let cwd = field(Key::Cwd).map(|(name, value)| self.string(name, value)).transpose()?;
        Ok(Transport::Stdio {
            command,
            args: args.unwrap_or_default(),
            env: env.unwrap_or_default(),
            cwd: cwd.map(Into::into),
        })
    }

    fn string(&self, key: &str, value: &Value) -> Result<String, ToolsError> {
        self.string_at(&[key], value)
    }

    fn string_at(&self, path: &[&str], value: &Value) -> Result<String, ToolsError> {
        let text = match value {
            Value::String(text) => {
                variables::fill_in(text, self.file.lookup_env).map_err(|problem| self.error(path, problem))?
            }
            // Ports and switches are often written without quotes.
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            other => return Err(self.error(path, format!("expected a string, found {}", kind(other)))),
        };
        if text.contains('\0') {
            return Err(self.error(path, "holds a NUL character".to_owned()));
        }
        Ok(text)
    }

    fn strings(&self, key: &str, value: &Value) -> Result<Vec<String>, ToolsError> {
        match value {
            Value::Array(items) => items.iter().map(|item| self.string(key, item)).collect(),
            other => Err(self.error(&[key], format!("expected a list of strings, found {}", kind(other)))),
        }
    }

    fn map(&self, key: &str, value: &Value) -> Result<BTreeMap<String, String>, ToolsError> {
        let Value::Object(fields) = value else {
            return Err(self.error(&[key], format!("expected an object of strings, found {}", kind(value))));
        };
        let mut map = BTreeMap::new();
        for (name, value) in fields {
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(self.error(&[key, name], "this cannot be a name".to_owned()));
            }
            map.insert(name.clone(), self.string_at(&[key, name], value)?);
        }
        Ok(map)
    }

    fn boolean(&self, key: &str, value: &Value) -> Result<bool, ToolsError> {
        value
            .as_bool()
            .ok_or_else(|| self.error(&[key], format!("expected true or false, found {}", kind(value))))
    }

    fn count(&self, key: &str, value: &Value) -> Result<usize, ToolsError> {
        let count = value.as_u64().and_then(|count| usize::try_from(count).ok()).filter(|count| *count > 0);
        count.ok_or_else(|| self.error(&[key], "expected a whole number from 1".to_owned()))
    }

    fn seconds(&self, key: &str, value: &Value, most: Option<Duration>) -> Result<Duration, ToolsError> {
        let seconds = value.as_f64().filter(|seconds| *seconds > 0.0);
        let Some(limit) = seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()) else {
            return Err(self.error(&[key], format!("expected a number of seconds above 0, found {value}")));
        };
        match most {
            Some(most) if limit > most => {
                let problem = format!("{value} seconds are too long: {} at most", most.as_secs());
                Err(self.error(&[key], problem))
            }
            _ => Ok(limit),
        }
    }

    fn error(&self, path: &[&str], problem: String) -> ToolsError {
        let path: Vec<&str> = [self.map_key, self.name].iter().chain(path).copied().collect();
        self.file.error(&path, problem)
    }
}

const fn kind(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests;
