#include "aggregation/server_optimizers/server_optimizer.h"

#include <algorithm>
#include <cmath>

#include "core/aligned_buffer.h"
#include "core/config/own_part.h"

namespace fedge::aggregation {
namespace {

constexpr config::NumberBounds kRate = {1e-9, 1e3};
constexpr config::NumberBounds kShare = {0.0, 0.999999};

// w <- w + eta * v with v <- beta * v + delta, or with Nesterov w <- w + eta * (delta + beta * v);
// beta = 0 is plain averaging (FedAvg), beta > 0 FedAvgM (Hsu, Qi, Brown 2019).
class Momentum final : public ServerOptimizer {
 public:
  struct Options {
    double learning_rate = 1.0;
    double beta = 0.0;
    bool nesterov = false;
  };
  Momentum(const Options& options, std::size_t parameters)
      : options_(options), velocity_(options.beta > 0 ? parameters : 0) {}

  void step(std::size_t first, std::span<float> model, std::span<const double> aggregate) override {
    for (std::size_t i = 0; i < model.size(); ++i) {
      double delta = aggregate[i];
      if (velocity_.size() > 0) {
        float& velocity = velocity_.data()[first + i];
        velocity = static_cast<float>(options_.beta * static_cast<double>(velocity) + delta);
        delta = options_.nesterov ? delta + options_.beta * static_cast<double>(velocity)
                                  : static_cast<double>(velocity);
      }
      model[i] = static_cast<float>(static_cast<double>(model[i]) + options_.learning_rate * delta);
    }
  }
  std::vector<std::span<std::byte>> memory() override { return {std::as_writable_bytes(velocity_.span())}; }

 private:
  Options options_;
  AlignedBuffer<float> velocity_;  // v; empty without momentum
};

enum class SecondMoment { kAdagrad, kAdam, kYogi };

// Reddi et al. 2021, algorithm 2: m <- beta1 m + (1 - beta1) delta, w <- w + eta m / (sqrt(v) + tau); v
// follows one of three rules, v_0 = tau^2.
class Adaptive final : public ServerOptimizer {
 public:
  struct Options {
    SecondMoment rule = SecondMoment::kAdam;
    double learning_rate = 0.01;
    double beta1 = 0.9;
    double beta2 = 0.99;
    double tau = 1e-3;
  };
  Adaptive(const Options& options, std::size_t parameters)
      : options_(options), first_(parameters), second_(parameters) {
    std::fill_n(second_.data(), parameters, static_cast<float>(options.tau * options.tau));
  }

  void step(std::size_t first, std::span<float> model, std::span<const double> aggregate) override {
    for (std::size_t i = 0; i < model.size(); ++i) {
      const double delta = aggregate[i];
      float& m = first_.data()[first + i];
      float& v = second_.data()[first + i];
      m = static_cast<float>(options_.beta1 * static_cast<double>(m) + (1 - options_.beta1) * delta);
      v = static_cast<float>(next(static_cast<double>(v), delta * delta));
      const double move = static_cast<double>(m) / (std::sqrt(static_cast<double>(v)) + options_.tau);
      model[i] = static_cast<float>(static_cast<double>(model[i]) + options_.learning_rate * move);
    }
  }
  std::vector<std::span<std::byte>> memory() override {
    return {std::as_writable_bytes(first_.span()), std::as_writable_bytes(second_.span())};
  }

 private:
  double next(double v, double square) const {
    switch (options_.rule) {
      case SecondMoment::kAdagrad:
        return v + square;
      case SecondMoment::kAdam:
        return options_.beta2 * v + (1 - options_.beta2) * square;
      case SecondMoment::kYogi: {
        const double sign = v > square ? 1.0 : v < square ? -1.0 : 0.0;
        return v - (1 - options_.beta2) * square * sign;
      }
    }
    return v;
  }

  Options options_;
  AlignedBuffer<float> first_;   // m
  AlignedBuffer<float> second_;  // v
};

// FedDyn (Acar et al., ICLR 2021, algorithm 1) with s = -h / alpha: s <- s + share * delta, the sum of all
// clients' updates so far over their number, and w <- w + delta + s.
class Dynamic final : public ServerOptimizer {
 public:
  explicit Dynamic(std::size_t parameters) : sum_(parameters) {}

  void begin(double share) override { share_ = share; }
  void step(std::size_t first, std::span<float> model, std::span<const double> aggregate) override {
    for (std::size_t i = 0; i < model.size(); ++i) {
      float& sum = sum_.data()[first + i];
      sum = static_cast<float>(static_cast<double>(sum) + share_ * aggregate[i]);
      model[i] = static_cast<float>(static_cast<double>(model[i]) + aggregate[i] + static_cast<double>(sum));
    }
  }
  std::vector<std::span<std::byte>> memory() override { return {std::as_writable_bytes(sum_.span())}; }

 private:
  double share_ = 0;
  AlignedBuffer<float> sum_;  // s
};

double read_rate(config::Reader& section, double fallback) {
  return section.number("learning_rate", fallback, kRate,
                        "Learning rate on the server. It multiplies the step that the optimizer computes "
                        "from the aggregate. The default with adagrad, adam and yogi is 0.01.");
}

ServerOptimizerFactory momentum(const Momentum::Options& options) {
  return [options](std::size_t parameters) -> std::unique_ptr<ServerOptimizer> {
    return std::make_unique<Momentum>(options, parameters);
  };
}

ServerOptimizerFactory read_sgd(config::Reader& section) {
  return momentum({.learning_rate = read_rate(section, 1.0)});
}

ServerOptimizerFactory read_momentum(config::Reader& section) {
  Momentum::Options options{.learning_rate = read_rate(section, 1.0)};
  options.beta = section.number("beta", 0.9, kShare, "Momentum coefficient.");
  options.nesterov = section.boolean("nesterov", false, "Whether to use Nesterov momentum.");
  return momentum(options);
}

ServerOptimizerFactory read_adaptive(config::Reader& section, SecondMoment rule) {
  const Adaptive::Options defaults;
  Adaptive::Options options{.rule = rule, .learning_rate = read_rate(section, defaults.learning_rate)};
  const bool adagrad = rule == SecondMoment::kAdagrad;
  options.beta1 =
      section.number("beta1", adagrad ? 0.0 : defaults.beta1, kShare, "Decay rate of the first moment.");
  if (!adagrad)
    options.beta2 = section.number("beta2", defaults.beta2, kShare, "Decay rate of the second moment.");
  options.tau = section.number("tau", defaults.tau, {1e-12, 1e3},
                               "Degree of adaptivity. It is added to the square root of the second moment.");
  return [options](std::size_t parameters) -> std::unique_ptr<ServerOptimizer> {
    return std::make_unique<Adaptive>(options, parameters);
  };
}

std::vector<ServerOptimizerKind>& optimizer_table() {
  static std::vector<ServerOptimizerKind> kinds = {
      ServerOptimizerKind{"sgd", "McMahan et al. 2017", "adds the aggregate to the model", read_sgd},
      ServerOptimizerKind{"momentum", "Hsu, Qi, Brown 2019", "FedAvgM, momentum on the server",
                          read_momentum},
      ServerOptimizerKind{
          "adagrad", "Reddi et al. 2021", "FedAdagrad, Adagrad on the server",
          [](config::Reader& section) { return read_adaptive(section, SecondMoment::kAdagrad); }},
      ServerOptimizerKind{
          "adam", "Reddi et al. 2021", "FedAdam, Adam on the server",
          [](config::Reader& section) { return read_adaptive(section, SecondMoment::kAdam); }},
      ServerOptimizerKind{
          "yogi", "Reddi et al. 2021", "FedYogi, Yogi on the server",
          [](config::Reader& section) { return read_adaptive(section, SecondMoment::kYogi); }},
      ServerOptimizerKind{
          .name = "dynamic",
          .paper = "Acar et al. 2021",
          .summary = "FedDyn, adds the aggregate and the mean over all clients of their updates so far",
          .read = [](config::Reader&) -> ServerOptimizerFactory {
            return [](std::size_t parameters) -> std::unique_ptr<ServerOptimizer> {
              return std::make_unique<Dynamic>(parameters);
            };
          },
          .sums_clients = true},
  };
  return kinds;
}

}  // namespace

std::span<const ServerOptimizerKind> server_optimizer_kinds() { return optimizer_table(); }

void register_server_optimizer(const ServerOptimizerKind& kind) {
  config::register_kind(optimizer_table(), kind, "server_optimizer", "a server optimizer");
}

Result<void> step_model(Aggregator& aggregator, ServerOptimizer& optimizer, std::size_t first,
                        std::span<float> model, Parallel& parallel) {
  const Coverage slice = Coverage::of({{first, first + model.size()}}).intersect(aggregator.covered());
  if (slice.empty()) return {};
  AlignedBuffer<double> aggregate(model.size());
  FEDGE_TRY_VOID(aggregator.read(first, aggregate.span(), parallel));
  return config::failure_as_error([&]() -> Result<void> {
    for (const Range& range : slice.ranges()) {
      const std::size_t begin = range.begin - first;
      optimizer.step(range.begin, model.subspan(begin, range.size()),
                     std::span<const double>(aggregate.span()).subspan(begin, range.size()));
    }
    return {};
  });
}

}  // namespace fedge::aggregation
