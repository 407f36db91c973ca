#define FEDGE_KERNELS x86_64_v3
#define FEDGE_LANES 8
#include "learn/kernels/body.h"
