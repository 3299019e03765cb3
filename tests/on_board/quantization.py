"""Print scale (the bits of the float32) and zero point of the inputs and outputs of `model`."""

meta = Program.load(BufferDataLoader(sections["model"])).method_meta("forward")


def report(quantization):
    scale, zero_point = quantization
    packed = struct.pack("<f", scale)
    print("%08x %d" % (struct.unpack("<I", packed)[0], zero_point))


for i in range(meta.num_inputs()):
    report(meta.input_quantization(i))
for i in range(meta.num_outputs()):
    report(meta.output_quantization(i))
meta = Program.load(BufferDataLoader(sections["model"])).method_meta("input0_zp")
print(meta.output_quantization(0))
