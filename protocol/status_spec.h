// The run file's [status] section: what clients publish about themselves in the directory, for a coordinator
// that chooses among them by it.
#pragma once

#include <string>
#include <vector>

#include "core/config/reader.h"
#include "core/time.h"

namespace fedge::protocol {

enum class LabelReport { kNone, kSets, kDpHistogram };
// As run files call them, in their order.
inline std::vector<std::string> label_reports() { return {"none", "sets", "dp_histogram"}; }

struct StatusSpec {
  Duration every{};  // between two records; 0: nothing is published
  // Of its training data's labels: nothing; which it has; how many samples of each, with Laplace noise of
  // scale 1 / epsilon on every count: epsilon-differentially private for one sample more or less (Dwork,
  // McSherry, Nissim, Smith 2006), drawn once for a run.
  LabelReport labels = LabelReport::kNone;
  double epsilon = 1;

  // How long a record lasts.
  Duration lifetime() const { return 3 * every; }
};

// Reads its section; one that is absent means nothing is published. Errors are left in `root`.
StatusSpec read_status(config::Reader& root);

}  // namespace fedge::protocol
