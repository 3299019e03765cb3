"""Where the data of a program's external tensors lies: a search in its data files, without a heap."""

from .errors import INVALID_EXTERNAL_DATA, INVALID_STATE, NOT_FOUND, NOT_SUPPORTED, fail
from .memory import misplaced
from .schema import EXTRA_TENSOR_INFO_FULLY_QUALIFIED_NAME

_NO_FILES = ()
_MOST_VISITS = 1 << 20  # keys that all searches look at
_REMEDY = "take the .ptd file that was exported with the program"


class ExternalTensors:
    """One is made with each MethodLoader. `find` leaves what it found in `file` and `position`."""

    def __init__(self):
        self.files = _NO_FILES
        self.program = None
        self.name = 0  # of the tensor that is looked for
        self.visits = 0
        self.file = -1
        self.position = 0

    def start(self, program, data_map):
        """data_map: a FlatTensorDataMap or MergedDataMap, None where the program stands alone."""
        self.program = program
        self.files = _NO_FILES if data_map is None else data_map.files
        self.start_again()

    def start_again(self):
        """The searches of a load, or of a reset, count together. They begin at the first keys, so that
        a key that a file has twice leads to the same data each time."""
        self.visits = 0
        for file in self.files:
            file.next_key = 0

    def find(self, extra, dtype, sizes, order, nbytes, constant):
        """Sets `file` (its number) and `position` (in it) for a tensor with this ExtraTensorInfo.

        sizes, order: positions of its vectors in the program. constant: it is used where it lies.
        Raises NotFound, InvalidExternalData, InvalidState.
        """
        self.name = self.program.reader.table(extra, EXTRA_TENSOR_INFO_FULLY_QUALIFIED_NAME)
        if not self.name:
            raise self._bad("has no name")
        key = self._search(constant)
        file = self.files[self.file]
        self._check_layout(file, file.layout(key), dtype, sizes, order)
        if file.size(key) < nbytes:
            raise self._bad("", nbytes, file.size(key))
        self.position = file.position(key)
        if constant and misplaced(self.position, dtype):
            raise self._bad("has its data at no multiple of 4" if self.position & 3
                            else "has its data at no multiple of 8")

    def _search(self, constant):
        """Index of the key in file number `self.file`."""
        reader = self.program.reader
        self.file = -1
        for i in range(len(self.files)):
            key = self.files[i].find(reader, self.name)
            self.visits += self.files[i].visited
            if self.visits > _MOST_VISITS:
                raise fail(NOT_SUPPORTED, "so many keys for so many tensors", "external tensor",
                           source=self)
            if key >= 0:
                self.file = i
                return key
        if self.files:
            raise fail(NOT_FOUND, "no data file has this key", "external tensor", source=self,
                       remedy=_REMEDY)
        raise fail(INVALID_STATE if constant else INVALID_EXTERNAL_DATA, "no data file was given",
                   "external tensor", source=self, remedy="give its .ptd file")

    def _check_layout(self, file, layout, dtype, sizes, order):
        if not layout:
            raise self._bad("is no tensor in the data file")
        if file.layout_dtype(layout) != dtype:
            raise self._bad("has another dtype in the data file")
        own = self.program.reader
        if not own.same_items(sizes, 4, file.reader, file.layout_sizes(layout)):
            raise self._bad("has other sizes in the data file")
        if not own.same_items(order, 1, file.reader, file.layout_dim_order(layout)):
            raise self._bad("has another dim order in the data file")

    def _bad(self, what, requested=-1, available=-1):
        return fail(INVALID_EXTERNAL_DATA, what, "external tensor", -1, requested, available,
                    remedy=_REMEDY, source=self)

    def explain(self, error):
        """The name of the tensor, and of the file that it was found in."""
        name = self.program.string(self.name)
        file = self.files[self.file].loader.explain(error) if self.file >= 0 else ""
        return "%s in %s" % (name, file) if file else name
