#include "core/json_text.h"

#include <nlohmann/json.hpp>

namespace fedge {

std::string json_text(const std::string& text) {
  return nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace fedge
