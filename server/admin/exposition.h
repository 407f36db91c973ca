// Prometheus' text exposition format, version 0.0.4: families of metrics with what they mean, and their
// samples. https://prometheus.io/docs/instrumenting/exposition_formats/. No thread rule.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace fedge::server {

enum class MetricType { kCounter, kGauge, kHistogram };

struct MetricFamily {
  std::string_view name;
  MetricType type;
  std::string_view help;
  std::string_view label = {};  // of its samples; empty: it has one sample, without a label
};

// Series of one family; what a peer says must not make more.
inline constexpr std::size_t kMaxSeries = 1000;
inline constexpr std::size_t kMaxLabelBytes = 128;

// Counts by the values of one label. From the thousandth value on, what is new is counted as "other".
class LabelledCounts {
 public:
  // A value is cut to kMaxLabelBytes and cleaned (core/text.h).
  void add(std::string_view value, std::uint64_t count = 1);
  const std::map<std::string, std::uint64_t>& series() const { return series_; }

 private:
  std::map<std::string, std::uint64_t> series_;
};

// How many observations there were up to each bound.
class Histogram {
 public:
  // Ascending.
  explicit Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}
  void observe(double value);
  const std::vector<double>& bounds() const { return bounds_; }
  // Of observations in (bound before, bound], and last above all bounds.
  const std::vector<std::uint64_t>& counts() const { return counts_; }
  double sum() const { return sum_; }

 private:
  std::vector<double> bounds_;
  std::vector<std::uint64_t> counts_;
  double sum_ = 0;
};

// Writes families one after the other.
class Exposition {
 public:
  void add(const MetricFamily& family, double value);
  void add(const MetricFamily& family, const std::string& label, double value);  // its only sample
  void add(const MetricFamily& family, const LabelledCounts& counts);
  using Samples = std::vector<std::pair<std::string, double>>;  // by the label's values
  void add(const MetricFamily& family, const Samples& samples);
  void add(const MetricFamily& family, const Histogram& histogram);
  const std::string& text() const { return text_; }

 private:
  void begin(const MetricFamily& family);
  void sample(std::string_view name, std::string_view label, std::string_view label_value, double value);
  std::string text_;
};

}  // namespace fedge::server
