//! Cookies of one chain of redirects.
//!
//! Decides which of them go back: publishers and consent pages set one and lead in a circle until it comes. Nothing is
//! kept beyond the chain, and no host is told what another has set, unless both belong to the domain that it was set
//! for.

use reqwest::header::{COOKIE, HeaderMap, HeaderValue, SET_COOKIE};
use url::{Host, Url};

/// Cookies that are kept; a chain that sets more goes nowhere.
const MOST: usize = 50;
/// Bytes of one with its name, as browsers have it.
const LONGEST: usize = 4096;

#[derive(Debug, Default)]
pub(super) struct Cookies(Vec<Cookie>);

#[derive(Debug)]
struct Cookie {
    name: String,
    value: String,
    host: String,
    /// Hosts below `host` get it too.
    with_subdomains: bool,
    secure: bool,
}

impl Cookies {
    /// Keeps what a host has set.
    pub(super) fn take(&mut self, url: &Url, headers: &HeaderMap) {
        let texts = headers.get_all(SET_COOKIE).iter().filter_map(|value| value.to_str().ok());
        for (cookie, is_deleted) in texts.filter_map(|text| read(text, url)) {
            self.0.retain(|known| known.name != cookie.name || known.host != cookie.host);
            if !is_deleted && self.0.len() < MOST {
                self.0.push(cookie);
            }
        }
    }

    /// The headers of a request with the cookies that belong to it.
    pub(super) fn added_to(&self, headers: &HeaderMap, url: &Url) -> HeaderMap {
        let mut headers = headers.clone();
        let kept: Vec<&Cookie> = self.0.iter().filter(|cookie| cookie.belongs_to(url)).collect();
        let own = headers.get(COOKIE).and_then(|value| value.to_str().ok()).unwrap_or_default();
        // What a host has set since then replaces what the caller gave.
        let is_replaced = |pair: &str| {
            let name = pair.split_once('=').map_or(pair, |(name, _)| name.trim_end());
            kept.iter().any(|cookie| cookie.name == name)
        };
        let own = own.split(';').map(str::trim).filter(|pair| !pair.is_empty() && !is_replaced(pair));
        let set = kept.iter().map(|cookie| format!("{}={}", cookie.name, cookie.value));
        let pairs: Vec<String> = own.map(str::to_owned).chain(set).collect();
        if let Ok(mut value) = HeaderValue::try_from(pairs.join("; "))
            && !value.is_empty()
        {
            value.set_sensitive(true);
            headers.insert(COOKIE, value);
        }
        headers
    }
}

impl Cookie {
    fn belongs_to(&self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        (host == self.host || (self.with_subdomains && is_below(host, &self.host)))
            && (!self.secure || url.scheme() == "https")
    }
}

/// A cookie, and whether it was set to be deleted; none where it is not for the host that sets it.
fn read(text: &str, url: &Url) -> Option<(Cookie, bool)> {
    let mut parts = text.split(';').map(str::trim);
    let (name, value) = parts.next()?.split_once('=')?;
    let (name, value) = (name.trim_end(), value.trim_start());
    if name.is_empty() || name.len() + value.len() > LONGEST {
        return None;
    }
    let setting = url.host_str()?;
    let mut cookie = Cookie {
        name: name.to_owned(),
        value: value.to_owned(),
        host: setting.to_owned(),
        with_subdomains: false,
        secure: false,
    };
    let (mut is_over_by_age, mut is_over_by_date) = (None, false);
    for part in parts {
        let (key, value) = part.split_once('=').unwrap_or((part, ""));
        match key.trim_end().to_ascii_lowercase().as_str() {
            "secure" => cookie.secure = true,
            "max-age" => {
                let seconds = value.trim().parse::<i64>().ok();
                is_over_by_age = seconds.map(|seconds| seconds <= 0).or(is_over_by_age);
            }
            "expires" => is_over_by_date = is_past(value),
            "domain" => {
                let domain = value.trim().trim_start_matches('.').to_ascii_lowercase();
                if domain.is_empty() || domain == setting {
                    cookie.with_subdomains =
                        matches!(url.host(), Some(Host::Domain(_))) && !domain.is_empty();
                    continue;
                }
                // Neither a whole top-level domain nor the domain of somebody else.
                let is_name = matches!(url.host(), Some(Host::Domain(_))) && domain.contains('.');
                if !is_name || !is_below(setting, &domain) {
                    return None;
                }
                (cookie.host, cookie.with_subdomains) = (domain, true);
            }
            _ => {}
        }
    }
    Some((cookie, is_over_by_age.unwrap_or(is_over_by_date)))
}

/// Whether a date is over; one that cannot be read is not.
fn is_past(date: &str) -> bool {
    // Days of the week come in several forms, and dates with hyphens too.
    let date = date.split_once(',').map_or(date, |(_, date)| date).trim().replace('-', " ");
    let parser = jiff::fmt::rfc2822::DateTimeParser::new();
    parser.parse_timestamp(&date).is_ok_and(|date| date <= jiff::Timestamp::now())
}

fn is_below(host: &str, domain: &str) -> bool {
    host.strip_suffix(domain).is_some_and(|rest| rest.ends_with('.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(set: &[(&str, &str)], own: Option<&str>, to: &str) -> Option<String> {
        let mut cookies = Cookies::default();
        for (from, text) in set {
            let mut headers = HeaderMap::new();
            headers.append(SET_COOKIE, HeaderValue::from_str(text).unwrap());
            cookies.take(&Url::parse(from).unwrap(), &headers);
        }
        let mut headers = HeaderMap::new();
        if let Some(own) = own {
            headers.insert(COOKIE, HeaderValue::from_str(own).unwrap());
        }
        let headers = cookies.added_to(&headers, &Url::parse(to).unwrap());
        headers.get(COOKIE).map(|value| value.to_str().unwrap().to_owned())
    }

    #[test]
    fn cookies_go_back_to_those_who_set_them() {
        let check = |set: &[(&str, &str)], to: &str, expected: Option<&str>| {
            assert_eq!(sent(set, None, to).as_deref(), expected, "{set:?} to {to}");
        };
        let page = "https://www.a.example/x";
        check(&[], page, None);
        check(&[(page, "s=1; Path=/; HttpOnly"), (page, " t = 2=3")], page, Some("s=1; t=2=3"));
        check(&[(page, "s=1"), (page, "s=2")], page, Some("s=2"));
        check(&[(page, "s=1"), (page, "s=; Max-Age=0")], page, None);
        for (attributes, expected) in [
            ("Expires=Thu, 01 Jan 1970 00:00:00 GMT", None),
            ("expires=Thu, 01-Jan-1970 00:00:01 GMT; path=/", None),
            ("expires=Sunday, 01-Nov-20 08:00:00 GMT", None),
            ("expires=Fri, 31 Dec 9998 23:59:59 GMT", Some("s=x")),
            ("expires=0", Some("s=x")),
            ("Max-Age=60; Expires=Thu, 01 Jan 1970 00:00:00 GMT", Some("s=x")),
            ("Max-Age=0; Expires=Fri, 31 Dec 9998 23:59:59 GMT", None),
        ] {
            check(&[(page, "s=1"), (page, &format!("s=x; {attributes}"))], page, expected);
        }
        check(&[(page, "s=1")], "https://a.example/", None);
        check(&[(page, "s=1")], "https://b.www.a.example/", None);
        check(&[(page, "s=1; domain=.A.example")], "https://b.a.example/", Some("s=1"));
        check(&[(page, "s=1; Domain=www.a.example")], "https://b.www.a.example/", Some("s=1"));
        check(&[(page, "s=1; Domain=a.example")], "https://ba.example/", None);
        for foreign in ["example", "b.example", "ww.a.example", "b.www.a.example"] {
            check(&[(page, &format!("s=1; Domain={foreign}"))], page, None);
        }
        check(&[(page, "s=1; Secure")], "http://www.a.example/", None);
        check(&[("http://10.1.2.3/", "s=1; Domain=2.3")], "http://10.1.2.3/", None);
        check(&[(page, "no pair"), (page, "=v"), (page, &format!("s={}", "x".repeat(5000)))], page, None);
        assert_eq!(sent(&[(page, "s=1")], Some("own=2"), page).as_deref(), Some("own=2; s=1"));
        assert_eq!(sent(&[(page, "s=1")], Some("t=2; s=old;u"), page).as_deref(), Some("t=2; u; s=1"));
        let many: Vec<String> = (0..200).map(|n| format!("n{n}=v")).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|text| (page, text.as_str())).collect();
        assert_eq!(sent(&many, None, page).unwrap().split("; ").count(), MOST);
    }
}
