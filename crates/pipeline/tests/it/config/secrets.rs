//! No secret is in anything that is shown, wherever it was put.

use pipeline::config::{check, resolve};

use super::support::Case;

const SECRET: &str = "sk-Zm9vYmFyLXNlY3JldA";

/// A way to put a secret in.
fn places() -> Vec<(&'static str, Case)> {
    let conf = |text: &str| Case::new(&[("llm/mine.yaml", text)]).llm("mine");
    vec![
        ("file", conf(&format!("api_key: {SECRET}\n"))),
        ("quoted", conf(&format!("api_key: \"{SECRET}\"\n"))),
        ("set", Case::new(&[]).set(&format!("llm.api_key={SECRET}"))),
        ("variable", Case::new(&[]).variable("FATHOM_LLM__API_KEY", SECRET)),
        ("dotenv", Case::new(&[]).file(".env", &format!("FATHOM_LLM__API_KEY={SECRET}\n"))),
        ("user", Case::new(&[]).file("user.yaml", &format!("llm: {{api_key: '{SECRET}'}}\n"))),
        ("interpolated", conf("api_key: ${env:MY_API_KEY}\n").variable("MY_API_KEY", SECRET)),
        (
            "interpolated elsewhere",
            conf("extra_body: {user: \"${env:MY_API_KEY}\"}\n").variable("MY_API_KEY", SECRET),
        ),
        ("in an address", conf("base_url: http://host/${env:MY_TOKEN}/v1\n").variable("MY_TOKEN", SECRET)),
        ("as a password", conf(&format!("base_url: http://me:{SECRET}@host/v1\n"))),
        ("as a parameter", conf(&format!("base_url: http://host/v1?api_key={SECRET}\n"))),
        ("header", conf(&format!("quirks: {{headers: {{x-api-key: {SECRET}}}}}\n"))),
        ("body", conf(&format!("extra_body: {{auth_token: {SECRET}, deep: [{{password: {SECRET}}}]}}\n"))),
        ("judge", Case::new(&[]).set(&format!("benchmark.judge.llm.api_key={SECRET}"))),
        ("key only in the environment", Case::new(&[]).variable("OPENAI_API_KEY", SECRET)),
        // With something wrong beside it or in it.
        (
            "wrong type",
            Case::new(&[]).variable("FATHOM_LLM__MAX_TOKENS", SECRET).variable("OPENAI_API_KEY", SECRET),
        ),
        ("key is a list", conf(&format!("api_key: [{SECRET}]\n"))),
        ("key is a map", conf(&format!("api_key: {{a: {SECRET}}}\n"))),
        ("unknown word", conf("dialect: ${env:MY_SECRET}\n").variable("MY_SECRET", SECRET)),
        (
            "unknown provider word",
            Case::new(&[]).set(&format!("llm.quirks.auth={SECRET}")).variable("MY_SECRET", SECRET),
        ),
        ("broken dotenv", Case::new(&[]).file(".env", &format!("A_KEY={SECRET} with blanks\n{SECRET}\n"))),
        ("broken set", Case::new(&[]).set(&format!("llm.api_key=[{SECRET}"))),
        ("broken yaml", conf(&format!("api_key: \"{SECRET}\nmodel_name: x\n"))),
        ("bad interpolation", conf("api_key: ${env:NOWHERE}\n").variable("NOWHERE_API_KEY", SECRET)),
        ("not an address", conf(&format!("api_key: {SECRET}\nbase_url: {SECRET}\n"))),
        ("unknown key beside", conf(&format!("api_key: {SECRET}\nnonsense: {SECRET}\n"))),
    ]
}

#[test]
fn no_secret_is_shown() {
    for (name, case) in places() {
        let mut shown = Vec::new();
        match resolve(&case.sources) {
            Ok(resolved) => {
                shown.push(resolved.show_yaml());
                shown.push(resolved.show_json().to_string());
                shown.push(resolved.to_json().to_string());
                shown.push(format!("{resolved:?}"));
                shown.push(resolved.redacted(&format!("see {SECRET}")));
            }
            Err(errors) => {
                shown.push(errors.to_string());
                shown.push(format!("{errors:?}"));
            }
        }
        let report = check(&case.sources, &[]);
        shown.push(format!("{report:?}"));
        shown.push(format!("{:?}", case.sources));
        for text in shown {
            assert!(!text.contains(SECRET), "{name}: {text}");
        }
    }
}

#[test]
fn secrets_arrive_whole() {
    for (name, case) in places().into_iter().take(7) {
        let resolved = case.resolved();
        assert_eq!(resolved.config.llm.api_key.as_ref().map(|key| key.expose()), Some(SECRET), "{name}");
        assert!(resolved.show_yaml().contains("api_key: \"***\""), "{name}");
    }
    let digits = Case::new(&[]).variable("FATHOM_LLM__API_KEY", "0012345678").resolved();
    assert_eq!(digits.config.llm.api_key.as_ref().map(|key| key.expose()), Some("0012345678"));
}
