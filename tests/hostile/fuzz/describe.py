"""Print the description of a target for tools/fuzz.py as JSON, and write its seeds into a folder.

python describe.py file [SEEDS]
"""

import hashlib
import importlib
import json
import sys
from pathlib import Path


def main():
    name, *folders = sys.argv[1:]
    target = importlib.import_module(name)
    print(json.dumps({"seconds": target.SECONDS, "max_length": target.MAX_LENGTH,
                      "bits": getattr(target, "BITS", None), "corpus": getattr(target, "CORPUS", name),
                      "mutates": hasattr(target, "mutate")}))
    for folder in map(Path, folders):
        for data in target.seeds():
            if len(data) <= target.MAX_LENGTH:
                (folder / hashlib.sha1(data).hexdigest()).write_bytes(data)


if __name__ == "__main__":
    main()
