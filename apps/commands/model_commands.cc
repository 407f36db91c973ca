#include "apps/commands/model_commands.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "apps/cli/validators.h"
#include "core/config/document.h"
#include "core/platform/thread_pool.h"
#include "core/safetensors.h"
#include "core/text.h"
#include "learn/generate.h"
#include "learn/kernels/kernels.h"
#include "learn/model_file.h"
#include "learn/models/adapters.h"
#include "learn/text/text_data.h"
#include "learn/weights/export.h"
#include "learn/weights/import.h"
#include "server/report/results_place.h"

namespace fedge::apps {
namespace {

// Checks --ranks against the model's adapters.
Result<void> check_ranks(const learn::ModelFile& file, const ModelOptions& options) {
  if (options.ranks == SIZE_MAX) return {};
  const std::size_t ranks = file.model->adapters() == nullptr ? 0 : file.model->adapters()->rank();
  if (options.ranks <= ranks) return {};
  return invalid("--ranks is " + std::to_string(options.ranks) + ", but " + options.file + " has " +
                 std::to_string(ranks) + " adapter ranks");
}

// A model may write any bytes: those that are not UTF-8, and control characters except line feed and tab,
// become U+FFFD.
std::string for_terminal(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size();) {
    std::uint32_t code = 0;
    const std::size_t size = take_character(text.substr(i), code);
    const bool control = (code < 0x20 && code != '\n' && code != '\t') || (code >= 0x7f && code < 0xa0);
    out += size == 0 || control ? std::string_view("\xef\xbf\xbd") : text.substr(i, size);
    i += std::max<std::size_t>(size, 1);
  }
  return out;
}

Result<std::string> generate_text(const ModelOptions& options) {
  FEDGE_TRY(file, learn::read_model_file(options.file));
  if (!file.model->input().tokens)
    return invalid(options.file + ": not a language model; it cannot generate text");
  FEDGE_TRY_VOID(check_ranks(file, options));
  FEDGE_TRY(tokenizer, learn::make_tokenizer(file.task.data.tokenizer));
  const std::string start = options.prompt.value_or(tokenizer.begin() ? "" : "\n");
  std::vector<learn::Token> text = tokenizer.prompt(start);
  if (text.empty()) return invalid("--prompt is empty; give at least one character");
  const auto written = learn::generate(*file.model, file.values.values(), text,
                                       {.tokens = options.tokens,
                                        .temperature = options.temperature,
                                        .top = options.top,
                                        .end = tokenizer.end(),
                                        .ranks = options.ranks,
                                        .written = {}},
                                       Rng(options.seed));
  text.insert(text.end(), written.begin(), written.end());
  return for_terminal(tokenizer.text(text)) + "\n";
}

// Checks that nothing is overwritten, in a folder this file of it.
Result<void> check_output(const ModelOptions& options, const std::string& file) {
  const std::filesystem::path out = options.out;
  return server::check_new_file(file.empty() ? out : out / file, options.force);
}

// Reads a published model and writes it as a model file.
Result<std::string> import_published(const ModelOptions& options) {
  FEDGE_TRY_VOID(server::check_new_file(options.out, options.force));
  FEDGE_TRY(imported,
            learn::import_model(options.file, {options.tokenizer, options.adapter, options.context}));
  FEDGE_TRY_VOID(write_safetensors(options.out, imported.values, imported.metadata));
  return options.out + ": " + std::to_string(imported.values.size()) + " parameters from a " +
         imported.format + "\n";
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

// The task of the merged model: that of the adapted model without its adapter.
Result<std::string> without_adapters(const std::string& task) {
  FEDGE_TRY(document, config::parse_toml(task, "task"));
  config::Table kept;
  for (const char* name : {"data", "model"})
    if (const auto section = document.root.find(name); section != document.root.end()) kept.insert(*section);
  if (const auto model = kept.find("model"); model != kept.end())
    if (auto* table = std::get_if<config::Table>(&model->second.data))
      for (const char* key : {"adapter", "base_dtype"}) table->erase(key);
  return config::canonical_toml(kept);
}

// Writes the model with each adapter added to its matrix, as if all parameters had been trained.
Result<std::string> merge_adapters(const ModelOptions& options) {
  FEDGE_TRY_VOID(server::check_new_file(options.out, options.force));
  FEDGE_TRY(file, learn::read_model_file(options.file));
  FEDGE_TRY(adapters, adapters_of(file, options.file));
  FEDGE_TRY_VOID(check_ranks(file, options));
  FEDGE_TRY(stored, ReadOnlyFile::open(options.file));
  FEDGE_TRY(header, read_safetensors_header(stored));
  auto layout = std::make_shared<ParameterLayout>();
  for (const TensorInfo& tensor : file.model->layout()->tensors())
    if (tensor.offset < adapters->offset()) layout->add(tensor.name, tensor.shape, {.layer = tensor.layer});
  AlignedBuffer<float> scratch(learn::kProductScratch);
  ParameterVector values(layout);
  adapters->merge(learn::kernels(), file.values.values(), options.ranks, values.values().data(),
                  scratch.data());
  FEDGE_TRY(task, without_adapters(header.metadata.at(learn::kTaskMetadata)));
  std::map<std::string, std::string> metadata = {{"model_hash", to_hex(model_hash(values.values()))},
                                                 {learn::kTaskMetadata, std::move(task)}};
  for (const char* key : {learn::kSeedMetadata, learn::kTokenizerMetadata})
    if (const auto kept = header.metadata.find(key); kept != header.metadata.end()) metadata.insert(*kept);
  FEDGE_TRY_VOID(write_safetensors(options.out, values, metadata));
  return options.out + ": " + std::to_string(values.size()) + " parameters, " +
         std::to_string(std::min(options.ranks, adapters->rank())) + " ranks merged\n";
}

// Writes each matrix's A [rank, in] and B [out, rank], scaled, under the layers' own names.
Result<void> write_adapter_file(const learn::ModelFile& file, std::size_t ranks, const std::string& path) {
  const learn::Adapters& adapters = *file.model->adapters();
  auto layout = std::make_shared<ParameterLayout>();
  const auto stem = [](const AdaptedMatrix& m) { return m.name.substr(0, m.name.rfind('.')); };
  for (const AdaptedMatrix& m : adapters.matrices()) {
    layout->add(stem(m) + ".lora_A.weight", {ranks, m.in});
    layout->add(stem(m) + ".lora_B.weight", {m.out, ranks});
  }
  ParameterVector values(layout);
  const auto row = [&](std::size_t j) {
    return file.values.values().subspan(adapters.shape().prefix(j).end, adapters.row());
  };
  for (const AdaptedMatrix& m : adapters.matrices()) {
    const auto a = values.tensor(*layout->find(stem(m) + ".lora_A.weight"));
    const auto b = values.tensor(*layout->find(stem(m) + ".lora_B.weight"));
    for (std::size_t j = 0; j < ranks; ++j) {
      std::ranges::copy(row(j).subspan(m.a, m.in), a.begin() + static_cast<std::ptrdiff_t>(j * m.in));
      for (std::size_t o = 0; o < m.out; ++o) b[o * ranks + j] = row(j)[m.b + o];
    }
  }
  const double alpha = static_cast<double>(adapters.shape().scale) * static_cast<double>(ranks);
  return write_safetensors(path, values,
                           {{"lora_alpha", std::to_string(alpha)}, {"r", std::to_string(ranks)}});
}

// Writes a folder in PEFT's format, or a single file under the layers' own names.
Result<std::string> export_adapters(const ModelOptions& options) {
  const bool file_alone = std::filesystem::path(options.out).extension() == ".safetensors";
  FEDGE_TRY_VOID(check_output(options, file_alone ? "" : "adapter_model.safetensors"));
  FEDGE_TRY(file, learn::read_model_file(options.file));
  FEDGE_TRY(adapters, adapters_of(file, options.file));
  FEDGE_TRY_VOID(check_ranks(file, options));
  const std::size_t ranks = std::min(options.ranks, adapters->rank());
  if (ranks == 0) return invalid("--ranks must be 1 or more, not 0");
  const std::string& kind = file.task.model.kind;
  if (!file_alone && kind != "llama" && kind != "transformer")
    return invalid("--out: the adapters of " + options.file + " belong to a model of kind \"" + kind +
                   "\", which PEFT does not know; name a .safetensors file");
  FEDGE_TRY_VOID(file_alone ? write_adapter_file(file, ranks, options.out)
                            : learn::export_adapters(file, ranks, options.base, options.out));
  const double alpha = static_cast<double>(adapters->shape().scale) * static_cast<double>(ranks);
  return options.out + ": " + std::to_string(adapters->matrices().size()) + " adapters of rank " +
         std::to_string(ranks) + ", lora_alpha " + std::to_string(alpha) + "\n";
}

// Writes the model as a folder that other programs read.
Result<std::string> export_model(const ModelOptions& options) {
  FEDGE_TRY_VOID(check_output(options, "model.safetensors"));
  FEDGE_TRY(file, learn::read_model_file(options.file));
  FEDGE_TRY_VOID(check_ranks(file, options));
  auto left_out = learn::export_folder(file, options.ranks, options.out);
  if (!left_out) return left_out.error().with_prefix(options.file + ": ");
  const std::size_t ranks =
      file.model->adapters() == nullptr ? 0 : std::min(options.ranks, file.model->adapters()->rank());
  return options.out + ": a folder as on Hugging Face" +
         (ranks > 0 ? ", with " + std::to_string(ranks) + " ranks of adapters merged" : "") + "\n" +
         (left_out->empty() ? "" : "not written: " + *left_out + "\n");
}

}  // namespace

ModelCommands::ModelCommands(CLI::App& app) {
  auto* model = app.add_subcommand("model")->require_subcommand(1);
  import_ = model->add_subcommand("import");
  import_
      ->add_option("--tokenizer", options_.tokenizer,
                   "Tokenizer to use instead of the model's own: tokenizer.json, tokenizer.model or "
                   "tokenizer.bin; required for a .bin file")
      ->type_name("FILE");
  import_
      ->add_option("--adapter", options_.adapter,
                   "Folder of adapters in PEFT's format, with adapter_config.json; they stay apart from the "
                   "model's own weights")
      ->type_name("DIR");
  import_
      ->add_option("--context", options_.context,
                   "Number of tokens that the model sees at a time; default: 1024, or the model's maximum if "
                   "that is less")
      ->check(between(1, 1'048'576));
  import_
      ->add_option("MODEL", options_.file,
                   "Folder with config.json and .safetensors files, .gguf file, or .bin file of llama2.c")
      ->required();
  generate_ = model->add_subcommand("generate");
  generate_->add_option(
      "--prompt", options_.prompt,
      "Text to continue; default: the beginning of a text, or a new line if the tokenizer has "
      "no token for it");
  generate_->add_option("--tokens", options_.tokens, "Number of tokens to generate")
      ->capture_default_str()
      ->check(between(1, 1'000'000));
  generate_
      ->add_option("--temperature", options_.temperature,
                   "Sampling temperature; 0: always the most likely token")
      ->capture_default_str()
      ->check(between(0, 100));
  generate_
      ->add_option("--top", options_.top, "Sample only from this many of the most likely tokens; 0: from all")
      ->capture_default_str();
  generate_->add_option("--seed", options_.seed, "Seed of the sampling")->capture_default_str();
  evaluate_ = model->add_subcommand("evaluate");
  add_evaluation();
  info_ = model->add_subcommand("info");
  merge_ = model->add_subcommand("merge");
  adapters_ = model->add_subcommand("adapters");
  adapters_->add_option("--base", options_.base,
                        "Name of the base model, for programs that load the adapters; default: empty");
  export_ = model->add_subcommand("export");
  for (auto* command : {import_, merge_})
    command->add_option("--out", options_.out, "Output file (.safetensors)")->type_name("FILE")->required();
  adapters_->add_option("--out", options_.out, "Output folder in PEFT's format, or a .safetensors file")
      ->type_name("PATH")
      ->required();
  export_->add_option("--out", options_.out, "Output folder")->type_name("DIR")->required();
  for (auto* command : {import_, merge_, adapters_, export_})
    command->add_flag("--force", options_.force, "Overwrite the output if it exists");
  for (auto* command : {generate_, merge_, adapters_, export_})
    command->add_option("--ranks", options_.ranks,
                        "Number of ranks of the adapters to use, counted from the first; default: all");
  for (auto* command : {generate_, info_, merge_, adapters_, export_})
    command
        ->add_option("FILE", options_.file, "Model file: model.safetensors of a run, or a pretrained model")
        ->required();
}

void ModelCommands::add_evaluation() {
  evaluation_.threads = available_processors();
  evaluate_
      ->add_option("FILE", evaluation_.file, "Model file: model.safetensors of a run, or a pretrained model")
      ->required();
  evaluate_
      ->add_option(
          "--dataset", evaluation_.dataset,
          "Data set; its test samples are used; default: the data and samples on which the model's run was "
          "evaluated")
      ->type_name("NAME");
  evaluate_
      ->add_option("--directory", evaluation_.directory,
                   "Directory of the data set; default: where its package or scripts/data.sh installs it")
      ->type_name("DIR");
  evaluate_->add_option(
      "--test-windows", evaluation_.test_windows,
      "Text only: number of held-out samples of each group; default: as in the model's run");
  evaluate_
      ->add_option("--ranks", evaluation_.ranks,
                   "Numbers of adapter ranks to evaluate; default: those used in training, and all")
      ->type_name("NUMBER,...")
      ->delimiter(',')
      ->check(between(1, 1024));
  evaluate_
      ->add_option(
          "--rouge", evaluation_.rouge,
          "Also report ROUGE-L on this many held-out lines of each group: the model gets each line up to "
          "its first \": \" and must produce the rest")
      ->check(between(1, 1'000'000));
  add_threads(*evaluate_, evaluation_.threads, "Number of threads; does not affect the result");
  add_format(*evaluate_, format_);
}

std::optional<Result<std::string>> ModelCommands::run() const {
  if (*import_) return import_published(options_);
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
  if (*export_) return export_model(options_);
  return std::nullopt;
}

}  // namespace fedge::apps
