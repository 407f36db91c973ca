// `fedge data`: which samples each client of a run has, and writing them to files for a trainer program.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"

namespace fedge::apps {

struct DataOptions {
  std::string run_file;
  std::vector<std::string> assignments;  // --set
  std::string out;                       // partition: the directory, made if absent
  std::optional<std::uint32_t> client;   // partition: only this one
  std::string corpus;                    // tokenizer: what is learned from
  std::string directory;
  std::size_t vocabulary = 1024;
};

// Writes client-N.safetensors: `images` (float32, samples x height x width x channels, normalised) and
// `labels` (uint8), the samples that the built-in trainer would use, in its order; of a text client-N.txt,
// what its samples say. What is to be said on the terminal.
Result<std::string> partition_data(const DataOptions& options);
// A table of clients, their samples and how many there are of each class.
Result<std::string> list_data(const DataOptions& options);
// Learns a table of byte pairs from a corpus' training text and writes it.
Result<std::string> learn_tokenizer(const DataOptions& options);

}  // namespace fedge::apps
