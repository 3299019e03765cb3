/* Format: host/picotorch/run/job.py. This file reads only the header. */

#include "job.h"

#include "board.h"

#define JOB_MAGIC 0x424a5450u /* "PTJB" */
#define JOB_VERSION 1u

typedef struct {
    uint32_t magic;
    uint32_t version;
    uint32_t size;
    uint32_t section_count;
} job_header;

const uint8_t *pt_job(size_t *size) {
    const volatile job_header *header = (const volatile job_header *)PT_JOB_ADDRESS;
    if (header->magic != JOB_MAGIC || header->version != JOB_VERSION ||
        header->size < sizeof(*header) || header->size > PT_JOB_SIZE) {
        return NULL;
    }
    *size = header->size;
    return (const uint8_t *)PT_JOB_ADDRESS;
}
