//! The node around its GPUs.

use std::collections::{BTreeMap, BTreeSet};

use fleetc_schema::ItemPath;
use fleetc_schema::intent::{FabricKind, HostPorts, WantedMount};
use fleetc_schema::name::FileSystem;

use super::node::{Node, counted};
use super::outcome::{Answer, Contrast, Outcome};
use crate::state::{DeviceNode, IbPort, Reading};

/// How much of the installed memory the kernel must show, in percent: what Slurm's `RealMemory` is.
const MEMORY_PERCENT: u64 = 95;

/// `modules.nvidia`.
pub(super) fn module_nvidia(node: &Node<'_>, outcome: &mut Outcome) {
    module(node, outcome, "nvidia");
}

/// `modules.uvm`.
pub(super) fn module_uvm(node: &Node<'_>, outcome: &mut Outcome) {
    module(node, outcome, "nvidia_uvm");
}

/// `modules.drm`: with it loaded a reset may be refused. Source: NVIDIA/mig-parted issue 181.
pub(super) fn module_drm(node: &Node<'_>, outcome: &mut Outcome) {
    let cut = node.class().gpus.iter().any(|slot| slot.mig.is_some());
    if !(cut && node.model().is_some_and(|model| model.mig_mode_needs_reset)) {
        return;
    }
    let expected = "no kernel module nvidia_drm";
    let answer = match &node.state.host.modules {
        Reading::Value(modules) if modules.iter().any(|module| module == "nvidia_drm") => {
            let help = "if a change of MIG mode stays pending, unload nvidia_drm, or reboot";
            Answer::Fails(Contrast::new(expected, "loaded").advise(help))
        }
        Reading::Value(_) => Answer::Holds,
        reading => Answer::unread("modules", reading, expected),
    };
    outcome.node(&node.class().paths.sharing, answer);
}

fn module(node: &Node<'_>, outcome: &mut Outcome, name: &str) {
    if node.model().is_none() {
        return;
    }
    let expected = format!("the kernel module {name}");
    let answer = match &node.state.host.modules {
        Reading::Value(modules) if modules.iter().any(|module| module == name) => Answer::Holds,
        Reading::Value(_) => node.once_settled(
            Contrast::new(expected, "not loaded")
                .advise(format!("modprobe {name}"))
                .advise(format!("load it at boot: add `{name}` to a file of /etc/modules-load.d")),
        ),
        reading => Answer::unread("modules", reading, expected),
    };
    outcome.node(&node.driver_path(), answer);
}

/// `devices.gpu`.
pub(super) fn device_nodes(node: &Node<'_>, outcome: &mut Outcome) {
    if node.model().is_none() {
        return;
    }
    let path = node.driver_path();
    let devices = &node.state.host.device_nodes;
    outcome.node(&path, device(node, "/dev/nvidiactl", None));
    for gpu in node.gpus {
        let answer = match (&gpu.identity.minor, devices) {
            (Reading::Value(minor), Reading::Value(_)) => {
                device(node, &format!("/dev/nvidia{minor}"), Some(*minor))
            }
            // Said once for the node.
            (_, Reading::Unknown(_) | Reading::NotApplicable(_)) => continue,
            (minor, Reading::Value(_)) => {
                Answer::unread("the minor number", minor, "a device node")
            }
        };
        outcome.gpu(gpu, &path, answer);
    }
}

/// `devices.uvm`.
pub(super) fn device_uvm(node: &Node<'_>, outcome: &mut Outcome) {
    if node.model().is_some() {
        outcome.node(&node.driver_path(), device(node, "/dev/nvidia-uvm", None));
    }
}

/// A device node that must be there, perhaps with this minor number.
fn device(node: &Node<'_>, path: &str, minor: Option<u32>) -> Answer {
    let devices = match &node.state.host.device_nodes {
        Reading::Value(devices) => devices,
        reading => return Answer::unread("device nodes", reading, path),
    };
    let make = "nvidia-modprobe -u -c 0, or `nvidia-smi`, makes it; udev rules make it at boot";
    match devices.iter().find(|device| device.path == path) {
        None => node.once_settled(Contrast::new(path, format!("no {path}")).advise(make)),
        Some(DeviceNode { minor: seen, .. }) if minor.is_some_and(|minor| minor != *seen) => {
            let seen = format!("{path} of minor number {seen}");
            let help = format!("remove {path}, and let the driver make it anew");
            Answer::Fails(Contrast::new(path, seen).advise(help))
        }
        Some(_) => Answer::Holds,
    }
}

/// `host.cpu`.
pub(super) fn cpu(node: &Node<'_>, outcome: &mut Outcome) {
    let Some(wanted) = node.class().host.cpu else { return };
    let shown = |sockets: u32, cores: u32, threads: u32| {
        let sockets = counted(usize::try_from(sockets).unwrap_or(usize::MAX), "socket");
        format!("{sockets}, {cores} cores, {threads} threads")
    };
    let (sockets, cores, threads) =
        (u32::from(wanted.sockets), u32::from(wanted.cores), u32::from(wanted.threads));
    let expected = shown(sockets, cores, threads);
    let answer = match &node.state.host.cpu {
        Reading::Value(cpu)
            if cpu.sockets < sockets || cpu.cores < cores || cpu.threads < threads =>
        {
            let seen = shown(cpu.sockets, cpu.cores, cpu.threads);
            let help = "look for processors that are offline and at SMT in the BIOS, or correct `cpu` \
                        of the system";
            Answer::Fails(Contrast::new(expected, seen).advise(help))
        }
        Reading::Value(_) => Answer::Holds,
        reading => Answer::unread("processors", reading, expected),
    };
    outcome.node(&node.system_path(), answer);
}

/// `host.memory`.
pub(super) fn memory(node: &Node<'_>, outcome: &mut Outcome) {
    let Some(wanted) = node.class().host.memory else { return };
    let least = wanted.0.saturating_mul(MEMORY_PERCENT) / 100;
    let expected = format!("{least} MiB of the {} MiB of the spec", wanted.0);
    let answer = match &node.state.host.memory {
        Reading::Value(memory) if memory.0 >= least => Answer::Holds,
        Reading::Value(memory) => Answer::Fails(
            Contrast::new(expected, format!("{} MiB", memory.0))
                .advise("find the module that is gone: `dmidecode -t memory`, the BMC's log"),
        ),
        reading => Answer::unread("memory", reading, expected),
    };
    outcome.node(&node.system_path(), answer);
}

/// `host.mount`: without its scratch disk a node takes work, and fills its root.
pub(super) fn mounts(node: &Node<'_>, outcome: &mut Outcome) {
    for wanted in node.policy().into_iter().flat_map(|policy| &policy.mounts) {
        let answer = judge_mount(node, wanted);
        outcome.node(&node.policy_entry("mount", &wanted.target), answer);
    }
}

fn judge_mount(node: &Node<'_>, wanted: &WantedMount) -> Answer {
    let kind = wanted.kind.as_ref().map(FileSystem::as_str);
    let expected = match kind {
        Some(kind) => format!("{kind} at {}", wanted.target),
        None => format!("a file system at {}", wanted.target),
    };
    let mounts = match &node.state.host.mounts {
        Reading::Value(mounts) => mounts,
        reading => return Answer::unread("mounts", reading, expected),
    };
    // Of several at one place the last one is seen.
    let seen = mounts.iter().rfind(|mount| mount.target == wanted.target.as_str());
    match seen {
        None => node.once_settled(
            Contrast::new(expected, "nothing is mounted there")
                .advise(format!(
                    "`systemctl status` of its mount unit; `findmnt {}`",
                    wanted.target
                ))
                .advise("look for a disk that is gone: `lsblk`, the kernel log"),
        ),
        // Mounted on first use.
        Some(mount) if mount.kind == "autofs" && kind.is_some_and(|kind| kind != "autofs") => {
            Answer::Unread(Contrast::new(expected, "an automount that nobody has used yet"))
        }
        Some(mount) if kind.is_some_and(|kind| kind != mount.kind) => Answer::Fails(
            Contrast::new(expected, format!("{} of {}", mount.kind, mount.source))
                .advise("correct /etc/fstab or the mount unit, or the node policy"),
        ),
        Some(_) => Answer::Holds,
    }
}

/// `host.hugepages`.
pub(super) fn hugepages(node: &Node<'_>, outcome: &mut Outcome) {
    for wanted in node.policy().into_iter().flat_map(|policy| &policy.hugepages) {
        let shown = |count: u64| format!("{count} huge pages of {}", wanted.size);
        let expected = shown(wanted.count.into());
        let answer = match &node.state.host.hugepages {
            Reading::Value(sizes) => {
                let size = sizes.iter().find(|pages| pages.size_kib == wanted.size.kib());
                match size {
                    Some(pages) if pages.total >= u64::from(wanted.count) => Answer::Holds,
                    Some(pages) => node.once_settled(
                        Contrast::new(expected, shown(pages.total))
                            .advise(
                                "set vm.nr_hugepages, or hugepages= of the kernel's command line",
                            )
                            .advise("memory may be in pieces: reboot the node"),
                    ),
                    None => Answer::Fails(
                        Contrast::new(expected, "this kernel has no pages of that size").advise(
                            "correct the node policy, or boot a kernel with other base pages",
                        ),
                    ),
                }
            }
            reading => Answer::unread("huge pages", reading, expected),
        };
        outcome.node(&node.policy_entry("hugepages", wanted.size), answer);
    }
}

/// `network.ports`.
pub(super) fn ports(node: &Node<'_>, outcome: &mut Outcome) {
    for wanted in &node.class().host.ports {
        let path = ItemPath::item("fabric", &wanted.fabric);
        outcome.node(&path, judge_ports(node, wanted));
    }
}

/// `network.ports_down`: which ports are rails, nobody knows. Where others of the kind are active, a rail that
/// is down does not lower their number below what is needed.
pub(super) fn ports_down(node: &Node<'_>, outcome: &mut Outcome) {
    for wanted in &node.class().host.ports {
        let path = ItemPath::item("fabric", &wanted.fabric);
        let Some(layer) = layer_of(wanted.kind) else { continue };
        let expected = format!("no {layer} port that is down");
        let answer = match &node.state.host.infiniband {
            Reading::Value(ports) => {
                let of_kind = |port: &&IbPort| port.link_layer.value().is_some_and(|l| l == layer);
                let down = ports.iter().filter(of_kind).filter_map(|port| {
                    let state = port.state.value().filter(|state| *state != "ACTIVE")?;
                    Some(format!("{}/{} is {state}", port.device, port.port))
                });
                let down: Vec<String> = down.collect();
                match down.is_empty() {
                    true => Answer::Holds,
                    false => node.once_settled(
                        Contrast::new(expected, down.join(", "))
                            .advise("if it is a rail, check cable, transceiver and switch port")
                            .advise(
                                "if nothing hangs on it on purpose, give `network.ports_down` the \
                                 severity \"info\" in the node policy",
                            ),
                    ),
                }
            }
            reading => Answer::unread("ports", reading, expected),
        };
        outcome.node(&path, answer);
    }
}

/// `link_layer` of the ports of a fabric.
fn layer_of(kind: FabricKind) -> Option<&'static str> {
    match kind {
        FabricKind::Infiniband => Some("InfiniBand"),
        FabricKind::Roce => Some("Ethernet"),
        FabricKind::Efa | FabricKind::Ethernet => None,
    }
}

fn judge_ports(node: &Node<'_>, wanted: &HostPorts) -> Answer {
    let Some(layer) = layer_of(wanted.kind) else { return Answer::NotHere };
    let rate = wanted.rate.map_or_else(String::new, |rate| format!(" at {} Gb/s", rate.0));
    let count = usize::try_from(wanted.count).unwrap_or(usize::MAX);
    let expected = format!("{}{rate}", counted(count, &format!("active {layer} port")));
    let ports = match &node.state.host.infiniband {
        Reading::Value(ports) => ports,
        reading => return Answer::unread("ports", reading, expected),
    };
    let (mut good, mut unread, mut bad) = (0_usize, 0_usize, Vec::new());
    for port in ports {
        match judge_port(port, layer, wanted) {
            Some(Ok(())) => good += 1,
            Some(Err(why)) => bad.push(format!("{}/{} {why}", port.device, port.port)),
            None => unread += 1,
        }
    }
    if good >= count {
        return Answer::Holds;
    }
    let mut seen = vec![counted(good, "such port")];
    seen.extend(bad);
    let contrast = Contrast::new(expected, seen.join(", "));
    if good + unread >= count {
        let seen = format!("{}, {unread} not read", contrast.seen);
        return Answer::Unread(Contrast { seen, ..contrast });
    }
    node.once_settled(contrast.advise("check cable, transceiver and switch port: `ibstat`"))
}

/// Whether a port is one of those, or what is wrong with it; none if that could not be read.
fn judge_port(port: &IbPort, layer: &str, wanted: &HostPorts) -> Option<Result<(), String>> {
    match port.link_layer.value() {
        Some(seen) if seen == layer => {}
        Some(seen) => return Some(Err(format!("is {seen}"))),
        None => return None,
    }
    match port.state.value() {
        Some(state) if state == "ACTIVE" => {}
        Some(state) => return Some(Err(format!("is {state}"))),
        None => return None,
    }
    let Some(rate) = wanted.rate else { return Some(Ok(())) };
    let seen = port.rate.value()?;
    match *seen >= rate.0 {
        true => Some(Ok(())),
        false => Some(Err(format!("runs at {seen} Gb/s"))),
    }
}

/// `network.firmware`.
pub(super) fn port_firmware(node: &Node<'_>, outcome: &mut Outcome) {
    let ports = match &node.state.host.infiniband {
        Reading::Value(ports) => ports,
        reading => {
            let expected = "one firmware for all adapters of a board";
            let answer = Answer::unless_expected(true, "adapters", reading, expected);
            return outcome.node(&node.system_path(), answer);
        }
    };
    let mut boards: BTreeMap<&str, BTreeMap<&str, BTreeSet<&str>>> = BTreeMap::new();
    for port in ports {
        let (Some(board), Some(firmware)) = (port.board.value(), port.firmware.value()) else {
            continue;
        };
        boards.entry(board).or_default().entry(firmware).or_default().insert(&port.device);
    }
    for (board, versions) in boards {
        if versions.values().map(BTreeSet::len).sum::<usize>() < 2 {
            continue;
        }
        let answer = match versions.len() {
            1 => Answer::Holds,
            _ => {
                let each = versions.iter().map(|(version, devices)| {
                    let devices: Vec<&str> = devices.iter().copied().collect();
                    format!("{version} on {}", devices.join(" "))
                });
                let seen = each.collect::<Vec<_>>().join(", ");
                let expected = format!("one firmware for all adapters of board {board}");
                let help = "bring the adapters to one version";
                Answer::Fails(Contrast::new(expected, seen).advise(help))
            }
        };
        outcome.node(&node.system_path(), answer);
    }
}
