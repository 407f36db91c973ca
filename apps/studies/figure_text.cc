#include "apps/studies/figure_text.h"

#include <cmath>

namespace fedge::apps {
namespace {

// Pads by characters: printf would count the two bytes of "±" as two columns.
std::string padded(const std::string& text, std::size_t width) {
  std::size_t columns = 0;
  for (const char c : text) columns += (static_cast<unsigned char>(c) & 0xC0) != 0x80 ? 1 : 0;
  return (columns < width ? std::string(width - columns, ' ') : "") + text;
}

}  // namespace

std::string number(double value, const char* format) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string with_decimals(double value, int decimals) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

std::string shown(const SampleSummary& interval, int decimals) {
  if (std::isnan(interval.mean)) return "-";
  std::string text = with_decimals(interval.mean, decimals);
  if (!std::isnan(interval.half_width)) text += " ± " + with_decimals(interval.half_width, decimals);
  return text;
}

std::string json_number(double value) { return std::isnan(value) ? "null" : number(value, "%.17g"); }

void print_row(std::FILE* out, const std::string& label, const std::vector<std::string>& cells) {
  std::fprintf(out, "%-40s", label.c_str());
  for (const std::string& cell : cells) std::fprintf(out, "%s", padded(cell, 24).c_str());
  std::fprintf(out, "\n");
}

}  // namespace fedge::apps
