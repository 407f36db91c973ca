#include <cstdlib>

#include "sim/ranks/mpi_ranks.h"

namespace fedge::sim {
namespace {

std::size_t number_in(const char* name) {
  const char* const text = std::getenv(name);
  return text == nullptr ? 0 : static_cast<std::size_t>(std::strtoul(text, nullptr, 10));
}

}  // namespace

// Open MPI sets the first, MPICH and Slurm's PMI-2 the second. Slurm's PMIx sets only a rank beside its own
// variables.
Launch launch() {
  for (const char* const name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE"})
    if (const std::size_t processes = number_in(name); processes > 0) return {true, processes};
  if (std::getenv("PMIX_RANK") == nullptr) return {};
  return {true, number_in("SLURM_STEP_NUM_TASKS")};
}

}  // namespace fedge::sim
