//! The ciphers that keep published questions out of training data. Everything is deciphered in memory.

use base64::Engine as _;
use sha2::{Digest as _, Sha256};

use super::recipes::Cipher;

/// The plain text.
///
/// # Errors
///
/// In words: no key, no base64, no text.
pub(super) fn decipher(cipher: Cipher, text: &str, canary: Option<&str>) -> Result<String, String> {
    let digest;
    let key: &[u8] = match (cipher, canary) {
        (Cipher::None, _) => return Ok(text.to_owned()),
        (_, None) => return Err("the record has no `canary`, which is the key to its question".to_owned()),
        (Cipher::XorCanary, Some(canary)) => canary.as_bytes(),
        (Cipher::XorSha256, Some(canary)) => {
            digest = Sha256::digest(canary.as_bytes());
            &digest
        }
    };
    let bytes = base64::engine::general_purpose::STANDARD
        .decode(text.trim())
        .map_err(|error| format!("the enciphered text is no base64: {error}"))?;
    let plain = bytes.iter().zip(key.iter().cycle()).map(|(byte, key)| byte ^ key).collect();
    String::from_utf8(plain).map_err(|_| "deciphered with its `canary`, the text is no UTF-8".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Made with Python: `base64.b64encode(bytes(b ^ key[i % len(key)] for i, b in enumerate(text)))`, the key being
    /// `hashlib.sha256(b"canary-1").digest()` or `b"canary-1"`, the text `Wie heißt die Stadt, in der es 1928 war?`.
    #[test]
    fn as_published_ones_are() {
        let plain = "Wie heißt die Stadt, in der es 1928 war?";
        for (cipher, text) in [(Cipher::XorSha256, SHA256), (Cipher::XorCanary, CANARY)] {
            assert_eq!(decipher(cipher, text, Some("canary-1")).as_deref(), Ok(plain));
        }
        assert_eq!(decipher(Cipher::None, plain, None).as_deref(), Ok(plain));
        for (text, canary, part) in
            [(SHA256, None, "no `canary`"), ("???", Some("x"), "no base64"), (SHA256, Some("y"), "no UTF-8")]
        {
            let error = decipher(Cipher::XorSha256, text, canary).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }

    const SHA256: &str = "27LwmPNSubUL46bX4X3pS17qE+zs7XwbXmO20c/p5mu94qeAu0CxBKs=";
    const CANARY: &str = "NAgLQRocRPL8FU4FGxwNYhcAChVeWURfQwULE1IcXhFSWFxZUg5MQ1w=";
}
