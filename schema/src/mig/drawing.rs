//! A layout as text: which instance holds which memory slices, what is free, what no profile can use.

use super::{MigTable, Placed, open_placements};

/// Columns of the label before the map.
const LABEL: usize = 15;
/// Columns of the map on a GPU with four or eight memory slices.
const MAP: usize = 56;

/// The memory-slice map of a layout, as lines of ASCII without trailing spaces:
///
/// ```text
/// memory slices   0      1      2      3      4      5      6      7
///                [1g+me][ 1g  ] free   free  [         3g.40gb          ]
///                free: 2-3
/// ```
///
/// A box that is too small for a name shows it without the GB. A free slice is `free` if some
/// profile of the table could still be made on it with the others left where they stand, else `-`;
/// the last line says so in words, and is missing if every slice is taken. Instances that overlap,
/// which no GPU has, are drawn below each other. Never wider than 77 columns on a GPU with four or
/// eight memory slices.
pub fn draw(table: &MigTable, placed: &[Placed<'_>]) -> Vec<String> {
    let slices = table.memory_slices;
    let pitch = MAP.checked_div(usize::from(slices)).unwrap_or(MAP).max(6);
    let mut header = format!("{:<LABEL$}", "memory slices");
    for slice in 0..slices {
        header.push_str(&format!(" {slice:<0$}", pitch - 1));
    }
    let open = open_placements(table, placed);
    let holds = |placed: &[Placed<'_>], slice: u8| {
        placed.iter().any(|(_, at)| at.start <= slice && slice - at.start < at.size)
    };
    let (usable, unusable): (Vec<u8>, Vec<u8>) =
        (0..slices).filter(|slice| !holds(placed, *slice)).partition(|slice| holds(&open, *slice));
    let mut lines = vec![header];
    for (number, row) in rows(placed).iter().enumerate() {
        let mut line = " ".repeat(LABEL);
        let mut slice = 0;
        while slice < slices {
            let here = row.iter().find(|(_, at)| at.start == slice && at.size > 0);
            if let Some((profile, at)) = here {
                line.push_str(&boxed(&profile.name.to_string(), pitch * usize::from(at.size)));
                slice = slice.saturating_add(at.size);
                continue;
            }
            let word = match number {
                0 if usable.contains(&slice) => "free",
                0 if unusable.contains(&slice) => "-",
                _ => "",
            };
            line.push_str(&format!(" {word:<0$}", pitch - 1));
            slice += 1;
        }
        if number == 0 && usable.is_empty() && unusable.is_empty() {
            line.push_str("  full");
        }
        lines.push(line);
    }
    let note = match (usable.is_empty(), unusable.is_empty()) {
        (true, true) => None,
        (true, false) => Some(format!("nothing more fits; unusable: {}", ranges(&unusable))),
        (false, true) => Some(format!("free: {}", ranges(&usable))),
        (false, false) => {
            Some(format!("free: {}; unusable: {}", ranges(&usable), ranges(&unusable)))
        }
    };
    lines.extend(note.map(|note| format!("{}{note}", " ".repeat(LABEL))));
    lines.into_iter().map(|line| line.trim_end().to_owned()).collect()
}

/// Instances without overlap, row by row. One row at least.
fn rows<'p, 'a>(placed: &'p [Placed<'a>]) -> Vec<Vec<&'p Placed<'a>>> {
    let mut sorted: Vec<&Placed<'a>> = placed.iter().collect();
    sorted.sort_by_key(|(_, at)| at.start);
    let mut rows: Vec<Vec<&Placed<'a>>> = vec![Vec::new()];
    for instance in sorted {
        let free = |row: &&mut Vec<&Placed<'a>>| {
            row.last().is_none_or(|(_, at)| at.start.saturating_add(at.size) <= instance.1.start)
        };
        match rows.iter_mut().find(free) {
            Some(row) => row.push(instance),
            None => rows.push(vec![instance]),
        }
    }
    rows
}

/// `[  3g.40gb    ]`: the name, or what fits of it, in the middle of so many columns.
fn boxed(name: &str, width: usize) -> String {
    let inner = width.saturating_sub(2);
    let (compute, rest) = name.split_once('.').unwrap_or((name, ""));
    let attributes = rest.find(['+', '-']).and_then(|at| rest.get(at..)).unwrap_or("");
    let short = format!("{compute}{attributes}");
    let fitting = [name, short.as_str(), compute].into_iter().find(|text| text.len() <= inner);
    format!("[{:^inner$}]", fitting.unwrap_or(""))
}

/// `0-3, 6`, of rising numbers.
fn ranges(slices: &[u8]) -> String {
    let mut parts: Vec<(u8, u8)> = Vec::new();
    for slice in slices {
        match parts.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(*slice) => *last = *slice,
            _ => parts.push((*slice, *slice)),
        }
    }
    let text = |(first, last): &(u8, u8)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    };
    parts.iter().map(text).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
#[cfg(feature = "catalog")]
mod tests {
    use super::*;
    use crate::catalog::Catalog;
    use crate::mig::tests::table;
    use crate::mig::{Demand, Placement, maximal_layouts, place};

    fn drawn(instances: &[(u32, u8)]) -> String {
        let table = table("h100-80gb-sxm");
        let placed: Vec<Placed<'_>> = instances
            .iter()
            .map(|(id, start)| {
                let profile = table.profile_by_id(*id).unwrap();
                (profile, Placement { start: *start, size: profile.memory_slices })
            })
            .collect();
        draw(&table, &placed).join("\n")
    }

    #[test]
    fn a_full_gpu_says_so() {
        assert_eq!(
            drawn(&[(9, 0), (9, 4)]),
            "\
memory slices   0      1      2      3      4      5      6      7
               [         3g.40gb          ][         3g.40gb          ]  full"
        );
    }

    #[test]
    fn slice_7_is_of_no_use_beside_seven_1g() {
        assert_eq!(
            drawn(&[(20, 0), (19, 1), (19, 2), (19, 3), (19, 4), (19, 5), (19, 6)]),
            "\
memory slices   0      1      2      3      4      5      6      7
               [1g+me][ 1g  ][ 1g  ][ 1g  ][ 1g  ][ 1g  ][ 1g  ] -
               nothing more fits; unusable: 7"
        );
    }

    #[test]
    fn free_slices_are_usable_or_not() {
        assert_eq!(
            drawn(&[(14, 4), (19, 6), (19, 1)]),
            "\
memory slices   0      1      2      3      4      5      6      7
                free  [ 1g  ] free   free  [  2g.20gb   ][ 1g  ] -
               free: 0, 2-3; unusable: 7"
        );
        assert_eq!(
            drawn(&[]),
            "\
memory slices   0      1      2      3      4      5      6      7
                free   free   free   free   free   free   free   free
               free: 0-7"
        );
    }

    #[test]
    fn instances_that_overlap_are_drawn_below_each_other() {
        assert_eq!(
            drawn(&[(9, 0), (14, 2), (9, 4)]),
            "\
memory slices   0      1      2      3      4      5      6      7
               [         3g.40gb          ][         3g.40gb          ]  full
                             [  2g.20gb   ]"
        );
    }

    #[test]
    fn every_maximal_layout_of_every_table_is_drawn_in_77_columns_with_nothing_free() {
        let catalog = Catalog::embedded().unwrap();
        for row in catalog.mig_tables() {
            for layout in maximal_layouts(&row.table) {
                let lines = draw(&row.table, &place(&row.table, &layout).unwrap());
                assert!(lines.iter().all(|l| l.is_ascii() && l.len() <= 77 && l.trim_end() == l));
                let boxes = lines.iter().map(|line| line.matches('[').count()).sum::<usize>();
                let instances: u32 = layout.iter().map(|d: &Demand<'_>| d.count).sum();
                assert_eq!(boxes, usize::try_from(instances).unwrap());
                assert!(!lines.iter().any(|line| line.contains("free")), "{lines:?}");
            }
        }
    }
}
