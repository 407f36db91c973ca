// MpiRanks: ranks that an MPI launcher (mpirun, srun) has started together. One thread makes all MPI calls:
// it sends, receives, adds up, and tells the others every few seconds that this rank lives. A rank that is
// silent for longer is lost, so no wait is endless. Without MPI (FEDGE_WITH_MPI), join() only notices that a
// launcher has started several processes.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "sim/ranks/ranks.h"

namespace fedge::sim {

class MpiRanks : public Ranks {
 public:
  // What this rank has sent and added up.
  struct Traffic {
    std::uint64_t bytes_sent = 0;     // to all others together
    std::uint64_t bytes_reduced = 0;  // numbers of sums, as this rank gave them
    double seconds_reducing = 0;      // from the call of all_reduce() to its return
    double seconds_waiting = 0;       // for messages
  };
  // Joins the ranks that were started with this process; null if it was started alone. A rank that is silent
  // for `patience` is lost. kUnsupported: this program, or its MPI library, cannot join them.
  static Result<std::unique_ptr<MpiRanks>> join(std::chrono::seconds patience);

  virtual Traffic traffic() const = 0;
  // The clean end: waits until all ranks have called it. Afterwards no function may be called. kUnavailable:
  // a rank is lost.
  virtual Result<void> leave() = 0;
  // Ends all ranks at once, with this exit code.
  virtual void end_all(int code) = 0;
};

// What the environment tells about an MPI launcher that has started this process.
struct Launch {
  bool by_launcher = false;
  std::size_t processes = 0;  // 0: unknown
};
Launch launch();

}  // namespace fedge::sim
