"""picotorch size --port: what a method needs beside what a connected board has."""

from .. import show
from .link import Link
from .serial_ports import resolve
from .session import facts_of

SPARE = 8192  # bytes of heap for Python's objects around a model


def measure(need: dict, port: str) -> dict:
    """need: of sizing.measure. Bytes needed and there, and the ways that fit."""
    port = resolve(port)
    with Link(port) as link:
        facts = facts_of(link)
    memories = need["method_pool"] + sum(need["planned"]) + need["temp"] + SPARE
    files = need["program_bytes"] + sum(need["data_bytes"])
    in_place = memories <= facts["heap_free"]
    return {
        "port": port,
        "machine": facts["machine"],
        "memories": memories,
        "files": files,
        "heap_free": facts["heap_free"],
        "files_free": facts["files_free"],
        "romfs": facts["romfs"],
        "fits_in_romfs": in_place and files <= (facts["romfs"] or 0),
        "fits_in_heap": memories + files <= facts["heap_free"],
    }


def show_text(entry: dict) -> None:
    show.heading(f"{entry['machine']} at {entry['port']}")
    rows = [["ROMFS, used in place", entry["memories"], entry["heap_free"], entry["files"],
             _bytes(entry["romfs"]), _fits(entry["fits_in_romfs"])],
            ["file system, read into the heap", entry["memories"] + entry["files"], entry["heap_free"],
             entry["files"], _bytes(entry["files_free"]),
             _fits(entry["fits_in_heap"] and entry["files"] <= (entry["files_free"] or 0))],
            ["sent by picotorch run", entry["memories"] + entry["files"], entry["heap_free"], "", "",
             _fits(entry["fits_in_heap"])]]
    show.table(["model in", "heap needed>", "free>", "storage needed>", "there>", ""], rows)


def _bytes(count):
    return "none" if count is None else count


def _fits(fits):
    return "fits" if fits else "DOES NOT FIT"
