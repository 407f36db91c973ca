#include "privacy/secure_aggregation/masking.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <vector>

#include "core/aligned_buffer.h"
#include "core/check.h"
#include "core/crypto/random.h"

namespace fedge::privacy {
namespace {

// Size of a block: all terms are applied to one block before the next. A block and a piece of keystream fit
// into a core's level-2 cache; larger blocks would start fewer streams.
constexpr std::size_t kBlockBytes = std::size_t{256} << 10;
constexpr std::size_t kPieceBytes = std::size_t{4} << 10;
constexpr std::size_t kAlignment = 64;  // streams start at multiples of this
constexpr std::uint64_t kParametersFrom = kMaxScalars * sizeof(std::uint64_t);

// Reads a little-endian word of the stream.
template <class Word>
Word word_at(const std::uint8_t* bytes) {
  Word word;
  std::memcpy(&word, bytes, sizeof(Word));
  if constexpr (std::endian::native == std::endian::big) {
    Word swapped = 0;
    for (std::size_t b = 0; b < sizeof(Word); ++b)
      swapped |= static_cast<Word>((word >> (8 * b)) & 0xff) << (8 * (sizeof(Word) - 1 - b));
    return swapped;
  }
  return word;
}

template <class Word>
void add_bytes(Word* words, const std::uint8_t* bytes, std::size_t count, bool take_away) {
  if (take_away)
    for (std::size_t i = 0; i < count; ++i) words[i] -= word_at<Word>(bytes + i * sizeof(Word));
  else
    for (std::size_t i = 0; i < count; ++i) words[i] += word_at<Word>(bytes + i * sizeof(Word));
}

// A stretch of the vector within one range of its coverage.
struct MaskBlock {
  std::size_t parameter;  // index of the first parameter
  std::size_t position;   // index of its word in the packed vector
  std::size_t size;
};

template <class Word>
class Masker {
 public:
  explicit Masker(StreamCipher cipher) : stream_(cipher), piece_(kPieceBytes) {}
  ~Masker() { wipe(piece_.span()); }
  Masker(const Masker&) = delete;
  Masker& operator=(const Masker&) = delete;

  void apply(std::span<Word> words, const MaskBlock& block, std::span<const MaskTerm> terms) {
    for (const MaskTerm& term : terms) {
      if (term.where == nullptr) {
        add(words.subspan(block.position, block.size), block.parameter, term);
        continue;
      }
      const auto& ranges = term.where->ranges();
      const std::size_t end = block.parameter + block.size;
      auto range =
          std::ranges::partition_point(ranges, [&](const Range& r) { return r.end <= block.parameter; });
      for (; range != ranges.end() && range->begin < end; ++range) {
        const std::size_t from = std::max(range->begin, block.parameter);
        const std::size_t to = std::min(range->end, end);
        add(words.subspan(block.position + (from - block.parameter), to - from), from, term);
      }
    }
  }

  // `words` belong to parameters from `parameter` on.
  void add(std::span<Word> words, std::size_t parameter, const MaskTerm& term) {
    const std::uint64_t offset = kParametersFrom + parameter * sizeof(Word);
    std::size_t skip = offset % kAlignment;
    stream_.start(*term.key, offset - skip);
    while (!words.empty()) {
      const std::size_t count = std::min(words.size(), (kPieceBytes - skip) / sizeof(Word));
      const auto bytes = piece_.span().first(skip + count * sizeof(Word));
      stream_.next(bytes);
      add_bytes(words.data(), bytes.data() + skip, count, term.take_away);
      words = words.subspan(count);
      skip = 0;
    }
  }

 private:
  Keystream stream_;
  AlignedBuffer<std::uint8_t> piece_;
};

std::vector<MaskBlock> blocks_of(const Coverage& coverage, std::size_t block_size) {
  std::vector<MaskBlock> blocks;
  std::size_t position = 0;
  for (const Range& range : coverage.ranges())
    for (std::size_t at = range.begin; at < range.end;) {
      const std::size_t size = std::min(block_size, range.end - at);
      blocks.push_back({at, position, size});
      at += size;
      position += size;
    }
  return blocks;
}

// Groups small neighbouring ranges into one task, so that there are not too many tasks.
template <class Word>
void apply(std::span<Word> words, const Coverage& coverage, std::span<const MaskTerm> terms,
           StreamCipher cipher, Parallel& parallel) {
  FEDGE_CHECK(words.size() == coverage.count(), "a word for each parameter that is covered");
  FEDGE_CHECK(coverage.end() <= kMaxMaskedParameters, "streams are long enough");
  if (words.empty() || terms.empty()) return;
  constexpr std::size_t kBlock = kBlockBytes / sizeof(Word);
  // Gives each thread the same number of blocks of equal size, so that no thread finishes late.
  const auto pieces = [](std::size_t all, std::size_t largest) { return (all + largest - 1) / largest; };
  const std::size_t share = pieces(words.size(), parallel.width());
  const std::size_t most = std::max<std::size_t>(pieces(share, pieces(share, kBlock)), 1024);
  const std::vector<MaskBlock> blocks = blocks_of(coverage, most);
  std::vector<std::size_t> starts;
  std::size_t held = most;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    if (held + blocks[b].size > most) {
      starts.push_back(b);
      held = 0;
    }
    held += blocks[b].size;
  }
  starts.push_back(blocks.size());
  parallel.for_each(starts.size() - 1, [&](std::size_t task) {
    Masker<Word> masker(cipher);
    for (std::size_t b = starts[task]; b < starts[task + 1]; ++b) masker.apply(words, blocks[b], terms);
  });
}

}  // namespace

void apply_masks(std::span<std::uint32_t> words, const Coverage& coverage, std::span<const MaskTerm> terms,
                 StreamCipher cipher, Parallel& parallel) {
  apply(words, coverage, terms, cipher, parallel);
}

void apply_masks(std::span<std::uint64_t> words, const Coverage& coverage, std::span<const MaskTerm> terms,
                 StreamCipher cipher, Parallel& parallel) {
  apply(words, coverage, terms, cipher, parallel);
}

void apply_scalar_masks(std::span<std::uint64_t> scalars, std::span<const MaskTerm> terms,
                        StreamCipher cipher) {
  FEDGE_CHECK(scalars.size() <= kMaxScalars, "scalars have so much room in a stream");
  Keystream stream(cipher);
  std::vector<std::uint8_t> bytes(scalars.size() * sizeof(std::uint64_t));
  for (const MaskTerm& term : terms) {
    stream.start(*term.key);
    stream.next(bytes);
    add_bytes(scalars.data(), bytes.data(), scalars.size(), term.take_away);
  }
  wipe(bytes);
}

}  // namespace fedge::privacy
