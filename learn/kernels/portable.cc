#define FEDGE_KERNELS portable
#define FEDGE_LANES 4
#include "learn/kernels/body.h"
