// ClientFilter: the condition of a run file on the labels that operators gave to clients (sampling.where).
//
//   condition  =  term { "or" term }
//   term       =  factor { "and" factor }
//   factor     =  "not" factor  |  "(" condition ")"  |  "label" ("==" | "!=") string
//   string     =  "'" characters "'"
//
// A client may have several labels. label == 'x' means that one of them is x; label != 'x' that none is.
// Immutable; any thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"

namespace fedge::aggregation {

class ClientFilter {
 public:
  // Matches every client.
  ClientFilter() = default;
  // kInvalid says what is wrong and where. An empty text matches every client.
  static Result<ClientFilter> parse(const std::string& text);

  bool matches_all() const { return steps_.empty(); }
  // O(length of the condition * labels).
  bool matches(std::span<const std::string> labels) const;
  const std::string& text() const { return text_; }

 private:
  friend class FilterParser;
  // In postfix order.
  struct Step {
    enum class Kind : std::uint8_t { kHas, kNot, kAnd, kOr } kind;
    std::string label = {};
  };
  std::string text_;
  std::vector<Step> steps_;
};

}  // namespace fedge::aggregation
