//! Files of desktop clients, good and broken.

use super::*;

fn lookup(name: &str) -> Option<String> {
    (name == "TOKEN").then(|| "s3cr3t".to_owned())
}

fn read(text: &str) -> Result<McpJson, ToolsError> {
    parse_mcp_json(text, "mcp.json", &lookup)
}

/// The servers that can be had, and why the others cannot.
fn sorted(read: McpJson) -> (Vec<ServerSpec>, Vec<(String, String, bool)>) {
    let mut others = Vec::new();
    let mut servers = Vec::new();
    for spec in read.servers {
        match spec.transport {
            Transport::Unavailable { reason, switched_off } => others.push((spec.name, reason, switched_off)),
            _ => servers.push(spec),
        }
    }
    (servers, others)
}

#[test]
fn files_of_other_clients_are_read() {
    let read = read(
        r#"{
          // comments and trailing commas are JSON5
          "mcpServers": {
            "files": {
              "command": "npx",
              "args": ["-y", "@modelcontextprotocol/server-filesystem", "/tmp"],
              "autoApprove": ["read_file"],
              "disabledTools": ["write_file"],
            },
            "remote": {
              "type": "streamableHttp",
              "url": "https://example.org/mcp",
              "headers": {"Authorization": "Bearer ${TOKEN}"},
              "timeout": 60,
            },
            "off": {"command": "x", "env": {"KEY": "${UNSET}"}, "disabled": true},
            "own": {command: 'python3', args: ['-m', 'x'], cwd: '/srv', env: {PORT: 80, T: '${env:TOKEN}'},
                    start_limit: 5, call_limit: 7.5, max_concurrency: 2},
          },
          "globalShortcut": "",
        }"#,
    )
    .unwrap();
    assert_eq!(read.notes, Vec::<String>::new());
    let (specs, others) = sorted(read);
    let expected = "mcp.json:16: mcpServers.off.disabled: it is switched off there";
    assert_eq!(others, [("off".to_owned(), expected.to_owned(), true)]);
    assert_eq!(specs.iter().map(|spec| spec.name.as_str()).collect::<Vec<_>>(), ["files", "remote", "own"]);
    match &specs[0].transport {
        Transport::Stdio { command, args, .. } => {
            assert_eq!((command.as_str(), args.len()), ("npx", 3));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(specs[0].disabled_tools, ["write_file"]);
    match &specs[1].transport {
        Transport::Http { url, headers, .. } => {
            assert_eq!(url, "https://example.org/mcp");
            assert_eq!(headers["Authorization"], "Bearer s3cr3t");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(specs[1].call_limit, Duration::from_secs(60));
    match &specs[2].transport {
        Transport::Stdio { env, cwd, .. } => {
            assert_eq!(env["PORT"], "80");
            assert_eq!(env["T"], "s3cr3t");
            assert_eq!(cwd.as_deref(), Some(std::path::Path::new("/srv")));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(specs[2].start_limit, Duration::from_secs(5));
    assert_eq!(specs[2].call_limit, Duration::from_millis(7500));
    assert_eq!(specs[2].max_concurrency, Some(2));
}

#[test]
fn an_editors_file_and_an_empty_one_are_read() {
    let read_in = read(r#"{"servers": {"a": {"type": "stdio", "command": "x"}}, "inputs": []}"#).unwrap();
    assert_eq!((read_in.servers.len(), read_in.notes), (1, Vec::new()));
    for (text, note) in [
        ("\u{feff}{mcpServers: {}}", "mcp.json:1: mcpServers: no server stands here"),
        ("{servers: {}}", "mcp.json:1: servers: no server stands here"),
    ] {
        let read_in = read(text).unwrap();
        assert_eq!((read_in.servers.len(), read_in.notes), (0, vec![note.to_owned()]));
    }
}

#[test]
fn faults_are_located() {
    for (text, expected) in [
        ("{\n  \"mcpServers\": {\n    \"a\" {}\n}}", "mcp.json:3:9: not valid JSON: expected colon"),
        ("", "mcp.json:1:1: not valid JSON: "),
        ("[]", "mcp.json: expected an object"),
        ("{\"mcpservers\":\n {}}", "mcp.json:1: mcpservers: unknown key: do you mean `mcpServers`?"),
        ("{\"other\": 1}", "mcp.json: there is no key `mcpServers`"),
        ("{\"mcpServers\": []}", "mcp.json:1: mcpServers: expected an object of servers, found a list"),
        ("{mcpServers: {\n a: 'x'}}", "mcp.json:2: mcpServers.a: expected an object, found a string"),
        ("{mcpServers: {\n a: {}}}", "mcp.json:2: mcpServers.a: a server needs `command`, or `url`"),
        (
            "{mcpServers: {\n a: {\n comand: 'x'}}}",
            "mcp.json:3: mcpServers.a.comand: unknown key: do you mean `command`?",
        ),
        (
            "{mcpServers: {a: {command: 3}}}",
            "mcp.json:1: mcpServers.a.command: expected a string, found a number",
        ),
        (
            "{mcpServers: {a: {command: 'x', args: '-v'}}}",
            "mcp.json:1: mcpServers.a.args: expected a list of strings, found a string",
        ),
        (
            "{mcpServers: {a: {command: ['x']}}}",
            "mcp.json:1: mcpServers.a.command: expected a string, found a list",
        ),
        ("{mcpServers: {a: {command: ' '}}}", "mcp.json:1: mcpServers.a.command: no program is named"),
        ("{mcpServers: {a: {type: 'http'}}}", "mcpServers.a: a server of the type `http` needs `url`"),
        (
            "{mcpServers: {a: {command: 'x', call_limit: 600000}}}",
            "mcpServers.a.call_limit: 600000 seconds are too long: 1200 at most",
        ),
        (
            "{mcpServers: {a: {command: 'x', timeout: -1}}}",
            "mcpServers.a.timeout: expected a number of seconds above 0",
        ),
        (
            "{mcpServers: {a: {command: 'x', disabled: 'no'}}}",
            "mcpServers.a.disabled: expected true or false, found a string",
        ),
        (
            "{mcpServers: {a: {command: 'x', max_concurrency: 0}}}",
            "mcpServers.a.max_concurrency: expected a whole number",
        ),
        (
            "{mcpServers: {a: {url: 'http://h/', serverUrl: 'http://h/'}}}",
            "mcpServers.a.serverUrl: says the same as `url`",
        ),
        (
            "{mcpServers: {a: {command: 'x'},\n b: {command: 'x'},\n a: {command: 'y'}}}",
            "mcp.json:3: mcpServers.a: the name stands in lines 1 and 3",
        ),
    ] {
        let problem = read(text).unwrap_err();
        assert!(problem.to_string().contains(expected), "{text}\n{problem}\n{expected}");
        assert!(!problem.is_retryable());
    }
}

#[test]
fn what_is_missing_around_the_file_is_no_fault_of_it() {
    for (text, expected) in [
        (
            "{mcpServers: {a: {command: 'x',\n\nenv: {\nKEY: '${UNSET}'}}}}",
            "mcp.json:4: mcpServers.a.env.KEY: the environment variable `UNSET` is not set",
        ),
        (
            "{servers: {a: {command: 'x', args: ['${input:key}']}}}",
            "mcp.json:1: servers.a.args: `${input:key}` cannot be filled in",
        ),
        (
            "{mcpServers: {a: {type: 'sse', url: 'http://h/sse'}}}",
            "mcp.json:1: mcpServers.a.type: the old HTTP+SSE",
        ),
        (
            "{mcpServers: {a: {type: 'ws', url: 'x'}}}",
            "mcpServers.a.type: unknown type `ws`: use `stdio` or `http`",
        ),
        (
            "{mcpServers: {a: {command: 'x', envFile: '/no/such/.env'}}}",
            "mcpServers.a.envFile: the file `/no/such/.env` cannot be read",
        ),
    ] {
        let text = text.replacen("a: {", "good: {command: 'y'}, a: {", 1);
        let (servers, others) = sorted(read(&text).unwrap());
        assert_eq!(servers.len(), 1, "{text}");
        let [(name, reason, switched_off)] = others.as_slice() else { panic!("{others:?}") };
        assert!(name == "a" && !switched_off && reason.contains(expected), "{text}\n{reason}");
    }
    // A fault of the file itself comes first.
    let text = "{mcpServers: {a: {command: '${UNSET}', call_limit: 'long'}}}";
    assert!(read(text).unwrap_err().to_string().contains("mcpServers.a.call_limit: expected a number"));
}

#[test]
fn what_is_read_over_is_noted() {
    for (text, expected) in [
        (
            "{mcpServers: {a: {command: 'x',\nqqq: 1}}}",
            "mcp.json:2: mcpServers.a.qqq: unknown key: known keys: command",
        ),
        (
            "{mcpServers: {a: {command: 'x', timout: 1}}}",
            "mcpServers.a.timout: unknown key: do you mean `timeout`?",
        ),
        (
            "{mcpServers: {a: {command: 'x', url: 'http://h/'}}}",
            "mcpServers.a.url: without effect for a server of the type `stdio`",
        ),
        (
            "{mcpServers: {a: {type: 'http', url: 'http://h/', env: {A: 'b'}}}}",
            "mcpServers.a.env: without effect for a server of the type `http`",
        ),
        ("{mcpServers: {a: {command: 'x', timeout: 60000}}}", "mcpServers.a.timeout: taken as 60 s"),
        (
            "{mcpServers: {a: {command: 'x'}}, servers: {}}",
            "mcp.json:1: servers: not read: the servers are taken from `mcpServers`",
        ),
    ] {
        let read = read(text).unwrap();
        assert!(read.notes.len() == 1 && read.notes[0].contains(expected), "{text}\n{:?}", read.notes);
        assert_eq!(sorted(read).0.len(), 1);
    }
}

#[test]
fn what_clients_write_is_accepted_without_a_word() {
    let written = r#"{"mcpServers": {
        "desktop": {"command": "npx", "args": ["-y", "x"], "env": {}},
        "code": {"type": "stdio", "command": "npx", "args": [], "env": {}},
        "remote": {"type": "http", "url": "https://h/mcp", "headers": {}, "oauth": {"clientId": "c"}},
        "assistant": {"command": "x", "args": [], "disabled": false, "autoApprove": [], "timeout": 60, "type": "stdio"},
        "other": {"type": "streamable-http", "url": "https://h/mcp", "headers": {}, "alwaysAllow": ["a"], "disabled": false},
        "shell": {"httpUrl": "https://h/mcp", "timeout": 30, "trust": true, "includeTools": ["a"], "excludeTools": ["b"]},
        "surf": {"serverUrl": "https://h/mcp", "disabledTools": []},
        "form": {"name": "n", "isActive": true, "type": "stdio", "command": "x", "args": [], "url": "", "headers": {}}
    }, "globalShortcut": ""}"#;
    let read = read(written).unwrap();
    assert_eq!(read.notes, Vec::<String>::new());
    assert_eq!(sorted(read).0.len(), 8);
}

#[cfg(feature = "http")]
#[test]
fn addresses_are_checked() {
    let problem = read("{mcpServers: {a: {url: 'ftp://h/'}}}").unwrap_err().to_string();
    assert!(problem.contains("mcpServers.a.url: the address has the scheme `ftp`"), "{problem}");
}

#[test]
fn depth_is_bounded() {
    let text = format!("{{mcpServers: {}", "[".repeat(200_000));
    assert!(read(&text).unwrap_err().to_string().contains("nested deeper than 100 levels"));
}

proptest::proptest! {
    #[test]
    fn anything_is_read_or_refused(text in r#"(\{|\}|\[|\]|:|,|'|"|/\*|\*/|//|\\|\n|mcpServers|a|command|env|\$\{A\}|1|true|\u{2028}|ä| ){0,40}"#) {
        let _ = read(&text);
        let _ = read(&format!("{{mcpServers: {{a: {{command: 'x', {text}}}}}}}"));
    }
}
