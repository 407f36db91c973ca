// Coverage: the parameters that an update covers, as sorted, disjoint, non-empty, non-adjacent half-open
// ranges of the flat parameter vector. Partial layers, rank prefixes, blocks and whole models are all
// coverages. Cost: linear in the number of ranges, never in the number of parameters.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/result.h"

namespace fedge {

struct Range {
  std::size_t begin = 0;
  std::size_t end = 0;  // one past the last
  std::size_t size() const { return end - begin; }
  bool operator==(const Range&) const = default;
};

class Coverage {
 public:
  Coverage() = default;
  // Every parameter of a vector of this size.
  static Coverage all(std::size_t size);
  // Any ranges in any order; overlapping and touching ones are merged, empty ones dropped.
  static Coverage of(std::vector<Range> ranges);

  const std::vector<Range>& ranges() const { return ranges_; }
  bool empty() const { return ranges_.empty(); }
  // Number of covered parameters.
  std::size_t count() const;
  // One past the last covered parameter; 0 when empty.
  std::size_t end() const { return ranges_.empty() ? 0 : ranges_.back().end; }
  bool contains(std::size_t index) const;
  bool contains(const Coverage& other) const;
  // The parameter at this position of the packed payload; position < count().
  std::size_t parameter_at(std::size_t position) const;

  Coverage unite(const Coverage& other) const;
  Coverage intersect(const Coverage& other) const;
  Coverage subtract(const Coverage& other) const;

  // Compact bytes: for each range, the gap since the last one and its length, as LEB128 varints.
  std::vector<std::uint8_t> encode() const;
  // Refuses malformed varints, empty or touching ranges (one coverage has one encoding), and
  // anything beyond `size` parameters or `max_ranges` ranges.
  static Result<Coverage> decode(std::span<const std::uint8_t> bytes, std::size_t size,
                                 std::size_t max_ranges);

  bool operator==(const Coverage&) const = default;

 private:
  std::vector<Range> ranges_;
};

}  // namespace fedge
