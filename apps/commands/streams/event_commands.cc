#include "apps/commands/streams/event_commands.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <filesystem>
#include <numeric>
#include <string_view>

#include "apps/cli/validators.h"
#include "core/aligned_buffer.h"
#include "learn/arrays/array_file.h"
#include "learn/data/batch.h"
#include "learn/data/dataset.h"
#include "learn/data/files/data_files.h"
#include "learn/evaluation/evaluate.h"
#include "learn/evaluation/events.h"
#include "learn/model_file.h"
#include "learn/screening/confirmation.h"

namespace fedge::apps {
namespace {

constexpr std::size_t kBatch = 32;
constexpr std::size_t kDescription = 4;  // numbers of a window
constexpr std::size_t kMostNumbers = std::size_t{1} << 28;

struct Found {
  std::size_t device = 0;
  double begin = 0;  // seconds
  double end = 0;
  double metres = 0;
  std::uint32_t label = 0;
};

// The descriptions of the windows in a directory.
struct Windows {
  std::vector<double> description;
  std::vector<double> metres;  // empty: unknown
};

Result<std::vector<double>> numbers_of(const std::filesystem::path& file, const char* array) {
  FEDGE_TRY(stream, learn::ArrayStream::open(file, array));
  if (stream.header().type != learn::ElementType::kFloat64 || stream.header().elements > kMostNumbers)
    return invalid(stream.name() + " does not describe segments of a stream");
  std::vector<double> numbers(stream.header().elements);
  std::vector<std::byte> bytes(numbers.size() * sizeof(double));
  FEDGE_TRY_VOID(stream.read(bytes));
  FEDGE_TRY_VOID(stream.finish());
  learn::to_doubles(learn::ElementType::kFloat64, bytes, numbers);
  return numbers;
}

Result<Windows> windows_in(const std::string& directory) {
  constexpr std::array<std::string_view, 1> kEnding = {".safetensors"};
  FEDGE_TRY(files, learn::files_at(directory, kEnding));
  Windows windows;
  bool placed = true;
  for (const auto& file : files) {
    FEDGE_TRY(numbers, numbers_of(file, "description"));
    windows.description.insert(windows.description.end(), numbers.begin(), numbers.end());
    const auto metres = numbers_of(file, "metres");
    if (!metres && metres.error().code != ErrorCode::kNotFound) return metres.error();
    placed = placed && metres;
    if (metres) windows.metres.insert(windows.metres.end(), metres->begin(), metres->end());
  }
  if (!placed) windows.metres.clear();
  return windows;
}

// The classes that the model predicts, samples x steps.
Result<std::vector<std::uint32_t>> predict(const learn::ModelFile& file, const learn::Dataset& data) {
  const learn::Model& model = *file.model;
  const std::size_t steps = model.outputs_per_sample();
  const std::size_t classes = model.classes();
  std::vector<std::uint32_t> predicted;
  learn::BatchBuffer buffer(data.shape.size(), false, kBatch);
  AlignedBuffer<float> logits(kBatch * steps * classes);
  const auto space = model.make_workspace(kBatch);
  for (std::size_t first = 0; first < data.size(); first += kBatch) {
    std::vector<std::uint32_t> samples(std::min(kBatch, data.size() - first));
    std::iota(samples.begin(), samples.end(), static_cast<std::uint32_t>(first));
    const auto scores = logits.span().first(samples.size() * steps * classes);
    model.forward(file.values.values(), buffer.read(data, samples), scores, *space);
    for (std::size_t at = 0; at < scores.size(); at += classes) {
      const auto one = scores.subspan(at, classes);
      predicted.push_back(static_cast<std::uint32_t>(std::ranges::max_element(one) - one.begin()));
    }
  }
  return predicted;
}

// An event that is in several windows is one.
void add_found(const Found& found, std::vector<Found>& all) {
  for (auto other = all.rbegin(); other != all.rend() && other->device == found.device; ++other) {
    if (other->label != found.label || found.begin > other->end || found.end < other->begin) continue;
    other->begin = std::min(other->begin, found.begin);
    other->end = std::max(other->end, found.end);
    return;
  }
  all.push_back(found);
}

// Returns whether the positions of the events are known.
Result<bool> find_in(const learn::ModelFile& file, const std::string& directory, std::size_t device,
                     std::vector<Found>& all) {
  learn::DataSpec spec = file.task.data;
  spec.directory = directory;
  spec.split = {.kind = learn::SplitKind::kShare, .test = 0};
  FEDGE_TRY(data, spec.source->load(spec, learn::Split::kTrain));
  if (!(data.shape == file.model->input()))
    return invalid(directory + ": its segments do not have the input shape of the model");
  FEDGE_TRY(windows, windows_in(directory));
  if (windows.description.size() != data.size() * kDescription ||
      (!windows.metres.empty() && windows.metres.size() != data.size() * 2))
    return invalid(directory + ": its files describe another number of windows than they have");
  FEDGE_TRY(predicted, predict(file, data));
  const std::size_t steps = file.model->outputs_per_sample();
  for (std::size_t w = 0; w < data.size(); ++w) {
    const double* about = windows.description.data() + w * kDescription;
    const auto classes = std::span(predicted).subspan(w * steps, steps);
    for (const learn::StepEvent& event : learn::events_of(classes)) {
      const double middle = static_cast<double>(event.begin + event.end) / 2;
      Found found{.device = device,
                  .begin = about[0] + static_cast<double>(event.begin) / about[1],
                  .end = about[0] + static_cast<double>(event.end) / about[1],
                  .label = event.label};
      if (!windows.metres.empty()) {
        const double* metres = windows.metres.data() + 2 * w;
        const double share = (middle - about[2]) / std::max(about[3] - about[2], 1.0);
        found.metres = metres[0] + std::clamp(share, 0.0, 1.0) * (metres[1] - metres[0]);
      }
      add_found(found, all);
    }
  }
  return !windows.metres.empty();
}

std::string name_of(const learn::ModelFile& file, std::uint32_t label) {
  const auto names = learn::class_names(file.task.data);
  return label < names.size() ? names[label] : std::to_string(label);
}

Result<std::string> list_events(const EventOptions& options) {
  FEDGE_TRY(file, learn::read_model_file(options.model));
  if (!learn::sums_shape(*file.model).steps || !file.task.data.source)
    return invalid(options.model + ": not a model that finds events in windows of a stream");
  std::vector<Found> all;
  std::string unplaced;
  for (std::size_t i = 0; i < options.directories.size(); ++i) {
    FEDGE_TRY(placed, find_in(file, options.directories[i], i, all));
    if (!placed) unplaced = options.directories[i];
  }
  char line[256];
  if (options.confirm == 0) {
    std::string text = "device,begin_seconds,end_seconds,metres,class\n";
    for (const Found& one : all) {
      std::snprintf(line, sizeof line, "%zu,%.2f,%.2f,%.1f,", one.device, one.begin, one.end, one.metres);
      text += line + name_of(file, one.label) + "\n";
    }
    return text;
  }
  if (!unplaced.empty())
    return invalid("--confirm: the segments in " + unplaced +
                   " have no positions; their stream needs a column \"metres\"");
  std::vector<learn::Detection> detections;
  for (const Found& one : all) detections.push_back({one.device, one.metres, one.label});
  std::string text = "metres,class,devices\n";
  for (const auto& one : learn::confirm(std::move(detections), options.within, options.confirm)) {
    std::snprintf(line, sizeof line, "%.1f,", one.metres);
    text += line + name_of(file, one.label) + "," + std::to_string(one.vehicles) + "\n";
  }
  return text;
}

}  // namespace

EventCommands::EventCommands(CLI::App& app) {
  events_ = app.get_subcommand("model")->add_subcommand("events");
  events_->add_option("FILE", options_.model, "Model file of a run with data.task = \"segmentation\"")
      ->required();
  events_
      ->add_option("DIR", options_.directories,
                   "Directories of segments, one for each device, as fedge data screen writes them")
      ->required();
  events_
      ->add_option("--confirm", options_.confirm,
                   "List only the places at which at least this many devices have found an event of a class")
      ->type_name("DEVICES")
      ->check(between(1, 65'536));
  events_->add_option("--within", options_.within, "Extent of such a place, in metres")
      ->type_name("METRES")
      ->capture_default_str()
      ->check(between(0.01, 1e6));
}

std::optional<Result<std::string>> EventCommands::run() const {
  if (!events_->parsed()) return std::nullopt;
  return list_events(options_);
}

}  // namespace fedge::apps
