"""What somebody probably meant who wrote a time zone that is none: an offset, an abbreviation, a city."""

from __future__ import annotations

import difflib
import re
from collections.abc import Set

_ABBREVIATIONS = {
    "ACST": "Australia/Adelaide or Australia/Darwin",
    "ADT": "America/Halifax",
    "AEDT": "Australia/Sydney",
    "AEST": "Australia/Sydney or Australia/Brisbane",
    "AKST": "America/Anchorage",
    "ART": "America/Argentina/Buenos_Aires",
    "AST": "America/Halifax, America/Puerto_Rico or Asia/Riyadh",
    "AWST": "Australia/Perth",
    "BRT": "America/Sao_Paulo",
    "BST": "Europe/London or Asia/Dhaka",
    "CDT": "America/Chicago or America/Havana",
    "CEST": "Europe/Berlin or Europe/Paris",
    "CET": "Europe/Berlin or Europe/Paris",
    "CST": "America/Chicago, Asia/Shanghai or America/Havana",
    "EDT": "America/New_York",
    "EEST": "Europe/Helsinki or Europe/Athens",
    "EET": "Europe/Helsinki or Africa/Cairo",
    "EST": "America/New_York (with summer time) or America/Panama (without)",
    "GST": "Asia/Dubai",
    "HKT": "Asia/Hong_Kong",
    "HST": "Pacific/Honolulu",
    "ICT": "Asia/Bangkok",
    "IST": "Asia/Kolkata, Europe/Dublin or Asia/Jerusalem",
    "JST": "Asia/Tokyo",
    "KST": "Asia/Seoul",
    "MDT": "America/Denver",
    "MET": "Europe/Berlin or Europe/Paris",
    "MSK": "Europe/Moscow",
    "MST": "America/Denver (with summer time) or America/Phoenix (without)",
    "NZDT": "Pacific/Auckland",
    "NZST": "Pacific/Auckland",
    "PDT": "America/Los_Angeles",
    "PHT": "Asia/Manila",
    "PKT": "Asia/Karachi",
    "PST": "America/Los_Angeles or Asia/Manila",
    "SGT": "Asia/Singapore",
    "TRT": "Europe/Istanbul",
    "WEST": "Europe/Lisbon",
    "WET": "Europe/Lisbon",
    "WIB": "Asia/Jakarta",
    "Z": "UTC",
}

_CITIES = {
    "abu dhabi": "Asia/Dubai",
    "atlanta": "America/New_York",
    "austin": "America/Chicago",
    "bangalore": "Asia/Kolkata",
    "barcelona": "Europe/Madrid",
    "beijing": "Asia/Shanghai",
    "boston": "America/New_York",
    "canberra": "Australia/Sydney",
    "chennai": "Asia/Kolkata",
    "chengdu": "Asia/Shanghai",
    "cologne": "Europe/Berlin",
    "dallas": "America/Chicago",
    "delhi": "Asia/Kolkata",
    "edinburgh": "Europe/London",
    "frankfurt": "Europe/Berlin",
    "geneva": "Europe/Zurich",
    "guangzhou": "Asia/Shanghai",
    "hamburg": "Europe/Berlin",
    "hangzhou": "Asia/Shanghai",
    "hanoi": "Asia/Bangkok",
    "houston": "America/Chicago",
    "hyderabad": "Asia/Kolkata",
    "kyoto": "Asia/Tokyo",
    "lyon": "Europe/Paris",
    "manchester": "Europe/London",
    "melbourne": "Australia/Melbourne",
    "miami": "America/New_York",
    "milan": "Europe/Rome",
    "montreal": "America/Toronto",
    "mumbai": "Asia/Kolkata",
    "munich": "Europe/Berlin",
    "new delhi": "Asia/Kolkata",
    "ottawa": "America/Toronto",
    "osaka": "Asia/Tokyo",
    "philadelphia": "America/New_York",
    "rio": "America/Sao_Paulo",
    "rio de janeiro": "America/Sao_Paulo",
    "san diego": "America/Los_Angeles",
    "san francisco": "America/Los_Angeles",
    "seattle": "America/Los_Angeles",
    "shenzhen": "Asia/Shanghai",
    "st petersburg": "Europe/Moscow",
    "stuttgart": "Europe/Berlin",
    "washington": "America/New_York",
    "wellington": "Pacific/Auckland",
}

# Offsets that are not whole hours have no Etc/ zone; these places keep them all the year.
_ODD_OFFSETS = {
    -570: "Pacific/Marquesas",
    210: "Asia/Tehran",
    270: "Asia/Kabul",
    330: "Asia/Kolkata",
    345: "Asia/Kathmandu",
    390: "Asia/Yangon",
    570: "Australia/Darwin",
}

_GENERAL = "write an IANA name as Europe/Berlin, America/New_York, Asia/Shanghai or UTC"


def hint_for(name: str, known: Set[str]) -> str:
    """Return one sentence that names a zone of `known` wherever one can be guessed."""
    bare = re.sub(r"\s+", " ", name[:60].strip().strip("'\"").strip())
    offset = re.fullmatch(r"(?:UTC|GMT|ETC/GMT|ETC/UTC)?\s*([+-])([0-9]{1,2})(?::?([0-9]{2}))?", bare.upper())
    if offset:
        return _for_offset(offset[1], int(offset[2]), int(offset[3] or 0), known)
    if bare.upper() in _ABBREVIATIONS:
        return f"abbreviations are ambiguous; write {_ABBREVIATIONS[bare.upper()]}"
    folded = {zone.casefold(): zone for zone in sorted(known)}
    for spelling in (bare, bare.replace(" ", "_"), bare.replace(" ", "")):
        if (zone := folded.get(spelling.casefold())) is not None:
            return f"write {zone}"
    inside = sorted(zone for zone in known if zone.casefold().startswith(bare.casefold().rstrip("/") + "/"))
    if bare and inside:
        return f"that is an area; write a zone in it, as {', '.join(inside[:3])}"
    city = bare.rpartition("/")[2].replace("_", " ").casefold()
    if city in _CITIES:
        return f"write {_CITIES[city]}"
    cities: dict[str, str] = {}
    for zone in sorted(known, key=lambda zone: (zone.count("/"), zone)):
        cities.setdefault(zone.rpartition("/")[2].replace("_", " ").casefold(), zone)
    if city in cities:
        return f"write {cities[city]}"
    close = difflib.get_close_matches(bare.replace(" ", "_").casefold(), list(folded), n=1, cutoff=0.8)
    if close:
        return f"did you mean {folded[close[0]]}?"
    close = difflib.get_close_matches(city, list(cities), n=1, cutoff=0.8)
    if close:
        return f"did you mean {cities[close[0]]}?"
    return _GENERAL


def _for_offset(sign: str, hours: int, minutes: int, known: Set[str]) -> str:
    if hours == minutes == 0:
        return "write UTC"
    total = (hours * 60 + minutes) * (1 if sign == "+" else -1)
    fixed = f"Etc/GMT{'-' if sign == '+' else '+'}{hours}"
    if minutes == 0 and fixed in known:
        return f"write the place, as Asia/Shanghai, or {fixed} (its sign is reversed: UTC{sign}{hours})"
    if total in _ODD_OFFSETS:
        return f"an offset is no time zone; write the place, as {_ODD_OFFSETS[total]}"
    return f"an offset is no time zone; {_GENERAL}"
