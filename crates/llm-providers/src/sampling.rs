//! Which sampling parameters go into a request.
//!
//! Decides by the server's habits what is sent, under which name, and what is left out: values that
//! mean "off" are never sent, parameters that the server or the model refuses are left out and named.

use serde_json::{Map, Value, json};

use crate::LlmConfig;
use crate::quirks::Quirks;

/// Parameters that every server of either format takes.
const COMMON: &[&str] = &["temperature", "top_p"];

/// What is sent, and the names of what was asked for and is not.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Sampling {
    pub(crate) fields: Map<String, Value>,
    pub(crate) left_out: Vec<&'static str>,
}

/// The parameters of a configuration as this server takes them.
pub(crate) fn sampling(config: &LlmConfig, quirks: &Quirks) -> Sampling {
    let mut sampling = Sampling::default();
    for (name, value) in wanted(config) {
        let wire = match &quirks.parameters {
            Some(parameters) => parameters.get(name).cloned(),
            None => COMMON.contains(&name).then(|| name.to_owned()),
        };
        let refused = quirks.refused_parameters.iter().flatten().any(|refused| refused == name);
        match wire.filter(|_| !refused) {
            Some(wire) => {
                sampling.fields.insert(wire, value);
            }
            // Reasoning models take a temperature of 1 only, which is what they use anyway.
            None if name == "temperature" && value == json!(1.0) => {}
            None => sampling.left_out.push(name),
        }
    }
    if quirks.temperature_excludes_top_p == Some(true)
        && sampling.fields.contains_key("temperature")
        && sampling.fields.remove("top_p").is_some()
    {
        sampling.left_out.push("top_p");
    }
    sampling
}

/// What the configuration asks for; values that switch a parameter off are no wish.
fn wanted(config: &LlmConfig) -> impl Iterator<Item = (&'static str, Value)> {
    [
        ("temperature", config.temperature.map(|value| json!(value))),
        ("top_p", config.top_p.filter(|value| *value < 1.0).map(|value| json!(value))),
        ("min_p", config.min_p.filter(|value| *value > 0.0).map(|value| json!(value))),
        ("top_k", config.top_k.filter(|value| *value > 0).map(|value| json!(value))),
        (
            "repetition_penalty",
            config
                .repetition_penalty
                .filter(|value| (value - 1.0).abs() > f64::EPSILON)
                .map(|value| json!(value)),
        ),
    ]
    .into_iter()
    .filter_map(|(name, value)| value.filter(|value| !value.is_null()).map(|value| (name, value)))
}

/// Puts fields into a body; a field that is null takes the body's field of that name out.
pub(crate) fn overlay(body: &mut Map<String, Value>, fields: &Map<String, Value>) {
    for (name, value) in fields {
        if value.is_null() {
            body.shift_remove(name);
        } else {
            body.insert(name.clone(), value.clone());
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{overlay, sampling};
    use crate::LlmConfig;
    use crate::quirks::Quirks;

    #[track_caller]
    fn check(config: &str, quirks: &str, expected: Value, left_out: &[&str]) {
        let config: LlmConfig = serde_yaml::from_str(config).unwrap();
        let quirks: Quirks = serde_yaml::from_str(quirks).unwrap();
        let sampling = sampling(&config, &quirks);
        assert_eq!(Value::Object(sampling.fields), expected);
        assert_eq!(sampling.left_out, left_out);
    }

    #[test]
    fn sends_what_the_server_takes() {
        let all = "{temperature: 0.3, top_p: 0.95, min_p: 0.05, top_k: 20, repetition_penalty: 1.05}";
        check(
            all,
            "{}",
            json!({"temperature": 0.3, "top_p": 0.95}),
            &["min_p", "top_k", "repetition_penalty"],
        );
        check(
            all,
            "parameters: {temperature: temperature, top_k: top_k, repetition_penalty: repeat_penalty}",
            json!({"temperature": 0.3, "top_k": 20, "repeat_penalty": 1.05}),
            &["top_p", "min_p"],
        );
        check(
            all,
            "refused_parameters: [temperature, top_p]",
            json!({}),
            &["temperature", "top_p", "min_p", "top_k", "repetition_penalty"],
        );
    }

    #[test]
    fn values_that_mean_off_are_not_sent_and_not_missed() {
        check("{top_p: 1.0, min_p: 0.0, top_k: -1, repetition_penalty: 1.0}", "{}", json!({}), &[]);
        check("{temperature: 1.0}", "refused_parameters: [temperature]", json!({}), &[]);
        check("{temperature: 0.0}", "{}", json!({"temperature": 0.0}), &[]);
        check("{temperature: .nan}", "{}", json!({}), &[]);
    }

    #[test]
    fn one_of_two_that_exclude_each_other_is_sent() {
        check(
            "{temperature: 0.3, top_p: 0.9}",
            "temperature_excludes_top_p: true",
            json!({"temperature": 0.3}),
            &["top_p"],
        );
        check("{top_p: 0.9}", "temperature_excludes_top_p: true", json!({"top_p": 0.9}), &[]);
    }

    #[test]
    fn null_takes_a_field_out() {
        let mut body = json!({"a": 1, "b": 2}).as_object().cloned().unwrap();
        overlay(&mut body, json!({"a": null, "b": 3, "c": 4}).as_object().unwrap());
        assert_eq!(Value::Object(body), json!({"b": 3, "c": 4}));
    }
}
