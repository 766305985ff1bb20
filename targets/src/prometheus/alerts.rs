//! The standard alerts: what each asks of the metrics, and what it tells the person on call.
//!
//! Traps that the expressions avoid: a lost GPU takes its series along, so only a comparison with what
//! is expected finds it; `count(x == 1)` has no row where nothing matches, so links that are all down
//! are found by a sum of booleans; values of a whole GPU repeat on the series of its GPU instances, so
//! they are taken as a maximum by GPU; the XID gauge keeps the last code for ever, so XIDs come from
//! the exporter's count over a window.

use fleetc_schema::intent::{AlertClass, StandardAlert};

use super::metrics::Metric;
use super::site::{Absent, Site};

/// Series of the exporter's own health.
pub const UP: &str = "up{job=\"dcgm-exporter\"}";

/// What an alert asks and says.
pub struct Definition {
    pub expr: String,
    pub texts: Texts,
}

/// What an alert tells people: templates of Prometheus.
#[derive(Clone)]
pub struct Texts {
    pub summary: String,
    pub description: String,
    pub action: String,
}

/// A maximum by GPU, over the series of its GPU instances.
pub fn by_gpu(series: &str) -> String {
    format!("max by (node, class, gpu, UUID) ({series})")
}

/// What is known of nodes by class, joined to a result: pool, and team if there is one.
pub fn of_class(expr: &str) -> String {
    format!("({expr}) * on (class) group_left (pool, team) fleetc:class_info")
}

fn undrained(expr: &str) -> String {
    format!("({expr}) unless on (node) fleetc:node_drained")
}

/// The team whose namespace a pod runs in, where it is known.
fn owned(site: &Site<'_>, series: &str) -> String {
    match site.is_kubernetes() {
        true => format!(
            "({series} * on (namespace) group_left (team) fleetc:namespace_team \
             or {series} unless on (namespace) fleetc:namespace_team)"
        ),
        false => series.to_owned(),
    }
}

/// Labels of a workload: what the exporter knows of it.
pub fn workload_labels(site: &Site<'_>) -> &'static str {
    if site.is_kubernetes() { "namespace, pod" } else { "hpc_job" }
}

/// A series by workload. The exporter's `namespace` and `pod` come as `exported_…`, since a target has
/// those labels itself.
pub fn by_workload(site: &Site<'_>, series: &str) -> String {
    match site.is_kubernetes() {
        true => format!(
            "label_replace(label_replace({series}, \"namespace\", \"$1\", \"exported_namespace\", \"(.*)\"), \
             \"pod\", \"$1\", \"exported_pod\", \"(.*)\")"
        ),
        false => series.to_owned(),
    }
}

/// The class whose XIDs an alert tells of.
pub fn xid_class(alert: StandardAlert) -> Option<AlertClass> {
    match alert {
        StandardAlert::GpuXidHardware => Some(AlertClass::Hardware),
        StandardAlert::GpuXidFabric => Some(AlertClass::Fabric),
        StandardAlert::GpuXidDriver => Some(AlertClass::Driver),
        StandardAlert::GpuXidApplication => Some(AlertClass::Application),
        StandardAlert::GpuXidConfig => Some(AlertClass::Config),
        StandardAlert::GpuXidFacility => Some(AlertClass::Facility),
        _ => None,
    }
}

/// What an alert is in a cluster.
///
/// # Errors
/// The cluster cannot have it.
pub fn definition(site: &Site<'_>, alert: StandardAlert) -> Result<Definition, Absent> {
    site.subject(alert)?;
    let (expr, texts) = (expr(site, alert)?, texts(site, alert));
    Ok(Definition { expr, texts })
}

fn expr(site: &Site<'_>, alert: StandardAlert) -> Result<String, Absent> {
    use StandardAlert as A;
    let flag = |metric, test: &str| {
        let name = site.name(metric)?;
        Ok(of_class(&format!("{} {test}", by_gpu(name))))
    };
    let throttled = |reasons: &str, window: &str| {
        site.name(Metric::ClocksEventReasons)?;
        let series = format!("fleetc:gpu_throttle{{reason=~\"{reasons}\"}}");
        Ok(of_class(&format!("avg_over_time({series}[{window}]) > 0.2")))
    };
    match alert {
        A::GpusMissing => Ok(undrained(
            "fleetc:node_gpus_seen < on (class) group_left (pool, team) fleetc:class_gpus_expected",
        )),
        A::GpuNodesSilent => Ok("(fleetc:class_nodes_expected \
             - on (class) group_left () (fleetc:class_nodes_scraped or on (class) 0 * fleetc:class_nodes_expected) \
             - on (class) group_left () (fleetc:class_nodes_drained or on (class) 0 * fleetc:class_nodes_expected)) > 0"
            .to_owned()),
        A::GpuExporterDown => Ok(undrained(&format!(
            "max by (node, class) ({UP} == 0) * on (class) group_left (pool, team) \
             fleetc:class_info{{elastic=\"no\"}}"
        ))),
        A::MigLayoutDrift => {
            let unexpected = of_class("fleetc:node_mig_instances_unexpected");
            Ok(undrained(&match site.profiles().is_empty() {
                true => unexpected,
                false => format!(
                    "fleetc:node_mig_instances_seen != on (class, GPU_I_PROFILE) \
                     group_left (pool, team) fleetc:class_mig_instances_expected or {unexpected}"
                ),
            }))
        }
        A::GpuXidApplication => Ok(format!(
            "{} * on (xid) group_left (xid_name, severity, action) fleetc:xid_info{{route=\"application\"}}",
            owned(site, "fleetc:gpu_xid")
        )),
        A::GpuXidHardware
        | A::GpuXidFabric
        | A::GpuXidDriver
        | A::GpuXidConfig
        | A::GpuXidFacility => {
            let class = alert.kind().class;
            Ok(format!(
                "max by (node, class, pool, team, gpu, UUID, xid) (fleetc:gpu_xid) * on (xid) \
                 group_left (xid_name, severity, action) fleetc:xid_info{{route=\"{class}\"}}"
            ))
        }
        A::GpuXidUnknown => Ok(
            "max by (node, class, pool, team, gpu, UUID, xid) (fleetc:gpu_xid) \
             unless on (xid) fleetc:xid_info"
                .to_owned(),
        ),
        A::GpuRecoveryActionRequired => flag(Metric::RecoveryAction, "> 0"),
        A::GpuDoubleBitEcc => flag(Metric::EccDbe, "> 0"),
        A::GpuSramThresholdExceeded => flag(Metric::SramThreshold, "> 0"),
        A::GpuRowRemapFailure => flag(Metric::RemapFailure, "> 0"),
        A::GpuRowRemapPending => flag(Metric::RemapPending, "> 0"),
        A::GpuRowRemapBanksExhausted => flag(Metric::RemapBanksNone, "> 0"),
        A::GpuMemoryUnrepairable => flag(Metric::MemoryUnrepairable, "> 0"),
        A::GpuEccOff => {
            let name = site.name(Metric::EccMode)?;
            Ok(format!(
                "({} == 0) * on (class) group_left (pool, team) fleetc:class_ecc_expected",
                by_gpu(name)
            ))
        }
        A::GpuThermalThrottle => throttled("hw_thermal|sw_thermal", "10m"),
        A::GpuHwSlowdown => throttled("hw_slowdown|hw_power_brake", "5m"),
        A::GpuPowerLimitDrift => {
            let name = site.name(Metric::PowerLimit)?;
            Ok(undrained(&format!(
                "{0} != on (class) group_left (pool, team) fleetc:class_power_limit_watts_expected \
                 and on (node, gpu, UUID) abs({0} - on (class) group_left () fleetc:class_power_limit_watts_expected) > 1",
                by_gpu(name)
            )))
        }
        A::GpuDriverDrift => {
            let (temperature, label) =
                (site.name(Metric::GpuTemp)?, site.name(Metric::DriverVersion)?);
            let seen = format!(
                "count by (node, class, {label}) (max by (node, class, UUID, {label}) \
                 ({temperature}{{{label}!=\"\"}}))"
            );
            Ok(undrained(&of_class(&format!(
                "{seen} unless on (class, {label}) fleetc:class_driver_expected"
            ))))
        }
        A::NvlinkDown => {
            let name = site.name(Metric::NvlinkState)?;
            Ok(undrained(&format!(
                "sum by (node, class, gpu) ({name} >= bool 1) < on (class) group_left (pool, team) \
                 fleetc:class_nvlinks_expected"
            )))
        }
        A::NvlinkRecoveryErrors => {
            let increase = |metric| -> Result<String, Absent> {
                Ok(format!("{} > 0", by_gpu(&format!("increase({}[1h])", site.name(metric)?))))
            };
            let (up_to_4, from_5) =
                (increase(Metric::NvlinkRecovery)?, increase(Metric::NvlinkRecoveryFailed)?);
            Ok(of_class(&format!("{up_to_4} or {from_5}")))
        }
        A::FabricManagerFailed => flag(Metric::FabricManager, "== 4"),
        A::FabricHealthDegraded => flag(Metric::FabricHealth, ">= 2"),
        A::PcieLinkDegraded => {
            let (now, most) = (site.name(Metric::PcieWidth)?, site.name(Metric::PcieMaxWidth)?);
            Ok(of_class(&format!("{} < {}", by_gpu(now), by_gpu(most))))
        }
        A::GpuProfilingLost => {
            let name = site.name(Metric::GrEngineActive)?;
            Ok(undrained(&of_class(&format!(
                "(fleetc:node_gpus_seen > 0) unless on (node) count by (node) ({name})"
            ))))
        }
        A::GpuAllocatedButIdle => {
            let below = site.below(alert).map(|below| below.to_string()).unwrap_or_default();
            Ok(format!("{} < {below}", owned(site, "fleetc:workload_gpu_activity")))
        }
    }
}

/// What people are told.
fn texts(site: &Site<'_>, alert: StandardAlert) -> Texts {
    use StandardAlert as A;
    let gpu = "GPU {{ $labels.gpu }} of {{ $labels.node }}";
    let node = "{{ $labels.node }}";
    let of_pool = "Node {{ $labels.node }}, pool {{ $labels.pool }}, GPU {{ $labels.UUID }}.";
    let workload = match site.is_kubernetes() {
        true => "pod {{ $labels.namespace }}/{{ $labels.pod }}",
        false => "job {{ $labels.hpc_job }}",
    };
    let xid = "XID {{ $labels.xid }} {{ $labels.xid_name }}";
    let first_step = "NVIDIA's first step is in the label action.";
    let says = |summary: String, description: String, action: &str| Texts {
        summary,
        description,
        action: action.to_owned(),
    };
    match alert {
        A::GpusMissing => says(
            format!("{node} shows {{{{ $value }}}} GPUs, fewer than class {{{{ $labels.class }}}} has"),
            "Pool {{ $labels.pool }}. Exceptions of the spec are counted in: \
             fleetc:class_gpus_expected is what the node should show."
                .to_owned(),
            "drain the node, look for XID 79 in its kernel log, then run fleetc-validate check on it",
        ),
        A::GpuNodesSilent => says(
            "class {{ $labels.class }}: nodes that nothing scrapes: {{ $value }}".to_owned(),
            "Pool {{ $labels.pool }}. Nodes that are drained or may come and go are not counted."
                .to_owned(),
            "find the nodes that are not ready, then those without an exporter, then the scrape configuration",
        ),
        A::GpuExporterDown => says(
            format!("the exporter of {node} does not answer"),
            "Pool {{ $labels.pool }}. Nothing is known of the GPUs of this node until it does.".to_owned(),
            "see whether the node is up; if it is, restart dcgm-exporter and read its log",
        ),
        A::MigLayoutDrift => says(
            format!(
                "{node} has {{{{ $value }}}} × {{{{ $labels.GPU_I_PROFILE }}}}, which is not what class \
                 {{{{ $labels.class }}}} has"
            ),
            "Pool {{ $labels.pool }}. fleetc:class_mig_instances_expected says how many there should be; \
             none stands for a profile that is not of the layout."
                .to_owned(),
            "run fleetc-validate check on the node; when it is empty, apply its entry of mig-parted.yaml",
        ),
        A::GpuXidHardware => says(
            format!("{xid} on {gpu}"),
            format!("{of_pool} {first_step}"),
            "drain the node, do what the label action says, open a ticket with UUID and serial if it comes back",
        ),
        A::GpuXidFabric => says(
            format!("{xid} on {gpu}"),
            format!("{of_pool} {first_step} The peer or the switch may be the cause."),
            "compare with the peer GPU and the SXids of the switch, then do what the label action says",
        ),
        A::GpuXidDriver => says(
            format!("{xid} on {gpu}"),
            format!("{of_pool} {first_step}"),
            "reset the GPU when its jobs are done; if it comes back, look for a fixed driver",
        ),
        A::GpuXidApplication => says(
            format!("{xid} in {workload}, {gpu}"),
            format!("{of_pool} The program did this; the GPU is well unless other programs do it there too."),
            "read the log of the program; if different programs fail on this GPU, run dcgmi diag on it",
        ),
        A::GpuXidConfig => says(
            format!("{xid} on {gpu}"),
            format!("{of_pool} {first_step}"),
            "compare ECC, vGPU and confidential-computing settings with the node policy",
        ),
        A::GpuXidFacility => says(
            format!("{xid} on {gpu}"),
            format!("{of_pool} Power or cooling held the GPU back."),
            "look at power supply and coolant of the rack",
        ),
        A::GpuXidUnknown => says(
            format!("XID {{{{ $labels.xid }}}} on {gpu}, which is not in the table"),
            format!("{of_pool} Taken for broken hardware until somebody has read what it is."),
            "look the code up in NVIDIA's XID catalog; update fleetc",
        ),
        A::GpuRecoveryActionRequired => says(
            format!("the driver asks for recovery of {gpu}"),
            format!(
                "{of_pool} Action {{{{ $value }}}}: 1 reset the GPU, 2 reboot, 3 drain P2P, 4 drain and reset, \
                 5 recover the IMEX domain."
            ),
            "drain the node, then do what the number says",
        ),
        A::GpuDoubleBitEcc => says(
            format!("{gpu} had {{{{ $value }}}} uncorrectable memory errors"),
            format!("{of_pool} The count stays until the GPU is reset."),
            "drain the node and reset the GPU; look at remapped rows after it",
        ),
        A::GpuSramThresholdExceeded => says(
            format!("{gpu} had more SRAM errors than NVIDIA takes"),
            of_pool.to_owned(),
            "drain the node, run NVIDIA's field diagnostics, replace the GPU if they say so",
        ),
        A::GpuRowRemapFailure => says(
            format!("{gpu} could not remap a row of memory"),
            of_pool.to_owned(),
            "drain the node and replace the GPU",
        ),
        A::GpuRowRemapPending => says(
            format!("{gpu} has a row of memory to remap"),
            format!("{of_pool} It is remapped at the next reset; until then the row may fail again."),
            "reset the GPU when its jobs are done",
        ),
        A::GpuRowRemapBanksExhausted => says(
            format!("{{{{ $value }}}} banks of {gpu} have no spare row left"),
            format!("{of_pool} The next error there cannot be remapped."),
            "plan to replace the GPU",
        ),
        A::GpuMemoryUnrepairable => says(
            format!("memory of {gpu} cannot be repaired"),
            of_pool.to_owned(),
            "drain the node and replace the GPU",
        ),
        A::GpuEccOff => says(
            format!("ECC of {gpu} is off"),
            format!("{of_pool} The node policy asks for it."),
            "drain the node, run nvidia-smi -e 1, reboot",
        ),
        A::GpuThermalThrottle => says(
            format!("{gpu} slows down since it is hot"),
            format!("{of_pool} Share of samples: {{{{ $value }}}} ({{{{ $labels.reason }}}}). Jobs get slower without an error."),
            "look at airflow or coolant, fans, and the neighbours in the rack",
        ),
        A::GpuHwSlowdown => says(
            format!("{gpu} is slowed down by its board or power supply"),
            format!("{of_pool} Share of samples: {{{{ $value }}}} ({{{{ $labels.reason }}}})."),
            "hw_power_brake: look at the power supplies; hw_slowdown: look at power and temperature of the board",
        ),
        A::GpuPowerLimitDrift => says(
            format!("the power limit of {gpu} is {{{{ $value }}}} W"),
            format!("{of_pool} The node policy has another: fleetc:class_power_limit_watts_expected."),
            "see whether persistence mode is on, set the limit with nvidia-smi -pl",
        ),
        A::GpuDriverDrift => {
            let label = site.name(Metric::DriverVersion).unwrap_or("");
            says(
                format!("{node} runs driver {{{{ $labels.{label} }}}}"),
                "Pool {{ $labels.pool }}. fleetc:class_driver_expected has the version of the spec.".to_owned(),
                "if no driver is being rolled out, drain the node and install the driver of the spec",
            )
        }
        A::NvlinkDown => says(
            format!("{{{{ $value }}}} NVLinks of {gpu} are up, fewer than there are"),
            "Pool {{ $labels.pool }}. fleetc:class_nvlinks_expected says how many there should be.".to_owned(),
            "drain the node, read nvidia-smi nvlink -s and the fabric manager's log, reset the GPUs",
        ),
        A::NvlinkRecoveryErrors => says(
            format!("NVLinks of {gpu} had to recover"),
            format!("{of_pool} Within the last hour."),
            "look at the same link of the peer; if it goes on, drain the node and reseat or replace",
        ),
        A::FabricManagerFailed => says(
            format!("the fabric manager failed for {gpu}"),
            of_pool.to_owned(),
            "compare the version of nvidia-fabricmanager with the driver's, read its log, restart it",
        ),
        A::FabricHealthDegraded => says(
            format!("the NVLink fabric of {gpu} is not healthy"),
            format!("{of_pool} Summary {{{{ $value }}}}: 2 unhealthy, 3 limited capacity."),
            "read nvidia-smi -q -d FABRIC and the fabric manager's log",
        ),
        A::PcieLinkDegraded => says(
            format!("{gpu} runs with {{{{ $value }}}} PCIe lanes, fewer than it has"),
            of_pool.to_owned(),
            "reseat the GPU, its riser or its retimer",
        ),
        A::GpuProfilingLost => says(
            format!("nothing tells how busy the GPUs of {node} are"),
            "Pool {{ $labels.pool }}. Idle GPUs are not seen meanwhile; a profiler may hold the counters."
                .to_owned(),
            "if nobody profiles there, run dcgmi profile --resume or restart dcgm-exporter",
        ),
        A::GpuAllocatedButIdle => says(
            format!("{workload} holds GPUs of {node} and does not use them"),
            "Pool {{ $labels.pool }}. The busiest GPU or instance was active {{ $value | humanizePercentage }} \
             of the time."
                .to_owned(),
            "ask the owner to end it or to ask for less",
        ),
    }
}
