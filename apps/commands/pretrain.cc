#include "apps/commands/pretrain.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <stop_token>

#include "core/platform/files.h"
#include "core/platform/thread_pool.h"
#include "core/safetensors.h"
#include "learn/evaluation/evaluate.h"
#include "learn/model_file.h"
#include "learn/pretrain.h"

namespace fedge::apps {
namespace {

constexpr std::uint64_t kLines = 20;  // lines of progress

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// Prints a line at regular steps: the mean loss since the last line.
class Progress {
 public:
  Progress(std::uint64_t steps, std::size_t per_step, std::FILE* out)
      : steps_(steps), every_(std::max<std::uint64_t>(1, steps / kLines)), per_step_(per_step), out_(out) {}

  void add(std::uint64_t step, float loss) {
    sum_ += static_cast<double>(loss);
    ++count_;
    if (step % every_ != 0 && step != steps_) return;
    std::fprintf(out_, "step %8llu of %llu  loss %.4f  %.0f per second\n",
                 static_cast<unsigned long long>(step), static_cast<unsigned long long>(steps_),
                 sum_ / static_cast<double>(count_),
                 static_cast<double>(step * per_step_) / seconds_since(start_));
    std::fflush(out_);
    sum_ = 0;
    count_ = 0;
  }

 private:
  std::uint64_t steps_;
  std::uint64_t every_;
  std::size_t per_step_;
  std::FILE* out_;
  std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  double sum_ = 0;
  std::uint64_t count_ = 0;
};

void print(const learn::Evaluation& evaluation, const learn::DataSpec& data, std::FILE* out) {
  const learn::EvaluationMetrics& metrics = evaluation.metrics;
  std::fprintf(out, "%s  loss %.4f", data.validation > 0 ? "validation" : "held out", evaluation.loss);
  if (!std::isnan(evaluation.accuracy)) std::fprintf(out, ", accuracy %.2f %%", 100 * evaluation.accuracy);
  if (metrics.rmse) std::fprintf(out, ", RMSE %.4g, MAE %.4g", *metrics.rmse, metrics.mae.value_or(0));
  if (metrics.r2) std::fprintf(out, ", R2 %.4f", *metrics.r2);
  if (metrics.mean_iou) std::fprintf(out, ", mean IoU %.4f", *metrics.mean_iou);
  if (evaluation.bits_per_byte > 0) std::fprintf(out, ", %.3f bits per byte", evaluation.bits_per_byte);
  if (metrics.auroc)
    std::fprintf(out, ", AUROC %.4f +- %.4f, macro F1 %.4f", *metrics.auroc, metrics.auroc_error,
                 metrics.macro_f1.value_or(0));
  std::fprintf(out, "\n");
}

}  // namespace

Result<void> pretrain(const run::RunConfig& config, const PretrainCommand& command, std::FILE* out) {
  // Check this before an hour of training.
  if (const auto parent = std::filesystem::absolute(command.out).parent_path();
      ::access(parent.c_str(), W_OK | X_OK) != 0)
    return system_error("cannot write into", parent, errno);
  FEDGE_TRY(data, learn::load_train(config.task.data, Rng(config.seed)));
  FEDGE_TRY(test, learn::load_evaluation(config.task.data, Rng(config.seed)));
  learn::PretrainOptions options;
  for (const std::uint32_t label : command.labels) {
    if (label >= data->classes)
      return invalid("--labels: there is no label " + std::to_string(label) + "; labels are 0 to " +
                     std::to_string(data->classes - 1));
    options.labels.push_back(static_cast<learn::Label>(label));
  }
  FEDGE_TRY(samples, learn::pretraining_samples(config.task, config.seed, *data, options));
  const std::size_t per_sample = data->shape.tokens ? data->shape.width : 1;
  Progress progress(learn::pretraining_steps(config.task, samples.size()),
                    config.task.training.batch_size * per_sample, out);
  std::stop_source finish;
  options.finish = finish.get_token();
  options.report = [&](std::uint64_t step, float loss, std::span<const float>) {
    progress.add(step, loss);
    if (command.interrupted && command.interrupted()) finish.request_stop();
  };
  FEDGE_TRY(trained, learn::pretrain(config.task, config.seed, *data, options));
  ThreadPool threads(command.threads);
  FEDGE_TRY(evaluation, learn::evaluate(*trained.model, trained.values.values(), *test, threads));
  print(evaluation, config.task.data, out);
  const std::string hash = to_hex(model_hash(trained.values.values()));
  auto metadata = learn::task_metadata(config.task_text, config.task.data, config.seed);
  metadata.insert({{"run", config.name}, {"steps", std::to_string(trained.steps)}, {"model_hash", hash}});
  FEDGE_TRY_VOID(write_safetensors(command.out, trained.values, metadata));
  std::fprintf(out, "model     %s  %s\n", command.out.c_str(), hash.substr(0, 12).c_str());
  return {};
}

}  // namespace fedge::apps
