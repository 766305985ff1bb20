//! The relaxed problem: as if a GPU could take a fraction of a layout.
//!
//! Its solution says how many GPUs each layout is worth, and its prices bound what any packing can
//! serve. Floats are used to find the prices alone; whoever takes a bound from them calculates it
//! in integers, where every set of prices is sound, a good one or not.

/// A solution of the relaxed problem.
pub(super) struct Relaxed {
    /// GPUs of each layout.
    pub gpus: Vec<f64>,
    /// What one more instance of each profile on the GPUs would be worth.
    pub prices: Vec<f64>,
}

/// Below this a number of the tableau is zero.
const ZERO: f64 = 1e-9;
/// Pivots after which the search for prices gives up with those it has.
const PIVOTS: usize = 1000;

/// Serves as much value as possible: no more of a profile than is wanted, no more than the layouts
/// hold, no more layouts than GPUs. The simplex method with Bland's rule, which ends.
pub(super) fn relax(values: &[f64], wanted: &[u32], layouts: &[&[u32]], gpus: u32) -> Relaxed {
    let profiles = values.len();
    let columns = profiles + layouts.len();
    let slacks = 2 * profiles + 1;
    // Columns: served of each profile, GPUs of each layout, a slack for each row, the limit.
    let mut rows: Vec<Vec<f64>> = Vec::with_capacity(slacks);
    let row = |number: usize, own: &dyn Fn(usize) -> f64, limit: f64| -> Vec<f64> {
        let slack = (0..slacks).map(|slack| if slack == number { 1.0 } else { 0.0 });
        (0..columns).map(own).chain(slack).chain([limit]).collect()
    };
    let one_if = |yes: bool| if yes { 1.0 } else { 0.0 };
    for (profile, wanted) in wanted.iter().enumerate() {
        rows.push(row(profile, &|column| one_if(column == profile), f64::from(*wanted)));
    }
    for profile in 0..profiles {
        let held = |column: usize| match column.checked_sub(profiles) {
            None => one_if(column == profile),
            Some(layout) => {
                let count = layouts.get(layout).and_then(|counts| counts.get(profile));
                -f64::from(count.copied().unwrap_or(0))
            }
        };
        rows.push(row(profiles + profile, &held, 0.0));
    }
    rows.push(row(2 * profiles, &|column| one_if(column >= profiles), f64::from(gpus)));
    let no_value = std::iter::repeat_n(0.0, layouts.len() + slacks + 1);
    let mut goal: Vec<f64> = values.iter().copied().chain(no_value).collect();
    let mut basis: Vec<usize> = (columns..columns + slacks).collect();

    for _ in 0..PIVOTS {
        let Some(enter) = goal.iter().take(columns + slacks).position(|cost| *cost > ZERO) else {
            break;
        };
        let ratio = |row: &[f64]| {
            let by = row.get(enter).copied().filter(|by| *by > ZERO)?;
            Some(row.last()? / by)
        };
        let leaving = rows.iter().zip(&basis).enumerate();
        let leaving = leaving.filter_map(|(at, (row, basic))| Some((ratio(row)?, *basic, at)));
        let Some((_, _, leave)) =
            leaving.min_by(|a, b| a.0.total_cmp(&b.0).then_with(|| a.1.cmp(&b.1)))
        else {
            break;
        };
        let Some(pivot) = rows.get_mut(leave) else { break };
        let by = pivot.get(enter).copied().unwrap_or(1.0);
        pivot.iter_mut().for_each(|number| *number /= by);
        let pivot = pivot.clone();
        for (at, row) in rows.iter_mut().enumerate() {
            if at != leave {
                eliminate(row, &pivot, enter);
            }
        }
        eliminate(&mut goal, &pivot, enter);
        if let Some(basic) = basis.get_mut(leave) {
            *basic = enter;
        }
    }

    let value = |column: usize| {
        let row = basis.iter().position(|basic| *basic == column).and_then(|at| rows.get(at));
        row.and_then(|row| row.last()).copied().unwrap_or(0.0)
    };
    let price = |profile: usize| -goal.get(columns + profiles + profile).copied().unwrap_or(0.0);
    Relaxed {
        gpus: (profiles..columns).map(value).collect(),
        prices: (0..profiles).map(price).collect(),
    }
}

fn eliminate(row: &mut [f64], pivot: &[f64], column: usize) {
    let times = row.get(column).copied().unwrap_or(0.0);
    if times.abs() > 0.0 {
        row.iter_mut().zip(pivot).for_each(|(own, other)| *own -= times * other);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_layouts_share_the_gpus_as_the_demand_wants() {
        // One profile is worth 4 and fits twice, one is worth 1 and fits seven times.
        let relaxed = relax(&[4.0, 1.0], &[6, 70], &[&[2, 0], &[0, 7]], 10);
        let near = |a: f64, b: f64| (a - b).abs() < 1e-6;
        assert!(near(relaxed.gpus[0], 3.0) && near(relaxed.gpus[1], 7.0));
        // One more GPU brings seven of the second, and so does each GPU that the first gives up.
        assert!(near(relaxed.prices[1], 1.0) && near(relaxed.prices[0], 3.5));
    }

    #[test]
    fn nothing_asked_and_no_gpus_are_answered() {
        assert!(relax(&[], &[], &[], 3).gpus.is_empty());
        assert_eq!(relax(&[1.0], &[5], &[&[7]], 0).prices.len(), 1);
    }
}
