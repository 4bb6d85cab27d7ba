//! Rust source as rules see it: words and signs with their lines, without
//! comments, without what stands inside literals, and without test code.
//!
//! Not a parser: it knows literals, comments, brackets and `#[cfg(test)]`, which
//! is what a textual rule needs in order not to trip over a comment or a message.

/// A word (`sleep`, `crate`, `30`), `::`, a literal (shown as `""`), or one sign.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Token {
    pub text: String,
    pub line: usize,
}

/// A path such as `crate::store::Store`, and the line on which it begins.
#[derive(Debug, PartialEq)]
pub(super) struct SourcePath {
    pub segments: Vec<String>,
    pub line: usize,
}

/// Tests may do what the rules forbid: whole files of them are not read.
pub(super) fn is_test_file(path: &str) -> bool {
    path.contains("/tests/") || path.ends_with("/tests.rs") || path.contains("/benches/")
}

/// The tokens of `text` outside test code.
pub(super) fn code(text: &str) -> Vec<Token> {
    without_tests(&tokens(text)).0
}

/// How many lines of `text` are test code inside the file.
pub(super) fn test_line_count(text: &str) -> usize {
    without_tests(&tokens(text)).1
}

/// Every path that begins with the word `root`, with groups written out:
/// `crate::{a, b::{c, d}}` gives `crate::a`, `crate::b::c` and `crate::b::d`.
pub(super) fn paths(code: &[Token], root: &str) -> Vec<SourcePath> {
    let mut found = vec![];
    for start in 0..code.len() {
        let continues_another =
            start > 0 && code[start - 1].text == "::" && is_word(code, start.wrapping_sub(2));
        if code[start].text == root && !continues_another && text_at(code, start + 1) == "::" {
            let mut at = start;
            read_path(code, &mut at, &[], &mut found);
        }
    }
    found
}

/// Reads `a::b`, `a::{…}`, `a::*` or `a as b` at `at`, below `prefix`.
fn read_path(code: &[Token], at: &mut usize, prefix: &[String], found: &mut Vec<SourcePath>) {
    let Some(first) = code.get(*at) else { return };
    let mut segments = prefix.to_vec();
    loop {
        match text_at(code, *at) {
            "{" => return read_group(code, at, &segments, found),
            text if is_word(code, *at) || text == "*" => segments.push(text.to_owned()),
            _ => break,
        }
        *at += 1;
        if text_at(code, *at) != "::" {
            break;
        }
        *at += 1;
    }
    if text_at(code, *at) == "as" {
        *at += 2;
    }
    found.push(SourcePath { segments, line: first.line });
}

fn read_group(code: &[Token], at: &mut usize, prefix: &[String], found: &mut Vec<SourcePath>) {
    *at += 1;
    while *at < code.len() && text_at(code, *at) != "}" {
        let before = *at;
        read_path(code, at, prefix, found);
        if text_at(code, *at) == "," || *at == before {
            *at += 1;
        }
    }
    *at += 1;
}

fn text_at(code: &[Token], at: usize) -> &str {
    code.get(at).map_or("", |token| token.text.as_str())
}

fn is_word(code: &[Token], at: usize) -> bool {
    text_at(code, at).starts_with(|c: char| c.is_alphanumeric() || c == '_')
}

/// The tokens outside items marked `#[cfg(test)]`, `#[cfg(all(test, …))]` or
/// `#[test]`, and the number of lines of those that are.
fn without_tests(tokens: &[Token]) -> (Vec<Token>, usize) {
    let (mut kept, mut test_lines, mut at) = (vec![], 0, 0);
    while at < tokens.len() {
        let Some(end) = end_of_test_item(tokens, at) else {
            kept.push(tokens[at].clone());
            at += 1;
            continue;
        };
        test_lines += tokens[end - 1].line - tokens[at].line + 1;
        at = end;
    }
    (kept, test_lines)
}

/// Where the test item that begins at `at` ends, if one does.
fn end_of_test_item(tokens: &[Token], at: usize) -> Option<usize> {
    const MARKS: &[&[&str]] = &[
        &["#", "[", "cfg", "(", "test", ")"],
        &["#", "[", "cfg", "(", "all", "(", "test", ","],
        &["#", "[", "test", "]"],
        &["#", "[", "tokio", "::", "test"],
    ];
    const WHOLE_FILE: &[&str] = &["#", "!", "[", "cfg", "(", "test", ")"];
    let begins_with =
        |mark: &[&str]| mark.iter().enumerate().all(|(i, text)| text_at(tokens, at + i) == *text);
    if begins_with(WHOLE_FILE) {
        return Some(tokens.len());
    }
    MARKS.iter().any(|mark| begins_with(mark)).then(|| end_of_item(tokens, at))
}

/// An item ends at its first `;` outside brackets, or where its `{…}` closes.
/// The attributes before it are brackets like any other.
fn end_of_item(tokens: &[Token], start: usize) -> usize {
    let mut depth = 0_usize;
    for (at, token) in tokens.iter().enumerate().skip(start) {
        match token.text.as_str() {
            "{" | "(" | "[" => depth += 1,
            "}" | ")" | "]" => {
                depth = depth.saturating_sub(1);
                if depth == 0 && token.text == "}" {
                    return at + 1;
                }
            }
            ";" if depth == 0 => return at + 1,
            _ => {}
        }
    }
    tokens.len()
}

/// The tokens of `text`, with those of test code.
pub(super) fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let (mut found, mut at, mut line) = (vec![], 0, 1);
    while at < chars.len() {
        let (text, end) = next_token(&chars, at);
        if let Some(text) = text {
            found.push(Token { text, line });
        }
        line += chars[at..end].iter().filter(|c| **c == '\n').count();
        at = end;
    }
    found
}

/// The token that begins at `at` (none for space and comments) and where it ends.
fn next_token(chars: &[char], at: usize) -> (Option<String>, usize) {
    let rest = &chars[at..];
    let literal = |length: usize| (Some("\"\"".to_owned()), (at + length).min(chars.len()));
    match rest {
        ['/', '/', ..] => (None, at + rest.iter().position(|c| *c == '\n').unwrap_or(rest.len())),
        ['/', '*', ..] => (None, at + block_comment_length(rest)),
        ['"', ..] => literal(string_length(rest)),
        ['\'', '\\', ..] => literal(3 + rest[3..].iter().position(|c| *c == '\'').unwrap_or(0) + 1),
        ['\'', _, '\'', ..] => literal(3),
        [':', ':', ..] => (Some("::".to_owned()), at + 2),
        [c, ..] if c.is_alphanumeric() || *c == '_' => {
            let length = rest.iter().position(|c| !c.is_alphanumeric() && *c != '_').unwrap_or(rest.len());
            let word: String = rest[..length].iter().collect();
            match (word.as_str(), &rest[length..]) {
                ("b" | "c", ['"', ..]) => literal(length + string_length(&rest[length..])),
                ("r" | "br" | "cr", after) if raw_string_length(after).is_some() => {
                    literal(length + raw_string_length(after).unwrap_or(0))
                }
                _ => (Some(word), at + length),
            }
        }
        [c, ..] if c.is_whitespace() => (None, at + 1),
        [c, ..] => (Some(c.to_string()), at + 1),
        [] => (None, at),
    }
}

fn block_comment_length(rest: &[char]) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < rest.len() {
        match &rest[at..] {
            ['/', '*', ..] => (depth, at) = (depth + 1, at + 2),
            ['*', '/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn string_length(rest: &[char]) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != '"' {
        at += if rest[at] == '\\' { 2 } else { 1 };
    }
    at + 1
}

/// Length of `##"…"##`, if that is what `rest` begins with.
fn raw_string_length(rest: &[char]) -> Option<usize> {
    let hashes = rest.iter().take_while(|c| **c == '#').count();
    if rest.get(hashes) != Some(&'"') {
        return None;
    }
    let end: Vec<char> = std::iter::once('"').chain(std::iter::repeat_n('#', hashes)).collect();
    let body = &rest[hashes + 1..];
    let length = body.windows(end.len()).position(|window| window == end).unwrap_or(body.len());
    Some(hashes + 1 + length + end.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        code(text).into_iter().map(|token| token.text).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn comments_and_literals_are_not_code() {
        let table = [
            ("a // sleep\nb", "a b"),
            ("a /* sleep /* twice */ */ b", "a b"),
            (r#"say("sleep \" sleep")"#, r#"say ( "" )"#),
            ("r##\"sleep \"# sleep\"## b", "\"\" b"),
            ("b\"sleep\" br#\"sleep\"# end", "\"\" \"\" end"),
            (r"'\'' + '\u{1f}' + 'x' + f::<'a>()", "\"\" + \"\" + \"\" + f :: < ' a > ( )"),
            ("r#type", "r # type"),
        ];
        for (text, expected) in table {
            assert_eq!(words(text), expected, "{text}");
        }
    }

    #[test]
    fn test_items_are_left_out_and_counted() {
        let table = [
            ("a;\n#[cfg(test)]\nmod tests {\n  fn f() { sleep(\"}\") }\n}\nb", "a ; b", 4),
            ("#[cfg(test)]\nmod tests;\nb", "b", 2),
            ("#[cfg(all(test, unix))] use x::{y};\nb", "; b", 1),
            ("#[cfg(test)]\n#[allow(dead_code)]\nfn f(x: [u8; 3]) -> u8 {\n  x[0]\n}\nb", "b", 5),
            ("#[tokio::test]\nasync fn f() { g().await }\nb", "b", 2),
            ("#![cfg(test)]\nfn f() {}\nfn g() {}", "", 3),
            (
                "#[cfg(any(test, feature = \"x\"))]\nfn f() {}",
                "# [ cfg ( any ( test , feature = \"\" ) ) ] fn f ( ) { }",
                0,
            ),
        ];
        for (text, expected, lines) in table {
            assert_eq!((words(text).as_str(), test_line_count(text)), (expected, lines), "{text}");
        }
    }

    #[test]
    fn paths_are_found_wherever_they_stand() {
        let found = |text: &str| -> Vec<String> {
            paths(&code(text), "crate").into_iter().map(|path| path.segments.join("::")).collect()
        };
        let table: [(&str, &[&str]); 6] = [
            ("use crate::a::B;", &["crate::a::B"]),
            (
                "use crate::{a, b::{C, d::*}, e as f};",
                &["crate::a", "crate::b::C", "crate::b::d::*", "crate::e"],
            ),
            ("fn f(x: &crate::a::B) { crate::c::d(x) }", &["crate::a::B", "crate::c::d"]),
            ("use crate::{\n    a,\n    b,\n};", &["crate::a", "crate::b"]),
            ("pub(crate) fn f() { other::krate::a() }", &[]),
            ("use crate::*;", &["crate::*"]),
        ];
        for (text, expected) in table {
            assert_eq!(found(text), expected, "{text}");
        }
    }
}
