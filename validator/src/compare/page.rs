//! `docs/checks.md`, made from the table.

use std::fmt::Write;

use super::table::{CHECKS, row};
use super::{GRACE, Level};

const INTRODUCTION: &str = "\
# Checks of a node

`fleetc-validate check` compares what a node is with what its class says. This page is made from the
table of checks: `cargo xtask generate`.

Every reading is a value, *not applicable*, or *unknown*. Only a value can fail a check. A check that
blocks and has no value leaves the node undecided (exit code 2), unless the table says that there is
nothing to judge: then it does not count. A check is not asked at all without an expectation: from the
spec, or one that holds for any hardware. What a GPU says of its own best is never one.

A node is turned away for what flaps, or what tools were seen to disagree about, only if a fresh process
reads the same a second time.

What starts late is judged once the grace time after boot is over: until then, and without an uptime,
it is undecided.

| severity | a check that fails | a check without a reading |
|---|---|---|
| block | the node does not conform: exit code 1 | undecided: exit code 2 |
| warn | is told; the node conforms | is counted |
| info | is noted | is counted |

A policy can say otherwise: `node-policy \"all\" { check \"pcie.alike\" severity=\"info\" }`.

| action | |
|---|---|
| none | nothing |
| reset | end what runs on the GPU, and reset it |
| reboot | drain the node, and reboot it |
| replace | hardware is a case for the vendor |
| reconfigure | set what the spec says, or correct the spec |
| look | what is wrong is not certain: the finding says where to look |
";

/// The page.
pub fn page() -> String {
    let mut page = INTRODUCTION.to_owned();
    let grace = GRACE.0;
    // Writing to a string cannot fail.
    let _ = writeln!(page, "\nThe grace time is {grace} s unless said.");
    let mut family = "";
    for check in CHECKS {
        let name = check.as_str();
        let own = name.split_once('.').map_or(name, |(family, _)| family);
        if own != family {
            family = own;
            let _ = writeln!(
                page,
                "\n## {family}\n\n| check | a good node | reading | severity | expected not applicable | action |\n\
                 |---|---|---|---|---|---|"
            );
        }
        let row = row(*check);
        let level: Level = row.level;
        let absent = if row.absent.is_empty() { "never" } else { row.absent };
        let (what, action) = (check.what(), row.action.as_str());
        let twice = if row.is_read_twice { "; twice before it blocks" } else { "" };
        let reads = format!("{}{twice}", row.reads);
        let _ = writeln!(page, "| `{name}` | {what} | {reads} | {level} | {absent} | {action} |");
    }
    page
}
