// GGUF, versions 2 and 3 (ggml, docs/gguf.md): "GGUF", version, counts, key-value pairs, tensor infos, then
// the data, aligned. Everything is little-endian. Bounded before anything is allocated.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/platform/files.h"
#include "core/result.h"
#include "learn/token.h"
#include "learn/weights/weight_file.h"

namespace fedge::learn {

using GgufList = std::variant<std::vector<std::string>, std::vector<double>>;
using GgufValue = std::variant<double, std::string, bool, GgufList>;

struct GgufHeader {
  std::map<std::string, GgufValue> pairs;
  std::vector<StoredWeight> weights;
};

// kCorrupt, naming the file, for what is no GGUF file; kUnsupported for another version, or a tensor of a
// type that WeightFile does not read.
Result<GgufHeader> read_gguf_header(const ReadOnlyFile& file);

// Typed access to the keys; errors name them.
class GgufKeys {
 public:
  GgufKeys(const std::map<std::string, GgufValue>& pairs, std::string file, std::string family)
      : pairs_(pairs), file_(std::move(file)), family_(std::move(family)) {}

  bool has(const std::string& key) const { return pairs_.contains(key); }
  std::string of_family(const std::string& key) const { return family_ + "." + key; }
  Error wrong(const std::string& key, const std::string& what) const {
    return {ErrorCode::kInvalid, file_ + ": " + key + " " + what};
  }

  Result<double> number(const std::string& key, std::optional<double> fallback = std::nullopt) const {
    const auto found = pairs_.find(key);
    if (found == pairs_.end()) {
      if (fallback) return *fallback;
      return wrong(key, "is missing");
    }
    if (const auto* value = std::get_if<double>(&found->second)) return *value;
    return wrong(key, "is not a number");
  }
  Result<std::size_t> size(const std::string& key, std::optional<double> fallback = std::nullopt) const {
    FEDGE_TRY(value, number(key, fallback));
    if (!(value >= 1 && value <= 1 << 24) || value != static_cast<double>(static_cast<std::size_t>(value)))
      return wrong(key, "is out of range");
    return static_cast<std::size_t>(value);
  }
  std::string text(const std::string& key) const {
    const auto found = pairs_.find(key);
    const auto* value = found == pairs_.end() ? nullptr : std::get_if<std::string>(&found->second);
    return value == nullptr ? std::string() : *value;
  }
  bool flag(const std::string& key, bool fallback) const {
    const auto found = pairs_.find(key);
    const auto* value = found == pairs_.end() ? nullptr : std::get_if<bool>(&found->second);
    return value == nullptr ? fallback : *value;
  }
  template <class Element>
  Result<std::vector<Element>> list(const std::string& key) const {
    const auto found = pairs_.find(key);
    if (found == pairs_.end()) return wrong(key, "is missing");
    if (const auto* value = std::get_if<GgufList>(&found->second))
      if (const auto* elements = std::get_if<std::vector<Element>>(value)) return *elements;
    return wrong(key, "is not a list of that type");
  }
  // A token's number; nothing if the key is missing.
  std::optional<Token> token(const std::string& key, std::size_t tokens) const {
    const auto value = number(key, -1.0);
    if (!value || !(*value >= 0 && *value < static_cast<double>(tokens))) return std::nullopt;
    return static_cast<Token>(*value);
  }

 private:
  const std::map<std::string, GgufValue>& pairs_;
  std::string file_;
  std::string family_;
};

}  // namespace fedge::learn
