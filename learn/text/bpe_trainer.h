// Learns the merges of a byte-level BPE from a text (Sennrich, Haddow, Birch 2016, algorithm 1). It
// repeatedly makes a token of the most frequent pair of neighbours within words (words.h); of equally
// frequent pairs it takes the smaller (left token, then right). The same text always gives the same table.
// Counts of pairs are updated instead of recomputed: 10 MB of English and 2,000 merges take seconds. Memory:
// about 100 bytes per distinct word. Single-threaded.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "core/result.h"

namespace fedge::learn {

// Returns the text of a table for Tokenizer::bpe (format: bpe_table.h). It has vocabulary - 256 merges, or
// fewer if no pair occurs twice any more. kInvalid unless `vocabulary` is 256 to 65,535.
Result<std::string> train_bpe(std::string_view text, std::size_t vocabulary);

}  // namespace fedge::learn
