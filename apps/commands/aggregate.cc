#include "apps/commands/aggregate.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "aggregation/spec.h"
#include "aggregation/value_check.h"
#include "apps/cli/validators.h"
#include "core/aligned_buffer.h"
#include "core/config/document.h"
#include "core/platform/files.h"
#include "core/platform/thread_pool.h"
#include "core/safetensors.h"
#include "server/report/results_place.h"

namespace fedge::apps {
namespace {

using namespace aggregation;

constexpr std::size_t kMaxModel = std::size_t{1} << 36;
constexpr std::size_t kPiece = std::size_t{1} << 16;

// A file's values minus those of the global model, read in pieces.
class FileValues final : public UpdateValues {
 public:
  FileValues(ReadOnlyFile file, std::size_t data_offset, std::span<const float> global)
      : file_(std::move(file)), data_offset_(data_offset), global_(global) {}
  Result<void> read(std::size_t first, std::span<float> out) const override {
    FEDGE_TRY_VOID(file_.read(data_offset_ + first * sizeof(float), std::as_writable_bytes(out)));
    if (global_.empty()) return {};
    for (std::size_t i = 0; i < out.size(); ++i) out[i] -= global_[first + i];
    return {};
  }

 private:
  ReadOnlyFile file_;
  std::size_t data_offset_;
  std::span<const float> global_;
};

template <class Kinds>
bool has_name(const Kinds& kinds, const std::string& name) {
  return std::any_of(kinds.begin(), kinds.end(), [&](const auto& kind) { return name == kind.name; });
}

std::vector<std::string> aggregation_names() {
  std::vector<std::string> names;
  for (const auto& recipe : recipes()) names.emplace_back(recipe.name);
  for (const auto& kind : aggregator_kinds()) names.emplace_back(kind.name);
  return names;
}

// The section prefix of an option without one: that of the strategy's part that has the option.
std::string section_of(const std::string& key, const StrategySpec& parts) {
  for (const PartDoc& part : describe_parts()) {
    if (part.name != parts.aggregator_kind && part.name != parts.server_optimizer_kind) continue;
    for (const config::KeyDoc& option : part.options)
      if (option.path == part.section + "." + key) return part.section + ".";
  }
  return "strategy.";
}

Result<StrategySpec> read_parts(const config::Document& document) {
  config::Reader root(document.root, "", document.name);
  StrategySpec spec = read_strategy(root);
  FEDGE_TRY_VOID(root.finish());
  return spec;
}

Result<StrategySpec> choose_strategy(const AggregateOptions& options) {
  config::Document document{"fedge aggregate", {}};
  const bool recipe = has_name(recipes(), options.strategy);
  if (!recipe && !has_name(aggregator_kinds(), options.strategy))
    return invalid(
        "--strategy: " + unknown_word("strategy or aggregator", options.strategy, aggregation_names()) +
        " (list all with: fedge strategies)");
  FEDGE_TRY_VOID(
      config::set(document, (recipe ? "strategy.kind=" : "strategy.aggregator.kind=") + options.strategy));
  FEDGE_TRY(parts, read_parts(document));
  for (const std::string& assignment : options.assignments) {
    const std::string key = assignment.substr(0, assignment.find('='));
    const bool placed = key.find('.') != std::string::npos;
    FEDGE_TRY_VOID(config::set(document, (placed ? "strategy." : section_of(key, parts)) + assignment));
  }
  return read_parts(document);
}

Result<std::uint64_t> number_in(const std::map<std::string, std::string>& metadata, const std::string& key,
                                const std::string& file) {
  const auto entry = metadata.find(key);
  if (entry == metadata.end()) return std::uint64_t{1};
  std::uint64_t value = 0;
  const char* end = entry->second.data() + entry->second.size();
  const auto parsed = std::from_chars(entry->second.data(), end, value);
  if (parsed.ec != std::errc() || parsed.ptr != end || value == 0)
    return invalid(file + ": metadata " + key + " is '" + entry->second.substr(0, 80) +
                   "'; it must be a positive integer");
  return value;
}

struct Model {
  std::shared_ptr<const ParameterLayout> layout;
  std::string origin;      // file whose tensors the others must match
  ParameterVector values;  // of the global model, or zeros
  bool global = false;
};

Result<Model> open_model(const AggregateOptions& options) {
  Model model{
      nullptr, options.global.empty() ? options.files.front() : options.global, {}, !options.global.empty()};
  if (model.global) {
    FEDGE_TRY(loaded, read_safetensors(options.global, kMaxModel));
    model.layout = loaded.values.shared_layout();
    model.values = std::move(loaded.values);
    return model;
  }
  FEDGE_TRY(file, ReadOnlyFile::open(model.origin));
  FEDGE_TRY(header, read_safetensors_header(file));
  model.layout = std::make_shared<const ParameterLayout>(std::move(header.layout));
  model.values = ParameterVector(model.layout);
  return model;
}

// Reads the file once: checks every value and computes the norm.
Result<Update> open_update(const std::string& path, std::uint32_t number, const Model& model,
                           const FixedPoint& format) {
  FEDGE_TRY(file, ReadOnlyFile::open(path));
  FEDGE_TRY(header, read_safetensors_header(file));
  const std::string misfit = path + ": differs from " + model.origin + ": ";
  if (const auto same = check_same_tensors(header.layout, *model.layout); !same)
    return same.error().with_prefix(misfit);
  if (header.layout.hash() != model.layout->hash())
    return invalid(misfit + "the tensors are in another order");
  Update update{.client = ClientId(number)};
  FEDGE_TRY(samples, number_in(header.metadata, "num_examples", path));
  FEDGE_TRY(steps, number_in(header.metadata, "num_steps", path));
  update.weight = SampleCount(samples);
  update.steps = steps;
  update.coverage = Coverage::all(model.layout->size());
  const auto global = model.global ? std::as_const(model.values).values() : std::span<const float>();
  const auto values = std::make_shared<FileValues>(std::move(file), header.data_offset, global);
  AlignedBuffer<float> buffer(kPiece);
  double squares = 0;
  for (std::size_t first = 0; first < model.layout->size(); first += kPiece) {
    const auto piece = buffer.span().first(std::min(kPiece, model.layout->size() - first));
    FEDGE_TRY_VOID(values->read(first, piece));
    if (const auto checked = check_values(*model.layout, format, {&update.coverage, first, piece}); !checked)
      return checked.error().with_prefix(path + ": ");
    squares += sum_of_squares(piece);
  }
  update.norm = std::sqrt(squares);
  update.values = values;
  return update;
}

}  // namespace

Result<std::string> aggregate(const AggregateOptions& options) {
  if (!options.weights.empty() && options.weights.size() != options.files.size())
    return invalid("--weights has " + std::to_string(options.weights.size()) + " values for " +
                   std::to_string(options.files.size()) + " files; give one weight for each file");
  FEDGE_TRY_VOID(server::check_new_file(options.out, options.force));
  FEDGE_TRY(strategy, choose_strategy(options));
  if (strategy.traits.adapters)
    return invalid("--strategy: " + strategy.aggregator_kind +
                   " aggregates adapters, which is possible in a run only; choose another strategy");
  if (strategy.traits.reads_losses || strategy.sums_clients)
    return invalid(std::string("--strategy: ") + strategy.recipe->name +
                   " needs more of the clients than their models, which is possible in a run only; choose "
                   "another strategy");
  FEDGE_TRY(model, open_model(options));
  ThreadPool threads(options.threads);
  std::vector<Update> updates;
  for (std::size_t i = 0; i < options.files.size(); ++i) {
    FEDGE_TRY(update,
              open_update(options.files[i], static_cast<std::uint32_t>(i), model, strategy.fixed_point));
    if (!options.weights.empty()) update.weight = SampleCount(options.weights[i]);
    if (update.weight.value() == 0)
      return invalid("--weights: the weight of " + options.files[i] + " is 0; it must be 1 or more");
    updates.push_back(std::move(update));
  }
  const auto rule = strategy.aggregator.make(
      {.layout = model.layout, .fixed_point = strategy.fixed_point, .max_updates = updates.size()});
  const auto optimizer = strategy.server_optimizer(model.layout->size());
  FEDGE_TRY_VOID(rule->add(updates, threads));
  FEDGE_TRY_VOID(rule->prepare(threads));
  const std::span<float> values = model.values.values();
  for (std::size_t first = 0; first < values.size(); first += kPiece)
    FEDGE_TRY_VOID(step_model(*rule, *optimizer, first,
                              values.subspan(first, std::min(kPiece, values.size() - first)), threads));
  std::uint64_t samples = 0;
  for (const Update& update : updates) samples += update.weight.value();
  FEDGE_TRY_VOID(
      write_safetensors(options.out, model.values,
                        {{"num_examples", std::to_string(samples)}, {"strategy", options.strategy}}));
  return options.out + ": " + std::to_string(updates.size()) + " files by " + options.strategy + ", " +
         std::to_string(values.size()) + " parameters";
}

}  // namespace fedge::apps
