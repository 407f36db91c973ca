// A .safetensors file of a model that describes itself: its metadata "task" holds the run's [data], [model]
// and [training] as TOML. They suffice to rebuild the model and to tokenize a text for it. The metadata
// "seed" selects the validation samples of a run that has some.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "core/config/document.h"
#include "core/parameters.h"
#include "core/result.h"
#include "core/rng.h"
#include "learn/model.h"
#include "learn/spec.h"

namespace fedge::learn {

inline constexpr const char* kTaskMetadata = "task";
inline constexpr const char* kSeedMetadata = "seed";
// The content of data.tokenizer.table, if it is not in the task: vocabularies of published models are long.
inline constexpr const char* kTokenizerMetadata = "tokenizer";

// The metadata of a model that was trained for a run with this seed. It contains the seed only if the run has
// validation samples, which the seed selects, and the tokenizer if it is not in the task.
std::map<std::string, std::string> task_metadata(const std::string& task_text, const DataSpec& data,
                                                 std::uint64_t seed);

struct ModelFile {
  TaskSpec task;
  std::optional<std::uint64_t> seed;  // of the run, if it has validation samples
  std::unique_ptr<Model> model;
  ParameterVector values;  // in the order of the model's layout
};

// kInvalid, naming the key, if programs would not read a file with this description.
Result<void> check_description(const std::map<std::string, std::string>& metadata, const std::string& name);
// kInvalid if the file has no description or does not match it; other errors are read_safetensors'.
Result<ModelFile> read_model_file(const std::filesystem::path& path);

// The model_hash() of a base's values, in hexadecimal. Errors are those of read_safetensors().
Result<std::string> base_hash(const std::filesystem::path& path);

// The sections of a run file that a base's description implies. Both are empty if it has none.
struct BaseDescription {
  config::Table model;                     // [model] without adapters and personal layers
  std::optional<config::Table> tokenizer;  // [data.tokenizer], of a text
};
Result<BaseDescription> describe_base(const std::filesystem::path& path);

// Returns the model that a run over `data` starts with. If the model's spec names a base, its tensors replace
// those of initialise(); the adapters' are replaced only if the base has them. Frozen matrices are rounded to
// model.base_dtype. Errors name model.base; among them are a base with another tokenizer, other heads or
// other adapters, and one with another base_hash.
Result<ParameterVector> initial_parameters(const Model& model, const DataSpec& data, const Rng& rng);

}  // namespace fedge::learn
