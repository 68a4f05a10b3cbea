//! Reads the file in which desktop clients keep their MCP servers.
//!
//! Decides which keys mean what, and how each fault is located: file, line, server, key. Starting
//! the servers is left to the manager.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Map, Value};

use self::lines::KeyLines;
use super::error::ToolsError;
use super::spec::{MAX_CALL_LIMIT, ServerSpec, Transport};
use super::words::nearest;

mod env_file;
mod lines;
mod variables;

/// Top-level keys that hold the servers: most clients', and one editor's.
const SERVER_MAPS: &[&str] = &["mcpServers", "servers"];

/// Top-level keys of clients that are about other things than servers.
const OTHER_TOP_KEYS: &[&str] = &["inputs", "globalShortcut", "$schema", "preferences", "numStartups"];

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
    "sandbox",
    "sandboxEnabled",
    "oauth",
    "auth",
    "authProviderType",
    "includePaths",
    "alwaysLoad",
    "watchPaths",
    "fromGalleryId",
];

/// What a key sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Key {
    Command,
    Args,
    Env,
    EnvFile,
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
    EnabledTools,
    DisabledTools,
}

/// All keys with the names that clients give them, the name used here first.
const KEYS: &[(Key, &[&str])] = &[
    (Key::Command, &["command"]),
    (Key::Args, &["args"]),
    (Key::Env, &["env"]),
    (Key::EnvFile, &["envFile", "env_file"]),
    (Key::Cwd, &["cwd", "workingDirectory"]),
    (Key::Type, &["type", "transport", "transportType"]),
    (Key::Url, &["url", "serverUrl", "httpUrl"]),
    (Key::Headers, &["headers", "http_headers"]),
    (Key::Bearer, &["bearer"]),
    (Key::Disabled, &["disabled"]),
    (Key::Enabled, &["enabled", "isActive"]),
    (Key::StartLimit, &["start_limit", "startup_timeout", "startupTimeout", "startup_timeout_sec"]),
    (Key::CallLimit, &["call_limit", "timeout", "tool_timeout_sec"]),
    (Key::MaxConcurrency, &["max_concurrency"]),
    (Key::EnabledTools, &["enabled_tools", "enabledTools", "includeTools"]),
    (Key::DisabledTools, &["disabled_tools", "disabledTools", "excludeTools"]),
];

/// The servers of an `mcp.json`.
#[derive(Debug, Clone, Default)]
pub struct McpJson {
    /// All of them in the order of the file. One that is switched off, that asks for a variable that is not
    /// set, or that speaks a transport which is not supported is [`Transport::Unavailable`].
    pub servers: Vec<ServerSpec>,
    /// What was read over, each with its place: unknown keys, and keys without effect.
    pub notes: Vec<String>,
}

/// Reads `mcp.json`: `{"mcpServers": {"NAME": {…}}}`, where JSON5's liberties are allowed.
///
/// `origin` names the file in errors. `${VAR}`, `${env:VAR}`, `${VAR:-default}` and `${env:VAR,default}`
/// in values are filled in by `lookup_env`. Times are seconds; a `timeout` that is too long for that is
/// milliseconds. Keys of other clients that mean nothing here are accepted ([`IGNORED_KEYS`]); any other
/// unknown key is noted.
///
/// # Errors
/// The first fault, with its place in the file.
pub fn parse_mcp_json(
    text: &str,
    origin: &str,
    lookup_env: &dyn Fn(&str) -> Option<String>,
) -> Result<McpJson, ToolsError> {
    let lines = KeyLines::of(text);
    let file = File { origin, lines: &lines, lookup_env, notes: RefCell::default() };
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
        return Err(
            file.error(&[map_key], format!("expected an object of servers, found {}", kind_of(servers)))
        );
    };
    if let Some((name, first, second)) = lines.repeated_under(&[map_key]) {
        let problem = format!("the name stands in lines {first} and {second}: give each server its own");
        return Err(file.error(&[map_key, name], problem));
    }
    if servers.is_empty() {
        file.note(&[map_key], "no server stands here".to_owned());
    }
    for key in root.keys().map(String::as_str) {
        if key != map_key && !OTHER_TOP_KEYS.contains(&key) {
            file.note(&[key], format!("not read: the servers are taken from `{map_key}`"));
        }
    }
    let servers = servers.iter().map(|(name, fields)| Server { file: &file, map_key, name }.read(fields));
    let servers = servers.collect::<Result<Vec<_>, _>>()?;
    Ok(McpJson { servers, notes: file.notes.take() })
}

struct File<'a> {
    origin: &'a str,
    lines: &'a KeyLines,
    lookup_env: &'a dyn Fn(&str) -> Option<String>,
    notes: RefCell<Vec<String>>,
}

/// What is wrong with a server.
enum Fault {
    /// The file must be mended.
    Error(ToolsError),
    /// The file may be as it is; this server cannot be had here.
    Unavailable(String),
}

impl From<ToolsError> for Fault {
    fn from(error: ToolsError) -> Self {
        Self::Error(error)
    }
}

impl File<'_> {
    fn note(&self, path: &[&str], text: String) {
        self.notes.borrow_mut().push(self.error(path, text).to_string());
    }

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
    fn read(&self, value: &Value) -> Result<ServerSpec, ToolsError> {
        let Value::Object(object) = value else {
            return Err(self.error(&[], format!("expected an object, found {}", kind_of(value))));
        };
        if self.name.trim().is_empty() {
            return Err(self.error(&[], "a server needs a name".to_owned()));
        }
        let unavailable = |reason: String, switched_off: bool| {
            ServerSpec::new(self.name, Transport::Unavailable { reason, switched_off })
        };
        let fields = self.fields(object)?;
        if let Some(key) = self.switched_off_by(&fields)? {
            let place = self.error(&[key], "it is switched off there".to_owned());
            return Ok(unavailable(place.to_string(), true));
        }
        match self.enabled(object, &fields) {
            Ok(spec) => Ok(spec),
            Err(Fault::Unavailable(reason)) => Ok(unavailable(reason, false)),
            Err(Fault::Error(error)) => Err(error),
        }
    }

    fn enabled(&self, object: &Map<String, Value>, fields: &Fields<'_>) -> Result<ServerSpec, Fault> {
        // What is wrong with the file is told before what is missing around it.
        let mut spec =
            ServerSpec::new(self.name, Transport::Unavailable { reason: String::new(), switched_off: false });
        for &(key, name, value) in fields {
            match key {
                Key::StartLimit => spec.start_limit = self.seconds(name, value, None)?,
                Key::CallLimit => spec.call_limit = self.seconds(name, value, Some(MAX_CALL_LIMIT))?,
                Key::MaxConcurrency => spec.max_concurrency = Some(self.count(name, value)?),
                Key::EnabledTools => spec.enabled_tools = Some(self.strings(name, value)?),
                Key::DisabledTools => spec.disabled_tools = self.strings(name, value)?,
                _ => {}
            }
        }
        spec.transport = self.transport(object, fields)?;
        Ok(spec)
    }

    /// The known fields; the others are noted.
    fn fields<'v>(&self, object: &'v Map<String, Value>) -> Result<Fields<'v>, ToolsError> {
        let mut fields: Fields<'v> = Vec::new();
        for (name, value) in object {
            let known = KEYS.iter().find(|(_, names)| names.contains(&name.as_str()));
            let Some(&(key, _)) = known else {
                if !IGNORED_KEYS.contains(&name.as_str()) && !name.starts_with('$') {
                    self.file.note(&[self.map_key, self.name, name], unknown_key(name));
                }
                continue;
            };
            if let Some((_, other, _)) = fields.iter().find(|(other, _, _)| *other == key) {
                return Err(self.error(&[name], format!("says the same as `{other}`: remove one of them")));
            }
            // Clients write these where a form was left empty.
            let is_empty =
                value.is_null() || (matches!(key, Key::Url | Key::Cwd | Key::EnvFile) && value == "");
            if !is_empty {
                fields.push((key, name, value));
            }
        }
        Ok(fields)
    }

    fn switched_off_by<'f>(&self, fields: &Fields<'f>) -> Result<Option<&'f str>, ToolsError> {
        for &(key, name, value) in fields {
            let off = match key {
                Key::Disabled => self.boolean(name, value)?,
                Key::Enabled => !self.boolean(name, value)?,
                _ => false,
            };
            if off {
                return Ok(Some(name));
            }
        }
        Ok(None)
    }

    fn transport(&self, object: &Map<String, Value>, fields: &Fields<'_>) -> Result<Transport, Fault> {
        let field = |wanted: Key| {
            fields.iter().find(|(key, _, _)| *key == wanted).map(|&(_, name, value)| (name, value))
        };
        let (command, url) = (field(Key::Command), field(Key::Url));
        let is_http = match field(Key::Type) {
            None => url.is_some() && command.is_none(),
            Some((name, value)) => match self.string(name, value)?.as_str() {
                "stdio" | "local" => false,
                "http" | "streamable-http" | "streamableHttp" | "streamable_http" | "remote" => true,
                "sse" => {
                    let problem = "the old HTTP+SSE transport is not supported: use the server's streamable HTTP address, which often ends in /mcp, with the type `http`";
                    return Err(self.unavailable(&[name], problem.to_owned()));
                }
                other => {
                    let problem = format!("unknown type `{other}`: use `stdio` or `http`");
                    return Err(self.unavailable(&[name], problem));
                }
            },
        };
        // Each kind has keys of its own; those of the other kind have no effect.
        let (kind, foreign): (&str, &[Key]) = if is_http {
            ("http", &[Key::Command, Key::Args, Key::Env, Key::EnvFile, Key::Cwd])
        } else {
            ("stdio", &[Key::Url, Key::Headers, Key::Bearer])
        };
        for (_, name, value) in fields.iter().filter(|(key, _, _)| foreign.contains(key)) {
            // Forms that were left empty say nothing.
            let is_empty = value.as_array().is_some_and(Vec::is_empty)
                || value.as_object().is_some_and(Map::is_empty)
                || value.as_str() == Some("");
            if !is_empty {
                let text = format!("without effect for a server of the type `{kind}`");
                self.file.note(&[self.map_key, self.name, name], text);
            }
        }
        if is_http {
            let Some((name, value)) = url else {
                return Err(self.lacking(object, "a server of the type `http` needs `url`").into());
            };
            let url = self.string(name, value)?;
            #[cfg(feature = "http")]
            super::http::check_url(&url).map_err(|problem| self.error(&[name], problem))?;
            let bearer = field(Key::Bearer).map(|(name, value)| self.string(name, value)).transpose()?;
            let headers = field(Key::Headers).map(|(name, value)| self.map(name, value)).transpose()?;
            return Ok(Transport::Http { url, bearer, headers: headers.unwrap_or_default() });
        }
        let Some((name, value)) = command else {
            return Err(self.lacking(object, "a server needs `command`, or `url`").into());
        };
        if !value.is_string() {
            return Err(self.error(&[name], format!("expected a string, found {}", kind_of(value))).into());
        }
        let command = self.string(name, value)?;
        if command.trim().is_empty() {
            return Err(self.error(&[name], "no program is named".to_owned()).into());
        }
        let args = field(Key::Args).map(|(name, value)| self.strings(name, value)).transpose()?;
        let cwd = field(Key::Cwd).map(|(name, value)| self.string(name, value)).transpose()?;
        let mut env = BTreeMap::new();
        if let Some((name, value)) = field(Key::EnvFile) {
            let path = self.string(name, value)?;
            env = env_file::read(&path).map_err(|problem| self.unavailable(&[name], problem))?;
        }
        if let Some((name, value)) = field(Key::Env) {
            env.extend(self.map(name, value)?);
        }
        Ok(Transport::Stdio { command, args: args.unwrap_or_default(), env, cwd: cwd.map(Into::into) })
    }

    /// What a server must have and has not; a slip in the name of the key is the likeliest reason.
    fn lacking(&self, object: &Map<String, Value>, problem: &str) -> ToolsError {
        let slip = object.keys().find(|name| {
            nearest(name, ["command", "url"]).is_some()
                && !KEYS.iter().any(|(_, names)| names.contains(&name.as_str()))
        });
        match slip {
            Some(name) => self.error(&[name], unknown_key(name)),
            None => self.error(&[], problem.to_owned()),
        }
    }

    fn string(&self, key: &str, value: &Value) -> Result<String, Fault> {
        self.string_at(&[key], value)
    }

    fn string_at(&self, path: &[&str], value: &Value) -> Result<String, Fault> {
        let text = match value {
            Value::String(text) => variables::fill_in(text, self.file.lookup_env)
                .map_err(|problem| self.unavailable(path, problem))?,
            // Ports and switches are often written without quotes.
            Value::Number(_) | Value::Bool(_) => value.to_string(),
            other => {
                return Err(self.error(path, format!("expected a string, found {}", kind_of(other))).into());
            }
        };
        if text.contains('\0') {
            return Err(self.error(path, "holds a NUL character".to_owned()).into());
        }
        Ok(text)
    }

    fn strings(&self, key: &str, value: &Value) -> Result<Vec<String>, Fault> {
        match value {
            Value::Array(items) => items.iter().map(|item| self.string(key, item)).collect(),
            other => {
                let problem = format!("expected a list of strings, found {}", kind_of(other));
                Err(self.error(&[key], problem).into())
            }
        }
    }

    fn map(&self, key: &str, value: &Value) -> Result<BTreeMap<String, String>, Fault> {
        let Value::Object(fields) = value else {
            let problem = format!("expected an object of strings, found {}", kind_of(value));
            return Err(self.error(&[key], problem).into());
        };
        let mut map = BTreeMap::new();
        for (name, value) in fields {
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(self.error(&[key, name], "this cannot be a name".to_owned()).into());
            }
            map.insert(name.clone(), self.string_at(&[key, name], value)?);
        }
        Ok(map)
    }

    fn boolean(&self, key: &str, value: &Value) -> Result<bool, ToolsError> {
        value
            .as_bool()
            .ok_or_else(|| self.error(&[key], format!("expected true or false, found {}", kind_of(value))))
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
            // Some clients write milliseconds under this name.
            Some(most)
                if limit > most && key == "timeout" && limit.as_millis() <= most.as_millis() * 1000 =>
            {
                let seconds = limit.as_secs_f64() / 1000.0;
                self.file.note(&[self.map_key, self.name, key], format!("taken as {seconds} s"));
                Ok(limit / 1000)
            }
            Some(most) if limit > most => {
                let problem = format!("{value} seconds are too long: {} at most", most.as_secs());
                Err(self.error(&[key], problem))
            }
            _ => Ok(limit),
        }
    }

    fn unavailable(&self, path: &[&str], problem: String) -> Fault {
        Fault::Unavailable(self.error(path, problem).to_string())
    }

    fn error(&self, path: &[&str], problem: String) -> ToolsError {
        let path: Vec<&str> = [self.map_key, self.name].iter().chain(path).copied().collect();
        self.file.error(&path, problem)
    }
}

fn unknown_key(name: &str) -> String {
    let names = KEYS.iter().flat_map(|(_, names)| names.iter().copied());
    let advice = match nearest(name, names) {
        Some(near) => format!("do you mean `{near}`?"),
        None => {
            let names: Vec<&str> = KEYS.iter().filter_map(|(_, names)| names.first().copied()).collect();
            format!("known keys: {}", names.join(", "))
        }
    };
    format!("unknown key: {advice}")
}

const fn kind_of(value: &Value) -> &'static str {
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
