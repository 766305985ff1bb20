//! Faults that NVIDIA's driver wrote into the kernel log.
//!
//! Sources: the kernel's `Documentation/ABI/testing/dev-kmsg`; open-gpu-kernel-modules 595.45.04,
//! where `NVRM: Xid (PCI:%s): %d, …` and its like are printed. A PCI address in them mostly has no
//! function, and may have one.

use fleetc_schema::pci::BusId;

use crate::state::{KernelLog, LogEvent, LogEventKind};

/// The most events that are kept: the last ones.
const MAX_EVENTS: usize = 256;

/// The most bytes of a text that are kept.
const MAX_TEXT: usize = 200;

/// Reads records as they come, in pieces of any size.
#[derive(Default)]
pub(super) struct Reader {
    rest: Vec<u8>,
    log: KernelLog,
    first: bool,
}

impl Reader {
    /// Takes more of the log.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        let Some(end) = bytes.iter().rposition(|byte| *byte == b'\n') else {
            return self.rest.extend_from_slice(bytes);
        };
        let (whole, rest) = bytes.split_at(end);
        let mut lines = whole.split(|byte| *byte == b'\n');
        let first = lines.next().unwrap_or_default();
        let mut started =
            std::mem::replace(&mut self.rest, rest.get(1..).unwrap_or_default().to_vec());
        match started.is_empty() {
            true => self.line(first),
            false => {
                started.extend_from_slice(first);
                self.line(&started);
            }
        }
        lines.for_each(|line| self.line(line));
    }

    /// Records were written over before they were read.
    pub(super) fn lost(&mut self) {
        self.log.truncated = true;
    }

    /// What was found.
    pub(super) fn finish(mut self) -> KernelLog {
        let rest = std::mem::take(&mut self.rest);
        self.line(&rest);
        self.log
    }

    fn line(&mut self, line: &[u8]) {
        // Lines that go on a record, with its properties, start with a blank.
        if line.is_empty() || line.first() == Some(&b' ') {
            return;
        }
        let first = !std::mem::replace(&mut self.first, true);
        let line = String::from_utf8_lossy(line);
        if !first && !line.contains("NVRM") && !line.contains("Xid") {
            return;
        }
        // `priority,sequence,microseconds,flags;message`.
        let Some((head, message)) = line.split_once(';') else { return };
        let mut head = head.split(',').skip(1);
        let (sequence, time) = (head.next(), head.next());
        if first && sequence != Some("0") {
            // The first record of a boot has the number 0.
            self.log.truncated = true;
        }
        let Some(at) = time.and_then(|time| time.parse::<u64>().ok()) else { return };
        if let Some((gpu, kind)) = event(message) {
            if self.log.events.len() == MAX_EVENTS {
                self.log.events.remove(0);
                self.log.truncated = true;
            }
            self.log.events.push(LogEvent { at: at / 1_000_000, gpu, kind });
        }
    }
}

/// What a message tells, and of which GPU.
fn event(message: &str) -> Option<(Option<BusId>, LogEventKind)> {
    let gpu = message.split_once("PCI:").or_else(|| message.split_once("GPU "));
    let gpu = gpu.and_then(|(_, rest)| bus_id(rest));
    let after = |words: &str| Some(message.split_once(words)?.1);
    if let Some(rest) = after("SXid (PCI:") {
        let (code, text) = code(rest)?;
        return Some((None, LogEventKind::Sxid { code, text }));
    }
    if let Some(rest) = after("Xid (PCI:") {
        let (code, text) = code(rest)?;
        let code = u16::try_from(code).ok()?;
        return Some((gpu, LogEventKind::Xid { code, text }));
    }
    if message.contains("has fallen off the bus") {
        return Some((gpu, LogEventKind::FallenOffBus));
    }
    if let Some(rest) = after("RmInitAdapter failed!") {
        return Some((gpu, LogEventKind::InitFailed { text: short(rest) }));
    }
    if let Some(rest) = after("API mismatch:") {
        return Some((None, LogEventKind::ApiMismatch { text: short(rest) }));
    }
    None
}

/// `0000:9b:00): 79, pid=…`: the code and what follows.
fn code(rest: &str) -> Option<(u32, String)> {
    let (_, rest) = rest.split_once("): ")?;
    let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (code, text) = rest.split_at_checked(digits)?;
    Some((code.parse().ok()?, short(text.trim_start_matches([',', ' ']))))
}

/// A bus id at the start of a text, with or without its function.
fn bus_id(text: &str) -> Option<BusId> {
    let end = text.find(|c: char| !c.is_ascii_hexdigit() && c != ':' && c != '.');
    let id = text.get(..end.unwrap_or(text.len()))?.trim_end_matches([':', '.']);
    id.parse().ok().or_else(|| format!("{id}.0").parse().ok())
}

fn short(text: &str) -> String {
    let text = text.trim();
    let end = text.char_indices().map(|(at, _)| at).take_while(|at| *at <= MAX_TEXT).last();
    match text.len() > MAX_TEXT {
        true => text.get(..end.unwrap_or(0)).unwrap_or_default().to_owned(),
        false => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&str]) -> KernelLog {
        let mut reader = Reader::default();
        pieces.iter().for_each(|piece| reader.take(piece.as_bytes()));
        reader.finish()
    }

    fn xid(code: u16, text: &str) -> LogEventKind {
        LogEventKind::Xid { code, text: text.into() }
    }

    #[test]
    fn xids_are_found_with_and_without_a_function() {
        let log = read(&[
            "6,0,0,-;Linux version 6.8.0\n",
            "3,900,1234567890,-;NVRM: Xid (PCI:0000:9b:00): 79, pid='<unknown>', name=<unknown>, \
             GPU has fallen off the bus.\n SUBSYSTEM=pci\n",
            "3,901,2000000000,-;NVRM: Xid (PCI:0000:00:08.0): 31, pid=1234, name=python\n",
        ]);
        assert!(!log.truncated);
        let gpu = |text: &str| Some(text.parse::<BusId>().unwrap());
        let text = "pid='<unknown>', name=<unknown>, GPU has fallen off the bus.";
        let expected = [
            LogEvent { at: 1234, gpu: gpu("0000:9b:00.0"), kind: xid(79, text) },
            LogEvent { at: 2000, gpu: gpu("0000:00:08.0"), kind: xid(31, "pid=1234, name=python") },
        ];
        assert_eq!(log.events, expected);
    }

    #[test]
    fn a_gpu_may_fall_off_the_bus_without_an_xid() {
        let log = read(&[
            "6,0,0,-;Linux version\n",
            "3,7,5000000,-;NVRM: GPU 0000:1b:00.0: GPU has fallen off the bus.\n",
            "3,8,5000001,-;NVRM: GPU 0000:1b:00.0: RmInitAdapter failed! (0x62:0x0:2404)\n",
        ]);
        let gpu = Some("0000:1b:00.0".parse().unwrap());
        let failed = LogEventKind::InitFailed { text: "(0x62:0x0:2404)".into() };
        let expected = [
            LogEvent { at: 5, gpu, kind: LogEventKind::FallenOffBus },
            LogEvent { at: 5, gpu, kind: failed },
        ];
        assert_eq!(log.events, expected);
    }

    #[test]
    fn switches_and_mismatches_are_no_gpu() {
        let log = read(&[
            "6,0,0,-;Linux version\n",
            "3,7,5000000,-;nvidia-nvswitch3: SXid (PCI:0000:c5:00.0): 12028, Non-fatal, Link 32\n",
            "3,8,6000000,-;NVRM: API mismatch: the client has the version 580.82.07, but\n",
        ]);
        let text = "Non-fatal, Link 32".into();
        let mismatch = "the client has the version 580.82.07, but".into();
        let expected = [
            LogEvent { at: 5, gpu: None, kind: LogEventKind::Sxid { code: 12_028, text } },
            LogEvent { at: 6, gpu: None, kind: LogEventKind::ApiMismatch { text: mismatch } },
        ];
        assert_eq!(log.events, expected);
    }

    #[test]
    fn records_may_come_in_pieces_and_the_log_may_have_been_written_over() {
        let log = read(&[
            "6,812,0,-;usb 1-1: new device\n3,813,1000000,-;NVRM: Xid (PCI:00",
            "00:1b:00): 48\n",
        ]);
        assert!(log.truncated, "the first record is not the first of the boot");
        assert_eq!(log.events.len(), 1);
        assert_eq!(log.events[0].kind, xid(48, ""));
    }

    proptest::proptest! {
        #[test]
        fn pieces_make_no_difference(
            lines in proptest::collection::vec(
                "[0-9],[0-9]{1,3},[0-9]{1,9},-;(NVRM: Xid \\(PCI:0000:[0-9a-f]{2}:00(\\.0)?\\): )?.{0,40}",
                0..8,
            ),
            cuts in proptest::collection::vec(0_usize..400, 0..6),
        ) {
            let text = lines.join("\n");
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut < text.len()).collect();
            cuts.sort_unstable();
            let mut reader = Reader::default();
            let mut from = 0;
            for cut in cuts.into_iter().chain([text.len()]) {
                reader.take(&text.as_bytes()[from..cut]);
                from = cut;
            }
            proptest::prop_assert_eq!(reader.finish(), read(&[&text]));
        }
    }

    #[test]
    fn what_others_say_is_no_event() {
        let log = read(&[
            "6,0,0,-;Linux version\n",
            "6,1,1,-;nvidia: loading out-of-tree module taints kernel.\n",
            "6,2,1,-;Xid of something else\n",
            "6,3,x,-;NVRM: Xid (PCI:0000:1b:00): 48\n",
            "NVRM: Xid (PCI:0000:1b:00): 48\n",
        ]);
        assert_eq!(log.events, []);
    }
}
