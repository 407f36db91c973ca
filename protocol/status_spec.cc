#include "protocol/status_spec.h"

namespace fedge::protocol {

StatusSpec read_status(config::Reader& root) {
  StatusSpec spec;
  config::Reader section = root.section("status");
  spec.every = seconds(section.number(
      "every_seconds", 0, {0, 1e6},
      "How often a client publishes a record of itself (latency, and what labels says), for the samplers "
      "that go by it; 0: never. With sampling.kind = \"aw_psp\" 10 if left out."));
  spec.labels = static_cast<LabelReport>(section.choice(
      "labels", label_reports(), 0,
      "What the record says of the client's labels. none: nothing; sets: which it has; "
      "dp_histogram: how many samples of each, with noise. sampling.labels sets it where it is left out, and "
      "must say the same."));
  spec.epsilon = section.number("epsilon", spec.epsilon, {1e-3, 1e3},
                                "dp_histogram: the counts carry Laplace noise of scale 1 / epsilon.");
  if (section.has("epsilon") && spec.labels != LabelReport::kDpHistogram)
    section.fail("epsilon", "has no effect without labels = \"dp_histogram\"");
  root.adopt(section);
  return spec;
}

}  // namespace fedge::protocol
