#include "server/report/run_output.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <map>

#include "core/crypto/sha256.h"
#include "core/platform/files.h"
#include "core/safetensors.h"
#include "learn/data/dataset.h"
#include "learn/model_file.h"
#include "server/access/calendar.h"
#include "server/report/console.h"
#include "server/report/metrics_csv.h"
#include "server/report/model_files.h"
#include "server/report/page/html.h"
#include "server/report/page/run_facts.h"
#include "server/report/run_progress.h"

namespace fedge::server {
namespace {

// Removes the files of an earlier run that not every run writes.
void remove_tracks_and_events(const std::filesystem::path& directory) {
  std::error_code ignored;
  std::filesystem::remove(directory / kEventFileName, ignored);
  std::filesystem::remove(directory / "tracks.csv", ignored);
  std::filesystem::directory_iterator entry(directory / "tracks", ignored);
  for (; !ignored && entry != std::filesystem::directory_iterator(); entry.increment(ignored))
    if (entry->path().extension() == ".safetensors") std::filesystem::remove(entry->path(), ignored);
}

// Reads facts about the run from the first model's file; empty if there is none.
RunCircumstances circumstances_of(const std::filesystem::path& directory) {
  const auto file = open_safetensors(directory / "model.safetensors", SIZE_MAX);
  if (!file) return {};
  const auto header = read_safetensors_header(*file);
  if (!header) return {};
  const auto text = [&](const char* key) {
    const auto found = header->metadata.find(key);
    return found == header->metadata.end() ? std::string() : found->second;
  };
  return {.parameters = header->layout.size(),
          .version = text(kVersionMetadata),
          .failure = text(kFailureMetadata)};
}

RunProgress progress_of(const run::SelectionSpec& spec, std::span<const RoundMetrics> rounds) {
  RunProgress progress(spec);
  for (const RoundMetrics& round : rounds) (void)progress.add(round);
  return progress;
}

// "84.21 %" or "RMSE 0.4213".
std::string named_score(const ShownResults& shown) {
  return (shown.has_error() ? "RMSE " : "") + shown.score();
}

std::string value_line(double mae, double r2) {
  char line[96];
  std::snprintf(line, sizeof line, "          MAE %.4g, R2 %.4f\n", mae, r2);
  return line;
}

std::string event_line(const TaskMetrics& metrics) {
  if (std::isnan(metrics.event_f1)) return "";
  std::string text = "          events: ";
  const auto add = [&](const char* name, double value) {
    char number[32] = "-";
    if (!std::isnan(value)) std::snprintf(number, sizeof number, "%.4f", value);
    text += std::string(name) + number;
  };
  add("F1 ", metrics.event_f1);
  add(", precision ", metrics.event_precision);
  add(", recall ", metrics.event_recall);
  add(", boundary error ", metrics.boundary_error);
  return text + "\n";
}

std::string task_lines(const TaskMetrics& metrics) {
  std::string text;
  char line[128];
  if (!std::isnan(metrics.rmse)) text += value_line(metrics.mae, metrics.r2);
  if (!std::isnan(metrics.mean_iou)) {
    std::snprintf(line, sizeof line, "          mean IoU %.4f, macro F1 %.4f\n", metrics.mean_iou,
                  metrics.macro_f1);
    text += line;
  }
  return text + event_line(metrics);
}

Result<void> write_reports(const std::filesystem::path& directory, const run::RunConfig& config,
                           const std::string& run_file, const std::vector<RoundMetrics>& rounds) {
  const CsvColumns columns = columns_of(rounds);
  const RunLabels labels{config.name, config.strategy.recipe->name, config.seed};
  std::string table = csv_header(columns);
  for (const RoundMetrics& round : rounds) table += to_csv(round, columns, labels);
  FEDGE_TRY_VOID(write_file_atomic(directory / "metrics.csv", table));
  const bool tracks =
      std::ranges::any_of(rounds, [](const RoundMetrics& round) { return !round.tracks.empty(); });
  if (tracks) FEDGE_TRY_VOID(write_file_atomic(directory / "tracks.csv", tracks_csv(rounds, labels)));
  const RunCircumstances circumstances = circumstances_of(directory);
  const ReportInfo info{.name = config.name,
                        .run_file = run_file,
                        .class_names = learn::class_names(config.task.data),
                        .facts = run_facts(config, circumstances),
                        .planned_rounds = config.rounds,
                        .evaluated_on = config.task.data.validation > 0 ? "validation" : "test",
                        .failure = circumstances.failure};
  return write_file_atomic(directory / "report.html", report_html(info, rounds));
}

// The run began when its run file was written.
Result<void> write_events(const std::filesystem::path& directory, const std::filesystem::path& run_file,
                          const std::vector<RoundMetrics>& rounds) {
  std::error_code ignored;
  const auto begun = std::chrono::file_clock::to_sys(std::filesystem::last_write_time(run_file, ignored));
  FEDGE_TRY(events,
            EventFile::create(directory, std::chrono::duration<double>(begun.time_since_epoch()).count()));
  for (const RoundMetrics& round : rounds) FEDGE_TRY_VOID(events.add(round));
  return {};
}

// Removes all rounds but the first ones from metrics.jsonl, and reads these.
Result<std::vector<RoundMetrics>> keep_rounds(const std::filesystem::path& path, std::uint64_t rounds) {
  if (rounds == 0) return std::vector<RoundMetrics>();
  FEDGE_TRY(text, read_file(path, SIZE_MAX));
  std::size_t end = 0;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    const std::size_t newline = text.find('\n', end);
    if (newline == std::string::npos)
      return Error{ErrorCode::kCorrupt, path.string() + " has only " + std::to_string(round) +
                                            " rounds, but the checkpoint is from the end of round " +
                                            std::to_string(rounds) +
                                            "; --force starts the run from the beginning"};
    end = newline + 1;
  }
  std::error_code error;
  std::filesystem::resize_file(path, end, error);
  if (error) return system_error("cannot write", path, error.value());
  return read_metrics(path);
}

// What the run has told of its clients.
std::string privacy_lines(std::span<const RoundMetrics> rounds, double delta) {
  std::string text;
  char line[160];
  if (!rounds.empty() && !std::isnan(rounds.back().epsilon)) {
    std::snprintf(line, sizeof line, "privacy   epsilon %.4g at delta %.3g\n", rounds.back().epsilon, delta);
    text += line;
  }
  double correlation = kNotMeasured;
  for (const RoundMetrics& round : rounds) correlation = std::fmax(correlation, round.activation_correlation);
  if (!std::isnan(correlation)) {
    std::snprintf(
        line, sizeof line,
        "privacy   the coordinator saw activations of samples; their distance correlation with the tokens is "
        "up to %.2f\n",
        correlation);
    text += line;
  }
  return text;
}

}  // namespace

Result<RunOutput> RunOutput::create(const std::filesystem::path& directory, const run::RunConfig& config,
                                    const std::string& version, std::uint64_t rounds) {
  FEDGE_TRY_VOID(make_directory(directory));
  for (const char* name : {"run.toml", "model.safetensors", "metrics.csv", "tracks.csv", "report.html"})
    remove_unfinished(directory / name);
  FEDGE_TRY_VOID(write_file_atomic(directory / "run.toml", config.canonical));
  remove_tracks_and_events(directory);
  const auto path = directory / "metrics.jsonl";
  FEDGE_TRY(former, keep_rounds(path, rounds));
  std::FILE* lines = std::fopen(path.c_str(), rounds > 0 ? "ae" : "we");
  if (lines == nullptr) return system_error("cannot write", path, errno);
  RunOutput output(directory, config, version, lines);
  if (config.tensorboard) {
    FEDGE_TRY(events, EventFile::create(directory, static_cast<double>(calendar_now())));
    output.events_.emplace(std::move(events));
    for (const RoundMetrics& round : former) FEDGE_TRY_VOID(output.events_->add(round));
  }
  output.rounds_ = std::move(former);
  return output;
}

Result<void> RunOutput::add(const RoundMetrics& metrics) {
  rounds_.push_back(metrics);
  const std::string line = to_json(metrics) + "\n";
  if (std::fwrite(line.data(), 1, line.size(), lines_.get()) != line.size() || std::fflush(lines_.get()) != 0)
    return system_error("cannot write", directory_ / "metrics.jsonl", errno);
  return events_ ? events_->add(metrics) : Result<void>();
}

Result<void> RunOutput::keep(std::uint64_t round, std::span<const FinalModel> models) const {
  return keep_models(directory_, {.config = config_, .round = round, .version = version_}, models);
}

Result<void> RunOutput::finish(std::span<const FinalModel> models, const std::string& failure) {
  const RunProgress progress = progress_of(config_.selection, rounds_);
  const std::uint64_t last = rounds_.empty() ? 0 : rounds_.back().round;
  const ModelFacts facts{.config = config_,
                         .round = progress.state().kept ? progress.state().kept->round : last,
                         .version = version_,
                         .failure = failure};
  for (const FinalModel& model : models) {
    auto path = directory_ / "model.safetensors";
    if (&model != &models.front()) {
      FEDGE_TRY_VOID(make_directory(directory_ / "tracks"));
      path = directory_ / "tracks" /
             (file_name(model.track ? *model.track : TrackDescription{}) + ".safetensors");
    }
    FEDGE_TRY_VOID(write_safetensors(path, model.values, model_metadata(facts, model)));
  }
  return write_reports(directory_, config_, config_.canonical, rounds_);
}

std::string RunOutput::summary_of(const RoundMetrics& round) const {
  const ClientEvaluation& evaluation = *round.evaluation;
  const bool validation = config_.task.data.validation > 0;
  const ShownResults shown{.accuracy = evaluation.accuracy, .rmse = evaluation.rmse};
  char line[160];
  std::snprintf(line, sizeof line, "clients   %s after round %llu, on %llu %s samples of %llu clients\n",
                named_score(shown).c_str(), static_cast<unsigned long long>(round.round),
                static_cast<unsigned long long>(evaluation.samples), validation ? "validation" : "test",
                static_cast<unsigned long long>(evaluation.clients));
  std::string text = line;
  if (!std::isnan(evaluation.auroc)) {
    std::snprintf(line, sizeof line, "          AUROC %.4f +- %.4f, macro F1 %.4f, calibration error %.4f\n",
                  evaluation.auroc, evaluation.auroc_error, evaluation.macro_f1,
                  evaluation.calibration_error);
    text += line;
  }
  if (!std::isnan(evaluation.shared_accuracy)) {
    std::snprintf(line, sizeof line, "          of the shared model alone: accuracy %.2f %%, loss %.4f\n",
                  100 * evaluation.shared_accuracy, evaluation.shared_loss);
    text += line;
  }
  if (!std::isnan(evaluation.perplexity)) {
    std::snprintf(line, sizeof line, "          perplexity %.3f, %.3f bits per byte\n", evaluation.perplexity,
                  evaluation.bits_per_byte);
    text += line;
  }
  if (!std::isnan(evaluation.rmse)) text += value_line(evaluation.mae, evaluation.r2);
  if (!std::isnan(evaluation.mean_iou)) {
    std::snprintf(line, sizeof line, "          mean IoU %.4f\n", evaluation.mean_iou);
    text += line;
  }
  text += event_line(evaluation);
  if (const auto& spread = evaluation.rmse_by_client; !std::isnan(spread.p50)) {
    std::snprintf(
        line, sizeof line,
        "          RMSE by client: median %.4g, 90th percentile %.4g, mean of the worst tenth %.4g\n",
        spread.p50, spread.p90, spread.worst_tenth);
    text += line;
  }
  const auto& spread = evaluation.accuracy_by_client;
  if (std::isnan(spread.p50)) return text;
  std::snprintf(line, sizeof line,
                "          accuracy by client: median %.2f %%, 10th percentile %.2f %%, mean of the worst "
                "tenth %.2f %%\n",
                100 * spread.p50, 100 * spread.p10, 100 * spread.worst_tenth);
  return text + line;
}

std::string RunOutput::summary() const {
  std::string text;
  const auto evaluated = std::find_if(rounds_.rbegin(), rounds_.rend(), [](const RoundMetrics& round) {
    return !std::isnan(round.test_accuracy) || !std::isnan(round.test.rmse);
  });
  if (evaluated != rounds_.rend()) {
    char line[96];
    const ShownResults shown{.accuracy = evaluated->test_accuracy, .rmse = evaluated->test.rmse};
    std::snprintf(line, sizeof line, "%-8s  %s after round %llu%s\n", shown.has_error() ? "RMSE" : "accuracy",
                  shown.score().c_str(), static_cast<unsigned long long>(evaluated->round),
                  config_.task.data.validation > 0 ? ", on validation samples" : "");
    text += line;
    text += task_lines(evaluated->test);
    if (!std::isnan(evaluated->bits_per_byte)) {
      std::snprintf(line, sizeof line, "text      %.3f bits per byte, mean of groups %.3f\n",
                    evaluated->bits_per_byte, evaluated->group_bits_per_byte);
      text += line;
    }
    for (const RankMetrics& rank : evaluated->ranks) {
      std::snprintf(line, sizeof line, "rank %-4llu %.2f %%, loss %.4f\n",
                    static_cast<unsigned long long>(rank.rank), 100 * rank.accuracy, rank.loss);
      text += line;
    }
  }
  const auto by_clients = std::find_if(rounds_.rbegin(), rounds_.rend(), [](const RoundMetrics& round) {
    return round.evaluation && round.evaluation->samples > 0;
  });
  if (by_clients != rounds_.rend()) text += summary_of(*by_clients);
  if (const double joules = total_joules(rounds_); !std::isnan(joules))
    text += "energy    " + format_joules(joules) +
            (std::isnan(rounds_.back().energy.joules) ? " of training, as clients report it\n"
                                                      : " of all devices\n");
  text += privacy_lines(rounds_, config_.privacy.delta);
  if (const std::uint64_t most = most_left_out(rounds_); most > 0)
    text +=
        "left out  up to " + std::to_string(most) +
        " parameters per round: fewer than min_clients clients trained them, so no secure sum covers them\n";
  const RunProgress progress = progress_of(config_.selection, rounds_);
  if (progress.state().ended) text += "ended     " + progress.reason() + "\n";
  if (const auto& kept = progress.state().kept) {
    char line[96];
    std::snprintf(line, sizeof line, "kept      the model of round %llu, with the best %s: %.4g\n",
                  static_cast<unsigned long long>(kept->round),
                  run::name_of(config_.selection.keep_best).c_str(), kept->value);
    text += line;
  }
  text += "model     " + (directory_ / "model.safetensors").string() + "\n";
  text += "report    " + (directory_ / "report.html").string() + "\n";
  text += "metrics   " + (directory_ / "metrics.jsonl").string() + "\n";
  return text;
}

std::string failure_of(const std::filesystem::path& directory) { return circumstances_of(directory).failure; }

Result<void> rewrite_report(const std::filesystem::path& directory, bool tensorboard) {
  const auto path = directory / "run.toml";
  FEDGE_TRY(text, read_file(path, config::kMaxDocumentBytes));
  FEDGE_TRY(document, config::parse_toml(text, path.string()));
  FEDGE_TRY(config, run::read_run_config(document));
  FEDGE_TRY(rounds, read_metrics(directory / "metrics.jsonl"));
  if (tensorboard) FEDGE_TRY_VOID(write_events(directory, path, rounds));
  return write_reports(directory, config, text, rounds);
}

}  // namespace fedge::server
