//! What an answer is about: a GPU with its table, the driver, and how names of slices were read.
//!
//! A driver makes the names from the memory it reports, so another driver may call a profile
//! otherwise (NVIDIA/go-nvlib `pkg/nvlib/device/mig_profile.go`); the profile id stays.

use fleetc_schema::catalog::{Catalog, Gpu, MigTableRow, NameVariant};
use fleetc_schema::mig::{GiProfile, MigProfile};
use fleetc_schema::version::Version;
use fleetc_targets::write::json;
use serde::Serialize;

use super::{Answer, Document};

/// A GPU, and what was asked of it.
pub struct Subject<'a> {
    /// Where the sources stand.
    pub catalog: &'a Catalog,
    /// The GPU.
    pub gpu: &'a Gpu,
    /// Its table.
    pub row: &'a MigTableRow,
    /// The driver that is meant, if one is.
    pub driver: Option<&'a Version>,
    /// Profiles that were asked for by the name of another driver.
    pub renamed: Vec<Renamed<'a>>,
    /// Every profile that was asked for.
    pub asked: Vec<&'a GiProfile>,
}

/// A profile that was asked for by the name of another driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Renamed<'a> {
    /// The name as it was asked for.
    pub asked: MigProfile,
    /// The profile.
    pub profile: &'a GiProfile,
    /// The set of names it is from.
    pub variant: &'a NameVariant,
}

/// [`Renamed`] in JSON.
#[derive(Serialize)]
pub(super) struct JsonRenamed {
    asked: String,
    profile: String,
    profile_id: u32,
    seen_in: Vec<String>,
}

/// What a driver does not have.
#[derive(Serialize)]
pub(super) struct JsonMissing {
    /// None is MIG as a whole.
    profile: Option<String>,
    min_driver: String,
}

impl<'a> Subject<'a> {
    /// A GPU of which nothing is asked yet.
    pub fn new(
        catalog: &'a Catalog,
        gpu: &'a Gpu,
        row: &'a MigTableRow,
        driver: Option<&'a Version>,
    ) -> Self {
        Self { catalog, gpu, row, driver, renamed: Vec::new(), asked: Vec::new() }
    }

    /// The profile of this name, which may be another driver's.
    pub fn profile(&mut self, name: &MigProfile) -> Option<&'a GiProfile> {
        let profile = self.row.profile(name)?;
        let named = |variant: &&NameVariant| variant.names.get(&profile.id) == Some(name);
        let variant = self.row.name_variants.iter().find(named);
        if let (true, Some(variant)) = (profile.name != *name, variant) {
            let renamed = Renamed { asked: name.clone(), profile, variant };
            if !self.renamed.contains(&renamed) {
                self.renamed.push(renamed);
            }
        }
        if !self.asked.contains(&profile) {
            self.asked.push(profile);
        }
        Some(profile)
    }

    /// An answer, with what has to be said of names and of the driver below it.
    pub(super) fn answer(&self, mut text: String, mut document: Document<'_>) -> Answer {
        for renamed in &self.renamed {
            text.push_str(&self.rename(renamed));
        }
        document.renamed = self.renamed.iter().map(|renamed| self.json(renamed)).collect();
        if let Some(driver) = self.driver {
            text.push_str(&self.names_of(driver));
            let missing = self.missing(driver);
            for (profile, since) in &missing {
                let what = profile.map_or("MIG".to_owned(), |profile| profile.name.to_string());
                text.push_str(&format!("  driver {driver} has no {what}: it came with {since}\n"));
            }
            let asked = |(profile, _): &(Option<&GiProfile>, &Version)| {
                profile.is_none_or(|profile| self.asked.contains(&profile))
            };
            document.fits &= !missing.iter().any(asked);
            document.driver = Some(driver.to_string());
            document.missing = missing
                .iter()
                .map(|(profile, since)| JsonMissing {
                    profile: profile.map(|profile| profile.name.to_string()),
                    min_driver: since.to_string(),
                })
                .collect();
        }
        Answer { text, json: json::pretty(&document), fits: document.fits }
    }

    fn rename(&self, Renamed { asked, profile, variant }: &Renamed<'_>) -> String {
        let full = self.row.table.profiles.iter().max_by_key(|profile| profile.memory_slices);
        let totals = full.and_then(|full| Some((full, variant.names.get(&full.id)?)));
        let when = totals.map(|(here, there)| {
            format!(
                ": so call it drivers that report {} GiB in all, not {}",
                there.label_gb, here.name.label_gb
            )
        });
        let mut text = format!(
            "  {asked} is {} (profile id {}) on other drivers{}\n",
            profile.name,
            profile.id,
            when.unwrap_or_default()
        );
        text.push_str("    no source says which versions these are; the name was seen in\n");
        for source in self.documents(variant) {
            text.push_str(&format!("      {source}\n"));
        }
        text
    }

    /// Which names a driver gives.
    fn names_of(&self, driver: &Version) -> String {
        match self.row.name_variants.is_empty() {
            true => format!("  driver {driver}: on no driver were other names seen\n"),
            false => format!(
                "  driver {driver}: no source says which of the names it gives; profile ids hold on \
                 every driver\n"
            ),
        }
    }

    /// What a driver does not have, with the first that has it; MIG as a whole is no profile.
    fn missing(&self, driver: &Version) -> Vec<(Option<&'a GiProfile>, &'a Version)> {
        let of_gpu = self.gpu.mig.min_driver.value.as_ref().map(|since| (None, since));
        let of_profiles = self.row.table.profiles.iter().filter_map(|profile| {
            let since = self.row.facts.get(&profile.name)?.min_driver.value.as_ref()?;
            Some((Some(profile), since))
        });
        of_gpu.into_iter().chain(of_profiles).filter(|(_, since)| !driver.is_since(since)).collect()
    }

    fn documents(&self, variant: &NameVariant) -> Vec<String> {
        let known = variant.source.iter().filter_map(|source| self.catalog.sources.get(source));
        known.cloned().collect()
    }

    fn json(&self, renamed: &Renamed<'_>) -> JsonRenamed {
        JsonRenamed {
            asked: renamed.asked.to_string(),
            profile: renamed.profile.name.to_string(),
            profile_id: renamed.profile.id,
            seen_in: self.documents(renamed.variant),
        }
    }
}

/// Other names of a profile.
pub(super) fn other_names(row: &MigTableRow, profile: &GiProfile) -> Vec<String> {
    let names = row.name_variants.iter().filter_map(|variant| variant.names.get(&profile.id));
    names.filter(|name| **name != profile.name).map(ToString::to_string).collect()
}
