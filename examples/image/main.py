"""Recognize a digit of 28x28 gray pixels."""

from picotorch import Module

SIZE = 28


def recorded(path):
    """Yield the images of a PGM file, which contains one below the other."""
    with open(path, "rb") as file:
        for _ in range(3):
            file.readline()
        image = bytearray(SIZE * SIZE)
        while file.readinto(image):
            yield image


module = Module("model.pte")
for number, image in enumerate(recorded("recording.pgm")):  # or the frames of your camera
    chances = module.forward(image)
    digit = max(range(10), key=lambda i: chances[i])
    print("image %d: %d  %3d %%" % (number, digit, 100 * chances[digit]))
