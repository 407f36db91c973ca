#include "learn/data/validation.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "core/text.h"
#include "learn/data/files/split.h"

namespace fedge::learn {

Result<std::vector<std::uint32_t>> validation_samples(const DataSpec& spec, std::span<const Label> labels,
                                                      std::size_t classes, const Rng& rng) {
  std::vector<std::uint32_t> chosen;
  if (spec.validation == 0) return chosen;
  chosen =
      share_of_labels(labels, classes, spec.validation, partition_stream(spec.partition, rng), "validation");
  if (chosen.empty())
    return invalid("data.validation: " + number_text(spec.validation) + " of the " +
                   std::to_string(labels.size()) +
                   " training samples rounds to 0 samples of each label; raise it, or set it to 0");
  return chosen;
}

std::vector<std::uint32_t> samples_without(std::span<const std::uint32_t> validation, std::size_t count) {
  std::vector<std::uint32_t> rest;
  rest.reserve(count - validation.size());
  auto next = validation.begin();
  for (std::uint32_t i = 0; i < count; ++i) {
    if (next != validation.end() && *next == i)
      ++next;
    else
      rest.push_back(i);
  }
  return rest;
}

Result<Partition> partition_for_clients(const DataSpec& spec, std::span<const Label> labels,
                                        std::size_t classes, const Rng& rng) {
  FEDGE_TRY(validation, validation_samples(spec, labels, classes, rng));
  if (validation.empty()) return partition(spec.partition, labels, classes, rng);
  const std::vector<std::uint32_t> rest = samples_without(validation, labels.size());
  std::vector<Label> rest_labels;
  rest_labels.reserve(rest.size());
  for (const std::uint32_t sample : rest) rest_labels.push_back(labels[sample]);
  FEDGE_TRY(parts, partition(spec.partition, rest_labels, classes, rng));
  return parts.renamed(rest);
}

}  // namespace fedge::learn
