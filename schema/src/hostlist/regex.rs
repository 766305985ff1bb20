//! Node names as regular expressions: they cost by ranges, never by nodes.
//!
//! The form is RE2, which Prometheus and node-feature-discovery read. None is anchored: whoever looks
//! for a match anywhere in a name puts `^(?:…)$` around it.

use super::{HostRange, Hostlist};

impl Hostlist {
    /// A regular expression that matches the names of the list and no other, if it is anchored.
    pub fn regex(&self) -> String {
        self.regexes().join("|")
    }

    /// The same in parts, one a range: where a list of expressions is wanted, and none may be long.
    pub fn regexes(&self) -> Vec<String> {
        self.0.iter().map(of_range).collect()
    }
}

fn of_range(range: &HostRange) -> String {
    // Only dots mean something else: names hold letters, digits, `-`, `_` and `.`.
    let escaped = |text: &str| text.replace('.', "[.]");
    let HostRange { prefix, suffix, digits, lo, hi } = range;
    let number = match *digits {
        0 => String::new(),
        digits => between(&format!("{lo:0digits$}"), &format!("{hi:0digits$}")),
    };
    format!("{}{number}{}", escaped(prefix), escaped(suffix))
}

/// A regular expression for the numbers from `low` to `high`, which have as many digits each.
fn between(low: &str, high: &str) -> String {
    let first = |text: &str| text.bytes().next().unwrap_or(b'0');
    let rest = |text: &str| text.get(1..).unwrap_or_default().to_owned();
    let any = |digits: usize| match digits {
        0 => String::new(),
        1 => "[0-9]".to_owned(),
        more => format!("[0-9]{{{more}}}"),
    };
    let one = |from: u8, to: u8| match from == to {
        true => char::from(from).to_string(),
        false => format!("[{}-{}]", char::from(from), char::from(to)),
    };
    if low.is_empty() {
        return String::new();
    }
    let (mut from, mut to) = (first(low), first(high));
    let (low, high) = (rest(low), rest(high));
    let digits = low.len();
    if from == to {
        return format!("{}{}", one(from, to), between(&low, &high));
    }
    let mut parts = Vec::new();
    // The ends first: what they share with whole tens, hundreds and so on goes to the middle.
    if low.bytes().any(|digit| digit != b'0') {
        parts.push(format!("{}{}", one(from, from), between(&low, &"9".repeat(digits))));
        from += 1;
    }
    let last = high.bytes().any(|digit| digit != b'9').then(|| {
        let last = format!("{}{}", one(to, to), between(&"0".repeat(digits), &high));
        to -= 1;
        last
    });
    if from <= to {
        parts.push(format!("{}{}", one(from, to), any(digits)));
    }
    parts.extend(last);
    match parts.as_slice() {
        [only] => only.clone(),
        _ => format!("({})", parts.join("|")),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{list, names, set};
    use proptest::prelude::*;

    #[test]
    fn a_regular_expression_names_the_nodes_by_digits() {
        for (text, regex) in [
            ("gpu[001-032]", "gpu0(0[1-9]|[1-2][0-9]|3[0-2])"),
            ("n[0-9]", "n[0-9]"),
            ("n[00-99]", "n[0-9][0-9]"),
            ("n[15-19]", "n1[5-9]"),
            ("gpu07", "gpu07"),
            ("ctl", "ctl"),
            ("a.b[1-2]-ib", "a[.]b[1-2]-ib"),
            ("n[8-12]", "n[8-9]|n1[0-2]"),
            ("burst-[0001-0016]", "burst-00(0[1-9]|1[0-6])"),
        ] {
            assert_eq!(list(text).regex(), regex, "{text}");
        }
    }

    /// Matches the few forms that `regex` writes: all that is left of `text` after each way through.
    fn left<'a>(regex: &str, text: &'a str) -> Vec<&'a str> {
        let (mut depth, mut bars) = (0, vec![0]);
        for (at, c) in regex.char_indices() {
            match c {
                '(' | '[' => depth += 1,
                ')' | ']' => depth -= 1,
                '|' if depth == 0 => bars.push(at + 1),
                _ => {}
            }
        }
        if bars.len() > 1 {
            bars.push(regex.len() + 1);
            let arms = bars.windows(2).map(|pair| regex.get(pair[0]..pair[1] - 1).unwrap());
            return arms.flat_map(|arm| left(arm, text)).collect();
        }
        let Some(head) = regex.chars().next() else { return vec![text] };
        let close = |c| regex.find(c).unwrap();
        let next = text.chars().next();
        match head {
            '(' => {
                let mut depth = 0;
                let end = regex.char_indices().position(|(_, c)| {
                    depth += i32::from(c == '(') - i32::from(c == ')');
                    depth == 0
                });
                let (group, rest) = regex.split_at(end.unwrap());
                let (group, rest) = (group.get(1..).unwrap(), rest.get(1..).unwrap());
                left(group, text).into_iter().flat_map(|t| left(rest, t)).collect()
            }
            '[' => {
                let (class, rest) = regex.split_at(close(']') + 1);
                let (times, rest) = match rest.strip_prefix('{') {
                    Some(more) => {
                        let (count, rest) = more.split_once('}').unwrap();
                        (count.parse::<usize>().unwrap(), rest)
                    }
                    None => (1, rest),
                };
                let ends: Vec<char> = class.chars().filter(|c| !"[]-".contains(*c)).collect();
                let fits = |c: char| ends[0] <= c && c <= *ends.last().unwrap();
                match text.len() >= times && text.chars().take(times).all(fits) {
                    true => left(rest, text.get(times..).unwrap()),
                    false => Vec::new(),
                }
            }
            c if next == Some(c) => left(regex.get(1..).unwrap(), text.get(1..).unwrap()),
            _ => Vec::new(),
        }
    }

    proptest! {
        #[test]
        fn a_regular_expression_matches_what_the_list_holds(names in names(), others in names()) {
            let all = set(&names);
            let regex = all.regex();
            for name in names.iter().chain(&others) {
                let matches = left(&regex, name).iter().any(|rest| rest.is_empty());
                prop_assert_eq!(matches, all.contains(name), "{} {}", regex, name);
            }
        }

        #[test]
        fn every_range_of_numbers_is_matched_exactly(low in 0_u32..2000, more in 0_u32..2000) {
            let all = list(&format!("n[{low:04}-{:04}]", low + more));
            let regex = all.regex();
            for number in [low.saturating_sub(1), low, low + 1, low + more, low + more + 1, more] {
                let name = format!("n{number:04}");
                let matches = left(&regex, &name).iter().any(|rest| rest.is_empty());
                prop_assert_eq!(matches, all.contains(&name), "{} {}", &regex, name);
            }
        }
    }
}
