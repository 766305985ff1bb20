//! CSV as RFC 4180 has it, with a header row; a row is a line.
//!
//! Our own reader and not the `csv` crate: that one takes a stray quote for text, and tells where a
//! record begins but not where its cells do. A quoted cell may hold no end of a line here: a node has
//! nothing to say that needs one, and a quote that is left open would swallow the rest of the file.

use std::borrow::Cow;

use fleetc_schema::diag::rules;

use super::table::{Cell, Row, Table};
use super::{Column, Errors, MAX_LINE_BYTES, letter, lines, offset, says_nothing};

/// Reads the rows of a file.
pub(super) fn read(text: &str, file: u32, table: &mut Table, errors: &mut Errors) {
    let mut lines = lines(text).filter(|(_, line)| !says_nothing(line));
    let mut cells = Vec::new();
    let Some((start, first)) = lines.next() else {
        let help = "begin with a line such as `node,pool,rack`";
        return errors.syntax((0, 0), "the inventory is empty", "no header row", help);
    };
    if !split(first, start, &mut cells, errors) {
        return;
    }
    let Some(columns) = header(&cells, errors) else { return };
    for (start, line) in lines {
        cells.clear();
        if !split(line, start, &mut cells, errors) {
            continue;
        }
        let all = (offset(start), offset(start + line.len()));
        if cells.len() != columns.len() {
            wrong_number(&cells, columns.len(), all, errors);
            continue;
        }
        let mut row = Row::at(all);
        for (cell, column) in cells.drain(..).zip(&columns) {
            if let Some(column) = column
                && !cell.text.is_empty()
            {
                row.set(*column, cell);
            }
        }
        if !table.push(file, row, errors) {
            return;
        }
    }
}

/// The columns that the header names; none for one that is not known. None if there is no `node`.
fn header(cells: &[Cell<'_>], errors: &mut Errors) -> Option<Vec<Option<Column>>> {
    if let [only] = cells
        && let Some(separator) = only.text.chars().find(|c| matches!(c, ';' | '\t'))
    {
        let name = if separator == ';' { "semicolons" } else { "tabs" };
        let title = format!("the cells are separated by {name}");
        let help = "separate them by commas";
        errors.syntax((only.start, only.end), &title, "one cell in CSV", help);
        return None;
    }
    let mut columns: Vec<Option<Column>> = Vec::new();
    let before = errors.found.len();
    for cell in cells {
        let column = Column::of(&cell.text);
        let at = (cell.start, cell.end);
        if column.is_none() {
            errors.unknown_column(&cell.text, at);
        }
        if column.is_some() && columns.contains(&column) {
            let title = || format!("the header has `{}` twice", cell.text);
            let help = "keep one of the two";
            errors.report(&rules::SPEC_DUPLICATE, at, title, "a second one", help);
        }
        columns.push(column);
    }
    if columns.contains(&Some(Column::Node)) {
        return Some(columns);
    }
    if errors.found.len() == before {
        let at = (cells.first()?.start, cells.last()?.end);
        let title = || "the inventory has no column `node`".to_owned();
        let help = "name the columns in the first line: `node,pool,rack`";
        errors.report(&rules::SPEC_MISSING, at, title, "the header", help);
    }
    None
}

fn wrong_number(cells: &[Cell<'_>], wanted: usize, line: (u32, u32), errors: &mut Errors) {
    let has = if cells.len() == 1 { "cell" } else { "cells" };
    let title = format!("the row has {} {has}, the header has {wanted}", cells.len());
    match cells.get(wanted) {
        Some(extra) => {
            let help = "remove it, or put a cell that holds a comma in quotes";
            errors.syntax((extra.start, line.1), &title, "too much", help);
        }
        None => {
            let help = "a cell may be empty, but its comma stays";
            errors.syntax(line, &title, "cells are missing", help);
        }
    }
}

/// Splits a line into cells. False if that cannot be done, which is reported.
fn split<'t>(line: &'t str, start: usize, cells: &mut Vec<Cell<'t>>, errors: &mut Errors) -> bool {
    if line.len() > MAX_LINE_BYTES {
        let title =
            format!("the line has {} bytes, at most {MAX_LINE_BYTES} are taken", line.len());
        errors.syntax(letter(line, start), &title, "begins here", "write one row a line");
        return false;
    }
    if !line.contains('"') {
        let mut at = start;
        for part in line.split(',') {
            cells.push(Cell::trimmed(part, at));
            at += part.len() + 1;
        }
        return true;
    }
    let (mut rest, mut at) = (line, start);
    loop {
        let (cell, length) = match rest.strip_prefix('"') {
            Some(inside) => match quoted(inside, at, errors) {
                Some(read) => read,
                None => return false,
            },
            None => {
                let part = rest.split(',').next().unwrap_or(rest);
                if let Some(quote) = part.find('"') {
                    let at = (offset(at + quote), offset(at + quote + 1));
                    let help =
                        "quote the whole cell, and double the quotes in it: `\"a \"\"b\"\"\"`";
                    errors.syntax(at, "a quote in a cell that is not quoted", "stray", help);
                    return false;
                }
                (Cell::trimmed(part, at), part.len())
            }
        };
        cells.push(cell);
        let after = rest.get(length..).unwrap_or_default();
        at += length;
        let Some(next) = after.strip_prefix(',') else {
            if after.is_empty() {
                return true;
            }
            let here = letter(after, at);
            let help = "double a quote that is part of the cell: `\"a \"\"b\"\"\"`";
            errors.syntax(
                here,
                "text after the closing quote of a cell",
                "a comma belongs here",
                help,
            );
            return false;
        };
        rest = next;
        at += 1;
    }
}

/// Reads a quoted cell; `inside` is what follows its opening quote, `at` the place of that quote.
/// Gives the cell and the bytes that it takes, quotes included.
fn quoted<'t>(inside: &'t str, at: usize, errors: &mut Errors) -> Option<(Cell<'t>, usize)> {
    let (mut from, mut doubled) = (0, false);
    loop {
        let Some(quote) = inside.get(from..).and_then(|rest| rest.find('"')) else {
            let help = "close it on the same line, or remove it";
            let here = (offset(at), offset(at + 1));
            errors.syntax(here, "a quote that is not closed on its line", "opened here", help);
            return None;
        };
        let end = from + quote;
        if inside.get(end + 1..).is_some_and(|rest| rest.starts_with('"')) {
            doubled = true;
            from = end + 2;
            continue;
        }
        let text = inside.get(..end).unwrap_or_default();
        let (start, stop) = (offset(at + 1), offset(at + 1 + end));
        let text =
            if doubled { Cow::Owned(text.replace("\"\"", "\"")) } else { Cow::Borrowed(text) };
        return Some((Cell { text, start, end: stop }, end + 2));
    }
}
