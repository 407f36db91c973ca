// A corpus as a Dataset: each group's text as tokens, cut into consecutive windows, labelled with the group's
// number. 4 bytes per token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/config/reader.h"
#include "core/result.h"
#include "learn/data/dataset.h"
#include "learn/spec.h"
#include "learn/text/tokenizer.h"

namespace fedge::learn {

enum class TextSplit { kTrain, kHeldOut };

// Errors name data.tokenizer; kCorrupt if the BPE table is invalid.
Result<Tokenizer> make_tokenizer(const TokenizerSpec& spec);

// The content of data.tokenizer.table from the file that a run names. Errors name the file.
Result<std::string> read_tokenizer_table(TokenizerKind kind, const std::filesystem::path& path,
                                         std::size_t max_bytes);

// All groups' samples, in the groups' order; of the held-out text at most spec.test_windows per group (0:
// all). Errors are those of load_corpus(); kInvalid if there are more than 256 groups or no text.
Result<Dataset> load_text(const DataSpec& spec, TextSplit split);

// The source of all corpora; DataSpec::dataset names the corpus.
std::shared_ptr<const DataSource> read_corpus(config::Reader& section);

// Returns at most `wanted` (0: all) of these windows (ascending) of each group, evenly spread.
std::vector<std::uint32_t> spread_windows(const Dataset& data, std::span<const std::uint32_t> windows,
                                          std::size_t wanted);

// Returns a data set with only these samples (ascending) of a text.
Dataset select_windows(const Dataset& data, std::span<const std::uint32_t> samples);

}  // namespace fedge::learn
