//! Which nodes a change is about: the pools and classes of two scopes, held side by side.

use fleetc_schema::Hostlist;
use fleetc_schema::intent::{Class, NodeClass};
use fleetc_schema::name::PoolName;

use crate::Scope;

/// The two sides of a change.
#[derive(Clone, Copy)]
pub struct Sides<'a> {
    /// Before.
    pub old: Option<&'a Scope<'a>>,
    /// After.
    pub new: Option<&'a Scope<'a>>,
}

impl<'a> Sides<'a> {
    /// Nodes of a pool that are here on both sides and whose class differs in `key`.
    pub fn differing<K: PartialEq>(&self, pool: &PoolName, key: fn(&NodeClass) -> K) -> Hostlist {
        let mut nodes = Hostlist::default();
        for before in classes(self.old, pool) {
            for after in classes(self.new, pool) {
                if key(&before.node) != key(&after.node) {
                    nodes = nodes.union(&before.nodes.intersection(&after.nodes));
                }
            }
        }
        nodes
    }

    /// Nodes of a pool that are here before and not after.
    pub fn leaving(&self, pool: &PoolName) -> Hostlist {
        all(self.old, pool).difference(&all(self.new, pool))
    }

    /// Nodes of a pool that are here after and not before.
    pub fn joining(&self, pool: &PoolName) -> Hostlist {
        all(self.new, pool).difference(&all(self.old, pool))
    }

    /// Nodes of a pool that are here on both sides.
    pub fn staying(&self, pool: &PoolName) -> Hostlist {
        all(self.old, pool).intersection(&all(self.new, pool))
    }

    /// Every node that is here before.
    pub fn every_old_node(&self) -> Hostlist {
        let Some(scope) = self.old else { return Hostlist::default() };
        let Some(cluster) = scope.cluster() else { return Hostlist::default() };
        let classes = scope.intent().classes_of(&cluster.name);
        classes.fold(Hostlist::default(), |nodes, class| nodes.union(&class.nodes))
    }
}

fn all(scope: Option<&Scope<'_>>, pool: &PoolName) -> Hostlist {
    classes(scope, pool).fold(Hostlist::default(), |nodes, class| nodes.union(&class.nodes))
}

fn classes<'a>(
    scope: Option<&'a Scope<'a>>,
    pool: &'a PoolName,
) -> impl Iterator<Item = &'a Class> {
    let here = scope.and_then(|scope| Some((scope.intent(), scope.cluster()?)));
    here.into_iter()
        .flat_map(|(intent, cluster)| intent.classes_of(&cluster.name))
        .filter(move |class| class.node.pool == *pool)
}
