//! Times as Slurm writes them. Source: slurm.conf(5), "MaxTime".

use std::fmt;

use fleetc_schema::units::Seconds;

/// A time as Slurm writes it: `days-hours:minutes:seconds`.
pub struct SlurmTime(pub Seconds);

impl fmt::Display for SlurmTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(Seconds(all)) = *self;
        let (days, hours) = (all / 86_400, all / 3_600 % 24);
        let (minutes, seconds) = (all / 60 % 60, all % 60);
        if days > 0 {
            write!(f, "{days}-")?;
        }
        write!(f, "{hours:02}:{minutes:02}:{seconds:02}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_days_hours_minutes_seconds() {
        let time = |seconds| SlurmTime(Seconds(seconds)).to_string();
        assert_eq!(time(172_800), "2-00:00:00");
        assert_eq!(time(14_400), "04:00:00");
        assert_eq!(time(90_061), "1-01:01:01");
    }
}
