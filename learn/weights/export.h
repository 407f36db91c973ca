// Export: writes a language model as other programs read it.
//   a folder as on Hugging Face: config.json, model.safetensors (float32) and tokenizer.json
//   adapters in the format of PEFT: adapter_config.json, adapter_model.safetensors
// Adapters of GPT-2's q, k and v, which are one matrix there, become one adapter of three times the rank.
#pragma once

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

#include "core/result.h"
#include "learn/model_file.h"
#include "learn/text/vocabulary/files.h"

namespace fedge::learn {

// Writes the model with the first `ranks` of its adapters added to its matrices. The folder is made if it
// does not exist. Returns what was left out, for a person; empty: nothing. kUnsupported for a model that is
// no language model of the Llama or GPT-2 family.
Result<std::string> export_folder(const ModelFile& model, std::size_t ranks,
                                  const std::filesystem::path& folder);

// Writes the first `ranks` of the model's adapters. `base`: the name of the base model in the configuration.
Result<void> export_adapters(const ModelFile& model, std::size_t ranks, const std::string& base,
                             const std::filesystem::path& folder);

// Adds adapters in PEFT's format to a model without any: its [model.adapter] and the values of the "adapter"
// tensor. Errors name the file, and the key or tensor; an adapter that Fedge would compute differently is
// refused.
struct ReadAdapters {
  AdapterSpec spec;
  ParameterVector values;  // of the model with these adapters
};
Result<ReadAdapters> read_adapters(const std::filesystem::path& folder, const ModelSpec& spec,
                                   std::size_t context, const ParameterVector& base, std::size_t tokens);

}  // namespace fedge::learn
