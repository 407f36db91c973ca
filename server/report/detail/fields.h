// Fields: reads the metrics of a JSON object. Private to report/.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "core/detail/json.h"

namespace fedge::server {

inline nlohmann::ordered_json json_number(double value) {
  return std::isfinite(value) ? nlohmann::ordered_json(value) : nlohmann::ordered_json(nullptr);
}

// Reads the keys of one object and remembers the first that is missing or has a wrong type.
class Fields {
 public:
  static constexpr std::size_t kMostListed = 1'000'000;

  explicit Fields(const nlohmann::ordered_json& object) : object_(object) {}

  std::uint64_t count(const char* key) {
    const auto* value = find(key);
    if (value == nullptr) return 0;
    if (!value->is_number_unsigned()) return fail(key, "an integer of at least 0"), 0;
    return value->get<std::uint64_t>();
  }
  double real(const char* key) {
    const auto* value = find(key);
    return value == nullptr ? std::numeric_limits<double>::quiet_NaN() : as_real(key, *value);
  }
  std::string text(const char* key) {
    const auto* value = find(key);
    if (value == nullptr) return {};
    if (!value->is_string()) return fail(key, "a string"), "";
    return value->get<std::string>();
  }
  std::vector<double> reals(const char* key) {
    const auto* value = find(key);
    if (value == nullptr || value->is_null()) return {};
    if (!value->is_array() || value->size() > kMostListed)
      return fail(key, "a list of numbers"), std::vector<double>();
    std::vector<double> out;
    for (const auto& item : *value) out.push_back(as_real(key, item));
    return out;
  }
  // The counts of a square matrix, row by row.
  std::vector<std::uint64_t> square(const char* key) {
    constexpr const char* kExpected = "a list of the counts of a square matrix";
    auto counts = list<std::uint64_t>(key, kExpected, &nlohmann::ordered_json::is_number_unsigned);
    const auto side = static_cast<std::size_t>(std::lround(std::sqrt(static_cast<double>(counts.size()))));
    if (side * side == counts.size()) return counts;
    return fail(key, kExpected), std::vector<std::uint64_t>();
  }
  std::vector<std::string> texts(const char* key) {
    return list<std::string>(key, "a list of strings", &nlohmann::ordered_json::is_string);
  }
  bool has(const char* key) const { return object_.contains(key); }
  const std::string& problem() const { return problem_; }

 private:
  // The items of a list, all of which are of this kind; otherwise none.
  template <class T>
  std::vector<T> list(const char* key, const char* expected, bool (nlohmann::ordered_json::*is)() const) {
    const auto* value = find(key);
    if (value == nullptr) return {};
    std::vector<T> items;
    bool fits = value->is_array() && value->size() <= kMostListed;
    for (const auto& item : fits ? *value : nlohmann::ordered_json::array()) {
      fits = (item.*is)();
      if (!fits) break;
      items.push_back(item.template get<T>());
    }
    if (fits) return items;
    return fail(key, expected), std::vector<T>();
  }
  const nlohmann::ordered_json* find(const char* key) {
    const auto it = object_.find(key);
    if (it != object_.end()) return &*it;
    if (problem_.empty()) problem_ = std::string(key) + " is missing";
    return nullptr;
  }
  double as_real(const char* key, const nlohmann::ordered_json& value) {
    if (value.is_null()) return std::numeric_limits<double>::quiet_NaN();
    if (!value.is_number()) return fail(key, "a number or null"), std::numeric_limits<double>::quiet_NaN();
    return value.get<double>();
  }
  void fail(const char* key, const char* expected) {
    if (problem_.empty()) problem_ = std::string(key) + " is not " + expected;
  }

  const nlohmann::ordered_json& object_;
  std::string problem_;
};

}  // namespace fedge::server
