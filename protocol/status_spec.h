// The run file's [status] section: what clients publish about themselves, for a coordinator that chooses
// among them by it, and which way. A device's owner may withhold any of it (`fedge-client run --withhold`).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/config/reader.h"
#include "core/time.h"

namespace fedge::protocol {

enum class LabelReport { kNone, kSets, kDpHistogram };
// As run files call them, in their order.
inline std::vector<std::string> label_reports() { return {"none", "sets", "dp_histogram"}; }

// A figure of core/node_record.h that a record may carry.
enum class StatusField { kLatency, kFreshness, kUtility, kAvailability, kLabels };
// As run files and command lines call them, in their order.
inline std::vector<std::string> status_fields() {
  return {"latency", "freshness", "utility", "availability", "labels"};
}
// kInvalid for a text that is none of status_fields(), or comes twice.
Result<std::set<StatusField>> read_status_fields(const std::vector<std::string>& names);

struct StatusSpec {
  // How a record comes to the coordinator.
  enum class Via { kLink, kDirectory };

  Duration every{};  // between two records; 0: nothing is published
  Via via = Via::kLink;
  std::set<StatusField> publish = {StatusField::kLatency};  // besides labels
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
