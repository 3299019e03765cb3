    .section .rodata.model, "a"
    .balign 16
    .global model, model_end
model:
    .incbin MODEL
model_end:
#ifdef __linux__
    .section .note.GNU-stack, "", %progbits
#endif
