#include "learn/data/dataset.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <optional>
#include <utility>
#include <vector>

#include "core/check.h"
#include "learn/data/files/own_data.h"
#include "learn/data/kinds.h"
#include "learn/data/sample_check.h"
#include "learn/data/selection.h"
#include "learn/data/validation.h"
#include "learn/statistics/federated_statistics.h"
#include "learn/text/text_data.h"

namespace fedge::learn {
namespace {

Result<std::shared_ptr<const Dataset>> shared(Result<Dataset> data) {
  if (!data) return data.error();
  return std::make_shared<const Dataset>(std::move(*data));
}

// The samples of all clients with own data, normalised.
Result<std::shared_ptr<const Dataset>> load_pooled(const DataSpec& spec, Purpose purpose, const Rng& rng) {
  FEDGE_TRY(own, load_all_own(spec, purpose, rng));
  if (spec.federated_normalisation) {
    std::optional<OwnedSamples> other;
    if (purpose != Purpose::kTraining) {
      FEDGE_TRY(training, load_all_own(spec, Purpose::kTraining, rng));
      other.emplace(std::move(training));
    }
    const OwnedSamples& training = other ? *other : own;
    FEDGE_TRY(info, describe(spec));
    FEDGE_TRY(statistics, statistics_of(info, training.data, training.partition.all()));
    own.data.normalisation = statistics.normalisation();
  }
  if (own.partition.all().size() == own.data.size())
    return std::make_shared<const Dataset>(std::move(own.data));
  return std::make_shared<const Dataset>(select_samples(own.data, own.partition.all()));
}

}  // namespace

void Dataset::read_inputs(std::size_t first, std::span<float> out) const {
  const std::size_t begin = first * shape.size();
  if (packed.bytes.empty()) {
    std::memcpy(out.data(), floats.data() + begin, out.size_bytes());
    return;
  }
  const std::uint8_t* bytes = packed.bytes.data() + begin;
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = packed.value[bytes[i]];
}

std::vector<float> target_scale(const FeatureColumns& columns, const Normalisation& by,
                                const std::vector<float>& scale) {
  if (columns.targets.empty() || by.empty()) return scale;
  const auto first = by.deviation.begin() + static_cast<std::ptrdiff_t>(columns.features());
  return {first, first + static_cast<std::ptrdiff_t>(columns.targets.size())};
}

std::vector<float> target_scale(const Dataset& data) {
  return target_scale(data.columns, data.normalisation, data.targets.scale);
}

Result<SampleLabels> DataSource::labels(const DataSpec& spec) const {
  FEDGE_TRY(data, load(spec, Split::kTrain));
  return SampleLabels{std::move(data.labels), data.classes};
}

Result<Dataset> DataSource::load_chosen(const DataSpec& spec, const ChooseSamples& choose) const {
  FEDGE_TRY(info, describe(spec));
  FEDGE_TRY(data, load(spec, Split::kTrain));
  FEDGE_TRY_VOID(check_samples(data, info, "load()"));
  FEDGE_TRY(samples, choose(data.labels, data.classes));
  return select_samples(data, samples);
}

std::vector<std::string> DataSource::class_names(const DataSpec& spec) const {
  auto info = describe(spec);
  return info ? std::move(info->class_names) : std::vector<std::string>();
}

Result<DatasetInfo> describe(const DataSpec& spec) {
  FEDGE_TRY(source, source_of(spec));
  return source->describe(spec);
}

TargetKind task_of(const DataSpec& spec) {
  const auto info = describe(spec);
  return info ? info->kind : TargetKind::kClass;
}

std::vector<std::string> class_names(const DataSpec& spec) {
  const auto source = source_of(spec);
  return source ? (*source)->class_names(spec) : std::vector<std::string>();
}

Result<std::shared_ptr<const Dataset>> load_train(const DataSpec& spec, const Rng& rng) {
  if (is_own(spec)) return load_pooled(spec, Purpose::kTraining, rng);
  FEDGE_TRY(source, source_of(spec));
  FEDGE_TRY(data, source->load(spec, Split::kTrain));
  if (!data.packed.bytes.empty()) {
    AlignedBuffer<float> floats(data.packed.bytes.size());
    data.read_inputs(0, floats.span());
    data.floats = std::move(floats);
    data.packed = {};
  }
  return std::make_shared<const Dataset>(std::move(data));
}

Result<std::shared_ptr<const Dataset>> load_test(const DataSpec& spec) {
  FEDGE_TRY(source, source_of(spec));
  return shared(source->load(spec, Split::kTest));
}

Result<std::shared_ptr<const Dataset>> load_evaluation(const DataSpec& spec, const Rng& rng) {
  if (is_own(spec)) return load_pooled(spec, Purpose::kEvaluation, rng);
  if (spec.validation == 0) return load_test(spec);
  FEDGE_TRY(source, source_of(spec));
  const auto validation = [&](std::span<const Label> labels, std::size_t classes) {
    return validation_samples(spec, labels, classes, rng);
  };
  FEDGE_TRY(data, source->load_chosen(spec, validation));
  if (!data.shape.tokens || spec.test_windows == 0) return std::make_shared<const Dataset>(std::move(data));
  std::vector<std::uint32_t> all(data.size());
  std::iota(all.begin(), all.end(), 0U);
  return std::make_shared<const Dataset>(select_samples(data, spread_windows(data, all, spec.test_windows)));
}

Result<std::vector<std::uint32_t>> partition_sizes(const DataSpec& spec, const Rng& rng) {
  FEDGE_TRY(source, source_of(spec));
  FEDGE_TRY(labels, source->labels(spec));
  FEDGE_TRY(parts, partition_for_clients(spec, labels.values, labels.classes, rng));
  std::vector<std::uint32_t> sizes(parts.clients());
  for (std::size_t client = 0; client < sizes.size(); ++client)
    sizes[client] = static_cast<std::uint32_t>(parts.size_of(client));
  return sizes;
}

Result<std::shared_ptr<const Dataset>> load_part(const DataSpec& spec, std::size_t client, const Rng& rng) {
  if (is_own(spec)) return shared(load_own(spec, Purpose::kTraining, client, rng));
  FEDGE_TRY(source, source_of(spec));
  FEDGE_CHECK(client < spec.partition.clients, "the partition has fewer clients");
  const auto of_client = [&](std::span<const Label> labels,
                             std::size_t classes) -> Result<std::vector<std::uint32_t>> {
    FEDGE_TRY(parts, partition_for_clients(spec, labels, classes, rng));
    const auto own = parts.of(client);
    return std::vector<std::uint32_t>(own.begin(), own.end());
  };
  return shared(source->load_chosen(spec, of_client));
}

}  // namespace fedge::learn
