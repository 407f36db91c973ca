#include "learn/data/selection.h"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/check.h"
#include "learn/text/text_data.h"

namespace fedge::learn {
namespace {

constexpr std::size_t kMaxJoinedTokens = std::numeric_limits<std::uint32_t>::max();

Result<Dataset> join_texts(std::vector<Dataset> parts) {
  Dataset all = std::move(parts.front());
  for (std::size_t i = 1; i < parts.size(); ++i) {
    const Dataset& more = parts[i];
    if (all.classes + more.classes > kMaxClasses)
      return invalid("the texts have more than " + std::to_string(kMaxClasses) + " groups together");
    if (all.text.tokens.size() + more.text.tokens.size() > kMaxJoinedTokens)
      return Error{ErrorCode::kResource, "the texts have more than 2^32 tokens together"};
    for (TextInputs::Window window : more.text.windows) {
      window.start += static_cast<std::uint32_t>(all.text.tokens.size());
      all.text.windows.push_back(window);
    }
    all.text.tokens.insert(all.text.tokens.end(), more.text.tokens.begin(), more.text.tokens.end());
    for (const Label label : more.labels) all.labels.push_back(static_cast<Label>(all.classes + label));
    all.class_names.insert(all.class_names.end(), more.class_names.begin(), more.class_names.end());
    all.classes += more.classes;
  }
  return all;
}

}  // namespace

Dataset select_samples(const Dataset& data, std::span<const std::uint32_t> samples) {
  if (data.shape.tokens) return select_windows(data, samples);
  const std::size_t size = data.shape.size();
  const bool bytes = !data.packed.bytes.empty();
  Dataset part{.shape = data.shape, .classes = data.classes, .floats = {}, .labels = {}};
  part.targets = data.targets.none();
  part.class_names = data.class_names;
  part.columns = data.columns;
  part.normalisation = data.normalisation;
  if (bytes) part.packed = {std::vector<std::uint8_t>(samples.size() * size), data.packed.value};
  if (!bytes) part.floats = AlignedBuffer<float>(samples.size() * size);
  for (const std::uint32_t sample : samples) {
    const std::size_t at = part.labels.size() * size;
    if (bytes) std::copy_n(data.packed.bytes.data() + sample * size, size, part.packed.bytes.data() + at);
    if (!bytes) std::copy_n(data.floats.data() + sample * size, size, part.floats.data() + at);
    part.labels.push_back(data.labels[sample]);
    part.targets.append(data.targets, sample);
  }
  return part;
}

Result<Dataset> join_samples(std::vector<Dataset> parts) {
  FEDGE_CHECK(!parts.empty(), "something to join");
  const Dataset& first = parts.front();
  std::size_t samples = 0;
  bool bytes = true;
  for (const Dataset& part : parts) {
    FEDGE_CHECK(part.shape == first.shape && part.target() == first.target(), "data sets of one shape");
    samples += part.size();
    bytes = bytes &&
            (part.size() == 0 || (!part.packed.bytes.empty() && part.packed.value == first.packed.value));
  }
  if (first.shape.tokens) return join_texts(std::move(parts));
  Dataset all{.shape = first.shape, .classes = first.classes, .floats = {}, .labels = {}};
  all.targets = first.targets.none();
  all.class_names = first.class_names;
  all.columns = first.columns;
  all.normalisation = first.normalisation;
  all.labels.reserve(samples);
  const std::size_t size = first.shape.size();
  if (bytes) all.packed.value = first.packed.value;
  if (bytes) all.packed.bytes.reserve(samples * size);
  if (!bytes) all.floats = AlignedBuffer<float>(samples * size);
  for (Dataset& part : parts) {
    if (bytes)
      all.packed.bytes.insert(all.packed.bytes.end(), part.packed.bytes.begin(), part.packed.bytes.end());
    else
      part.read_inputs(0, all.floats.span().subspan(all.labels.size() * size, part.size() * size));
    all.labels.insert(all.labels.end(), part.labels.begin(), part.labels.end());
    for (std::size_t i = 0; i < part.size(); ++i) all.targets.append(part.targets, i);
    part = Dataset{.shape = all.shape, .classes = all.classes, .floats = {}, .labels = {}};
  }
  return all;
}

}  // namespace fedge::learn
