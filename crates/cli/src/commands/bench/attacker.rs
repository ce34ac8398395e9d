//! Somebody who attacks the cluster while it is measured. In the processor laboratory the attacker has a control group
//! of its own, with a replica's share, so that it takes nothing from anybody but by what it sends.

use crate::commands::attack::Kind;
use crate::failure::{Failure, Result};
use bezant_perf::figures::Attacked;
use clap::ValueEnum;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// What the command line says about it.
#[derive(clap::Args)]
#[group(id = "attacker")]
pub(super) struct Arguments {
    /// Let somebody attack the cluster meanwhile, as `bezant attack --kind` does; with --cpu-share, with as much of a
    /// core as a replica has
    #[arg(long, value_name = "KIND")]
    pub(super) attack: Option<Kind>,
}

/// An attack under way. It ends by itself, and with this value.
pub(super) struct Attacker {
    name: String,
    child: Child,
}

impl Attacker {
    /// Begins an attack on a cluster that ends after this long. The launcher's words come before its command line.
    pub(super) fn begin(
        kind: Kind,
        launcher: Vec<String>,
        cluster: &Path,
        key: &Path,
        lasts: Duration,
    ) -> Result<Self> {
        let name = kind.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        let failed = |error: std::io::Error| Failure::failed(format!("the attack {name} cannot begin: {error}."));
        let program = std::env::current_exe().map_err(failed)?;
        let mut words = launcher.into_iter().map(Into::into).chain([program.into_os_string()]);
        let mut command = Command::new(words.next().expect("there is a program"));
        command.args(words).args(["attack", "--json", "--kind", &name]).arg("--cluster").arg(cluster);
        command.arg("--key").arg(key).args(["--seconds", &lasts.as_secs_f64().ceil().max(1.0).to_string()]);
        let child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn().map_err(failed)?;
        Ok(Self { name, child })
    }

    /// Waits for its end, and says what it did.
    ///
    /// # Errors
    /// It failed, or did nothing: then nothing was measured.
    pub(super) fn end(mut self) -> Result<Attacked> {
        let failed = |why: String| Failure::failed(format!("the attack {}: {why}.", self.name));
        let mut said = String::new();
        if let Some(mut out) = self.child.stdout.take() {
            std::io::Read::read_to_string(&mut out, &mut said).map_err(|error| failed(error.to_string()))?;
        }
        let status = self.child.wait().map_err(|error| failed(error.to_string()))?;
        let said: serde_json::Value = serde_json::from_str(&said).unwrap_or_default();
        let made = ["attacks", "connections"].iter().find_map(|name| said.get(name)?.as_u64()).unwrap_or_default();
        if !status.success() || made == 0 {
            return Err(failed("it did nothing".to_owned()));
        }
        Ok(Attacked { attack: self.name.clone(), attacks: made })
    }
}

impl Drop for Attacker {
    fn drop(&mut self) {
        // It has ended already, unless the measurement failed.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
