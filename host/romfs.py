"""ROMFS images: files that MicroPython reads, and a model that it uses, in place in flash.

An image is a record, and all in it are records: kind, length, payload. Kind and length are numbers of
seven bits a byte, the highest first; bit 7 says that another follows. mpremote puts a file's data
behind its name, at any address. Here data come first, each at a multiple of ALIGNMENT, in a record that
readers skip; files point there.
"""

ALIGNMENT = 16
_FILESYSTEM = bytes((0xD2, 0xCD, 0x31))
_PADDING, _POINTER, _DIRECTORY, _FILE = 1, 3, 4, 5
_LENGTH_BYTES = 4  # of a length that is not known before

Files = dict[str, "bytes | Files"]


def build(files: Files) -> bytes:
    """An image of files, {name: data}; a folder is a dict of its own."""
    payload = len(_FILESYSTEM) + _LENGTH_BYTES
    data = bytearray()
    records = _records(files, data, payload, payload + 1 + _LENGTH_BYTES)
    content = bytes((_PADDING,)) + _number(len(data), _LENGTH_BYTES) + data + records
    image = _FILESYSTEM + _number(len(content), _LENGTH_BYTES) + content
    if len(image) % 2:  # the shortest padding is two bytes, so this one has three
        content += _record(_PADDING, b"\0")
        image = _FILESYSTEM + _number(len(content), _LENGTH_BYTES) + content
    return image


def _records(files, data, payload, start):
    """The records of these files; their data go behind `data`, which begins at `start` of the image."""
    records = b""
    for name, content in sorted(files.items()):
        entry = _number(len(name.encode())) + name.encode()
        if isinstance(content, dict):
            records += _record(_DIRECTORY, entry + _records(content, data, payload, start))
            continue
        data += bytes(-(start + len(data)) % ALIGNMENT)
        pointer = _number(len(content)) + _number(start + len(data) - payload)
        data += content
        records += _record(_FILE, entry + _record(_POINTER, pointer))
    return records


def _record(kind, payload):
    return bytes((kind,)) + _number(len(payload)) + payload


def _number(value, count=1):
    """A number in `count` bytes, or as many as it takes."""
    digits = [value & 0x7F]
    while value := value >> 7:
        digits.append(value & 0x7F)
    digits += [0] * (count - len(digits))
    return bytes([digit | 0x80 for digit in reversed(digits[1:])] + digits[:1])
