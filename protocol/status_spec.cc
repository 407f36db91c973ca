#include "protocol/status_spec.h"

#include <algorithm>

namespace fedge::protocol {
namespace {

constexpr Duration kLeastInDirectory = std::chrono::seconds{1};
constexpr Duration kMostInDirectory = std::chrono::hours{8};

}  // namespace

Result<std::set<StatusField>> read_status_fields(const std::vector<std::string>& names) {
  const std::vector<std::string> known = status_fields();
  std::set<StatusField> fields;
  for (const std::string& name : names) {
    const auto found = std::find(known.begin(), known.end(), name);
    if (found == known.end())
      return invalid("'" + name +
                     "' is not one of latency, freshness, utility, availability, labels, battery");
    if (!fields.insert(static_cast<StatusField>(found - known.begin())).second)
      return invalid("'" + name + "' is listed twice");
  }
  return fields;
}

StatusSpec read_status(config::Reader& root) {
  StatusSpec spec;
  config::Reader section = root.section("status");
  spec.every =
      seconds(section.number("every_seconds", 0, {0, 1e6},
                             "Seconds between two status records of a client. Samplers use these records. 0: "
                             "no records. With sampling.kind = \"aw_psp\" the default is 10."));
  spec.via = static_cast<StatusSpec::Via>(
      section.choice("via", {"link", "directory"}, 0,
                     "How status records reach the coordinator.\nlink: over the connection of the "
                     "client.\ndirectory: signed, through the distributed directory. The coordinator and the "
                     "clients must take part in it (see their own configuration)."));
  const auto fields = read_status_fields(section.texts(
      "publish", std::vector<std::string>{"latency"},
      "Fields of a status record, besides labels. A device may withhold each field. Samplers use only "
      "latency, labels and battery. With sampling.kind = \"energy_aware\" the default is "
      "[\"battery\"].\nlatency: round-trip time to the coordinator.\nfreshness: seconds since the "
      "client last trained.\nutility: number of samples times root mean square loss of the last "
      "training.\navailability: fraction of the time during which the client was connected.\nbattery: level "
      "of the device's battery, 1 if it has none."));
  if (!fields)
    section.fail("publish", fields.error().message);
  else if (fields->contains(StatusField::kLabels))
    section.fail("publish", "must not contain \"labels\"; set status.labels instead");
  else
    spec.publish = *fields;
  spec.labels = static_cast<LabelReport>(
      section.choice("labels", label_reports(), 0,
                     "What a status record contains about labels. If not set, sampling.labels applies; if "
                     "both are set, they must be equal.\nnone: nothing.\nsets: which labels the client "
                     "has.\ndp_histogram: how many samples of each label the client has, with noise."));
  spec.epsilon =
      section.number("epsilon", spec.epsilon, {1e-3, 1e3},
                     "dp_histogram: privacy parameter. The counts have Laplace noise of scale 1 / epsilon.");
  spec.power = section.boolean(
      "power", false,
      "Whether clients describe the energy of their work, if their owners have (fedge-client run --power). "
      "Planners that need it set this.");
  if (section.has("epsilon") && spec.labels != LabelReport::kDpHistogram)
    section.fail("epsilon", "has no effect without labels = \"dp_histogram\"",
                 {"status.labels", "sampling.labels", "sampling.kind"});
  if (spec.via == StatusSpec::Via::kDirectory && spec.every != Duration{} &&
      (spec.every < kLeastInDirectory || spec.every > kMostInDirectory))
    section.fail("every_seconds",
                 "must be 1 to 28800 with via = \"directory\", because a record expires after three periods, "
                 "and no record may live longer than one day",
                 {"status.via"});
  root.adopt(section);
  return spec;
}

}  // namespace fedge::protocol
