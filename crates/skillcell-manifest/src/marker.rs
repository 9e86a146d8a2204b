//! The condition of a requirement (PEP 508 markers), by grammar: whatever an installer might read
//! into the rest of the line doesn't fit it.

const MAX_PARENS: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq)]
enum Token {
    Value,
    Operator,
    And,
    In,
    Not,
    Open,
    Close,
}

pub(crate) fn marker_is_valid(text: &str) -> bool {
    let Some(tokens) = tokens(text) else {
        return false;
    };
    // What may come next: an operand that begins a comparison, its operator, its second operand,
    // or what joins it to the next comparison.
    #[derive(PartialEq)]
    enum State {
        First,
        Operator,
        In,
        Second,
        Joined,
    }
    let (mut state, mut parens) = (State::First, 0_usize);
    for token in tokens {
        state = match (state, token) {
            (State::First, Token::Open) if parens < MAX_PARENS => {
                parens += 1;
                State::First
            }
            (State::First, Token::Value) => State::Operator,
            (State::Operator, Token::Operator | Token::In) => State::Second,
            (State::Operator, Token::Not) => State::In,
            (State::In, Token::In) => State::Second,
            (State::Second, Token::Value) => State::Joined,
            (State::Joined, Token::Close) if parens > 0 => {
                parens -= 1;
                State::Joined
            }
            (State::Joined, Token::And) => State::First,
            _ => return false,
        };
    }
    state == State::Joined && parens == 0
}

fn tokens(text: &str) -> Option<Vec<Token>> {
    let mut tokens = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let (token, length) = match first {
            '(' => (Token::Open, 1),
            ')' => (Token::Close, 1),
            '"' | '\'' => {
                let inner = &rest[1..];
                let end = inner.find(first)?;
                let allowed = |b: u8| b.is_ascii_alphanumeric() || b" ._-+!*,".contains(&b);
                if !inner[..end].bytes().all(allowed) {
                    return None;
                }
                (Token::Value, end + 2)
            }
            '<' | '>' | '=' | '!' | '~' => {
                let length = rest.find(|c| !"<>=!~".contains(c)).unwrap_or(rest.len());
                let known =
                    ["===", "==", "~=", "!=", "<=", ">=", "<", ">"].contains(&&rest[..length]);
                if !known {
                    return None;
                }
                (Token::Operator, length)
            }
            c if c.is_ascii_alphabetic() => {
                let end = rest
                    .find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.'))
                    .unwrap_or(rest.len());
                let token = match &rest[..end] {
                    "and" | "or" => Token::And,
                    "in" => Token::In,
                    "not" => Token::Not,
                    _ => Token::Value,
                };
                (token, end)
            }
            _ => return None,
        };
        tokens.push(token);
        rest = rest[length..].trim_start();
    }
    Some(tokens)
}
