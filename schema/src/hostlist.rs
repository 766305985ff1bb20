//! Node names in Slurm's hostlist form: `gpu[001-032],login1`.
//!
//! Names are kept as ranges and never expanded, so every operation costs by the number of ranges.
//! The form follows "hostlist" in slurm.conf(5): comma lists, several bracket pairs, ranges in a
//! pair, zero padding by the first number. A suffix after the last bracket needs Slurm 23.11.

mod regex;

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use crate::serde_as_text;

/// The most nodes one hostlist may name: far above Slurm's 65,536, so only nonsense is refused.
pub const MAX_NODES: u64 = 1 << 20;

/// The most digits of a number that are read as a number.
const MAX_DIGITS: usize = 18;

/// The most ranges that bracket pairs before the last one may multiply into.
const MAX_RANGES: usize = 1 << 16;

/// A set of node names, as disjoint ranges in natural order.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Hostlist(Vec<HostRange>);

/// Names that differ in one number: `prefix` + number padded to `digits` + `suffix`.
///
/// The number is the last run of digits of the name and `digits` its exact length, so one name has
/// one form only. A name without a digit has `digits` 0 and an empty suffix.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
struct HostRange {
    prefix: String,
    suffix: String,
    digits: usize,
    lo: u64,
    hi: u64,
}

/// A name taken apart: what it shares with its neighbours, and its number.
///
/// For reading many names one by one: rows of an inventory are folded into ranges as they come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NameParts<'a> {
    /// What all names of a range share.
    pub shape: Shape<'a>,
    /// The number; 0 if the name has none.
    pub number: u64,
}

/// What the names of a range share: all but the number.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Shape<'a> {
    /// Before the number.
    pub prefix: &'a str,
    /// After the number.
    pub suffix: &'a str,
    /// How many digits the number has; 0 if the name has none.
    pub digits: usize,
}

impl<'a> NameParts<'a> {
    /// Takes a name apart at its last run of digits.
    pub fn of(name: &'a str) -> Self {
        let plain = Self { shape: Shape { prefix: name, suffix: "", digits: 0 }, number: 0 };
        let Some(end) = name.bytes().rposition(|b| b.is_ascii_digit()).map(|at| at + 1) else {
            return plain;
        };
        let (head, suffix) = name.split_at(end);
        let start = head.bytes().rposition(|b| !b.is_ascii_digit()).map_or(0, |at| at + 1);
        let (prefix, number) = head.split_at(start);
        match number.parse() {
            Ok(value) if number.len() <= MAX_DIGITS => {
                Self { shape: Shape { prefix, suffix, digits: number.len() }, number: value }
            }
            _ => plain,
        }
    }
}

impl Shape<'_> {
    /// The name with this number.
    pub fn name(&self, number: u64) -> String {
        match self.digits {
            0 => self.prefix.to_owned(),
            digits => format!("{}{number:0digits$}{}", self.prefix, self.suffix),
        }
    }
}

/// Checks that a text is one node name, and no list of several.
///
/// # Errors
/// Says what cannot stand in a name, and where.
pub fn check_name(name: &str) -> Result<(), HostlistError> {
    let error = |problem, at| Err(HostlistError { problem, at });
    match name.char_indices().find(|(_, c)| !stands_in_a_name(*c)) {
        Some((at, c)) => error(HostlistProblem::Character(c), at..at + c.len_utf8()),
        None if name.is_empty() => error(HostlistProblem::Empty, 0..0),
        None => Ok(()),
    }
}

/// True for what a node name is made of.
fn stands_in_a_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_')
}

/// Why a text is not a hostlist, and where in the text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct HostlistError {
    /// What is wrong.
    pub problem: HostlistProblem,
    /// The bytes of the text that are wrong.
    pub at: Range<usize>,
}

/// What is wrong with a hostlist.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum HostlistProblem {
    /// No name at all, or nothing between two commas.
    #[error("a node name is missing")]
    Empty,
    /// A bracket without its partner, or one inside another.
    #[error("brackets do not pair up")]
    Bracket,
    /// A character that node names do not have.
    #[error("`{0}` cannot stand in a node name")]
    Character(char),
    /// Something in brackets that is no number and no range.
    #[error("`{0}` is not a number or a range such as `01-32`")]
    NotARange(String),
    /// A range that runs down.
    #[error("the range `{0}` ends before it starts")]
    Backwards(String),
    /// A padded range whose ends differ in length.
    #[error("the range `{range}` mixes paddings: its ends have {first} and {last} digits")]
    MixedPadding {
        /// The range as written.
        range: String,
        /// Digits of its first number.
        first: usize,
        /// Digits of its last number.
        last: usize,
    },
    /// A number of more digits than any node has.
    #[error("a number in the list has more than {MAX_DIGITS} digits")]
    TooLong,
    /// More names than any cluster has.
    #[error("the list names more than {MAX_NODES} nodes")]
    TooMany,
    /// A name that the list holds twice.
    #[error("`{0}` is in the list twice")]
    Twice(String),
}

impl Hostlist {
    /// How many nodes the list names.
    pub fn len(&self) -> u64 {
        self.0.iter().map(HostRange::len).sum()
    }

    /// True if the list names no node.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// True if the list holds this very name.
    pub fn contains(&self, name: &str) -> bool {
        let name = HostRange::of_name(name);
        let key = |range: &HostRange| range.cmp_key(&name);
        let from = self.0.partition_point(|range| key(range).is_lt());
        self.0
            .iter()
            .skip(from)
            .take_while(|r| key(r).is_eq())
            .any(|r| r.lo <= name.lo && name.hi <= r.hi)
    }

    /// Whether a list holds this very name, told from its text: for a list of one name, or of one range
    /// as `Display` writes it. None if the list has to be read.
    pub fn text_holds(list: &str, name: &str) -> Option<bool> {
        if list.contains(',') {
            return None;
        }
        let Some((prefix, rest)) = list.split_once('[') else { return Some(list == name) };
        let (range, suffix) = rest.split_once(']')?;
        let (first, last) = range.split_once('-')?;
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        if first.len() != last.len()
            || !is_number(first)
            || !is_number(last)
            || suffix.contains('[')
        {
            return None;
        }
        let number = name.strip_prefix(prefix).and_then(|rest| rest.strip_suffix(suffix));
        // Numbers of one length compare as texts do.
        Some(number.is_some_and(|number| {
            number.len() == first.len() && is_number(number) && (first..=last).contains(&number)
        }))
    }

    /// The first name in natural order.
    pub fn first(&self) -> Option<String> {
        self.0.first().map(|range| range.name(range.lo))
    }

    /// Orders lists by their first names, in natural order.
    pub fn cmp_first(&self, other: &Self) -> std::cmp::Ordering {
        self.0.first().cmp(&other.0.first())
    }

    /// The names in both lists.
    pub fn intersection(&self, other: &Self) -> Self {
        let mut both = Vec::new();
        let (mut left, mut right) = (self.0.iter().peekable(), other.0.iter().peekable());
        while let (Some(a), Some(b)) = (left.peek(), right.peek()) {
            let order = a.cmp_key(b);
            if order.is_eq() {
                let (lo, hi) = (a.lo.max(b.lo), a.hi.min(b.hi));
                if lo <= hi {
                    both.push(a.with(lo, hi));
                }
            }
            if order.then(a.hi.cmp(&b.hi)).is_le() {
                left.next();
            } else {
                right.next();
            }
        }
        Self(both)
    }

    /// The names of this list that the other does not hold.
    pub fn difference(&self, other: &Self) -> Self {
        let mut rest = Vec::new();
        let mut from = 0;
        for range in &self.0 {
            while other
                .0
                .get(from)
                .is_some_and(|o| o.cmp_key(range).then(o.hi.cmp(&range.lo)).is_lt())
            {
                from += 1;
            }
            let mut lo = range.lo;
            let holes = other
                .0
                .iter()
                .skip(from)
                .take_while(|o| o.cmp_key(range).is_eq() && o.lo <= range.hi);
            for hole in holes {
                if hole.lo > lo {
                    rest.push(range.with(lo, hole.lo - 1));
                }
                lo = lo.max(hole.hi.saturating_add(1));
            }
            if lo <= range.hi {
                rest.push(range.with(lo, range.hi));
            }
        }
        Self(rest)
    }

    /// The names in either list.
    pub fn union(&self, other: &Self) -> Self {
        Self::from_ranges(self.0.iter().chain(&other.0).cloned().collect())
    }

    /// `count` names from position `from`, in natural order; fewer at the end of the list.
    pub fn slice(&self, from: u64, count: u64) -> Self {
        let (mut skip, mut left) = (from, count);
        let mut part = Vec::new();
        for range in &self.0 {
            let length = range.len();
            if skip >= length {
                skip -= length;
                continue;
            }
            let take = left.min(length - skip);
            if take == 0 {
                break;
            }
            let lo = range.lo + skip;
            part.push(range.with(lo, lo + take - 1));
            left -= take;
            skip = 0;
        }
        Self(part)
    }

    /// A list of one name.
    pub fn single(name: &str) -> Self {
        Self(vec![HostRange::of_name(name)])
    }

    /// Every name, in natural order. Costs by the number of nodes: for tests and small lists.
    pub fn names(&self) -> impl Iterator<Item = String> + '_ {
        self.0.iter().flat_map(|range| (range.lo..=range.hi).map(|number| range.name(number)))
    }

    /// Its ranges, in natural order: of each shape, from a number to a number.
    pub fn ranges(&self) -> impl Iterator<Item = (Shape<'_>, u64, u64)> {
        self.0.iter().map(|range| {
            let HostRange { prefix, suffix, digits, lo, hi } = range;
            (Shape { prefix, suffix, digits: *digits }, *lo, *hi)
        })
    }

    /// The names of ranges that come in any order: of each shape, from a number to a number.
    pub fn of_ranges<'a>(ranges: impl IntoIterator<Item = (Shape<'a>, u64, u64)>) -> Self {
        let mut all: Vec<(Shape<'a>, u64, u64)> =
            ranges.into_iter().filter(|(_, lo, hi)| lo <= hi).collect();
        all.sort_unstable();
        // Merged before texts are copied: many small ranges are few large ones.
        let mut merged: Vec<(Shape<'a>, u64, u64)> = Vec::new();
        for (shape, lo, hi) in all {
            match merged.last_mut() {
                Some((last, _, end)) if *last == shape && lo <= end.saturating_add(1) => {
                    *end = hi.max(*end);
                }
                _ => merged.push((shape, lo, hi)),
            }
        }
        Self(merged.into_iter().map(|(shape, lo, hi)| HostRange::of_shape(shape, lo, hi)).collect())
    }

    /// The list where lists have no place, without their signs: `leaf1-8`. Longer than `limit` it is its
    /// first name and how many more there are.
    pub fn as_word(&self, limit: usize) -> String {
        let sign = |c| match c {
            '[' | ']' => None,
            ',' => Some('_'),
            c => Some(c),
        };
        let word: String = self.to_string().chars().filter_map(sign).collect();
        match self.first() {
            Some(first) if word.len() > limit => {
                format!("{first}.and-{}", self.len().saturating_sub(1))
            }
            _ => word,
        }
    }

    fn from_ranges(mut ranges: Vec<HostRange>) -> Self {
        ranges.sort();
        let mut merged: Vec<HostRange> = Vec::with_capacity(ranges.len());
        for range in ranges {
            match merged.last_mut() {
                Some(last)
                    if last.cmp_key(&range).is_eq() && range.lo <= last.hi.saturating_add(1) =>
                {
                    last.hi = last.hi.max(range.hi);
                }
                _ => merged.push(range),
            }
        }
        Self(merged)
    }
}

/// Finds names that two of the lists hold: for each clash the two owners and the common names.
///
/// Works on sorted ranges, so the cost is by ranges. If three lists share a name, two clashes are
/// reported, not three.
pub fn clashes<T: Copy + Ord>(lists: &[(T, &Hostlist)]) -> Vec<(T, T, Hostlist)> {
    let mut ranges: Vec<(&HostRange, usize)> = Vec::new();
    for (index, (_, list)) in lists.iter().enumerate() {
        ranges.extend(list.0.iter().map(|range| (range, index)));
    }
    ranges.sort();
    let mut found: std::collections::BTreeMap<(usize, usize), Vec<HostRange>> = Default::default();
    let mut open: Option<(&HostRange, usize)> = None;
    for (range, index) in ranges {
        if let Some((widest, owner)) = open
            && widest.cmp_key(range).is_eq()
            && range.lo <= widest.hi
        {
            if owner != index {
                let pair = (owner.min(index), owner.max(index));
                let common = range.with(range.lo, range.hi.min(widest.hi));
                found.entry(pair).or_default().push(common);
            }
            if range.hi <= widest.hi {
                continue;
            }
        }
        open = Some((range, index));
    }
    let owner = |index: usize| lists.get(index).map(|(owner, _)| *owner);
    found
        .into_iter()
        .filter_map(|((a, b), common)| Some((owner(a)?, owner(b)?, Hostlist::from_ranges(common))))
        .collect()
}

/// Cuts the names of all lists into the largest sets whose names are in the same lists: each set
/// with the indexes of those lists, rising. Sets come in the order of their indexes.
///
/// Works on the ends of ranges, so the cost is by ranges.
pub fn cuts(lists: &[&Hostlist]) -> Vec<(Vec<usize>, Hostlist)> {
    // An end is a range, the number at which something changes, and the list that it changes for.
    let mut ends: Vec<(&HostRange, u64, usize)> = Vec::new();
    for (index, list) in lists.iter().enumerate() {
        for range in &list.0 {
            ends.push((range, range.lo, index));
            ends.push((range, range.hi.saturating_add(1), index));
        }
    }
    ends.sort_by(|(a, at, _), (b, other, _)| a.cmp_key(b).then(at.cmp(other)));
    let mut found: std::collections::BTreeMap<Vec<usize>, Vec<HostRange>> = Default::default();
    let mut open: std::collections::BTreeSet<usize> = Default::default();
    let mut from = 0;
    for (range, at, index) in ends {
        if !open.is_empty() && at > from {
            let same = found.entry(open.iter().copied().collect()).or_default();
            same.push(range.with(from, at - 1));
        }
        from = at;
        // The ranges of one list are disjoint, so its ends alternate.
        if !open.insert(index) {
            open.remove(&index);
        }
    }
    found.into_iter().map(|(sets, ranges)| (sets, Hostlist::from_ranges(ranges))).collect()
}

impl HostRange {
    fn of_name(name: &str) -> Self {
        let NameParts { shape, number } = NameParts::of(name);
        Self::of_shape(shape, number, number)
    }

    fn of_shape(shape: Shape<'_>, lo: u64, hi: u64) -> Self {
        let Shape { prefix, suffix, digits } = shape;
        Self { prefix: prefix.to_owned(), suffix: suffix.to_owned(), digits, lo, hi }
    }

    fn cmp_key(&self, other: &Self) -> std::cmp::Ordering {
        self.prefix
            .cmp(&other.prefix)
            .then_with(|| self.suffix.cmp(&other.suffix))
            .then_with(|| self.digits.cmp(&other.digits))
    }

    fn len(&self) -> u64 {
        self.hi - self.lo + 1
    }

    fn with(&self, lo: u64, hi: u64) -> Self {
        Self { lo, hi, ..self.clone() }
    }

    fn name(&self, number: u64) -> String {
        let Self { prefix, suffix, digits, .. } = self;
        Shape { prefix, suffix, digits: *digits }.name(number)
    }

    /// The names of a range without a prefix: those of one first digit share a bracket pair.
    fn by_first_digit(&self) -> Vec<String> {
        let rest = self.digits.saturating_sub(1);
        let step = u32::try_from(rest).ok().and_then(|rest| 10_u64.checked_pow(rest)).unwrap_or(1);
        let part = |first: u64| {
            let (from, to) = (first.saturating_mul(step), first.saturating_mul(step) + (step - 1));
            let (lo, hi) = (self.lo.max(from), self.hi.min(to));
            match (lo == hi, rest) {
                (true, _) | (_, 0) => self.name(lo),
                _ => format!("{first}[{:0rest$}-{:0rest$}]{}", lo - from, hi - from, self.suffix),
            }
        };
        (self.lo / step..=self.hi / step).map(part).collect()
    }

    /// True if `next` goes on where this range ends, one digit longer: `8-9` and `10-12`.
    fn runs_into(&self, next: &Self) -> bool {
        let Ok(digits) = u32::try_from(self.digits) else { return false };
        let power = |exponent| 10_u64.checked_pow(exponent);
        self.prefix == next.prefix
            && self.suffix == next.suffix
            && self.digits + 1 == next.digits
            && power(digits) == Some(next.lo)
            && self.hi + 1 == next.lo
            && power(digits.saturating_sub(1)).is_some_and(|least| self.lo >= least || digits == 1)
    }
}

impl fmt::Display for Hostlist {
    /// The shortest form: ranges of one prefix and suffix share a bracket pair. Of names that begin
    /// with their number those of one first digit do, since a bracket pair needs a name before it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut rest = self.0.as_slice();
        let mut first = true;
        while let Some(head) = rest.first() {
            let same = rest
                .iter()
                .take_while(|r| r.digits > 0 && r.prefix == head.prefix && r.suffix == head.suffix)
                .count()
                .max(1);
            let (group, tail) = rest.split_at(same);
            rest = tail;
            if !first {
                f.write_str(",")?;
            }
            first = false;
            write_group(f, group)?;
        }
        Ok(())
    }
}

fn write_group(f: &mut fmt::Formatter<'_>, group: &[HostRange]) -> fmt::Result {
    let Some(head) = group.first() else { return Ok(()) };
    if head.prefix.is_empty() {
        let parts = group.iter().flat_map(HostRange::by_first_digit);
        return f.write_str(&parts.collect::<Vec<_>>().join(","));
    }
    if group.len() == 1 && head.lo == head.hi {
        return f.write_str(&head.name(head.lo));
    }
    write!(f, "{}[", head.prefix)?;
    let mut at = 0;
    while let Some(range) = group.get(at) {
        let mut last = range;
        while let Some(next) = group.get(at + 1).filter(|next| last.runs_into(next)) {
            last = next;
            at += 1;
        }
        let (digits, last_digits) = (range.digits, last.digits);
        write!(f, "{:0digits$}", range.lo)?;
        if (range.lo, digits) != (last.hi, last_digits) {
            write!(f, "-{:0last_digits$}", last.hi)?;
        }
        at += 1;
        if at < group.len() {
            f.write_str(",")?;
        }
    }
    write!(f, "]{}", head.suffix)
}

impl FromStr for Hostlist {
    type Err = HostlistError;

    /// Reads a list; an empty text is an empty list.
    fn from_str(text: &str) -> Result<Self, HostlistError> {
        if text.is_empty() {
            return Ok(Self::default());
        }
        let mut ranges = Vec::new();
        let mut total = 0_u64;
        for (at, part) in split_outside_brackets(text)? {
            let here = at..at + part.len();
            let before = ranges.len();
            parse_part(part, at, &mut ranges)?;
            let added = ranges.iter().skip(before).map(HostRange::len);
            total = added.fold(total, u64::saturating_add);
            if total > MAX_NODES || ranges.len() > MAX_RANGES {
                return Err(HostlistError { problem: HostlistProblem::TooMany, at: here });
            }
        }
        let list = Self::from_ranges(ranges.clone());
        if list.len() < total {
            ranges.sort();
            let twice = ranges
                .windows(2)
                .find_map(|pair| match pair {
                    [a, b] if a.cmp_key(b).is_eq() && b.lo <= a.hi => Some(b.name(b.lo)),
                    _ => None,
                })
                .unwrap_or_default();
            let problem = HostlistProblem::Twice(twice);
            return Err(HostlistError { problem, at: 0..text.len() });
        }
        Ok(list)
    }
}

fn split_outside_brackets(text: &str) -> Result<Vec<(usize, &str)>, HostlistError> {
    let mut parts = Vec::new();
    let (mut start, mut depth) = (0, 0_u32);
    for (at, c) in text.char_indices() {
        match c {
            '[' if depth == 0 => depth = 1,
            ']' if depth == 1 => depth = 0,
            '[' | ']' => {
                let problem = HostlistProblem::Bracket;
                return Err(HostlistError { problem, at: at..at + 1 });
            }
            ',' if depth == 0 => {
                parts.push((start, text.get(start..at).unwrap_or_default()));
                start = at + 1;
            }
            _ => {}
        }
    }
    if depth != 0 {
        return Err(HostlistError { problem: HostlistProblem::Bracket, at: start..text.len() });
    }
    parts.push((start, text.get(start..).unwrap_or_default()));
    Ok(parts)
}

/// One piece of a name: text, or the ranges of a bracket pair.
enum Piece<'a> {
    Text(&'a str),
    Ranges(Vec<Numbers>),
}

#[derive(Clone, Copy)]
struct Numbers {
    lo: u64,
    hi: u64,
    digits: usize,
}

fn parse_part(part: &str, at: usize, ranges: &mut Vec<HostRange>) -> Result<(), HostlistError> {
    let error = |problem, at| Err(HostlistError { problem, at });
    if part.is_empty() {
        return error(HostlistProblem::Empty, at..at);
    }
    let mut pieces = Vec::new();
    let (mut rest, mut offset) = (part, at);
    while !rest.is_empty() {
        let (text, tail) = rest.split_at(rest.find('[').unwrap_or(rest.len()));
        if let Some((bad, c)) = text.char_indices().find(|(_, c)| !stands_in_a_name(*c)) {
            let here = offset + bad;
            return error(HostlistProblem::Character(c), here..here + c.len_utf8());
        }
        pieces.push(Piece::Text(text));
        offset += text.len();
        let Some(inside) = tail.strip_prefix('[') else { break };
        let (inside, after) = inside.split_once(']').unwrap_or((inside, ""));
        pieces.push(Piece::Ranges(parse_numbers(inside, offset + 1)?));
        offset += inside.len() + 2;
        rest = after;
    }
    if matches!(pieces.as_slice(), [Piece::Ranges(_), ..] | [Piece::Text(""), ..]) {
        return error(HostlistProblem::Empty, at..at + 1);
    }
    let before = ranges.len();
    let whole = |problem| HostlistError { problem, at: at..at + part.len() };
    expand(&pieces, ranges).ok_or_else(|| whole(HostlistProblem::TooMany))?;
    // A range needs a number that can be counted: `n1234567890123456789[0-9]` has none.
    match ranges.iter().skip(before).any(|range| range.digits == 0 && range.lo != range.hi) {
        true => Err(whole(HostlistProblem::TooLong)),
        false => Ok(()),
    }
}

fn parse_numbers(inside: &str, at: usize) -> Result<Vec<Numbers>, HostlistError> {
    let mut numbers = Vec::new();
    let mut offset = at;
    for range in inside.split(',') {
        let here = offset..offset + range.len();
        offset += range.len() + 1;
        let error = |problem| HostlistError { problem, at: here.clone() };
        let (first, last) = range.split_once('-').unwrap_or((range, range));
        let digits = |text: &str| {
            let ok = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
            if ok && text.len() <= MAX_DIGITS { text.parse::<u64>().ok() } else { None }
        };
        let (Some(lo), Some(hi)) = (digits(first), digits(last)) else {
            return Err(error(HostlistProblem::NotARange(range.to_owned())));
        };
        if hi < lo {
            return Err(error(HostlistProblem::Backwards(range.to_owned())));
        }
        let padded = |text: &str| text.len() > 1 && text.starts_with('0');
        if first.len() != last.len() && (padded(first) || padded(last)) {
            return Err(error(HostlistProblem::MixedPadding {
                range: range.to_owned(),
                first: first.len(),
                last: last.len(),
            }));
        }
        if hi - lo >= MAX_NODES {
            return Err(error(HostlistProblem::TooMany));
        }
        push_by_digits(lo, hi, first.len(), &mut numbers);
    }
    Ok(numbers)
}

/// Splits an unpadded range where its numbers get a digit longer: `8-12` is `8-9` and `10-12`.
fn push_by_digits(lo: u64, hi: u64, digits: usize, numbers: &mut Vec<Numbers>) {
    let (mut lo, mut digits) = (lo, digits);
    loop {
        let end = u32::try_from(digits).ok().and_then(|d| 10_u64.checked_pow(d));
        match end {
            Some(end) if end <= hi => {
                numbers.push(Numbers { lo, hi: end - 1, digits });
                lo = end;
                digits += 1;
            }
            _ => {
                numbers.push(Numbers { lo, hi, digits });
                return;
            }
        }
    }
}

/// Multiplies all bracket pairs but the last, whose ranges stay ranges. None: too many.
fn expand(pieces: &[Piece<'_>], ranges: &mut Vec<HostRange>) -> Option<()> {
    let last = pieces.iter().rposition(|piece| matches!(piece, Piece::Ranges(_)));
    let (Some(last), limit) = (last, ranges.len() + MAX_RANGES) else {
        let name: String =
            pieces.iter().map(|p| if let Piece::Text(t) = p { t } else { "" }).collect();
        ranges.push(HostRange::of_name(&name));
        return Some(());
    };
    let mut prefixes = vec![String::new()];
    for piece in pieces.get(..last)? {
        match piece {
            Piece::Text(text) => prefixes.iter_mut().for_each(|prefix| prefix.push_str(text)),
            Piece::Ranges(numbers) => {
                let each: u64 = numbers.iter().map(|n| n.hi - n.lo + 1).sum();
                if each.saturating_mul(u64::try_from(prefixes.len()).ok()?) > MAX_RANGES as u64 {
                    return None;
                }
                prefixes = prefixes
                    .iter()
                    .flat_map(|prefix| {
                        numbers.iter().flat_map(move |n| {
                            (n.lo..=n.hi).map(move |v| format!("{prefix}{v:0w$}", w = n.digits))
                        })
                    })
                    .collect();
            }
        }
    }
    let Some(Piece::Ranges(numbers)) = pieces.get(last) else { return Some(()) };
    let suffix = match pieces.get(last + 1) {
        Some(Piece::Text(text)) => *text,
        _ => "",
    };
    for prefix in &prefixes {
        for n in numbers {
            if suffix.contains(|c: char| c.is_ascii_digit()) {
                // The last digits of these names are the suffix's: no range, name by name.
                for value in n.lo..=n.hi {
                    if ranges.len() >= limit {
                        return None;
                    }
                    let digits = n.digits;
                    ranges.push(HostRange::of_name(&format!("{prefix}{value:0digits$}{suffix}")));
                }
                continue;
            }
            if ranges.len() >= limit {
                return None;
            }
            ranges.push(range_after(prefix, n, suffix));
        }
    }
    Some(())
}

/// A range whose prefix may itself end in digits, which then belong to the number: `n1[0-9]`.
fn range_after(prefix: &str, numbers: &Numbers, suffix: &str) -> HostRange {
    let digits = numbers.digits;
    let first = HostRange::of_name(&format!("{prefix}{:0digits$}{suffix}", numbers.lo));
    let hi = first.lo.saturating_add(numbers.hi - numbers.lo);
    HostRange { hi, ..first }
}

serde_as_text!(Hostlist);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    pub(super) fn list(text: &str) -> Hostlist {
        text.parse().unwrap_or_else(|e| panic!("{text}: {e}"))
    }

    fn problem(text: &str) -> HostlistProblem {
        text.parse::<Hostlist>().expect_err(text).problem
    }

    #[test]
    fn ranges_fold_back_in_natural_order() {
        for (text, folded) in [
            ("gpu[01-04]", "gpu[01-04]"),
            ("gpu04,gpu[01-02],gpu03", "gpu[01-04]"),
            ("gpu01,gpu[03-04]", "gpu[01,03-04]"),
            ("n[8-12]", "n[8-12]"),
            ("n[10-12],n9,n8", "n[8-12]"),
            ("n[01-12]", "n[01-12]"),
            ("n1[0-9]", "n[10-19]"),
            ("b,a", "a,b"),
            ("r[1-2]n[1-2]", "r1n[1-2],r2n[1-2]"),
            ("r[1-2]-ib", "r[1-2]-ib"),
            ("n[1-2]-ib0", "n1-ib0,n2-ib0"),
            ("n[1-2]0", "n[10,20]"),
            ("1,0", "0,1"),
            ("9-ib,8-ib,10", "10,8-ib,9-ib"),
            ("1[00-99]", "1[00-99]"),
            ("0[8-9],1[0-2]", "0[8-9],1[0-2]"),
            ("19,20-e", "19,20-e"),
            ("1[000000-999999]", "1[000000-999999]"),
        ] {
            assert_eq!(list(text).to_string(), folded, "{text}");
        }
    }

    #[test]
    fn sizes_are_counted_without_expanding() {
        assert_eq!(list("n[000001-100000]").len(), 100_000);
        assert_eq!(list("r[1-3]n[01-18]").len(), 54);
    }

    #[test]
    fn wrong_lists_say_what_and_where() {
        use HostlistProblem::*;
        assert_eq!("".parse(), Ok(Hostlist::default()));
        assert_eq!(problem("a,,b"), Empty);
        assert_eq!(problem("[1-2]"), Empty);
        assert_eq!(problem("a[1-2"), Bracket);
        assert_eq!(problem("a]"), Bracket);
        assert_eq!(problem("a[1[2]]"), Bracket);
        assert_eq!(problem("a b"), Character(' '));
        assert_eq!(problem("a[x]"), NotARange("x".into()));
        assert_eq!(problem("a[1-]"), NotARange("1-".into()));
        assert_eq!(problem("a[]"), NotARange("".into()));
        assert_eq!(problem("a[3-1]"), Backwards("3-1".into()));
        assert_eq!(
            problem("a[01-100]"),
            MixedPadding { range: "01-100".into(), first: 2, last: 3 }
        );
        assert_eq!(problem("a[1-010]"), MixedPadding { range: "1-010".into(), first: 1, last: 3 });
        assert_eq!(problem("n[1-99999999]"), TooMany);
        assert_eq!(problem("n[1-9999]x[1-9999]"), TooMany);
        assert_eq!(problem("n[1-999]x[1-999]y[1-999]"), TooMany);
        assert_eq!(problem("n1234567890123456789[0-9]"), TooLong);
        assert_eq!(problem("n[1-3,2]"), Twice("n2".into()));
        assert_eq!(problem("n01,n[01-02]"), Twice("n01".into()));
        let error = "gpu[01-02,x]".parse::<Hostlist>().expect_err("x is no number");
        assert_eq!(error.at, 10..11);
    }

    #[test]
    fn padded_and_unpadded_names_are_different_nodes() {
        assert!(!list("n[1-9]").contains("n01"));
        assert!(list("n[01-09]").contains("n05"));
        assert!(list("n[8-12]").contains("n10"));
        assert!(!list("n[8-12]").contains("n13"));
    }

    #[test]
    fn clashes_name_both_owners_and_the_common_nodes() {
        let (a, b, c) = (list("n[01-10]"), list("n[05-07],m1"), list("m[1-2],n11"));
        let found = clashes(&[("a", &a), ("b", &b), ("c", &c)]);
        assert_eq!(found, [("a", "b", list("n[05-07]")), ("b", "c", list("m1"))]);
    }

    #[test]
    fn cuts_are_the_largest_sets_in_the_same_lists() {
        let (a, b, c) = (list("n[01-10]"), list("n[05-12],m1"), list("m[1-2],n[01-04]"));
        let found = cuts(&[&a, &b, &c]);
        let expected = [
            (vec![0, 1], list("n[05-10]")),
            (vec![0, 2], list("n[01-04]")),
            (vec![1], list("n[11-12]")),
            (vec![1, 2], list("m1")),
            (vec![2], list("m2")),
        ];
        assert_eq!(found, expected);
    }

    pub(super) fn names() -> impl Strategy<Value = Vec<String>> {
        let name = (
            prop::sample::select(vec!["", "n", "gpu", "r1n", "x-"]),
            0_u32..120,
            1_usize..4,
            prop::sample::select(vec!["", "-ib", "-e0"]),
        )
            .prop_map(|(prefix, number, width, suffix)| {
                format!("{prefix}{number:0width$}{suffix}")
            });
        prop::collection::vec(name, 1..40)
    }

    pub(super) fn set(names: &[String]) -> Hostlist {
        names.iter().fold(Hostlist::default(), |all, name| all.union(&Hostlist::single(name)))
    }

    #[test]
    fn a_list_of_one_range_need_not_be_read() {
        for (list, name, holds) in [
            ("n[001-032]", "n007", Some(true)),
            ("n[001-032]", "n033", Some(false)),
            ("n[001-032]", "n07", Some(false)),
            ("n[001-032]", "m007", Some(false)),
            ("n[1-2]-ib0", "n2-ib0", Some(true)),
            ("a1[01-02]", "a101", Some(true)),
            ("gpu7", "gpu7", Some(true)),
            ("gpu7", "gpu70", Some(false)),
            ("n[8-12]", "n9", None),
            ("n[1,3-4]", "n3", None),
            ("r[1-2]n[1-2]", "r1n1", None),
        ] {
            assert_eq!(Hostlist::text_holds(list, name), holds, "{list} {name}");
        }
    }

    proptest! {
        #[test]
        fn the_text_of_a_list_holds_what_the_list_holds(names in names(), others in names()) {
            let all = set(&names);
            for name in names.iter().chain(&others) {
                let told = Hostlist::text_holds(&all.to_string(), name);
                prop_assert!(told.is_none_or(|holds| holds == all.contains(name)), "{all} {name}");
            }
        }

        #[test]
        fn a_list_prints_and_reads_back(names in names()) {
            let all = set(&names);
            prop_assert_eq!(list(&all.to_string()), all);
        }

        #[test]
        fn set_operations_agree_with_sets_of_names(left in names(), right in names()) {
            use std::collections::BTreeSet;
            let (a, b) = (set(&left), set(&right));
            let (x, y): (BTreeSet<_>, BTreeSet<_>) =
                (left.into_iter().collect(), right.into_iter().collect());
            let names = |l: Hostlist| l.names().collect::<BTreeSet<_>>();
            prop_assert_eq!(a.len(), x.len() as u64);
            let middle: BTreeSet<_> = a.names().skip(2).take(5).collect();
            prop_assert_eq!(names(a.slice(2, 5)), middle);
            prop_assert_eq!(names(a.intersection(&b)), &x & &y);
            prop_assert_eq!(names(a.difference(&b)), &x - &y);
            prop_assert_eq!(names(a.union(&b)), &x | &y);
            for name in &y {
                prop_assert_eq!(a.contains(name), x.contains(name));
            }
            prop_assert_eq!(clashes(&[(0, &a), (1, &b)]).is_empty(), (&x & &y).is_empty());
        }

        #[test]
        fn cuts_agree_with_asking_every_name(lists in prop::collection::vec(names(), 1..5)) {
            let lists: Vec<Hostlist> = lists.iter().map(|names| set(names)).collect();
            let all = lists.iter().fold(Hostlist::default(), |all, one| all.union(one));
            let found = cuts(&lists.iter().collect::<Vec<_>>());
            prop_assert_eq!(found.iter().map(|(_, names)| names.len()).sum::<u64>(), all.len());
            for (sets, names) in &found {
                for name in names.names() {
                    let holders = lists.iter().enumerate().filter(|(_, one)| one.contains(&name));
                    prop_assert_eq!(&holders.map(|(at, _)| at).collect::<Vec<_>>(), sets);
                }
            }
        }

        #[test]
        fn names_taken_apart_fold_into_the_same_list(names in names()) {
            let parts = names.iter().map(|name| NameParts::of(name));
            let ranges = parts.map(|parts| (parts.shape, parts.number, parts.number));
            prop_assert_eq!(Hostlist::of_ranges(ranges), set(&names));
            for name in &names {
                let NameParts { shape, number } = NameParts::of(name);
                prop_assert_eq!(&shape.name(number), name);
                prop_assert!(check_name(name).is_ok());
            }
        }

        #[test]
        fn no_text_makes_the_reader_panic(text in "\\PC{0,40}") {
            let _ = text.parse::<Hostlist>();
        }

        #[test]
        fn texts_of_hostlist_letters_never_panic(text in "[a-c0-9\\[\\],-]{0,24}") {
            if let Ok(read) = text.parse::<Hostlist>() {
                prop_assert_eq!(list(&read.to_string()), read);
            }
        }
    }
}
