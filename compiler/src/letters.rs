//! Letters that look like others, and what cannot be seen.
//!
//! A word with a Cyrillic `а` in it is another word and looks the same; so does one with a blank of no
//! width. A finding about such a word says so. What steers a terminal is never printed as it is.
//! Source of the look-alikes: Unicode Technical Standard 39, `confusables.txt`, as far as it names
//! letters of the two alphabets that share keyboards and copied text with ASCII.

use std::borrow::Cow;

/// Letters and marks that look like one of ASCII.
const ALIKE: &[(&str, &str)] = &[
    (
        "Cyrillic",
        "аa еe оo рp сc уy хx іi јj ѕs һh ԁd ԛq ԝw ѵv АA ВB ЕE КK МM НH ОO РP СC ТT ХX ІI ЈJ ЅS",
    ),
    ("Greek", "οo αa νv ιi ρp υu ΑA ΒB ΕE ΖZ ΗH ΙI ΚK ΜM ΝN ΟO ΡP ΤT ΥY ΧX"),
    ("typographic", "‐- ‑- ‒- –- —- −- “\" ”\" „\" ‟\" ‘' ’' ‚' ‛' ⁄/ ∕/ ․."),
];

/// The difference between a full-width letter and its own.
const FULL_WIDTH: u32 = 0xfee0;

/// The letter of ASCII that looks like this one, and of what alphabet this one is.
fn alike(letter: char) -> Option<(char, &'static str)> {
    if matches!(letter, '\u{ff01}'..='\u{ff5e}') {
        let plain = char::from_u32(u32::from(letter) - FULL_WIDTH)?;
        return Some((plain, "full-width"));
    }
    ALIKE.iter().find_map(|(alphabet, pairs)| {
        let mut pairs = pairs.split(' ').map(str::chars);
        let plain = pairs.find_map(|mut pair| (pair.next() == Some(letter)).then(|| pair.next()));
        Some((plain??, *alphabet))
    })
}

/// What a letter that cannot be seen is; none for one that can.
fn unseen(letter: char) -> Option<&'static str> {
    match letter {
        '\t' | '\n' | '\r' | ' ' => None,
        '\u{ad}' => Some("a hyphen that is not shown"),
        '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{180e}' => Some("a mark of no width"),
        '\u{feff}' => Some("a byte order mark"),
        letter if turns(letter) => Some("a mark that turns the direction of text"),
        letter if letter.is_control() => Some("a control character"),
        letter if letter.is_whitespace() => Some("a blank of another kind"),
        _ => None,
    }
}

/// True for what turns the direction of text, or ends a line without looking like it.
fn turns(letter: char) -> bool {
    matches!(letter, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// What a word hides: letters that look like ASCII while the others are ASCII, and what is not seen.
pub(crate) fn hidden(word: &str) -> Option<String> {
    if word.is_ascii() && !word.contains(|letter| unseen(letter).is_some()) {
        return None;
    }
    let strange = word.chars().filter(|letter| unseen(*letter).is_some() || !letter.is_ascii());
    let mut found: Vec<String> = Vec::new();
    for letter in strange {
        let code = u32::from(letter);
        let one = match (unseen(letter), alike(letter)) {
            (Some(what), _) => format!("U+{code:04X}, {what}"),
            (None, Some((plain, alphabet))) => {
                format!("U+{code:04X}, a {alphabet} `{letter}` that looks like `{plain}`")
            }
            // A word of another alphabet, not one that pretends.
            (None, None) => return None,
        };
        if !found.contains(&one) {
            found.push(one);
        }
        if found.len() == 4 {
            break;
        }
    }
    Some(format!("it holds {}", found.join("; ")))
}

/// A text for a terminal: what would steer it, or cannot be seen, is spelt out. Lines stay lines.
pub(crate) fn printable(text: &str) -> Cow<'_, str> {
    let harmful = |letter: char| letter.is_control() && letter != '\n' || turns(letter);
    if !text.contains(harmful) {
        return Cow::Borrowed(text);
    }
    let mut printable = String::with_capacity(text.len());
    for letter in text.chars() {
        match harmful(letter) {
            true => printable.extend(letter.escape_unicode()),
            false => printable.push(letter),
        }
    }
    Cow::Owned(printable)
}

/// The text of a file as it may be drawn: every byte keeps its place. What would steer a terminal, and
/// what has no width, becomes a mark of as many bytes.
pub(crate) fn drawable(text: &str) -> Cow<'_, str> {
    let hidden = |letter: char| {
        let blank = letter.is_whitespace() && !turns(letter) && letter != '\u{85}';
        unseen(letter).is_some() && !blank
    };
    if !text.contains(hidden) {
        return Cow::Borrowed(text);
    }
    let mark = |letter: char| match letter.len_utf8() {
        1 => "?",
        2 => "\u{b7}",
        _ => "\u{fffd}",
    };
    let mut drawable = String::with_capacity(text.len());
    for letter in text.chars() {
        match hidden(letter) {
            true => drawable.push_str(mark(letter)),
            false => drawable.push(letter),
        }
    }
    Cow::Owned(drawable)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn look_alikes_are_named_and_other_alphabets_are_not() {
        let note = |word| hidden(word).unwrap_or_default();
        assert_eq!(
            note("tr\u{430}in"),
            "it holds U+0430, a Cyrillic `\u{430}` that looks like `a`"
        );
        assert_eq!(note("gpu\u{2013}01"), "it holds U+2013, a typographic `–` that looks like `-`");
        assert_eq!(
            note("\u{ff47}pu"),
            "it holds U+FF47, a full-width `\u{ff47}` that looks like `g`"
        );
        assert_eq!(note("po\u{200b}ol"), "it holds U+200B, a mark of no width");
        assert_eq!(note("a\u{a0}b"), "it holds U+00A0, a blank of another kind");
        for plain in ["train", "команда", "größe", "ομάδα", "a b\tc", ""] {
            assert_eq!(hidden(plain), None, "{plain}");
        }
    }

    #[test]
    fn what_would_steer_a_terminal_is_spelt_out() {
        assert_eq!(printable("2 × a\n b"), "2 × a\n b");
        assert_eq!(printable("a\u{1b}[2J\rb"), "a\\u{1b}[2J\\u{d}b");
        assert_eq!(printable("\u{202e}x"), "\\u{202e}x");
    }

    #[test]
    fn a_drawn_text_keeps_every_byte_in_its_place() {
        for letter in
            ['\u{0}', '\u{1b}', '\u{7f}', '\u{85}', '\u{9b}', '\u{ad}', '\u{200b}', '\u{202e}']
        {
            let text = format!("a{letter}\u{a0}\tz\r\n");
            let drawn = drawable(&text);
            assert_eq!(drawn.find('z'), text.find('z'));
            assert!(!drawn.contains(letter), "{letter:?}");
        }
        assert_eq!(drawable("a\u{a0}é\tb\n"), "a\u{a0}é\tb\n");
    }
}
