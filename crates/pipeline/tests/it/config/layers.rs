//! Which layer wins, and that the origin says so.

use std::fs;

use pipeline::config::{ConfigSources, find_conf_dir, resolve};

use super::support::{Case, value, variables};

/// One place after the other sets the same key; the last one that does wins, and is named.
#[test]
fn later_layers_win() {
    let files = [
        ("config.yaml", "defaults:\n  - agent: base\n  - _self_\nagent:\n  token_limit: 2\n"),
        ("agent/base.yaml", "token_limit: 1\n"),
        ("agent/chosen.yaml", "defaults:\n  - under\ntoken_limit: 4\n"),
        ("agent/under.yaml", "token_limit: 3\n"),
    ];
    let steps: [(&str, u64, &str); 8] = [
        ("nothing", 80_000, "default"),
        ("base", 1, "conf/agent/base.yaml:1"),
        ("config", 2, "conf/config.yaml:5"),
        ("under", 3, "conf/agent/under.yaml:1"),
        ("chosen", 4, "conf/agent/chosen.yaml:3"),
        ("user", 5, "user.yaml:2"),
        ("dotenv", 6, "variable FATHOM_AGENT__TOKEN_LIMIT (.env:2)"),
        ("set", 8, "--set agent.token_limit"),
    ];
    for (index, (step, expected, origin)) in steps.into_iter().enumerate() {
        let has = |name: &str| steps.iter().position(|(known, ..)| *known == name).unwrap() <= index;
        // A file below the step in question does not name the key.
        let mut case = Case::new(&files.map(|(name, text)| {
            let layer = match name {
                "config.yaml" => "config",
                "agent/base.yaml" => "base",
                "agent/under.yaml" => "under",
                _ => "chosen",
            };
            (
                name,
                if has(layer) {
                    text
                } else {
                    text.split("token_limit").next().unwrap().trim_end_matches("agent:\n  ")
                },
            )
        }));
        if has("under") {
            case = case.agent("chosen");
        }
        if has("user") {
            case = case.file("user.yaml", "agent:\n  token_limit: 5\n");
        }
        if has("dotenv") {
            case = case.file(".env", "# keys\nFATHOM_AGENT__TOKEN_LIMIT=6\n");
        }
        if has("set") {
            case = case.set("agent.token_limit=7").set("agent.token_limit=8");
        }
        let resolved = case.resolved();
        assert_eq!(resolved.config.agent.token_limit, expected, "{step}");
        let shown = case.plain(&resolved.origin_of("agent.token_limit").to_string());
        assert_eq!(shown, origin, "{step}");
    }
}

#[test]
fn the_environment_wins_over_dotenv_and_the_first_file_over_the_second() {
    let case =
        Case::new(&[]).file(".env", "FATHOM_LLM__MODEL_NAME=one\nexport FATHOM_LLM__BASE_URL='http://a'\n");
    fs::write(case.path("second.env"), "FATHOM_LLM__MODEL_NAME=two\nOTHER_API_KEY=k\n").unwrap();
    let mut sources = case.sources.clone();
    sources.dotenv.push(case.path("second.env"));
    sources.dotenv.push(case.path("nowhere.env"));
    let resolved = resolve(&sources).unwrap();
    assert_eq!(resolved.config.llm.model_name, "one");
    assert_eq!(resolved.config.llm.base_url.as_deref(), Some("http://a"));
    assert_eq!(resolved.environment.get("OTHER_API_KEY"), Some("k"));
    sources.environment = variables(&[("FATHOM_LLM__MODEL_NAME", "real")]);
    let resolved = resolve(&sources).unwrap();
    assert_eq!(resolved.config.llm.model_name, "real");
    assert_eq!(resolved.origin_of("llm.model_name").to_string(), "variable FATHOM_LLM__MODEL_NAME");
}

/// The text of a value decides nothing; the type of its key does.
#[test]
fn a_value_reads_as_the_key_wants_it() {
    for (key, written, expected) in [
        ("llm.model_name", "1.10", "\"1.10\""),
        ("llm.model_name", "12345", "\"12345\""),
        ("llm.model_name", "true", "\"true\""),
        ("llm.model_name", "0x1f", "\"0x1f\""),
        ("llm.model_name", "1e5", "\"1e5\""),
        ("llm.model_name", "'007'", "\"007\""),
        ("llm.provider", "1.0", "\"1.0\""),
        ("benchmark.name", "2025", "\"2025\""),
        ("llm.base_url", "http://127.0.0.1:8000/v1", "\"http://127.0.0.1:8000/v1\""),
        ("llm.base_url", "", "null"),
        ("llm.base_url", "null", "null"),
        ("llm.temperature", "1", "1.0"),
        ("llm.temperature", "5e-1", "0.5"),
        ("llm.max_tokens", "16_384", "16384"),
        ("llm.top_k", "-1", "-1"),
        ("agent.retry_with_summary", "False", "false"),
        ("agent.retry_with_summary", "no", "false"),
        ("agent.main_agent.tools", "[library, \"tool-python\"]", "[\"library\",\"tool-python\"]"),
        ("agent.main_agent.tools", "", "[]"),
        (
            "agent.main_agent.tool_blacklist",
            "[[library, read_document]]",
            "[[\"library\",\"read_document\"]]",
        ),
        ("agent.tool_calls_per_turn", "parallel", "\"parallel\""),
        (
            "agent.limits",
            "{wall: 60, cost: 1.5}",
            "{\"wall\":60.0,\"working_time\":null,\"tokens\":null,\"cost\":1.5}",
        ),
        ("agent.limits.tokens", "1000000", "1000000"),
        (
            "llm.extra_body",
            "{a: 1.50, b: [x, null, true], c: {d: '1'}}",
            "{\"a\":1.5,\"b\":[\"x\",null,true],\"c\":{\"d\":\"1\"}}",
        ),
        ("tools.python.sandbox", "none", "\"none\""),
        ("benchmark.judge.llm.model_name", "4.1", "\"4.1\""),
    ] {
        let resolved = Case::new(&[]).set(&format!("{key}={written}")).resolved();
        assert_eq!(value(&resolved, key), expected, "--set {key}={written}");
        // The origins of a map are those of its values.
        let part = if written.starts_with('{') {
            format!("{key}.{}", &written[1..written.find(':').unwrap()])
        } else {
            key.to_owned()
        };
        assert_eq!(resolved.origin_of(&part).to_string(), format!("--set {key}"), "{key}");
        if written.starts_with('\'') {
            continue;
        }
        let variable = format!("FATHOM_{}", key.to_uppercase().replace('.', "__"));
        let resolved = Case::new(&[]).variable(&variable, written).resolved();
        assert_eq!(value(&resolved, key), expected, "{variable}={written}");
        assert_eq!(resolved.origin_of(&part).to_string(), format!("variable {variable}"), "{key}");
    }
}

#[test]
fn variables_find_keys_with_hyphens() {
    let resolved = Case::new(&[])
        .agent("multi_agent")
        .variable("FATHOM_AGENT__SUB_AGENTS__AGENT_BROWSING__MAX_TURNS", "7")
        .resolved();
    assert_eq!(resolved.config.agent.sub_agents["agent-browsing"].max_turns, 7);
    assert_eq!(resolved.config.agent.sub_agents.len(), 1);
}

#[test]
fn text_that_looks_like_a_list_stays_text_where_text_is_wanted() {
    let resolved = Case::new(&[]).variable("FATHOM_LLM__MODEL_NAME", "[odd, name]").resolved();
    assert_eq!(resolved.config.llm.model_name, "[odd, name]");
}

#[test]
fn maps_are_merged_and_lists_replaced() {
    let case =
        Case::new(&[("agent/a.yaml", "main_agent: {max_turns: 3, tools: [x, y]}\nlimits: {wall: 5}\n")])
            .agent("a")
            .set("agent.main_agent.tools=[z]")
            .set("agent.limits.tokens=9");
    let resolved = case.resolved();
    assert_eq!(resolved.config.agent.main_agent.max_turns, 3);
    assert_eq!(resolved.config.agent.main_agent.tools, ["z"]);
    assert_eq!(
        (resolved.config.agent.limits.wall, resolved.config.agent.limits.tokens),
        (Some(5.0), Some(9))
    );
}

/// Who chooses the file of a group.
#[test]
fn choices() {
    let check = |case: Case, expected: u32| {
        assert_eq!(case.resolved().config.agent.main_agent.max_turns, expected, "{:?}", case.sources);
    };
    check(Case::new(&[]), 100);
    check(Case::new(&[]).agent("research"), 600);
    check(Case::new(&[]).agent("research.yaml"), 600);
    check(Case::new(&[]).set("agent=quick_demo"), 20);
    check(Case::new(&[]).agent("quick_demo").set("agent=quick_demo"), 20);
    check(Case::new(&[]).variable("FATHOM_AGENT", "quick_demo"), 20);
    check(Case::new(&[]).variable("FATHOM_AGENT", ""), 100);
    check(Case::new(&[]).variable("FATHOM_AGENT", "quick_demo").agent("multi_agent"), 50);
    check(Case::new(&[]).file("user.yaml", "defaults:\n  - agent: quick_demo\n"), 20);
    check(
        Case::new(&[])
            .file("user.yaml", "defaults:\n  - agent: quick_demo\n")
            .variable("FATHOM_AGENT", "multi_agent"),
        50,
    );
    check(
        Case::new(&[])
            .file("user.yaml", "defaults: [{agent: quick_demo}]\nagent: {main_agent: {max_turns: 9}}\n"),
        9,
    );
}

#[test]
fn a_chosen_file_replaces_the_one_that_config_names() {
    let resolved = Case::new(&[]).agent("research").resolved();
    let files: Vec<&str> = resolved.files.iter().map(|file| file.path.as_str()).collect();
    assert_eq!(
        files,
        ["conf/config.yaml", "conf/llm/auto.yaml", "conf/benchmark/smoke.yaml", "conf/agent/research.yaml"]
    );
    assert!(resolved.files.iter().all(|file| file.built_in));
}

/// `defaults:` lists, as Hydra reads them.
#[test]
fn defaults_lists() {
    let check = |list: &str, expected: u64| {
        let config = format!("defaults:\n{list}\nagent:\n  token_limit: 1\n");
        let case = Case::new(&[
            ("config.yaml", &config),
            ("agent/two.yaml", "token_limit: 2\n"),
            ("agent/three.yaml", "defaults: [two, _self_]\ntoken_limit: 3\n"),
            ("agent/below.yaml", "defaults: [_self_, two]\ntoken_limit: 4\n"),
            ("agent/inherits.yaml", "defaults: [two]\n"),
            ("llm/picks.yaml", "defaults:\n  - override /agent: three\n"),
            ("llm/adds.yaml", "defaults:\n  - /agent: two\n"),
            ("other.yaml", "agent: {token_limit: 6}\n"),
        ]);
        assert_eq!(case.resolved().config.agent.token_limit, expected, "{list}");
    };
    check("  - agent: two", 1);
    check("  - agent: two\n  - _self_", 1);
    check("  - _self_\n  - agent: two", 2);
    check("  - _self_\n  - agent: three", 3);
    check("  - _self_\n  - agent: below", 2);
    check("  - _self_\n  - agent: inherits", 2);
    check("  - _self_\n  - agent: [three, two]", 2);
    check("  - _self_\n  - agent/two", 2);
    check("  - _self_\n  - /agent/two", 2);
    check("  - _self_\n  - other", 6);
    check("  - _self_\n  - agent: null", 1);
    check("  - _self_\n  - optional agent: nowhere", 1);
    check("  - _self_\n  - agent: two\n  - llm: picks", 3);
    check("  - _self_\n  - llm: picks\n  - agent: two", 3);
    check("  - _self_\n  - agent: three\n  - llm: adds", 2);
    check("  - _self_\n  - agent: two\n  - override hydra/job_logging: none", 2);
    check("  []", 1);
}

/// Built-in files stand in for what a directory does not have.
#[test]
fn a_directory_lies_over_the_built_in_files() {
    let case =
        Case::new(&[("agent/standard.yaml", "main_agent: {max_turns: 11}\n"), ("prompts/system.md", "mine")]);
    let resolved = case.resolved();
    assert_eq!(resolved.config.agent.main_agent.max_turns, 11);
    let files: Vec<(String, bool)> =
        resolved.files.iter().map(|file| (case.plain(&file.path), file.built_in)).collect();
    assert!(files.contains(&("conf/config.yaml".to_owned(), true)));
    assert!(files.contains(&("conf/agent/standard.yaml".to_owned(), false)));
    let prompt = resolved.conf.read("prompts", "system.md").unwrap().unwrap();
    assert_eq!((prompt.text(), prompt.built_in), (Some("mine"), false));
    assert!(resolved.conf.read("prompts", "../agent/standard.yaml").unwrap().is_none());
    assert!(resolved.conf.read("prompts", "/etc/hostname").unwrap().is_none());
    assert!(resolved.conf.read("", "").unwrap().is_none());
}

#[test]
fn a_conf_folder_is_recognised_by_what_is_in_it() {
    let dir = tempfile::tempdir().unwrap();
    assert_eq!(find_conf_dir(dir.path()), None);
    fs::create_dir_all(dir.path().join("conf/sites")).unwrap();
    assert_eq!(find_conf_dir(dir.path()), None, "some other program's");
    fs::create_dir(dir.path().join("conf/agent")).unwrap();
    assert_eq!(find_conf_dir(dir.path()), Some(dir.path().join("conf")));
}

#[test]
fn data_folders_are_looked_for_from_the_directory_and_from_here() {
    let case = Case::new(&[("benchmark/mine.yaml", "name: mine\ndata: {data_dir: ../data/mine}\n")])
        .benchmark("mine");
    let here = case.path("here/deep");
    fs::create_dir_all(&here).unwrap();
    assert_eq!(case.resolved().data_dir(&here), None);
    fs::create_dir_all(case.path("here/data/mine")).unwrap();
    assert!(case.resolved().data_dir(&here).unwrap().ends_with("here/deep/../data/mine"));
    fs::create_dir_all(case.path("data/mine")).unwrap();
    assert!(case.resolved().data_dir(&here).unwrap().ends_with("conf/../data/mine"));
}

#[test]
fn interpolation_is_typed_by_the_key_and_named_in_the_origin() {
    let case = Case::new(&[(
        "llm/mine.yaml",
        "model_name: ${env:MODEL}\nmax_tokens: \"${env:TOKENS,100}\"\nbase_url: ${oc.env:URL, \"http://127.0.0.1:1/v1\"}\n\
         temperature: ${env:NONE,}\n",
    )])
    .llm("mine")
    .variable("MODEL", "1.10")
    .variable("TOKENS", "200");
    let resolved = case.resolved();
    assert_eq!(resolved.config.llm.model_name, "1.10");
    assert_eq!(resolved.config.llm.max_tokens, 200);
    assert_eq!(resolved.config.llm.base_url.as_deref(), Some("http://127.0.0.1:1/v1"));
    assert_eq!(resolved.config.llm.temperature, None);
    assert_eq!(resolved.origins["llm.max_tokens"].variables, ["TOKENS"]);
    let shown = case.plain(&resolved.show_yaml());
    assert!(shown.contains("# conf/llm/mine.yaml:2, from TOKENS\n"), "{shown}");
}

/// A value that is covered may name a variable that nobody has.
#[test]
fn only_values_that_hold_are_resolved() {
    let resolved = Case::new(&[("llm/mine.yaml", "model_name: ${env:NOWHERE}\nprovider: ???\n")])
        .llm("mine")
        .set("llm.model_name=x")
        .set("llm.provider=openai")
        .resolved();
    assert_eq!(resolved.config.llm.model_name, "x");
}

#[test]
fn empty_files_and_sources_are_fine() {
    let resolved = resolve(&ConfigSources::default()).unwrap();
    assert_eq!(resolved.config.llm.provider, "auto");
    let case = Case::new(&[("config.yaml", ""), ("agent/a.yaml", "# nothing\n")])
        .agent("a")
        .file("user.yaml", "---\n");
    assert_eq!(case.resolved().config, pipeline::config::FathomConfig::default());
}

#[test]
fn what_is_shown_reads_back_as_the_same_configuration() {
    let resolved = Case::new(&[])
        .agent("multi_agent")
        .llm("qwen-3")
        .set("llm.model_name='1.10'")
        .set("agent.refusal_phrases=[\"a: b # c\", \"d\\\"e\", 'yes', '-']")
        .resolved();
    let shown = resolved.show_yaml();
    let case = Case::new(&[]).file("user.yaml", &shown);
    assert_eq!(case.resolved().config, resolved.config, "{shown}");
}
