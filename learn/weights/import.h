// Import: turns a published language model into a model file of Fedge, whose metadata describe model and
// tokenizer (learn/model_file.h).
#pragma once

#include <cstddef>
#include <filesystem>
#include <map>
#include <string>

#include "core/parameters.h"
#include "core/result.h"
#include "learn/weights/published.h"

namespace fedge::learn {

// Tokens of a sample and of generated text, if the user names no other number and the model can take more.
inline constexpr std::size_t kDefaultContext = 1024;

struct ImportOptions {
  std::filesystem::path tokenizer;  // empty: the model's own
  std::filesystem::path adapters;   // a folder with adapters in PEFT's format; empty: none
  std::size_t context = 0;          // 0: kDefaultContext, or the model's longest if that is less
};

struct ImportedModel {
  std::string format;
  ParameterVector values;
  std::map<std::string, std::string> metadata;
};

// Errors are those of open_published(), read_weights() and read_adapters(); kInvalid for a context above the
// model's.
Result<ImportedModel> import_model(const std::filesystem::path& path, const ImportOptions& options);

// [model] of a run file for this kind and these sizes.
std::string model_section(const ModelSpec& spec);

}  // namespace fedge::learn
