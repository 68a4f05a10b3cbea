//! What a server program inherits of this process's environment.
//!
//! Decides which variables every server sees, and which names mean a secret. Keys of this program stay here: what
//! else a server needs stands in its own `env`.

use std::collections::BTreeMap;
use std::ffi::OsString;

/// Parts of names that mean a secret.
const PARTS: [&str; 11] = [
    "api_key",
    "apikey",
    "access_key",
    "private_key",
    "secret",
    "password",
    "passwd",
    "credential",
    "authorization",
    "cookie",
    "bearer",
];

/// Whether a key or variable of this name holds a secret.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_lowercase().replace('-', "_");
    PARTS.iter().any(|part| name.contains(part))
        || name == "token"
        || name.ends_with("_token")
        || name.ends_with("_key")
}

/// Names that are passed on: who and where the user is, how text and time are shown, how the network
/// is reached, and where tool chains that start servers keep their files.
const INHERITED: &[&str] = &[
    "HOME",
    "LOGNAME",
    "USER",
    "PATH",
    "SHELL",
    "TERM",
    "TMPDIR",
    "TZ",
    "LANG",
    "LANGUAGE",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "NVM_DIR",
    "VOLTA_HOME",
    "FNM_DIR",
    "DOCKER_HOST",
    "UV_CACHE_DIR",
    "UV_INDEX_URL",
    "UV_DEFAULT_INDEX",
    "PIP_INDEX_URL",
    "npm_config_cache",
    "npm_config_registry",
    "NPM_CONFIG_CACHE",
    "NPM_CONFIG_REGISTRY",
];

/// Beginnings of names that are passed on.
const INHERITED_PREFIXES: &[&str] = &["LC_", "XDG_"];

/// The environment of a server: what it inherits, overridden by what its description says.
pub(crate) fn of_server(
    ours: impl Iterator<Item = (OsString, OsString)>,
    own: &BTreeMap<String, String>,
) -> Vec<(OsString, OsString)> {
    let inherited = ours.filter(|(name, _)| {
        name.to_str().is_some_and(|name| {
            !own.contains_key(name)
                && (INHERITED.contains(&name)
                    || INHERITED_PREFIXES.iter().any(|prefix| name.starts_with(prefix)))
        })
    });
    let own = own.iter().map(|(name, value)| (name.into(), value.into()));
    inherited.chain(own).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_secrets() {
        for name in [
            "api_key",
            "OPENAI_API_KEY",
            "TENCENTCLOUD_SECRET_ID",
            "Authorization",
            "x-api-key",
            "HF_TOKEN",
            "Set-Cookie",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "max_tokens",
            "token_limit",
            "tokens",
            "task_id_field",
            "duplicate_keys",
            "key_of_map",
            "model_name",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }

    #[test]
    fn keys_of_this_program_stay_here() {
        let ours = [("PATH", "/bin"), ("LC_ALL", "C"), ("OPENAI_API_KEY", "k"), ("HOME", "/h")];
        let ours = ours.map(|(name, value)| (name.into(), value.into()));
        let own = BTreeMap::from([("HOME".to_owned(), "/other".to_owned()), ("TOKEN".into(), "t".into())]);
        let expected = [("PATH", "/bin"), ("LC_ALL", "C"), ("HOME", "/other"), ("TOKEN", "t")];
        let expected: Vec<(OsString, OsString)> =
            expected.map(|(name, value)| (name.into(), value.into())).into();
        assert_eq!(of_server(ours.into_iter(), &own), expected);
    }
}
