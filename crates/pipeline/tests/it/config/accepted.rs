//! A configuration directory as MiroThinker has it is taken as it is.

use pipeline::config::{JudgeId, check};

use super::support::Case;

/// Of the shape of that program's directory, with the keys that it has and we do not.
const MIROTHINKER: [(&str, &str); 11] = [
    (
        "config.yaml",
        "# conf/config.yaml\ndefaults:\n  - llm: default\n  - agent: default\n  - benchmark: default\n  - _self_  # own values\n\n\
         hydra:\n  run:\n    dir: ../../logs/debug\n\n# defaults\nproject_name: \"some-agent\"\ndebug_dir: \"../../logs/debug\"\n",
    ),
    (
        "llm/default.yaml",
        "# default\nprovider: \"anthropic\" # openai, anthropic, qwen\nmodel_name: \"claude-3-7-sonnet-20250219\"\nasync_client: false\n\
         temperature: 0.3\ntop_p: 1.0\nmin_p: 0.0\ntop_k: -1\nmax_tokens: 4096\napi_key: \"\"\n\
         base_url: https://api.anthropic.com\nrepetition_penalty: 1.0\n",
    ),
    (
        "llm/qwen-3.yaml",
        "defaults:\n  - default\n  - _self_\n\nprovider: \"qwen\"\nmodel_name: \"qwen-3\"\nbase_url: \"https://your-api.com/v1\"\n\
         api_key: ${oc.env:API_KEY,${oc.env:LLM_API_KEY,\"\"}}\nmax_context_length: 262144\nmax_tokens: 16384\n\
         temperature: 1.0\ntop_p: 0.95\nrepetition_penalty: 1.05\n",
    ),
    (
        "agent/default.yaml",
        "main_agent:\n  tools:\n    - tool-python\n    - tool-vqa\n    - tool-transcribe\n    - tool-reasoning\n    - tool-reader\n\
         \x20 max_turns: 20  # turns\n\nsub_agents:\n  agent-browsing:\n    tools:\n      - tool-google-search\n      - tool-vqa\n\
         \x20     - tool-reader\n      - tool-python\n    max_turns: 20\n\nkeep_tool_result: -1\ncontext_compress_limit: 0\n",
    ),
    (
        "agent/mirothinker_v1.5_keep5_max200.yaml",
        "defaults:\n  - default\n  - _self_\n\nmain_agent:\n  tools:\n    - search_and_scrape_webpage\n    - jina_scrape_llm_summary\n\
         \x20   - tool-python\n  tool_blacklist:\n    - [ \"search_and_scrape_webpage\", \"sogou_search\" ]\n\
         \x20   - [ \"tool-python\", \"download_file_from_sandbox_to_local\" ]\n  max_turns: 200  # turns\n\n\
         sub_agents:\n\n# context\nkeep_tool_result: 5\ncontext_compress_limit: 5  # retries\n",
    ),
    (
        "agent/mirothinker_1.7_keep5_max200.yaml",
        "defaults:\n  - default\n  - _self_\n\nmain_agent:\n  tools:\n    - search_and_scrape_webpage\n    - jina_scrape_llm_summary\n\
         \x20   - tool-python\n  tool_blacklist:\n    []\n  max_turns: 200\n\nsub_agents:\n\nkeep_tool_result: 5\n\
         context_compress_limit: 5\nretry_with_summary: False",
    ),
    (
        "agent/multi_agent.yaml",
        "defaults:\n  - default\n  - _self_\n\nmain_agent:\n  max_turns: 50\n\nsub_agents:\n  agent-browsing:\n    max_turns: 50\n",
    ),
    (
        "agent/old.yaml",
        "defaults:\n  - default\n  - _self_\ntool_config:\n  tool-vqa:\n    enable_openai_vision: \"true\"\n",
    ),
    (
        "benchmark/default.yaml",
        "name: \"default\"\n\ndata:\n  metadata_file: \"standardized_data.jsonl\"\n  field_mapping:\n    task_id_field: \"task_id\"\n\
         \x20   task_question_field: \"task_question\"\n    ground_truth_field: \"ground_truth\"\n    file_name_field: \"file_name\"\n\n\
         execution:\n  max_tasks: null  # no limit\n  max_concurrent: 5 \n  pass_at_k: 1\n  format_error_retry_limit: 0",
    ),
    (
        "benchmark/gaia-validation.yaml",
        "defaults:\n  - default\n  - _self_\n\nname: \"gaia-validation\"\n\ndata:\n  data_dir: \"../../data/gaia-2023-validation\"\n\n\
         execution:\n  max_tasks: null\n  max_concurrent: 5\n  pass_at_k: 1\n  format_error_retry_limit: 0\n",
    ),
    ("benchmark/unknown-suite.yaml", "defaults:\n  - default\n  - _self_\nname: \"unknown-suite\"\n"),
];

fn directory() -> Case {
    Case::new(&MIROTHINKER)
}

#[test]
fn it_resolves_as_it_does_there() {
    let resolved = directory().resolved();
    let (llm, agent) = (&resolved.config.llm, &resolved.config.agent);
    assert_eq!(llm.provider, "anthropic");
    assert_eq!(llm.model_name, "claude-3-7-sonnet-20250219");
    assert_eq!(
        (llm.temperature, llm.top_p, llm.min_p, llm.top_k),
        (Some(0.3), Some(1.0), Some(0.0), Some(-1))
    );
    assert_eq!(llm.max_context_length, None);
    assert_eq!(agent.main_agent.max_turns, 20);
    assert_eq!(agent.sub_agents["agent-browsing"].tools[0], "tool-google-search");
}

#[test]
fn its_presets_can_be_chosen() {
    let resolved = directory()
        .agent("mirothinker_v1.5_keep5_max200")
        .llm("qwen-3")
        .variable("LLM_API_KEY", "sk-from-the-second-name")
        .set("llm.base_url=http://127.0.0.1:9/v1")
        .resolved();
    let (llm, agent) = (&resolved.config.llm, &resolved.config.agent);
    assert_eq!((llm.provider.as_str(), llm.max_context_length), ("qwen", Some(262_144)));
    assert_eq!(llm.api_key.as_ref().map(|key| key.expose()), Some("sk-from-the-second-name"));
    assert_eq!(llm.base_url.as_deref(), Some("http://127.0.0.1:9/v1"));
    assert_eq!(agent.main_agent.max_turns, 200);
    assert_eq!(
        agent.main_agent.tools,
        ["search_and_scrape_webpage", "jina_scrape_llm_summary", "tool-python"]
    );
    let hidden = &agent.main_agent.tool_blacklist;
    assert_eq!(hidden[0], ("search_and_scrape_webpage".to_owned(), "sogou_search".to_owned()));
    assert!(
        agent.sub_agents.is_empty(),
        "an empty `sub_agents:` means none, also where a file below names some"
    );
    assert_eq!((agent.keep_tool_result, agent.context_compress_limit), (5, 5));

    let agent = directory().agent("mirothinker_1.7_keep5_max200").resolved().config.agent;
    assert!(
        !agent.retry_with_summary
            && agent.sub_agents.is_empty()
            && agent.main_agent.tool_blacklist.is_empty()
    );

    let agent = directory().agent("multi_agent").resolved().config.agent;
    assert_eq!((agent.main_agent.max_turns, agent.sub_agents["agent-browsing"].max_turns), (50, 50));
    assert_eq!(agent.sub_agents["agent-browsing"].tools.len(), 4);
}

#[test]
fn what_its_suites_leave_open_comes_from_ours() {
    let resolved = directory().benchmark("gaia-validation").resolved();
    let benchmark = &resolved.config.benchmark;
    assert_eq!(benchmark.data.data_dir.as_deref().unwrap().to_str(), Some("../../data/gaia-2023-validation"));
    assert_eq!((benchmark.epochs, benchmark.judge.id), (Some(8), Some(JudgeId::Equivalence)));
    assert_eq!(
        resolved.origin_of("benchmark.epochs").to_string(),
        "conf/benchmark/gaia-validation.yaml:4 (built in)"
    );

    let benchmark = directory().benchmark("unknown-suite").resolved().config.benchmark;
    assert_eq!((benchmark.epochs, benchmark.judge.id), (None, None));
}

#[test]
fn what_is_not_needed_is_listed() {
    let case = directory().agent("old").benchmark("gaia-validation");
    let report = check(&case.sources, &[]);
    assert!(report.is_good(), "{:?} {:?}", report.errors, report.own_presets);
    let listed: Vec<(String, String)> = report
        .accepted_unused
        .iter()
        .map(|key| (key.key.clone(), case.plain(&key.origin.to_string())))
        .collect();
    let expected = [
        ("hydra", "conf/config.yaml:8"),
        ("project_name", "conf/config.yaml:13"),
        ("debug_dir", "conf/config.yaml:14"),
        ("llm.async_client", "conf/llm/default.yaml:4"),
        ("agent.tool_config", "conf/agent/old.yaml:4"),
        ("benchmark.execution.format_error_retry_limit", "conf/benchmark/gaia-validation.yaml:14"),
    ];
    assert_eq!(listed, expected.map(|(key, origin)| (key.to_owned(), origin.to_owned())));
    assert!(report.accepted_unused.iter().all(|key| !key.why.is_empty()));
    assert_eq!(
        report.own_presets.len(),
        MIROTHINKER.len() - 1,
        "each of its files is checked as if it were chosen"
    );
    assert!(
        report.resolved.unwrap().conf.read("prompts", "system.md").unwrap().is_some_and(|file| file.built_in)
    );
}
