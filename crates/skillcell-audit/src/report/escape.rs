//! Words of hostile origin on their way into a page.

use std::fmt::Write;

/// Longer words are cut, with their length; the log has all of them.
const MAX_SHOWN: usize = 600;

/// Text between tags or in a quoted attribute: nothing in it is markup any more.
pub(super) fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

/// What a skill chose: isolated, so that it can't turn what stands beside it, and with everything
/// visible that a browser would not show.
pub(super) fn hostile(text: &str) -> String {
    let mut out = String::from("<bdi>");
    let mut rest = text.chars();
    for c in rest.by_ref().take(MAX_SHOWN) {
        if is_odd(c) {
            // Writing to a String can't fail.
            write!(out, "<b class=odd>{}</b>", c.escape_unicode()).unwrap_or_default();
        } else {
            out.push_str(&plain(c.encode_utf8(&mut [0; 4])));
        }
    }
    let more = rest.count();
    if more > 0 {
        write!(out, "<b class=odd>… {more} more characters</b>").unwrap_or_default();
    }
    out.push_str("</bdi>");
    out
}

/// Control characters, direction marks, and others that show nothing or something else.
fn is_odd(c: char) -> bool {
    c.is_control()
        || matches!(c,
            '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}' | '\u{1160}' | '\u{17b4}' | '\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
            | '\u{ffa0}' | '\u{fff0}'..='\u{fffb}' | '\u{e0000}'..='\u{e0fff}')
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn markup_and_invisible_characters_become_text() {
        assert_eq!(
            hostile("<b a=\"1\" c='2'>&\u{202e}\u{1b}[0m"),
            "<bdi>&lt;b a=&quot;1&quot; c=&#39;2&#39;&gt;&amp;<b class=odd>\\u{202e}</b><b class=odd>\\u{1b}</b>[0m</bdi>"
        );
    }

    #[test]
    fn long_words_say_how_much_is_not_shown() {
        let shown = hostile(&"x".repeat(1000));
        assert!(
            shown.ends_with("… 400 more characters</b></bdi>"),
            "{shown}"
        );
    }

    proptest! {
        #[test]
        fn no_word_opens_a_tag(text in "\\PC*|[<>&\"'/a-z\u{0}-\u{20}\u{7f}-\u{a0}\u{2000}-\u{2070}]*") {
            let shown = hostile(&text)
                .replace("<bdi>", "").replace("</bdi>", "")
                .replace("<b class=odd>", "").replace("</b>", "");
            prop_assert!(!shown.contains(['<', '>', '"', '\'']));
            prop_assert!(!shown.chars().any(is_odd));
        }
    }
}
