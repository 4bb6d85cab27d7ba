//! Text from outside, made safe to keep and to show.

use crate::limits;

/// `text` without NUL and other control characters (kept: tab and newline,
/// as a space), cut to `bytes_max` bytes at a character. A database takes it,
/// a log line stays one line, a terminal obeys nothing in it.
pub fn safe(text: &str, bytes_max: usize) -> String {
    let mut kept = String::with_capacity(text.len().min(bytes_max));
    for character in text.chars() {
        let character = match character {
            '\t' | '\n' | '\r' => ' ',
            c if c.is_control() || is_invisible_format(c) => '\u{fffd}',
            c => c,
        };
        if kept.len() + character.len_utf8() > bytes_max {
            break;
        }
        kept.push(character);
    }
    kept
}

/// A reason as it is kept.
pub fn reason(text: &str) -> String {
    safe(text, limits::REASON_BYTES_MAX)
}

/// Characters that change how the text around them is shown (bidirectional
/// overrides, zero-width marks): a terminal or a page would show something
/// else than what is stored.
fn is_invisible_format(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_never_reach_a_log_or_a_database() {
        assert_eq!(
            safe("a\u{0}b\r\n2026 ERROR fake \u{1b}[31m", 100),
            "a\u{fffd}b  2026 ERROR fake \u{fffd}[31m"
        );
    }

    #[test]
    fn the_cut_is_in_bytes_and_at_a_character() {
        assert_eq!(safe("éééé", 5), "éé");
        assert_eq!(safe(&"x".repeat(10_000_000), 1024).len(), 1024);
    }
}
