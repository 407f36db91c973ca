#include "sim/ranks/mpi_ranks.h"

namespace fedge::sim {

Result<std::unique_ptr<MpiRanks>> MpiRanks::join(std::chrono::seconds) {
  if (const Launch started = launch(); started.processes > 1)
    return Error{ErrorCode::kUnsupported,
                 "an MPI launcher has started " + std::to_string(started.processes) +
                     " processes, but this program was built without MPI; install an MPI library (Debian: "
                     "libopenmpi-dev, openmpi-bin) and build again with -DFEDGE_WITH_MPI=ON"};
  return std::unique_ptr<MpiRanks>();
}

}  // namespace fedge::sim
