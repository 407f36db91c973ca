#define FEDGE_KERNELS x86_64_v4
#define FEDGE_LANES 16
#include "learn/kernels/body.h"
