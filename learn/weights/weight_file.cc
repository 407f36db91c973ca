#include "learn/weights/weight_file.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "core/safetensors.h"
#include "core/text.h"
#include "learn/weights/half.h"

namespace fedge::learn {
namespace {

constexpr std::uint64_t kMaxWeights = std::uint64_t{1} << 40;
constexpr std::size_t kConverted = std::size_t{1} << 18;  // elements converted at a time; whole blocks

struct WeightUnit {
  std::size_t elements;
  std::size_t bytes;
};

WeightUnit unit_of(WeightType type) {
  switch (type) {
    case WeightType::kFloat32:
      return {1, 4};
    case WeightType::kFloat16:
    case WeightType::kBfloat16:
      return {1, 2};
    case WeightType::kQ8_0:
      return {kQuantisedBlock, 2 + kQuantisedBlock};
    case WeightType::kQ4_0:
      return {kQuantisedBlock, 2 + kQuantisedBlock / 2};
    case WeightType::kQ4_1:
      return {kQuantisedBlock, 4 + kQuantisedBlock / 2};
  }
  return {1, 1};
}

std::uint16_t half_at(const std::byte* from) {
  return static_cast<std::uint16_t>(std::to_integer<unsigned>(from[0]) | std::to_integer<unsigned>(from[1])
                                                                             << 8U);
}

// Converts one unit.
void convert(WeightType type, const std::byte* from, float* to) {
  switch (type) {
    case WeightType::kFloat32:
      *to = std::bit_cast<float>(std::uint32_t{half_at(from)} | std::uint32_t{half_at(from + 2)} << 16U);
      return;
    case WeightType::kFloat16:
      *to = float_of_half(half_at(from));
      return;
    case WeightType::kBfloat16:
      *to = float_of_bfloat16(half_at(from));
      return;
    case WeightType::kQ8_0: {
      const float scale = float_of_half(half_at(from));
      for (std::size_t i = 0; i < kQuantisedBlock; ++i)
        to[i] = scale * static_cast<float>(static_cast<std::int8_t>(from[2 + i]));
      return;
    }
    case WeightType::kQ4_0:
    case WeightType::kQ4_1: {
      const bool centred = type == WeightType::kQ4_0;
      const float scale = float_of_half(half_at(from));
      const float least = centred ? -8 * scale : float_of_half(half_at(from + 2));
      const std::byte* halves = from + (centred ? 2 : 4);
      for (std::size_t i = 0; i < kQuantisedBlock / 2; ++i) {
        const auto both = std::to_integer<unsigned>(halves[i]);
        to[i] = scale * static_cast<float>(both & 15U) + least;
        to[i + kQuantisedBlock / 2] = scale * static_cast<float>(both >> 4U) + least;
      }
      return;
    }
  }
}

std::string shown_weight(const std::string& name) { return "tensor " + json_text(name.substr(0, 80)); }

}  // namespace

std::uint64_t weight_bytes(WeightType type, std::uint64_t elements) {
  const WeightUnit unit = unit_of(type);
  return elements / unit.elements * unit.bytes;
}

std::uint64_t StoredWeight::elements() const {
  std::uint64_t count = 1;
  for (const std::size_t dimension : shape) count *= dimension;
  return count;
}

Result<WeightFile> WeightFile::make(ReadOnlyFile file, std::vector<StoredWeight> weights) {
  const std::string name = file.path().string();
  std::map<std::string, StoredWeight> by_name;
  for (StoredWeight& weight : weights) {
    const auto corrupt = [&](const std::string& what) {
      return Error{ErrorCode::kCorrupt, name + ": " + shown_weight(weight.name) + " " + what};
    };
    std::uint64_t count = 1;
    for (const std::size_t dimension : weight.shape) {
      if (dimension == 0 || count > kMaxWeights / dimension) return corrupt("has an impossible shape");
      count *= dimension;
    }
    if (count % unit_of(weight.type).elements != 0 || weight.shape.empty() ||
        weight.shape.back() % unit_of(weight.type).elements != 0)
      return corrupt("does not consist of whole blocks of 32 elements");
    if (weight.offset > file.size() || weight_bytes(weight.type, count) > file.size() - weight.offset)
      return corrupt("is larger than the file");
    std::string key = weight.name;
    if (!by_name.emplace(std::move(key), std::move(weight)).second)
      return Error{ErrorCode::kCorrupt, name + ": two tensors have the same name"};
  }
  return WeightFile(std::move(file), std::move(by_name));
}

const StoredWeight* WeightFile::find(const std::string& name) const {
  const auto found = weights_.find(name);
  return found == weights_.end() ? nullptr : &found->second;
}

Result<void> WeightFile::read(const StoredWeight& weight, std::span<float> out) const {
  const WeightUnit unit = unit_of(weight.type);
  std::vector<std::byte> bytes(weight_bytes(weight.type, std::min<std::uint64_t>(kConverted, out.size())));
  for (std::size_t first = 0; first < out.size(); first += kConverted) {
    const auto piece = out.subspan(first, std::min(kConverted, out.size() - first));
    const auto part = std::span(bytes).first(weight_bytes(weight.type, piece.size()));
    FEDGE_TRY_VOID(file_.read(weight.offset + weight_bytes(weight.type, first), part));
    for (std::size_t i = 0; i < piece.size() / unit.elements; ++i)
      convert(weight.type, part.data() + i * unit.bytes, piece.data() + i * unit.elements);
    if (!std::ranges::all_of(piece, [](float value) { return std::isfinite(value); }))
      return invalid(path().string() + ": " + shown_weight(weight.name) +
                     " holds a value that is not finite");
  }
  return {};
}

Result<WeightFile> open_safetensors_weights(const std::filesystem::path& path) {
  FEDGE_TRY(file, ReadOnlyFile::open(path));
  FEDGE_TRY(table, read_tensor_table(file));
  std::vector<StoredWeight> weights;
  for (StoredTensor& tensor : table.tensors) {
    StoredWeight weight{
        .name = std::move(tensor.name), .shape = std::move(tensor.shape), .offset = tensor.offset};
    if (tensor.dtype == "F16")
      weight.type = WeightType::kFloat16;
    else if (tensor.dtype == "BF16")
      weight.type = WeightType::kBfloat16;
    else if (tensor.dtype != "F32")
      continue;
    if (weight.shape.empty()) weight.shape = {1};
    weights.push_back(std::move(weight));
  }
  return WeightFile::make(std::move(file), std::move(weights));
}

}  // namespace fedge::learn
