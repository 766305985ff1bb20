//! Teams with their quotas, and workloads: both name a pool, a part of it and what it hands out.

use fleetc_schema::diag::{Diagnostic, Span, rules};
use fleetc_schema::intent::{
    Checkpoint, Contact, Gang, HostDemand, Intent, Model, Parallel, Quota, Replicas, Resource, Slo,
    Team, Workload,
};
use fleetc_schema::mig::MigProfile;
use fleetc_schema::name::{ClusterName, NamespaceName, PoolName, TeamName, WorkloadName};
use indexmap::IndexMap;

use super::names::{Names, quoted};
use crate::language::{At, Cx, Reference, kinds, listing};

/// Lowers teams. `intent` has pools and classes already.
pub fn lower(
    spec: &kinds::Spec,
    names: &Names,
    intent: &Intent,
    cx: &mut Cx,
) -> IndexMap<TeamName, Team> {
    let mut teams = IndexMap::new();
    let mut seen = IndexMap::new();
    // Depth first, so that a parent stands before its children.
    let mut open: Vec<(Option<TeamName>, &kinds::Team)> =
        spec.teams.iter().rev().map(|team| (None, team)).collect();
    while let Some((parent, item)) = open.pop() {
        let Some(name) = &item.arg else { continue };
        if let Some(first) = seen.insert(name.value.clone(), item.span) {
            let title = format!("team `{}` is defined twice", name.value);
            let finding = Diagnostic::new(&rules::SPEC_DUPLICATE, title)
                .at(item.span, "defined again here")
                .at(first, "first defined here");
            cx.report(finding.help("rename one of the two: a team's name is its own in the fleet"));
            continue;
        }
        open.extend(item.teams.iter().rev().map(|child| (Some(name.value.clone()), child)));
        let mut quotas = Vec::new();
        for quota in &item.quotas {
            match lower_quota(quota, names, intent, cx) {
                Some(quota) => quotas.push(quota),
                None => cx.poison(&quota.path),
            }
        }
        let own = || NamespaceName::new(name.value.as_str()).ok();
        let namespace = item.namespace.as_ref().map(|n| n.value.clone()).or_else(own);
        let Some(namespace) = namespace else { continue };
        let account = item.account.as_ref().map(|account| account.value.clone());
        let contact = item.contact.as_ref().map(|contact| Contact {
            slack: contact.slack.as_ref().map(|slack| slack.value.clone()),
            email: contact.email.as_ref().map(|email| email.value.clone()),
        });
        let team = Team {
            parent,
            namespace,
            account: account.unwrap_or_else(|| name.value.to_string()),
            contact,
            weight: item.weight.as_ref().map(|weight| weight.value.0),
            quotas,
        };
        teams.insert(name.value.clone(), team);
    }
    teams
}

fn lower_quota(item: &kinds::Quota, names: &Names, intent: &Intent, cx: &mut Cx) -> Option<Quota> {
    let reference = item.arg.as_ref()?;
    let place =
        Place { what: "quota", pool: reference, cluster: item.cluster.as_ref(), span: item.span };
    let (pool, cluster) = place.resolve(names, intent, cx)?;
    let capacity = intent.capacity(&pool, &cluster);
    let resource = match &item.slice {
        Some(slice) => slice_of(slice, &pool, &capacity, reference.span, cx)?,
        None => match capacity.keys().collect::<Vec<_>>().as_slice() {
            [only] => (*only).clone(),
            [] => return None,
            several => {
                untyped(item, &pool, several, cx);
                return None;
            }
        },
    };
    let guaranteed = item.guaranteed.as_ref()?.value.0;
    if let Some(limit) = item.limit.as_ref().filter(|limit| limit.value.0 < guaranteed) {
        let title = format!("the limit {} is below the guarantee {guaranteed}", limit.value.0);
        let finding = Diagnostic::new(&rules::QUOTA_LIMIT_BELOW_GUARANTEE, title)
            .at(limit.span, format!("{} at most", limit.value.0));
        let finding = match &item.guaranteed {
            Some(guarantee) => finding.at(guarantee.span, format!("{guaranteed} always")),
            None => finding,
        };
        cx.report(
            finding.help(format!("write {guaranteed} or more, or leave it out for what is idle")),
        );
        return None;
    }
    Some(Quota {
        pool,
        cluster,
        resource,
        guaranteed,
        limit: item.limit.as_ref().map(|limit| limit.value.0),
        path: item.path.clone(),
    })
}

fn untyped(item: &kinds::Quota, pool: &PoolName, several: &[&Resource], cx: &mut Cx) {
    let title = "the quota does not say which of the pool's resources it counts";
    let names = quoted(several.iter());
    let finding = Diagnostic::new(&rules::QUOTA_UNTYPED, title)
        .at(item.span, "of which?")
        .note(format!("pool `{pool}` hands out {names}"));
    let first = several.iter().find_map(|resource| match resource {
        Resource::Slice(profile) => Some(profile.to_string()),
        Resource::Gpu | Resource::Shared => None,
    });
    let example = first.unwrap_or_default();
    cx.report(finding.help(format!("add `slice=\"{example}\"`, one quota for each")));
}

/// A pool and perhaps a cluster, as a quota or workload names them.
struct Place<'a> {
    what: &'static str,
    pool: &'a At<Reference>,
    cluster: Option<&'a At<Reference>>,
    span: Span,
}

impl Place<'_> {
    /// The pool and the cluster that owns it, or the part that is meant.
    fn resolve(
        &self,
        names: &Names,
        intent: &Intent,
        cx: &mut Cx,
    ) -> Option<(PoolName, ClusterName)> {
        let pool: Option<PoolName> = names.pools.resolve(self.pool, cx);
        let cluster = match self.cluster {
            Some(reference) => Some(names.clusters.resolve::<ClusterName>(reference, cx)?),
            None => None,
        };
        let pool = pool?;
        // A pool that could not be lowered is reported; nothing more can be said here.
        let parts = &intent.pools.get(&pool)?.parts;
        match (cluster, self.cluster, parts.keys().collect::<Vec<_>>().as_slice()) {
            (None, _, [only]) => Some((pool, (*only).clone())),
            (Some(cluster), _, owners) if owners.contains(&&cluster) => Some((pool, cluster)),
            (Some(cluster), Some(reference), owners) => {
                let title = format!("cluster `{cluster}` owns no node of pool `{pool}`");
                let finding =
                    Diagnostic::new(&rules::NAME_UNKNOWN, title).at(reference.span, "not an owner");
                cx.report(finding.help(format!("its owners are {}", quoted(owners.iter()))));
                None
            }
            (_, _, owners) => {
                let title =
                    format!("the {} does not say which part of pool `{pool}` it means", self.what);
                let finding = Diagnostic::new(&rules::SPEC_MISSING, title)
                    .at(self.span, "`cluster` is missing in here")
                    .note(format!("the pool is split among {}", quoted(owners.iter())));
                let example = owners.first().map(ToString::to_string).unwrap_or_default();
                cx.report(finding.help(match self.what {
                    "quota" => format!("add `cluster=\"{example}\"`"),
                    _ => format!("add `cluster \"{example}\"`"),
                }));
                None
            }
        }
    }
}

/// The resource of a slice that a quota or workload names.
fn slice_of(
    slice: &At<MigProfile>,
    pool: &PoolName,
    capacity: &IndexMap<Resource, u64>,
    pool_span: Span,
    cx: &mut Cx,
) -> Option<Resource> {
    let resource = Resource::Slice(slice.value.clone());
    if capacity.contains_key(&resource) {
        return Some(resource);
    }
    if capacity.is_empty() {
        return None;
    }
    let slices: Vec<String> = capacity
        .keys()
        .filter(|r| matches!(r, Resource::Slice(_)))
        .map(ToString::to_string)
        .collect();
    let title = format!("pool `{pool}` has no slice `{}`", slice.value);
    let finding = Diagnostic::new(&rules::NAME_UNKNOWN, title)
        .at(slice.span, "not cut in this pool")
        .at(pool_span, "this pool");
    cx.report(match slices.is_empty() {
        true => finding.help("remove it: the pool hands out no slices"),
        false => finding.help(format!("it has {}", listing(slices.iter().map(String::as_str)))),
    });
    None
}

/// Lowers workloads. `intent` has pools and classes already.
pub fn workloads(
    spec: &kinds::Spec,
    names: &Names,
    intent: &Intent,
    cx: &mut Cx,
) -> IndexMap<WorkloadName, Workload> {
    let mut workloads = IndexMap::new();
    for item in &spec.workloads {
        match lower_workload(item, names, intent, cx) {
            Some((name, workload)) => {
                workloads.insert(name, workload);
            }
            None => cx.poison(&item.path),
        }
    }
    workloads
}

fn lower_workload(
    item: &kinds::Workload,
    names: &Names,
    intent: &Intent,
    cx: &mut Cx,
) -> Option<(WorkloadName, Workload)> {
    let team = item.team.as_ref().and_then(|team| names.teams.resolve(team, cx));
    let replicas = replicas(item, cx);
    let pool_ref = item.pool.as_ref()?;
    let place =
        Place { what: "workload", pool: pool_ref, cluster: item.cluster.as_ref(), span: item.span };
    let (pool, cluster) = place.resolve(names, intent, cx)?;
    let slice = match &item.slice {
        Some(slice) => {
            let capacity = intent.capacity(&pool, &cluster);
            slice_of(slice, &pool, &capacity, pool_ref.span, cx)?;
            Some(slice.value.clone())
        }
        None => None,
    };
    let gpus = item.gpus.as_ref();
    let parallel = gpus.and_then(|gpus| gpus.parallel.as_ref()).map(|parallel| {
        let degree =
            |d: &Option<At<crate::language::Positive>>| d.as_ref().map_or(1, |d| d.value.0);
        Parallel {
            tensor: degree(&parallel.tensor),
            pipeline: degree(&parallel.pipeline),
            context: degree(&parallel.context),
            data: degree(&parallel.data),
            expert: degree(&parallel.expert),
        }
    });
    let tier = match &item.tier {
        Some(tier) => Some(names.tiers.resolve(tier, cx)?),
        None => None,
    };
    let network = match &item.network {
        Some(network) => Some(names.fabrics.resolve(network, cx)?),
        None => None,
    };
    let model = match &item.model {
        Some(model) => Some(lower_model(model)?),
        None => None,
    };
    let checkpoint = match &item.checkpoint {
        Some(checkpoint) => Some(lower_checkpoint(checkpoint)?),
        None => None,
    };
    let workload = Workload {
        team: team?,
        pool,
        cluster,
        tier,
        kind: item.kind_.as_ref()?.value,
        slice,
        gpus: match gpus {
            Some(gpus) => gpus.arg.as_ref()?.value.0,
            None => 1,
        },
        parallel,
        replicas: replicas?,
        memory: item.memory.as_ref().map(|memory| memory.value),
        model,
        host: item.host.as_ref().map(|host| HostDemand {
            cpu: host.cpu.as_ref().map(|cpu| cpu.value.0),
            memory: host.memory.as_ref().map(|memory| memory.value),
            shm: host.shm.as_ref().map(|shm| shm.value),
        }),
        data_rate: match &item.data {
            Some(data) => Some(data.rate.as_ref()?.value),
            None => None,
        },
        slo: item.slo.as_ref().map(|slo| Slo {
            p99: slo.p99.as_ref().map(|p99| p99.value),
            tokens_per_second: slo.tokens_per_second.as_ref().map(|tokens| tokens.value.0),
        }),
        gang: item.gang.as_ref().map(|gang| Gang {
            contiguous: gang.contiguous.as_ref().is_some_and(|flag| flag.value),
        }),
        network,
        checkpoint,
        isolation: item.isolation.as_ref().map(|isolation| isolation.value),
    };
    Some((item.arg.as_ref()?.value.clone(), workload))
}

fn lower_model(item: &kinds::Model) -> Option<Model> {
    let number = |n: &Option<At<crate::language::Positive>>| n.as_ref().map(|n| n.value.0);
    Some(Model {
        params: item.params.as_ref()?.value,
        active_params: item.active_params.as_ref().map(|params| params.value),
        dtype: item.dtype.as_ref()?.value,
        cache_dtype: item.cache_dtype.as_ref().map(|dtype| dtype.value),
        layers: number(&item.layers),
        kv_heads: number(&item.kv_heads),
        head_dim: number(&item.head_dim),
        context: number(&item.context),
        concurrency: number(&item.concurrency),
    })
}

fn lower_checkpoint(item: &kinds::Checkpoint) -> Option<Checkpoint> {
    Some(Checkpoint {
        every: item.every.as_ref()?.value,
        takes: item.takes.as_ref().map(|takes| takes.value),
        sharded: item.sharded.as_ref().is_some_and(|flag| flag.value),
        tested: item.tested.as_ref().map(|date| date.value),
        on_notice: item.on_notice.as_ref().is_some_and(|flag| flag.value),
    })
}

fn replicas(item: &kinds::Workload, cx: &mut Cx) -> Option<Replicas> {
    let Some(replicas) = &item.replicas else { return Some(Replicas { min: 1, max: 1 }) };
    match (&replicas.arg, &replicas.min, &replicas.max) {
        (Some(count), None, None) => Some(Replicas { min: count.value.0, max: count.value.0 }),
        (None, Some(min), max) => {
            let max_count = max.as_ref().map_or(min.value.0, |max| max.value.0);
            if let Some(max) = max.as_ref().filter(|_| max_count < min.value.0) {
                let title = format!("at most {max_count} is less than at least {}", min.value.0);
                let finding = Diagnostic::new(&rules::SPEC_OUT_OF_RANGE, title)
                    .at(max.span, "below the least")
                    .at(min.span, "the least");
                cx.report(finding.help("swap the two"));
                return None;
            }
            Some(Replicas { min: min.value.0, max: max_count })
        }
        (Some(count), Some(other), _) | (Some(count), None, Some(other)) => {
            let title = "`replicas` is one number, or `min` and `max`, not both";
            let finding = Diagnostic::new(&rules::SPEC_DUPLICATE, title)
                .at(other.span, "a second number")
                .at(count.span, "the first number");
            cx.report(finding.help("keep one of the two"));
            None
        }
        (None, None, _) => {
            let unread = cx.poisoned.iter().any(|p| p.as_str().starts_with(replicas.path.as_str()));
            if !unread {
                let finding = Diagnostic::new(&rules::SPEC_MISSING, "`replicas` states no number");
                let finding = finding.at(replicas.span, "how many?");
                cx.report(finding.help("write `replicas 4`, or `replicas min=2 max=8`"));
            }
            None
        }
    }
}
