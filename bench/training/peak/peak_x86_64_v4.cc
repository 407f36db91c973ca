#define FEDGE_PEAK peak_x86_64_v4
#define FEDGE_LANES 16
#define FEDGE_CHAINS 12
#include "bench/training/peak/peak_body.h"
