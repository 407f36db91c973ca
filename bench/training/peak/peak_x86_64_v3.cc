#define FEDGE_PEAK peak_x86_64_v3
#define FEDGE_LANES 8
#define FEDGE_CHAINS 12
#include "bench/training/peak/peak_body.h"
