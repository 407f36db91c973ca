#include "apps/commands/data_commands.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <functional>
#include <memory>
#include <span>

#include "apps/common.h"
#include "core/platform/files.h"
#include "learn/arrays/safetensors_writer.h"
#include "learn/data/validation.h"
#include "learn/models/external.h"
#include "learn/task.h"
#include "learn/text/bpe_trainer.h"
#include "learn/text/corpus.h"
#include "learn/text/text_data.h"
#include "protocol/limits.h"
#include "run/run_config.h"

namespace fedge::apps {
namespace {

struct Shared {
  std::uint64_t seed = 0;
  std::shared_ptr<const learn::Task> task;
};

// Whether the tensors of the model are those of its base.
bool names_external(const config::Table& model) {
  const auto kind = model.find("kind");
  const auto* name = kind == model.end() ? nullptr : std::get_if<std::string>(&kind->second.data);
  return name != nullptr && learn::is_external({.kind = *name});
}

Result<Shared> share_out(const DataOptions& options) {
  FEDGE_TRY(document, load_document(options.run_file, options.assignments));
  // The partition of the samples does not depend on the model's initial parameters.
  if (const auto model = document.root.find("model"); model != document.root.end())
    if (auto* table = std::get_if<config::Table>(&model->second.data);
        table != nullptr && !names_external(*table))
      for (const char* key : {"base", "base_hash"}) table->erase(key);
  FEDGE_TRY(config, run::read_run_config(document));
  print_notes(config);
  FEDGE_TRY_VOID(use_data(options.data, config.task.data));
  const auto task = learn::Task::build(config.task, config.seed);
  if (!task) return config::at_key(document, task.error());
  return Shared{config.seed, *task};
}

Result<void> write_part(const learn::Dataset& data, std::span<const std::uint32_t> samples,
                        const std::filesystem::path& path) {
  AlignedBuffer<float> images(samples.size() * data.shape.size());
  const bool wide = data.classes > 256;
  std::vector<std::uint8_t> labels;  // one or two bytes each, little-endian
  for (std::size_t i = 0; i < samples.size(); ++i) {
    data.read_inputs(samples[i], images.span().subspan(i * data.shape.size(), data.shape.size()));
    const learn::Label label = data.labels[samples[i]];
    labels.push_back(static_cast<std::uint8_t>(label & 0xFF));
    if (wide) labels.push_back(static_cast<std::uint8_t>(label >> 8));
  }
  const std::array<learn::ArrayOut, 2> arrays = {
      {{"images",
        learn::ElementType::kFloat32,
        {samples.size(), data.shape.height, data.shape.width, data.shape.channels},
        std::as_bytes(images.span())},
       {"labels",
        wide ? learn::ElementType::kUint16 : learn::ElementType::kUint8,
        {samples.size()},
        std::as_bytes(std::span(labels))}}};
  return learn::write_safetensors(arrays, path);
}

// Writes each window's text. Adjacent windows are joined; others begin on a new line.
Result<void> write_text(const learn::TaskSpec& spec, const learn::Dataset& data,
                        std::span<const std::uint32_t> samples, const std::filesystem::path& path) {
  FEDGE_TRY(tokenizer, learn::make_tokenizer(spec.data.tokenizer));
  std::string text;
  std::size_t end = SIZE_MAX;
  for (const std::uint32_t sample : samples) {
    const auto& window = data.text.windows[sample];
    const auto tokens = std::span(data.text.tokens);
    if (window.start != end) {
      if (!text.empty()) text += "\n";
      text += tokenizer.decode(tokens.subspan(window.start, 1));
    }
    text += tokenizer.decode(tokens.subspan(window.start + 1, window.targets));
    end = window.start + window.targets;
  }
  return write_file_atomic(path, text);
}

// Class counts: one column for each of a few classes, else the names of the classes that the client has.
constexpr std::size_t kColumns = 16;
constexpr std::size_t kNamed = 4;

std::string class_names(const learn::Dataset& data) {
  std::string said = ":";
  for (std::size_t i = 0; i < data.class_names.size(); ++i)
    said += (i > 0 ? ", " : " ") + std::to_string(i) + " " + data.class_names[i];
  return said;
}

std::string in_columns(const std::vector<std::uint64_t>& counts) {
  std::string said;
  char cell[32];
  for (const std::uint64_t count : counts) {
    std::snprintf(cell, sizeof cell, "%7llu", static_cast<unsigned long long>(count));
    said += cell;
  }
  return said;
}

std::string by_name(const std::vector<std::uint64_t>& counts, const learn::Dataset& data) {
  std::vector<std::size_t> held;
  for (std::size_t i = 0; i < counts.size(); ++i)
    if (counts[i] > 0) held.push_back(i);
  std::ranges::stable_sort(held, std::greater<>(), [&](std::size_t i) { return counts[i]; });
  std::string said;
  for (std::size_t i = 0; i < std::min(held.size(), kNamed); ++i)
    said += (i > 0 ? ", " : "") + data.class_names[held[i]] + " " + std::to_string(counts[held[i]]);
  if (held.size() > kNamed) said += " and " + std::to_string(held.size() - kNamed) + " more";
  return said;
}

}  // namespace

Result<std::string> partition_data(const DataOptions& options) {
  FEDGE_TRY(shared, share_out(options));
  const std::size_t clients = shared.task->clients();
  if (options.client && *options.client >= clients)
    return invalid("--client " + std::to_string(*options.client) +
                   ": there is no such client; data.partition.clients of " + options.run_file + " is " +
                   std::to_string(clients) + ", so clients are 0 to " + std::to_string(clients - 1));
  FEDGE_TRY_VOID(make_directory(options.out));
  std::string said;
  const bool text = shared.task->data().shape.tokens;
  const std::size_t first = options.client.value_or(0);
  const std::size_t last = options.client ? first + 1 : clients;
  for (std::size_t client = first; client < last; ++client) {
    const auto samples = shared.task->samples_of(ClientId(static_cast<std::uint32_t>(client)));
    const auto path = std::filesystem::path(options.out) /
                      ("client-" + std::to_string(client) + (text ? ".txt" : ".safetensors"));
    if (samples.empty()) {
      said += "client " + std::to_string(client) + " has no samples\n";
      continue;
    }
    FEDGE_TRY_VOID(text ? write_text(shared.task->spec(), shared.task->data(), samples, path)
                        : write_part(shared.task->data(), samples, path));
    said += path.string() + "  " + std::to_string(samples.size()) + " samples\n";
  }
  return said;
}

Result<std::string> list_data(const DataOptions& options) {
  FEDGE_TRY(shared, share_out(options));
  const learn::Dataset& data = shared.task->data();
  FEDGE_TRY(validation,
            learn::validation_samples(shared.task->spec().data, data.labels, data.classes, Rng(shared.seed)));
  const bool columns = data.classes <= kColumns;
  std::string said =
      shared.task->spec().data.dataset + ": " + std::to_string(data.size()) + " training samples" +
      (validation.empty() ? "" : " (" + std::to_string(validation.size()) + " for validation)") + ", " +
      std::to_string(data.classes) + (data.shape.tokens ? " groups" : " classes");
  if (columns) said += class_names(data);
  said += columns ? "\n  client  samples  of class" : "\n  client  samples  of";
  char line[64];
  for (std::size_t i = 0; columns && i < data.classes; ++i) {
    std::snprintf(line, sizeof line, i == 0 ? " %zu" : "%7zu", i);
    said += line;
  }
  said += "\n";
  for (std::size_t i = 0; i < shared.task->clients(); ++i) {
    const ClientId client(static_cast<std::uint32_t>(i));
    std::snprintf(line, sizeof line, "%8zu %8zu", i,
                  static_cast<std::size_t>(shared.task->sample_count(client).value()));
    const std::vector<std::uint64_t> counts = shared.task->label_counts(client);
    said += line + (columns ? "    " + in_columns(counts) : "  " + by_name(counts, data)) + "\n";
  }
  return said;
}

Result<std::string> learn_tokenizer(const DataOptions& options) {
  FEDGE_TRY(groups, learn::load_corpus(options.corpus, options.directory));
  std::string text;
  for (const learn::TextGroup& group : groups) text += group.train;
  FEDGE_TRY(table, learn::train_bpe(text, options.vocabulary));
  FEDGE_TRY_VOID(write_file_atomic(options.out, table));
  FEDGE_TRY(tokenizer, learn::Tokenizer::bpe(table));
  char line[96];
  const std::size_t tokens = tokenizer.encode(text).size();
  std::snprintf(line, sizeof line, ": %zu tokens, %.2f bytes a token of %s\n", tokenizer.vocabulary(),
                static_cast<double>(text.size()) / static_cast<double>(tokens), options.corpus.c_str());
  std::string said = options.out + line;
  if (table.size() > protocol::kMaxTaskText * 3 / 4)
    said += "warning: the table has " + std::to_string(table.size()) +
            " bytes; a run sends it to its clients with the task, which may have at most " +
            std::to_string(protocol::kMaxTaskText) + " bytes; use a smaller --vocabulary\n";
  return said;
}

}  // namespace fedge::apps
