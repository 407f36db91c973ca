// Learns the merges of a byte-level BPE from a text (Sennrich, Haddow, Birch 2016, algorithm 1): over and
// over the most frequent pair of neighbours within words (words.h) becomes a token; of equally frequent
// pairs the smaller (left token, then right). The same text gives the same table, everywhere.
// Counts of pairs are kept up to date instead of taken anew: 10 MB of English and 2,000 merges take
// seconds, and memory of about the text's different words times 100 bytes. One thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/result.h"

namespace fedge::learn {

// The table for Tokenizer::bpe (bpe_table.h has the format) with vocabulary - 256 merges, or fewer if no pair
// is left that occurs twice. `vocabulary` is 256 to 65,535, else kInvalid.
Result<std::string> train_bpe(std::string_view text, std::size_t vocabulary);

}  // namespace fedge::learn
