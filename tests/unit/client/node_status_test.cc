#include "client/node_status.h"

#include <doctest/doctest.h>

#include <cmath>
#include <vector>

#include "tests/support/tiny_dataset.h"

namespace fedge::client {
namespace {

std::shared_ptr<const learn::Task> make_task(const test::TemporaryDirectory& data) {
  test::write_tiny_dataset(data);
  learn::TaskSpec spec;
  spec.data.directory = data.path().string();
  spec.data.partition.kind = learn::PartitionKind::kPathological;
  spec.data.partition.clients = 10;
  spec.data.partition.classes_per_client = 2;
  const auto task = learn::Task::build(spec, 5);
  REQUIRE_MESSAGE(task, task.error().message);
  return *task;
}

std::vector<double> counts(const learn::Task& task, ClientId client) {
  std::vector<double> result(task.data().classes, 0);
  for (const std::uint32_t sample : task.samples_of(client)) ++result[task.data().labels[sample]];
  return result;
}

}  // namespace

TEST_CASE("labels: nothing is said unless the run asks") {
  const test::TemporaryDirectory data;
  const auto task = make_task(data);
  CHECK(published_labels(*task, ClientId(3), {}, Rng(1)).empty());
}

TEST_CASE("labels: sets tell which there are, and not how many") {
  const test::TemporaryDirectory data;
  const auto task = make_task(data);
  const auto sets = published_labels(*task, ClientId(3), {.labels = protocol::LabelReport::kSets}, Rng(1));
  const auto held = counts(*task, ClientId(3));
  REQUIRE(sets.size() == 10);
  double labels = 0;
  for (std::size_t i = 0; i < 10; ++i) {
    CHECK(sets[i] == (held[i] > 0 ? 1 : 0));
    labels += sets[i];
  }
  CHECK(labels == 2);
}

TEST_CASE("labels: a noisy histogram is the counts with Laplace noise of scale 1 / epsilon") {
  const test::TemporaryDirectory data;
  const auto task = make_task(data);
  const protocol::StatusSpec spec{.labels = protocol::LabelReport::kDpHistogram, .epsilon = 0.5};
  const auto held = counts(*task, ClientId(3));
  CHECK(published_labels(*task, ClientId(3), spec, Rng(1)) ==
        published_labels(*task, ClientId(3), spec, Rng(1)));
  CHECK(published_labels(*task, ClientId(3), spec, Rng(1)) !=
        published_labels(*task, ClientId(3), spec, Rng(2)));
  // Laplace with scale b = 2: mean 0, mean magnitude b, median magnitude b ln 2; 20,000 draws.
  double sum = 0;
  double size = 0;
  double below_median = 0;
  constexpr int kDraws = 2000;
  for (int i = 0; i < kDraws; ++i) {
    const auto noisy = published_labels(*task, ClientId(3), spec, Rng(static_cast<std::uint64_t>(100 + i)));
    for (std::size_t label = 0; label < 10; ++label) {
      const double noise = noisy[label] - held[label];
      sum += noise;
      size += std::abs(noise);
      below_median += std::abs(noise) < 2 * std::log(2.0) ? 1 : 0;
    }
  }
  // Five standard errors: 2 sqrt(2) / sqrt(20000) of the mean, 2 / sqrt(20000) of the mean magnitude.
  CHECK(std::abs(sum / (10 * kDraws)) < 0.1);
  CHECK(std::abs(size / (10 * kDraws) - 2) < 0.071);
  CHECK(std::abs(below_median / (10 * kDraws) - 0.5) < 0.018);
}

TEST_CASE(
    "A4: a device's record says what the run asks for but for what is withheld, and in the directory no "
    "round") {
  using Field = protocol::StatusField;
  const ClientEngine::Publish publish{
      .run = RunId(1), .round = RoundNumber(7), .freshness = seconds(3), .availability = 0.5};
  const Figures figures{.latency_ms = 12, .utility = 4, .labels = {1, 0}, .battery = 0.25};
  protocol::StatusSpec spec;
  spec.publish = {Field::kLatency, Field::kFreshness, Field::kUtility, Field::kAvailability, Field::kBattery};
  spec.via = protocol::StatusSpec::Via::kDirectory;
  const NodeRecord all = describe_node(publish, figures, spec, {});
  CHECK(all == NodeRecord{.latency_ms = 12,
                          .freshness = 3,
                          .utility = 4,
                          .availability = 0.5,
                          .battery = 0.25,
                          .labels = {1, 0}});
  const std::set<Field> every{Field::kLatency,      Field::kFreshness, Field::kUtility,
                              Field::kAvailability, Field::kLabels,    Field::kBattery};
  CHECK(describe_node(publish, figures, spec, every) == NodeRecord{});
  for (const Field withheld : every) {
    const NodeRecord record = describe_node(publish, figures, spec, {withheld});
    CHECK(record.latency_ms.has_value() == (withheld != Field::kLatency));
    CHECK(record.freshness.has_value() == (withheld != Field::kFreshness));
    CHECK(record.utility.has_value() == (withheld != Field::kUtility));
    CHECK(record.availability.has_value() == (withheld != Field::kAvailability));
    CHECK(record.battery.has_value() == (withheld != Field::kBattery));
    CHECK(record.labels.empty() == (withheld == Field::kLabels));
  }
  spec.publish = {Field::kLatency};
  spec.via = protocol::StatusSpec::Via::kLink;
  CHECK(describe_node(publish, figures, spec, {}) ==
        NodeRecord{.round = 7, .latency_ms = 12, .labels = {1, 0}});
}

}  // namespace fedge::client
