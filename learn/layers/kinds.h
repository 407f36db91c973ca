// The table of layers by name, which a run file lists under model.layer. To add one, write an Operation and a
// line in kinds.cc.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "core/config/reader.h"
#include "learn/layers/operation.h"

namespace fedge::learn {

struct LayerKind {
  const char* name;     // kind in the run file
  const char* prefix;   // of its name, followed by a number, unless the run file gives one
  const char* summary;  // one line
  // Reads every option of the kind but kind, name, from and activation. Null: it has none.
  void (*read)(config::Reader& section, LayerSpec& spec);
  // Null for a layer that the network replaces by others.
  MadeOperation (*make)(const LayerContext& context);
};

std::span<const LayerKind> layer_kinds();
// Null if there is no kind of this name.
const LayerKind* find_layer_kind(const std::string& name);

// Reads the array of tables `layer` of [model].
std::vector<LayerSpec> read_layers(config::Reader& section);

}  // namespace fedge::learn
