// A model's .safetensors file that says what it is: its metadata "task" holds the run's [data], [model] and
// [training] as TOML, so that the model can be built again and a text put into its tokens.
#pragma once

#include <filesystem>
#include <memory>
#include <string>

#include "core/parameters.h"
#include "core/result.h"
#include "core/rng.h"
#include "learn/model.h"
#include "learn/spec.h"

namespace fedge::learn {

inline constexpr const char* kTaskMetadata = "task";

struct ModelFile {
  TaskSpec task;
  std::unique_ptr<Model> model;
  ParameterVector values;  // in the order of the model's layout
};

// kInvalid if the file does not say what it is, or is not that; other errors are read_safetensors'.
Result<ModelFile> read_model_file(const std::filesystem::path& path);

// model_hash() of a base's values in hexadecimal. Errors name model.base.
Result<std::string> base_hash(const std::filesystem::path& path);

// What a run over `data` begins with: what initialise() gives and, if the model's spec names a base, that
// file's tensors in place of all but the adapters'; of those too if the file has them. Errors name
// model.base; a base that says it had another tokenizer, other heads or
// other adapters is one, and so is one that is not the run's base_hash.
Result<ParameterVector> initial_parameters(const Model& model, const DataSpec& data, const Rng& rng);

}  // namespace fedge::learn
