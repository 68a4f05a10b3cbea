//! What is wrong is told: key, place, what was expected, what was probably meant.

use std::fs;

use pipeline::config::{ConfigErrors, check, resolve};

use super::support::Case;

/// A case, the kind and place of its only error, and words that its text holds.
fn check_one(case: &Case, kind: &str, place: &str, words: &[&str]) {
    let errors = case.errors();
    let text = case.plain(&ConfigErrors(errors.clone()).to_string());
    assert_eq!(errors.len(), 1, "{:?}: {text}", case.sources.sets);
    assert_eq!(errors[0].kind(), kind, "{text}");
    let written_at = case.plain(errors[0].written_at().unwrap_or_default());
    assert_eq!(written_at, place, "{text}");
    for word in words {
        assert!(text.contains(word), "no `{word}` in: {text}");
    }
}

/// One file `agent/mine.yaml`, chosen.
fn agent(text: &str) -> Case {
    Case::new(&[("agent/mine.yaml", text)]).agent("mine")
}

fn llm(text: &str) -> Case {
    Case::new(&[("llm/mine.yaml", text)]).llm("mine")
}

fn config(text: &str) -> Case {
    Case::new(&[("config.yaml", text)])
}

#[test]
fn broken_yaml_has_its_line() {
    for (text, place, words) in [
        ("main_agent:\n  max_turns: 5\n tools: [a]\n", "conf/agent/mine.yaml:3:2", ""),
        ("a: [1, 2\n", "conf/agent/mine.yaml:2:1", ""),
        ("limits: {wall: 1\ntoken_limit: 3\n", "conf/agent/mine.yaml:2:12", ""),
        ("a: \"open\nb: c\n", "conf/agent/mine.yaml:1:4", ""),
        ("main_agent:\n\tmax_turns: 5\n", "conf/agent/mine.yaml:2:1", "blanks, not with tabs"),
        ("token_limit: @x\n", "conf/agent/mine.yaml:1:14", "quote"),
        ("token_limit: *x\n", "conf/agent/mine.yaml:1:14", ""),
        ("just words\n", "conf/agent/mine.yaml:1", "keys and values"),
        ("- a\n- b\n", "conf/agent/mine.yaml:1", "a list"),
        ("token_limit: 1\n---\ntoken_limit: 2\n", "conf/agent/mine.yaml:2:1", "second document"),
        ("token_limit: !python/none x\n", "conf/agent/mine.yaml:1:14", "tag"),
    ] {
        let case = agent(text);
        let kind = if text.starts_with(['j', '-']) { "wrong_type" } else { "syntax" };
        check_one(&case, kind, place, &[words]);
    }
    check_one(
        &agent("token_limit: 1\n# two\ntoken_limit: 2\n"),
        "duplicate_key",
        "conf/agent/mine.yaml:3:1",
        &["token_limit", "line 1"],
    );
}

#[test]
fn a_file_that_is_no_text_is_told() {
    let case = agent("");
    fs::write(case.path("conf/agent/mine.yaml"), b"token_limit: 1\nprompt_style: \xff\xfe\n").unwrap();
    check_one(&case, "syntax", "conf/agent/mine.yaml:2", &["UTF-8"]);
    fs::remove_file(case.path("conf/agent/mine.yaml")).unwrap();
    fs::create_dir(case.path("conf/agent/mine.yaml")).unwrap();
    check_one(&case, "unreadable", "--agent", &["agent/mine.yaml"]);
}

/// Key and value; what the error says. The same in a file, in a variable and with `--set`.
const WRONG: [(&str, &str, &str, &str); 33] = [
    (
        "agent.main_agent.max_turns",
        "lots",
        "wrong_type",
        "expected a whole number from 0 to 4294967295, found the text `lots`",
    ),
    ("agent.main_agent.max_turns", "-1", "wrong_type", "found `-1`"),
    ("agent.main_agent.max_turns", "4294967296", "wrong_type", "found `4294967296`"),
    ("agent.main_agent.max_turns", "2.5", "wrong_type", "found `2.5`"),
    ("agent.main_agent.max_turns", "[1]", "wrong_type", "found a list"),
    ("agent.main_agent.max_turns", "{a: 1}", "wrong_type", "found keys and values"),
    ("agent.main_agent.max_turns", "", "wrong_type", "found nothing. Leave the key out"),
    ("agent.main_agent.max_turns", "0", "out_of_range", "1 or more, found `0`"),
    ("agent.main_agent.tools", "library", "wrong_type", "expected a list"),
    (
        "agent.main_agent.tool_blacklist",
        "[[a, b, c]]",
        "wrong_type",
        "expected a list of 2, found a list of 3",
    ),
    ("agent.main_agent.tool_blacklist", "[a]", "wrong_type", "expected a list of 2, found the text `a`"),
    ("agent.main_agent", "5", "wrong_type", "keys and values (such as max_turns"),
    ("agent.retry_with_summary", "maybe", "wrong_type", "expected true or false, found the text `maybe`"),
    ("agent.keep_tool_result", "-2", "out_of_range", "-1 (all) or more"),
    ("agent.tool_calls_per_turn", "paralel", "unknown_name", "Did you mean `parallel`?"),
    ("agent.answer_format", "poem", "unknown_name", "boxed, report"),
    ("agent.prompt_style", "[plain]", "wrong_type", "one of plain, example"),
    ("agent.limits.cost", "0", "out_of_range", "above 0"),
    ("agent.limits.wall", "1h", "wrong_type", "expected a number, found the text `1h`"),
    ("agent.llm_retry_pause", "-1", "out_of_range", "0 or more"),
    ("agent.token_limit", "80k", "wrong_type", "expected a whole number, 0 or more"),
    ("agent.sub_agents.browser.tools", "[library]", "out_of_range", "begins with `agent-`"),
    ("agent.tool_selection", "[{from_turn: 1}]", "out_of_range", "how many tools are shown"),
    ("llm.temperature", "warm", "wrong_type", "expected a number"),
    ("llm.temperature", "3", "out_of_range", "from 0 to 2, found `3`"),
    ("llm.base_url", "localhost:8000", "out_of_range", "http:// or https://"),
    ("llm.max_context_length", "4096", "out_of_range", "above llm.max_tokens (4096)"),
    ("llm.retries.max_tries", "0", "out_of_range", "1 or more"),
    ("llm.stop_after_call", "true", "out_of_range", "agent.tool_calls_per_turn: first"),
    ("llm.engine", "openai_response", "unknown_name", "Did you mean `openai_responses`?"),
    ("tools.call_limit", "3600", "out_of_range", "at most 1200"),
    ("tools.python.sandbox", "docker", "unknown_name", "auto, none"),
    ("benchmark.judge.id", "equivalance", "unknown_name", "Did you mean `equivalence`?"),
];

#[test]
fn wrong_values_are_told_in_every_layer() {
    for (key, value, kind, words) in WRONG {
        let keys: Vec<&str> = key.split('.').collect();
        let mut text = String::new();
        for (depth, key) in keys.iter().enumerate() {
            text.push_str(&format!(
                "{}{key}:{}",
                "  ".repeat(depth),
                if depth + 1 == keys.len() { " " } else { "\n" }
            ));
        }
        text.push_str(value);
        let line = keys.len();
        // A name that no agent can have is at fault where the agent begins, a bad item in its list.
        let path = match (key, value) {
            ("agent.sub_agents.browser.tools", _) => "agent.sub_agents.browser",
            ("agent.main_agent.tool_blacklist", _) => "agent.main_agent.tool_blacklist[0]",
            ("agent.tool_selection", _) => "agent.tool_selection[0]",
            _ => key,
        };
        let line = if path.ends_with("browser") { line - 1 } else { line };

        let case = Case::new(&[]).file("user.yaml", &text);
        check_one(&case, kind, &format!("user.yaml:{line}"), &[words, path]);
        let case = Case::new(&[]).set(&format!("{key}={value}"));
        check_one(&case, kind, &format!("--set {key}"), &[words, path]);
        let variable = format!("FATHOM_{}", key.to_uppercase().replace('.', "__"));
        let case = Case::new(&[]).variable(&variable, value);
        check_one(&case, kind, &format!("variable {variable}"), &[words, path]);
    }
}

#[test]
fn unknown_keys_are_told_with_the_nearest() {
    for (key, hint) in [
        ("llmm.model_name", "Did you mean `llm`?"),
        ("agents.token_limit", "Did you mean `agent`?"),
        ("agent.main_agent.max_turn", "Did you mean `max_turns`?"),
        ("agent.main_agnet.max_turns", "Did you mean `main_agent`?"),
        ("agent.max_turns", "`agent.main_agent.max_turns`"),
        ("agent.tools", "Did you mean `agent.main_agent.tools` or `tools`?"),
        ("agent.keep_tool_results", "Did you mean `keep_tool_result`?"),
        ("agent.limits.money", "there are wall, working_time, tokens, cost"),
        ("llm.openai_base_url", "Did you mean `base_url`?"),
        ("llm.model", "Did you mean `model_name`?"),
        ("llm.retries.max_retries", "Did you mean `max_tries`?"),
        ("benchmark.data.field_mapping.task_id", "Did you mean `task_id_field`?"),
        ("benchmark.execution.max_concurency", "Did you mean `max_concurrent`?"),
        ("tools.python.sandbx", "Did you mean `sandbox`?"),
        ("temperature", "`llm.temperature`"),
        ("agent.xyzzy", "there are main_agent, sub_agents"),
    ] {
        check_one(
            &Case::new(&[]).set(&format!("{key}=1")),
            "unknown_key",
            &format!("--set {key}"),
            &[hint, "there is no such key"],
        );
        if key.contains('.') {
            let variable = format!("FATHOM_{}", key.to_uppercase().replace('.', "__"));
            check_one(
                &Case::new(&[]).variable(&variable, "1"),
                "unknown_key",
                &format!("variable {variable}"),
                &[hint],
            );
        }
    }
    check_one(
        &agent("# one\nmain_agent:\n  # three\n  tools:\n    - a\n  max_turn: 5 # six\n"),
        "unknown_key",
        "conf/agent/mine.yaml:6",
        &["`agent.main_agent.max_turn`", "max_turns"],
    );
    check_one(
        &config("defaults: []\n\"project-name\": x\n"),
        "unknown_key",
        "conf/config.yaml:2",
        &["project-name"],
    );
}

#[test]
fn every_error_is_told_at_once() {
    let case = Case::new(&[
        ("config.yaml", "defaults:\n  - agent: mine\n  - llm: mine\nagnet: {}\n"),
        ("agent/mine.yaml", "main_agent:\n  max_turns: many\n  tools: [a, [b], {c: d}]\n  colour: red\nkeep_tool_result: -5\n"),
        ("llm/mine.yaml", "model_name: ${env:NOWHERE}\ntemperature: hot\n"),
    ])
    .set("llm.top_p=2")
    .set("nonsense")
    .variable("FATHOM_LLM__MAX_TOKENS", "few")
    .variable("FATHOM_LOGS", "debug");
    let mut places: Vec<String> = case
        .errors()
        .iter()
        .map(|error| format!("{} {}", error.kind(), case.plain(error.written_at().unwrap_or_default())))
        .collect();
    places.sort();
    assert_eq!(
        places,
        [
            "environment variable FATHOM_LOGS",
            "interpolation conf/llm/mine.yaml:1",
            "out_of_range --set llm.top_p",
            "out_of_range conf/agent/mine.yaml:5",
            "set --set nonsense",
            "unknown_key conf/agent/mine.yaml:4",
            "unknown_key conf/config.yaml:4",
            "wrong_type conf/agent/mine.yaml:2",
            "wrong_type conf/agent/mine.yaml:3",
            "wrong_type conf/agent/mine.yaml:3",
            "wrong_type conf/llm/mine.yaml:2",
            "wrong_type variable FATHOM_LLM__MAX_TOKENS",
        ]
    );
}

#[test]
fn missing_files_name_the_nearest() {
    check_one(
        &Case::new(&[]).agent("reserch"),
        "missing_file",
        "--agent",
        &["agent/reserch.yaml", "Did you mean `research`?"],
    );
    check_one(&Case::new(&[]).llm("gpt5"), "missing_file", "--llm", &["Did you mean `gpt-5`?", "built-in"]);
    check_one(&Case::new(&[]).benchmark("gaia"), "missing_file", "--benchmark", &["gaia-validation"]);
    check_one(
        &Case::new(&[]).set("llm=nothing-like-it"),
        "missing_file",
        "--set llm",
        &["There are:", "ollama"],
    );
    check_one(
        &Case::new(&[]).variable("FATHOM_LLM", "olama"),
        "missing_file",
        "variable FATHOM_LLM",
        &["`ollama`"],
    );
    check_one(&Case::new(&[]).agent("../agent/standard"), "missing_file", "--agent", &["standard"]);
    check_one(
        &Case::new(&[]).file("user.yaml", "defaults:\n  - llm: opnai\n"),
        "missing_file",
        "user.yaml:2",
        &["`openai`"],
    );
    check_one(
        &config("defaults:\n  - agent: standard\n  - llm: nowhere\n"),
        "missing_file",
        "conf/config.yaml:3",
        &["llm/nowhere.yaml", "neither in conf nor built in"],
    );
    check_one(&agent("defaults: [base]\n"), "missing_file", "conf/agent/mine.yaml:1", &["agent/base.yaml"]);
    let mut case = Case::new(&[]);
    case.sources.conf_dir = Some(case.path("nowhere"));
    check_one(&case, "missing_file", "configuration directory nowhere", &["no such directory"]);
    fs::write(case.path("nowhere"), "").unwrap();
    check_one(&case, "missing_file", "configuration directory nowhere", &["no directory"]);
}

#[test]
fn defaults_lists_that_cannot_be() {
    for (text, kind, line, words) in [
        ("defaults: standard\n", "wrong_type", 1, "`defaults` is a list"),
        ("defaults:\n  - modle: x\n", "defaults", 2, "the groups are llm, agent, benchmark"),
        ("defaults:\n  - agnet: x\n", "defaults", 2, "Did you mean `agent`?"),
        ("defaults:\n  - agent: {a: b}\n", "wrong_type", 2, "name of a file"),
        ("defaults:\n  - [a, b]\n", "wrong_type", 2, "`group: name`"),
        ("defaults:\n  - agent: standard\n    llm: auto\n", "wrong_type", 2, "one key"),
        ("defaults:\n  - _self_\n  - _self_\n", "defaults", 1, "more than once"),
        ("defaults:\n  - agent@sub: standard\n", "defaults", 2, "write `agent`"),
        ("defaults:\n  - overide agent: standard\n", "defaults", 2, "`overide`"),
        ("defaults:\n  -\n", "wrong_type", 2, "nothing"),
    ] {
        check_one(&config(text), kind, &format!("conf/config.yaml:{line}"), &[words]);
    }
    check_one(&agent("defaults:\n  - llm: auto\n"), "defaults", "conf/agent/mine.yaml:2", &["Write `/llm`"]);
    check_one(
        &Case::new(&[]).file("user.yaml", "defaults: [standard]\n"),
        "defaults",
        "user.yaml:1",
        &["`standard`"],
    );
    check_one(
        &Case::new(&[]).file("user.yaml", "defaults: [{llm: [auto, openai]}]\n"),
        "defaults",
        "user.yaml:1",
        &["one name"],
    );
}

#[test]
fn circles_are_found() {
    check_one(
        &agent("defaults:\n  - mine\n"),
        "cycle",
        "conf/agent/mine.yaml:2",
        &["agent/mine → agent/mine"],
    );
    let case = Case::new(&[
        ("agent/a.yaml", "defaults: [b]\n"),
        ("agent/b.yaml", "defaults: [c]\n"),
        ("agent/c.yaml", "# c\ndefaults:\n  - _self_\n  - a\n"),
    ]);
    check_one(&case.agent("a"), "cycle", "conf/agent/c.yaml:4", &["agent/a → agent/b → agent/c → agent/a"]);
    check_one(&config("defaults: [config]\n"), "cycle", "conf/config.yaml:1", &["config → config"]);
    let names: Vec<(String, String)> =
        (0..60).map(|n| (format!("agent/n{n}.yaml"), format!("defaults: [n{}]\n", n + 1))).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    check_one(&Case::new(&files).agent("n0"), "defaults", "conf/agent/n31.yaml:1", &["more than 32"]);
    // Every file names the next one twice: 2^60 without a bound.
    let names: Vec<(String, String)> =
        (0..30).map(|n| (format!("agent/n{n}.yaml"), format!("defaults: [n{0}, n{0}]\n", n + 1))).collect();
    let files: Vec<(&str, &str)> = names.iter().map(|(name, text)| (name.as_str(), text.as_str())).collect();
    assert!(!Case::new(&files).agent("n0").errors().is_empty());
}

#[test]
fn interpolations_that_cannot_be() {
    for (text, kind, words) in [
        ("model_name: ${env:NOWHERE}\n", "interpolation", "NOWHERE is not set"),
        ("model_name: a-${env:EMPTY}-b\n", "interpolation", "EMPTY is set and empty"),
        ("model_name: ${env:MODLE}\n", "interpolation", "There is MODEL"),
        ("model_name: ${env:MODEL\n", "interpolation", "not closed"),
        ("model_name: ${provider}\n", "interpolation", "names no source"),
        ("model_name: ${file:x}\n", "interpolation", "`file` is no source"),
        ("model_name: ???\n", "missing_value", "--set llm.model_name=VALUE"),
        ("max_tokens: ${env:MODEL}\n", "wrong_type", "found the text `m`"),
        ("max_tokens: ${env:NOWHERE,many}\n", "wrong_type", "found the text `many`"),
        ("max_tokens: ${env:NOWHERE,}\n", "wrong_type", "found nothing"),
    ] {
        let case = llm(text).variable("MODEL", "m").variable("EMPTY", "");
        check_one(&case, kind, "conf/llm/mine.yaml:1", &[words]);
    }
    check_one(
        &llm("# one\nextra_body:\n  a:\n    - b\n    - ${env:NOWHERE}\n"),
        "interpolation",
        "conf/llm/mine.yaml:5",
        &["llm.extra_body.a[1]"],
    );
}

#[test]
fn variables_that_nobody_reads() {
    for (variable, words) in [
        ("FATHOM_LLM_BASE_URL", "Did you mean `FATHOM_LLM"),
        ("FATHOM_LOGG", "Did you mean `FATHOM_LOG`?"),
        ("FATHOM_", "two underscores"),
        ("FATHOM_XYZZY_PLUGH", "FATHOM_SECTION__KEY"),
        ("FATHOM_LLM__", "no name"),
        ("FATHOM____", "no name"),
    ] {
        check_one(
            &Case::new(&[]).variable(variable, "1"),
            "environment",
            &format!("variable {variable}"),
            &[],
        );
        let text = Case::new(&[]).variable(variable, "1").errors()[0].to_string();
        assert!(text.contains(words) || text.contains("FATHOM_SECTION__KEY"), "{text}");
    }
    for variable in ["FATHOM_LOG", "FATHOM_LOCAL_SERVERS", "fathom_llm__x", "FATHOMLESS", "PATH"] {
        Case::new(&[]).variable(variable, "1").resolved();
    }
}

#[test]
fn dotenv_lines_that_cannot_be() {
    for (text, line) in [
        ("A=1\n# note\nno equals sign\nB=2\n", 3),
        ("A=1\nB=two words\n", 2),
        ("A=1\n\nB=\"open\n", 3),
        ("1A=1\n", 1),
        ("A=1\nC='x'y z'\n", 2),
    ] {
        check_one(&Case::new(&[]).file(".env", text), "syntax", &format!(".env:{line}"), &["NAME=value"]);
    }
    check_one(
        &Case::new(&[]).file(".env", "# keys\nOPENAI_API_KEY=k\nFATHOM_LLM__MAX_TOKENS=few\n"),
        "wrong_type",
        "variable FATHOM_LLM__MAX_TOKENS (.env:3)",
        &["llm.max_tokens"],
    );
}

#[test]
fn settings_that_cannot_be_read() {
    for (set, place, words) in [
        ("agent.token_limit", "--set agent.token_limit", "key.path=value"),
        ("=5", "--set ", "empty"),
        ("agent..token_limit=5", "--set agent..token_limit", "empty"),
        ("agent.=5", "--set agent.", "empty"),
        ("agent.main_agent.tools[0]=x", "--set agent.main_agent.tools[0]", "whole list"),
        ("agent.\"open=5", "--set agent.\"open", "not closed"),
        ("agent.\"a\"b=5", "--set agent.\"a\"b", "after the closing quote"),
        ("agent.main_agent.tools=[a", "--set agent.main_agent.tools", "Quote it"),
        ("llm.model_name=a: b: c", "--set llm.model_name", "Quote it"),
        ("llm.model_name=\"open", "--set llm.model_name", "Quote it"),
        ("llm.model_name=@x", "--set llm.model_name", "quote"),
    ] {
        check_one(&Case::new(&[]).set(set), "set", place, &[words]);
    }
    check_one(
        &Case::new(&[]).set("llm.max_tokens='5'"),
        "wrong_type",
        "--set llm.max_tokens",
        &["Quotes make text of it"],
    );
    check_one(&Case::new(&[]).set("llm=[a]"), "wrong_type", "--set llm", &["keys and values"]);
    check_one(
        &Case::new(&[]).agent("research").set("agent=standard"),
        "conflict",
        "--agent",
        &["`research`", "--set agent"],
    );
}

#[test]
fn the_check_finds_what_is_covered_and_what_is_not_chosen() {
    let case = Case::new(&[
        ("agent/mine.yaml", "main_agent:\n  max_turns: many\n  tools: [library, tool-pyton, own]\n"),
        ("agent/other.yaml", "token_limit: x\n"),
        ("llm/strange.yaml", "provider: opnai\n"),
        ("llm/fine.yaml", "provider: openai\nmodel_name: ${env:NOWHERE}\n"),
        ("prompts/system.md", "mine"),
        ("prompts/tool_use/mcp_xml.md", "mine"),
        ("prompts/sytem.md", "mine"),
    ])
    .agent("mine")
    .set("agent.main_agent.max_turns=5")
    .set("llm.model_name=x");
    resolve(&case.sources).unwrap();
    let report = check(&case.sources, &["own".to_owned()]);
    let errors: Vec<String> = report.errors.iter().map(|error| case.plain(&error.to_string())).collect();
    assert_eq!(errors.len(), 2, "{errors:?}");
    assert!(
        errors[0].contains("max_turns` in conf/agent/mine.yaml:2: expected a whole number"),
        "{errors:?}"
    );
    assert!(
        errors[1].contains("tools[1]` in conf/agent/mine.yaml:3: there is no tool server `tool-pyton`"),
        "{errors:?}"
    );
    assert!(errors[1].contains("Did you mean `tool-python`?"), "{errors:?}");
    let others: Vec<(&str, usize)> =
        report.own_presets.iter().map(|preset| (preset.name.as_str(), preset.errors.len())).collect();
    assert_eq!(others, [("fine", 0), ("strange", 1), ("mine", 0), ("other", 1)]);
    let strange = report.own_presets[1].errors[0].to_string();
    assert!(
        case.plain(&strange)
            .starts_with("`llm.provider` in conf/llm/strange.yaml:1: there is no provider `opnai`")
    );
    assert!(strange.ends_with("Did you mean `openai`?"), "{strange}");
    assert_eq!(report.overridden_prompts, ["system.md", "tool_use/mcp_xml.md"]);
    assert_eq!(report.unknown_prompts, ["sytem.md"]);
    assert!(!report.is_good() && report.resolved.is_none());
}

#[test]
fn doubtful_values_are_warned_of() {
    let case = agent(
        "main_agent:\n  tools: [library, library]\n  tool_blacklist: [[tool-vqa, x]]\ntool_selection: [{server: nobody}]\n",
    );
    let warnings: Vec<String> = case.resolved().warnings.iter().map(|warning| case.plain(warning)).collect();
    assert_eq!(warnings.len(), 3, "{warnings:?}");
    assert!(
        warnings
            .iter()
            .any(|warning| warning.starts_with("`agent.main_agent.tools[1]` in conf/agent/mine.yaml:2"))
    );
    assert!(warnings.iter().any(|warning| warning.contains("`x` is hidden of `tool-vqa`")));
    assert!(warnings.iter().any(|warning| warning.contains("`nobody`")));
}

#[test]
fn an_error_is_one_paragraph_with_a_hint() {
    let errors = Case::new(&[]).set("agent.main_agent.max_turn=4").errors();
    assert_eq!(errors[0].key_path(), Some("agent.main_agent.max_turn"));
    assert!(errors[0].hint().is_some() && !errors[0].is_retryable());
    insta::assert_snapshot!(ConfigErrors(errors), @"`agent.main_agent.max_turn` in --set agent.main_agent.max_turn: there is no such key; there are max_turns, tools, tool_blacklist. Did you mean `max_turns`?");
}
