"""Test files of arrays that unpack to more bytes than their reader needs."""

import io
import tracemalloc
import zipfile

import numpy as np
import pytest
from picotorch import Error
from picotorch.host.inputs import checked_inputs
from picotorch.host.npz import SPARE, read_npz
from picotorch.host.twin import open_program
from picotorch.memory import LIMIT
from support import fixture_store
from support.calling import assert_error

pytestmark = pytest.mark.check

MODEL = fixture_store.load("add_5").path  # has an input of 5 floats
LARGE = 1 << 26  # bytes, which deflate compresses to a thousandth


def packed(arrays, compression=zipfile.ZIP_DEFLATED):
    """Return the bytes of an .npz file of arrays, or of bytes of members."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, array in arrays.items():
            member = io.BytesIO()
            np.save(member, array)
            archive.writestr(f"{name}.npy", array if isinstance(array, bytes) else member.getvalue())
    return file.getvalue()


def with_smaller_stated_size(data, size):
    """Change the directory of a file to state a smaller size of its only member."""
    data = bytearray(data)
    at = data.rfind(b"PK\1\2") + 24
    data[at : at + 4] = size.to_bytes(4, "little")
    return bytes(data)


def header(shape):
    """Make the header of an .npy file of floats."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f4", "fortran_order": False, "shape": shape})
    return file.getvalue()


@pytest.fixture(scope="module")
def large():
    return packed({"in0": np.zeros(LARGE // 4, np.float32)})


@pytest.fixture
def refused(call, tmp_path):
    """Assert that the command line rejects these inputs with these words."""
    def check(data, *words, command=("run", MODEL)):
        path = tmp_path / "in.npz"
        path.write_bytes(data)
        assert_error(call(*command, "--inputs", path), "InvalidArgument", *words)
    return check


@pytest.fixture
def unpacked(tmp_path):
    """Return a check of a file with an input that should have 20 bytes: it is rejected with these
    words. The check returns the maximum of bytes that the rejection allocates."""
    def check(data, words):
        path = tmp_path / "in.npz"
        path.write_bytes(data)
        tracemalloc.start()
        with pytest.raises(Error, match=words):
            read_npz(path, [20])
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return peak
    return check


def test_an_archive_larger_than_the_inputs_is_rejected(refused, large):
    assert len(large) < LARGE // 500
    words = f"unpacks to {LARGE + 128}B, {20 + 1024 + SPARE}B at most expected"
    for command in ("run", "profile", "parity"):
        refused(large, words, command=(command, MODEL))
    refused(large, f"{40 + 1024 + SPARE}B at most expected", command=("run", MODEL, "--quantize"))


def test_many_arrays_count_together(refused):
    arrays = {f"in{i}": np.zeros(SPARE // 8, np.float32) for i in range(4)}
    refused(packed(arrays), "unpacks to")


def test_it_is_rejected_before_it_is_unpacked(unpacked, large):
    assert unpacked(large, "unpacks to") < LARGE // 8


def test_no_more_is_unpacked_than_the_directory_says(unpacked, large):
    assert unpacked(with_smaller_stated_size(large, 148), "is not an .npz file") < LARGE // 8


def test_a_header_with_a_huge_size_allocates_no_memory(unpacked):
    assert unpacked(packed({"in0": header((LARGE,)) + bytes(20)}), "is not an .npz file") < LARGE // 8


def test_archives_that_unpack_to_too_much_are_rejected(refused):
    for compression in (zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        data = packed({"in0": np.zeros(5, np.float32)}, compression)
        refused(data, "is packed in another way than numpy.savez packs")


def test_expected_outputs_beside_a_model_are_held_too(call, tmp_path):
    fixture = MODEL.parent
    for name in ("model.pte", "inputs.npz"):
        (tmp_path / name).write_bytes((fixture / name).read_bytes())
    (tmp_path / "expected.npz").write_bytes(packed({"out0": np.zeros(LARGE // 4, np.float32)}))
    assert_error(call("parity", tmp_path / "model.pte"), "InvalidArgument", "expected.npz: unpacks to")


def test_example_inputs_of_torchscript_have_a_limit(tmp_path):
    """No program states the size of these inputs."""
    (tmp_path / "in.npz").write_bytes(packed({"in0": np.zeros(LIMIT // 4 + SPARE, np.float32)}))
    with pytest.raises(Error, match=f"{LIMIT + 1024 + SPARE}B at most expected"):
        read_npz(tmp_path / "in.npz", [LIMIT])


def test_arrays_as_numpy_writes_them(tmp_path):
    arrays = [np.arange(6, dtype=np.int16).reshape(2, 3).T, np.float64(3), np.zeros((0, 2), bool)]
    for save in (np.savez, np.savez_compressed):
        save(tmp_path / "in.npz", **{f"in{i}": array for i, array in enumerate(arrays)})
        for array, read in zip(arrays, read_npz(tmp_path / "in.npz", [0]), strict=True):
            np.testing.assert_array_equal(array, read, strict=True)


class OfTorch:
    """Stand in for a tensor of torch with dtype bfloat16."""

    dtype = "torch.bfloat16"

    def detach(self):
        return self

    cpu = detach


@pytest.mark.parametrize("quantize", [False, True])
def test_bfloat16_for_another_dtype(quantize):
    """The error names both dtypes, also if floats become integers."""
    meta = open_program(MODEL.read_bytes()).method_meta("forward")
    with pytest.raises(Error, match="Float expected, bfloat16 given"):
        checked_inputs(meta, [OfTorch()], quantize)
