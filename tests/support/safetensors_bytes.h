// Parses a safetensors file in memory, header and values.
#pragma once

#include <cstring>
#include <memory>
#include <span>
#include <string>

#include "core/safetensors.h"

namespace fedge::test {

// `name` precedes every message. Errors are those of parse_safetensors_header().
inline Result<Safetensors> parse_safetensors(std::span<const std::byte> bytes, const std::string& name) {
  FEDGE_TRY(header, parse_safetensors_header(bytes, name));
  Safetensors out{ParameterVector(std::make_shared<const ParameterLayout>(std::move(header.layout))),
                  std::move(header.metadata)};
  const auto data = bytes.subspan(header.data_offset);
  if (!data.empty()) std::memcpy(out.values.values().data(), data.data(), data.size());
  return out;
}

}  // namespace fedge::test
