"""What keeps the house in order beside the work: audits, retention, invariants, the disk, the watch over the file."""

from __future__ import annotations

from collections.abc import Callable

from scheduler.core.execution import Clock
from scheduler.core.notices import Bus
from scheduler.engine.audit import Auditor
from scheduler.engine.disk import Disk
from scheduler.engine.in_force import InForce
from scheduler.engine.invariants import Invariants
from scheduler.engine.lookout import Lookout, Part
from scheduler.engine.loop import Loop
from scheduler.engine.outages import Outages
from scheduler.engine.reload import Reloader
from scheduler.engine.retention import Retention
from scheduler.engine.watch import Watch
from scheduler.files import JobsFile
from scheduler.installation import folders
from scheduler.settings import Settings
from scheduler.store.store import SqlStore


class Upkeep:
    """`loops` are to be hosted like all others; `invariants` and `disk` tell what they found."""

    def __init__(
        self,
        store: SqlStore,
        in_force: InForce,
        bus: Bus,
        clock: Clock,
        node: Callable[[], str],
        settings: Settings,
        file: JobsFile,
        reloader: Reloader,
        outages: Outages,
        lookout: Lookout,
    ) -> None:
        self.invariants = Invariants(store, store, bus)
        self.disk = Disk(folders(settings))
        parts: dict[str, Part] = {
            "invariants": self.invariants,
            "audit": Auditor(store, bus, node),
            "retention": Retention(store, in_force, bus),
        }
        self.loops = {name: lookout.loop(name, part, lookout.now) for name, part in parts.items()}
        self.loops["disk"] = Loop("disk", self.disk.tick, clock.now, outages=outages)
        if settings.watch:
            watch = Watch(file.fingerprint, lambda: reloader.reload(author="file watch"))
            self.loops["watch"] = Loop("watch", watch.tick, clock.now, outages=outages)
