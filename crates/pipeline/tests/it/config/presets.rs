//! Every shipped file loads, holds the numbers that it is known for, and explains every key.

use pipeline::config::{ConfigSources, FathomConfig, Group, JudgeId, check, embedded, resolve};

use super::support::{Case, value};

/// Turns, kept results, further passes, summaries.
const AGENTS: [(&str, u32, i64, u32, bool); 14] = [
    ("standard", 100, -1, 0, true),
    ("quick_demo", 20, -1, 0, true),
    ("research", 600, 5, 5, true),
    ("single_agent", 600, -1, 0, true),
    ("single_agent_keep5", 600, 5, 5, true),
    ("multi_agent", 50, -1, 0, true),
    ("multi_agent_os", 50, -1, 0, true),
    ("mirothinker_v1.0", 600, -1, 0, true),
    ("mirothinker_v1.0_keep5", 600, 5, 5, true),
    ("mirothinker_v1.5", 600, -1, 0, true),
    ("mirothinker_v1.5_keep5_max200", 200, 5, 5, true),
    ("mirothinker_v1.5_keep5_max400", 400, 5, 5, true),
    ("mirothinker_1.7_keep5_max200", 200, 5, 5, false),
    ("mirothinker_1.7_keep5_max300", 300, 5, 5, false),
];

#[test]
fn agents_have_their_numbers() {
    for (name, turns, keep, passes, summaries) in AGENTS {
        let agent = Case::new(&[]).agent(name).resolved().config.agent;
        assert_eq!(agent.main_agent.max_turns, turns, "{name}");
        assert_eq!(agent.keep_tool_result, keep, "{name}");
        assert_eq!(agent.context_compress_limit, passes, "{name}");
        assert_eq!(agent.retry_with_summary, summaries, "{name}");
        let limit = (name == "quick_demo").then_some(20_000);
        assert_eq!(agent.scrape_result_limit, limit, "{name}");
        let sub_agents: Vec<(&str, u32)> =
            agent.sub_agents.iter().map(|(name, role)| (name.as_str(), role.max_turns)).collect();
        let expected =
            if name.starts_with("multi_agent") { vec![("agent-browsing", 50)] } else { Vec::new() };
        assert_eq!(sub_agents, expected, "{name}");
        assert!(!agent.main_agent.tools.is_empty(), "{name}");
    }
    let shipped = Case::new(&[]).resolved().conf.presets("agent");
    assert_eq!(shipped.len(), AGENTS.len() + 1, "an agent file has no line in the table: {shipped:?}");
}

/// Tasks, epochs, judge.
const SUITES: [(&str, Option<u64>, u32, JudgeId); 20] = [
    ("gaia-validation", Some(165), 8, JudgeId::Equivalence),
    ("gaia-validation-text-103", Some(103), 8, JudgeId::Equivalence),
    ("hle", Some(2500), 3, JudgeId::Hle),
    ("hle-text-2158", Some(2158), 3, JudgeId::Hle),
    ("hle-text-500", Some(500), 3, JudgeId::Hle),
    ("browsecomp", Some(1266), 3, JudgeId::AbEn),
    ("browsecomp_zh", Some(289), 3, JudgeId::AbZh),
    ("webwalkerqa", Some(680), 3, JudgeId::Equivalence),
    ("frames", Some(824), 3, JudgeId::Equivalence),
    ("xbench_deepsearch", Some(100), 8, JudgeId::Xbench),
    ("seal-0", Some(111), 8, JudgeId::Equivalence),
    ("aime2025", Some(30), 32, JudgeId::Equivalence),
    ("deepsearchqa", Some(900), 3, JudgeId::DeepSearchQa),
    ("futurex", None, 8, JudgeId::None),
    ("simpleqa", None, 1, JudgeId::SimpleQa),
    ("collect_trace", None, 1, JudgeId::Equivalence),
    ("debug", None, 1, JudgeId::Equivalence),
    ("smoke", None, 1, JudgeId::Equivalence),
    ("shipped", None, 1, JudgeId::Equivalence),
    ("starter", None, 1, JudgeId::Equivalence),
];

#[test]
fn suites_have_their_numbers() {
    for (name, tasks, epochs, judge) in SUITES {
        let benchmark = Case::new(&[]).benchmark(name).resolved().config.benchmark;
        assert_eq!(benchmark.name, name);
        assert_eq!(benchmark.tasks, tasks, "{name}");
        assert_eq!(benchmark.epochs, Some(epochs), "{name}");
        assert_eq!(benchmark.judge.id, Some(judge), "{name}");
        assert!(benchmark.data.data_dir.is_some(), "{name}");
        assert_eq!(benchmark.data.metadata_file, "standardized_data.jsonl", "{name}");
        assert_eq!(benchmark.data.field_mapping.task_question_field, "task_question", "{name}");
    }
    let shipped = Case::new(&[]).resolved().conf.presets("benchmark");
    let suites: Vec<&String> = shipped.iter().filter(|name| !name.contains('/')).collect();
    assert_eq!(suites.len(), SUITES.len() + 1, "a suite has no line in the table: {suites:?}");
}

#[test]
fn models_have_their_providers() {
    for (name, provider, protocol) in [
        ("auto", "auto", "text"),
        ("default", "auto", "text"),
        ("reader", "reader", "text"),
        ("openai", "openai", "text"),
        ("gpt-5", "openai", "text"),
        ("openai_responses", "openai_responses", "native"),
        ("anthropic", "anthropic", "text"),
        ("claude", "anthropic", "native"),
        ("claude-3-7", "anthropic", "text"),
        ("qwen-3", "qwen", "text"),
        ("mirothinker", "qwen", "text"),
        ("vllm", "vllm", "text"),
        ("sglang", "sglang", "text"),
        ("ollama", "ollama", "text"),
        ("llamacpp", "llamacpp", "text"),
        ("lmstudio", "lmstudio", "text"),
        ("deepseek", "deepseek", "text"),
        ("gemini", "gemini", "text"),
        ("openrouter", "openrouter", "text"),
    ] {
        let resolved = Case::new(&[]).llm(name).resolved();
        assert_eq!(resolved.config.llm.provider, provider, "{name}");
        assert_eq!(value(&resolved, "llm.tool_protocol"), format!("{protocol:?}"), "{name}");
        assert!(resolved.config.llm.api_key.is_none(), "{name}: keys come from the environment");
    }
}

#[test]
fn every_shipped_file_is_good_with_every_other_layer_absent() {
    for group in Group::ALL {
        for entry in Case::new(&[]).resolved().conf.presets(group.as_str()) {
            let mut sources = ConfigSources::default();
            if entry == "openai_compatible" {
                let missing =
                    resolve(&ConfigSources { llm: Some(entry), ..sources }).map(|_| ()).unwrap_err();
                assert_eq!(
                    missing.0.iter().filter_map(|error| error.key_path()).collect::<Vec<_>>(),
                    ["llm.base_url", "llm.model_name"]
                );
                continue;
            }
            match group {
                Group::Agent => sources.agent = Some(entry.clone()),
                Group::Llm => sources.llm = Some(entry.clone()),
                Group::Benchmark => sources.benchmark = Some(entry.clone()),
            }
            let report = check(&sources, &[]);
            assert!(report.is_good(), "{entry}: {:?}", report.errors);
            assert_eq!(report.warnings, Vec::<String>::new(), "{entry}");
            assert!(
                report.accepted_unused.iter().all(|key| entry == "default" && key.key == "llm.async_client")
            );
        }
    }
}

/// The commented reference files hold every key, at its default.
#[test]
fn reference_files_are_complete() {
    let sources = ConfigSources {
        llm: Some("default".to_owned()),
        agent: Some("default".to_owned()),
        benchmark: Some("default".to_owned()),
        ..ConfigSources::default()
    };
    let resolved = resolve(&sources).unwrap();
    assert_eq!(resolved.config, FathomConfig::default());
    let defaults = serde_json::to_value(FathomConfig::default()).unwrap();
    let mut missing = Vec::new();
    leaves(&defaults, "", &mut |path| {
        if !resolved.origins.contains_key(path) && !path.starts_with("llm.async_client") {
            missing.push(path.to_owned());
        }
    });
    assert_eq!(missing, Vec::<String>::new(), "keys that no reference file explains");
}

fn leaves(value: &serde_json::Value, path: &str, found: &mut dyn FnMut(&str)) {
    match value.as_object() {
        Some(entries) if !entries.is_empty() => {
            for (key, value) in entries {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                leaves(value, &path, found);
            }
        }
        _ => found(path),
    }
}

/// A key in a preset is commented there or in the reference file of its section; a reference file comments all.
#[test]
fn reference_files_explain_every_key() {
    for path in ["config.yaml", "llm/default.yaml", "agent/default.yaml", "benchmark/default.yaml"] {
        let text = embedded().get_file(path).unwrap().contents_utf8().unwrap();
        let mut after_comment = false;
        for (number, line) in text.lines().enumerate() {
            let is_key =
                line.trim_start().split_once(':').is_some_and(|(key, _)| !key.contains(['#', '-', ' ']));
            let told = line.contains(" #")
                || after_comment
                || OBVIOUS.iter().any(|key| line.trim_start().starts_with(key));
            assert!(!is_key || told, "{path}:{}: {line}", number + 1);
            // A comment line explains the keys up to the next empty line.
            after_comment = line.starts_with('#') || (after_comment && !line.is_empty());
        }
    }
}

/// Sections and keys whose names say it all.
const OBVIOUS: [&str; 8] = [
    "data:",
    "execution:",
    "judge:",
    "task_id_field:",
    "task_question_field:",
    "file_name_field:",
    "file_path_field:",
    "processor_seconds:",
];

#[test]
fn our_own_suites_come_along() {
    for name in ["smoke", "shipped", "starter"] {
        let resolved = Case::new(&[]).benchmark(name).resolved();
        let data = &resolved.config.benchmark.data;
        let folder = data.data_dir.as_deref().and_then(|dir| dir.to_str()).unwrap();
        let file = resolved.conf.read(folder, &data.metadata_file).unwrap().unwrap();
        let tasks = file
            .text()
            .unwrap()
            .lines()
            .filter(|line| line.contains(&data.field_mapping.task_question_field));
        assert!(file.built_in && tasks.count() > 0, "{name}");
    }
}
