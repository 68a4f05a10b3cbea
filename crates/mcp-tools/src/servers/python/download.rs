//! Files from the internet for a sandbox.
//!
//! Decides what is fetched and what it is called. The file is fetched outside and put in: the sandbox itself gets no
//! network by it.

use super::PythonOptions;

/// A file's bytes, and the name that it has where it was.
pub(super) type Downloaded = (Vec<u8>, String);

/// Fetches a file. Errors are texts for the model.
#[cfg(feature = "egress")]
pub(super) async fn fetch(options: &PythonOptions, url: &str) -> Result<Downloaded, String> {
    match &options.egress {
        Some(egress) => from(egress, url, options.file_limit).await,
        None => Err(switched_off(url)),
    }
}

/// Fetches a file of `most` bytes at most.
#[cfg(feature = "egress")]
pub(super) async fn from(egress: &crate::egress::Egress, url: &str, most: u64) -> Result<Downloaded, String> {
    let fetched = crate::servers::files::fetch(egress, url, most).await?;
    let name = if fetched.name.is_empty() { "download".to_owned() } else { fetched.name };
    Ok((fetched.body, name))
}

/// Fetches nothing: this program was built without a way out.
#[cfg(not(feature = "egress"))]
pub(super) async fn fetch(_options: &PythonOptions, url: &str) -> Result<Downloaded, String> {
    Err(switched_off(url))
}

fn switched_off(url: &str) -> String {
    format!(
        "`{url}` was not put into the sandbox: downloads from the internet into sandboxes are switched off in this \
         run. Use another tool to read the page, or work with files that are already here."
    )
}
