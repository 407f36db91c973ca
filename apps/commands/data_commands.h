// `fedge data`: lists the samples of a run's clients, and writes them to files for a trainer program.
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
  std::vector<std::string> data;         // --data
  std::string out;                       // partition: the directory, created if absent
  std::optional<std::uint32_t> client;   // partition: only this one
  std::string corpus;                    // tokenizer: the text to learn from
  std::string directory;
  std::size_t vocabulary = 1024;
};

// Writes client-N.safetensors: `images` (float32, samples x height x width x channels, normalised) and
// `labels` (uint8, or uint16 with more than 256 classes), the samples of the built-in trainer in its order.
// For text data it writes the samples' text to client-N.txt. Returns the text to print.
Result<std::string> partition_data(const DataOptions& options);
// A table of clients, their samples and the number of samples of each class.
Result<std::string> list_data(const DataOptions& options);
// Learns byte pair merges from a corpus' training text and writes them to a file.
Result<std::string> learn_tokenizer(const DataOptions& options);

}  // namespace fedge::apps
