"""Define the constants of a .pte file.

Written by tools/generate_schema.py from schema/program.toml.
"""

KERNEL_TYPES_TENSOR = 5

SCALAR_TYPE_NAMES = {
    0: "Byte", 1: "Char", 2: "Short", 3: "Int", 4: "Long", 5: "Half", 6: "Float", 7: "Double",
    8: "ComplexHalf", 9: "ComplexFloat", 10: "ComplexDouble", 11: "Bool", 12: "QInt8", 13: "QUInt8",
    14: "QInt32", 15: "BFloat16", 16: "QUInt4x2", 17: "QUInt2x4", 22: "Bits16", 23: "Float8_e5m2",
    24: "Float8_e4m3fn", 25: "Float8_e5m2fnuz", 26: "Float8_e4m3fnuz", 27: "UInt16", 28: "UInt32",
    29: "UInt64",
}

ERROR_NAMES = {
    0x00: "Ok", 0x01: "Internal", 0x02: "InvalidState", 0x03: "EndOfMethod", 0x04: "AlreadyLoaded",
    0x10: "NotSupported", 0x11: "NotImplemented", 0x12: "InvalidArgument", 0x13: "InvalidType",
    0x14: "OperatorMissing", 0x20: "NotFound", 0x21: "MemoryAllocationFailed", 0x22: "AccessFailed",
    0x23: "InvalidProgram", 0x24: "InvalidExternalData", 0x25: "OutOfResources",
    0x30: "DelegateInvalidCompatibility", 0x31: "DelegateMemoryAllocationFailed",
    0x32: "DelegateInvalidHandle",
}

# What an error of the library is about, by its number
SUBJECTS = (
    "", "program", "method", "method", "method pool", "planned buffer", "temp memory",
    "event tracer", "data file", "a tensor outside the planned memory", "input", "output",
    "attribute", "value", "operator", "", "instruction", "instruction", "delegate", "delegates", "",
    "argument", "tensor", "dtype", "segment", "byte", "constant", "entry", "initial value",
    "external tensor", "named data", "delegate data", "key", "tensor layout", "item", "backend",
    "sizes", "stack", "size of an allocation", "alignment of an allocation", ".ptm file",
)
SUBJECT_METHOD_NAME = 3
SUBJECT_POOL = 4
SUBJECT_INPUT = 10
SUBJECT_ATTRIBUTE = 12
SUBJECT_MISSING_OPERATOR = 15
SUBJECT_KERNEL = 17
SUBJECT_MISSING_BACKEND = 20
SUBJECT_EXTERNAL_TENSOR = 29
SUBJECT_KEY = 32
SUBJECT_PTM = 40
