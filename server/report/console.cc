#include "server/report/console.h"

#include <unistd.h>

#include <cmath>

namespace fedge::server {
namespace {

constexpr int kBarWidth = 40;

}  // namespace

std::string format_bytes(std::uint64_t bytes) {
  constexpr const char* kUnits[] = {"B", "kB", "MB", "GB", "TB", "PB", "EB"};
  auto value = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (value >= 999.5 && unit + 1 < std::size(kUnits)) {
    value /= 1000;
    ++unit;
  }
  char text[32];
  const int decimals = unit == 0 || value >= 99.95 ? 0 : value >= 9.995 ? 1 : 2;
  std::snprintf(text, sizeof text, "%.*f %s", decimals, value, kUnits[unit]);
  return text;
}

std::string format_seconds(double value) {
  char text[48];
  if (value < 59.95) {
    std::snprintf(text, sizeof text, "%.1f s", value);
  } else if (value < 3599.5) {
    const auto whole = static_cast<long>(std::lround(value));
    std::snprintf(text, sizeof text, "%ld min %02ld s", whole / 60, whole % 60);
  } else {
    const auto minutes = static_cast<long>(std::lround(value / 60));
    std::snprintf(text, sizeof text, "%ld h %02ld min", minutes / 60, minutes % 60);
  }
  return text;
}

RoundTable::RoundTable(std::FILE* out, std::uint32_t rounds)
    : out_(out), rounds_(rounds), terminal_(::isatty(::fileno(out)) != 0) {}

RoundTable::~RoundTable() { finish(); }

void RoundTable::begin(const std::string& name, learn::TargetKind task) {
  std::fprintf(out_, "run %s: %u rounds\n", name.c_str(), rounds_);
  std::fprintf(out_, "%6s  %8s  %8s  %8s  %9s  %9s  %9s  %12s  %s\n", "round",
               task == learn::TargetKind::kValues ? "RMSE" : "accuracy", "loss", "train", "clients", "up",
               "down", "time", "model");
  draw_bar();
  std::fflush(out_);
}

void RoundTable::add(const RoundMetrics& metrics) {
  clear_bar();
  done_ = metrics.round;
  seconds_ = metrics.wall_seconds;
  char loss[16] = "-";
  char train[16] = "-";
  const ShownResults shown = shown_results(metrics);
  if (!std::isnan(shown.loss)) std::snprintf(loss, sizeof loss, "%.4f", shown.loss);
  if (!std::isnan(metrics.train_loss)) std::snprintf(train, sizeof train, "%.4f", metrics.train_loss);
  // With differential privacy the training loss is secret; its column shows the privacy loss instead.
  if (!std::isnan(metrics.epsilon))
    std::snprintf(train, sizeof train, "eps %.*f", metrics.epsilon < 10 ? 2 : 0, metrics.epsilon);
  const std::string clients =
      std::to_string(metrics.clients_completed) + "/" + std::to_string(metrics.clients_selected);
  std::fprintf(out_, "%6llu  %8s  %8s  %8s  %9s  %9s  %9s  %12s  %s\n",
               static_cast<unsigned long long>(metrics.round), shown.score().c_str(), loss, train,
               clients.c_str(), format_bytes(metrics.bytes_up).c_str(),
               format_bytes(metrics.bytes_down).c_str(), format_seconds(metrics.virtual_seconds).c_str(),
               metrics.model_hash.substr(0, 12).c_str());
  if (done_ < rounds_) draw_bar();
  std::fflush(out_);
}

void RoundTable::draw_bar() {
  if (!terminal_ || rounds_ == 0) return;
  const int filled = static_cast<int>(kBarWidth * done_ / rounds_);
  const std::string bar = std::string(static_cast<std::size_t>(filled), '#') +
                          std::string(static_cast<std::size_t>(kBarWidth - filled), '.');
  std::string left;
  if (done_ > 0)
    left = ", about " +
           format_seconds(seconds_ / static_cast<double>(done_) * static_cast<double>(rounds_ - done_)) +
           " left";
  std::fprintf(out_, "[%s] %llu of %u rounds%s", bar.c_str(), static_cast<unsigned long long>(done_), rounds_,
               left.c_str());
  bar_shown_ = true;
}

void RoundTable::clear_bar() {
  if (bar_shown_) std::fprintf(out_, "\r\x1b[K");
  bar_shown_ = false;
}

void RoundTable::finish() {
  clear_bar();
  std::fflush(out_);
}

}  // namespace fedge::server
