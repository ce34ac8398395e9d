//! The snapshot thread: writes snapshots beside the log and deletes what they make superfluous.

use super::files::{self, Listing};
use super::shared::{Job, Shared, Writes};
use super::writer::{End, Place, Stop, patiently};
use crate::replica::Stall;
use crate::snapshot::{self, Descriptor};
use std::io;
use std::sync::Arc;

/// Works until the log has ended and nothing is left to write, or the disk fails.
pub(crate) fn run(place: &Place, shared: &Arc<Shared>) {
    let _end = End(Arc::clone(shared));
    while let Some(job) = shared.next_job() {
        match patiently(shared, place, Writes::Snapshots, || write(place, shared, &job)) {
            Ok(()) => {
                shared.publish_snapshot(job.segment);
                // What cannot be deleted now is deleted at the next snapshot or start; nothing depends on it.
                let _ = delete_superseded(place, &job);
            }
            Err(_) if shared.is_abandoned() => return,
            Err(Stop::Closed) => return,
            Err(Stop::Failed(error)) => {
                shared.report(Writes::Snapshots, Some(Stall::Broken(format!("snapshot: {error}"))));
                return;
            }
        }
    }
}

/// Writes a snapshot so that it is durable, under its name, and reads back as it should.
fn write(place: &Place, shared: &Shared, job: &Job) -> io::Result<()> {
    let path = files::snapshot(&place.directory, job.segment);
    let temporary = files::temporary(&path);
    let descriptor = Descriptor { identity: place.identity, segment: job.segment };
    let mut file = place.disk.create(&temporary)?;
    snapshot::write(&mut *file, &descriptor, &job.snapshot.evidence.claim(), &job.snapshot.tree, &|| {
        shared.is_abandoned()
    })?;
    snapshot::verify(&temporary, &place.identity).map_err(io::Error::other)?;
    place.disk.rename(&temporary, &path)?;
    place.disk.sync_directory(&place.directory)
}

/// Deletes older segments, then older snapshots: as long as an older snapshot's segments are there it can be used.
fn delete_superseded(place: &Place, job: &Job) -> io::Result<()> {
    let listing = Listing::of(&place.directory).map_err(io::Error::other)?;
    for (_, path) in listing.segments.range(..job.segment) {
        place.disk.remove(path)?;
    }
    for (_, path) in listing.snapshots.range(..job.segment) {
        place.disk.remove(path)?;
    }
    place.disk.sync_directory(&place.directory)
}
