"""What a new source needs in jobs.yaml, ready to be filled in: `schedctl init source NAME` prints it."""

from __future__ import annotations

import re
from textwrap import indent

from scheduler.core.preset import Preset

_FILE = """\
# Into a file of its own that jobs.yaml includes (include: ["jobs.d/*.yaml"]), or each part below its key there.
# Register this address with {title}: {url}
{documentation}sources:
  {name}:
{source}

jobs:
  {name}-events:
    description: Handles each event of {name} once, however often and by whichever way it came
    on_event: {{source: {name}}} # also: types: ["payment.*"], where: "status == 'failed'", order: subject
    # What shall be done. The event is in this file, as JSON.
    command: cat "$SCHED_PAYLOAD_FILE"

{scan}"""

_SCAN = """\
  {name}-scan:
    description: Finds the events of {name} whose webhook never came
    schedule: "*/30 * * * *"
    timezone: {zone}
    compensate:
      source: {name}
      compensator: {compensator}
      settle: 5m # younger events may still arrive by themselves
      margin: 1h # every scan lists again this much before where the last one ended
      first_window: 24h # how far back the first scan starts
      alarm_after: 1h # an event that is found this late is worth an alarm
      with:
{arguments}
"""

_OWN = """\
signature: {{scheme: hmac, header: X-Signature, prefix: "sha256="}} # as the sender documents it
secrets: [{{env: {variable}_WEBHOOK_SECRET}}] # or {{file: PATH}}; never the secret itself
event: {{id: id, type: type, occurred_at: created_at}} # where these lie in the body, or header:NAME
"""
_KNOWN = """\
preset: {preset}
secrets: [{{env: {variable}_WEBHOOK_SECRET}}] # or {{file: PATH}}; never the secret itself
"""
_COMPENSATORS = {
    "stripe": ("stripe_events", "api_key: {{env: {variable}_API_KEY}} # a restricted key that may read events"),
    "github": (
        "github_deliveries",
        "repository: owner/name # or organization: name\n"
        "hook: 1 # the number of the hook, as its address in the settings ends\n"
        "token: {{env: {variable}_TOKEN}} # it may read webhooks",
    ),
    "shopify": (
        "shopify_updated",
        "shop: example.myshopify.com\n"
        "resource: orders\n"
        "token: {{env: {variable}_ADMIN_TOKEN}} # it may read that resource, and of orders all\n"
        "# recent_only: true # it may not: orders of the last 60 days are enough",
    ),
}
_MORE = {
    "shopify": "# No list has Shopify's own event ids, so both ways make one of what the resource says.\n"
    "event: {{id: \"join('@', [admin_graphql_api_id, updated_at])\"}}\n",
}
_LIST = """\
url: https://api.example.com/v1/events
bearer: {{env: {variable}_API_KEY}}
items: data # where the list lies in the answer
cursor: next # where the next page's cursor lies in the answer ...
cursor_param: cursor # ... and the parameter that takes it
from_param: since # the parameter that takes the start of the window"""
_OWN_FIELDS = """
id: id # the one that the webhook carries; where it lies in an item
occurred_at: created_at"""


def starter_source(
    name: str, scheme: str | None, preset: Preset | None, *, needs_url: bool, zone: str, base: str | None
) -> str:
    """The text; it loads as it is. `scheme`: the word of the preset, None for a sender that has none; `base`: where
    the daemon is reached from outside, None if nobody has said it."""
    variable = re.sub(r"[^A-Z0-9]+", "_", name.upper())
    if variable[0].isdigit():
        variable = f"_{variable}"
    url = f"{(base or 'https://your.host').rstrip('/')}/webhooks/{name}"
    known = scheme in _COMPENSATORS
    source = _OWN if scheme is None else _KNOWN + _MORE.get(scheme, "")
    if needs_url:
        source += f"url: {url} # exactly as it is registered: it is signed\n"
    compensator, arguments = _COMPENSATORS.get(scheme or "", ("http_list", _LIST))
    if scheme is not None and not known:
        arguments += _OWN_FIELDS
    values = {"name": name, "variable": variable, "preset": scheme, "zone": zone, "compensator": compensator}
    scan = _SCAN.format(**values, arguments=indent(arguments.format(**values), "        "))
    if scheme is not None and not known:
        scan = "  # If it has a list of its events:\n" + indent(scan, "# ", lambda line: True).replace("#   ", "  # ")
    return _FILE.format(
        **values,
        title=preset.title if preset is not None else "the sender",
        url=url,
        documentation=f"# {preset.documentation}\n" if preset is not None and preset.documentation else "",
        source=indent(source.format(**values).rstrip("\n"), "    "),
        scan=scan,
    )
