// Run a model that is linked into the program, without a heap: the int8 keyword spotter ds_cnn.
#include "target.h"
#include <picotorch/picotorch.h>

extern const uint8_t model[], model_end[]; // defined in model.S

// The memories that `picotorch size model.pte` prints.
enum { POOL = 2592, PLANNED = 16000, TEMP = 3784, INPUTS = 490, CLASSES = 12 };
static uint64_t pool[POOL / 8], planned[PLANNED / 8], temp[TEMP / 8];
static float sound[INPUTS];
static pt_method method;

static int classify(const float **scores, pt_error *error) {
    const pt_span buffers[] = {{planned, sizeof(planned), false}};
    const pt_memories memories = {.pool = {pool, sizeof(pool), false},
                                  .planned = buffers,
                                  .n_planned = 1,
                                  .temp = {temp, sizeof(temp), false}};
    const pt_options options = {0};
    static pt_program program;
    pt_method_meta meta;
    pt_value_view output;
    uint32_t size = (uint32_t)(model_end - model);
    PT_TRY(pt_program_open(&program, model, size, PT_VERIFY_STRICT, error));
    PT_TRY(pt_method_meta_find(&meta, &program, "forward", 7, error));
    PT_TRY(pt_load(&method, &meta, &memories, &options, error));
    PT_TRY(pt_set_input(&method, 0, sound, sizeof(sound), error));
    PT_TRY(pt_execute(&method, error));
    PT_TRY(pt_output(&method, 0, &output, error));
    *scores = output.tensor.data;
    return PT_ERROR_OK;
}

int main(void) {
    pt_error error;
    const float *scores;
    for (int i = 0; i < INPUTS; i++) {
        sound[i] = (float)(i % 16 - 8);
    }
    if (classify(&scores, &error)) {
        char text[160];
        pt_error_text(&error, text, sizeof(text));
        say(text);
        return error.code;
    }
    int best = 0;
    for (int i = 1; i < CLASSES; i++) {
        best = scores[i] > scores[best] ? i : best;
    }
    say((char[]){'c', 'l', 'a', 's', 's', ' ', (char)('A' + best), 0});
    return 0;
}
