#include "apps/commands/model_evaluation.h"

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/detail/json.h"
#include "core/platform/thread_pool.h"
#include "learn/completion.h"
#include "learn/evaluation/evaluate.h"
#include "learn/model_file.h"
#include "learn/models/adapters.h"
#include "learn/text/text_data.h"

namespace fedge::apps {
namespace {

// The data on which a model is evaluated.
struct Question {
  std::shared_ptr<const learn::Dataset> data;
  std::optional<learn::Tokenizer> tokenizer;
  std::vector<learn::Completion> lines;  // empty: no ROUGE-L
};

// The data that the options name, as the model takes them. The model's run has validation samples only in its
// own data set; of one that is named, the test samples are used.
learn::DataSpec data_of(const EvaluationOptions& options, const learn::ModelFile& file) {
  learn::DataSpec data = file.task.data;
  if (!options.dataset.empty()) {
    data.dataset = options.dataset;
    data.directory.clear();
    data.validation = 0;
  }
  if (!options.directory.empty()) data.directory = options.directory;
  if (options.test_windows > 0) data.test_windows = options.test_windows;
  return data;
}

Result<Question> read_question(const EvaluationOptions& options, const learn::ModelFile& file) {
  const learn::DataSpec spec = data_of(options, file);
  const bool text = learn::is_text(spec);
  if (text != file.model->input().tokens)
    return invalid("--dataset: " + spec.dataset + (text ? " is text, but " : " is not text, but ") +
                   options.file + (text ? " is not a language model" : " is a language model"));
  Question question;
  if (spec.validation > 0 && !file.seed)
    return invalid(
        options.file +
        ": the run of this model has validation samples (data.validation), but the file lacks the seed "
        "that selects them; name the data set with --dataset to use its test samples");
  if (spec.validation > 0 && options.rouge > 0)
    return invalid("--rouge uses lines of the test data, but the run of " + options.file +
                   " uses validation samples (data.validation); name the data set with --dataset to use its "
                   "test samples");
  FEDGE_TRY(data, learn::load_evaluation(spec, Rng(file.seed.value_or(0))));
  if (!(data->shape == file.model->input()))
    return invalid("--dataset: the samples of " + spec.dataset + " do not have the input shape of " +
                   options.file);
  question.data = std::move(data);
  if (options.rouge == 0) return question;
  if (!text) return invalid("--rouge needs a language model; " + options.file + " is none");
  FEDGE_TRY(tokenizer, learn::make_tokenizer(spec.tokenizer));
  question.tokenizer = std::move(tokenizer);
  FEDGE_TRY(groups, learn::load_corpus(spec.dataset, spec.directory));
  question.lines = learn::completions(groups, options.rouge);
  if (question.lines.empty())
    return invalid("--rouge: no held-out line of " + spec.dataset + " contains \": \" followed by text");
  return question;
}

// The numbers of ranks to evaluate with, ascending; the whole model is last.
Result<std::vector<std::size_t>> ranks_of(const EvaluationOptions& options, const learn::ModelFile& file) {
  const learn::Adapters* adapters = file.model->adapters();
  if (adapters == nullptr) {
    if (!options.ranks.empty()) return invalid("--ranks: " + options.file + " has no adapters");
    return std::vector<std::size_t>{SIZE_MAX};
  }
  std::vector<std::size_t> ranks = options.ranks;
  if (ranks.empty()) {
    ranks = file.task.training.ranks;
    ranks.push_back(adapters->rank());
  }
  std::ranges::sort(ranks);
  const auto doubled = std::ranges::unique(ranks);
  ranks.erase(doubled.begin(), doubled.end());
  if (ranks.back() > adapters->rank())
    return invalid("--ranks is " + std::to_string(ranks.back()) + ", but " + options.file + " has " +
                   std::to_string(adapters->rank()) + " adapter ranks");
  return ranks;
}

struct Figures {
  std::size_t ranks;  // SIZE_MAX: the model has no adapters
  learn::Evaluation held_out;
  double energy = 0;  // fraction of the energy of all ranks
  std::optional<learn::RougeScore> rouge;
};

// The fraction of the adapters' energy in their first ranks; 0 if the adapters are all zero.
double energy_share(const learn::Adapters& adapters, std::span<const float> values, std::size_t ranks) {
  const double all = learn::energy(adapters.shape(), values, {0, adapters.rank()});
  return all > 0 ? learn::energy(adapters.shape(), values, {0, ranks}) / all : 0;
}

void print_json(const Figures& figures, std::FILE* out) {
  nlohmann::ordered_json row;
  if (figures.ranks != SIZE_MAX) row["rank"] = figures.ranks;
  row["samples"] = figures.held_out.samples;
  row["loss"] = figures.held_out.loss;
  if (!std::isnan(figures.held_out.accuracy)) row["accuracy"] = figures.held_out.accuracy;
  const auto add = [&](const char* key, const std::optional<double>& value) {
    if (value) row[key] = *value;
  };
  const learn::EvaluationMetrics& metrics = figures.held_out.metrics;
  add("macro_f1", metrics.macro_f1);
  if (!metrics.confusion.empty()) row["confusion"] = metrics.confusion;
  add("auroc", metrics.auroc);
  add("mean_iou", metrics.mean_iou);
  add("mae", metrics.mae);
  add("rmse", metrics.rmse);
  add("r2", metrics.r2);
  add("event_precision", metrics.event_precision);
  add("event_recall", metrics.event_recall);
  add("event_f1", metrics.event_f1);
  add("boundary_error", metrics.boundary_error);
  if (figures.held_out.bits_per_byte > 0) {
    row["perplexity"] = std::exp(figures.held_out.loss);
    row["bits_per_byte"] = figures.held_out.bits_per_byte;
    row["group_bits_per_byte"] = figures.held_out.group_bits_per_byte;
  }
  if (figures.ranks != SIZE_MAX) row["energy"] = figures.energy;
  if (figures.rouge)
    row["rouge_l"] = {
        {"recall", figures.rouge->recall}, {"precision", figures.rouge->precision}, {"f", figures.rouge->f}};
  std::fprintf(out, "%s\n", json_text(row).c_str());
}

void print_row(const Figures& figures, std::FILE* out) {
  std::fprintf(out, "%5s  %7.4f", figures.ranks == SIZE_MAX ? "-" : std::to_string(figures.ranks).c_str(),
               figures.held_out.loss);
  if (const std::optional<double>& error = figures.held_out.metrics.rmse)
    std::fprintf(out, "  %9.4g", *error);
  else
    std::fprintf(out, "  %9.2f", 100 * figures.held_out.accuracy);
  if (figures.held_out.bits_per_byte > 0)
    std::fprintf(out, "  %10.3f  %9.3f  %8.3f", std::exp(figures.held_out.loss),
                 figures.held_out.bits_per_byte, figures.held_out.group_bits_per_byte);
  if (figures.ranks != SIZE_MAX) std::fprintf(out, "  %7.2f", 100 * figures.energy);
  if (figures.rouge) std::fprintf(out, "  %7.4f", figures.rouge->f);
  std::fprintf(out, "\n");
}

void print_head(const Question& question, const learn::DataSpec& spec, bool adapters, std::FILE* out) {
  const bool text = question.data->shape.tokens;
  std::fprintf(out, "%zu %s samples of %s", question.data->size(),
               spec.validation > 0 ? "validation" : "held-out", spec.dataset.c_str());
  if (!question.lines.empty()) std::fprintf(out, ", %zu lines to complete", question.lines.size());
  const bool values = question.data->target().kind == learn::TargetKind::kValues;
  std::fprintf(out, "\n%5s  %7s  %9s", "ranks", "loss", values ? "RMSE" : "accuracy%");
  if (text) std::fprintf(out, "  %10s  %9s  %8s", "perplexity", "bits/byte", "of groups");
  if (adapters) std::fprintf(out, "  %7s", "energy%");
  if (!question.lines.empty()) std::fprintf(out, "  %7s", "ROUGE-L");
  std::fprintf(out, "\n");
}

}  // namespace

Result<void> evaluate_model(const EvaluationOptions& options, std::FILE* out) {
  FEDGE_TRY(file, learn::read_model_file(options.file));
  FEDGE_TRY(ranks, ranks_of(options, file));
  FEDGE_TRY(question, read_question(options, file));
  ThreadPool threads(options.threads);
  const learn::Adapters* adapters = file.model->adapters();
  if (!options.json) print_head(question, data_of(options, file), adapters != nullptr, out);
  const auto values = std::as_const(file.values).values();
  for (const std::size_t rank : ranks) {
    FEDGE_TRY(held_out, learn::evaluate(*file.model, values, *question.data, threads, rank));
    Figures figures{.ranks = rank, .held_out = std::move(held_out)};
    if (adapters != nullptr) figures.energy = energy_share(*adapters, values, rank);
    if (!question.lines.empty())
      figures.rouge =
          learn::score_completions(*file.model, values, *question.tokenizer, question.lines, threads, rank);
    options.json ? print_json(figures, out) : print_row(figures, out);
    std::fflush(out);
  }
  return {};
}

}  // namespace fedge::apps
