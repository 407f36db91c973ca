#include "protocol/split_stream.h"

#include <algorithm>
#include <string>
#include <utility>

#include "core/check.h"
#include "protocol/codec.h"

namespace fedge::protocol {
namespace {

std::uint32_t parts_of(std::size_t values) {
  return static_cast<std::uint32_t>((values + kMaxSplitPart - 1) / kMaxSplitPart);
}

std::size_t part_size(std::size_t values, std::uint32_t part) {
  return std::min(kMaxSplitPart, values - part * kMaxSplitPart);
}

// A part without its values.
SplitValues part_of(const SplitValues& head, std::uint32_t part) {
  if (part == 0) return head;
  return {.run = head.run,
          .round = head.round,
          .kind = head.kind,
          .step = head.step,
          .first = head.first,
          .part = part,
          .parts = head.parts};
}

std::size_t varint_size(std::size_t value) {
  std::size_t bytes = 1;
  for (; value >= 128; value >>= 7) ++bytes;
  return bytes;
}

bool same_message(const SplitValues& a, const SplitValues& b) {
  return a.run == b.run && a.round == b.round && a.kind == b.kind && a.step == b.step && a.first == b.first &&
         a.parts == b.parts;
}

}  // namespace

SplitOutgoing::SplitOutgoing(SplitValues head, std::vector<std::byte> values)
    : head_(std::move(head)), values_(std::move(values)) {
  FEDGE_CHECK(!values_.empty() && head_.values.empty(), "values beside their description");
  head_.parts = parts_of(values_.size());
}

std::optional<SplitValues> SplitOutgoing::next() {
  if (values_.empty() || sent_ == head_.parts || sent_ >= taken_ + kSplitWindow) return std::nullopt;
  SplitValues part = part_of(head_, sent_);
  const auto* const from = values_.data() + sent_ * kMaxSplitPart;
  part.values.assign(from, from + part_size(values_.size(), sent_));
  ++sent_;
  return part;
}

void SplitOutgoing::taken(std::uint32_t part) {
  if (part < sent_) taken_ = std::max(taken_, part + 1);
}

void SplitOutgoing::again() { sent_ = taken_ = 0; }

Result<std::optional<SplitValues>> SplitIncoming::take(SplitValues part) {
  if (part.part == 0) {
    whole_.reset();
    next_ = 0;
  }
  if (part.part != next_ || (next_ > 0 && !same_message(*whole_, part)))
    return invalid("part " + std::to_string(part.part) + " of values came in place of part " +
                   std::to_string(next_));
  const std::size_t before = next_ > 0 ? whole_->values.size() : 0;
  if (before + part.values.size() > most_ || part.parts > parts_of(most_))
    return invalid("the values at the cut have more bytes than the " + std::to_string(most_) +
                   " of the sequences in a piece of a batch");
  ++next_;
  if (!whole_)
    whole_ = std::move(part);
  else
    whole_->values.insert(whole_->values.end(), part.values.begin(), part.values.end());
  if (next_ < whole_->parts) return std::optional<SplitValues>();
  return std::exchange(whole_, std::nullopt);
}

Bytes split_frames_size(const SplitValues& head, std::size_t values) {
  SplitValues whole = head;
  whole.parts = parts_of(values);
  Bytes total;
  for (std::uint32_t part = 0; part < whole.parts; ++part) {
    const std::size_t size = part_size(values, part);
    // A tag of one byte, the length, and the bytes of the field.
    total += Bytes(frame_size(part_of(whole, part)) + 1 + varint_size(size) + size);
  }
  return total;
}

}  // namespace fedge::protocol
