"""Replace a set of files as one, on file systems whose rename replaces and on FAT, where it does not.

PATH.part is a new file, complete and checked before anything is replaced, and PATH.old the file that it
replaces. A set is named by MAIN, one of its paths. While MAIN.undo is there, the old files count: it
lists the paths, and put_back() returns them their names. Once it is removed, the new files count.

port/natmod/install.py has this text, too.
"""

try:
    import os
except ImportError:  # a firmware without files, on which nothing here is called
    os = None

EEXIST = 17


def replace_all(main, paths):
    """Rename files that were written as .part. Call recover() before they are written.

    Raises OSError; the old files then have their names again, unless the file system refuses these
    renames, too. After an interruption recover() leaves the old files or the new ones, no mixture.
    """
    if len(paths) == 1 and _is_replaced(paths[0]):
        return
    undo = main + ".undo"
    try:
        with open(undo, "w") as file:
            for path in paths:
                file.write(path + "\n")
        for path in paths:
            if is_there(path):
                os.rename(path, path + ".old")
        for path in paths:
            os.rename(path + ".part", path)
        os.remove(undo)
    except OSError:
        put_back(main)
        raise
    for path in paths:
        remove(path + ".old")


def _is_replaced(path):
    """Replace a file by one rename. Return False if the file system, as FAT, does not replace."""
    try:
        os.rename(path + ".part", path)
    except OSError as error:
        if error.args[0] != EEXIST:
            raise
        return False
    return True


def put_back(main):
    """Rename the old files of an unfinished replacement back, if there is one."""
    undo = main + ".undo"
    try:
        with open(undo) as file:
            paths = file.read().split("\n")
    except (OSError, ValueError):
        return
    paths.pop()  # empty, or cut off: then no file was moved yet
    for path in paths:
        if is_there(path + ".old"):
            remove(path)  # a new file, of a set that is not complete
            os.rename(path + ".old", path)
    os.remove(undo)


def recover(main, paths):
    """Put back old files, and remove what a finished replacement or a broken copy has left."""
    put_back(main)
    for path in paths:
        if is_there(path):
            remove(path + ".old")
        remove(path + ".part")


def is_there(path):
    try:
        os.stat(path)
    except OSError:
        return False
    return True


def remove(path):
    try:
        os.remove(path)
    except OSError:
        pass
