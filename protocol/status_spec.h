// The run file's [status] section: what clients publish about themselves, for samplers that use it, and
// over which channel. A device's owner may withhold any of it (`fedge-client run --withhold`).
#pragma once

#include <set>
#include <string>
#include <vector>

#include "core/config/reader.h"
#include "core/time.h"

namespace fedge::protocol {

enum class LabelReport { kNone, kSets, kDpHistogram };
// Names in run files, in the order of the enum.
inline std::vector<std::string> label_reports() { return {"none", "sets", "dp_histogram"}; }

// A field of core/node_record.h that a record may contain.
enum class StatusField { kLatency, kFreshness, kUtility, kAvailability, kLabels, kBattery };
// Names in run files and on command lines, in the order of the enum.
inline std::vector<std::string> status_fields() {
  return {"latency", "freshness", "utility", "availability", "labels", "battery"};
}
// kInvalid for a text that is not in status_fields() or occurs twice.
Result<std::set<StatusField>> read_status_fields(const std::vector<std::string>& names);

struct StatusSpec {
  // How a record reaches the coordinator.
  enum class Via { kLink, kDirectory };

  Duration every{};  // interval between records; 0: nothing is published
  Via via = Via::kLink;
  std::set<StatusField> publish = {StatusField::kLatency};  // in addition to labels
  // What to publish about the labels of the training data: nothing; which labels occur; or the count of
  // each, with Laplace noise of scale 1 / epsilon. The counts are epsilon-differentially private for one
  // sample more or less (Dwork, McSherry, Nissim, Smith 2006). The noise is drawn once for a run.
  LabelReport labels = LabelReport::kNone;
  double epsilon = 1;
  // Whether clients describe the energy of their work with their answer to the run.
  bool power = false;

  // How long a record is valid.
  Duration lifetime() const { return 3 * every; }
};

// Reads its section; if it is absent, nothing is published. Errors are collected in `root`.
StatusSpec read_status(config::Reader& root);

}  // namespace fedge::protocol
