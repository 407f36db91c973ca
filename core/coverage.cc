#include "core/coverage.h"

#include <algorithm>
#include <optional>

#include "core/check.h"

namespace fedge {
namespace {

void put_varint(std::vector<std::uint8_t>& out, std::uint64_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<std::uint8_t>(value | 0x80));
  out.push_back(static_cast<std::uint8_t>(value));
}

// Reads the next varint; nothing if the bytes end inside it, it exceeds 63 bits or has zero padding groups.
std::optional<std::uint64_t> take_varint(std::span<const std::uint8_t>& in) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < 9 && i < in.size(); ++i) {
    value |= static_cast<std::uint64_t>(in[i] & 0x7f) << (7 * i);
    if (in[i] & 0x80) continue;
    if (i > 0 && in[i] == 0) return std::nullopt;
    in = in.subspan(i + 1);
    return value;
  }
  return std::nullopt;
}

}  // namespace

Coverage Coverage::all(std::size_t size) { return of({{0, size}}); }

Coverage Coverage::of(std::vector<Range> ranges) {
  std::erase_if(ranges, [](const Range& r) { return r.begin >= r.end; });
  std::sort(ranges.begin(), ranges.end(), [](const Range& a, const Range& b) { return a.begin < b.begin; });
  Coverage result;
  for (const Range& range : ranges) {
    if (!result.ranges_.empty() && range.begin <= result.ranges_.back().end)
      result.ranges_.back().end = std::max(result.ranges_.back().end, range.end);
    else
      result.ranges_.push_back(range);
  }
  return result;
}

std::size_t Coverage::count() const {
  std::size_t total = 0;
  for (const Range& range : ranges_) total += range.size();
  return total;
}

bool Coverage::contains(std::size_t index) const {
  const auto after = std::upper_bound(ranges_.begin(), ranges_.end(), index,
                                      [](std::size_t i, const Range& r) { return i < r.begin; });
  return after != ranges_.begin() && index < std::prev(after)->end;
}

bool Coverage::contains(const Coverage& other) const { return other.subtract(*this).empty(); }

std::size_t Coverage::parameter_at(std::size_t position) const {
  for (const Range& range : ranges_) {
    if (position < range.size()) return range.begin + position;
    position -= range.size();
  }
  FEDGE_CHECK(false, "position beyond the coverage");
}

Coverage Coverage::unite(const Coverage& other) const {
  std::vector<Range> ranges = ranges_;
  ranges.insert(ranges.end(), other.ranges_.begin(), other.ranges_.end());
  return of(std::move(ranges));
}

Coverage Coverage::intersect(const Coverage& other) const {
  Coverage result;
  auto a = ranges_.begin();
  auto b = other.ranges_.begin();
  while (a != ranges_.end() && b != other.ranges_.end()) {
    const Range common{std::max(a->begin, b->begin), std::min(a->end, b->end)};
    if (common.begin < common.end) result.ranges_.push_back(common);
    a->end < b->end ? ++a : ++b;
  }
  return result;
}

Coverage Coverage::subtract(const Coverage& other) const {
  Coverage result;
  auto cut = other.ranges_.begin();
  for (Range rest : ranges_) {
    while (cut != other.ranges_.end() && cut->end <= rest.begin) ++cut;
    for (auto c = cut; c != other.ranges_.end() && c->begin < rest.end; ++c) {
      if (rest.begin < c->begin) result.ranges_.push_back({rest.begin, c->begin});
      rest.begin = std::min(c->end, rest.end);
    }
    if (rest.begin < rest.end) result.ranges_.push_back(rest);
  }
  return result;
}

std::vector<std::uint8_t> Coverage::encode() const {
  std::vector<std::uint8_t> bytes;
  std::size_t last = 0;
  for (const Range& range : ranges_) {
    put_varint(bytes, range.begin - last);
    put_varint(bytes, range.size());
    last = range.end;
  }
  return bytes;
}

Result<Coverage> Coverage::decode(std::span<const std::uint8_t> bytes, std::size_t size,
                                  std::size_t max_ranges) {
  Coverage result;
  std::size_t last = 0;
  while (!bytes.empty()) {
    if (result.ranges_.size() == max_ranges)
      return invalid("coverage has more than " + std::to_string(max_ranges) + " ranges");
    const auto gap = take_varint(bytes);
    const auto length = gap ? take_varint(bytes) : std::nullopt;
    if (!length) return invalid("coverage is truncated or not minimally encoded");
    if (*length == 0 || (*gap == 0 && !result.ranges_.empty()))
      return invalid("coverage has an empty range, or two adjacent ranges that should be one");
    if (*gap > size - last || *length > size - last - *gap)
      return invalid("coverage reaches beyond the model's " + std::to_string(size) + " parameters");
    result.ranges_.push_back({last + *gap, last + *gap + *length});
    last = result.ranges_.back().end;
  }
  return result;
}

}  // namespace fedge
