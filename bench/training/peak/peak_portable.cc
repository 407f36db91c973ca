#define FEDGE_PEAK peak_portable
#define FEDGE_LANES 4
#define FEDGE_CHAINS 12
#include "bench/training/peak/peak_body.h"
