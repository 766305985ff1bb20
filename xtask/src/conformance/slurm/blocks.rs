//! Blocks: slurmctld knows those that are written, and keeps jobs within them.

use fleetc_schema::Hostlist;
use fleetc_schema::version::SlurmRelease;

use super::{Failure, Lab, conf};

impl Lab<'_> {
    /// Each block has its nodes, and a job as large as the base size, or as the largest block, is
    /// planned within one block. So are segments of the base size, where the release knows them;
    /// before 25.05 larger ones are refused.
    pub fn blocks(&self) -> Result<usize, Failure> {
        let lines = conf::read(self.text("topology.conf"));
        let mut blocks: Vec<(&str, Hostlist)> = Vec::new();
        for line in lines.iter().filter(|line| line.lead() == "BlockName") {
            let name = line.get("BlockName").unwrap_or_default();
            blocks.push((name, line.get("Nodes").unwrap_or_default().parse()?));
        }
        if blocks.is_empty() {
            return Ok(0);
        }
        let known = conf::read(&self.must("scontrol", &["show", "topology"])?);
        for (name, nodes) in &blocks {
            let line = known.iter().find(|line| line.get("BlockName") == Some(name));
            let seen = line.and_then(|line| line.get("Nodes")).unwrap_or_default();
            if seen.parse::<Hostlist>()? != *nodes {
                return Err(format!("block {name} of {nodes} is {seen} to slurmctld").into());
            }
        }
        let mut passed = blocks.len();
        let sizes = lines.iter().find_map(|line| line.get("BlockSizes"));
        let base: u64 = match sizes.and_then(|sizes| sizes.split(',').next()) {
            Some(base) => base.parse()?,
            None => blocks.iter().map(|(_, nodes)| nodes.len()).min().unwrap_or_default(),
        };
        let slurm = conf::read(self.text("slurm.conf"));
        let all = blocks.iter().fold(Hostlist::default(), |all, (_, nodes)| all.union(nodes));
        for line in slurm.iter().filter(|line| line.lead() == "PartitionName") {
            let partition = line.get("PartitionName").unwrap_or_default();
            let nodes: Hostlist = line.get("Nodes").unwrap_or_default().parse()?;
            if nodes.intersection(&all).is_empty() {
                passed += self.without_blocks(partition, &nodes)?;
                continue;
            }
            let here = blocks.iter().map(|(_, block)| block.intersection(&nodes).len()).max();
            let largest = here.unwrap_or_default();
            if largest < base {
                continue;
            }
            // The nodes that come first would do for either, were there no blocks.
            for size in [base, largest] {
                let said = self.planned(partition, size, &[])?;
                if !blocks.iter().any(|(_, block)| said.difference(block).is_empty()) {
                    return Err(
                        format!("{size} nodes are {said}, which is no part of a block").into()
                    );
                }
                passed += 1;
            }
            if self.place.release < SlurmRelease::V24_05 {
                continue;
            }
            let segment = |size: u64| format!("--segment={size}");
            let two = base.saturating_mul(2);
            if nodes.len() >= two && blocks.len() > 1 {
                let said = self.planned(partition, two, &[segment(base)])?;
                let part = |block: &Hostlist| said.intersection(block).len() % base == 0;
                if !blocks.iter().all(|(_, block)| part(block)) {
                    return Err(format!("two segments of {base} nodes are {said}").into());
                }
                passed += 1;
            }
            if self.place.release >= SlurmRelease::V25_05 {
                continue;
            }
            match self.plan(partition, base + 1, &[segment(base + 1)])? {
                (true, said) => {
                    return Err(format!("a segment above the base size is admitted: {said}").into());
                }
                (false, _) => passed += 1,
            }
        }
        Ok(passed)
    }

    /// Nodes in no block are handed out where a job may have no others.
    fn without_blocks(&self, partition: &str, nodes: &Hostlist) -> Result<usize, Failure> {
        let said = self.planned(partition, nodes.len(), &[])?;
        match said == *nodes {
            true => Ok(1),
            false => Err(format!("{nodes} of partition {partition} are {said} to a job").into()),
        }
    }

    /// The nodes that slurmctld would give a job.
    fn planned(&self, partition: &str, count: u64, more: &[String]) -> Result<Hostlist, Failure> {
        let (done, said) = self.plan(partition, count, more)?;
        let nodes = said.split_once(" on nodes ").and_then(|(_, rest)| rest.split(' ').next());
        match nodes.filter(|_| done) {
            Some(nodes) => Ok(nodes.parse()?),
            None => Err(format!("{count} nodes of partition {partition}: {said}").into()),
        }
    }

    fn plan(
        &self,
        partition: &str,
        count: u64,
        more: &[String],
    ) -> Result<(bool, String), Failure> {
        let mut args = vec![format!("-p{partition}"), format!("-N{count}")];
        if let Some(all) = self.qos_of_partition(partition) {
            let mut teams = self.intent.teams.values().map(|team| &team.account);
            let qos = |account: &String| {
                self.qos_of_account(account).into_iter().find(|qos| all.contains(qos))
            };
            let found = teams.find_map(|account| Some((account, qos(account)?)));
            let (account, qos) = found.ok_or("nobody may use a partition of blocks")?;
            args.extend([format!("-A{account}"), format!("--qos={qos}")]);
        }
        args.extend_from_slice(more);
        self.admits(&args)
    }
}
