"""Read and write ROMFS images: files that MicroPython uses in place in flash.

An image is a record, and all in it are records: kind, length, payload. Kind and length are numbers of
seven bits a byte, the highest first; bit 7 means that another follows. mpremote puts a file's data
behind its name, at any address. Here data come first, each at a multiple of ALIGNMENT, in a record that
readers skip; files point there.
"""

from collections.abc import Iterator, Mapping

from . import quoting

ALIGNMENT = 16
_FILESYSTEM = bytes((0xD2, 0xCD, 0x31))
_PADDING, _VERBATIM, _POINTER, _DIRECTORY, _FILE = 1, 2, 3, 4, 5
_LENGTH_BYTES = 4  # of a length that is written later

Files = Mapping[str, "bytes | Files"]


def build(files: Files) -> bytes:
    """Return an image of files, {name: data}; a folder is a dict of its own.

    Raises InvalidArgument for a name that is not UTF-8.
    """
    payload = len(_FILESYSTEM) + _LENGTH_BYTES
    data = bytearray()
    records = _records(files, data, payload, payload + 1 + _LENGTH_BYTES)
    content = bytes((_PADDING,)) + _number(len(data), _LENGTH_BYTES) + data + records
    image = _FILESYSTEM + _number(len(content), _LENGTH_BYTES) + content
    if len(image) % 2:  # the shortest padding is two bytes, so this one has three
        content += _record(_PADDING, b"\0")
        image = _FILESYSTEM + _number(len(content), _LENGTH_BYTES) + content
    return image


def _records(files: Files, data: bytearray, payload: int, start: int) -> bytes:
    """Return the records of files whose data follow `data`, which begins at `start` of the image."""
    records = b""
    for name, content in sorted(files.items()):
        encoded = quoting.utf8(name).encode()
        entry = _number(len(encoded)) + encoded
        if isinstance(content, Mapping):
            records += _record(_DIRECTORY, entry + _records(content, data, payload, start))
            continue
        data += bytes(-(start + len(data)) % ALIGNMENT)
        pointer = _number(len(content)) + _number(start + len(data) - payload)
        data += content
        records += _record(_FILE, entry + _record(_POINTER, pointer))
    return records


def _record(kind: int, payload: bytes) -> bytes:
    return bytes((kind,)) + _number(len(payload)) + payload


def _number(value: int, count: int = 1) -> bytes:
    """Return a number in `count` bytes, or in as many as it needs."""
    digits = [value & 0x7F]
    while value := value >> 7:
        digits.append(value & 0x7F)
    digits += [0] * (count - len(digits))
    return bytes([digit | 0x80 for digit in reversed(digits[1:])] + digits[:1])


# ---- reading


def size_of(head: bytes) -> int:
    """Return the bytes of the image that begins so; 0 for anything else."""
    if not head.startswith(_FILESYSTEM):
        return 0
    try:
        size, start = _read_number(head, len(_FILESYSTEM), len(head))
    except ValueError:
        return 0
    return start + size


def read(image: bytes) -> dict[str, "bytes | Files"]:
    """Return the files of an image, of this builder or of mpremote. Raises ValueError."""
    if not image.startswith(_FILESYSTEM):
        raise ValueError("no ROMFS")
    size, start = _read_number(image, len(_FILESYSTEM), len(image))
    if start + size > len(image):
        raise ValueError("the ROMFS is not whole")
    return _files(image, start, start, start + size)


def _read_number(image: bytes, position: int, end: int) -> tuple[int, int]:
    """Return (value, position behind it)."""
    value = 0
    while position < end:
        byte = image[position]
        value = value << 7 | byte & 0x7F
        position += 1
        if byte < 0x80:
            return value, position
    raise ValueError("the ROMFS is not whole")


def _read_records(image: bytes, position: int, end: int) -> Iterator[tuple[int, int, int]]:
    """Return (kind, begin and end of the payload) of each record."""
    while position < end:
        kind, position = _read_number(image, position, end)
        size, position = _read_number(image, position, end)
        if position + size > end:
            raise ValueError("the ROMFS is not whole")
        yield kind, position, position + size
        position += size


def _files(image: bytes, payload: int, position: int, end: int) -> dict[str, "bytes | Files"]:
    """Return the entries of a folder's records; pointers are offsets from `payload` on."""
    files: dict[str, bytes | Files] = {}
    for kind, begin, stop in _read_records(image, position, end):
        if kind in (_DIRECTORY, _FILE):
            length, begin = _read_number(image, begin, stop)
            name = image[begin : begin + length].decode()
            where = image, payload, begin + length, stop
            files[name] = _files(*where) if kind == _DIRECTORY else _data(*where)
    return files


def _data(image: bytes, payload: int, position: int, end: int) -> bytes:
    for kind, begin, stop in _read_records(image, position, end):
        if kind == _VERBATIM:
            return image[begin:stop]
        if kind == _POINTER:
            size, begin = _read_number(image, begin, stop)
            offset, _ = _read_number(image, begin, stop)
            if payload + offset + size > len(image):
                raise ValueError("the ROMFS is not whole")
            return image[payload + offset : payload + offset + size]
    return b""
