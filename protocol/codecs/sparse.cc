#include "protocol/codecs/sparse.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <string>

#include "core/check.h"

namespace fedge::protocol {
namespace {

using Positions = std::vector<std::uint32_t>;

bool takes_bitmap(std::size_t kept, std::size_t values) { return kept * 32 > values; }

void append_gaps(const Positions& positions, std::vector<std::byte>& out) {
  std::uint32_t next = 0;
  for (const std::uint32_t position : positions) {
    std::uint32_t gap = position - next;
    for (; gap >= 0x80; gap >>= 7) out.push_back(static_cast<std::byte>(gap | 0x80));
    out.push_back(static_cast<std::byte>(gap));
    next = position + 1;
  }
}

void append_bitmap(const Positions& positions, std::size_t values, std::vector<std::byte>& out) {
  const std::size_t begin = out.size();
  out.resize(begin + (values + 7) / 8);
  for (const std::uint32_t position : positions)
    out[begin + position / 8] |= std::byte{1} << static_cast<int>(position % 8);
}

// Reads a varint of at most three bytes, since a gap is below kSparseBlock.
Result<std::uint32_t> read_gap(ByteStream& bytes) {
  std::uint32_t gap = 0;
  for (std::uint32_t shift = 0; shift < 21; shift += 7) {
    FEDGE_TRY(byte, bytes.read_byte());
    gap |= (byte & 0x7fU) << shift;
    if (byte >= 0x80) continue;
    if (byte == 0 && shift > 0) return invalid("the varint of a gap is not minimally encoded");
    return gap;
  }
  return invalid("the varint of a gap is longer than three bytes");
}

Result<Positions> read_gaps(ByteStream& bytes, std::size_t kept, std::size_t values) {
  Positions positions(kept);
  std::size_t next = 0;
  for (std::uint32_t& position : positions) {
    FEDGE_TRY(gap, read_gap(bytes));
    if (next + gap >= values)
      return invalid("position " + std::to_string(next + gap) + " is beyond the end of a block of " +
                     std::to_string(values) + " values");
    position = static_cast<std::uint32_t>(next + gap);
    next = position + 1;
  }
  return positions;
}

Result<Positions> read_bitmap(ByteStream& bytes, std::size_t kept, std::size_t values) {
  std::vector<std::uint8_t> bitmap((values + 7) / 8);
  FEDGE_TRY_VOID(bytes.read_values(std::span(bitmap)));
  Positions positions;
  positions.reserve(kept);
  for (std::size_t i = 0; i < bitmap.size(); ++i)
    for (std::uint32_t rest = bitmap[i]; rest != 0; rest &= rest - 1)
      positions.push_back(static_cast<std::uint32_t>(8 * i) +
                          static_cast<std::uint32_t>(std::countr_zero(rest)));
  if (!positions.empty() && positions.back() >= values) return invalid("the bitmap's padding is not 0");
  if (positions.size() != kept)
    return invalid("the bitmap has " + std::to_string(positions.size()) +
                   " set bits instead of the declared " + std::to_string(kept));
  return positions;
}

}  // namespace

void encode_sparse_block(const SparseBlock& block, std::vector<std::byte>& out, std::span<float> decoded) {
  FEDGE_CHECK(block.values.size() <= kSparseBlock && decoded.size() == block.values.size(), "one block");
  constexpr double kLargest = std::numeric_limits<float>::max();
  Positions positions;
  std::vector<float> sent;
  for (std::size_t word = 0; word < block.kept.size(); ++word)
    for (std::uint64_t rest = block.kept[word]; rest != 0; rest &= rest - 1) {
      const std::size_t position = word * 64 + static_cast<std::size_t>(std::countr_zero(rest));
      const double exact = static_cast<double>(block.values[position]) * block.factor;
      const auto value = static_cast<float>(std::clamp(exact, -kLargest, kLargest));
      if (value == 0) continue;
      positions.push_back(static_cast<std::uint32_t>(position));
      sent.push_back(value);
    }
  append(out, static_cast<std::uint32_t>(positions.size()));
  if (takes_bitmap(positions.size(), block.values.size()))
    append_bitmap(positions, block.values.size(), out);
  else
    append_gaps(positions, out);
  append(out, std::span<const float>(sent));
  std::fill(decoded.begin(), decoded.end(), 0.0F);
  for (std::size_t i = 0; i < sent.size(); ++i) decoded[positions[i]] = sent[i];
}

Result<void> decode_sparse_block(ByteStream& bytes, std::span<float> out) {
  std::uint32_t kept = 0;
  FEDGE_TRY_VOID(bytes.read_values(std::span(&kept, 1)));
  if (kept > out.size())
    return invalid("a block of " + std::to_string(out.size()) + " values declares " + std::to_string(kept) +
                   " kept values");
  FEDGE_TRY(positions, takes_bitmap(kept, out.size()) ? read_bitmap(bytes, kept, out.size())
                                                      : read_gaps(bytes, kept, out.size()));
  std::vector<float> sent(kept);
  FEDGE_TRY_VOID(bytes.read_values(std::span(sent)));
  std::fill(out.begin(), out.end(), 0.0F);
  for (std::size_t i = 0; i < kept; ++i) out[positions[i]] = sent[i];
  return {};
}

}  // namespace fedge::protocol
