"""One entry of `jobs:`, and what `defaults:` may hold."""

from __future__ import annotations

from datetime import timedelta
from functools import lru_cache
from typing import Annotated, Any

from pydantic import AfterValidator, BeforeValidator, Field, PlainValidator, WithJsonSchema, create_model

from scheduler.config.actions.base import Options
from scheduler.config.actions.registry import Actions
from scheduler.config.codes import CODES
from scheduler.config.fields import (
    DURATION_SCHEMA,
    NAME_SCHEMA,
    Duration,
    Environment,
    Line,
    Name,
    Place,
    PositiveDuration,
    Size,
    Switch,
    Text,
    Whole,
    Word,
    to_name,
    to_positive_duration,
    to_texts,
)
from scheduler.config.models.base import Model
from scheduler.config.models.blackout import BlackoutModel
from scheduler.config.models.channel import Notify
from scheduler.config.models.heartbeat import Heartbeat, HeartbeatField
from scheduler.config.models.limits import LimitsModel
from scheduler.config.models.on_event import OnEventModel, expand
from scheduler.config.models.retries import RetriesField
from scheduler.config.models.secret import Secrets
from scheduler.config.refusal import refuse, shown
from scheduler.config.suggest import did_you_mean

DEFAULT_GRACE = timedelta(hours=1)
LOG_LIMITS = (1 << 10, 1 << 30)


def _schedule(value: object) -> tuple[str, ...]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        refuse(f"{shown(value)} is not a cron expression", 'write five fields in quotes: "0 8 * * 1"')
    if isinstance(value, list) and not value:
        refuse("the list of expressions is empty", 'write at least one: "0 8 * * 1", or remove the key')
    return to_texts(value)


def _keep(value: object) -> timedelta | int:
    if isinstance(value, int) and not isinstance(value, bool):
        return Whole(1, 10_000_000).check(value)
    return to_positive_duration(value)


def _log_limit(value: int) -> int:
    if not LOG_LIMITS[0] <= value <= LOG_LIMITS[1]:
        refuse(f"{value} bytes is out of range", "write something from 1KiB to 1GiB")
    return value


def _after(value: object) -> object:
    return value if isinstance(value, dict) else {"job": value}


def _tags(value: object) -> tuple[str, ...]:
    return tuple(to_name(one) for one in to_texts(value))


def _codes(value: object) -> tuple[str, ...]:
    codes = to_texts(value)
    for code in codes:
        if code not in CODES:
            refuse(f"{shown(code)} is no code of a warning", did_you_mean(code, CODES))
    return codes


Schedules = Annotated[
    tuple[str, ...],
    PlainValidator(_schedule),
    WithJsonSchema({"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}, "minItems": 1}]}),
]
Keep = Annotated[
    timedelta | int,
    PlainValidator(_keep),
    WithJsonSchema({"anyOf": [DURATION_SCHEMA, {"type": "integer", "minimum": 1}]}),
]
Tags = Annotated[
    tuple[str, ...],
    PlainValidator(_tags),
    WithJsonSchema({"anyOf": [NAME_SCHEMA, {"type": "array", "items": NAME_SCHEMA}]}),
]
Codes = Annotated[
    tuple[str, ...],
    PlainValidator(_codes),
    WithJsonSchema({"anyOf": [{"enum": [*CODES]}, {"type": "array", "items": {"enum": [*CODES]}}]}),
]
DayMatch = Annotated[str, Word("cron", "or", "and")]
OverlapWord = Annotated[str, Word("skip", "queue", "replace", "allow")]
CatchUpWord = Annotated[str, Word("latest", "all", "none")]
LeftoversWord = Annotated[str, Word("end", "keep")]
OnLostWord = Annotated[str, Word("retry", "fail")]
SeverityWord = Annotated[str, Word("info", "warning", "critical")]
OnWord = Annotated[str, Word("completed", "failed")]


class AfterModel(Model):
    """Another job whose runs start this one."""

    job: Annotated[Name, Field(description="The other job.")]
    on: Annotated[OnWord, Field(description="Which of its runs: completed (default) or failed.")] = "completed"


class DefaultsModel(Model):
    """What every job inherits: any key of a job except its triggers and its action."""

    description: Annotated[Text, Field(description="What it is for, in a sentence or more.")] = ""
    enabled: Annotated[
        Switch, Field(description="false: known, but nothing of it runs. For a while: schedctl pause.")
    ] = True
    timezone: Annotated[Line | None, Field(description="IANA name of the zone of the schedule, as Asia/Shanghai.")] = (
        None
    )
    day_match: Annotated[
        DayMatch, Field(description="Day of month and day of week both given: as cron does, either (or), both (and).")
    ] = "cron"
    overlap: Annotated[
        OverlapWord | None,
        Field(
            description="An occurrence comes while a run is unfinished: skip it, queue (one), replace the run, allow."
        ),
    ] = None
    lock: Annotated[Name | None, Field(description="Jobs with the same lock never run at the same time.")] = None
    catch_up: Annotated[
        CatchUpWord, Field(description="Occurrences missed while nothing ran: the latest, all in order, or none.")
    ] = "latest"
    catch_up_window: Annotated[
        PositiveDuration | None, Field(description="Older ones are not caught up: 7d, for `all` 24h.")
    ] = None
    catch_up_max: Annotated[int, Whole(1, 100_000), Field(description="At most so many with `catch_up: all`.")] = 100
    blackouts: Annotated[list[BlackoutModel], Field(description="When occurrences are skipped.")] = Field(
        default_factory=list
    )
    timeout: Annotated[PositiveDuration | None, Field(description="Of one attempt: 24h, for http 3m.")] = None
    kill_after: Annotated[Duration, Field(description="From asking a process to end (TERM) to ending it (KILL).")] = (
        timedelta(seconds=30)
    )
    leftovers: Annotated[
        LeftoversWord,
        Field(
            description="Processes that a run leaves behind: end them, or (with overlap: allow) keep them until the "
            "daemon ends."
        ),
    ] = "end"
    retries: Annotated[
        RetriesField | None,
        Field(description="Further attempts: a number, the waits [1m, 10m], or {max, delay, backoff, max_delay}."),
    ] = None
    on_lost: Annotated[
        OnLostWord,
        Field(description="The node died during a run: retry it, or fail (for work that must not be repeated)."),
    ] = "retry"
    queue: Annotated[Name, Field(description="The queue whose limits apply.")] = "default"
    priority: Annotated[
        int, Whole(-1_000_000, 1_000_000), Field(description="Within the queue; the higher, the sooner.")
    ] = 0
    keep: Annotated[Keep, Field(description="How long, or how many, finished runs are kept.")] = timedelta(days=90)
    keep_output: Annotated[PositiveDuration, Field(description="How long their output is kept.")] = timedelta(days=30)
    log_limit: Annotated[
        Size,
        AfterValidator(_log_limit),
        Field(description="How much output of an attempt is kept: the first and the last half of it."),
    ] = 1 << 20
    env: Annotated[Environment, Field(description="Variables of the environment.")] = Field(default_factory=dict)
    secrets: Annotated[
        Secrets, Field(description="Variables whose values are read when the run starts: {env: NAME} or {file: PATH}.")
    ] = Field(default_factory=dict)
    workdir: Annotated[Place | None, Field(description="Working directory; ${NAME} is replaced.")] = None
    user: Annotated[Line | None, Field(description="Run as this user (only if the daemon is root).")] = None
    limits: Annotated[LimitsModel | None, Field(description="What one run may use.")] = None
    stdin: Annotated[Text | None, Field(description="What the process reads from its standard input.")] = None
    grace: Annotated[
        Duration, Field(description="How late after its occurrence a success may be before somebody is told.")
    ] = DEFAULT_GRACE
    heartbeat: Annotated[
        HeartbeatField,
        Field(description="false: nobody waits for its success. {ping_url}: its runs are told to a service outside."),
    ] = Heartbeat()
    alert_after: Annotated[
        int, Whole(1, 1_000), Field(description="Failures in a row before the job counts as failing.")
    ] = 1
    notify: Annotated[
        Notify, Field(description="Who is told: channels, or {channel: [missed, failing, recovered, completed]}.")
    ] = Field(default_factory=dict)
    severity: Annotated[SeverityWord, Field(description="Of its alerts: info, warning or critical.")] = "warning"
    team: Annotated[Text, Field(description="Who is told; a label of its alerts.")] = ""
    runbook: Annotated[Text, Field(description="Where to read what to do; shown with its alerts.")] = ""
    tags: Annotated[Tags, Field(description="To find jobs by.")] = ()
    acknowledge: Annotated[
        Codes, Field(description="Warnings of `schedctl check` that are meant so, by their codes: [clock-change].")
    ] = ()


class JobModel(DefaultsModel):
    """A job: when it runs, what it does, its policies. The actions are added by `job_model`."""

    schedule: Annotated[
        Schedules | None,
        Field(
            description='Cron expression, or a list: five fields, or six with seconds first. In quotes: "0 8 * * 1".'
        ),
    ] = None
    on_event: Annotated[
        OnEventModel | None, BeforeValidator(expand), Field(description="A run for each event of a source.")
    ] = None
    after: Annotated[
        AfterModel | None, BeforeValidator(_after), Field(description="A run for each run of another job.")
    ] = None


@lru_cache(maxsize=8)
def _job_model(kinds: tuple[tuple[str, type[Options]], ...]) -> type[JobModel]:
    fields: dict[str, Any] = {
        kind: (options | None, Field(default=None, description=options.summary)) for kind, options in kinds
    }
    return create_model("Job", __base__=JobModel, **fields)


def job_model(actions: Actions) -> type[JobModel]:
    """The model of a job that may have any of these actions."""
    return _job_model(tuple(actions.items()))
