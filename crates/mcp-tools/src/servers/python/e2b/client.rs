//! The service on the wire.
//!
//! Decides addresses, headers and bodies: the account's interface makes and ends sandboxes; in each sandbox one port
//! runs cells of Python, another moves files and starts processes.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};
use url::form_urlencoded;

use super::E2bOptions;
use super::frames::{self, Ran};
use crate::egress::{Fetched, ServiceRequest};

/// Runs cells.
const CODE_PORT: u16 = 49_999;
/// Moves files and starts processes.
const ENVD_PORT: u16 = 49_983;
/// `user:` with nothing after it, in Base64: whom processes belong to.
const USER: &str = "Basic dXNlcjo=";
/// Between the parts of a form.
const BOUNDARY: &str = "part-of-a-file-for-a-sandbox";
/// Characters of an error that the service tells.
const LONGEST_ERROR: usize = 500;
/// For making and ending a sandbox.
const SHORT: Duration = Duration::from_secs(60);

pub(super) struct Client {
    pub(super) options: E2bOptions,
}

/// A sandbox.
pub(super) struct Machine {
    pub(super) id: String,
    host_id: String,
    domain: Option<String>,
    token: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Created {
    #[serde(rename = "sandboxID")]
    sandbox_id: String,
    /// Old installations have it in the names of hosts.
    #[serde(rename = "clientID", default)]
    client_id: String,
    #[serde(default)]
    envd_access_token: Option<String>,
    #[serde(default)]
    domain: Option<String>,
}

#[derive(Deserialize)]
struct Refusal {
    message: String,
}

/// What a cell printed and gave.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Cell {
    pub(super) output: String,
    pub(super) failed: bool,
}

impl Client {
    pub(super) fn new(options: E2bOptions) -> Self {
        Self { options }
    }

    pub(super) async fn create(&self, lifetime: Option<Duration>) -> Result<Machine, String> {
        let seconds = lifetime.unwrap_or(self.options.lifetime).as_secs().max(1);
        let body = json!({ "templateID": self.options.template, "timeout": seconds, "secure": true });
        let request = ServiceRequest {
            url: format!("{}/sandboxes", self.options.api_url.trim_end_matches('/')),
            headers: self.account_headers(),
            body: Some(body.to_string().into_bytes()),
            time_limit: Some(SHORT),
        };
        let answer = self.ask(request, "No sandbox could be made").await?;
        let created: Created = serde_json::from_slice(&answer.body).map_err(|error| {
            format!("No sandbox could be made: the service's answer is not understood ({error}).")
        })?;
        let host_id = match created.client_id.as_str() {
            "" => created.sandbox_id.clone(),
            // The one name for all that new installations give.
            "6532622b" => created.sandbox_id.clone(),
            client => format!("{}-{client}", created.sandbox_id),
        };
        let domain = created.domain.filter(|domain| !domain.is_empty());
        Ok(Machine { id: created.sandbox_id, host_id, domain, token: created.envd_access_token })
    }

    pub(super) async fn kill(&self, machine: &Machine) -> Result<(), String> {
        let request = ServiceRequest {
            url: format!("{}/sandboxes/{}", self.options.api_url.trim_end_matches('/'), machine.id),
            headers: self.account_headers(),
            body: None,
            time_limit: Some(SHORT),
        };
        let answer =
            self.options.egress.delete_at_service(request).await.map_err(|error| error.to_string())?;
        // One that has ended already is gone as well.
        if answer.is_success() || answer.status == 404 {
            Ok(())
        } else {
            Err(refused("It could not be ended", &answer))
        }
    }

    /// Runs a cell of Python.
    pub(super) async fn run_code(&self, machine: &Machine, code: &str) -> Result<Cell, String> {
        let mut headers = self.headers(machine, CODE_PORT);
        headers.push(("content-type".to_owned(), "application/json".to_owned()));
        let body = json!({ "code": code, "context_id": null, "language": null, "env_vars": null });
        let request = ServiceRequest {
            url: self.url(machine, CODE_PORT, "/execute"),
            headers,
            body: Some(body.to_string().into_bytes()),
            time_limit: Some(self.options.call_limit),
        };
        Ok(cell(&self.ask(request, "The code was not run").await?.body))
    }

    /// Runs a command of the shell.
    pub(super) async fn run_command(&self, machine: &Machine, command: &str) -> Result<Ran, String> {
        let mut headers = self.headers(machine, ENVD_PORT);
        headers.extend(
            [
                ("content-type", "application/connect+json"),
                ("connect-protocol-version", "1"),
                ("authorization", USER),
                ("keepalive-ping-interval", "50"),
            ]
            .map(|(name, value)| (name.to_owned(), value.to_owned())),
        );
        let message = json!({ "process": { "cmd": "/bin/bash", "args": ["-l", "-c", command], "envs": {} }, "stdin": false });
        let request = ServiceRequest {
            url: self.url(machine, ENVD_PORT, "/process.Process/Start"),
            headers,
            body: Some(frames::framed(&message)),
            time_limit: Some(self.options.call_limit),
        };
        Ok(frames::read(&self.ask(request, "The command was not run").await?.body))
    }

    pub(super) async fn upload(&self, machine: &Machine, path: &str, bytes: &[u8]) -> Result<(), String> {
        let mut headers = self.headers(machine, ENVD_PORT);
        headers.push(("content-type".to_owned(), format!("multipart/form-data; boundary={BOUNDARY}")));
        let head = format!(
            "--{BOUNDARY}\r\ncontent-disposition: form-data; name=\"file\"; filename=\"file\"\r\ncontent-type: application/octet-stream\r\n\r\n"
        );
        let body = [head.as_bytes(), bytes, format!("\r\n--{BOUNDARY}--\r\n").as_bytes()].concat();
        let request = ServiceRequest {
            url: self.files(machine, path),
            headers,
            body: Some(body),
            time_limit: Some(self.options.call_limit),
        };
        self.ask(request, "The file was not copied").await.map(drop)
    }

    pub(super) async fn download(&self, machine: &Machine, path: &str) -> Result<Vec<u8>, String> {
        let request = ServiceRequest {
            url: self.files(machine, path),
            headers: self.headers(machine, ENVD_PORT),
            body: None,
            time_limit: Some(self.options.call_limit),
        };
        Ok(self.ask(request, "The file was not copied").await?.body)
    }

    async fn ask(&self, request: ServiceRequest, consequence: &str) -> Result<Fetched, String> {
        let answer = self.options.egress.ask_service(request).await;
        let answer = answer.map_err(|error| format!("{consequence}: {error}."))?;
        if answer.is_success() { Ok(answer) } else { Err(refused(consequence, &answer)) }
    }

    fn account_headers(&self) -> Vec<(String, String)> {
        vec![
            ("x-api-key".to_owned(), self.options.api_key.clone()),
            ("content-type".to_owned(), "application/json".to_owned()),
        ]
    }

    fn headers(&self, machine: &Machine, port: u16) -> Vec<(String, String)> {
        let mut headers = vec![
            ("e2b-sandbox-id".to_owned(), machine.id.clone()),
            ("e2b-sandbox-port".to_owned(), port.to_string()),
        ];
        headers.extend(machine.token.as_ref().map(|token| ("x-access-token".to_owned(), token.clone())));
        headers
    }

    fn url(&self, machine: &Machine, port: u16, path: &str) -> String {
        match &self.options.sandbox_url {
            Some(all) => format!("{}{path}", all.trim_end_matches('/')),
            None => {
                let domain = machine.domain.as_deref().unwrap_or(&self.options.domain);
                format!("https://{port}-{}.{domain}{path}", machine.host_id)
            }
        }
    }

    fn files(&self, machine: &Machine, path: &str) -> String {
        let query = form_urlencoded::Serializer::new(String::new())
            .append_pair("path", path)
            .append_pair("username", "user")
            .finish();
        format!("{}?{query}", self.url(machine, ENVD_PORT, "/files"))
    }
}

fn refused(consequence: &str, answer: &Fetched) -> String {
    let told = match serde_json::from_slice::<Refusal>(&answer.body) {
        Ok(refusal) => refusal.message,
        Err(_) => String::from_utf8_lossy(&answer.body).trim().to_owned(),
    };
    let told: String = told.chars().take(LONGEST_ERROR).collect();
    let remedy = match answer.status {
        401 | 403 => " Check E2B_API_KEY.",
        404 | 502 => " The sandbox may have ended: make a new one with create_sandbox.",
        _ => "",
    };
    let told = if told.is_empty() { String::new() } else { format!(" ({told})") };
    format!("{consequence}: the service answered with status {}{told}.{remedy}", answer.status)
}

/// What the lines of an answer say of a cell. Lines of kinds that are not known say nothing.
fn cell(body: &[u8]) -> Cell {
    let mut cell = Cell::default();
    for line in body.split(|byte| *byte == b'\n') {
        let Ok(message) = serde_json::from_slice::<Value>(line) else { continue };
        let text = |key: &str| message.get(key).and_then(Value::as_str).unwrap_or_default();
        match text("type") {
            "stdout" | "stderr" => cell.output.push_str(text("text")),
            "result" => {
                new_line(&mut cell.output);
                match text("text") {
                    "" => cell.output.push_str("[a result that is no text]"),
                    shown => cell.output.push_str(shown),
                }
                let pictures = ["png", "jpeg", "svg"]
                    .iter()
                    .any(|kind| message.get(*kind).is_some_and(Value::is_string));
                if pictures {
                    cell.output
                        .push_str(" [a picture, which is not shown here; save it to a file to look at it]");
                }
            }
            "error" => {
                cell.failed = true;
                new_line(&mut cell.output);
                let traceback = text("traceback");
                if traceback.is_empty() {
                    cell.output.push_str(&format!("{}: {}", text("name"), text("value")));
                } else {
                    cell.output.push_str(traceback);
                }
            }
            _ => {}
        }
    }
    cell
}

fn new_line(output: &mut String) {
    if !output.is_empty() && !output.ends_with('\n') {
        output.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_read_line_by_line() {
        let body = b"{\"type\":\"stdout\",\"text\":\"a\\n\"}\nnoise\n{\"type\":\"result\",\"text\":\"4\",\"is_main_result\":true}\n{\"type\":\"error\",\"name\":\"ValueError\",\"value\":\"x\",\"traceback\":\"\"}\n{\"type\":\"end_of_execution\"}\n";
        assert_eq!(cell(body), Cell { output: "a\n4\nValueError: x".into(), failed: true });
        assert_eq!(
            cell(b"{\"type\":\"result\",\"text\":\"<Figure>\",\"png\":\"AAAA\"}").output,
            "<Figure> [a picture, which is not shown here; save it to a file to look at it]"
        );
    }
}
