#include "swarm/warmup/schedulers/missing_chunks.h"

#include <bit>

namespace fedge::swarm {

MissingChunks::MissingChunks(const SlotState& slot, Pseudonym receiver, ChunkOrder order, Rng rng)
    : slot_(&slot), order_(order) {
  std::vector<Pseudonym> senders;
  for (const Pseudonym peer : slot.overlay.neighbours(receiver))
    if (slot.up[peer] > 0) senders.push_back(peer);
  missing_ = offers_of(senders);
  const auto held = slot.held[receiver]->words();
  for (std::size_t i = 0; i < missing_.size(); ++i) missing_[i] &= ~held[i];
  if (missing_.empty()) return;
  first_word_ = rng.below(missing_.size());
  if (order_ == ChunkOrder::kRarestFirst) skip_empty_classes();
  if (class_ < Rarity::kClasses) load();
}

std::vector<std::uint64_t> MissingChunks::offers_of(std::span<const Pseudonym> neighbours) const {
  std::vector<std::uint64_t> offers((slot_->universe.size() + 63) / 64);
  for (const Pseudonym peer : neighbours) {
    const auto words = slot_->offered[peer]->words();
    for (std::size_t i = 0; i < offers.size(); ++i) offers[i] |= words[i];
  }
  return offers;
}

void MissingChunks::restrict_to(std::span<const Pseudonym> neighbours) {
  const auto offers = offers_of(neighbours);
  for (std::size_t i = 0; i < missing_.size(); ++i) missing_[i] &= offers[i];
  bits_ &= missing_[word_];
}

void MissingChunks::skip_empty_classes() {
  while (class_ < Rarity::kClasses && slot_->rarity.members(class_).empty()) ++class_;
}

void MissingChunks::load() {
  word_ = first_word_ + step_;
  if (word_ >= missing_.size()) word_ -= missing_.size();
  bits_ = missing_[word_];
  if (order_ == ChunkOrder::kRarestFirst) bits_ &= slot_->rarity.members(class_).words()[word_];
}

std::optional<Chunk> MissingChunks::next() {
  const std::size_t classes = order_ == ChunkOrder::kRarestFirst ? Rarity::kClasses : 2;
  while (bits_ == 0) {
    if (class_ >= classes || missing_.empty()) return std::nullopt;
    if (++step_ == missing_.size()) {
      step_ = 0;
      ++class_;
      if (order_ == ChunkOrder::kRarestFirst) skip_empty_classes();
      if (class_ >= classes) return std::nullopt;
    }
    load();
  }
  last_bit_ = bits_ & (~bits_ + 1);
  bits_ ^= last_bit_;
  return static_cast<Chunk>(word_ * 64 + static_cast<std::size_t>(std::countr_zero(last_bit_)));
}

}  // namespace fedge::swarm
