//! NVML's structs, from nvml.h (API 13), with names of ours. Their layout is C's.

use std::ffi::{c_char, c_longlong, c_uint, c_ulonglong};

use crate::Handle;

#[repr(C)]
#[derive(Clone, Copy)]
pub struct PciInfo {
    pub bus_id_legacy: [c_char; 16],
    pub domain: c_uint,
    pub bus: c_uint,
    pub device: c_uint,
    pub device_id: c_uint,
    pub subsystem_id: c_uint,
    pub bus_id: [c_char; 32],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ExcludedInfo {
    pub pci: PciInfo,
    pub uuid: [c_char; 80],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct MemoryV1 {
    pub total: c_ulonglong,
    pub free: c_ulonglong,
    pub used: c_ulonglong,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct MemoryV2 {
    pub version: c_uint,
    pub total: c_ulonglong,
    pub reserved: c_ulonglong,
    pub free: c_ulonglong,
    pub used: c_ulonglong,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Platform {
    pub version: c_uint,
    pub ib_guid: [u8; 16],
    pub chassis_serial: [u8; 16],
    pub slot: u8,
    pub tray: u8,
    pub host: u8,
    pub peer_type: u8,
    pub module: u8,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ProfileV1 {
    pub id: c_uint,
    pub p2p: c_uint,
    pub slices: c_uint,
    pub instances: c_uint,
    pub multiprocessors: c_uint,
    pub copy_engines: c_uint,
    pub decoders: c_uint,
    pub encoders: c_uint,
    pub jpegs: c_uint,
    pub ofas: c_uint,
    pub memory: c_ulonglong,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ProfileV2 {
    pub version: c_uint,
    pub id: c_uint,
    pub p2p: c_uint,
    pub slices: c_uint,
    pub instances: c_uint,
    pub multiprocessors: c_uint,
    pub copy_engines: c_uint,
    pub decoders: c_uint,
    pub encoders: c_uint,
    pub jpegs: c_uint,
    pub ofas: c_uint,
    pub memory: c_ulonglong,
    pub name: [c_char; 96],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Placement {
    pub start: c_uint,
    pub size: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct GpuInstanceInfo {
    pub device: Handle,
    pub id: c_uint,
    pub profile_id: c_uint,
    pub placement: Placement,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ComputeProfile {
    pub id: c_uint,
    pub slices: c_uint,
    pub instances: c_uint,
    pub rest: [c_uint; 6],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct ComputeInstanceInfo {
    pub device: Handle,
    pub gpu_instance: Handle,
    pub id: c_uint,
    pub profile_id: c_uint,
    pub placement: Placement,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Attributes {
    pub rest: [c_uint; 6],
    pub gpu_instance_slices: c_uint,
    pub compute_instance_slices: c_uint,
    pub memory: c_ulonglong,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct FabricV1 {
    pub cluster_uuid: [u8; 16],
    pub status: c_uint,
    pub clique: c_uint,
    pub state: u8,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct FabricV2 {
    pub version: c_uint,
    pub cluster_uuid: [u8; 16],
    pub status: c_uint,
    pub clique: c_uint,
    pub state: u8,
    pub mask: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct FabricV3 {
    pub version: c_uint,
    pub cluster_uuid: [u8; 16],
    pub status: c_uint,
    pub clique: c_uint,
    pub state: u8,
    pub mask: c_uint,
    pub summary: u8,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Versioned {
    pub version: c_uint,
    pub value: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Repair {
    pub version: c_uint,
    pub channel: c_uint,
    pub tpc: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Sram {
    pub version: c_uint,
    pub counts: [c_ulonglong; 11],
    pub exceeded: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct FieldValue {
    pub field: c_uint,
    pub scope: c_uint,
    pub timestamp: c_longlong,
    pub latency: c_longlong,
    pub kind: c_uint,
    pub code: c_uint,
    pub value: c_ulonglong,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Process {
    pub pid: c_uint,
    pub memory: c_ulonglong,
    pub gpu_instance: c_uint,
    pub compute_instance: c_uint,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Confidential {
    pub environment: c_uint,
    pub feature: c_uint,
    pub dev_tools: c_uint,
}
