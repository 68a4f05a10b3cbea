//! Fills variables into values: `${VAR}`, `${env:VAR}`, `${VAR:-default}`, `${env:VAR,default}`, and the
//! few that editors define (`${userHome}`, `${workspaceFolder}`).
//!
//! Decides what counts as a variable. Where their values come from is left to the caller.

/// The text with its variables filled in.
///
/// # Errors
/// Which variable cannot be filled in, and what to do.
pub(super) fn fill_in(text: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut filled = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        filled.push_str(&rest[..start]);
        let inner = &rest[start + 2..];
        let Some(end) = inner.find('}') else {
            rest = &rest[start..];
            break;
        };
        filled.push_str(&value_of(&inner[..end], lookup)?);
        rest = &inner[end + 1..];
    }
    filled.push_str(rest);
    Ok(filled)
}

fn value_of(reference: &str, lookup: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let (name, default) = match reference.split_once(":-") {
        Some((name, default)) => (name, Some(default)),
        None => (reference, None),
    };
    let (name, default) = match name.strip_prefix("env:").or_else(|| name.strip_prefix("oc.env:")) {
        Some(name) => match name.split_once(',') {
            Some((name, default)) => (name.trim_end(), Some(default.trim())),
            None => (name, default),
        },
        None => (name, default),
    };
    match name {
        "userHome" => return lookup("HOME").ok_or_else(|| unset("HOME")),
        "workspaceFolder" => {
            return Ok(std::env::current_dir().map_or_else(|_| ".".into(), |dir| dir.display().to_string()));
        }
        "/" | "pathSeparator" => return Ok(std::path::MAIN_SEPARATOR.to_string()),
        _ => {}
    }
    let is_name = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if !is_name {
        return Err(format!(
            "`${{{reference}}}` cannot be filled in: only environment variables can, as `${{NAME}}`, `${{env:NAME}}` or `${{NAME:-default}}`"
        ));
    }
    match (lookup(name).filter(|value| !value.is_empty()), default) {
        (Some(value), _) => Ok(value),
        (None, Some(default)) => Ok(default.to_owned()),
        (None, None) => Err(unset(name)),
    }
}

fn unset(name: &str) -> String {
    format!("the environment variable `{name}` is not set: set it, or write `${{{name}:-default}}`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_filled_in() {
        let lookup = |name: &str| match name {
            "A" => Some("x".to_owned()),
            "B" => Some("${A}".to_owned()),
            "EMPTY" => Some(String::new()),
            _ => None,
        };
        for (text, expected) in [
            ("plain $A {A}", Ok("plain $A {A}")),
            ("${A}/${env:A}", Ok("x/x")),
            ("${B}", Ok("${A}")),
            ("${NONE:-d}${EMPTY:-e}${NONE:-}", Ok("de")),
            ("${A", Ok("${A")),
            ("${env:NONE,d}${env:NONE, d e }${env:A,d}${oc.env:NONE,f}", Ok("dd exf")),
            ("${env:NONE,}", Ok("")),
            ("${NONE,d}", Err("`${NONE,d}` cannot be filled in")),
            ("${env:NONE}", Err("`NONE` is not set")),
            ("${NONE}", Err("`NONE` is not set")),
            ("${EMPTY}", Err("`EMPTY` is not set")),
            ("${input:key}", Err("`${input:key}` cannot be filled in")),
            ("${}", Err("cannot be filled in")),
        ] {
            match (fill_in(text, &lookup), expected) {
                (Ok(filled), Ok(expected)) => assert_eq!(filled, expected, "{text}"),
                (Err(problem), Err(words)) => assert!(problem.contains(words), "{text}: {problem}"),
                (other, _) => panic!("{text}: {other:?}"),
            }
        }
    }
}
