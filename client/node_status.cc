#include "client/node_status.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace fedge::client {
namespace {

// Laplace noise of scale 1.
double laplace(Rng& rng) {
  const double u = rng.uniform() - 0.5;  // in [-0.5, 0.5)
  const double magnitude = -std::log1p(-2 * std::min(std::abs(u), 0.5 - 0x1p-54));
  return u < 0 ? -magnitude : magnitude;
}

}  // namespace

std::vector<double> published_labels(const learn::Task& task, ClientId client,
                                     const protocol::StatusSpec& spec, Rng noise) {
  if (spec.labels == protocol::LabelReport::kNone) return {};
  const std::vector<std::uint64_t> counts = task.label_counts(client);
  std::vector<double> labels(counts.begin(), counts.end());
  for (double& count : labels) {
    if (spec.labels == protocol::LabelReport::kSets)
      count = count > 0 ? 1 : 0;
    else
      count += laplace(noise) / spec.epsilon;
  }
  return labels;
}

NodeRecord describe_node(const ClientEngine::Publish& publish, Figures figures,
                         const protocol::StatusSpec& spec, const std::set<protocol::StatusField>& withheld) {
  using Field = protocol::StatusField;
  const auto is_told = [&](Field field) { return spec.publish.contains(field) && !withheld.contains(field); };
  NodeRecord record;
  // Omit the round in the directory, where everybody can read it; the sequence number orders records there.
  if (spec.via == protocol::StatusSpec::Via::kLink) record.round = publish.round.value();
  if (is_told(Field::kLatency)) record.latency_ms = figures.latency_ms;
  if (is_told(Field::kFreshness) && publish.freshness) record.freshness = to_seconds(*publish.freshness);
  if (is_told(Field::kUtility)) record.utility = figures.utility;
  if (is_told(Field::kAvailability)) record.availability = publish.availability;
  if (is_told(Field::kBattery)) record.battery = figures.battery;
  if (!withheld.contains(Field::kLabels)) record.labels = std::move(figures.labels);
  return record;
}

}  // namespace fedge::client
