#include "apps/commands/model_commands.h"

#include <algorithm>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/config/document.h"
#include "core/platform/thread_pool.h"
#include "core/safetensors.h"
#include "learn/generate.h"
#include "learn/kernels/kernels.h"
#include "learn/model_file.h"
#include "learn/models/adapters.h"
#include "learn/text/text_data.h"

namespace fedge::apps {
namespace {

// That the model has so many ranks, if any number was asked for.
Result<void> check_ranks(const learn::ModelFile& file, const ModelOptions& options) {
  if (options.ranks == SIZE_MAX) return {};
  const std::size_t ranks = file.model->adapters() == nullptr ? 0 : file.model->adapters()->rank();
  if (options.ranks <= ranks) return {};
  return invalid("--ranks: " + options.file + " has " + std::to_string(ranks) + " ranks, not " +
                 std::to_string(options.ranks));
}

Result<std::string> generate_text(const ModelOptions& options) {
  FEDGE_TRY(file, learn::read_model_file(options.file));
  if (!file.model->input().tokens) return invalid(options.file + ": this model writes no text");
  FEDGE_TRY_VOID(check_ranks(file, options));
  FEDGE_TRY(tokenizer, learn::make_tokenizer(file.task.data.tokenizer));
  const std::vector<learn::Token> prompt = tokenizer.encode(options.prompt);
  if (prompt.empty()) return invalid("--prompt is empty: the model needs something to go on from");
  const auto written = learn::generate(*file.model, file.values.values(), prompt,
                                       {.tokens = options.tokens,
                                        .temperature = options.temperature,
                                        .top = options.top,
                                        .ranks = options.ranks,
                                        .written = {}},
                                       Rng(options.seed));
  return tokenizer.decode(prompt) + tokenizer.decode(written) + "\n";
}

Result<std::string> describe_model(const ModelOptions& options) {
  FEDGE_TRY(file, learn::read_model_file(options.file));
  const ParameterLayout& layout = *file.model->layout();
  std::string said = options.file + ": " + std::to_string(layout.size()) + " parameters in " +
                     std::to_string(layout.tensors().size()) + " tensors\n";
  if (const learn::Adapters* adapters = file.model->adapters())
    said += "adapters of rank " + std::to_string(adapters->rank()) + " on " +
            std::to_string(adapters->matrices().size()) +
            " matrices: " + std::to_string(adapters->rank() * adapters->row()) + " parameters\n";
  for (const TensorInfo& tensor : layout.tensors()) {
    std::string shape;
    for (const std::size_t side : tensor.shape) shape += (shape.empty() ? "" : " x ") + std::to_string(side);
    said += "  " + tensor.name + "  " + shape + (tensor.trainable ? "" : "  frozen") + "\n";
  }
  return said;
}

Result<const learn::Adapters*> adapters_of(const learn::ModelFile& file, const std::string& path) {
  if (file.model->adapters() == nullptr) return invalid(path + ": this model has no adapters");
  return file.model->adapters();
}

// What the merged model is, from what the adapted one says of itself.
Result<std::string> without_adapters(const std::string& task) {
  FEDGE_TRY(document, config::parse_toml(task, "task"));
  config::Table kept;
  for (const char* name : {"data", "model"})
    if (const auto section = document.root.find(name); section != document.root.end()) kept.insert(*section);
  if (const auto model = kept.find("model"); model != kept.end())
    if (auto* table = std::get_if<config::Table>(&model->second.data)) table->erase("adapter");
  return config::canonical_toml(kept);
}

// The model with its adapters added to the matrices they belong to, as if it had been trained whole.
Result<std::string> merge_adapters(const ModelOptions& options) {
  FEDGE_TRY(file, learn::read_model_file(options.file));
  FEDGE_TRY(adapters, adapters_of(file, options.file));
  FEDGE_TRY_VOID(check_ranks(file, options));
  FEDGE_TRY(stored, ReadOnlyFile::open(options.file));
  FEDGE_TRY(header, read_safetensors_header(stored));
  auto layout = std::make_shared<ParameterLayout>();
  for (const TensorInfo& tensor : file.model->layout()->tensors())
    if (tensor.offset < adapters->offset()) layout->add(tensor.name, tensor.shape, {.layer = tensor.layer});
  learn::AdapterSpace space = adapters->make_space(1);
  AlignedBuffer<float> scratch(learn::kProductScratch);
  const float* merged =
      adapters->merge(learn::kernels(), file.values.values(), options.ranks, space, scratch.data());
  ParameterVector values(layout);
  std::copy_n(merged, values.size(), values.values().begin());
  FEDGE_TRY(task, without_adapters(header.metadata.at(learn::kTaskMetadata)));
  FEDGE_TRY_VOID(write_safetensors(
      options.out, values,
      {{"model_hash", to_hex(model_hash(values.values()))}, {learn::kTaskMetadata, std::move(task)}}));
  return options.out + ": " + std::to_string(values.size()) + " parameters, " +
         std::to_string(std::min(options.ranks, adapters->rank())) + " ranks merged\n";
}

// Each matrix's A [rank, in] and B [out, rank], scaled as it runs, under the names that LoRA files have.
Result<std::string> export_adapters(const ModelOptions& options) {
  FEDGE_TRY(file, learn::read_model_file(options.file));
  FEDGE_TRY(adapters, adapters_of(file, options.file));
  FEDGE_TRY_VOID(check_ranks(file, options));
  const std::size_t ranks = std::min(options.ranks, adapters->rank());
  if (ranks == 0) return invalid("--ranks 0 leaves nothing to write");
  auto layout = std::make_shared<ParameterLayout>();
  const auto stem = [](const AdaptedMatrix& m) { return m.name.substr(0, m.name.rfind('.')); };
  for (const AdaptedMatrix& m : adapters->matrices()) {
    layout->add(stem(m) + ".lora_A.weight", {ranks, m.in});
    layout->add(stem(m) + ".lora_B.weight", {m.out, ranks});
  }
  ParameterVector values(layout);
  const auto row = [&](std::size_t j) {
    return file.values.values().subspan(adapters->shape().prefix(j).end, adapters->row());
  };
  for (const AdaptedMatrix& m : adapters->matrices()) {
    const auto a = values.tensor(*layout->find(stem(m) + ".lora_A.weight"));
    const auto b = values.tensor(*layout->find(stem(m) + ".lora_B.weight"));
    for (std::size_t j = 0; j < ranks; ++j) {
      std::ranges::copy(row(j).subspan(m.a, m.in), a.begin() + static_cast<std::ptrdiff_t>(j * m.in));
      for (std::size_t o = 0; o < m.out; ++o) b[o * ranks + j] = row(j)[m.b + o];
    }
  }
  const double alpha = static_cast<double>(adapters->shape().scale) * static_cast<double>(ranks);
  FEDGE_TRY_VOID(write_safetensors(options.out, values,
                                   {{"lora_alpha", std::to_string(alpha)}, {"r", std::to_string(ranks)}}));
  return options.out + ": " + std::to_string(adapters->matrices().size()) + " adapters of rank " +
         std::to_string(ranks) + ", lora_alpha " + std::to_string(alpha) + "\n";
}

}  // namespace

ModelCommands::ModelCommands(CLI::App& app) {
  auto* model =
      app.add_subcommand("model", "What is in a model's file, and what it writes")->require_subcommand(1);
  generate_ = model->add_subcommand("generate", "Have a language model go on from a text");
  generate_->add_option("--prompt", options_.prompt, "What it goes on from [a new line]");
  generate_->add_option("--tokens", options_.tokens, "How many to write")
      ->capture_default_str()
      ->check(CLI::Range(1, 1'000'000));
  generate_->add_option("--temperature", options_.temperature, "0: always the likeliest")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 100.0));
  generate_->add_option("--top", options_.top, "Only among so many likeliest; 0: all")->capture_default_str();
  generate_->add_option("--seed", options_.seed, "Of what is drawn")->capture_default_str();
  evaluate_ =
      model->add_subcommand("evaluate", "Its figures on held-out data, also of its first ranks alone");
  add_evaluation();
  info_ = model->add_subcommand("info", "Its tensors");
  merge_ = model->add_subcommand("merge", "Add its adapters to the matrices they belong to");
  adapters_ = model->add_subcommand("adapters", "Write its adapters alone, as LoRA files name them");
  for (auto* command : {merge_, adapters_})
    command->add_option("--out", options_.out, "The file to be written (.safetensors)")->required();
  for (auto* command : {generate_, merge_, adapters_})
    command->add_option("--ranks", options_.ranks, "Only so many ranks of its adapters [all]");
  for (auto* command : {generate_, info_, merge_, adapters_})
    command->add_option("file", options_.file, "A run's model.safetensors, or a pretrained one")->required();
}

void ModelCommands::add_evaluation() {
  evaluation_.threads = available_processors();
  evaluate_->add_option("file", evaluation_.file, "A run's model.safetensors, or a pretrained one")
      ->required();
  evaluate_->add_option("--dataset", evaluation_.dataset, "Of what is held out [what it was trained on]");
  evaluate_->add_option("--directory", evaluation_.directory, "Where that lies [where its package puts it]");
  evaluate_->add_option("--test-windows", evaluation_.test_windows,
                        "Of a text: held-out samples of each group [as its run]");
  evaluate_
      ->add_option("--ranks", evaluation_.ranks,
                   "How many ranks of its adapters, as in: 4,8 [those it was trained for, and all]")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024));
  evaluate_
      ->add_option("--rouge", evaluation_.rouge,
                   "ROUGE-L of so many held-out lines of each group that it ends behind their \": \"")
      ->check(CLI::Range(1, 1'000'000));
  evaluate_->add_option("--threads", evaluation_.threads, "Threads; the result does not depend on it")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  evaluate_->add_option("--format", format_, "table or json, an object a line")
      ->capture_default_str()
      ->check(CLI::IsMember({"table", "json"}));
}

std::optional<Result<std::string>> ModelCommands::run() const {
  if (*generate_) return generate_text(options_);
  if (*evaluate_) {
    EvaluationOptions options = evaluation_;
    options.json = format_ == "json";
    const auto done = evaluate_model(options, stdout);
    if (!done) return done.error();
    return std::string();
  }
  if (*info_) return describe_model(options_);
  if (*merge_) return merge_adapters(options_);
  if (*adapters_) return export_adapters(options_);
  return std::nullopt;
}

}  // namespace fedge::apps
