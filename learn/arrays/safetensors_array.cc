#include "learn/arrays/safetensors_array.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/detail/json.h"

namespace fedge::learn {
namespace {

constexpr std::size_t kLength = 8;  // bytes of the header's length
constexpr std::uint64_t kMostHeader = std::uint64_t{16} << 20;
constexpr std::uint64_t kMostElements = std::uint64_t{1} << 48;
constexpr int kHeaderLevels = 4;
constexpr std::size_t kShownNames = 20;

constexpr std::array<std::pair<std::string_view, ElementType>, 12> kSafetensorsTypes = {{
    {"BOOL", ElementType::kBool},
    {"I8", ElementType::kInt8},
    {"I16", ElementType::kInt16},
    {"I32", ElementType::kInt32},
    {"I64", ElementType::kInt64},
    {"U8", ElementType::kUint8},
    {"U16", ElementType::kUint16},
    {"U32", ElementType::kUint32},
    {"U64", ElementType::kUint64},
    {"F16", ElementType::kFloat16},
    {"F32", ElementType::kFloat32},
    {"F64", ElementType::kFloat64},
}};

Error broken(const std::string& name, const std::string& what) {
  return {ErrorCode::kCorrupt, name + " is not a safetensors file: " + what};
}

// The numbers of a list; nothing if it is none, or has more than `most`.
std::optional<std::vector<std::uint64_t>> numbers(const nlohmann::ordered_json& entry, const char* key,
                                                  std::size_t most) {
  const auto list = entry.find(key);
  if (list == entry.end() || !list->is_array() || list->size() > most) return std::nullopt;
  std::vector<std::uint64_t> values;
  for (const auto& one : *list) {
    if (!one.is_number_unsigned()) return std::nullopt;
    values.push_back(one.get<std::uint64_t>());
  }
  return values;
}

Result<nlohmann::ordered_json> read_header(const ReadOnlyFile& file, std::uint64_t& data) {
  const std::string name = file.path().string();
  std::array<std::byte, kLength> length{};
  if (file.size() < kLength) return broken(name, "it is too short");
  FEDGE_TRY_VOID(file.read(0, length));
  std::uint64_t size = 0;
  for (std::size_t i = kLength; i-- > 0;) size = size << 8 | std::to_integer<std::uint64_t>(length.at(i));
  if (size > kMostHeader || size > file.size() - kLength)
    return broken(name, "its header is longer than the file");
  std::vector<std::byte> bytes(size);
  FEDGE_TRY_VOID(file.read(kLength, bytes));
  data = kLength + size;
  auto header =
      parse_ordered_json({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, kHeaderLevels);
  if (!header.is_object()) return broken(name, "its header is not a JSON object");
  return header;
}

std::string names_in(const nlohmann::ordered_json& header) {
  std::string names;
  std::size_t shown = 0;
  for (const auto& [name, entry] : header.items()) {
    if (name == "__metadata__") continue;
    if (shown++ == kShownNames) return names + ", ...";
    names += (names.empty() ? "\"" : ", \"") + name.substr(0, 40) + "\"";
  }
  return names.empty() ? "none" : names;
}

}  // namespace

const char* safetensors_name(ElementType type) {
  return std::ranges::find(kSafetensorsTypes, type, [](const auto& one) { return one.second; })->first.data();
}

Result<SafetensorsArray> find_safetensors_array(const ReadOnlyFile& file, const std::string& array) {
  constexpr std::size_t kMostAxes = 32;
  std::uint64_t data = 0;
  FEDGE_TRY(header, read_header(file, data));
  const std::string name = file.path().string() + ": array \"" + array + "\"";
  const auto entry = header.find(array);
  if (entry == header.end() || array == "__metadata__")
    return Error{ErrorCode::kNotFound, file.path().string() + ": there is no array \"" + array +
                                           "\"; the file has " + names_in(header)};
  const auto broken_entry = [&](const std::string& what) {
    return Error{ErrorCode::kCorrupt, name + " " + what};
  };
  if (!entry->is_object()) return broken_entry("has no description");
  const auto type = entry->find("dtype");
  if (type == entry->end() || !type->is_string()) return broken_entry("has no type");
  const auto text = type->get<std::string>();
  const auto known = std::ranges::find(kSafetensorsTypes, text, [](const auto& one) { return one.first; });
  if (known == kSafetensorsTypes.end())
    return Error{ErrorCode::kUnsupported,
                 name + " has elements of type \"" + text.substr(0, 20) + "\", which are not supported"};
  const auto shape = numbers(*entry, "shape", kMostAxes);
  const auto offsets = numbers(*entry, "data_offsets", 2);
  if (!shape || !offsets || offsets->size() != 2) return broken_entry("has no shape or no offsets");
  SafetensorsArray found{.header = {.type = known->second, .elements = 1}};
  for (const std::uint64_t size : *shape) {
    if (size > 0 && found.header.elements > kMostElements / size)
      return broken_entry("has too many elements");
    found.header.elements *= size;
    found.header.shape.push_back(size);
  }
  const std::uint64_t bytes = found.header.elements * bytes_of(found.header.type);
  const auto [begin, end] = std::pair((*offsets)[0], (*offsets)[1]);
  if (begin > end || end > file.size() - data || end - begin != bytes)
    return broken_entry("does not have the bytes that its shape needs");
  found.offset = data + begin;
  return found;
}

}  // namespace fedge::learn
