//! Where the files of a node stand that `fleetc-validate` reads or that call it. Several targets name
//! them, and no target imports another.

/// The program.
pub const PROGRAM: &str = "/usr/bin/fleetc-validate";

/// The folder of the compiled intent: a copy of `clusters/<name>/intent`.
pub const INTENT: &str = "/etc/fleetc/intent";

/// Where the program keeps what its next run must know.
pub const STATE: &str = "/run/fleetc-validate";

/// The folder of what it has read before, which outlives a reboot.
pub const HISTORY_DIR: &str = "/var/lib/fleetc-validate";

/// What it has read before, for what must not grow.
pub const HISTORY: &str = "/var/lib/fleetc-validate/history.json";

/// `HealthCheckProgram` of a Slurm cluster.
pub const HEALTH_CHECK: &str = "/etc/fleetc/health-check.sh";

/// What a Prolog may call.
pub const PROLOG: &str = "/etc/fleetc/prolog.sh";
