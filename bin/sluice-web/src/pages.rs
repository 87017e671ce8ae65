//! The web manager's files, which `build.rs` puts into the program.

use crate::api::is_known;
use axum::body::Bytes;
use axum::http::header::{
    ACCEPT_ENCODING, CACHE_CONTROL, CONTENT_ENCODING, CONTENT_SECURITY_POLICY, CONTENT_TYPE, ETAG,
    VARY,
};
use axum::http::{HeaderMap, HeaderName, StatusCode};
use axum::response::{IntoResponse, Response};

include!(concat!(env!("OUT_DIR"), "/pages.rs"));

/// What a page may load and do: its own files and this server's API. Scripts and styles in the page itself are not run.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; \
                      font-src 'self'; manifest-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'";
/// For files whose names change with their content.
const FOR_EVER: &str = "public, max-age=31536000, immutable";

/// A file of the web manager.
#[derive(Debug)]
pub struct Page {
    path: &'static str,
    media_type: &'static str,
    content: Content,
    /// Compressed content, if it is smaller.
    gzip: Option<Content>,
}

/// Content of a file, and its entity tag.
#[derive(Debug)]
struct Content {
    tag: &'static str,
    octets: &'static [u8],
}

/// The file at a path.
pub fn find(path: &str) -> Option<&'static Page> {
    PAGES.iter().find(|page| page.path == path)
}

impl Page {
    /// The file, or that it is what the client has already.
    pub fn answer(&self, headers: &HeaderMap) -> Response {
        let compressed = self.gzip.as_ref().filter(|_| takes_gzip(headers));
        let content = compressed.unwrap_or(&self.content);
        let kept = match self.path.starts_with("/assets/") {
            true => FOR_EVER,
            false => "no-cache",
        };
        let mut head: Vec<(HeaderName, &str)> = vec![
            (ETAG, content.tag),
            (CACHE_CONTROL, kept),
            (CONTENT_SECURITY_POLICY, POLICY),
        ];
        if self.gzip.is_some() {
            head.push((VARY, "Accept-Encoding"));
        }
        let mut response = if is_known(headers, content.tag) {
            StatusCode::NOT_MODIFIED.into_response()
        } else {
            head.push((CONTENT_TYPE, self.media_type));
            if compressed.is_some() {
                head.push((CONTENT_ENCODING, "gzip"));
            }
            Bytes::from_static(content.octets).into_response()
        };
        for (name, value) in head {
            let value = axum::http::HeaderValue::from_static(value);
            response.headers_mut().insert(name, value);
        }
        response
    }
}

/// Whether a client takes gzip (RFC 9110, section 12.5.3).
fn takes_gzip(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(ACCEPT_ENCODING).iter();
    let accepted = accepted.filter_map(|accepted| accepted.to_str().ok());
    let codings = accepted.flat_map(|accepted| accepted.split(','));
    let (mut gzip, mut others) = (None, None);
    for coding in codings {
        let (coding, weight) = coding.split_once(';').unwrap_or((coding, "q=1"));
        let weight = weight.trim().strip_prefix("q=");
        let wanted = weight
            .and_then(|q| q.parse::<f32>().ok())
            .is_some_and(|q| q > 0.0);
        match coding.trim() {
            coding if coding.eq_ignore_ascii_case("gzip") => gzip = Some(wanted),
            "*" => others = Some(wanted),
            _ => {}
        }
    }
    gzip.or(others).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::tests::headers;
    use axum::http::header::IF_NONE_MATCH;

    #[test]
    fn gzip_is_for_those_who_take_it() {
        let takes = |accepted| takes_gzip(&headers(&[(ACCEPT_ENCODING, accepted)]));
        for yes in [
            "gzip",
            "br, gzip",
            "GZIP;q=0.1",
            "*",
            "deflate, *;q=0.5",
            "br;q=0, gzip; q=1",
        ] {
            assert!(takes(yes), "{yes}");
        }
        for no in [
            "",
            "br",
            "gzip;q=0",
            "gzip;q=0.000",
            "*, gzip;q=0",
            "gzip;q=x",
            "x-gzip-not",
        ] {
            assert!(!takes(no), "{no}");
        }
        assert!(!takes_gzip(&HeaderMap::new()));
    }

    #[test]
    fn the_page_is_there_and_asked_for_again_and_each_form_has_its_tag() {
        let page = find("/").unwrap();
        let plain = page.answer(&HeaderMap::new());
        assert_eq!(plain.headers()[CONTENT_TYPE], "text/html; charset=utf-8");
        assert_eq!(plain.headers()[CACHE_CONTROL], "no-cache");
        let gzip = headers(&[(ACCEPT_ENCODING, "gzip")]);
        let tags =
            [&HeaderMap::new(), &gzip].map(|headers| page.answer(headers).headers()[ETAG].clone());
        assert_eq!(tags[0] == tags[1], page.gzip.is_none());
        let known = headers(&[(IF_NONE_MATCH, tags[0].to_str().unwrap())]);
        let again = page.answer(&known);
        assert_eq!(again.status(), StatusCode::NOT_MODIFIED);
        assert_eq!(again.headers()[ETAG], tags[0]);
        assert!(!again.headers().contains_key(CONTENT_TYPE));
        assert!(find("/index.html").is_none() && find("").is_none());
    }
}
