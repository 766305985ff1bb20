//! What the Slurm target makes of small fleets: QOS of teams, lines by release, what changes disturb.
//!
//! Expected lines were worked out by hand from the words of the spec and Slurm's manual pages.

#![allow(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "a test fails by panicking, also in its helpers"
)]

use fleetc::{Checked, plan};
use fleetc_schema::plan::Disruption;
use fleetc_tests::{Form, check_text, compiled, with_prelude};

fn checked(fragment: &str) -> Checked {
    let checked = check_text(Form::Kdl, &with_prelude(Form::Kdl, fragment)).unwrap();
    assert!(checked.intent().is_some(), "{:#?}", checked.diagnostics);
    checked
}

/// Lines of a file of cluster `hpc` that hold a text.
fn lines(fragment: &str, file: &str, text: &str) -> Vec<String> {
    let files = compiled(&checked(fragment)).unwrap();
    let all = files.get(&format!("clusters/hpc/slurm/{file}")).cloned().unwrap_or_default();
    all.lines().filter(|line| line.contains(text)).map(str::to_owned).collect()
}

/// The cluster `hpc` with some settings more.
fn cluster(release: &str, settings: &str) -> String {
    format!(
        "cluster \"hpc\" {{ slurm \"{release}\" {{ controllers \"ctl1\"; database \"db1\"
    driver \"580.105.08\" owner=\"os\"
    {settings}
}} }}\n"
    )
}

const NVML: &str = "gres autodetect=\"nvml\"";
const BY_QOS: &str = "gres autodetect=\"nvml\"; preempt \"qos\" mode=\"requeue\"
    partition \"gpu\" { pools \"train\"; max-time \"2d\"; default-time \"4h\" }";

/// Name, `GrpTRES` and `Preempt` of each QOS with a dot: those of teams.
fn team_qos(fragment: &str) -> Vec<String> {
    let word = |line: &str, key: &str| {
        let word = line.split(' ').find_map(|word| word.strip_prefix(key));
        word.map_or("-".to_owned(), |value| value.replace("gres/gpu", "gpu"))
    };
    lines(fragment, "accounting.sh", "set_qos ")
        .iter()
        .filter_map(|line| Some((line, line.split(' ').nth(1).filter(|name| name.contains('.'))?)))
        .map(|(line, name)| format!("{name} {} {}", word(line, "GrpTRES="), word(line, "Preempt=")))
        .collect()
}

#[test]
fn a_guarantee_preempts_what_others_borrow_and_a_limit_bounds_both() {
    let teams = "team \"a\" { quota \"train\" guaranteed=8 limit=20 }
team \"b\" { quota \"train\" guaranteed=16 }\n";
    assert_eq!(
        team_qos(&(cluster("24.11", BY_QOS) + teams)),
        [
            "a.train gpu=8,gpu:h100=-1 a.train.borrow,b.train.borrow",
            "a.train.borrow gpu=12,gpu:h100=-1 -",
            "b.train gpu=16,gpu:h100=-1 a.train.borrow,b.train.borrow",
            "b.train.borrow gpu=-1,gpu:h100=-1 -",
        ]
    );
    // Nothing takes back what was borrowed: one QOS, capped at the limit, else at the guarantee.
    assert_eq!(
        team_qos(&(cluster("24.11", NVML) + teams)),
        ["a.train gpu=20,gpu:h100=-1 -", "b.train gpu=16,gpu:h100=-1 -"]
    );
}

#[test]
fn what_children_are_guaranteed_is_inside_their_parents_share() {
    let teams = "team \"a\" {
    quota \"train\" guaranteed=24 limit=30
    team \"b\" { quota \"train\" guaranteed=8 }
    team \"c\" { team \"d\" { quota \"train\" guaranteed=4 limit=6 } }
}\n";
    let spec = cluster("24.11", BY_QOS) + teams;
    let all = "a.train.borrow,d.train.borrow";
    // b states no limit, so it borrows through a: 24 + 4 + 2 is a's limit.
    assert_eq!(
        team_qos(&spec),
        [
            format!("a.train gpu=12,gpu:h100=-1 {all}"),
            "a.train.borrow gpu=4,gpu:h100=-1 -".to_owned(),
            format!("b.train gpu=8,gpu:h100=-1 {all}"),
            format!("d.train gpu=4,gpu:h100=-1 {all}"),
            "d.train.borrow gpu=2,gpu:h100=-1 -".to_owned(),
        ]
    );
    let account = |name: &str| lines(&spec, "accounting.sh", &format!("set_account {name} "));
    assert!(account("b")[0].contains("QOS=b.train,a.train.borrow,"), "{:?}", account("b"));
    // c has no quota of its own, and no tiers to choose from.
    assert!(account("c")[0].contains("QOS=normal "), "{:?}", account("c"));
    assert_eq!(lines(&spec, "accounting.sh", "add_account d "), ["add_account d c"]);
}

#[test]
fn a_slice_is_capped_by_type_and_all_of_them_together() {
    let spec = cluster("24.11", NVML)
        + "pool \"cut\" {
    cluster \"hpc\"; system \"dgx-h100\"; nodes \"cut[1-2]\"
    sharing \"mig\" { gpus \"0-3\" { slice \"1g.10gb\" count=7 }; gpus \"4-7\" { slice \"3g.40gb\" count=2 } }
}
team \"a\" { quota \"cut\" slice=\"1g.10gb\" guaranteed=28 }\n";
    assert_eq!(team_qos(&spec), ["a.cut gpu=28,gpu:1g.10gb=28,gpu:3g.40gb=0,gpu:h100=-1 -"]);
}

#[test]
fn a_tier_preempts_less_urgent_ones_that_give_way() {
    let spec = cluster("24.11", NVML)
        + "tier \"production\" priority=1000
tier \"interactive\" priority=500 { max-gpus-per-job 1; max-time \"8h\" }
tier \"batch\" priority=100 preemptible=#true\n";
    let qos = lines(&spec, "accounting.sh", "set_qos ");
    assert!(qos[0].ends_with("MaxWall=-1 Preempt=batch"), "{}", qos[0]);
    assert!(qos[1].contains("MaxTRESPerJob=gres/gpu=1 MaxWall=08:00:00 Preempt=batch"));
    assert!(!qos[2].contains("Preempt="), "{}", qos[2]);
    // Least urgent first: that is what a job has that names none.
    let account = lines(&spec, "accounting.sh", "set_account research ");
    assert!(account[0].ends_with("QOS=batch,interactive,production DefaultQOS=batch"));
}

#[test]
fn partitions_are_ranked_by_their_tiers_where_partitions_preempt() {
    let spec = cluster(
        "24.11",
        "gres autodetect=\"nvml\"; preempt \"partition\" mode=\"cancel\"
    partition \"any\" { pools \"train\"; max-time \"2d\"; default-time \"4h\" }
    partition \"low\" { pools \"train\"; max-time \"2d\"; default-time \"4h\"; tiers \"batch\" }",
    ) + "tier \"production\" priority=1000
tier \"batch\" priority=100 preemptible=#true\n";
    let conf = |text: &str| lines(&spec, "slurm.conf", text);
    assert_eq!(conf("Preempt"), ["PreemptType=preempt/partition_prio", "PreemptMode=CANCEL"]);
    assert!(conf("PartitionName=any")[0].contains(" PriorityTier=2 "));
    assert!(conf("PartitionName=low")[0].contains(" AllowQos=batch PriorityTier=1 "));
    // A cancelled job does not come back.
    assert!(conf("JobRequeue").is_empty());
}

#[test]
fn devices_are_listed_where_nothing_detects_them() {
    let spec = cluster("24.11", "gres autodetect=\"off\"")
        + "pool \"train\" {
    cluster \"hpc\"; system \"dgx-h100\"; nodes \"gpu[01-04]\"
    exception node=\"gpu02\" { missing 0 3; reason \"RMA\" }
}
system \"one\" extends=\"dgx-h100\" { gpus \"h100-sxm5-80gb\" count=1 }
pool \"ones\" { cluster \"hpc\"; system \"one\"; nodes \"one1\" }\n";
    // Devices are numbered without gaps, whichever GPU is gone.
    assert_eq!(
        lines(&spec, "gres.conf", "File"),
        [
            "NodeName=gpu[01,03-04] Name=gpu Type=h100 File=/dev/nvidia[0-7]",
            "NodeName=gpu02 Name=gpu Type=h100 File=/dev/nvidia[0-5]",
            "NodeName=one1 Name=gpu Type=h100 File=/dev/nvidia0",
        ]
    );
    assert!(lines(&spec, "gres.conf", "AutoDetect").is_empty());
}

#[test]
fn elastic_nodes_come_and_go_and_the_others_stay() {
    let spec = cluster(
        "24.11",
        "gres autodetect=\"nvml\"; power-saving resume=\"/r\" suspend=\"/s\" idle=\"10m\"",
    ) + "pool \"burst\" { cluster \"hpc\"; system \"dgx-h100\"; count 2; features \"cloud\"; weight 50 }\n";
    assert_eq!(lines(&spec, "slurm.conf", "SuspendExcNodes"), ["SuspendExcNodes=gpu[01-04]"]);
    let node = lines(&spec, "slurm.conf", "NodeName=burst-");
    assert!(node[0].starts_with("NodeName=burst-[0001-0002] "), "{}", node[0]);
    assert!(node[0].ends_with(" Features=cloud Weight=50 State=CLOUD"), "{}", node[0]);
    assert_eq!(
        lines(&spec, "gres.conf", "NodeName"),
        [
            "NodeName=gpu[01-04] AutoDetect=nvml",
            "NodeName=burst-[0001-0002] Name=gpu Type=h100 File=/dev/nvidia[0-7]",
        ]
    );
}

#[test]
fn the_backfill_window_is_as_long_as_the_longest_job() {
    let window = |times: &[&str]| {
        let partition = |(index, time): (usize, &&str)| {
            format!("partition \"p{index}\" {{ pools \"train\"; default-time \"1h\"{time} }}\n")
        };
        let partitions: String = times.iter().enumerate().map(partition).collect();
        lines(&cluster("24.11", &format!("{NVML}\n{partitions}")), "slurm.conf", "bf_window")
    };
    let line = |window, resolution| {
        format!("SchedulerParameters=bf_window={window},bf_resolution={resolution}")
    };
    assert_eq!(window(&["; max-time \"2d\"", "; max-time \"7d\""]), [line(10_080, 420)]);
    assert_eq!(window(&["; max-time \"36h\""]), [line(2_160, 120)]);
    assert_eq!(window(&["; max-time \"90d\""]), [line(43_200, 1_800)]);
    // A day is what slurmctld looks ahead by itself.
    assert!(window(&["; max-time \"4h\""]).is_empty());
    assert!(window(&["; max-time \"2d\"", ""]).is_empty());
}

#[test]
fn a_partition_shares_out_memory_and_processors_so_that_every_node_can_be_filled() {
    let spec = cluster(
        "24.11",
        "gres autodetect=\"nvml\"
    partition \"gpu\" { pools \"train\"; max-time \"2d\"; default-time \"1h\" }
    partition \"mix\" { pools \"train\" \"prep\"; max-time \"2d\"; default-time \"1h\" }",
    ) + "system \"plain\" { cpu sockets=2 cores=32 threads=64; memory \"256GiB\" }
pool \"prep\" { cluster \"hpc\"; system \"plain\"; nodes \"prep1\" }\n";
    // 224 threads and 95 % of 2 TiB for 8 GPUs.
    let gpu = lines(&spec, "slurm.conf", "PartitionName=gpu");
    assert!(gpu[0].ends_with(" DefCpuPerGPU=28 DefMemPerGPU=249036"), "{}", gpu[0]);
    // 95 % of 256 GiB for 64 threads is less than 95 % of 2 TiB for 224.
    let mix = lines(&spec, "slurm.conf", "PartitionName=mix");
    assert!(mix[0].ends_with(" DefCpuPerGPU=28 DefMemPerCPU=3891"), "{}", mix[0]);
}

#[test]
fn the_sites_lines_stand_at_the_end_and_in_files_of_their_own() {
    let spec = cluster(
        "24.11",
        "gres autodetect=\"nvml\"
    extra \"slurm.conf\" \"SlurmUser=slurm\" \"MailProg=/bin/true  \"
    extra \"accounting.sh\" \"add_qos site\"
    extra \"plugstack.conf\" \"required /usr/lib/pyxis.so\"",
    );
    let files = compiled(&checked(&spec)).unwrap();
    let conf = &files["clusters/hpc/slurm/slurm.conf"];
    let end = "\n# The site's own lines.\nSlurmUser=slurm\nMailProg=/bin/true\n";
    assert!(conf.ends_with(end), "{conf}");
    let script = &files["clusters/hpc/slurm/accounting.sh"];
    assert!(script.ends_with("\n# The site's own lines.\nadd_qos site\n"), "{script}");
    assert_eq!(files["clusters/hpc/slurm/plugstack.conf"], "required /usr/lib/pyxis.so\n");
}

#[test]
fn every_release_is_written_for_and_only_keys_that_all_have() {
    use fleetc_schema::version::SlurmRelease;
    let spec = |release: &str| {
        cluster(release, BY_QOS) + "team \"a\" { quota \"train\" guaranteed=8 limit=20 }\n"
    };
    let slurm = |release: &str| {
        let mut files = compiled(&checked(&spec(release))).unwrap();
        files.retain(|path, _| path.starts_with("clusters/hpc/slurm/"));
        files
    };
    // Nothing here came with a release, so nothing may differ between two.
    let oldest = slurm("22.05");
    assert_eq!(oldest.len(), 4, "{:?}", oldest.keys());
    for release in SlurmRelease::ALL {
        assert_eq!(slurm(release.as_str()), oldest, "{release}");
    }
}

/// What a change from one fragment to another does in cluster `hpc`, as the Slurm target says it.
fn effect(old: &str, new: &str) -> Vec<(Disruption, String)> {
    let (old, new) = (checked(old), checked(new));
    let plan = plan::plan(old.intent().unwrap(), new.intent().unwrap());
    let effects = plan.steps.iter().flat_map(|step| &step.effects);
    effects
        .filter(|effect| effect.cluster == "hpc")
        .flat_map(|effect| {
            let reasons = effect.reasons.iter().filter(|(target, _)| *target == "slurm");
            reasons.map(|(_, what)| (effect.disruption, what.clone()))
        })
        .collect()
}

#[test]
fn nodes_that_join_need_a_restart_before_23_11() {
    let pool = |nodes: &str| {
        format!("pool \"train\" {{ cluster \"hpc\"; system \"dgx-h100\"; nodes \"{nodes}\" }}\n")
    };
    let worst = |release: &str, old: &str, new: &str| {
        let spec = |nodes| cluster(release, NVML) + &pool(nodes);
        effect(&spec(old), &spec(new)).into_iter().map(|(worst, _)| worst).max()
    };
    assert_eq!(worst("23.02", "gpu[1-4]", "gpu[1-5]"), Some(Disruption::RestartDaemon));
    assert_eq!(worst("23.11", "gpu[1-4]", "gpu[1-5]"), Some(Disruption::Reload));
    assert_eq!(worst("24.11", "gpu[1-4]", "gpu[1-3]"), Some(Disruption::Drain));
}

#[test]
fn a_setting_is_read_anew_or_needs_a_restart_by_release() {
    let after = |release: &str, old: &str, new: &str| {
        let spec = |more: &str| cluster(release, &format!("{NVML}; {more}"));
        effect(&spec(old), &spec(new)).into_iter().map(|(worst, _)| worst).max()
    };
    let (qos, partition) =
        ("preempt \"qos\" mode=\"requeue\"", "preempt \"partition\" mode=\"cancel\"");
    assert_eq!(after("23.02", qos, partition), Some(Disruption::RestartDaemon));
    assert_eq!(after("24.11", qos, partition), Some(Disruption::Reload));
    // Hosts where people log in stand in no file of Slurm's.
    assert_eq!(after("22.05", "login \"l1\"", "login \"l2\""), None);
    let power = |idle| format!("power-saving resume=\"/r\" suspend=\"/s\" idle=\"{idle}\"");
    assert_eq!(after("22.05", &power("5m"), &power("9m")), Some(Disruption::Reload));
}

#[test]
fn switches_are_read_anew_if_those_of_the_cluster_change() {
    let fabric = |first: &str, second: &str| {
        format!(
            "fabric \"ib\" kind=\"infiniband\" {{
    switch \"s1\"; switch \"l[1-2]\" uplinks=\"s1\"
    attach \"l1\" nodes=\"{first}\"; attach \"l2\" nodes=\"{second},mig[01-02]\"
}}\n"
        )
    };
    let after = |release, old: &str, new: &str| {
        effect(&(cluster(release, NVML) + old), &(cluster(release, NVML) + new))
    };
    let reload = vec![(Disruption::Reload, "topology.conf: scontrol reconfigure".to_owned())];
    assert_eq!(
        after("23.02", &fabric("gpu[01-02]", "gpu[03-04]"), &fabric("gpu01", "gpu[02-04]")),
        reload
    );
    let plugin = |worst| vec![(worst, "TopologyPlugin changes".to_owned())];
    let (none, some) = ("", fabric("gpu[01-02]", "gpu[03-04]"));
    assert_eq!(after("23.02", none, &some), plugin(Disruption::RestartDaemon));
    assert_eq!(after("24.11", none, &some), plugin(Disruption::Reload));
    // Nodes of another cluster hang elsewhere: nothing happens here.
    let elsewhere = some.replace("mig[01-02]", "mig01");
    assert!(after("24.11", &some, &elsewhere).is_empty());
}

/// The lines of topology.conf under `topology "block"`, with trays of two racks and one node beside
/// them.
fn blocks(release: &str, second: &str, sizes: &str) -> Vec<String> {
    let spec = cluster(release, &format!("{NVML}; topology \"block\" {sizes}"))
        + &format!(
            "pool \"gb\" {{ cluster \"hpc\"; system \"gb200-nvl72-compute-tray\"; nodes \"gb[01-36]\" }}
system \"plain\" {{ cpu sockets=2 cores=32 threads=64; memory \"256GiB\" }}
pool \"prep\" {{ cluster \"hpc\"; system \"plain\"; nodes \"prep[1-2]\" }}
rack \"n2\" system=\"gb200-nvl72\" nodes=\"{second}\" power=\"140kW\"
rack \"n1\" system=\"gb200-nvl72\" nodes=\"gb[01-18],prep1\" power=\"140kW\"\n"
        );
    lines(&spec, "topology.conf", "=")
}

#[test]
fn blocks_are_nvlink_domains_in_the_order_of_their_racks() {
    let all = "gb[19-36]";
    let written = |line: &str| {
        ["BlockName=n2 Nodes=gb[19-36]", "BlockName=n1 Nodes=gb[01-18]", line].map(str::to_owned)
    };
    assert_eq!(blocks("24.11", all, "{ block-sizes 16 32 }"), written("BlockSizes=16,32"));
    assert_eq!(blocks("26.05", all, ""), written("BlockSizes=18"));
    // 23.11 has levels: 18 nodes, and twice as many.
    assert_eq!(blocks("23.11", all, "{ block-sizes 18 36 }"), written("BlockLevels=0,1"));
    assert_eq!(blocks("23.11", all, ""), written("BlockLevels=0"));
    // A tray is gone: every block still has room for a job of the base size.
    assert_eq!(blocks("24.11", "gb[19-35]", "")[2], "BlockSizes=17");
}

#[test]
fn racks_are_blocks_where_nothing_joins_their_nodes() {
    let spec = cluster("24.11", &format!("{NVML}; topology \"block\""))
        + "rack \"r1\" nodes=\"gpu[01-02]\"\nrack \"r2\" nodes=\"gpu[03-04],mig01\"\n";
    assert_eq!(
        lines(&spec, "topology.conf", "="),
        ["BlockName=r1 Nodes=gpu[01-02]", "BlockName=r2 Nodes=gpu[03-04]", "BlockSizes=2"]
    );
    assert_eq!(lines(&spec, "slurm.conf", "Topology"), ["TopologyPlugin=topology/block"]);
}

#[test]
fn blocks_are_read_anew_if_those_of_the_cluster_change() {
    let spec = |release: &str, plugin: &str, first: &str, second: &str| {
        cluster(release, &format!("{NVML}; topology \"{plugin}\""))
            + &format!("rack \"r1\" nodes=\"{first}\"\nrack \"r2\" nodes=\"{second}\"\n")
    };
    let even = spec("24.11", "block", "gpu[01-02]", "gpu[03-04]");
    let uneven = spec("24.11", "block", "gpu01", "gpu[02-04]");
    let reload = (Disruption::Reload, "topology.conf: scontrol reconfigure".to_owned());
    // One for each rack.
    assert_eq!(effect(&even, &uneven), [reload.clone(), reload]);
    let with_others = even.replace("gpu[03-04]", "gpu[03-04],mig01");
    assert!(effect(&even, &with_others).is_empty());
}

#[test]
fn a_node_of_gpus_has_time_to_end_unless_the_site_says_how_much() {
    let timeout =
        |extra: &str| lines(&cluster("24.11", &format!("{NVML}{extra}")), "slurm.conf", "imeout");
    assert_eq!(timeout(""), ["UnkillableStepTimeout=180"]);
    let own = "; extra \"slurm.conf\" \"unkillablesteptimeout=300\"";
    assert_eq!(timeout(own), ["unkillablesteptimeout=300"]);
    // Five times as long as a message may take, at least.
    let messages = "; extra \"slurm.conf\" \"MessageTimeout = 60\"";
    assert_eq!(timeout(messages), ["MessageTimeout = 60"]);
}

#[test]
fn a_quota_is_accounting_only_where_there_is_a_database() {
    let quota =
        |guaranteed: u32| format!("team \"a\" {{ quota \"train\" guaranteed={guaranteed} }}\n");
    let with = cluster("24.11", NVML);
    let without = with.replace("database \"db1\"", "");
    let accounting = "accounting.sh, then scontrol reconfigure".to_owned();
    let after = |cluster: &str| {
        effect(&(cluster.to_owned() + &quota(8)), &(cluster.to_owned() + &quota(9)))
    };
    assert_eq!(after(&with), [(Disruption::Reload, accounting)]);
    assert!(after(&without).is_empty());
}
