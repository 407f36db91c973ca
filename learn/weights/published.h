// A language model as it was published: its kind and sizes, its vocabulary, and where each of Fedge's tensors
// is in its files. Readable are
//   a folder as on Hugging Face: config.json, model.safetensors or its shards with
//   model.safetensors.index.json,
//     and tokenizer.json or tokenizer.model; of the Llama family (also Mistral without a sliding window) and
//     of GPT-2
//   a .gguf file of the Llama family or of GPT-2, with F32, F16, BF16, Q8_0, Q4_0 or Q4_1 tensors
//   a .bin file of llama2.c (version 0), with the tokenizer.bin that belongs to it
// A model that Fedge would compute differently is refused with the reason. Nothing in a file is trusted.
#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/parameters.h"
#include "core/result.h"
#include "learn/spec.h"
#include "learn/text/vocabulary/files.h"
#include "learn/text/vocabulary/vocabulary.h"
#include "learn/weights/weight_file.h"

namespace fedge::learn {

// How a stored matrix becomes a tensor of Fedge.
enum class Arrangement {
  kSame,
  kTransposed,   // stored [in, out]
  kInterleaved,  // rows of each head in pairs, as in Meta's Llama; Fedge has the first halves, then the
                 // second
};

// Where one of Fedge's tensors comes from.
struct WeightPart {
  std::string tensor;  // Fedge's name
  std::size_t file = 0;
  std::string stored;  // the name in the file
  Arrangement arrangement = Arrangement::kSame;
  std::size_t heads = 1;  // kInterleaved: among which the rows are divided
  std::size_t first_row =
      0;  // of the arranged matrix, or element of a vector; the tensor's size says how many
};

struct PublishedModel {
  std::string format;     // "Hugging Face folder" ...
  ModelSpec spec;         // kind and sizes
  Vocabulary vocabulary;  // as many tokens as the embedding has rows
  std::vector<WeightFile> files;
  std::vector<WeightPart> parts;
};

// `tokenizer`: of a .bin file, its tokenizer.bin; of a folder or .gguf file a tokenizer.json, tokenizer.model
// or tokenizer.bin instead of its own; empty: its own. Errors name the file, and the key or tensor.
Result<PublishedModel> open_published(const std::filesystem::path& path,
                                      const std::filesystem::path& tokenizer);

// The values of all tensors of the layout. kInvalid if one is missing or has another shape.
Result<ParameterVector> read_weights(const PublishedModel& published,
                                     std::shared_ptr<const ParameterLayout> layout);

// Adds control tokens up to `tokens`. kInvalid if the vocabulary has more.
Result<void> fill_vocabulary(Vocabulary& vocabulary, std::size_t tokens);

// The formats, each for open_published().
Result<PublishedModel> open_hugging_face(const std::filesystem::path& folder,
                                         const std::filesystem::path& tokenizer);
Result<PublishedModel> open_gguf(const std::filesystem::path& path, const std::filesystem::path& tokenizer);
Result<PublishedModel> open_llama2c(const std::filesystem::path& path,
                                    const std::filesystem::path& tokenizer);

}  // namespace fedge::learn
