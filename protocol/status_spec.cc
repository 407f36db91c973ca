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
      return invalid("'" + name + "' is none of latency, freshness, utility, availability, labels");
    if (!fields.insert(static_cast<StatusField>(found - known.begin())).second)
      return invalid("'" + name + "' comes twice");
  }
  return fields;
}

StatusSpec read_status(config::Reader& root) {
  StatusSpec spec;
  config::Reader section = root.section("status");
  spec.every = seconds(section.number(
      "every_seconds", 0, {0, 1e6},
      "How often a client publishes a record of itself (latency, and what labels says), for the samplers "
      "that go by it; 0: never. With sampling.kind = \"aw_psp\" 10 if left out."));
  spec.via = static_cast<StatusSpec::Via>(section.choice(
      "via", {"link", "directory"}, 0,
      "How records come to the coordinator. link: over the client's connection; directory: signed, through "
      "the distributed directory, which coordinator and clients must then take part in (their own "
      "configuration says how)."));
  const auto fields = read_status_fields(section.texts(
      "publish", std::vector<std::string>{"latency"},
      "What a record says besides labels: latency (to the coordinator and back), freshness (seconds since "
      "the client last trained), utility (samples times root mean square loss of its last training), "
      "availability (share of the time that it has been connected). A device may withhold each. Samplers "
      "go by latency and labels alone: the rest they know better themselves."));
  if (!fields)
    section.fail("publish", fields.error().message);
  else if (fields->contains(StatusField::kLabels))
    section.fail("publish", "says nothing of labels: status.labels does");
  else
    spec.publish = *fields;
  spec.labels = static_cast<LabelReport>(section.choice(
      "labels", label_reports(), 0,
      "What the record says of the client's labels. none: nothing; sets: which it has; "
      "dp_histogram: how many samples of each, with noise. sampling.labels sets it where it is left out, and "
      "must say the same."));
  spec.epsilon = section.number("epsilon", spec.epsilon, {1e-3, 1e3},
                                "dp_histogram: the counts carry Laplace noise of scale 1 / epsilon.");
  if (section.has("epsilon") && spec.labels != LabelReport::kDpHistogram)
    section.fail("epsilon", "has no effect without labels = \"dp_histogram\"");
  if (spec.via == StatusSpec::Via::kDirectory && spec.every != Duration{} &&
      (spec.every < kLeastInDirectory || spec.every > kMostInDirectory))
    section.fail("every_seconds",
                 "must be 1 to 28800 with via = \"directory\": records are kept for minutes, "
                 "and last three periods, a day at most");
  root.adopt(section);
  return spec;
}

}  // namespace fedge::protocol
