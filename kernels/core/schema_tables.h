// The tables of .pte and .ptd files, for the verifier.
// Written by tools/generate_schema.py from schema/program.toml and flat_tensor.toml.

// Where a table begins in `fields`
enum {
    TABLE_CONTAINER_METADATA = 0,
    TABLE_NULL = 3,
    TABLE_ALLOCATION_DETAILS = 4,
    TABLE_EXTRA_TENSOR_INFO = 8,
    TABLE_TENSOR = 14,
    TABLE_INT = 25,
    TABLE_BOOL = 27,
    TABLE_DOUBLE = 29,
    TABLE_STRING = 31,
    TABLE_INT_LIST = 33,
    TABLE_DOUBLE_LIST = 35,
    TABLE_BOOL_LIST = 37,
    TABLE_TENSOR_LIST = 39,
    TABLE_OPTIONAL_TENSOR_LIST = 41,
    TABLE_EVALUE = 43,
    TABLE_OPERATOR = 46,
    TABLE_KERNEL_CALL = 49,
    TABLE_DELEGATE_CALL = 52,
    TABLE_MOVE_CALL = 55,
    TABLE_JUMP_FALSE_CALL = 58,
    TABLE_FREE_CALL = 61,
    TABLE_INSTRUCTION = 63,
    TABLE_BACKEND_DELEGATE_DATA_REFERENCE = 66,
    TABLE_COMPILE_SPEC = 69,
    TABLE_BACKEND_DELEGATE = 72,
    TABLE_CHAIN = 76,
    TABLE_NON_CONST_BUFFER_DEVICE = 81,
    TABLE_EXECUTION_PLAN = 85,
    TABLE_BUFFER = 96,
    TABLE_BACKEND_DELEGATE_INLINE_DATA = 98,
    TABLE_DATA_SEGMENT = 100,
    TABLE_SUBSEGMENT_OFFSETS = 103,
    TABLE_NAMED_DATA = 106,
    TABLE_PROGRAM = 109,
    TABLE_FLAT_TENSOR_TENSOR_LAYOUT = 118,
    TABLE_FLAT_TENSOR_DATA_SEGMENT = 122,
    TABLE_FLAT_TENSOR_NAMED_DATA = 125,
    TABLE_FLAT_TENSOR = 129,
};

static const uint8_t kerneltypes_members[] = {
    TABLE_NULL,
    TABLE_INT,
    TABLE_BOOL,
    TABLE_DOUBLE,
    TABLE_TENSOR,
    TABLE_STRING,
    TABLE_INT_LIST,
    TABLE_DOUBLE_LIST,
    TABLE_BOOL_LIST,
    TABLE_TENSOR_LIST,
    TABLE_OPTIONAL_TENSOR_LIST,
};

static const uint8_t instructionarguments_members[] = {
    TABLE_KERNEL_CALL,
    TABLE_DELEGATE_CALL,
    TABLE_MOVE_CALL,
    TABLE_JUMP_FALSE_CALL,
    TABLE_FREE_CALL,
};

enum {
    UNION_KERNEL_TYPES,
    UNION_INSTRUCTION_ARGUMENTS,
};

static const schema_union unions[] = {
    {kerneltypes_members, 11},
    {instructionarguments_members, 5},
};

// The number of fields of each table, then these
static const schema_field fields[] = {
    {2, 0}, // ContainerMetadata
    {FIELD_STRING, 0},
    {FIELD_STRING, 0},
    {0, 0}, // Null
    {3, 0}, // AllocationDetails
    {FIELD_SCALAR, 4},
    {FIELD_SCALAR, 4},
    {FIELD_SCALAR, 4},
    {5, 0}, // ExtraTensorInfo
    {FIELD_SCALAR, 8},
    {FIELD_STRING, 0},
    {FIELD_SCALAR, 1},
    {FIELD_SCALAR, 1},
    {FIELD_SCALAR, 1},
    {10, 0}, // Tensor
    {FIELD_SCALAR, 1},
    {FIELD_SCALAR, 4},
    {FIELD_VECTOR, 4},
    {FIELD_VECTOR, 1},
    {FIELD_SCALAR, 1},
    {FIELD_SCALAR, 4},
    {FIELD_TABLE, TABLE_ALLOCATION_DETAILS},
    {FIELD_SCALAR, 1},
    {FIELD_SCALAR, 1},
    {FIELD_TABLE, TABLE_EXTRA_TENSOR_INFO},
    {1, 0}, // Int
    {FIELD_SCALAR, 8},
    {1, 0}, // Bool
    {FIELD_SCALAR, 1},
    {1, 0}, // Double
    {FIELD_SCALAR, 8},
    {1, 0}, // String
    {FIELD_STRING, 0},
    {1, 0}, // IntList
    {FIELD_VECTOR, 8},
    {1, 0}, // DoubleList
    {FIELD_VECTOR, 8},
    {1, 0}, // BoolList
    {FIELD_VECTOR, 1},
    {1, 0}, // TensorList
    {FIELD_VECTOR, 4},
    {1, 0}, // OptionalTensorList
    {FIELD_VECTOR, 4},
    {2, 0}, // EValue
    {FIELD_SCALAR, 1},
    {FIELD_UNION, UNION_KERNEL_TYPES},
    {2, 0}, // Operator
    {FIELD_STRING, 0},
    {FIELD_STRING, 0},
    {2, 0}, // KernelCall
    {FIELD_SCALAR, 4},
    {FIELD_VECTOR, 4},
    {2, 0}, // DelegateCall
    {FIELD_SCALAR, 4},
    {FIELD_VECTOR, 4},
    {2, 0}, // MoveCall
    {FIELD_SCALAR, 4},
    {FIELD_SCALAR, 4},
    {2, 0}, // JumpFalseCall
    {FIELD_SCALAR, 4},
    {FIELD_SCALAR, 4},
    {1, 0}, // FreeCall
    {FIELD_SCALAR, 4},
    {2, 0}, // Instruction
    {FIELD_SCALAR, 1},
    {FIELD_UNION, UNION_INSTRUCTION_ARGUMENTS},
    {2, 0}, // BackendDelegateDataReference
    {FIELD_SCALAR, 1},
    {FIELD_SCALAR, 4},
    {2, 0}, // CompileSpec
    {FIELD_STRING, 0},
    {FIELD_VECTOR, 1},
    {3, 0}, // BackendDelegate
    {FIELD_STRING, 0},
    {FIELD_TABLE, TABLE_BACKEND_DELEGATE_DATA_REFERENCE},
    {FIELD_TABLES, TABLE_COMPILE_SPEC},
    {4, 0}, // Chain
    {FIELD_VECTOR, 4},
    {FIELD_VECTOR, 4},
    {FIELD_TABLES, TABLE_INSTRUCTION},
    {FIELD_SKIP, 0},
    {3, 0}, // NonConstBufferDevice
    {FIELD_SCALAR, 4},
    {FIELD_SCALAR, 1},
    {FIELD_SCALAR, 1},
    {10, 0}, // ExecutionPlan
    {FIELD_STRING, 0},
    {FIELD_TABLE, TABLE_CONTAINER_METADATA},
    {FIELD_TABLES, TABLE_EVALUE},
    {FIELD_VECTOR, 4},
    {FIELD_VECTOR, 4},
    {FIELD_TABLES, TABLE_CHAIN},
    {FIELD_TABLES, TABLE_OPERATOR},
    {FIELD_TABLES, TABLE_BACKEND_DELEGATE},
    {FIELD_VECTOR, 8},
    {FIELD_TABLES, TABLE_NON_CONST_BUFFER_DEVICE},
    {1, 0}, // Buffer
    {FIELD_VECTOR, 1},
    {1, 0}, // BackendDelegateInlineData
    {FIELD_VECTOR, 1},
    {2, 0}, // DataSegment
    {FIELD_SCALAR, 8},
    {FIELD_SCALAR, 8},
    {2, 0}, // SubsegmentOffsets
    {FIELD_SCALAR, 4},
    {FIELD_VECTOR, 8},
    {2, 0}, // NamedData
    {FIELD_STRING, 0},
    {FIELD_SCALAR, 4},
    {8, 0}, // Program
    {FIELD_SCALAR, 4},
    {FIELD_TABLES, TABLE_EXECUTION_PLAN},
    {FIELD_TABLES, TABLE_BUFFER},
    {FIELD_TABLES, TABLE_BACKEND_DELEGATE_INLINE_DATA},
    {FIELD_TABLES, TABLE_DATA_SEGMENT},
    {FIELD_TABLE, TABLE_SUBSEGMENT_OFFSETS},
    {FIELD_TABLES, TABLE_SUBSEGMENT_OFFSETS},
    {FIELD_TABLES, TABLE_NAMED_DATA},
    {3, 0}, // FlatTensorTensorLayout
    {FIELD_SCALAR, 1},
    {FIELD_VECTOR, 4},
    {FIELD_VECTOR, 1},
    {2, 0}, // FlatTensorDataSegment
    {FIELD_SCALAR, 8},
    {FIELD_SCALAR, 8},
    {3, 0}, // FlatTensorNamedData
    {FIELD_STRING, 0},
    {FIELD_SCALAR, 4},
    {FIELD_TABLE, TABLE_FLAT_TENSOR_TENSOR_LAYOUT},
    {3, 0}, // FlatTensor
    {FIELD_SCALAR, 4},
    {FIELD_TABLES, TABLE_FLAT_TENSOR_DATA_SEGMENT},
    {FIELD_TABLES, TABLE_FLAT_TENSOR_NAMED_DATA},
};

// By format of the file
static const uint8_t roots[PT_FORMATS] = {
    [PT_FORMAT_PROGRAM] = TABLE_PROGRAM,
    [PT_FORMAT_FLAT_TENSOR] = TABLE_FLAT_TENSOR,
};
