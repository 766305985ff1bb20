//! A `libnvidia-ml.so.1` that answers from a file.
//!
//! It behaves as nvml.h (API 13, of nvidia-nvml-dev 13.5.37) says that NVML does: what takes a
//! privileged user, what MIG mode takes away, what a struct of an unknown version is answered with. It
//! knows nothing of who reads it. Functions that it lacks are lacking as in an old driver; a test takes
//! further ones away with [`without_symbols`].
//!
//! What is set stays set: the file is written anew, so that later processes find it. Every call that
//! would set something is noted in a file beside it.
//!
//! Faults are played by name of the function: see [`node::Fault`].

// C names, and `unsafe` at the border of C: the one other place is the caller of the real library.
#![allow(
    non_snake_case,
    unsafe_code,
    missing_docs,
    clippy::missing_safety_doc,
    reason = "the functions are NVML's, with its names and its documentation"
)]

pub mod c;
pub mod node;

use std::ffi::{CStr, c_char, c_int, c_long, c_uint, c_ulong, c_ulonglong, c_void};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{PoisonError, RwLock};
use std::time::Duration;

use c::*;
use node::{ComputeInstance, Effect, Gpu, GpuInstance, Mig, Node};

/// The environment variable with the path of the state.
pub const STATE_VARIABLE: &str = "FLEETC_FAKE_NVML";

/// What follows the path of the state in that of the file with every call that would set something: name,
/// index of the GPU and value, a line each.
pub const SETTERS: &str = ".setters";

/// `nvmlReturn_t`.
type Return = c_uint;
/// Handles are opaque; here they are numbers.
pub type Handle = *mut c_void;

const SUCCESS: Return = 0;
const UNINITIALIZED: Return = 1;
const INVALID_ARGUMENT: Return = 2;
const NOT_SUPPORTED: Return = 3;
const NO_PERMISSION: Return = 4;
const NOT_FOUND: Return = 6;
const INSUFFICIENT_SIZE: Return = 7;
const CORRUPTED_INFOROM: Return = 14;
const VERSION_MISMATCH: Return = 25;
const DEPRECATED: Return = 26;
const UNKNOWN: Return = 999;

/// Takes functions out of a copy of the library: the loader does not find them any more.
///
/// The hash of a name in the symbol table stays, so the loader looks at the name itself, which is
/// another one.
///
/// # Errors
/// If a file cannot be read or written, or has no such function.
pub fn without_symbols(library: &Path, names: &[&str], copy: &Path) -> std::io::Result<()> {
    let mut bytes = std::fs::read(library)?;
    for name in names {
        let text: Vec<u8> = [b"\0", name.as_bytes(), b"\0"].concat();
        let mut found = false;
        for at in 0..bytes.len().saturating_sub(text.len()) {
            if bytes.get(at..at + text.len()) == Some(text.as_slice())
                && let Some(first) = bytes.get_mut(at + 1)
            {
                *first = b'X';
                found = true;
            }
        }
        if !found {
            return Err(std::io::Error::other(format!("no function {name}")));
        }
    }
    std::fs::write(copy, bytes)
}

/// The library that was built beside the running test.
///
/// # Errors
/// If it is not there.
pub fn library() -> std::io::Result<PathBuf> {
    let test = std::env::current_exe()?;
    let folder = test.parent().unwrap_or(Path::new("."));
    let library = folder.join("libfleetc_fake_nvml.so");
    match library.is_file() {
        true => Ok(library),
        false => Err(std::io::Error::other(format!("there is no {}", library.display()))),
    }
}

static INITIALIZED: AtomicBool = AtomicBool::new(false);

struct State {
    path: PathBuf,
    node: Node,
}

static STATE: RwLock<Option<&'static State>> = RwLock::new(None);

/// The state; none if the variable is not set or the file is wrong, which is said on stderr.
fn state() -> Option<&'static State> {
    let known = *STATE.read().unwrap_or_else(PoisonError::into_inner);
    known.or_else(load)
}

/// Reads the state. It stays in memory for good: answers may refer to it.
#[allow(clippy::disallowed_methods, reason = "a library of C has no other way to be told")]
fn load() -> Option<&'static State> {
    let path = PathBuf::from(std::env::var_os(STATE_VARIABLE)?);
    let text = std::fs::read_to_string(&path).ok()?;
    match serde_json::from_str(&text) {
        Ok(node) => {
            let state: &'static State = Box::leak(Box::new(State { path, node }));
            *STATE.write().unwrap_or_else(PoisonError::into_inner) = Some(state);
            Some(state)
        }
        Err(error) => {
            eprintln!("{}: {error}", path.display());
            None
        }
    }
}

/// Changes a GPU, for this process and every later one. The file is replaced whole.
fn change(number: usize, change: impl FnOnce(&mut Gpu)) -> Answer {
    // Another process may have changed it since it was read here.
    let State { path, node } = load().ok_or(UNKNOWN)?;
    let mut node = node.clone();
    change(node.gpus.get_mut(number).ok_or(INVALID_ARGUMENT)?);
    let text = serde_json::to_string(&node).map_err(|_| UNKNOWN)?;
    let mut new = path.clone().into_os_string();
    new.push(".new");
    let written = std::fs::write(&new, text).and_then(|()| std::fs::rename(&new, path));
    written.map_err(|_| UNKNOWN)?;
    load().map(drop).ok_or(UNKNOWN)
}

/// Notes that something was to be set, whether it may be or not: a line in a file beside the state.
fn note_setter(state: &State, call: &str, gpu: usize, value: c_uint) {
    use std::io::Write;
    let mut path = state.path.clone().into_os_string();
    path.push(SETTERS);
    if let Ok(mut file) = std::fs::OpenOptions::new().create(true).append(true).open(&path) {
        let _ = file.write_all(format!("{call} {gpu} {value}\n").as_bytes());
    }
}

/// Sets something of a GPU: it takes a privileged user. A MIG device does not support it.
fn set(
    call: &str,
    handle: Handle,
    value: c_uint,
    set: impl FnOnce(&Gpu, usize) -> Answer,
) -> Return {
    if let (Ok(state), Some(of)) = (initialized(), Of::read(handle)) {
        note_setter(state, call, of.gpu(), value);
    }
    any(call, handle, |node, gpu, of| match of {
        Of::Gpu(number) => {
            privileged(node)?;
            set(gpu, number)
        }
        Of::MigDevice(..) => Err(NOT_SUPPORTED),
        Of::GpuInstance(..) | Of::ComputeInstance(..) => Err(INVALID_ARGUMENT),
    })
}

/// What a handle is of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Of {
    Gpu(usize),
    /// GPU, GPU instance, compute instance: positions in their lists.
    MigDevice(usize, usize, usize),
    GpuInstance(usize, usize),
    ComputeInstance(usize, usize, usize),
}

impl Of {
    fn handle(self) -> Handle {
        let (kind, a, b, c) = match self {
            Self::Gpu(a) => (1, a, 0, 0),
            Self::MigDevice(a, b, c) => (2, a, b, c),
            Self::GpuInstance(a, b) => (3, a, b, 0),
            Self::ComputeInstance(a, b, c) => (4, a, b, c),
        };
        std::ptr::without_provenance_mut(kind << 24 | a << 16 | b << 8 | c)
    }

    fn read(handle: Handle) -> Option<Self> {
        let number = handle.addr();
        let (a, b, c) = (number >> 16 & 0xff, number >> 8 & 0xff, number & 0xff);
        match number >> 24 {
            1 => Some(Self::Gpu(a)),
            2 => Some(Self::MigDevice(a, b, c)),
            3 => Some(Self::GpuInstance(a, b)),
            4 => Some(Self::ComputeInstance(a, b, c)),
            _ => None,
        }
    }

    fn gpu(self) -> usize {
        let (Self::Gpu(gpu)
        | Self::MigDevice(gpu, ..)
        | Self::GpuInstance(gpu, _)
        | Self::ComputeInstance(gpu, ..)) = self;
        gpu
    }
}

type Answer = Result<(), Return>;

fn code(answer: Answer) -> Return {
    answer.err().unwrap_or(SUCCESS)
}

/// Plays what goes wrong in a call. Gives the values that the GPU has from now on.
fn play(
    state: &State,
    call: &str,
    gpu: Option<usize>,
) -> Result<Vec<(String, serde_json::Value)>, Return> {
    let mut set = Vec::new();
    for fault in state.node.faults.iter().filter(|fault| fault.call == call) {
        if fault.gpu.is_some() && fault.gpu != gpu {
            continue;
        }
        if fault.after > 0 && calls_before(state, call, gpu) < fault.after {
            continue;
        }
        match &fault.effect {
            Effect::Hang => loop {
                std::thread::sleep(Duration::from_secs(3600));
            },
            Effect::Slow(milliseconds) => {
                std::thread::sleep(Duration::from_millis(*milliseconds));
            }
            Effect::Return(code) => return Err(*code),
            Effect::Crash => std::process::abort(),
            Effect::Set(pointer, value) => set.push((pointer.clone(), value.clone())),
        }
    }
    Ok(set)
}

/// How often a call was made before, by any process: a file beside the state grows with each.
fn calls_before(state: &State, call: &str, gpu: Option<usize>) -> u64 {
    use std::io::Write;
    let gpu = gpu.map_or("node".to_owned(), |gpu| gpu.to_string());
    let mut path = state.path.clone().into_os_string();
    path.push(format!(".{call}.{gpu}"));
    let before = std::fs::metadata(&path).map_or(0, |metadata| metadata.len());
    if let Ok(mut file) = std::fs::OpenOptions::new().create(true).append(true).open(&path) {
        let _ = file.write_all(b".");
    }
    before
}

fn initialized() -> Result<&'static State, Return> {
    match (INITIALIZED.load(Ordering::SeqCst), state()) {
        (true, Some(state)) => Ok(state),
        _ => Err(UNINITIALIZED),
    }
}

/// Answers a call that is about the node.
fn node(call: &str, answer: impl FnOnce(&Node) -> Answer) -> Return {
    let answered = initialized().and_then(|state| {
        play(state, call, None)?;
        answer(&state.node)
    });
    code(answered)
}

/// Answers a call with any handle.
fn any(call: &str, handle: Handle, answer: impl FnOnce(&Node, &Gpu, Of) -> Answer) -> Return {
    let answered = initialized().and_then(|state| {
        let of = Of::read(handle).ok_or(INVALID_ARGUMENT)?;
        let gpu = state.node.gpus.get(of.gpu()).ok_or(INVALID_ARGUMENT)?;
        let set = play(state, call, Some(of.gpu()))?;
        if let Some(dead) = gpu.dead {
            return Err(dead);
        }
        if set.is_empty() {
            return answer(&state.node, gpu, of);
        }
        let mut json = serde_json::to_value(gpu).map_err(|_| UNKNOWN)?;
        for (pointer, value) in set {
            *json.pointer_mut(&pointer).ok_or(UNKNOWN)? = value;
        }
        answer(&state.node, &serde_json::from_value(json).map_err(|_| UNKNOWN)?, of)
    });
    code(answered)
}

/// Answers a call about a GPU. A MIG device does not support it.
fn gpu(call: &str, handle: Handle, answer: impl FnOnce(&Node, &Gpu) -> Answer) -> Return {
    any(call, handle, |node, gpu, of| match of {
        Of::Gpu(_) => answer(node, gpu),
        Of::MigDevice(..) => Err(NOT_SUPPORTED),
        Of::GpuInstance(..) | Of::ComputeInstance(..) => Err(INVALID_ARGUMENT),
    })
}

/// Answers a call about a MIG device.
fn mig_device(
    call: &str,
    handle: Handle,
    answer: impl FnOnce(&Gpu, &GpuInstance, &ComputeInstance) -> Answer,
) -> Return {
    any(call, handle, |_, gpu, of| match of {
        Of::MigDevice(_, instance, compute) => {
            let instance = gpu.mig.as_ref().and_then(|mig| mig.gpu_instances.get(instance));
            let instance = instance.ok_or(INVALID_ARGUMENT)?;
            let compute = instance.compute_instances.get(compute).ok_or(INVALID_ARGUMENT)?;
            answer(gpu, instance, compute)
        }
        _ => Err(NOT_SUPPORTED),
    })
}

fn put<T>(out: *mut T, value: T) -> Answer {
    if out.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: it is not null, and the caller vouches for the rest, as with every function of NVML.
    unsafe { out.write(value) };
    Ok(())
}

fn get<T: Copy>(pointer: *const T) -> Result<T, Return> {
    if pointer.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    // SAFETY: as for `put`.
    Ok(unsafe { pointer.read() })
}

fn put_text(out: *mut c_char, room: c_uint, text: &str) -> Answer {
    if out.is_null() {
        return Err(INVALID_ARGUMENT);
    }
    if text.len() + 1 > room as usize {
        return Err(INSUFFICIENT_SIZE);
    }
    // SAFETY: there is room for the text and its zero, by the caller's word.
    unsafe {
        out.copy_from_nonoverlapping(text.as_ptr().cast(), text.len());
        out.add(text.len()).write(0);
    }
    Ok(())
}

/// Processes of all instances, as far as there is room.
fn put_processes(processes: &[u32], count: *mut c_uint, out: *mut Process) -> Answer {
    let room = get(count)? as usize;
    put(count, processes.len() as c_uint)?;
    if processes.is_empty() {
        return Ok(());
    }
    if room < processes.len() {
        return Err(INSUFFICIENT_SIZE);
    }
    for (at, pid) in processes.iter().enumerate() {
        let (gpu_instance, compute_instance) = (u32::MAX, u32::MAX);
        let process = Process { pid: *pid, memory: 1 << 30, gpu_instance, compute_instance };
        // SAFETY: there is room for all of them.
        put(unsafe { out.add(at) }, process)?;
    }
    Ok(())
}

fn supported<T: Clone>(value: &Option<T>) -> Result<T, Return> {
    value.clone().ok_or(NOT_SUPPORTED)
}

/// A text in an array of C.
fn array<const N: usize>(text: &str) -> [c_char; N] {
    let mut array = [0; N];
    for (to, from) in array.iter_mut().take(N - 1).zip(text.bytes()) {
        *to = from as c_char;
    }
    array
}

/// The version that a struct bears, if it is one of those that the library knows. Each is given by its
/// number and size.
fn version_of(
    node: &Node,
    call: &str,
    version: c_uint,
    known: &[(u32, usize)],
) -> Result<u32, Return> {
    let latest = node.versions.get(call).copied().unwrap_or(u32::MAX);
    let known = known
        .iter()
        .find(|(number, size)| *number <= latest && version == (*size as c_uint | number << 24));
    known.map(|(number, _)| *number).ok_or(VERSION_MISMATCH)
}

macro_rules! exports {
    ($(fn $name:ident($($argument:ident: $kind:ty),* $(,)?) $body:block)+) => {
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($argument: $kind),*) -> Return {
                #[allow(unused, reason = "most calls are played by this name")]
                const CALL: &str = stringify!($name);
                $body
            }
        )+
    };
}

/// Functions that give one number of a GPU.
macro_rules! numbers {
    ($($name:ident: $kind:ty = $value:expr;)+) => {
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(device: Handle, out: *mut $kind) -> Return {
                let value: fn(&Gpu) -> Result<$kind, Return> = $value;
                gpu(stringify!($name), device, |_, gpu| put(out, value(gpu)?))
            }
        )+
    };
}

/// Functions that give a text of a GPU.
macro_rules! texts {
    ($($name:ident = $value:expr;)+) => {
        $(
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name(device: Handle, out: *mut c_char, room: c_uint) -> Return {
                let value: fn(&Gpu) -> Result<String, Return> = $value;
                gpu(stringify!($name), device, |_, gpu| put_text(out, room, &value(gpu)?))
            }
        )+
    };
}

fn pci_info(bus_id: &str, device_id: u32, subsystem_id: u32) -> PciInfo {
    let part = |range: std::ops::Range<usize>| {
        bus_id.get(range).and_then(|part| c_uint::from_str_radix(part, 16).ok()).unwrap_or(0)
    };
    PciInfo {
        bus_id_legacy: array(bus_id.get(4..).unwrap_or_default()),
        domain: part(0..8),
        bus: part(9..11),
        device: part(12..14),
        device_id,
        subsystem_id,
        bus_id: array(bus_id),
    }
}

exports! {
    fn nvmlInit_v2() {
        let Some(state) = state() else { return UNKNOWN };
        if let Err(code) = play(state, CALL, None) {
            return code;
        }
        if state.node.init == 0 {
            INITIALIZED.store(true, Ordering::SeqCst);
        }
        state.node.init
    }
    fn nvmlInitWithFlags(_flags: c_uint) { unsafe { nvmlInit_v2() } }
    fn nvmlShutdown() {
        match INITIALIZED.swap(false, Ordering::SeqCst) {
            true => SUCCESS,
            false => UNINITIALIZED,
        }
    }
    fn nvmlSystemGetDriverVersion(out: *mut c_char, room: c_uint) {
        node(CALL, |node| put_text(out, room, &node.driver))
    }
    // The one call that works before NVML is initialised.
    fn nvmlSystemGetNVMLVersion(out: *mut c_char, room: c_uint) {
        let Some(state) = state() else { return UNKNOWN };
        code(play(state, CALL, None).and_then(|_| put_text(out, room, &state.node.nvml)))
    }
    fn nvmlSystemGetCudaDriverVersion_v2(out: *mut c_int) {
        node(CALL, |node| put(out, node.cuda))
    }
    fn nvmlSystemGetConfComputeState(out: *mut Confidential) {
        node(CALL, |node| {
            let (feature, dev_tools) = supported(&node.confidential)?;
            put(out, Confidential { environment: 0, feature, dev_tools })
        })
    }
    fn nvmlDeviceGetCount_v2(out: *mut c_uint) {
        node(CALL, |node| put(out, node.count.unwrap_or(node.gpus.len() as c_uint)))
    }
    fn nvmlDeviceGetHandleByIndex_v2(index: c_uint, out: *mut Handle) {
        let answered = initialized().and_then(|state| {
            let number = index as usize;
            let known = state.node.count.unwrap_or(state.node.gpus.len() as c_uint);
            play(state, CALL, Some(number))?;
            let gpu = state.node.gpus.get(number).filter(|_| index < known);
            match gpu.ok_or(INVALID_ARGUMENT)?.dead {
                Some(dead) => Err(dead),
                None => put(out, Of::Gpu(number).handle()),
            }
        });
        code(answered)
    }
    fn nvmlDeviceGetHandleByPciBusId_v2(bus_id: *const c_char, out: *mut Handle) {
        if bus_id.is_null() {
            return INVALID_ARGUMENT;
        }
        // SAFETY: it is a string of C, by the caller's word.
        let asked = unsafe { CStr::from_ptr(bus_id) }.to_string_lossy().into_owned();
        let answered = initialized().and_then(|state| {
            let known = state.node.count.unwrap_or(state.node.gpus.len() as c_uint) as usize;
            let same = |gpu: &Gpu| {
                gpu.bus_id.trim_start_matches('0').eq_ignore_ascii_case(asked.trim_start_matches('0'))
            };
            let number = state.node.gpus.iter().take(known).position(same).ok_or(NOT_FOUND)?;
            play(state, CALL, Some(number))?;
            match state.node.gpus.get(number).and_then(|gpu| gpu.dead) {
                Some(dead) => Err(dead),
                None => put(out, Of::Gpu(number).handle()),
            }
        });
        code(answered)
    }
    fn nvmlGetExcludedDeviceCount(out: *mut c_uint) {
        node(CALL, |node| put(out, node.excluded.len() as c_uint))
    }
    fn nvmlGetExcludedDeviceInfoByIndex(index: c_uint, out: *mut ExcludedInfo) {
        node(CALL, |node| {
            let (bus_id, uuid) = node.excluded.get(index as usize).ok_or(INVALID_ARGUMENT)?;
            put(out, ExcludedInfo { pci: pci_info(bus_id, 0, 0), uuid: array(uuid) })
        })
    }
    fn nvmlDeviceGetPciInfo_v3(device: Handle, out: *mut PciInfo) {
        gpu(CALL, device, |_, gpu| put(out, pci_info(&gpu.bus_id, gpu.device_id, gpu.subsystem_id)))
    }
    fn nvmlDeviceGetIndex(device: Handle, out: *mut c_uint) {
        any(CALL, device, |_, _, of| match of {
            Of::Gpu(number) => put(out, number as c_uint),
            _ => Err(NOT_SUPPORTED),
        })
    }
    fn nvmlDeviceGetName(device: Handle, out: *mut c_char, room: c_uint) {
        any(CALL, device, |_, gpu, of| match of {
            Of::Gpu(_) => put_text(out, room, &gpu.name),
            Of::MigDevice(_, instance, _) => {
                let mig = gpu.mig.as_ref().ok_or(INVALID_ARGUMENT)?;
                let instance = mig.gpu_instances.get(instance).ok_or(INVALID_ARGUMENT)?;
                let profile = mig.profiles.iter().find(|p| p.id == instance.profile_id);
                let profile = profile.map_or("", |profile| profile.name.as_str());
                put_text(out, room, &format!("{} {profile}", gpu.name))
            }
            _ => Err(INVALID_ARGUMENT),
        })
    }
    fn nvmlDeviceGetUUID(device: Handle, out: *mut c_char, room: c_uint) {
        any(CALL, device, |_, gpu, of| match of {
            Of::Gpu(_) => put_text(out, room, &gpu.uuid),
            Of::MigDevice(_, instance, compute) => {
                let instance = gpu.mig.as_ref().and_then(|mig| mig.gpu_instances.get(instance));
                let compute = instance.and_then(|instance| instance.compute_instances.get(compute));
                put_text(out, room, &compute.ok_or(INVALID_ARGUMENT)?.uuid)
            }
            _ => Err(INVALID_ARGUMENT),
        })
    }
    fn nvmlDeviceGetMemoryInfo(device: Handle, out: *mut MemoryV1) {
        gpu(CALL, device, |_, gpu| {
            let (total, reserved, used) = gpu.memory;
            // What is reserved counts as used here.
            let used = used + reserved;
            put(out, MemoryV1 { total, free: total.saturating_sub(used), used })
        })
    }
    fn nvmlDeviceGetMemoryInfo_v2(device: Handle, out: *mut MemoryV2) {
        gpu(CALL, device, |node, gpu| {
            let version = get(out)?.version;
            version_of(node, CALL, version, &[(2, size_of::<MemoryV2>())])?;
            let (total, reserved, used) = gpu.memory;
            let free = total.saturating_sub(used + reserved);
            put(out, MemoryV2 { version, total, reserved, free, used })
        })
    }
    fn nvmlDeviceGetPlatformInfo(device: Handle, out: *mut Platform) {
        gpu(CALL, device, |node, gpu| {
            let version = get(out)?.version;
            version_of(node, CALL, version, &[(2, size_of::<Platform>())])?;
            let (serial, [slot, tray, host, peer_type, module]) = supported(&gpu.platform)?;
            let mut chassis_serial = [0; 16];
            for (to, from) in chassis_serial.iter_mut().zip(serial.bytes()) {
                *to = from;
            }
            let ib_guid = [0; 16];
            let (slot, tray) = (slot, tray);
            put(out, Platform { version, ib_guid, chassis_serial, slot, tray, host, peer_type, module })
        })
    }
    fn nvmlDeviceGetCudaComputeCapability(device: Handle, major: *mut c_int, minor: *mut c_int) {
        gpu(CALL, device, |_, gpu| {
            put(major, gpu.capability.0)?;
            put(minor, gpu.capability.1)
        })
    }
    fn nvmlDeviceGetMigMode(device: Handle, current: *mut c_uint, pending: *mut c_uint) {
        gpu(CALL, device, |_, gpu| {
            let mig = supported(&gpu.mig)?;
            put(current, mig.current)?;
            put(pending, mig.pending)
        })
    }
    fn nvmlDeviceGetMaxMigDeviceCount(device: Handle, out: *mut c_uint) {
        gpu(CALL, device, |_, gpu| {
            let mig = gpu.mig.as_ref().filter(|mig| mig.current != 0);
            put(out, mig.map_or(0, |mig| mig.max_devices))
        })
    }
    fn nvmlDeviceGetMigDeviceHandleByIndex(device: Handle, index: c_uint, out: *mut Handle) {
        any(CALL, device, |_, gpu, of| {
            let Of::Gpu(number) = of else { return Err(NOT_SUPPORTED) };
            let mig = on(gpu)?;
            if index >= mig.max_devices {
                return Err(INVALID_ARGUMENT);
            }
            for (at, instance) in mig.gpu_instances.iter().enumerate() {
                let here = instance.compute_instances.iter().position(|c| c.device_index == index);
                if let Some(compute) = here {
                    return put(out, Of::MigDevice(number, at, compute).handle());
                }
            }
            Err(NOT_FOUND)
        })
    }
    fn nvmlDeviceGetGpuInstanceId(device: Handle, out: *mut c_uint) {
        mig_device(CALL, device, |_, instance, _| put(out, instance.id))
    }
    fn nvmlDeviceGetComputeInstanceId(device: Handle, out: *mut c_uint) {
        mig_device(CALL, device, |_, _, compute| put(out, compute.id))
    }
    fn nvmlDeviceGetAttributes_v2(device: Handle, out: *mut Attributes) {
        mig_device(CALL, device, |gpu, instance, compute| {
            let profiles = gpu.mig.iter().flat_map(|mig| &mig.profiles);
            let profile = profiles.into_iter().find(|profile| profile.id == instance.profile_id);
            let profile = profile.ok_or(UNKNOWN)?;
            put(out, Attributes {
                rest: [0; 6],
                gpu_instance_slices: profile.slices,
                compute_instance_slices: compute.placement.1,
                memory: profile.memory,
            })
        })
    }
    fn nvmlDeviceGetGpuInstanceProfileInfo(device: Handle, index: c_uint, out: *mut ProfileV1) {
        gpu(CALL, device, |node, gpu| {
            let mig = supported(&gpu.mig)?;
            let profile = profile(node, &mig, index)?;
            let (id, p2p, slices, instances) = (profile.id, 0, profile.slices, profile.instances);
            let (multiprocessors, copy_engines, decoders) = (0, 0, 0);
            let (encoders, jpegs, ofas, memory) = (0, 0, 0, profile.memory);
            put(out, ProfileV1 {
                id, p2p, slices, instances, multiprocessors, copy_engines, decoders, encoders, jpegs,
                ofas, memory,
            })
        })
    }
    // The versioned call wants MIG mode on, where the first one does not.
    fn nvmlDeviceGetGpuInstanceProfileInfoV(device: Handle, index: c_uint, out: *mut ProfileV2) {
        gpu(CALL, device, |node, gpu| {
            let version = get(out)?.version;
            version_of(node, CALL, version, &[(2, size_of::<ProfileV2>())])
                .map_err(|_| INVALID_ARGUMENT)?;
            let mig = on(gpu)?;
            let profile = profile(node, mig, index)?;
            let (id, p2p, slices, instances) = (profile.id, 0, profile.slices, profile.instances);
            let (multiprocessors, copy_engines, decoders) = (0, 0, 0);
            let (encoders, jpegs, ofas, memory) = (0, 0, 0, profile.memory);
            put(out, ProfileV2 {
                version, id, p2p, slices, instances, multiprocessors, copy_engines, decoders,
                encoders, jpegs, ofas, memory, name: array(&profile.name),
            })
        })
    }
    fn nvmlDeviceGetGpuInstancePossiblePlacements_v2(
        device: Handle,
        profile_id: c_uint,
        out: *mut Placement,
        count: *mut c_uint,
    ) {
        gpu(CALL, device, |node, gpu| {
            let mig = supported(&gpu.mig)?;
            privileged(node)?;
            let profile = mig.profiles.iter().find(|profile| profile.id == profile_id);
            let placements = &profile.ok_or(NOT_SUPPORTED)?.placements;
            put(count, placements.len() as c_uint)?;
            if !out.is_null() {
                for (at, (start, size)) in placements.iter().enumerate() {
                    // SAFETY: the header asks for room for all of them.
                    put(unsafe { out.add(at) }, Placement { start: *start, size: *size })?;
                }
            }
            Ok(())
        })
    }
    fn nvmlDeviceGetGpuInstances(
        device: Handle,
        profile_id: c_uint,
        out: *mut Handle,
        count: *mut c_uint,
    ) {
        any(CALL, device, |node, gpu, of| {
            let Of::Gpu(number) = of else { return Err(INVALID_ARGUMENT) };
            let mig = on(gpu)?;
            privileged(node)?;
            if !mig.profiles.iter().any(|profile| profile.id == profile_id) {
                return Err(INVALID_ARGUMENT);
            }
            let mut found = 0;
            for (at, instance) in mig.gpu_instances.iter().enumerate() {
                if instance.profile_id == profile_id {
                    // SAFETY: the header asks for room for as many as the profile can have.
                    put(unsafe { out.add(found) }, Of::GpuInstance(number, at).handle())?;
                    found += 1;
                }
            }
            put(count, found as c_uint)
        })
    }
    fn nvmlGpuInstanceGetInfo(handle: Handle, out: *mut GpuInstanceInfo) {
        any(CALL, handle, |_, gpu, of| {
            let Of::GpuInstance(number, at) = of else { return Err(INVALID_ARGUMENT) };
            let instance = on(gpu)?.gpu_instances.get(at).ok_or(INVALID_ARGUMENT)?;
            let (start, size) = instance.placement;
            put(out, GpuInstanceInfo {
                device: Of::Gpu(number).handle(),
                id: instance.id,
                profile_id: instance.profile_id,
                placement: Placement { start, size },
            })
        })
    }
    fn nvmlGpuInstanceGetComputeInstanceProfileInfo(
        handle: Handle,
        index: c_uint,
        engine: c_uint,
        out: *mut ComputeProfile,
    ) {
        any(CALL, handle, |_, gpu, of| {
            let Of::GpuInstance(_, at) = of else { return Err(INVALID_ARGUMENT) };
            let mig = on(gpu)?;
            let instance = mig.gpu_instances.get(at).ok_or(INVALID_ARGUMENT)?;
            if engine != 0 {
                return Err(INVALID_ARGUMENT);
            }
            let own = mig.profiles.iter().find(|profile| profile.id == instance.profile_id);
            let own = own.map_or(0, |profile| profile.slices);
            // 1, 2, 3, 4, 7, 8, 6 slices, then revisions.
            let slices = [1, 2, 3, 4, 7, 8, 6, 1, 7].get(index as usize).ok_or(INVALID_ARGUMENT)?;
            if *slices > own || index > 4 {
                return Err(NOT_SUPPORTED);
            }
            put(out, ComputeProfile { id: index, slices: *slices, instances: own / slices, rest: [0; 6] })
        })
    }
    fn nvmlGpuInstanceGetComputeInstances(
        handle: Handle,
        profile_id: c_uint,
        out: *mut Handle,
        count: *mut c_uint,
    ) {
        any(CALL, handle, |node, gpu, of| {
            let Of::GpuInstance(number, at) = of else { return Err(INVALID_ARGUMENT) };
            let instance = on(gpu)?.gpu_instances.get(at).ok_or(INVALID_ARGUMENT)?;
            privileged(node)?;
            let mut found = 0;
            for (compute, each) in instance.compute_instances.iter().enumerate() {
                if each.profile_id == profile_id {
                    let handle = Of::ComputeInstance(number, at, compute).handle();
                    // SAFETY: the header asks for room for as many as the profile can have.
                    put(unsafe { out.add(found) }, handle)?;
                    found += 1;
                }
            }
            put(count, found as c_uint)
        })
    }
    fn nvmlComputeInstanceGetInfo_v2(handle: Handle, out: *mut ComputeInstanceInfo) {
        any(CALL, handle, |_, gpu, of| {
            let Of::ComputeInstance(number, at, compute) = of else { return Err(INVALID_ARGUMENT) };
            let instance = on(gpu)?.gpu_instances.get(at).ok_or(INVALID_ARGUMENT)?;
            let compute = instance.compute_instances.get(compute).ok_or(INVALID_ARGUMENT)?;
            let (start, size) = compute.placement;
            put(out, ComputeInstanceInfo {
                device: Of::Gpu(number).handle(),
                gpu_instance: Of::GpuInstance(number, at).handle(),
                id: compute.id,
                profile_id: compute.profile_id,
                placement: Placement { start, size },
            })
        })
    }
    fn nvmlDeviceGetEccMode(device: Handle, current: *mut c_uint, pending: *mut c_uint) {
        gpu(CALL, device, |_, gpu| {
            let (a, b) = supported(&gpu.ecc)?;
            put(current, a)?;
            put(pending, b)
        })
    }
    fn nvmlDeviceGetAddressingMode(device: Handle, out: *mut Versioned) {
        gpu(CALL, device, |node, gpu| {
            let version = get(out)?.version;
            version_of(node, CALL, version, &[(1, size_of::<Versioned>())])?;
            put(out, Versioned { version, value: supported(&gpu.addressing)? })
        })
    }
    fn nvmlDeviceGetPowerManagementLimitConstraints(
        device: Handle,
        least: *mut c_uint,
        most: *mut c_uint,
    ) {
        gpu(CALL, device, |_, gpu| {
            let [.., a, b] = supported(&gpu.power)?;
            put(least, a)?;
            put(most, b)
        })
    }
    fn nvmlDeviceGetMaxClockInfo(device: Handle, kind: c_uint, out: *mut c_uint) {
        gpu(CALL, device, |_, gpu| match kind {
            0 | 1 => put(out, gpu.max_clocks.0),
            2 => put(out, gpu.max_clocks.1),
            _ => Err(INVALID_ARGUMENT),
        })
    }
    fn nvmlDeviceGetApplicationsClock(device: Handle, kind: c_uint, out: *mut c_uint) {
        gpu(CALL, device, |_, gpu| {
            let (sm, memory) = gpu.application_clocks.ok_or(DEPRECATED)?;
            put(out, if kind == 2 { memory } else { sm })
        })
    }
    fn nvmlDeviceGetNvLinkState(device: Handle, link: c_uint, out: *mut c_uint) {
        gpu(CALL, device, |_, gpu| put(out, nvlink(gpu, link)?.active))
    }
    fn nvmlDeviceGetNvLinkVersion(device: Handle, link: c_uint, out: *mut c_uint) {
        gpu(CALL, device, |_, gpu| put(out, nvlink(gpu, link)?.version))
    }
    fn nvmlDeviceGetNvLinkRemoteDeviceType(device: Handle, link: c_uint, out: *mut c_uint) {
        gpu(CALL, device, |_, gpu| put(out, nvlink(gpu, link)?.remote))
    }
    fn nvmlDeviceGetNvLinkRemotePciInfo_v2(device: Handle, link: c_uint, out: *mut PciInfo) {
        gpu(CALL, device, |_, gpu| put(out, pci_info(&nvlink(gpu, link)?.remote_bus_id, 0, 0)))
    }
    fn nvmlDeviceGetNvLinkErrorCounter(
        device: Handle,
        link: c_uint,
        counter: c_uint,
        out: *mut u64,
    ) {
        gpu(CALL, device, |_, gpu| {
            let errors = nvlink(gpu, link)?.errors;
            put(out, *errors.get(counter as usize).ok_or(INVALID_ARGUMENT)?)
        })
    }
    fn nvmlDeviceGetP2PStatus(a: Handle, b: Handle, _capability: c_uint, out: *mut c_uint) {
        gpu(CALL, a, |node, gpu| match Of::read(b) {
            Some(Of::Gpu(other)) => {
                // GPUs in MIG mode have no peers.
                let other = node.gpus.get(other).ok_or(INVALID_ARGUMENT)?;
                if on(gpu).is_ok() || on(other).is_ok() {
                    return Err(NOT_SUPPORTED);
                }
                put(out, node.p2p)
            }
            _ => Err(INVALID_ARGUMENT),
        })
    }
    fn nvmlDeviceGetGpuFabricInfo(device: Handle, out: *mut FabricV1) {
        gpu(CALL, device, |_, gpu| {
            let fabric = supported(&gpu.fabric)?;
            put(out, FabricV1 {
                cluster_uuid: fabric.cluster_uuid,
                status: fabric.status,
                clique: fabric.clique,
                state: fabric.state,
            })
        })
    }
    fn nvmlDeviceGetGpuFabricInfoV(device: Handle, out: *mut FabricV3) {
        gpu(CALL, device, |node, gpu| {
            // Only the version may be read before it is known.
            let version = get(out.cast::<c_uint>())?;
            let known = [(2, size_of::<FabricV2>()), (3, size_of::<FabricV3>())];
            let number = version_of(node, CALL, version, &known)?;
            let fabric = supported(&gpu.fabric)?;
            let node::Fabric { cluster_uuid, status, clique, state, mask, summary } = fabric;
            match number {
                2 => put(
                    out.cast(),
                    FabricV2 { version, cluster_uuid, status, clique, state, mask },
                ),
                _ => put(
                    out,
                    FabricV3 { version, cluster_uuid, status, clique, state, mask, summary },
                ),
            }
        })
    }
    fn nvmlDeviceGetC2cModeInfoV(device: Handle, out: *mut c_uint) {
        gpu(CALL, device, |_, gpu| put(out, supported(&gpu.c2c)?))
    }
    fn nvmlDeviceGetMemoryAffinity(
        device: Handle,
        size: c_uint,
        out: *mut c_ulong,
        _scope: c_uint,
    ) {
        gpu(CALL, device, |_, gpu| {
            for at in 0..size as usize {
                // SAFETY: the caller says how many there is room for.
                put(unsafe { out.add(at) }, if at == 0 { gpu.near_nodes as c_ulong } else { 0 })?;
            }
            Ok(())
        })
    }
    fn nvmlDeviceGetRemappedRows(
        device: Handle,
        correctable: *mut c_uint,
        uncorrectable: *mut c_uint,
        pending: *mut c_uint,
        failure: *mut c_uint,
    ) {
        gpu(CALL, device, |_, gpu| {
            // Not to be had while there are GPU instances.
            let has_instances = on(gpu).is_ok_and(|mig| !mig.gpu_instances.is_empty());
            let [a, b, c, d] = supported(&gpu.remapped_rows.filter(|_| !has_instances))?;
            put(correctable, a)?;
            put(uncorrectable, b)?;
            put(pending, c)?;
            put(failure, d)
        })
    }
    fn nvmlDeviceGetRowRemapperHistogram(device: Handle, out: *mut [c_uint; 5]) {
        gpu(CALL, device, |_, gpu| put(out, supported(&gpu.row_histogram)?))
    }
    fn nvmlDeviceGetRetiredPages_v2(
        device: Handle,
        cause: c_uint,
        count: *mut c_uint,
        _addresses: *mut c_ulonglong,
        _times: *mut c_ulonglong,
    ) {
        gpu(CALL, device, |_, gpu| {
            let [single, double, _] = supported(&gpu.retired_pages)?;
            let number = match cause {
                0 => single,
                1 => double,
                _ => return Err(INVALID_ARGUMENT),
            };
            put(count, number)?;
            if number > 0 { Err(INSUFFICIENT_SIZE) } else { Ok(()) }
        })
    }
    fn nvmlDeviceGetTotalEccErrors(
        device: Handle,
        kind: c_uint,
        since: c_uint,
        out: *mut c_ulonglong,
    ) {
        gpu(CALL, device, |_, gpu| {
            let errors = supported(&gpu.ecc_errors.filter(|_| gpu.ecc.is_some_and(|ecc| ecc.0 != 0)))?;
            if kind > 1 || since > 1 {
                return Err(INVALID_ARGUMENT);
            }
            put(out, errors.get((since * 2 + kind) as usize).copied().unwrap_or(0))
        })
    }
    fn nvmlDeviceGetSramEccErrorStatus(device: Handle, out: *mut Sram) {
        gpu(CALL, device, |node, gpu| {
            let version = get(out.cast::<c_uint>())?;
            version_of(node, CALL, version, &[(1, size_of::<Sram>())])?;
            let exceeded = supported(&gpu.sram_exceeded)?;
            privileged(node)?;
            put(out, Sram { version, counts: [0; 11], exceeded })
        })
    }
    fn nvmlDeviceGetRepairStatus(device: Handle, out: *mut Repair) {
        gpu(CALL, device, |node, gpu| {
            let version = get(out.cast::<c_uint>())?;
            version_of(node, CALL, version, &[(1, size_of::<Repair>())])?;
            let (channel, tpc) = supported(&gpu.repair)?;
            put(out, Repair { version, channel, tpc })
        })
    }
    fn nvmlDeviceGetMarginTemperature(device: Handle, out: *mut Versioned) {
        gpu(CALL, device, |node, gpu| {
            let version = get(out.cast::<c_uint>())?;
            version_of(node, CALL, version, &[(1, size_of::<Versioned>())])?;
            put(out, Versioned { version, value: supported(&gpu.margin)? as c_uint })
        })
    }
    fn nvmlDeviceGetTemperature(device: Handle, sensor: c_uint, out: *mut c_uint) {
        gpu(CALL, device, |_, gpu| match sensor {
            0 => put(out, gpu.temperature),
            _ => Err(INVALID_ARGUMENT),
        })
    }
    fn nvmlDeviceGetTemperatureThreshold(device: Handle, kind: c_uint, out: *mut c_uint) {
        gpu(CALL, device, |_, gpu| match kind {
            0 => put(out, gpu.thresholds.0),
            1 => put(out, gpu.thresholds.1),
            _ => Err(NOT_SUPPORTED),
        })
    }
    fn nvmlDeviceGetFieldValues(device: Handle, count: c_int, values: *mut FieldValue) {
        gpu(CALL, device, |_, gpu| {
            if values.is_null() {
                return Err(INVALID_ARGUMENT);
            }
            for at in 0..usize::try_from(count).map_err(|_| INVALID_ARGUMENT)? {
                // SAFETY: the caller says how many there are.
                let out = unsafe { values.add(at) };
                let mut value = get(out)?;
                let found = match value.field {
                    91 if !gpu.nvlinks.is_empty() => Ok(gpu.nvlinks.len() as u64),
                    91 => Err(NOT_SUPPORTED),
                    230 => gpu.recovery_action.map(u64::from).ok_or(INVALID_ARGUMENT),
                    _ => Err(INVALID_ARGUMENT),
                };
                value.kind = 1;
                (value.value, value.code) = match found {
                    Ok(found) => (found, SUCCESS),
                    Err(code) => (0, code),
                };
                put(out, value)?;
            }
            Ok(())
        })
    }
    fn nvmlDeviceGetComputeRunningProcesses_v3(
        device: Handle,
        count: *mut c_uint,
        out: *mut Process,
    ) {
        gpu(CALL, device, |node, gpu| {
            // Of all instances together only to those who may.
            if on(gpu).is_ok() {
                privileged(node)?;
            }
            put_processes(&gpu.processes, count, out)
        })
    }
    fn nvmlDeviceGetMPSComputeRunningProcesses_v3(
        device: Handle,
        count: *mut c_uint,
        out: *mut Process,
    ) {
        gpu(CALL, device, |_, gpu| put_processes(&gpu.mps_processes, count, out))
    }
    fn nvmlDeviceSetPersistenceMode(device: Handle, mode: c_uint) {
        set(CALL, device, mode, |_, number| {
            if mode > 1 {
                return Err(INVALID_ARGUMENT);
            }
            change(number, |gpu| gpu.persistence = mode)
        })
    }
    fn nvmlDeviceSetComputeMode(device: Handle, mode: c_uint) {
        set(CALL, device, mode, |_, number| {
            // Exclusive thread went with CUDA 8.
            if mode > 3 || mode == 1 {
                return Err(INVALID_ARGUMENT);
            }
            change(number, |gpu| gpu.compute_mode = mode)
        })
    }
    fn nvmlDeviceSetPowerManagementLimit(device: Handle, limit: c_uint) {
        set(CALL, device, limit, |gpu, number| {
            let [.., least, most] = supported(&gpu.power)?;
            if limit < least || limit > most {
                return Err(INVALID_ARGUMENT);
            }
            change(number, |gpu| {
                if let Some(power) = &mut gpu.power {
                    // Nothing else limits it but what already did so below the old limit.
                    let [old, _, enforced, ..] = *power;
                    power[0] = limit;
                    power[2] = if enforced < old { enforced.min(limit) } else { limit };
                }
            })
        })
    }
    // A new mode waits for a reset.
    fn nvmlDeviceSetEccMode(device: Handle, mode: c_uint) {
        set(CALL, device, mode, |gpu, number| {
            supported(&gpu.ecc)?;
            change(number, |gpu| gpu.ecc = gpu.ecc.map(|(current, _)| (current, mode)))
        })
    }
    fn nvmlDeviceSetMigMode(device: Handle, mode: c_uint, activation: *mut Return) {
        set(CALL, device, mode, |gpu, number| {
            supported(&gpu.mig)?;
            change(number, |gpu| {
                if let Some(mig) = &mut gpu.mig {
                    (mig.current, mig.pending) = (mode, mode);
                }
            })?;
            put(activation, SUCCESS)
        })
    }
    fn nvmlDeviceValidateInforom(device: Handle) {
        gpu(CALL, device, |_, gpu| match gpu.inforom_corrupted {
            true => Err(CORRUPTED_INFOROM),
            false => Ok(()),
        })
    }
    fn nvmlDeviceGetGspFirmwareVersion(device: Handle, out: *mut c_char) {
        gpu(CALL, device, |_, gpu| put_text(out, 0x40, &supported(&gpu.gsp)?))
    }
}

/// A string of NVML's own; only a few of them.
#[unsafe(no_mangle)]
pub extern "C" fn nvmlErrorString(code: Return) -> *const c_char {
    match code {
        SUCCESS => c"Success".as_ptr(),
        NOT_SUPPORTED => c"Not Supported".as_ptr(),
        _ => c"Unknown Error".as_ptr(),
    }
}

numbers! {
    nvmlDeviceGetMinorNumber: c_uint = |gpu| Ok(gpu.minor);
    nvmlDeviceGetModuleId: c_uint = |gpu| supported(&gpu.module_id);
    nvmlDeviceGetArchitecture: c_uint = |gpu| Ok(gpu.architecture);
    nvmlDeviceGetPersistenceMode: c_uint = |gpu| Ok(gpu.persistence);
    nvmlDeviceGetComputeMode: c_uint = |gpu| Ok(gpu.compute_mode);
    nvmlDeviceGetVirtualizationMode: c_uint = |gpu| Ok(gpu.virtualization);
    nvmlDeviceGetPowerManagementLimit: c_uint = |gpu| Ok(supported(&gpu.power)?[0]);
    nvmlDeviceGetPowerManagementDefaultLimit: c_uint = |gpu| Ok(supported(&gpu.power)?[1]);
    nvmlDeviceGetEnforcedPowerLimit: c_uint = |gpu| Ok(supported(&gpu.power)?[2]);
    nvmlDeviceGetCurrPcieLinkWidth: c_uint = |gpu| Ok(gpu.pcie[0]);
    nvmlDeviceGetMaxPcieLinkWidth: c_uint = |gpu| Ok(gpu.pcie[1]);
    nvmlDeviceGetCurrPcieLinkGeneration: c_uint = |gpu| Ok(gpu.pcie[2]);
    nvmlDeviceGetMaxPcieLinkGeneration: c_uint = |gpu| Ok(gpu.pcie[3]);
    nvmlDeviceGetGpuMaxPcieLinkGeneration: c_uint = |gpu| Ok(gpu.pcie[4]);
    nvmlDeviceGetPcieReplayCounter: c_uint = |gpu| Ok(gpu.replays);
    nvmlDeviceGetRetiredPagesPendingStatus: c_uint = |gpu| Ok(supported(&gpu.retired_pages)?[2]);
    nvmlDeviceGetNumaNodeId: c_uint = |gpu| supported(&gpu.numa_node);
    nvmlDeviceGetCurrentClocksEventReasons: c_ulonglong = |gpu| Ok(gpu.event_reasons);
    nvmlDeviceGetCurrentClocksThrottleReasons: c_ulonglong = |gpu| Ok(gpu.event_reasons);
}

texts! {
    nvmlDeviceGetSerial = |gpu| supported(&gpu.serial);
    nvmlDeviceGetBoardPartNumber = |gpu| supported(&gpu.board_part_number);
    nvmlDeviceGetVbiosVersion = |gpu| Ok(gpu.vbios.clone());
    nvmlDeviceGetInforomImageVersion = |gpu| supported(&gpu.inforom);
}

/// MIG of a GPU with the mode on.
fn on(gpu: &Gpu) -> Result<&Mig, Return> {
    gpu.mig.as_ref().filter(|mig| mig.current != 0).ok_or(NOT_SUPPORTED)
}

fn privileged(node: &Node) -> Answer {
    if node.root { Ok(()) } else { Err(NO_PERMISSION) }
}

/// The profile with this enum index. Beyond the last the argument is wrong; a hole is not supported.
fn profile<'a>(node: &Node, mig: &'a Mig, index: c_uint) -> Result<&'a node::Profile, Return> {
    if index >= node.profile_count {
        return Err(INVALID_ARGUMENT);
    }
    mig.profiles.iter().find(|profile| profile.index == index).ok_or(NOT_SUPPORTED)
}

/// A link. In MIG mode, and on a GPU without, none is supported.
fn nvlink(gpu: &Gpu, link: c_uint) -> Result<&node::NvLink, Return> {
    if gpu.nvlinks.is_empty() || on(gpu).is_ok() {
        return Err(NOT_SUPPORTED);
    }
    gpu.nvlinks.get(link as usize).ok_or(INVALID_ARGUMENT)
}

/// Longs of C are as wide as the header's words on the platforms that NVML has.
const _: () = assert!(size_of::<c_long>() == 8);
