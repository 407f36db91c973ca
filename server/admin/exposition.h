// Writer of the Prometheus text exposition format, version 0.0.4: metric families with their help texts and
// samples. https://prometheus.io/docs/instrumenting/exposition_formats/. Not thread-safe.
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
  std::string_view label = {};  // label name of its samples; empty: one sample without a label
};

// Maximum number of series in a family, so that input from peers cannot grow it without bound.
inline constexpr std::size_t kMaxSeries = 1000;
inline constexpr std::size_t kMaxLabelBytes = 128;

// Counts by the value of one label. Once there are kMaxSeries - 1 values, new ones are counted as "other".
class LabelledCounts {
 public:
  // Cuts the value to kMaxLabelBytes and cleans it (core/text.h).
  void add(std::string_view value, std::uint64_t count = 1);
  const std::map<std::string, std::uint64_t>& series() const { return series_; }

 private:
  std::map<std::string, std::uint64_t> series_;
};

// Counts of observations in buckets.
class Histogram {
 public:
  // `bounds` must be ascending.
  explicit Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)), counts_(bounds_.size() + 1) {}
  void observe(double value);
  const std::vector<double>& bounds() const { return bounds_; }
  // Observations in (previous bound, bound]; the last count is for values above all bounds.
  const std::vector<std::uint64_t>& counts() const { return counts_; }
  double sum() const { return sum_; }

 private:
  std::vector<double> bounds_;
  std::vector<std::uint64_t> counts_;
  double sum_ = 0;
};

// Writes one family after another. The single-label overload writes the family's only sample.
class Exposition {
 public:
  void add(const MetricFamily& family, double value);
  void add(const MetricFamily& family, const std::string& label, double value);
  void add(const MetricFamily& family, const LabelledCounts& counts);
  using Samples = std::vector<std::pair<std::string, double>>;  // label value, sample
  void add(const MetricFamily& family, const Samples& samples);
  void add(const MetricFamily& family, const Histogram& histogram);
  const std::string& text() const { return text_; }

 private:
  void begin(const MetricFamily& family);
  void sample(std::string_view name, std::string_view label, std::string_view label_value, double value);
  std::string text_;
};

}  // namespace fedge::server
