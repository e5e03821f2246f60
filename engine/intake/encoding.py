"""Which encoding a file is in: decided for the whole of it, before its first row is kept.

Declared by the caller or by a byte order mark; else UTF-8 when it is that to its very end; else Windows-1252,
unless the bytes speak against it. Names that go out to people must not be guessed: when in doubt, refuse.
"""

import codecs
import re
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from engine.intake.fault import FileFault

CHUNK_BYTES = 1 << 20
SAMPLE_BYTES = 1 << 16
SURROGATES = "surrogatepass"  # a lone surrogate costs its row, not the file

WINDOWS = "windows-1252"
_MARKS = (
    (codecs.BOM_UTF32_LE, None),  # begins like UTF-16's: asked first
    (codecs.BOM_UTF32_BE, None),
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_ADVICE = "save it as UTF-8, or name its encoding"
_MULTIBYTE = re.compile(rb"[\xc2-\xdf][\x80-\xbf]|[\xe0-\xef][\x80-\xbf]{2}|[\xf0-\xf4][\x80-\xbf]{3}")
_HIGH = re.compile(rb"[\x80-\xff]")
_UNDEFINED = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
_WORD_OF_HIGH = re.compile(rb"[\x80-\xff]{3,}")
_TYPOGRAPHY = frozenset("ªº°§–—‘’“”…«»€·•²³¹½¼¿¡®©™ \u00ad\u00b4")
_ENOUGH_TO_JUDGE = 40  # bytes above ASCII; fewer say too little about a language


def decide(path: Path, declared: str | None = None) -> str:
    """The encoding's name: `utf-8`, `utf-16`, `windows-1252`, or `declared`. Reads the file once to its end.

    Raises FileFault when the file does not keep to the encoding, naming the line, and OSError.
    """
    with path.open("rb") as source:
        head = source.read(SAMPLE_BYTES)
        name = _declared(declared) or _marked(head) or _unmarked_utf16(head)
        fault = _broken(source, name or "utf-8")
        if fault is None:
            return name or "utf-8"
        if name:
            raise fault
        return _windows(source, fault)


def codec(name: str) -> str:
    """The codec of `name`. Of UTF-8 it reads a mark in front as no part of the text, and writes one, without which a
    spreadsheet takes the file for something else."""
    return "utf-8-sig" if name == "utf-8" else name


def _declared(name: str | None) -> str | None:
    if name is None:
        return None
    try:
        b"x".decode(name, "replace")  # refuses what is no encoding of text, such as hex
        found = codecs.lookup(name)
    except LookupError:
        raise FileFault(None, f"there is no text encoding called {name[:40]!r}") from None
    return {"utf-8-sig": "utf-8", "cp1252": WINDOWS}.get(found.name, found.name)


def _marked(head: bytes) -> str | None:
    for mark, name in _MARKS:
        if head.startswith(mark):
            if name is None:
                raise FileFault(1, f"the file is in UTF-32, which is not read: {_ADVICE}")
            return name
    return None


def _unmarked_utf16(head: bytes) -> str | None:
    """UTF-16 without its mark is valid UTF-8 full of NUL bytes; its header line gives it away."""
    header = head[:64]
    if len(header) >= 4 and not any(header[0::2]) and all(header[1::2]):
        return "utf-16-be"
    if len(header) >= 4 and not any(header[1::2]) and all(header[0::2]):
        return "utf-16-le"
    return None


def _broken(source: BinaryIO, name: str) -> FileFault | None:
    decoder = codecs.getincrementaldecoder(codec(name))(errors(name))
    lines = 0
    for chunk in _chunks(source):
        try:
            lines += decoder.decode(chunk).count("\n")
        except UnicodeDecodeError as error:
            lines += error.object[: error.start].count(
                b"\n"
            )  # rough in UTF-16, where it only helps to find it
            return FileFault(lines + 1, f"this line is not {name}: {_ADVICE}")
    try:
        decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return FileFault(lines + 1, f"the file ends in the middle of a {name} character: was it cut short?")
    return None


def errors(name: str) -> str:
    """How that codec treats what it cannot read."""
    return SURROGATES if name.startswith("utf-") else "strict"


def _windows(source: BinaryIO, fault: FileFault) -> str:
    """Windows-1252, if all its bytes are, and they look like a Western language. Raises FileFault."""
    multibyte = high = lines = 0
    sample = bytearray()
    for chunk in _chunks(source):
        if undefined := _UNDEFINED.search(chunk):
            line = lines + chunk.count(b"\n", 0, undefined.start()) + 1
            raise FileFault(line, f"this line is neither UTF-8 nor Windows-1252: {_ADVICE}")
        lines += chunk.count(b"\n")
        together = _MULTIBYTE.findall(chunk)
        multibyte += len(together)
        high += len(_HIGH.findall(chunk)) - sum(map(len, together))
        if len(sample) < SAMPLE_BYTES:
            sample += b"\n".join(line for line in chunk[:SAMPLE_BYTES].splitlines() if _HIGH.search(line))
    if multibyte * 20 > high:  # as Windows-1252 those names would be sent with Ã© for é
        raise FileFault(fault.line, f"most of the file is UTF-8, but not this line: {_ADVICE}")
    if not _looks_western(bytes(sample)):
        raise FileFault(fault.line, f"the file is not UTF-8, and reads as no Western language: {_ADVICE}")
    return WINDOWS


def _looks_western(sample: bytes) -> bool:
    """Not a script that has no ASCII letters, nor letters that Windows-1252 would show as signs (as in DOS files)."""
    high = _HIGH.findall(sample)
    if len(high) < _ENOUGH_TO_JUDGE:
        return True
    in_words = sum(map(len, _WORD_OF_HIGH.findall(sample)))
    text = b"".join(high).decode(WINDOWS, "replace")
    signs = sum(not (character.isalpha() or character in _TYPOGRAPHY) for character in text)
    return in_words * 2 < len(high) and signs * 5 < len(high)


def _chunks(source: BinaryIO) -> Iterator[bytes]:
    source.seek(0)
    while chunk := source.read(CHUNK_BYTES):
        yield chunk
