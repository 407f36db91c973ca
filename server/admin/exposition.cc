#include "server/admin/exposition.h"

#include <charconv>
#include <cmath>

#include "core/text.h"

namespace fedge::server {
namespace {

constexpr const char* kOther = "other";

const char* type_name(MetricType type) {
  switch (type) {
    case MetricType::kCounter:
      return "counter";
    case MetricType::kGauge:
      return "gauge";
    default:
      return "histogram";
  }
}

// Writes integers without an exponent, for readability, and other values in the shortest form that reads
// back exactly.
std::string sample_text(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  char text[32];
  const bool whole = value == std::floor(value) && std::abs(value) < 0x1p53;
  const auto end = whole ? std::to_chars(text, text + sizeof text, static_cast<std::int64_t>(value))
                         : std::to_chars(text, text + sizeof text, value);
  return {text, end.ptr};
}

// Escapes backslashes and line feeds; quotation marks only in a label.
std::string escaped(std::string_view text, bool label) {
  std::string out;
  for (const char c : text) {
    if (c == '\n') {
      out += "\\n";
      continue;
    }
    if (c == '\\' || (label && c == '"')) out += '\\';
    out += c;
  }
  return out;
}

}  // namespace

void LabelledCounts::add(std::string_view value, std::uint64_t count) {
  std::string key = clean_text(value, kMaxLabelBytes);
  if (!series_.contains(key) && series_.size() >= kMaxSeries - 1) key = kOther;
  series_[key] += count;
}

void Histogram::observe(double value) {
  std::size_t place = 0;
  while (place < bounds_.size() && value > bounds_[place]) ++place;
  ++counts_[place];
  sum_ += value;
}

void Exposition::begin(const MetricFamily& family) {
  text_.append("# HELP ").append(family.name).append(" ").append(escaped(family.help, false)).append("\n");
  text_.append("# TYPE ").append(family.name).append(" ").append(type_name(family.type)).append("\n");
}

void Exposition::sample(std::string_view name, std::string_view label, std::string_view label_value,
                        double value) {
  text_.append(name);
  if (!label.empty())
    text_.append("{").append(label).append("=\"").append(escaped(label_value, true)).append("\"}");
  text_.append(" ").append(sample_text(value)).append("\n");
}

void Exposition::add(const MetricFamily& family, double value) {
  begin(family);
  sample(family.name, {}, {}, value);
}

void Exposition::add(const MetricFamily& family, const std::string& label, double value) {
  begin(family);
  sample(family.name, family.label, clean_text(label, kMaxLabelBytes), value);
}

void Exposition::add(const MetricFamily& family, const LabelledCounts& counts) {
  begin(family);
  for (const auto& [value, count] : counts.series())
    sample(family.name, family.label, value, static_cast<double>(count));
}

void Exposition::add(const MetricFamily& family, const Samples& samples) {
  begin(family);
  for (const auto& [value, number] : samples)
    sample(family.name, family.label, clean_text(value, kMaxLabelBytes), number);
}

void Exposition::add(const MetricFamily& family, const Histogram& histogram) {
  begin(family);
  const std::string name(family.name);
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < histogram.counts().size(); ++i) {
    total += histogram.counts()[i];
    const std::string bound = i < histogram.bounds().size() ? sample_text(histogram.bounds()[i]) : "+Inf";
    sample(name + "_bucket", "le", bound, static_cast<double>(total));
  }
  sample(name + "_sum", {}, {}, histogram.sum());
  sample(name + "_count", {}, {}, static_cast<double>(total));
}

}  // namespace fedge::server
