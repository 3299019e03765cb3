"""Test torchvision's operators: edge cases of its kernels, and errors."""

import numpy as np
import pytest
from support.kernel_call import KernelError, call

NMS, ROI_ALIGN = "torchvision::nms.out", "torchvision::roi_align.out"
NAN = np.nan
BOXES = np.float32([[0, 0, 2, 2], [0, 0, 2, 1], [5, 5, 6, 6]])
IMAGE = np.arange(16, dtype=np.float32).reshape(1, 1, 4, 4)
REGION = np.float32([[0, 1, 1, 3, 3]])


def kept(boxes, scores, maximum, n):
    return call(NMS, np.float32(boxes), np.float32(scores), maximum, np.zeros(n, np.int64)).tolist()


def test_an_overlap_of_the_threshold_stays():
    assert kept(BOXES, [1, 3, 2], 0.5, 3) == [1, 2, 0]
    assert kept(BOXES, [1, 3, 2], 0.49, 2) == [1, 2]


def test_equal_scores_keep_their_order_and_a_nan_is_above_all():
    assert kept(BOXES[[2, 0, 1]], [1, 1, NAN], 1.0, 3) == [2, 0, 1]


def test_boxes_without_an_area_overlap_none():
    assert kept([[1, 1, 1, 1]] * 3, [1, 2, 3], 0.0, 3) == [2, 1, 0]
    assert kept(np.zeros((0, 4)), [], 0.5, 0) == []


@pytest.mark.parametrize("boxes, scores, out, words, stage", [
    (BOXES, np.float32([1, 2, 3]), np.zeros(2, np.int64), "sizes", "run"),
    (BOXES, np.float32([1, 2]), np.zeros(3, np.int64), "a score a box", "check"),
    (BOXES[:, :3], np.float32([1, 2, 3]), np.zeros(3, np.int64), "4 numbers", "check"),
    (BOXES, np.float32([1, 2, 3]), np.zeros(3, np.int32), "int64 of 1 dim", "check"),
    (np.float64(BOXES), np.zeros(3), np.zeros(3, np.int64), "float32 only", "check")])
def test_boxes_are_rejected(boxes, scores, out, words, stage):
    with pytest.raises(KernelError, match=words) as error:
        call(NMS, boxes, scores, 1.0, out)
    assert error.value.stage == stage


def pooled(image, regions, *numbers, sizes=(1, 1, 1, 1)):
    return call(ROI_ALIGN, image, regions, *numbers, np.zeros(sizes, np.float32))


def test_samples_outside_count_as_0():
    """One of four samples lies in the image. Samples less than 1 outside count as the edge."""
    outside = np.float32([[0, -3, -3, 1, 1]])
    assert pooled(IMAGE + 1, outside, 1.0, 1, 1, 2, False).item() == 0.25
    assert pooled(IMAGE + 1, REGION * 0, 1.0, 1, 1, 1, True).item() == 1


def test_the_samples_of_a_bin_follow_from_its_size():
    """If their number is not given, there is a sample for each element of the image."""
    for ratio in (0, -1, 2):
        assert pooled(IMAGE, REGION, 1.0, 1, 1, ratio, True).item() == IMAGE[0, 0, 1:3, 1:3].mean()


@pytest.mark.parametrize("image, regions, numbers, words", [
    (IMAGE, np.float32([[1, 0, 0, 1, 1]]), (1.0, 1, 1, 1, True), "an image that is not there"),
    (IMAGE, np.float32([[-1, 0, 0, 1, 1]]), (1.0, 1, 1, 1, True), "an image that is not there"),
    (IMAGE, np.float32([[NAN, 0, 0, 1, 1]]), (1.0, 1, 1, 1, True), "an image that is not there"),
    (IMAGE[:0], REGION, (1.0, 1, 1, 1, True), "an image that is not there"),
    (IMAGE, REGION * 1e9, (1.0, 1, 1, 0, True), "too many samples"),
    (IMAGE, REGION, (NAN, 1, 1, 0, True), "too many samples"),
    (IMAGE, REGION, (1.0, 1, 1, 1 << 40, True), "too many samples"),
    (IMAGE, REGION, (1.0, 0, 1, 1, True), "the pooled sizes"),
    (IMAGE[0], REGION, (1.0, 1, 1, 1, True), "4 dims"),
    (np.float64(IMAGE), REGION, (1.0, 1, 1, 1, True), "float32 only")])
def test_regions_are_rejected(image, regions, numbers, words):
    with pytest.raises(KernelError, match=words):
        pooled(image, regions, *numbers)
