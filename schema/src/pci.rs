//! PCI addresses and device ids of GPUs, in one form each.
//!
//! NVML's `busId` has an eight-digit domain in upper case, sysfs a four-digit one in lower case;
//! both read into the same [`BusId`]. Source: `nvmlPciInfo_t` in nvml.h, API 13.

use std::fmt;
use std::str::FromStr;

use crate::serde_as_text;

/// A PCI bus id, printed as `00000000:1b:00.0`. The order is the order of NVML's indexes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BusId {
    domain: u32,
    bus: u8,
    device: u8,
    function: u8,
}

/// The text is not a PCI bus id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a PCI bus id: write it as `00000000:1b:00.0`")]
pub struct BusIdError(String);

impl FromStr for BusId {
    type Err = BusIdError;

    fn from_str(text: &str) -> Result<Self, BusIdError> {
        parse_bus_id(text).ok_or_else(|| BusIdError(text.to_owned()))
    }
}

fn parse_bus_id(text: &str) -> Option<BusId> {
    let (domain, rest) = text.split_once(':')?;
    let (bus, rest) = rest.split_once(':')?;
    let (device, function) = rest.split_once('.')?;
    if !(4..=8).contains(&domain.len()) {
        return None;
    }
    let byte = |text: &str, digits: usize, most: u8| {
        let value = hex(text, digits).and_then(|value| u8::try_from(value).ok());
        value.filter(|value| *value <= most)
    };
    Some(BusId {
        domain: hex(domain, domain.len())?,
        bus: byte(bus, 2, u8::MAX)?,
        device: byte(device, 2, 0x1f)?,
        function: byte(function, 1, 7)?,
    })
}

/// Reads exactly `digits` hexadecimal digits, of either case, without a sign.
fn hex(text: &str, digits: usize) -> Option<u32> {
    let plain = text.len() == digits && text.bytes().all(|b| b.is_ascii_hexdigit());
    if plain { u32::from_str_radix(text, 16).ok() } else { None }
}

impl fmt::Display for BusId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { domain, bus, device, function } = self;
        write!(f, "{domain:08x}:{bus:02x}:{device:02x}.{function:x}")
    }
}

/// A PCI device id, printed as `0x2330`. The vendor, 0x10de, is not part of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceId(u16);

/// The text is not a PCI device id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a PCI device id: write it as `0x2330`")]
pub struct DeviceIdError(String);

impl FromStr for DeviceId {
    type Err = DeviceIdError;

    fn from_str(text: &str) -> Result<Self, DeviceIdError> {
        let digits = text.strip_prefix("0x").and_then(|digits| hex(digits, 4));
        let id = digits.and_then(|id| u16::try_from(id).ok()).map(Self);
        id.ok_or_else(|| DeviceIdError(text.to_owned()))
    }
}

impl fmt::Display for DeviceId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:04x}", self.0)
    }
}

serde_as_text!(BusId, DeviceId);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nvml_and_sysfs_spell_the_same_address() {
        for text in ["00000000:1B:00.0", "0000:1b:00.0", "00000000:1b:00.0"] {
            assert_eq!(text.parse::<BusId>().unwrap().to_string(), "00000000:1b:00.0");
        }
        assert_eq!("0009:01:00.0".parse::<BusId>().unwrap().to_string(), "00000009:01:00.0");
    }

    #[test]
    fn what_is_no_address_is_refused() {
        for wrong in [
            "",
            "1b:00.0",
            "0000:1b:00",
            "0000:1b:20.0",
            "0000:1b:00.8",
            "0000:+b:00.0",
            "000:1b:00.0",
            "000000000:1b:00.0",
            "0000:1b:00.0 ",
            "0000:1b:00.00",
        ] {
            assert!(wrong.parse::<BusId>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn addresses_order_by_domain_then_bus() {
        let id = |text: &str| text.parse::<BusId>().unwrap();
        assert!(id("0000:9b:00.0") < id("0000:ab:00.0"));
        assert!(id("0000:ff:00.0") < id("0001:00:00.0"));
    }

    #[test]
    fn device_ids_have_four_digits() {
        assert_eq!("0x26B9".parse::<DeviceId>().unwrap().to_string(), "0x26b9");
        for wrong in ["2330", "0x233", "0x233010de", "0x", "0x+233"] {
            assert!(wrong.parse::<DeviceId>().is_err(), "{wrong}");
        }
    }
}
