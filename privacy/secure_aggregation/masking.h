// Masks: keystreams added to a vector modulo 2^32 or 2^64, or taken away again. A stream's first 64 KiB are
// for scalars, modulo 2^64; word p after that belongs to parameter p, so that two members need only mask what
// both cover. Cost: the keystream's, and an addition to words that stay in the cache; on all of Parallel's
// threads. Whatever the threads, the same words.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/coverage.h"
#include "core/crypto/keystream.h"
#include "core/parallel.h"

namespace fedge::privacy {

inline constexpr std::size_t kMaxScalars = 8192;
// Words of a stream are below 2^37 bytes: so many parameters at most.
inline constexpr std::size_t kMaxMaskedParameters = std::size_t{1} << 33;

struct MaskTerm {
  const Secret* key = nullptr;
  bool take_away = false;
  // The parameters that it masks; null: all that the vector has.
  const Coverage* where = nullptr;
};

// `words` are packed over `coverage`.
void apply_masks(std::span<std::uint32_t> words, const Coverage& coverage, std::span<const MaskTerm> terms,
                 StreamCipher cipher, Parallel& parallel);
void apply_masks(std::span<std::uint64_t> words, const Coverage& coverage, std::span<const MaskTerm> terms,
                 StreamCipher cipher, Parallel& parallel);
// At most kMaxScalars.
void apply_scalar_masks(std::span<std::uint64_t> scalars, std::span<const MaskTerm> terms,
                        StreamCipher cipher);

}  // namespace fedge::privacy
