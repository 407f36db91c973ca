// The section [data] of a run file, and checks of keys that the other sections share.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "core/config/reader.h"
#include "learn/spec.h"

namespace fedge::learn {

inline std::size_t to_size(std::int64_t value) { return static_cast<std::size_t>(value); }

// Refuses a key that has no effect with the chosen kind. Callers still read every key, so that the generated
// reference lists it.
void require_kind(config::Reader& reader, const std::string& key, bool belongs, const std::string& message);
// The same for a key whose effect depends on another key than `kind`.
void require_beside(config::Reader& reader, const std::string& key, bool belongs, const std::string& message,
                    const char* beside);

DataSpec read_data(config::Reader& reader);

// Whether this may be data.name, which is not a path in --data NAME=PATH.
bool is_data_name(const std::string& name);

}  // namespace fedge::learn
