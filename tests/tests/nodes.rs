//! Recorded nodes against the classes of the example fleets: what the validator must say of each.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::string_slice,
    clippy::unwrap_used,
    reason = "a test fails by panicking, also in its helpers"
)]

use std::collections::{BTreeMap, BTreeSet};

use fleetc_tests::{folder, repository};
use fleetc_validate::compare::{CHECKS, Options, compare_with};
use fleetc_validate::intent::{self, NodeIntent};
use fleetc_validate::report::{Severity, Verdict};
use fleetc_validate::state::{GpuState, NodeState, NvLink};
use serde_json::{Map, Value, json};

/// One recorded node.
struct Case {
    name: String,
    base: String,
    set: Map<String, Value>,
    remove: Vec<String>,
    add: Map<String, Value>,
    earlier: Map<String, Value>,
    expected: BTreeMap<Severity, BTreeSet<String>>,
    because: String,
}

fn strings(value: Option<&Value>) -> Vec<String> {
    let list = value.and_then(Value::as_array).into_iter().flatten();
    list.map(|item| item.as_str().unwrap().to_owned()).collect()
}

fn object(value: Option<&Value>) -> Map<String, Value> {
    value.map_or_else(Map::new, |value| value.as_object().unwrap().clone())
}

fn yaml(text: &str) -> Value {
    serde_yaml::from_str(text).unwrap()
}

fn cases() -> Vec<Case> {
    let known = [
        "case",
        "seen",
        "base",
        "set",
        "remove",
        "add",
        "earlier",
        "blocks",
        "warns",
        "undecided",
        "because",
    ];
    let files = folder(&repository().join("tests/nodes")).unwrap();
    let lists = files.into_iter().filter(|(name, _)| name.ends_with(".yaml"));
    let mut cases = Vec::new();
    for (file, text) in lists.filter(|(name, _)| name.as_str() != "bases.yaml") {
        for case in yaml(&text).as_array().unwrap() {
            let name = format!("{file}: {}", case["case"].as_str().unwrap());
            for key in case.as_object().unwrap().keys() {
                assert!(known.contains(&key.as_str()), "{name}: what is `{key}`?");
            }
            let set_of = |key: &str| strings(case.get(key)).into_iter().collect::<BTreeSet<_>>();
            cases.push(Case {
                base: case["base"].as_str().unwrap().to_owned(),
                set: object(case.get("set")),
                remove: strings(case.get("remove")),
                add: object(case.get("add")),
                earlier: object(case.get("earlier")),
                expected: BTreeMap::from([
                    (Severity::Blocking, set_of("blocks")),
                    (Severity::Warning, set_of("warns")),
                    (Severity::Undecided, set_of("undecided")),
                ]),
                because: case["because"].as_str().unwrap().to_owned(),
                name,
            });
        }
    }
    cases
}

/// A base with all that it takes of others.
fn base(bases: &Value, name: &str) -> Map<String, Value> {
    let own = bases[name].as_object().unwrap_or_else(|| panic!("no base `{name}`"));
    let mut all = match own.get("like") {
        Some(like) => base(bases, like.as_str().unwrap()),
        None => Map::new(),
    };
    for (key, value) in own {
        match (all.get_mut(key), value) {
            (Some(Value::Object(before)), Value::Object(now))
                if key == "each" || key == "state" =>
            {
                before.extend(now.clone());
            }
            _ => {
                all.insert(key.clone(), value.clone());
            }
        }
    }
    all
}

/// Numbers of `2-4`.
fn range(text: &str) -> std::ops::RangeInclusive<usize> {
    let (first, last) = text.split_once('-').unwrap_or((text, text));
    first.parse().unwrap()..=last.parse().unwrap()
}

/// True for `{"value": …}`, `{"unknown": …}` or `{"not_applicable": …}`.
fn is_reading(json: &Value) -> bool {
    let keys = ["value", "unknown", "not_applicable"];
    json.as_object().is_some_and(|fields| {
        fields.len() == 1 && fields.keys().all(|key| keys.contains(&key.as_str()))
    })
}

/// Does something to all that a path means; readings on the way are looked into.
fn at(json: &mut Value, path: &str, change: &mut dyn FnMut(&mut Value)) {
    let (first, rest) = path.split_once('/').unwrap_or((path, ""));
    let json = match is_reading(json) && !path.is_empty() {
        true => json.get_mut("value").unwrap_or_else(|| panic!("nothing is read at `{path}`")),
        false => json,
    };
    match json {
        json if path.is_empty() => change(json),
        Value::Array(items) => {
            let range = if first == "*" { 0..=items.len() - 1 } else { range(first) };
            items[range].iter_mut().for_each(|item| at(item, rest, change));
        }
        Value::Object(fields) => {
            let field = fields.get_mut(first).unwrap_or_else(|| panic!("no `{first}` in {path}"));
            at(field, rest, change);
        }
        _ => panic!("`{path}` leads nowhere"),
    }
}

/// Sets what a path means. A value stands for a reading that has it.
fn set(json: &mut Value, path: &str, value: &Value) {
    at(json, path, &mut |target| {
        *target = match is_reading(target) && !is_reading(value) {
            true => json!({ "value": value }),
            false => value.clone(),
        };
    });
}

/// The healthy state of a base.
fn state_of(base: &Map<String, Value>) -> Value {
    let addresses = base["at"].as_array().unwrap().iter().map(|bus| {
        // A domain of its own stands before the bus.
        let bus = bus.as_str().unwrap();
        let (domain, bus) = bus.split_once(':').unwrap_or(("0", bus));
        format!("{domain:0>8}:{bus}:00.0")
    });
    let addresses: Vec<String> = addresses.collect();
    let device_id = &base["device_id"];
    let mut state = serde_json::to_value(NodeState::default()).unwrap();
    let (mut gpus, mut nodes) = (Vec::new(), Vec::new());
    for (index, address) in (0_u32..).zip(&addresses) {
        let gpu = GpuState::new(address.parse().unwrap(), index);
        let mut gpu = serde_json::to_value(gpu).unwrap();
        let links = base["nvlinks"].as_u64().unwrap();
        let links = (0..u32::try_from(links).unwrap()).map(|link| {
            let mut link = serde_json::to_value(NvLink::new(link)).unwrap();
            set(&mut link, "active", &json!(true));
            set(&mut link, "remote", &json!("switch"));
            link
        });
        set(&mut gpu, "nvlinks", &links.collect());
        set(&mut gpu, "device_id", device_id);
        set(&mut gpu, "identity/minor", &json!(index));
        set(&mut gpu, "identity/uuid", &json!(format!("GPU-{address}")));
        for (path, value) in base["each"].as_object().unwrap() {
            set(&mut gpu, path, value);
        }
        gpus.push(gpu);
        let path = format!("/dev/nvidia{index}");
        nodes.push(json!({ "path": path, "major": 195, "minor": index, "mode": "0666" }));
    }
    if !gpus.is_empty() {
        for (path, minor) in [("/dev/nvidia-uvm", 0), ("/dev/nvidiactl", 255)] {
            nodes.push(json!({ "path": path, "major": 195, "minor": minor, "mode": "0666" }));
        }
    }
    let caps = cut(base, &mut gpus);
    let pci = addresses.iter().map(|address| {
        // Buses of the second socket have the higher numbers.
        let numa = u8::from(address.as_bytes()[9] >= b'8');
        json!({
            "link": { "numa_node": { "value": numa } },
            "bus_id": address, "device_id": device_id,
            "answers": { "value": true }, "kernel_driver": { "value": "nvidia" },
        })
    });
    set(&mut state, "pci_gpus", &pci.collect());
    set(&mut state, "driver_state/gpu_count", &json!(gpus.len()));
    set(&mut state, "gpus", &json!(gpus));
    set(&mut state, "peers", &peers(&base["peers"], &addresses));
    set(&mut state, "host/device_nodes", &json!(nodes));
    match caps.is_empty() {
        true => set(&mut state, "host/mig_caps", &json!({ "not_applicable": "no MIG" })),
        false => set(&mut state, "host/mig_caps", &json!(caps)),
    }
    let ports = 0..base["ports"].as_u64().unwrap();
    let ports = ports.map(|port| {
        json!({
            "device": format!("mlx5_{port}"), "port": 1, "state": { "value": "ACTIVE" },
            "physical_state": { "value": "LinkUp" }, "rate_gbit": { "value": 400 },
            "link_layer": { "value": "InfiniBand" }, "firmware": { "value": "28.43.2026" },
            "board": { "value": "MT_0000000838" },
        })
    });
    set(&mut state, "host/infiniband", &ports.collect());
    for (path, value) in base["state"].as_object().unwrap() {
        set(&mut state, path, value);
    }
    state
}

/// Cuts GPUs as a base says; gives the capabilities of what comes of it.
fn cut(base: &Map<String, Value>, gpus: &mut [Value]) -> Vec<Value> {
    let mut caps = Vec::new();
    for layout in base.get("mig").and_then(Value::as_array).into_iter().flatten() {
        for index in range(layout["gpus"].as_str().unwrap()) {
            let (mut instances, mut devices) = (Vec::new(), Vec::new());
            for start in layout["starts"].as_array().unwrap() {
                let id = 7 + start.as_u64().unwrap();
                let whole = json!({ "start": 0, "size": layout["slices"] });
                instances.push(json!({
                    "id": id, "profile_id": layout["id"],
                    "placement": { "start": start, "size": layout["size"] },
                    "compute_instances": { "value": [{ "id": 0, "profile_id": 0, "placement": whole }] },
                }));
                devices.push(json!({ "index": devices.len() }));
                let compute = json!({ "gpu": index, "gpu_instance": id, "id": 0 });
                for device in [
                    json!({ "gpu_instance": { "gpu": index, "id": id } }),
                    json!({ "compute_instance": compute }),
                ] {
                    caps.push(json!({ "device": device, "cap": caps.len() + 3, "has_node": true }));
                }
            }
            set(&mut gpus[index], "gpu_instances", &json!(instances));
            set(&mut gpus[index], "mig_devices", &json!(devices));
        }
    }
    caps
}

/// The P2P matrix: of one kind, or what a base says instead.
fn peers(said: &Value, addresses: &[String]) -> Value {
    let status = match said.as_str() {
        Some("ok") => "ok",
        Some("none") => "not_supported",
        _ => return said.clone(),
    };
    let pairs = addresses.iter().enumerate().flat_map(|(rank, a)| {
        let after = addresses.iter().skip(rank + 1);
        after.map(move |b| json!({ "a": a, "b": b, "nvlink": status }))
    });
    pairs.collect()
}

fn intent_of(base: &Map<String, Value>) -> NodeIntent {
    let golden = repository().join("tests/golden").join(base["fleet"].as_str().unwrap());
    let folder = golden.join("fleet/intent");
    intent::load(folder.as_std_path(), base["node"].as_str().unwrap()).unwrap()
}

/// What the checks say of a state, by severity.
type Found = BTreeMap<Severity, BTreeSet<String>>;

fn judge(intent: &NodeIntent, state: Value, earlier: Option<Value>) -> (Verdict, Found, String) {
    let state: NodeState = serde_json::from_value(state).unwrap();
    let earlier: Option<NodeState> = earlier.map(|state| serde_json::from_value(state).unwrap());
    let options = Options { earlier: earlier.as_ref(), ..Options::default() };
    let report = compare_with(intent, &state, &options);
    let mut found = Found::new();
    for severity in [Severity::Blocking, Severity::Warning, Severity::Undecided] {
        let of = report.findings.iter().filter(|finding| finding.severity == severity);
        found.insert(severity, of.map(|finding| finding.check.to_string()).collect());
    }
    (report.verdict, found, fleetc_validate::render::text(&report))
}

#[test]
fn every_base_conforms() {
    let text = std::fs::read_to_string(repository().join("tests/nodes/bases.yaml")).unwrap();
    let bases = yaml(&text);
    for name in bases.as_object().unwrap().keys() {
        let base = base(&bases, name);
        let (verdict, found, text) = judge(&intent_of(&base), state_of(&base), None);
        assert_eq!(verdict, Verdict::Conforms, "{name}: {text}");
        assert!(found.values().all(BTreeSet::is_empty), "{name}: {text}");
    }
}

#[test]
fn every_recorded_node_gets_its_verdict() {
    let text = std::fs::read_to_string(repository().join("tests/nodes/bases.yaml")).unwrap();
    let bases = yaml(&text);
    let cases = cases();
    assert!(cases.len() >= 60, "{} cases", cases.len());
    let mut wrong = Vec::new();
    for case in cases {
        let names = CHECKS.iter().map(|check| check.as_str()).collect::<BTreeSet<_>>();
        for check in case.expected.values().flatten() {
            assert!(names.contains(check.as_str()), "{}: no check `{check}`", case.name);
        }
        assert!(case.because.ends_with('.'), "{}: say why", case.name);
        let base = base(&bases, &case.base);
        let mut state = state_of(&base);
        let earlier = (!case.earlier.is_empty()).then(|| {
            let mut state = state.clone();
            case.earlier.iter().for_each(|(path, value)| set(&mut state, path, value));
            state
        });
        for (path, value) in &case.set {
            set(&mut state, path, value);
        }
        for (path, value) in &case.add {
            at(&mut state, path, &mut |list| {
                let list = match is_reading(list) {
                    true => &mut list["value"],
                    false => list,
                };
                list.as_array_mut().unwrap().push(value.clone());
            });
        }
        for path in &case.remove {
            let (list, which) = path.rsplit_once('/').unwrap();
            at(&mut state, list, &mut |list| {
                let list = match is_reading(list) {
                    true => &mut list["value"],
                    false => list,
                };
                drop(list.as_array_mut().unwrap().drain(range(which)));
            });
        }
        let (verdict, found, text) = judge(&intent_of(&base), state, earlier);
        let empty = |severity| case.expected[&severity].is_empty();
        let expected = match (empty(Severity::Blocking), empty(Severity::Undecided)) {
            (false, _) => Verdict::DoesNotConform,
            (true, false) => Verdict::Undecided,
            (true, true) => Verdict::Conforms,
        };
        if found != case.expected || verdict != expected {
            let because = case.because;
            wrong.push(format!("{}\n{because}\nexpected {:?}\n{text}", case.name, case.expected));
        }
    }
    assert!(wrong.is_empty(), "{} nodes:\n\n{}", wrong.len(), wrong.join("\n\n"));
}
