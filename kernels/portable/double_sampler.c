// Sampling by a grid in float64.
#define PT_SAMPLES_DOUBLES
#include "grid_sampling.h"
