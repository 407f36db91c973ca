// Formats metrics with their intervals, for text tables and JSON. Pure, except print_row.
#pragma once

#include <cstdio>
#include <string>
#include <vector>

#include "core/statistics/sample.h"

namespace fedge::apps {

std::string number(double value, const char* format);  // as printf does
std::string with_decimals(double value, int decimals);
// "12.34 ± 0.05"; "-" if not measured.
std::string shown(const SampleSummary& interval, int decimals);
std::string json_number(double value);  // null if not measured
// Prints a label and cells in columns.
void print_row(std::FILE* out, const std::string& label, const std::vector<std::string>& cells);

}  // namespace fedge::apps
