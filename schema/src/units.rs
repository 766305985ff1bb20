//! Quantities with their unit in the type.
//!
//! NVML reports bytes, `nvidia-smi` MiB and watts, Slurm's `RealMemory` is MiB, marketing says GB.
//! A quantity in a spec always names its unit; here it becomes an integer in the smallest one.

use std::fmt;
use std::str::FromStr;

use crate::serde_as_text;

/// Why a text is not a quantity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum UnitError {
    /// The text does not start with a number.
    #[error("`{0}` is not a number with a unit")]
    NotANumber(String),
    /// A number without a unit.
    #[error("`{0}` has no unit")]
    NoUnit(String),
    /// A unit that this quantity is not measured in.
    #[error("`{unit}` is not a unit of {quantity}")]
    OtherUnit {
        /// The unit as written.
        unit: String,
        /// What is measured, such as "memory".
        quantity: &'static str,
    },
    /// More than the type can hold, or a fraction of the smallest unit.
    #[error("`{0}` is out of range")]
    OutOfRange(String),
}

/// Memory in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Bytes(pub u64);

/// Memory in MiB (2^20 bytes), the unit of Slurm's `RealMemory` and of `nvidia-smi`.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(transparent)]
pub struct Mib(pub u64);

/// Power in milliwatts, the unit of NVML.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct Milliwatts(pub u32);

/// A clock rate in MHz, the unit of NVML.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct Mhz(pub u32);

/// A temperature, or a distance between two, in degrees Celsius.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
#[serde(transparent)]
pub struct Celsius(pub i32);

/// Power in watts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Watts(pub u32);

/// A length of time in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Seconds(pub u64);

/// A network rate in Gb/s (10^9 bits a second, one direction).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GbitPerSec(pub u32);

/// A rate of data in bytes a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BytesPerSec(pub u64);

/// A share between 0 and 1, in millionths.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ratio(pub u32);

/// A number of model parameters: `7B` is 7 × 10^9.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Parameters(pub u64);

/// A price for a GPU-hour, in millionths of a US dollar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct GpuHourPrice(pub u64);

/// A length of time in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Milliseconds(pub u64);

/// A calendar date, `YYYY-MM-DD`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Date {
    /// Year, 1 to 9999.
    pub year: u16,
    /// Month, 1 to 12.
    pub month: u8,
    /// Day of the month.
    pub day: u8,
}

serde_as_text!(
    Bytes,
    Watts,
    Seconds,
    Date,
    GbitPerSec,
    BytesPerSec,
    Ratio,
    Parameters,
    GpuHourPrice,
    Milliseconds
);

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const TIB: u64 = 1 << 40;

impl Bytes {
    /// The units a spec may use, binary and decimal, with their size in bytes.
    const UNITS: &'static [(&'static str, u64)] = &[
        ("B", 1),
        ("KiB", KIB),
        ("MiB", MIB),
        ("GiB", GIB),
        ("TiB", TIB),
        ("kB", 1_000),
        ("MB", 1_000_000),
        ("GB", 1_000_000_000),
        ("TB", 1_000_000_000_000),
    ];

    /// Whole MiB, rounded up: a demand that does not fit in fewer.
    pub fn to_mib_ceil(self) -> Mib {
        Mib(self.0.div_ceil(MIB))
    }
}

impl Watts {
    /// The same power in milliwatts.
    pub fn to_milliwatts(self) -> Milliwatts {
        Milliwatts(self.0.saturating_mul(1_000))
    }
}

impl Mib {
    /// The same amount in bytes.
    pub fn to_bytes(self) -> Bytes {
        Bytes(self.0.saturating_mul(MIB))
    }
}

impl fmt::Display for Bytes {
    /// The largest binary unit that divides the amount, as in `60GiB`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = [("TiB", TIB), ("GiB", GIB), ("MiB", MIB), ("KiB", KIB)]
            .into_iter()
            .find(|(_, size)| self.0 != 0 && self.0.is_multiple_of(*size));
        match unit {
            Some((name, size)) => write!(f, "{}{name}", self.0 / size),
            None => write!(f, "{}B", self.0),
        }
    }
}

impl fmt::Display for Mib {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", GibTenths(self.0))
    }
}

/// MiB printed as GiB with up to two decimals: `79.65 GiB`.
struct GibTenths(u64);

impl fmt::Display for GibTenths {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hundredths = (u128::from(self.0) * 100 + 512) / 1024;
        let (whole, rest) = (hundredths / 100, hundredths % 100);
        match rest {
            0 => write!(f, "{whole} GiB"),
            _ if rest.is_multiple_of(10) => write!(f, "{whole}.{} GiB", rest / 10),
            _ => write!(f, "{whole}.{rest:02} GiB"),
        }
    }
}

impl FromStr for Bytes {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        scaled(text, "memory", Self::UNITS).map(Bytes)
    }
}

impl fmt::Display for Watts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}W", self.0)
    }
}

impl FromStr for Watts {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let watts = scaled(text, "power", &[("W", 1), ("kW", 1_000)])?;
        u32::try_from(watts).map(Watts).map_err(|_| UnitError::OutOfRange(text.to_owned()))
    }
}

impl fmt::Display for Seconds {
    /// The largest unit that divides the time, as in `4h`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = [("d", 86_400), ("h", 3_600), ("m", 60)]
            .into_iter()
            .find(|(_, size)| self.0 != 0 && self.0.is_multiple_of(*size));
        match unit {
            Some((name, size)) => write!(f, "{}{name}", self.0 / size),
            None => write!(f, "{}s", self.0),
        }
    }
}

impl FromStr for Seconds {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let units = &[("w", 604_800), ("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)];
        let whole = scaled(text, "time", units);
        let sum = || {
            // `1h30m`: parts from the largest unit down, each a whole number.
            let (mut rest, mut units, mut sum) = (text.trim(), units.iter(), 0_u64);
            while !rest.is_empty() {
                let (number, after) = rest.split_at(rest.find(|c: char| !c.is_ascii_digit())?);
                let unit = after.chars().next()?;
                let (_, size) = units.find(|(name, _)| unit.to_string() == *name)?;
                sum = sum.checked_add(number.parse::<u64>().ok()?.checked_mul(*size)?)?;
                rest = after.get(unit.len_utf8()..)?;
            }
            Some(sum)
        };
        match whole {
            Err(UnitError::OtherUnit { .. }) => sum().map_or(whole, Ok),
            whole => whole,
        }
        .map(Seconds)
    }
}

impl fmt::Display for GbitPerSec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}Gb/s", self.0)
    }
}

impl FromStr for GbitPerSec {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let rate = scaled(text, "network rate", &[("Gb/s", 1), ("Tb/s", 1_000)])?;
        u32::try_from(rate).map(Self).map_err(|_| UnitError::OutOfRange(text.to_owned()))
    }
}

impl fmt::Display for BytesPerSec {
    /// The largest decimal unit that the rate reaches, as in `2.5GB/s`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let units = [("TB/s", 1_000_000_000_000), ("GB/s", 1_000_000_000), ("MB/s", 1_000_000)];
        match units.into_iter().find(|(_, size)| self.0 >= *size) {
            Some((name, size)) => write!(f, "{}{name}", decimal(self.0, size)),
            None => write!(f, "{}B/s", self.0),
        }
    }
}

impl FromStr for BytesPerSec {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let units = &[
            ("B/s", 1),
            ("MB/s", 1_000_000),
            ("GB/s", 1_000_000_000),
            ("TB/s", 1_000_000_000_000),
        ];
        scaled(text, "data rate", units).map(Self)
    }
}

impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&decimal(u64::from(self.0), 1_000_000))
    }
}

impl FromStr for Ratio {
    type Err = UnitError;

    /// Reads `0.05` or `5%`.
    fn from_str(text: &str) -> Result<Self, UnitError> {
        let millionths = match text.trim().strip_suffix('%') {
            Some(percent) => scaled(&format!("{percent}%"), "share", &[("%", 10_000)])?,
            None => scaled(&format!("{}#", text.trim()), "share", &[("#", 1_000_000)])?,
        };
        match u32::try_from(millionths) {
            Ok(millionths) if millionths <= 1_000_000 => Ok(Self(millionths)),
            _ => Err(UnitError::OutOfRange(text.to_owned())),
        }
    }
}

impl fmt::Display for Parameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit = [("T", 1_000_000_000_000), ("B", 1_000_000_000), ("M", 1_000_000)]
            .into_iter()
            .find(|(_, size)| self.0 >= *size);
        let (name, size) = unit.unwrap_or(("M", 1_000_000));
        write!(f, "{}{name}", decimal(self.0, size))
    }
}

impl FromStr for Parameters {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let units = &[("M", 1_000_000), ("B", 1_000_000_000), ("T", 1_000_000_000_000)];
        scaled(text, "parameters", units).map(Self)
    }
}

impl fmt::Display for GpuHourPrice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} USD/gpu-hour", decimal(self.0, 1_000_000))
    }
}

impl FromStr for GpuHourPrice {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        scaled(text, "price", &[("USD/gpu-hour", 1_000_000)]).map(Self)
    }
}

impl fmt::Display for Milliseconds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ms", self.0)
    }
}

impl FromStr for Milliseconds {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Self, UnitError> {
        let units = &[("ms", 1), ("s", 1_000), ("m", 60_000)];
        scaled(text, "time", units).map(Self)
    }
}

/// A number of units as a decimal without trailing zeros: 2,100,000 of 10^6 is `2.1`.
pub(crate) fn decimal(number: u64, unit: u64) -> String {
    let (whole, rest) = (number / unit, number % unit);
    if rest == 0 {
        return whole.to_string();
    }
    let digits = unit.ilog10() as usize;
    let rest = format!("{rest:0digits$}");
    format!("{whole}.{}", rest.trim_end_matches('0'))
}

impl fmt::Display for Date {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

/// The text is not a date of the calendar.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a date: write it as `2026-11-30`")]
pub struct DateError(String);

impl FromStr for Date {
    type Err = DateError;

    fn from_str(text: &str) -> Result<Self, DateError> {
        let error = || DateError(text.to_owned());
        let mut parts = text.split('-');
        let (Some(y), Some(m), Some(d), None) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Err(error());
        };
        let digits =
            |part: &str, len| part.len() == len && part.bytes().all(|b| b.is_ascii_digit());
        if !(digits(y, 4) && digits(m, 2) && digits(d, 2)) {
            return Err(error());
        }
        let (year, month, day): (u16, u8, u8) = (
            y.parse().map_err(|_| error())?,
            m.parse().map_err(|_| error())?,
            d.parse().map_err(|_| error())?,
        );
        let leap =
            year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
        let days = match month {
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            4 | 6 | 9 | 11 => 30,
            2 if leap => 29,
            2 => 28,
            _ => 0,
        };
        if year == 0 || day == 0 || day > days {
            return Err(error());
        }
        Ok(Date { year, month, day })
    }
}

/// Reads `<decimal><unit>` exactly, without floats: `1.5TiB` is 3 × 2^39.
fn scaled(
    text: &str,
    quantity: &'static str,
    units: &[(&'static str, u64)],
) -> Result<u64, UnitError> {
    let out_of_range = || UnitError::OutOfRange(text.to_owned());
    let trimmed = text.trim();
    let split = trimmed.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(trimmed.len());
    let (number, unit) = trimmed.split_at(split);
    let unit = unit.trim_start();
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    if whole.is_empty() || (number.contains('.') && fraction.is_empty()) || fraction.contains('.') {
        return Err(UnitError::NotANumber(text.to_owned()));
    }
    if unit.is_empty() {
        return Err(UnitError::NoUnit(text.to_owned()));
    }
    let Some((_, size)) = units.iter().find(|(name, _)| *name == unit) else {
        return Err(UnitError::OtherUnit { unit: unit.to_owned(), quantity });
    };
    let size = u128::from(*size);
    let whole: u128 = whole.parse().map_err(|_| out_of_range())?;
    let mut total = whole.checked_mul(size).ok_or_else(out_of_range)?;
    if !fraction.is_empty() {
        let digits = u32::try_from(fraction.len()).map_err(|_| out_of_range())?;
        let scale = 10_u128.checked_pow(digits).ok_or_else(out_of_range)?;
        let part: u128 = fraction.parse().map_err(|_| out_of_range())?;
        let part = part.checked_mul(size).ok_or_else(out_of_range)?;
        if !part.is_multiple_of(scale) {
            return Err(out_of_range());
        }
        total = total.checked_add(part / scale).ok_or_else(out_of_range)?;
    }
    u64::try_from(total).map_err(|_| out_of_range())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn binary_and_decimal_memory_are_told_apart() {
        assert_eq!("60GiB".parse(), Ok(Bytes(64_424_509_440)));
        assert_eq!("80GB".parse(), Ok(Bytes(80_000_000_000)));
        assert_eq!("1.5TiB".parse(), Ok(Bytes(1_649_267_441_664)));
        assert_eq!(Bytes(80_000_000_000).to_mib_ceil(), Mib(76_294));
    }

    #[test]
    fn a_quantity_without_a_unit_or_with_another_is_refused() {
        assert_eq!("60".parse::<Bytes>(), Err(UnitError::NoUnit("60".into())));
        assert_eq!(
            "60W".parse::<Bytes>(),
            Err(UnitError::OtherUnit { unit: "W".into(), quantity: "memory" })
        );
        assert_eq!("GiB".parse::<Bytes>(), Err(UnitError::NotANumber("GiB".into())));
        assert_eq!("0.3B".parse::<Bytes>(), Err(UnitError::OutOfRange("0.3B".into())));
        assert_eq!(
            "99999999TiB".parse::<Bytes>(),
            Err(UnitError::OutOfRange("99999999TiB".into()))
        );
    }

    #[test]
    fn quantities_print_in_the_largest_unit_that_divides_them() {
        assert_eq!(Bytes(64_424_509_440).to_string(), "60GiB");
        assert_eq!(Seconds(172_800).to_string(), "2d");
        assert_eq!(Seconds(90).to_string(), "90s");
        assert_eq!(Mib(81_559).to_string(), "79.65 GiB");
        assert_eq!(Mib(40_448).to_string(), "39.5 GiB");
        assert_eq!(Mib(u64::MAX).to_string(), "18014398509481984 GiB");
    }

    #[test]
    fn rates_shares_prices_and_parameters_read_and_print() {
        assert_eq!("400Gb/s".parse(), Ok(GbitPerSec(400)));
        assert_eq!("2.5GB/s".parse(), Ok(BytesPerSec(2_500_000_000)));
        assert_eq!(BytesPerSec(2_500_000_000).to_string(), "2.5GB/s");
        assert_eq!(BytesPerSec(500_000_000).to_string(), "500MB/s");
        // A network rate counts bits: the units are not taken for each other.
        assert!("2Gb/s".parse::<BytesPerSec>().is_err());
        assert_eq!("0.05".parse(), Ok(Ratio(50_000)));
        assert_eq!("5%".parse(), Ok(Ratio(50_000)));
        assert_eq!(Ratio(50_000).to_string(), "0.05");
        assert!("1.5".parse::<Ratio>().is_err());
        assert_eq!("2.10 USD/gpu-hour".parse(), Ok(GpuHourPrice(2_100_000)));
        assert_eq!(GpuHourPrice(2_100_000).to_string(), "2.1 USD/gpu-hour");
        assert_eq!("7B".parse(), Ok(Parameters(7_000_000_000)));
        assert_eq!(Parameters(1_500_000_000).to_string(), "1.5B");
        assert_eq!("300ms".parse(), Ok(Milliseconds(300)));
        for text in ["7B", "1.5B", "70B", "8M", "0.5M", "0M"] {
            assert_eq!(text.parse::<Parameters>().unwrap().to_string(), text);
        }
    }

    proptest! {
        #[test]
        fn every_quantity_prints_and_reads_back(number in any::<u64>(), small in any::<u32>()) {
            prop_assert_eq!(Bytes(number).to_string().parse(), Ok(Bytes(number)));
            prop_assert_eq!(Seconds(number).to_string().parse(), Ok(Seconds(number)));
            prop_assert_eq!(Milliseconds(number).to_string().parse(), Ok(Milliseconds(number)));
            prop_assert_eq!(Parameters(number).to_string().parse(), Ok(Parameters(number)));
            prop_assert_eq!(GpuHourPrice(number).to_string().parse(), Ok(GpuHourPrice(number)));
            prop_assert_eq!(Watts(small).to_string().parse(), Ok(Watts(small)));
            prop_assert_eq!(GbitPerSec(small).to_string().parse(), Ok(GbitPerSec(small)));
            let share = Ratio(small % 1_000_001);
            prop_assert_eq!(share.to_string().parse(), Ok(share));
            prop_assert!(!Mib(number).to_string().is_empty());
        }

        #[test]
        fn a_quantity_is_exact_or_refused(whole in 0_u64..1 << 20, cents in 0_u64..100) {
            // 1.25KiB is 1280 bytes; 0.01KiB is no whole number of them.
            let hundredths = (whole * 100 + cents) * 1024;
            let read = format!("{whole}.{cents:02}KiB").parse::<Bytes>();
            match hundredths.is_multiple_of(100) {
                true => prop_assert_eq!(read, Ok(Bytes(hundredths / 100))),
                false => prop_assert!(matches!(read, Err(UnitError::OutOfRange(_)))),
            }
        }
    }

    #[test]
    fn dates_follow_the_calendar() {
        assert_eq!("2028-02-29".parse(), Ok(Date { year: 2028, month: 2, day: 29 }));
        for wrong in ["2026-02-29", "2026-13-01", "2026-1-01", "30.11.2026", "0000-01-01", ""] {
            assert!(wrong.parse::<Date>().is_err(), "{wrong}");
        }
    }
}
