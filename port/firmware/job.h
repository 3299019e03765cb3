/* The job, which the host writes to memory before boot: model, inputs, settings, script. */

#ifndef PT_JOB_H
#define PT_JOB_H

#include <stddef.h>
#include <stdint.h>

/* Returns the job, and its size in *size; NULL if there is no valid job. */
const uint8_t *pt_job(size_t *size);

#endif
