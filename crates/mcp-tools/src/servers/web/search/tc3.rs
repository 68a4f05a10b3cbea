//! Tencent Cloud's signature, TC3-HMAC-SHA256.
//!
//! Decides what is signed and how the header reads. Keys are derived for one day and one service.

use ring::{digest, hmac};

/// Part of what is signed.
pub(super) const CONTENT_TYPE: &str = "application/json; charset=utf-8";

/// A POST to the root of a service.
pub(super) struct Call<'a> {
    /// The service's short name.
    pub(super) service: &'a str,
    /// Its host, with a port where that is not the usual one.
    pub(super) host: &'a str,
    /// Seconds since 1970, as in `X-TC-Timestamp`.
    pub(super) timestamp: i64,
    pub(super) body: &'a [u8],
}

/// The value of `Authorization`.
pub(super) fn authorization(call: &Call<'_>, id: &str, key: &str) -> String {
    const SIGNED: &str = "content-type;host";
    let date =
        jiff::Timestamp::from_second(call.timestamp).unwrap_or_default().strftime("%Y-%m-%d").to_string();
    let canonical = format!(
        "POST\n/\n\ncontent-type:{CONTENT_TYPE}\nhost:{}\n\n{SIGNED}\n{}",
        call.host,
        hex::encode(digest::digest(&digest::SHA256, call.body))
    );
    let scope = format!("{date}/{}/tc3_request", call.service);
    let hashed = hex::encode(digest::digest(&digest::SHA256, canonical.as_bytes()));
    let to_sign = format!("TC3-HMAC-SHA256\n{}\n{scope}\n{hashed}", call.timestamp);
    let derived = [date.as_str(), call.service, "tc3_request"]
        .iter()
        .fold(format!("TC3{key}").into_bytes(), |key, part| sign(&key, part.as_bytes()));
    let signature = hex::encode(sign(&derived, to_sign.as_bytes()));
    format!("TC3-HMAC-SHA256 Credential={id}/{scope}, SignedHeaders={SIGNED}, Signature={signature}")
}

fn sign(key: &[u8], message: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), message).as_ref().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The worked example of Tencent Cloud's documentation of the algorithm.
    #[test]
    fn the_published_example() {
        let call = Call {
            service: "cvm",
            host: "cvm.tencentcloudapi.com",
            timestamp: 1_551_113_065,
            body:
                br#"{"Limit": 1, "Filters": [{"Values": ["\u672a\u547d\u540d"], "Name": "instance-name"}]}"#,
        };
        assert_eq!(
            authorization(&call, "AKIDz8krbsJ5yKBZQpn74WFkmLPx3EXAMPLE", "Gu5t9xGARNpq86cd98joQYCN3EXAMPLE"),
            "TC3-HMAC-SHA256 Credential=AKIDz8krbsJ5yKBZQpn74WFkmLPx3EXAMPLE/2019-02-25/cvm/tc3_request, \
             SignedHeaders=content-type;host, \
             Signature=72e494ea809ad7a8c8f7a4507b9bddcbaa8e581f516e8da2f66e2c5a96525168"
        );
    }
}
