//! Ways in which some servers are told that a request is another than it says.

use hyper::Request;

/// Headers that change the method, or the path.
const HEADERS: [&str; 6] = [
    "x-http-method-override",
    "x-http-method",
    "x-method-override",
    "x-original-url",
    "x-rewrite-url",
    "x-override-url",
];
/// In a query, where Rails, Symfony and Laravel look for the method. In a form they do as well, which
/// would have to be understood to be searched.
const PARAMETER: &str = "_method";

pub(super) fn any<B>(request: &Request<B>) -> bool {
    let headers = request.headers();
    HEADERS.iter().any(|name| headers.contains_key(*name))
        || request.uri().query().is_some_and(in_query)
}

fn in_query(query: &str) -> bool {
    query.split(['&', ';']).any(|pair| {
        let name = pair.split('=').next().unwrap_or_default();
        decoded(name).eq_ignore_ascii_case(PARAMETER.as_bytes())
    })
}

fn decoded(text: &str) -> Vec<u8> {
    let (mut out, mut rest) = (Vec::new(), text.as_bytes());
    loop {
        rest = match rest {
            [] => return out,
            [first, after @ ..] => {
                let escaped = match rest {
                    [b'%', high, low, behind @ ..] => byte(*high, *low).map(|b| (b, behind)),
                    _ => None,
                };
                let (byte, after) = escaped.unwrap_or((*first, after));
                out.push(byte);
                after
            }
        };
    }
}

fn byte(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? * 16 + digit(low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(target: &str, header: Option<&str>) -> Request<()> {
        let mut request = Request::builder().uri(target);
        if let Some(name) = header {
            request = request.header(name, "DELETE");
        }
        request.body(()).expect("a request")
    }

    #[test]
    fn every_way_is_seen() {
        for name in HEADERS {
            assert!(any(&request("/", Some(name))), "{name}");
            assert!(any(&request("/", Some(&name.to_uppercase()))), "{name}");
        }
        for query in [
            "_method=DELETE",
            "a=b&_METHOD=x",
            "a;_method",
            "%5fmeth%6Fd=x",
        ] {
            assert!(any(&request(&format!("/?{query}"), None)), "{query}");
        }
        for query in [
            "method=x",
            "a=_method",
            "x_method=1",
            "%5",
            "%zz_method=1",
            "",
        ] {
            assert!(!any(&request(&format!("/?{query}"), None)), "{query}");
        }
        assert!(!any(&request("/_method=x", Some("x-method"))));
    }
}
