//! `%20` and the like in addresses. Decides that what is no such escape stays as it is.

/// The text that is meant.
pub(in crate::servers::reading) fn percent_decoded(path: &str) -> String {
    let bytes = path.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let digits = bytes.get(at + 1..at + 3).and_then(|digits| std::str::from_utf8(digits).ok());
        match digits.filter(|_| byte == b'%').and_then(|digits| u8::from_str_radix(digits, 16).ok()) {
            Some(escaped) => {
                out.push(escaped);
                at += 3;
            }
            None => {
                out.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}
