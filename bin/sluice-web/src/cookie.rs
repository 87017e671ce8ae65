//! The cookie of a sign-in (RFC 6265).

use crate::sign_ins::LIFETIME;
use axum::http::header::COOKIE;
use axum::http::{HeaderMap, HeaderValue};

/// Its name. The prefix has browsers take it from this host alone, by HTTPS, for every path: no other host of the domain can set it
/// (RFC 6265bis, section 4.1.3.2).
pub const NAME: &str = "__Host-sluice";

/// The secret that a request presents.
pub fn presented(headers: &HeaderMap) -> Option<&str> {
    // HTTP/2 may split the header (RFC 9113, section 8.2.3)
    let headers = headers.get_all(COOKIE).iter();
    let pairs = headers.filter_map(|header| header.to_str().ok());
    let mut pairs = pairs.flat_map(|header| header.split(';'));
    pairs.find_map(|pair| {
        let (name, value) = pair.trim().split_once('=')?;
        (name == NAME).then_some(value)
    })
}

/// Has a browser keep a sign-in's secret, unseen by scripts, and send it with requests of this server's own pages only.
pub fn set(secret: &str) -> Option<HeaderValue> {
    header(secret, LIFETIME)
}

/// Has a browser forget it.
pub fn clear() -> Option<HeaderValue> {
    header("", 0)
}

fn header(secret: &str, age: u64) -> Option<HeaderValue> {
    let text = format!("{NAME}={secret}; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age={age}");
    let mut header = HeaderValue::from_str(&text).ok()?;
    // neither in Debug nor in HPACK's table
    header.set_sensitive(true);
    Some(header)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cookie_is_found_among_others() {
        let found = |cookies: &[&str]| {
            let cookies = cookies
                .iter()
                .map(|cookie| (COOKIE, cookie.parse().unwrap()));
            presented(&cookies.collect()).map(str::to_owned)
        };
        let secret = Some("abc".to_owned());
        assert_eq!(found(&["__Host-sluice=abc"]), secret);
        assert_eq!(found(&["a=b; __Host-sluice=abc;c=d"]), secret);
        assert_eq!(found(&["a=b", "__Host-sluice=abc"]), secret);
        assert_eq!(found(&["a; __Host-sluice=abc"]), secret);
        for none in [
            "sluice=abc",
            "__host-sluice=abc",
            "__Host-sluice",
            "x=__Host-sluice=abc",
            "__Host-sluice2=abc",
            "",
        ] {
            assert_eq!(found(&[none]), None, "{none}");
        }
        assert_eq!(found(&[]), None);
    }

    #[test]
    fn a_browser_keeps_it_from_scripts_and_other_sites() {
        let set = set("abc").unwrap();
        assert_eq!(
            set,
            "__Host-sluice=abc; Path=/; Secure; HttpOnly; SameSite=Strict; Max-Age=43200"
        );
        assert!(!format!("{set:?}").contains("abc"));
        let clear = clear().unwrap();
        assert!(clear.to_str().unwrap().ends_with("; Max-Age=0"));
    }
}
