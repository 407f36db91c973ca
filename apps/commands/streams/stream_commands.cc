#include "apps/commands/streams/stream_commands.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>

#include "apps/cli/validators.h"
#include "core/detail/json.h"
#include "core/platform/files.h"
#include "learn/screening/segment_store.h"
#include "learn/screening/stream_screening.h"

namespace fedge::apps {
namespace {

constexpr std::size_t kPiece = std::size_t{1} << 16;
constexpr double kMegabyte = 1024 * 1024;

// Which of the labelled events screening has found: those of which at least half of the samples are kept.
class Recall {
 public:
  void add(std::uint64_t number, std::uint8_t label) {
    if (label == 0) {
      last_ = 0;
      return;
    }
    if (label != last_) events_.push_back({number, number});
    last_ = label;
    events_.back().end = number + 1;
  }
  void keep(std::uint64_t begin, std::uint64_t end) {
    // Segments come in order, each after the samples of its events.
    while (first_ < events_.size() && events_[first_].end <= begin) ++first_;
    for (std::size_t i = first_; i < events_.size() && events_[i].begin < end; ++i)
      events_[i].kept += std::min(end, events_[i].end) - std::max(begin, events_[i].begin);
  }
  std::size_t events() const { return events_.size(); }
  std::size_t found() const {
    return static_cast<std::size_t>(std::ranges::count_if(
        events_, [](const Event& event) { return 2 * event.kept >= event.end - event.begin; }));
  }

 private:
  struct Event {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t kept = 0;
  };
  std::vector<Event> events_;
  std::size_t first_ = 0;
  std::uint8_t last_ = 0;
};

struct Screened {
  std::string name;
  learn::StreamFigures figures;
  std::uint64_t windows = 0;
  std::size_t channels = 0;
  double seconds = 0;  // of the stream
  double saved = 0;    // fraction of its bytes
  std::size_t events = 0;
  std::size_t found = 0;
  double microseconds = 0;  // of the processor, for each sample
  std::size_t memory = 0;
  std::vector<std::string> faults;  // the first of each kind
};

class Screener {
 public:
  Screener(learn::StreamSpec spec, std::shared_ptr<learn::SegmentStore> store)
      : screening_(std::move(spec)), store_(std::move(store)) {
    handlers_.on_segment = [this](const learn::KeptSegment& segment) { keep(segment); };
    handlers_.on_sample = [this](std::uint64_t number, std::uint8_t label) { recall_.add(number, label); };
    handlers_.on_fault = [this](const char* kind, const std::string& what) {
      if (std::ranges::find(kinds_, kind) != kinds_.end()) return;
      kinds_.emplace_back(kind);
      result_.faults.push_back(what);
    };
  }

  Result<Screened> screen(const std::string& path) {
    result_.name = path;
    std::ifstream file(path, std::ios::binary);
    if (!file) return Error{ErrorCode::kNotFound, path + ": there is no such file"};
    std::string piece(kPiece, '\0');
    std::chrono::steady_clock::duration spent{};
    while (file && !failure_) {
      file.read(piece.data(), static_cast<std::streamsize>(piece.size()));
      const auto begun = std::chrono::steady_clock::now();
      screening_.push({piece.data(), static_cast<std::size_t>(file.gcount())}, handlers_);
      spent += std::chrono::steady_clock::now() - begun;
    }
    if (file.bad()) return Error{ErrorCode::kUnavailable, path + ": cannot be read"};
    screening_.end(handlers_);
    if (failure_) return *failure_;
    const std::string reason = result_.faults.empty() ? "it is empty" : result_.faults.front();
    if (screening_.figures().samples == 0) return invalid(path + ": not a stream: " + reason);
    result_.figures = screening_.figures();
    result_.channels = screening_.channels().size();
    result_.seconds = screening_.screened_seconds();
    result_.saved = learn::bytes_saved(result_.figures.samples, result_.windows, screening_.spec().window,
                                       result_.channels);
    result_.events = recall_.events();
    result_.found = recall_.found();
    result_.microseconds = std::chrono::duration<double, std::micro>(spent).count() /
                           static_cast<double>(result_.figures.samples);
    result_.memory = screening_.memory_bytes();
    return result_;
  }

 private:
  void keep(const learn::KeptSegment& segment) {
    result_.windows += learn::window_count(segment.samples(), screening_.spec().window);
    recall_.keep(segment.begin, segment.begin + segment.samples());
    if (!store_ || failure_) return;
    if (const auto kept = store_->add(segment); !kept) failure_ = kept.error();
  }

  learn::StreamScreening screening_;
  std::shared_ptr<learn::SegmentStore> store_;
  learn::StreamScreening::Handlers handlers_;
  Recall recall_;
  Screened result_;
  std::vector<std::string> kinds_;
  std::optional<Error> failure_;
};

std::string shown(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string table_of(const std::vector<Screened>& all) {
  std::size_t width = 6;
  for (const Screened& one : all) width = std::max(width, one.name.size());
  std::string text =
      "stream" + std::string(width - 6, ' ') +
      "   samples    hours  segments  windows  kept, %  saved, %   recall  us/sample     KiB\n";
  for (const Screened& one : all) {
    char line[256];
    const auto samples = static_cast<double>(one.figures.samples);
    std::snprintf(
        line, sizeof line, "%*s%10llu %8.2f %9llu %8llu %8.2f %9.2f %8s %10.2f %7.1f\n", 0, "",
        static_cast<unsigned long long>(one.figures.samples), one.seconds / 3600,
        static_cast<unsigned long long>(one.figures.segments), static_cast<unsigned long long>(one.windows),
        100 * static_cast<double>(one.figures.kept) / samples, 100 * one.saved,
        one.events == 0
            ? "-"
            : shown("%.4f", static_cast<double>(one.found) / static_cast<double>(one.events)).c_str(),
        one.microseconds, static_cast<double>(one.memory) / 1024);
    text += one.name + std::string(width - one.name.size(), ' ') + line;
  }
  for (const Screened& one : all)
    for (const std::string& fault : one.faults) text += "warning: " + one.name + ": " + fault + "\n";
  return text;
}

std::string json_of(const std::vector<Screened>& all) {
  std::string text;
  for (const Screened& one : all) {
    nlohmann::ordered_json row;
    row["stream"] = one.name;
    row["samples"] = one.figures.samples;
    row["seconds"] = one.seconds;
    row["segments"] = one.figures.segments;
    row["windows"] = one.windows;
    row["kept_samples"] = one.figures.kept;
    row["bytes_saved"] = one.saved;
    row["events"] = one.events;
    row["events_found"] = one.found;
    row["broken_lines"] = one.figures.broken;
    row["gaps"] = one.figures.gaps;
    row["clock_steps"] = one.figures.clock_steps;
    row["samples_at_wrong_rate"] = one.figures.wrong_rate;
    row["microseconds_per_sample"] = one.microseconds;
    row["memory_bytes"] = one.memory;
    text += json_text(row) + "\n";
  }
  return text;
}

Result<std::string> screen(const StreamOptions& options) {
  learn::StreamSpec spec;
  if (!options.screening.empty()) {
    FEDGE_TRY(given, learn::read_stream_file(options.screening));
    spec = given;
  }
  std::vector<Screened> all;
  for (const std::string& path : options.streams) {
    std::shared_ptr<learn::SegmentStore> store;
    if (!options.out.empty()) {
      std::filesystem::path directory = options.out;
      if (options.streams.size() > 1) directory /= std::filesystem::path(path).stem();
      FEDGE_TRY(opened, learn::SegmentStore::open(directory, {.most_bytes = options.megabytes << 20,
                                                              .test_share = options.test_share,
                                                              .window = spec.window,
                                                              .rate_hz = spec.screening.rate_hz}));
      if (opened->bytes() > 0)
        return Error{ErrorCode::kRefused,
                     "--out: " + directory.string() + " already has segments; name another directory"};
      store = opened;
    }
    FEDGE_TRY(screened, Screener(spec, store).screen(path));
    all.push_back(std::move(screened));
  }
  return options.format == "json" ? json_of(all) : table_of(all);
}

Result<std::string> synthesize(const StreamOptions& options) {
  FEDGE_TRY_VOID(make_directory(options.out));
  std::string said;
  for (std::size_t vehicle = 0; vehicle < options.vehicles; ++vehicle) {
    char name[64];
    std::snprintf(name, sizeof name, "synthetic-vehicle-%02zu.csv", vehicle);
    const auto path = std::filesystem::path(options.out) / name;
    const std::string text = learn::road_text(learn::road_stream(options.road, vehicle));
    FEDGE_TRY_VOID(write_file_atomic(path, text));
    said += path.string() + "  synthetic, " + shown("%.0f", options.road.seconds) + " s, " +
            shown("%.1f MiB\n", static_cast<double>(text.size()) / kMegabyte);
  }
  return said;
}

}  // namespace

StreamCommands::StreamCommands(CLI::App& app) {
  CLI::App& data = *app.get_subcommand("data");
  add_screen(data);
  add_synthesize(data);
}

void StreamCommands::add_screen(CLI::App& data) {
  screen_ = data.add_subcommand("screen");
  screen_->add_option("STREAM", options_.streams, "CSV files of a sensor, each recorded by one device")
      ->required();
  screen_
      ->add_option("--screening", options_.screening,
                   "TOML file with the rules of the screening; default: 100 samples a second, all channels")
      ->type_name("FILE");
  screen_
      ->add_option(
          "--out", options_.out,
          "Write the segments to this directory; with several streams, to a directory in it for each")
      ->type_name("DIR");
  screen_->add_option("--megabytes", options_.megabytes, "Most space for each stream's segments, in MiB")
      ->capture_default_str()
      ->check(between(1, 1 << 24));
  screen_->add_option("--test-share", options_.test_share, "Fraction of the events that are for testing")
      ->capture_default_str()
      ->check(between(0, 1));
  add_format(*screen_, options_.format);
}

void StreamCommands::add_synthesize(CLI::App& data) {
  auto* synthesize = data.add_subcommand("synthesize")->require_subcommand(1);
  road_ = synthesize->add_subcommand("road");
  road_->add_option("--out", options_.out, "Output directory; created if it does not exist")
      ->type_name("DIR")
      ->required();
  road_->add_option("--vehicles", options_.vehicles, "Number of vehicles, each of which gets a file")
      ->capture_default_str()
      ->check(between(1, 100));
  road_->add_option("--seconds", options_.road.seconds, "Length of each stream")
      ->capture_default_str()
      ->check(between(1, 86'400));
  road_
      ->add_option("--mix", options_.road.mix,
                   "Concentration of the Dirichlet distribution from which each vehicle's mix of events is "
                   "drawn; smaller values make vehicles less alike")
      ->capture_default_str()
      ->check(between(0.01, 1e6));
  road_->add_flag("--same-road", options_.road.same_road,
                  "All vehicles drive on the same road, and meet the same events");
  road_->add_option("--seed", options_.road.seed, "Number that all draws depend on")->capture_default_str();
}

std::optional<Result<std::string>> StreamCommands::run() const {
  if (screen_->parsed()) return screen(options_);
  if (road_->parsed()) return synthesize(options_);
  return std::nullopt;
}

}  // namespace fedge::apps
