//! NVLinks, and what GPUs reach over them.
//!
//! On a GPU with MIG mode on, NVML does not tell of NVLinks, or calls them down. Source: DCGM 2.0.15
//! release notes; NVML on H200, "not supported for Devices in MIG mode".

use std::collections::BTreeMap;

use fleetc_schema::ItemPath;
use fleetc_schema::pci::BusId;
use fleetc_schema::units::Seconds;

use super::node::{Node, counted, growth, is_faster, mig_is_on};
use super::outcome::{Answer, Contrast, Outcome};
use crate::state::{GpuState, NvLink, NvLinkErrors, P2pStatus, Reading};

const TRY_RESET: &str =
    "`nvidia-smi nvlink -s` and the kernel log say more; reset the GPU, then look at the board";

/// How many links should be active, and the item that says so.
fn wanted_links(node: &Node<'_>) -> Option<(usize, ItemPath)> {
    if let Some(links) = node.policy().and_then(|policy| policy.nvlinks) {
        return Some((usize::from(links), node.policy_path(&["nvlink", "active"])));
    }
    let model = node.model()?;
    let class = node.class();
    let joined = model.nvlink_domain.is_some_and(|gpus| gpus > 1);
    // Without switches the links to a GPU that is gone are down.
    let switched = model.fabric == Some(true) || class.services.fabric_manager == Some(true);
    let complete = class.missing.is_empty() || switched;
    (joined && complete).then(|| (usize::from(model.nvlinks), node.system_path()))
}

/// `nvlink.active`.
pub(super) fn active(node: &Node<'_>, outcome: &mut Outcome) {
    let Some((wanted, path)) = wanted_links(node).filter(|(wanted, _)| *wanted > 0) else { return };
    node.each_gpu(outcome, &path, |_, gpu| judge_links(gpu, wanted));
}

fn judge_links(gpu: &GpuState, wanted: usize) -> Answer {
    let expected = counted(wanted, "active NVLink");
    let mig = mig_is_on(gpu);
    if mig == Some(true) {
        return Answer::NotHere;
    }
    let links = match &gpu.nvlinks {
        Reading::Value(links) => links,
        reading => return Answer::unread("NVLinks", reading, expected),
    };
    let with = |state: Option<bool>| {
        links.iter().filter(|link| link.active.value().copied() == state).count()
    };
    let (active, unread) = (with(Some(true)), with(None));
    if active >= wanted {
        return Answer::Holds;
    }
    let down: Vec<String> = links.iter().filter(|link| is_down(link)).map(number).collect();
    let mut seen = counted(active, "active NVLink");
    if !down.is_empty() {
        seen = format!("{seen}, down: {}", down.join(" "));
    }
    if active + unread >= wanted {
        return Answer::Unread(Contrast::new(expected, format!("{seen}, {unread} not read")));
    }
    match mig {
        Some(_) => Answer::Fails(Contrast::new(expected, seen).advise(TRY_RESET)),
        None => Answer::Unread(Contrast::new(expected, format!("{seen}, MIG mode unknown"))),
    }
}

fn is_down(link: &NvLink) -> bool {
    link.active.value() == Some(&false)
}

fn number(link: &NvLink) -> String {
    link.link.to_string()
}

/// `nvlink.peers`: the honest test of a fabric. On a tray whose fabric called itself healthy, no pair had
/// a path.
pub(super) fn peers(node: &Node<'_>, outcome: &mut Outcome) {
    let Some(domain) = node.model().and_then(|model| model.nvlink_domain) else { return };
    let (domain, gpus) = (usize::from(domain), node.gpus);
    if domain < 2 || gpus.len() < 2 {
        return;
    }
    let class = node.class();
    let complete = class.gpus.len() + class.missing.len();
    let islands = domain < complete;
    // Which island a GPU that is gone belonged to, nobody knows; that it is gone is said elsewhere.
    if islands && gpus.len() != complete {
        return;
    }
    let matrix = &node.state.peers;
    let pairs: BTreeMap<(BusId, BusId), P2pStatus> = matrix
        .value()
        .into_iter()
        .flatten()
        .map(|pair| (key(pair.a, pair.b), pair.nvlink))
        .collect();
    let path = node.system_path();
    node.each_gpu(outcome, &path, |_, gpu| {
        let others: Vec<&GpuState> =
            gpus.iter().filter(|other| other.bus_id != gpu.bus_id).collect();
        let wanted = if islands { domain - 1 } else { others.len() };
        let expected = format!("{} over NVLink", counted(wanted, "peer"));
        match mig_is_on(gpu) {
            Some(true) => return Answer::NotHere,
            Some(false) => {}
            None => return Answer::Unread(Contrast::new(expected, "MIG mode unknown")),
        }
        if others.iter().all(|other| mig_is_on(other) == Some(true)) {
            return Answer::NotHere;
        }
        if !matches!(matrix, Reading::Value(_)) {
            return Answer::unread("the P2P matrix", matrix, expected);
        }
        let (mut reached, mut unread, mut cut, mut refused) = (0, 0, 0, Vec::new());
        for other in others {
            let status = pairs.get(&key(gpu.bus_id, other.bus_id));
            match (mig_is_on(other), status) {
                (Some(true), _) => cut += 1,
                (_, Some(P2pStatus::Ok)) => reached += 1,
                (None, _) | (_, None | Some(P2pStatus::Unknown)) => unread += 1,
                (Some(false), Some(_)) => refused.push(other.index),
            }
        }
        // A peer that is cut into MIG instances cannot be reached, as expected.
        let wanted = if islands { wanted } else { wanted - cut };
        if reached >= wanted || (islands && reached + cut >= wanted) {
            return Answer::Holds;
        }
        let seen = format!("{} over NVLink", counted(reached, "peer"));
        if reached + unread + cut >= wanted && (islands || refused.is_empty()) {
            return Answer::Unread(Contrast::new(expected, format!("{seen}, {unread} not read")));
        }
        refused.sort_unstable();
        let refused: Vec<String> = refused.iter().map(u32::to_string).collect();
        let seen = format!("{seen}, none to GPU {}", refused.join(" "));
        let contrast = Contrast::new(expected, seen);
        node.once_settled(contrast.advise("`nvidia-smi topo -p2p n` shows all pairs").advise(
            "look at fabric manager, IMEX and NVLinks; then restart the fabric manager or reboot",
        ))
    });
}

fn key(a: BusId, b: BusId) -> (BusId, BusId) {
    if a < b { (a, b) } else { (b, a) }
}

/// Corrupt flits a minute that are too many: 100 a second. Source: NVIDIA/DCGM,
/// `dcgm_gpu_hardware_limits.h`, `DCGM_LIMIT_MAX_NVLINK_CRC_ERROR`, read 2026-11-30.
const CRC_A_MINUTE: u64 = 6000;

/// `nvlink.errors`: DCGM calls one replay or recovery in a minute a failure. What links count while they
/// are trained at boot is none, so only growth since then is judged.
pub(super) fn errors(node: &Node<'_>, outcome: &mut Outcome) {
    if !node.is_up_since_earlier() {
        return;
    }
    node.each_gpu(outcome, &node.system_path(), |_, gpu| {
        let before = node.earlier(gpu).and_then(|gpu| gpu.health.nvlink_errors.value());
        let Some(before) = before else { return Answer::NotHere };
        let expected = format!("no more errors of NVLinks than {}", node.earlier_when());
        let links = match &gpu.health.nvlink_errors {
            Reading::Value(links) => links,
            reading => return Answer::unless_expected(true, "NVLink errors", reading, expected),
        };
        let grown = links.iter().filter_map(|now| {
            let before = before.iter().find(|before| before.link == now.link)?;
            grown(now, before, node.earlier_age())
        });
        let grown: Vec<String> = grown.collect();
        match grown.is_empty() {
            true => Answer::Holds,
            false => Answer::Fails(Contrast::new(expected, grown.join(", ")).advise(TRY_RESET)),
        }
    });
}

/// Which errors of a link are more than they may be. Without times a rate cannot be told.
fn grown(now: &NvLinkErrors, before: &NvLinkErrors, age: Option<Seconds>) -> Option<String> {
    let crc = growth(now.crc_flit, before.crc_flit);
    let is_noisy = age.is_some_and(|age| is_faster(crc, CRC_A_MINUTE, age));
    let counts = [
        (growth(now.replay, before.replay), "replays"),
        (growth(now.recovery, before.recovery), "recoveries"),
        (if is_noisy { crc } else { 0 }, "corrupt flits"),
    ];
    let counts = counts.into_iter().filter(|(count, _)| *count > 0);
    let more: Vec<String> = counts.map(|(count, what)| format!("{count} more {what}")).collect();
    (!more.is_empty()).then(|| format!("{} on link {}", more.join(" and "), now.link))
}
