// Masks: keystreams that are added to a vector modulo 2^32 or 2^64, or subtracted again. The first 64 KiB of
// a stream mask scalars, modulo 2^64. Word p after them masks parameter p, so that two members need to mask
// only the parameters that both cover. The work is spread over all threads of Parallel; the result does not
// depend on them. Cost: the keystream, and an addition to words that stay in the cache.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/coverage.h"
#include "core/crypto/keystream.h"
#include "core/parallel.h"

namespace fedge::privacy {

inline constexpr std::size_t kMaxScalars = 8192;
// Limits the bytes of a stream to less than 2^37.
inline constexpr std::size_t kMaxMaskedParameters = std::size_t{1} << 33;

struct MaskTerm {
  const Secret* key = nullptr;
  bool take_away = false;
  // The parameters that this term masks; null: the whole coverage.
  const Coverage* where = nullptr;
};

// `words` is packed over `coverage`.
void apply_masks(std::span<std::uint32_t> words, const Coverage& coverage, std::span<const MaskTerm> terms,
                 StreamCipher cipher, Parallel& parallel);
void apply_masks(std::span<std::uint64_t> words, const Coverage& coverage, std::span<const MaskTerm> terms,
                 StreamCipher cipher, Parallel& parallel);
// At most kMaxScalars scalars.
void apply_scalar_masks(std::span<std::uint64_t> scalars, std::span<const MaskTerm> terms,
                        StreamCipher cipher);

}  // namespace fedge::privacy
