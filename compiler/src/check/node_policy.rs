//! Policies against hardware.

use fleetc_schema::ItemPath;
use fleetc_schema::catalog::{Catalog, Gpu};
use fleetc_schema::diag::{Diagnostic, rules};
use fleetc_schema::intent::NodePolicy;
use fleetc_schema::name::PolicyName;

use crate::lower::Lowered;

/// `node-policy/impossible`: a policy asks for what the hardware of one of its pools cannot do.
pub fn impossible(lowered: &Lowered, found: &mut Vec<Diagnostic>) {
    let Ok(catalog) = Catalog::embedded() else { return };
    let mut judged = Vec::new();
    for class in lowered.intent.classes.values() {
        let (Some((name, policy)), Some(model)) = (&class.node.policy, &class.node.gpu) else {
            continue;
        };
        // One finding for a policy and a GPU product, however many classes they have in common.
        if judged.contains(&(name, &model.key)) {
            continue;
        }
        judged.push((name, &model.key));
        if let Some(gpu) = catalog.gpus.get(&model.key) {
            judge(name, policy, gpu, &class.node.paths.system, found);
        }
    }
}

fn judge(
    name: &PolicyName,
    policy: &NodePolicy,
    gpu: &Gpu,
    system: &ItemPath,
    found: &mut Vec<Diagnostic>,
) {
    let path = ItemPath::item("node-policy", name);
    let key = &gpu.key;
    let mut report = |place: ItemPath, title: String, label: String, help: String| {
        let finding = Diagnostic::new(&rules::NODE_POLICY_IMPOSSIBLE, title)
            .at(place, label)
            .at(system, format!("has {key} GPUs"));
        found.push(finding.help(help));
    };
    if let (Some(limit), Some(range)) = (policy.power_limit, gpu.power_limit_w.value)
        && !(range.min..=range.max).contains(&limit.0)
    {
        report(
            path.child("power-limit"),
            format!("a power limit of {limit} is outside what {key} takes"),
            format!("NVML takes {} to {} W", range.min, range.max),
            format!("write a limit between {}W and {}W", range.min, range.max),
        );
    }
    if let (Some(links), Some(most)) = (policy.nvlinks, gpu.nvlink.links)
        && links > most
    {
        report(
            path.child("nvlink").child("active"),
            format!("{links} active NVLinks on {key}, which has {most}"),
            "more than there are".to_owned(),
            match most {
                0 => "remove `nvlink`, or give these pools a policy of their own".to_owned(),
                links => format!("write `nvlink active={links}`"),
            },
        );
    }
    if let Some(pcie) = gpu.pcie.value {
        let asked = [
            ("gen", policy.pcie_gen, pcie.generation, "generation"),
            ("width", policy.pcie_width, pcie.width, "width"),
        ];
        for (word, wanted, most, what) in asked {
            if let Some(wanted) = wanted.filter(|wanted| *wanted > most) {
                report(
                    path.child("pcie").child(word),
                    format!("PCIe {what} {wanted} on {key}, which has {most}"),
                    "above what the device can do".to_owned(),
                    format!("write `{word}={most}`, or give these pools a policy of their own"),
                );
            }
        }
    }
    if policy.ecc == Some(true) && !gpu.ecc {
        report(
            path.child("ecc"),
            format!("ECC on {key}, which has none"),
            "cannot be on".to_owned(),
            "remove `ecc`, or give these pools a policy of their own".to_owned(),
        );
    }
}
