// A text as JSON has it.
#pragma once

#include <string>

namespace fedge {

// In quotation marks, with escapes where JSON needs them. What is no UTF-8 becomes U+FFFD.
std::string json_text(const std::string& text);

}  // namespace fedge
