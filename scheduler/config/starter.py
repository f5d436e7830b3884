"""The first jobs.yaml that somebody sees: `schedctl init` writes it."""

from __future__ import annotations

_TEXT = """\
# yaml-language-server: $schema=./jobs.schema.json
# (with it editors help with every key; made anew by: schedctl schema > jobs.schema.json)
#
# After each change:  schedctl check   is it right?
#                     schedctl diff    what would change?
#                     schedctl reload  put it in force
version: 1

defaults:             # every job inherits these
  timezone: {zone}
  timeout: 1h         # an attempt that takes longer is ended; durations have units: 90s 15m 1h30m 2d
  grace: 15m          # a success that is later than this is reported as missed

jobs:
  hello:
    description: Says hello every five minutes
    schedule: "*/5 * * * *"                  # minute hour day month weekday; always in quotes
    command: [echo, "hello from schedulerd"] # a list is executed as it is; a text is given to /bin/sh -c

  # nightly-backup:
  #   description: Dumps the database
  #   schedule: "15 2 * * *"
  #   command: /opt/jobs/backup.sh --full >> "$LOG"
  #   env: {{LOG: /var/log/backup.log}}
  #   secrets: {{PGPASSWORD: {{file: /run/secrets/pg-password}}}} # or {{env: NAME}}; never the secret itself
  #   retries: [1m, 10m]    # two further attempts, after these waits
  #   overlap: skip         # a run is still going: skip | queue | replace | allow
  #   catch_up: latest      # the machine was off: latest | all | none
  #   severity: critical

  # warm-cache:
  #   schedule: ["0 6 * * MON-FRI", "0 9 * * SAT,SUN"]
  #   http: {{method: POST, url: "https://app.example.com/tasks/warm-cache"}}

  # after-backup:
  #   after: nightly-backup # one run for each of its runs that completed
  #   command: [/opt/jobs/verify-backup.sh]
"""


def starter(zone: str = "UTC") -> str:
    """The text, with a zone that people there expect. It loads as it is, and so do the jobs that are commented out."""
    return _TEXT.format(zone=zone)
