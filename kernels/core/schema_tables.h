// The tables of .pte and .ptd files, for the verifier.
// Written by tools/generate_schema.py from schema/program.toml and flat_tensor.toml.

enum {
    TABLE_CONTAINER_METADATA,
    TABLE_NULL,
    TABLE_ALLOCATION_DETAILS,
    TABLE_EXTRA_TENSOR_INFO,
    TABLE_TENSOR,
    TABLE_INT,
    TABLE_BOOL,
    TABLE_DOUBLE,
    TABLE_STRING,
    TABLE_INT_LIST,
    TABLE_DOUBLE_LIST,
    TABLE_BOOL_LIST,
    TABLE_TENSOR_LIST,
    TABLE_OPTIONAL_TENSOR_LIST,
    TABLE_EVALUE,
    TABLE_OPERATOR,
    TABLE_KERNEL_CALL,
    TABLE_DELEGATE_CALL,
    TABLE_MOVE_CALL,
    TABLE_JUMP_FALSE_CALL,
    TABLE_FREE_CALL,
    TABLE_INSTRUCTION,
    TABLE_BACKEND_DELEGATE_DATA_REFERENCE,
    TABLE_COMPILE_SPEC,
    TABLE_BACKEND_DELEGATE,
    TABLE_CHAIN,
    TABLE_NON_CONST_BUFFER_DEVICE,
    TABLE_EXECUTION_PLAN,
    TABLE_BUFFER,
    TABLE_BACKEND_DELEGATE_INLINE_DATA,
    TABLE_DATA_SEGMENT,
    TABLE_SUBSEGMENT_OFFSETS,
    TABLE_NAMED_DATA,
    TABLE_PROGRAM,
    TABLE_FLAT_TENSOR_TENSOR_LAYOUT,
    TABLE_FLAT_TENSOR_DATA_SEGMENT,
    TABLE_FLAT_TENSOR_NAMED_DATA,
    TABLE_FLAT_TENSOR,
    TABLES
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

static const schema_field containermetadata_fields[] = {
    {FIELD_STRING, 0},
    {FIELD_STRING, 0},
};

static const schema_field allocationdetails_fields[] = {
    {FIELD_SCALAR, 4},
    {FIELD_SCALAR, 4},
    {FIELD_SCALAR, 4},
};

static const schema_field extratensorinfo_fields[] = {
    {FIELD_SCALAR, 8},
    {FIELD_STRING, 0},
    {FIELD_SCALAR, 1},
    {FIELD_SCALAR, 1},
    {FIELD_SCALAR, 1},
};

static const schema_field tensor_fields[] = {
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
};

static const schema_field int_fields[] = {
    {FIELD_SCALAR, 8},
};

static const schema_field bool_fields[] = {
    {FIELD_SCALAR, 1},
};

static const schema_field double_fields[] = {
    {FIELD_SCALAR, 8},
};

static const schema_field string_fields[] = {
    {FIELD_STRING, 0},
};

static const schema_field intlist_fields[] = {
    {FIELD_VECTOR, 8},
};

static const schema_field doublelist_fields[] = {
    {FIELD_VECTOR, 8},
};

static const schema_field boollist_fields[] = {
    {FIELD_VECTOR, 1},
};

static const schema_field tensorlist_fields[] = {
    {FIELD_VECTOR, 4},
};

static const schema_field optionaltensorlist_fields[] = {
    {FIELD_VECTOR, 4},
};

static const schema_field evalue_fields[] = {
    {FIELD_SCALAR, 1},
    {FIELD_UNION, UNION_KERNEL_TYPES},
};

static const schema_field operator_fields[] = {
    {FIELD_STRING, 0},
    {FIELD_STRING, 0},
};

static const schema_field kernelcall_fields[] = {
    {FIELD_SCALAR, 4},
    {FIELD_VECTOR, 4},
};

static const schema_field delegatecall_fields[] = {
    {FIELD_SCALAR, 4},
    {FIELD_VECTOR, 4},
};

static const schema_field movecall_fields[] = {
    {FIELD_SCALAR, 4},
    {FIELD_SCALAR, 4},
};

static const schema_field jumpfalsecall_fields[] = {
    {FIELD_SCALAR, 4},
    {FIELD_SCALAR, 4},
};

static const schema_field freecall_fields[] = {
    {FIELD_SCALAR, 4},
};

static const schema_field instruction_fields[] = {
    {FIELD_SCALAR, 1},
    {FIELD_UNION, UNION_INSTRUCTION_ARGUMENTS},
};

static const schema_field backenddelegatedatareference_fields[] = {
    {FIELD_SCALAR, 1},
    {FIELD_SCALAR, 4},
};

static const schema_field compilespec_fields[] = {
    {FIELD_STRING, 0},
    {FIELD_VECTOR, 1},
};

static const schema_field backenddelegate_fields[] = {
    {FIELD_STRING, 0},
    {FIELD_TABLE, TABLE_BACKEND_DELEGATE_DATA_REFERENCE},
    {FIELD_TABLES, TABLE_COMPILE_SPEC},
};

static const schema_field chain_fields[] = {
    {FIELD_VECTOR, 4},
    {FIELD_VECTOR, 4},
    {FIELD_TABLES, TABLE_INSTRUCTION},
    {FIELD_SKIP, 0},
};

static const schema_field nonconstbufferdevice_fields[] = {
    {FIELD_SCALAR, 4},
    {FIELD_SCALAR, 1},
    {FIELD_SCALAR, 1},
};

static const schema_field executionplan_fields[] = {
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
};

static const schema_field buffer_fields[] = {
    {FIELD_VECTOR, 1},
};

static const schema_field backenddelegateinlinedata_fields[] = {
    {FIELD_VECTOR, 1},
};

static const schema_field datasegment_fields[] = {
    {FIELD_SCALAR, 8},
    {FIELD_SCALAR, 8},
};

static const schema_field subsegmentoffsets_fields[] = {
    {FIELD_SCALAR, 4},
    {FIELD_VECTOR, 8},
};

static const schema_field nameddata_fields[] = {
    {FIELD_STRING, 0},
    {FIELD_SCALAR, 4},
};

static const schema_field program_fields[] = {
    {FIELD_SCALAR, 4},
    {FIELD_TABLES, TABLE_EXECUTION_PLAN},
    {FIELD_TABLES, TABLE_BUFFER},
    {FIELD_TABLES, TABLE_BACKEND_DELEGATE_INLINE_DATA},
    {FIELD_TABLES, TABLE_DATA_SEGMENT},
    {FIELD_TABLE, TABLE_SUBSEGMENT_OFFSETS},
    {FIELD_TABLES, TABLE_SUBSEGMENT_OFFSETS},
    {FIELD_TABLES, TABLE_NAMED_DATA},
};

static const schema_field flattensortensorlayout_fields[] = {
    {FIELD_SCALAR, 1},
    {FIELD_VECTOR, 4},
    {FIELD_VECTOR, 1},
};

static const schema_field flattensordatasegment_fields[] = {
    {FIELD_SCALAR, 8},
    {FIELD_SCALAR, 8},
};

static const schema_field flattensornameddata_fields[] = {
    {FIELD_STRING, 0},
    {FIELD_SCALAR, 4},
    {FIELD_TABLE, TABLE_FLAT_TENSOR_TENSOR_LAYOUT},
};

static const schema_field flattensor_fields[] = {
    {FIELD_SCALAR, 4},
    {FIELD_TABLES, TABLE_FLAT_TENSOR_DATA_SEGMENT},
    {FIELD_TABLES, TABLE_FLAT_TENSOR_NAMED_DATA},
};

static const schema_table tables[TABLES] = {
    {containermetadata_fields, 2},
    {0, 0},
    {allocationdetails_fields, 3},
    {extratensorinfo_fields, 5},
    {tensor_fields, 10},
    {int_fields, 1},
    {bool_fields, 1},
    {double_fields, 1},
    {string_fields, 1},
    {intlist_fields, 1},
    {doublelist_fields, 1},
    {boollist_fields, 1},
    {tensorlist_fields, 1},
    {optionaltensorlist_fields, 1},
    {evalue_fields, 2},
    {operator_fields, 2},
    {kernelcall_fields, 2},
    {delegatecall_fields, 2},
    {movecall_fields, 2},
    {jumpfalsecall_fields, 2},
    {freecall_fields, 1},
    {instruction_fields, 2},
    {backenddelegatedatareference_fields, 2},
    {compilespec_fields, 2},
    {backenddelegate_fields, 3},
    {chain_fields, 4},
    {nonconstbufferdevice_fields, 3},
    {executionplan_fields, 10},
    {buffer_fields, 1},
    {backenddelegateinlinedata_fields, 1},
    {datasegment_fields, 2},
    {subsegmentoffsets_fields, 2},
    {nameddata_fields, 2},
    {program_fields, 8},
    {flattensortensorlayout_fields, 3},
    {flattensordatasegment_fields, 2},
    {flattensornameddata_fields, 3},
    {flattensor_fields, 3},
};

// By format of the file
static const uint8_t roots[PT_FORMATS] = {
    [PT_FORMAT_PROGRAM] = TABLE_PROGRAM,
    [PT_FORMAT_FLAT_TENSOR] = TABLE_FLAT_TENSOR,
};
